// How many commands ran at once. Reads timelines only.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "measure/timeline.h"

namespace weir {

inline constexpr std::size_t kMaxLevels = 64;

struct ConcurrencyLevels {
  std::vector<double> exactly_ns;  // [k - 1]: exactly k ran, up to the largest or kMaxLevels
  double beyond_ns = 0;            // more than kMaxLevels ran
  double busy_ns = 0;              // sum of these
  double mean = 0;                 // over busy_ns
  std::size_t max = 0;

  double overlapped_ns() const noexcept { return exactly_ns.empty() ? 0 : busy_ns - exactly_ns.front(); }
};

// Commands at once, wherever Weir says so: the device's kernels, copies and collectives, without host functions. Empty
// where no such command has a duration.
struct ConcurrencyProfile {
  std::optional<ConcurrencyLevels> all;
  std::optional<ConcurrencyLevels> kernels;  // without collectives
};

ConcurrencyProfile concurrency_profile(const Timeline& timeline);

}  // namespace weir
