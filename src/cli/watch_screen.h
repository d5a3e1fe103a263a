// The terminal of `weir watch`: cells go out, keys come in. The only file that knows ncurses.
#pragma once

#include <vector>

#include "lab/watch/grid.h"
#include "lab/watch/view.h"

namespace weir::cli {

// Blocks the signals by which a terminal is redrawn, for this thread and those that it starts: ncurses' handlers must
// run in the thread that draws. A screen unblocks them for the thread that makes it.
void keep_screen_signals();

// One at a time. While it lives, SIGINT, SIGTERM, SIGQUIT and SIGHUP are caught; behind it they do what they did
// before, and the terminal is as it was, also where the program ends by an exception or a crash.
class Screen {
 public:
  Screen();  // rejects: built without ncurses, or a terminal that it does not know
  ~Screen();
  Screen(const Screen&) = delete;
  Screen& operator=(const Screen&) = delete;

  int width() const;
  int height() const;
  void draw(const watch::Grid& grid);
  void redraw();  // the whole of it, whatever others wrote over it
  // Waits for keys, for a resize, for a signal, or until `wake` can be read. Any of them may be none.
  std::vector<watch::Key> await(int wake);
  // By a signal; or the terminal is gone.
  bool is_ended() const;
  int signal() const;  // 0: none
};

}  // namespace weir::cli
