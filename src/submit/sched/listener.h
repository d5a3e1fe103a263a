// The socket that a daemon listens on: its folder, its lock, and the handling of a stale one. If two daemons start at
// once, one wins. Knows no message.
#pragma once

#include <filesystem>
#include <string>

#include "submit/sched/socket.h"

namespace weir::scheduler {

class Listener {
 public:
  // Creates the folder if it is missing. Rejects if a daemon is running, and anything that does not belong to this user
  // alone.
  explicit Listener(const std::filesystem::path& path);
  // Removes the socket; the lock file stays, or two daemons could lock different files of that name.
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
