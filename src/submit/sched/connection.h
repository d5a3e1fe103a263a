// A client's connection to the scheduler's daemon: asks for a seat over a unix socket, maps the board it receives, and
// keeps a thread that notices when the daemon is gone. Used by `weir run` under `weir sched run`, and inside other
// people's programs, so it throws nothing, prints nothing and never blocks for long.
#pragma once

#include <memory>
#include <string>

#include "submit/sched/gate.h"
#include "submit/sched/policy.h"
#include "submit/sched/socket.h"
#include "submit/sched/wire.h"

namespace weir::scheduler {

class Connection {
 public:
  // Null with a reason if there is no daemon, it belongs to another user, it does not answer within a second, or has no
  // seat left: then run unscheduled. `peer`: for tests.
  static std::unique_ptr<Connection> open(const std::string& socket, const Terms& terms, std::string_view program,
                                          std::string* reason, PeerOf peer = peer_of) noexcept;
  // Gives the seat back. No thread may be at the gate any more.
  ~Connection();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  Gate& gate() noexcept;
  // False once the daemon is gone, and in a forked child: nothing is scheduled any more.
  bool is_alive() const noexcept;
  // The attending thread calls `look` repeatedly while commands are on the device, about every 25 us: it must find out
  // what has ended, and call leave(). Set before the first enter(); a forked child calls nothing.
  void attend(void (*look)(void* context), void* context) noexcept;

 private:
  struct State;
  explicit Connection(std::unique_ptr<State> state) noexcept;
  std::unique_ptr<State> state_;
};

}  // namespace weir::scheduler
