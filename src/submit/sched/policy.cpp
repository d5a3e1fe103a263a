#include "submit/sched/policy.h"

#include <fmt/format.h>

#include "base/error.h"
#include "base/units.h"

namespace weir::scheduler {
namespace {}  // namespace

void check(const Terms& terms) {
  if (terms.priority < kLowestPriority || terms.priority > kHighestPriority) {
    reject(fmt::format("--priority {}: priorities go from {} to {}", terms.priority, kLowestPriority, kHighestPriority),
           "A higher one is more urgent; 0 is normal.");
  }
  // Written so that NaN is rejected too.
  if (!(terms.weight >= kLeastWeight && terms.weight <= kMostWeight)) {
    reject(fmt::format("--weight {}: weights go from {} to {}", terms.weight, kLeastWeight, kMostWeight),
           "Shares are relative to the other clients': 2 beside 1 gets two thirds.");
  }
  if (terms.deadline_ns < 0 || terms.deadline_ns > kLongestDeadlineNs) {
    reject(fmt::format("--deadline {} ns: deadlines go from 0 (none) to {}", terms.deadline_ns,
                       format_duration(kLongestDeadlineNs)),
           "A deadline counts from the arrival of each request.");
  }
}

void check(const Settings& settings) {
  if (settings.slice_ns < kShortestSliceNs || settings.slice_ns > kLongestSliceNs) {
    reject(fmt::format("--slice {} ns: slices go from {} to {}", settings.slice_ns, format_duration(kShortestSliceNs),
                       format_duration(kLongestSliceNs)),
           "A slice should be longer than several of the kernels that share the device.");
  }
  if (settings.ageing_ns < 0 || settings.ageing_ns > kLongestAgeingNs) {
    reject(fmt::format("--ageing {} ns: it goes from 0 (nobody ages) to {}", settings.ageing_ns,
                       format_duration(kLongestAgeingNs)),
           "It says how long a client may be kept waiting before it comes first for one slice.");
  }
}

}  // namespace weir::scheduler
