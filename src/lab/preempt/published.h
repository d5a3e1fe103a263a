// Preemption latencies published by others, for comparison with the measurements. Knows numbers and their sources;
// compares nothing.
#pragma once

#include <span>
#include <string_view>

namespace weir::preempt {

struct PublishedPoint {  // in us
  double kernel_us = 0;  // duration of the preempted kernels
  double mean_us = 0, p50_us = 0, p90_us = 0, p99_us = 0;
};

struct PublishedCurve {
  std::string_view level;    // Lv1, Lv2, Lv3
  std::string_view summary;  // what is preempted
  std::span<const PublishedPoint> points;
};

struct Published {
  std::string_view source, device, licence, url;
  std::span<const PublishedCurve> curves;
};

const Published& published();

}  // namespace weir::preempt
