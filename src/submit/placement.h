// Places commands on streams. Knows steps and stream counts; never touches a device.
#pragma once

#include <span>
#include <string_view>

#include "device/device.h"

namespace weir {

struct PlacementPolicy {
  std::string_view name;
  std::string_view summary;
  Placement (*place)(const Step& step);
};

std::span<const PlacementPolicy> placement_policies();

// Rejects unknown names.
const PlacementPolicy& placement_named(std::string_view name);
inline Placement place(const Step& step, std::string_view policy) { return placement_named(policy).place(step); }

}  // namespace weir
