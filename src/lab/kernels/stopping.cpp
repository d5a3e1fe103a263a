#include "lab/kernels/stopping.h"

#include <algorithm>
#include <cmath>

#include "measure/statistics.h"

namespace weir::bench {
namespace {

constexpr double kLevelBits = 0.05;
constexpr std::size_t kMinLevels = 10;
// Timings have a finer resolution than differences that matter.
constexpr double kSameValue = 0.005;

double relative_width(std::span<const double> samples) {
  BootstrapOptions options;
  options.resamples = 1000;  // called often between samples, and 1000 are enough for a width
  const auto interval =
      bootstrap_interval(samples, [](std::span<const double> drawn) { return median(drawn); }, options);
  const double middle = median(samples);
  if (!interval) return INFINITY;
  return middle > 0 ? (interval->high - interval->low) / middle : 0;
}

}  // namespace

void EntropyTrail::add(double sample) {
  double& count = counts_[width_ > 0 ? std::round(sample / width_) : sample];
  if (count > 0) weighted_ -= count * std::log2(count);
  ++count;
  weighted_ += count * std::log2(count);
  const auto all = static_cast<double>(bits_.size() + 1);
  bits_.push_back(std::log2(all) - weighted_ / all);
}

bool EntropyTrail::is_level() const {
  const std::size_t size = bits_.size() - bits_.size() / 2;
  if (size < kMinLevels) return false;
  const std::span<const double> half = std::span(bits_).last(size);
  const double middle = static_cast<double>(size - 1) / 2, level = mean(half);
  double covariance = 0, variance = 0;
  for (std::size_t i = 0; i < size; ++i) {
    const double distance = static_cast<double>(i) - middle;
    covariance += distance * (half[i] - level);
    variance += distance * distance;
  }
  const double slope = covariance / variance;
  double off = 0;
  for (std::size_t i = 0; i < size; ++i)
    off = std::max(off, std::fabs(half[i] - level - slope * (static_cast<double>(i) - middle)));
  return std::fabs(slope) * static_cast<double>(size) < kLevelBits && off < kLevelBits;
}

Stopping::Stopping(const MethodOptions& options, double sees_ns)
    : stop_(options.stop),
      min_(static_cast<std::size_t>(std::max(options.iterations, 1))),
      max_(std::max(min_, static_cast<std::size_t>(std::max(options.most_iterations, 1)))),
      width_(options.interval_width),
      sees_ns_(sees_ns),
      next_look_(min_) {}

std::string_view Stopping::enough(std::span<const double> samples) {
  const std::size_t count = samples.size();
  if (count < min_) return {};
  if (stop_ == Stop::iterations) return "iterations";
  if (stop_ == Stop::entropy) {
    if (trail_.empty()) trail_.emplace_back(std::max(sees_ns_, kSameValue * median(samples)));
    for (std::size_t i = trail_[0].bits().size(); i < count; ++i) trail_[0].add(samples[i]);
    if (trail_[0].is_level()) return "entropy";
  } else if (count >= next_look_) {
    if (relative_width(samples) <= width_) return "interval";
    next_look_ = count + count / 10 + 1;
  }
  return count >= max_ ? "most_iterations" : std::string_view{};
}

}  // namespace weir::bench
