#include "run/watched_communicator.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include "base/process.h"
#include "base/units.h"

namespace weir {

void WatchedCommunicator::watch(std::int64_t timeout_ns, std::span<const RankProcess> neighbours,
                                std::function<void(const std::string&)> on_hang) {
  watch_.reset();
  neighbours_.clear();
  for (const RankProcess& each : neighbours) neighbours_.push_back({each});
  if (timeout_ns <= 0 || ranks().count == 1) return;
  watch_.emplace(
      timeout_ns,
      [this] {
        const std::uint64_t runs = count_runs();
        return std::vector<StreamProgress>{{runs, runs}};
      },
      [this, on_hang = std::move(on_hang)](std::span<const StreamProgress>, std::int64_t still_ns) {
        on_hang(report(still_ns));
      });
}

std::uint64_t WatchedCommunicator::count_runs() {
  // Ranks on other hosts cannot be seen, so a wait for them must end in time.
  if (neighbours_.empty() || static_cast<int>(neighbours_.size()) + 1 < ranks().count) return 0;
  for (Neighbour& each : neighbours_) {
    const auto facts = facts_of(each.process.pid);
    if (!facts) continue;
    each.has_run |= facts->cpu_ticks != each.ticks;
    each.ticks = facts->cpu_ticks;
  }
  if (!std::all_of(neighbours_.begin(), neighbours_.end(), [](const Neighbour& each) { return each.has_run; }))
    return runs_;
  for (Neighbour& each : neighbours_) each.has_run = false;
  return ++runs_;
}

std::string WatchedCommunicator::report(std::int64_t still_ns) const {
  std::string text = fmt::format("rank {} of {}: has waited for the other ranks for {}", ranks().rank, ranks().count,
                                 format_duration(static_cast<double>(still_ns)));
  for (const Neighbour& each : neighbours_) {
    const auto facts = facts_of(each.process.pid);
    const bool is_stopped = facts && (facts->state == 'T' || facts->state == 't');
    if (is_stopped || !each.has_run)
      text += fmt::format("\n  rank {} (pid {}) {}", each.process.rank, each.process.pid,
                          is_stopped ? "is stopped: by SIGSTOP, Ctrl-Z or a debugger" : "has not run since");
  }
  return text;
}

void WatchedCommunicator::abort(int code) noexcept {
  inner_->abort(code);
  std::abort();  // gcc 12 ignores [[noreturn]] on a virtual function
}

}  // namespace weir
