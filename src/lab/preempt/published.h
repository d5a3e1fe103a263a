// What others have published of preemption latency, to stand beside what was measured here. Knows numbers and where
// they come from; compares nothing.
#pragma once

#include <span>
#include <string_view>

namespace weir::preempt {

struct PublishedPoint {  // in us
  double kernel_us = 0;  // how long the preempted kernels run
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
