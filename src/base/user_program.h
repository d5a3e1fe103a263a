// Runs a program of the user: standard input, output, errors and the terminal are its own, signals sent to this process
// are forwarded to it, and its exit code is returned. Does not know what it is run for.
#pragma once

#include <signal.h>
#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/process.h"

namespace weir {

// Work to do beside a program: called with its process id right after its start, and again at the time (on now_ns) that
// the call returned.
using WhileRunning = std::function<std::int64_t(pid_t)>;

// Forwards signals sent to this process during the lifetime of this object. Ignored signals (nohup) stay ignored, also
// for the program, which would lose that if this process handled them. One at a time.
class Forwarding {
 public:
  // `own`: a signal that is meant for this process and not forwarded; 0: none.
  explicit Forwarding(int own = 0);
  ~Forwarding();
  Forwarding(const Forwarding&) = delete;
  Forwarding& operator=(const Forwarding&) = delete;

  // Runs the program to its end; returns its exit code, or 128 + signal. Rejects a program that cannot be executed.
  // `death_signal`: what it gets if this process dies before it; 0: it goes on.
  int run(const std::vector<std::string>& command, const Variables& variables, const WhileRunning& while_running = {},
          int death_signal = SIGTERM);
  // The signal that asked to end since the last call; 0: none.
  static int take_signal();
  // Whether the own signal has come since the last call. It is looked for whenever `while_running` is called.
  static bool take_own();

 private:
  // The last two are for this process's own limits of time and file size: dying from them would leave work undone.
  static constexpr int kSignals[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGXCPU, SIGXFSZ};
  struct sigaction before_[8] = {};
};

}  // namespace weir
