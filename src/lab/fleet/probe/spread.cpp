#include "lab/fleet/probe/spread.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "lab/fleet/figures.h"
#include "measure/statistics.h"
#include "measure/student.h"

namespace weir::fleet {
namespace {

// One in a thousand, because a probe states some fourteen ranges and ten probes are compared with each other.
constexpr double kBeyond = 0.0005;

// Two processes differ by more than the repetitions of one do: where its memory lies, which cores its threads have,
// how warm the device is. No process can see that of itself.
struct ProcessSpread {
  std::string_view figure;
  double share;
};
constexpr ProcessSpread kProcessSpreads[] = {
    {"launch", 0.35},       {"launch_threads", 0.25}, {"launch_graph", 0.05}, {"round_trip", 0.20},
    {"queue_switch", 0.30}, {"copy_to_device", 0.02}, {"copy_to_host", 0.02}, {"copy_to_peer", 0.03},
    {"memory", 0.01},       {"gemm_fp32", 0.02},      {"gemm_bf16", 0.025},   {"gemm_fp8", 0.025},
    {"all_reduce", 0.03},
};

double process_spread(std::string_view figure) {
  for (const ProcessSpread& each : kProcessSpreads)
    if (each.figure == figure) return each.share;
  return 0.05;
}

// The median does not follow a single sample that something disturbed, so its range need not either.
std::vector<double> without_farthest(std::span<const double> samples) {
  std::vector<double> kept(samples.begin(), samples.end());
  const double middle = median(kept);
  kept.erase(std::max_element(kept.begin(), kept.end(), [&](double one, double other) {
    return std::abs(one - middle) < std::abs(other - middle);
  }));
  return kept;
}

}  // namespace

std::optional<Interval> stated_range(std::string_view figure, std::span<const double> samples) {
  if (samples.size() < 3) return std::nullopt;
  const std::vector<double> kept =
      samples.size() >= 5 ? without_farthest(samples) : std::vector<double>(samples.begin(), samples.end());
  const auto count = static_cast<double>(kept.size());
  const double middle = median(samples);
  // The difference of two medians of so many samples.
  const double within =
      student_limit(kBeyond, count - 1) * standard_deviation(kept) * std::sqrt(2 / static_cast<double>(samples.size()));
  const double half = within + process_spread(figure) * std::abs(middle);
  return Interval{std::max(0.0, middle - half), middle + half};
}

}  // namespace weir::fleet
