// When the queues of one client may be suspended again, so that it neither starves nor thrashes. Knows no queue and no
// clock.
#pragma once

#include <algorithm>
#include <cstdint>

namespace weir::scheduler {

class SuspendPace {
 public:
  explicit SuspendPace(std::int64_t slice_ns) : slice_ns_(slice_ns) {}

  // The client has run for a slice since it was last resumed, and for kCostFactor times as long as that suspension
  // took: so at most a tenth of the time goes into suspending. One that took over kMaxCostNs counts as that long,
  // because a clock that jumps must not keep a client on the device for ever.
  bool may_suspend(std::int64_t now_ns) const { return now_ns >= runs_until_ns_; }
  std::int64_t runs_until_ns() const { return runs_until_ns_; }
  // `cost_ns`: of suspending and resuming it.
  void resumed(std::int64_t now_ns, std::int64_t cost_ns) {
    runs_until_ns_ = now_ns + std::max(slice_ns_, kCostFactor * std::clamp<std::int64_t>(cost_ns, 0, kMaxCostNs));
  }

  static constexpr std::int64_t kCostFactor = 9;
  static constexpr std::int64_t kMaxCostNs = 1'000'000'000;

 private:
  std::int64_t slice_ns_;
  std::int64_t runs_until_ns_ = 0;
};

}  // namespace weir::scheduler
