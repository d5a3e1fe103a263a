#include "lab/kernels/warmup.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "measure/statistics.h"

namespace weir::bench {
namespace {

constexpr double kAgreement = 0.02;
constexpr std::size_t kWindows = 3;
constexpr std::size_t kMinEntries = 5, kMaxEntries = 500;
constexpr int kMaxWindows = 200;
// GPU clocks rise over some 100 ms of load. Windows shorter than such a step would all look alike.
constexpr double kHostWindowNs = 5e6, kDeviceWindowNs = 25e6;
// One entry of a window: several runs together, so that the clock's resolution and cost do not matter.
constexpr double kHostEntryNs = 2e5, kDeviceEntryNs = 1e6;
constexpr double kMaxSeconds = 2;

// The standard error of a median, from the median distance, which a few spikes do not affect.
double median_error(const std::vector<double>& values) {
  const double middle = median(values);
  std::vector<double> distances;
  for (const double value : values) distances.push_back(std::fabs(value - middle));
  return 1.253 * 1.4826 * median(distances) / std::sqrt(static_cast<double>(values.size()));
}

}  // namespace

bool is_settled(std::span<const std::vector<double>> windows) {
  if (windows.size() < kWindows) return false;
  windows = windows.last(kWindows);
  std::vector<double> medians;
  double error = 0;
  for (const std::vector<double>& window : windows) {
    medians.push_back(median(window));
    error = std::max(error, median_error(window));
  }
  const auto [low, high] = std::minmax_element(medians.begin(), medians.end());
  return *high - *low <= std::max(kAgreement * median(medians), 3 * error);
}

WarmUp warm_up(package::ReadyKernel& kernel, bool is_host, const MethodOptions& options,
               const Surroundings& surroundings) {
  WarmUp result;
  const std::int64_t begun = surroundings.now_ns();
  const double limit_ns = 1e9 * std::min(kMaxSeconds, options.budget_s / 5);
  const auto is_stopped = [&] { return options.is_stopped && options.is_stopped(); };
  // The time of one run, measured over `count` of them.
  const auto run = [&](std::uint64_t count) {
    const package::BatchTime time = options.is_cold ? kernel.run_cold() : kernel.run(count);
    result.runs += count;
    return time.device_ns / static_cast<double>(count);
  };
  for (int i = 0; i < options.warmup || i == 0; ++i) {
    if (i > 0 && is_stopped()) break;
    result.run_ns = run(1);
  }

  // Windows of long runs have fewer entries, so that three of them fit: otherwise they could never be found steady.
  const auto fewest = static_cast<std::size_t>(
      std::clamp(limit_ns / (static_cast<double>(kWindows + 1) * result.run_ns), 1.0, double{kMinEntries}));
  std::vector<std::vector<double>> windows;
  const double window_ns = is_host ? kHostWindowNs : kDeviceWindowNs;
  const double entry_ns = is_host ? kHostEntryNs : kDeviceEntryNs;
  for (int w = 0; w < kMaxWindows; ++w) {
    std::vector<double>& window = windows.emplace_back();
    const std::int64_t opened = surroundings.now_ns();
    while (window.size() < fewest ||
           (static_cast<double>(surroundings.now_ns() - opened) < window_ns && window.size() < kMaxEntries)) {
      if (is_stopped()) {
        result.reason = "stopped";
        return result;
      }
      const double taken_ns = static_cast<double>(surroundings.now_ns() - begun);
      if (taken_ns >= limit_ns) {
        result.reason =
            windows.size() > kWindows
                ? fmt::format("run times had not settled after {:.2g} s of warm-up", taken_ns / 1e9)
                : fmt::format("{} runs in {:.2g} s of warm-up are too few to tell", result.runs, taken_ns / 1e9);
        return result;
      }
      const double fit = options.is_cold ? 1 : std::clamp(std::ceil(entry_ns / result.run_ns), 1.0, 1e6);
      window.push_back(run(std::isfinite(fit) ? static_cast<std::uint64_t>(fit) : 1'000'000));
      result.run_ns = median(window);
    }
    if (is_settled(windows)) {
      result.is_steady = true;
      return result;
    }
  }
  result.reason = fmt::format("run times had not settled after {} runs of warm-up", result.runs);
  return result;
}

}  // namespace weir::bench
