#include "submit/inject/join.h"

#include <errno.h>
#include <pthread.h>

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <memory>
#include <string>

#include "submit/sched/connection.h"

namespace weir::inject {
namespace {

// Never destroyed: threads of the program may still launch while it exits, and the kernel gives the seat back.
LaunchGate* g_gate = nullptr;

}  // namespace

bool is_scheduled() noexcept {
  const char* const socket = std::getenv(scheduler::kSocketVariable);
  return socket != nullptr && *socket != '\0';
}

void report_unscheduled(const char* reason) noexcept {
  std::fprintf(stderr, "weir: the program runs unscheduled: %s\n", reason);
}

LaunchGate* join(const GateDriver& driver) noexcept {
  if (!is_scheduled()) return nullptr;
  try {
    scheduler::Terms terms;
    if (const char* const text = std::getenv(scheduler::kTermsVariable);
        text != nullptr && !scheduler::read_terms(text, &terms)) {
      report_unscheduled("WEIR_SCHED_TERMS cannot be read; `weir sched run` sets it");
      return nullptr;
    }
    std::string reason;
    auto connection = scheduler::Connection::open(std::getenv(scheduler::kSocketVariable), terms,
                                                  program_invocation_short_name, &reason);
    if (!connection) {
      report_unscheduled(reason.c_str());
      return nullptr;
    }
    auto gate = std::make_unique<LaunchGate>(connection->gate(), driver);
    connection->attend([](void* context) { static_cast<LaunchGate*>(context)->look(); }, gate.get());
    g_gate = gate.release();
    connection.release();
    std::atexit([] { g_gate->turn_off(); });
    ::pthread_atfork(nullptr, nullptr, [] { g_gate->abandon(); });
    return g_gate;
  } catch (const std::exception&) {
    report_unscheduled("out of memory");
    return nullptr;
  }
}

}  // namespace weir::inject
