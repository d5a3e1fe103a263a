// The terminal of a live view: draws cells, reads keys. The only file that knows ncurses.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "lab/watch/grid.h"
#include "lab/watch/view.h"

namespace weir::watch {

// Blocks the signals that cause a redraw, for this thread and those that it starts: ncurses' handlers must run in the
// thread that draws. A screen unblocks them for the thread that creates it.
void keep_screen_signals();

// One at a time. During its lifetime, SIGINT, SIGTERM, SIGQUIT and SIGHUP are caught; afterwards they have their
// previous handlers, and the terminal is restored, even if the program ends by an exception or a crash.
class Screen {
 public:
  // `terminal` is the TERM of the environment, for messages. Rejects a terminal that it does not know, and every one
  // where this program was built without ncurses.
  explicit Screen(const std::optional<std::string>& terminal);
  ~Screen();
  Screen(const Screen&) = delete;
  Screen& operator=(const Screen&) = delete;

  int width() const;
  int height() const;
  void draw(const Grid& grid);
  void redraw();  // everything, including cells that others overwrote
  // Waits for keys, a resize, a signal, or until `wake` is readable. The result may be empty.
  std::vector<Key> await(int wake);
  // Whether a signal asked to end, or the terminal is gone.
  bool is_ended() const;
  int signal() const;  // 0: none
};

}  // namespace weir::watch
