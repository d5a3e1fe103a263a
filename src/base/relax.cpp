#include "base/relax.h"

#include <sched.h>

#include <ctime>

#include "base/clock.h"

namespace weir {

void yield_core() noexcept {
  constexpr std::int64_t kLateNs = 1'000'000;        // another process's time slice; Weir's threads hold it for less
  constexpr std::int64_t kContestedNs = 50'000'000;  // then yields again, because the machine may be idle by now
  constexpr timespec kNap{0, 20'000};
  static thread_local std::int64_t contested_until_ns = 0;
  const std::int64_t begun_ns = now_ns();
  if (begun_ns < contested_until_ns) {
    nanosleep(&kNap, nullptr);
    return;
  }
  sched_yield();
  if (const std::int64_t now = now_ns(); now - begun_ns > kLateNs) contested_until_ns = now + kContestedNs;
}

}  // namespace weir
