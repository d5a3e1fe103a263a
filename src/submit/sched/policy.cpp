#include "submit/sched/policy.h"

#include <fmt/format.h>

#include "base/error.h"
#include "base/units.h"

namespace weir::scheduler {

void check(const Terms& terms) {
  if (terms.priority < kLowestPriority || terms.priority > kHighestPriority) {
    reject_setting("priority", std::to_string(terms.priority),
                   fmt::format("priorities go from {} to {}", kLowestPriority, kHighestPriority),
                   "A higher one is more urgent; 0 is normal.");
  }
  // Written so that NaN is rejected too.
  if (!(terms.weight >= kMinWeight && terms.weight <= kMaxWeight)) {
    reject_setting("weight", fmt::to_string(terms.weight),
                   fmt::format("weights go from {} to {}", kMinWeight, kMaxWeight),
                   "Shares are relative to the other clients': 2 beside 1 gets two thirds.");
  }
  if (terms.deadline_ns < 0 || terms.deadline_ns > kLongestDeadlineNs) {
    reject_setting("deadline", fmt::format("{} ns", terms.deadline_ns),
                   fmt::format("deadlines go from 0 (none) to {}", format_duration(kLongestDeadlineNs)),
                   "A deadline counts from the arrival of each request.");
  }
  if (terms.p99_ns != 0 && (terms.p99_ns < kShortestP99Ns || terms.p99_ns > kLongestP99Ns)) {
    reject_setting(
        "p99", fmt::format("{} ns", terms.p99_ns),
        fmt::format("bounds go from {} to {}", format_duration(kShortestP99Ns), format_duration(kLongestP99Ns)),
        "It says how long 99 of 100 requests may take; without it nothing is tightened.");
  }
}

void check(const Settings& settings) {
  if (settings.slice_ns < kShortestSliceNs || settings.slice_ns > kLongestSliceNs) {
    reject_setting(
        "slice", fmt::format("{} ns", settings.slice_ns),
        fmt::format("slices go from {} to {}", format_duration(kShortestSliceNs), format_duration(kLongestSliceNs)),
        "A slice should be longer than several of the kernels that share the device.");
  }
  if (settings.ageing_ns < 0 || settings.ageing_ns > kLongestAgeingNs) {
    reject_setting("ageing", fmt::format("{} ns", settings.ageing_ns),
                   fmt::format("it goes from 0 (nobody ages) to {}", format_duration(kLongestAgeingNs)),
                   "It says how long a client may be kept waiting before it comes first for one slice.");
  }
}

}  // namespace weir::scheduler
