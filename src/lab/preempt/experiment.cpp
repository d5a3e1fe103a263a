#include "lab/preempt/experiment.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "kernel/random.h"

namespace weir::preempt {
namespace {

constexpr std::array<std::string_view, 3> kKinds{"waves", "persistent", "memory"};

}  // namespace

std::string_view name_of(VictimKind kind) { return kKinds[static_cast<std::size_t>(kind)]; }

std::optional<VictimKind> victim_kind_named(std::string_view name) {
  for (std::size_t i = 0; i < kKinds.size(); ++i)
    if (kKinds[i] == name) return static_cast<VictimKind>(i);
  return std::nullopt;
}

std::vector<Victim> usual_victims(const std::vector<VictimKind>& kinds, bool is_quick) {
  std::vector<Victim> all = {
      {VictimKind::waves, 4, 10'000}, {VictimKind::waves, 4, 100'000}, {VictimKind::waves, 4, 1'000'000}};
  if (!is_quick) {
    all.push_back({VictimKind::waves, 4, 10'000'000});
    all.push_back({VictimKind::waves, kMaxWaves, 100'000});
  }
  all.push_back({VictimKind::persistent, 4, 100'000});
  all.push_back({VictimKind::memory, 4, 100'000});
  std::erase_if(all, [&](const Victim& one) { return std::find(kinds.begin(), kinds.end(), one.kind) == kinds.end(); });
  return all;
}

std::vector<std::int64_t> due_times(const ExperimentPlan& plan) {
  std::vector<std::int64_t> due;
  due.reserve(static_cast<std::size_t>(std::max(0, plan.requests)));
  double at_ns = 0;
  for (int i = 0; i < plan.requests; ++i) {
    // In (0, 1]: the logarithm is finite.
    const double uniform = (random_bits(plan.seed, static_cast<std::uint64_t>(i)) + 1.0) * 0x1.0p-32;
    at_ns -= std::log(uniform) * static_cast<double>(plan.interval_ns);
    due.push_back(std::llround(at_ns));
  }
  return due;
}

}  // namespace weir::preempt
