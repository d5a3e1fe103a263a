// The socket that a daemon listens on: its folder, its lock, and what is done about one that was left behind. Of two
// that start at once one wins. Knows no message.
#pragma once

#include <filesystem>
#include <string>

#include "submit/sched/socket.h"

namespace weir::scheduler {

class Listener {
 public:
  // Makes the folder where there is none. Rejects where a daemon lives, and whatever is not this user's alone.
  explicit Listener(const std::filesystem::path& path);
  // Removes the socket; the lock's file stays, or two could hold locks on different files of that name.
  ~Listener();
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;

  int get() const noexcept { return socket_.get(); }

 private:
  std::string path_;
  Descriptor lock_;
  Descriptor socket_;
};

}  // namespace weir::scheduler
