// How much slower compute kernels run while a collective runs beside them: instances of one name alone against those
// beside. Grid sizes are not in the model, so all sizes under one name are compared together. One device.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "measure/timeline.h"

namespace weir {

struct KernelSlowdown {
  std::uint32_t name = kNoName;
  std::size_t alone = 0, beside = 0;  // instances: no collective at all; one for at least half of the time
  double alone_p50_ns = 0, beside_p50_ns = 0;
  double ratio = 0;       // beside / alone, of medians
  double p = 1;           // Mann-Whitney, two-sided, after Holm over all names
  bool is_clear = false;  // p < 0.01 and at least 2 % apart
  double cost_ns = 0;     // (beside_p50 - alone_p50) * beside; negative where it is faster
};

inline constexpr std::size_t kMinInstances = 5;
inline constexpr std::size_t kMaxSlowdowns = 50;

struct OverlapSlowdown {
  std::size_t names = 0;                // kernels with enough instances of both
  std::size_t clear = 0;                // of them
  std::vector<KernelSlowdown> kernels;  // by cost, at most kMaxSlowdowns
  std::optional<double> ratio;          // all judged kernels: time beside over what the same instances take alone
  double beside_ns = 0;                 // time of the judged instances beside collectives
  double cost_ns = 0;                   // for the clear ones
  std::size_t partly = 0;               // instances left out: a collective for less than half of the time
  std::size_t too_few = 0;              // names left out for lack of instances
  std::string reason;                   // why there is no ratio
};

OverlapSlowdown overlap_slowdown(const Timeline& timeline);

}  // namespace weir
