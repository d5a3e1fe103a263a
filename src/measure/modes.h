// Detects samples that gather around two values instead of one: a queue that runs sometimes in lock-step and sometimes
// in batches has no typical throughput. Knows only numbers. The rule is in docs/channels.md.
#pragma once

#include <cstddef>
#include <optional>
#include <span>

namespace weir {

struct Mode {
  double value = 0;  // median of its samples
  double share = 0;  // its share of all samples, 0 to 1
};

struct Modes {
  Mode low, high;
};

inline constexpr std::size_t kMinForModes = 20;   // samples; with fewer, anything shows two groups
inline constexpr double kMinModeShare = 0.15;     // smaller groups are outliers
inline constexpr double kMinModeRatio = 1.6;      // between the modes of channels; processes scatter by less
inline constexpr double kMinModeDistance = 6;     // between the modes, in robust standard deviations within them
inline constexpr double kMaxBetweenModes = 0.05;  // share of all samples in the middle third between the modes

// The two modes, or nothing if one value describes the samples as well, or if they are less than a factor `min_ratio`
// apart. Samples must be positive.
std::optional<Modes> two_modes(std::span<const double> samples, double min_ratio = kMinModeRatio);

}  // namespace weir
