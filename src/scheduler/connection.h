// A client's connection to the scheduler's daemon: asks for a seat over a unix socket, maps the board it is handed, and
// keeps a thread that notices when the daemon is gone. Used by `weir run` under `weir sched run`, and inside other
// people's programs, so it throws nothing, prints nothing and never blocks for long.
#pragma once

#include <memory>
#include <string>

#include "scheduler/gate.h"
#include "scheduler/policy.h"

namespace weir::scheduler {

// What `weir sched run` hands to the program in the environment.
inline constexpr const char* kSocketVariable = "WEIR_SCHED_SOCKET";
inline constexpr const char* kTermsVariable = "WEIR_SCHED_TERMS";  // "priority=10;weight=1;deadline_ns=0"

std::string write_terms(const Terms& terms);
// False where the text is none; `terms` is unchanged then.
bool read_terms(std::string_view text, Terms* terms) noexcept;

class Connection {
 public:
  // Null with a reason where there is no daemon, it is another user's, or it has no seat left: then run unscheduled.
  static std::unique_ptr<Connection> open(const std::string& socket, const Terms& terms, std::string_view program,
                                          std::string* reason) noexcept;
  // Gives the seat back.
  ~Connection();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  Gate& gate() noexcept;
  bool is_alive() const noexcept;
  // Called by the attending thread again and again while commands are pending, at least every 50 us then: has to find
  // out what has ended, and call leave(). Set before the first enter(); a forked child calls nothing.
  void attend(void (*look)(void* context), void* context) noexcept;

 private:
  struct State;
  explicit Connection(std::unique_ptr<State> state) noexcept;
  std::unique_ptr<State> state_;
};

}  // namespace weir::scheduler
