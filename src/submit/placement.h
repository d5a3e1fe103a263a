// Places commands on streams. Knows steps and stream counts; never touches a device.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "device/device.h"

namespace weir {

struct PlacementPolicy {
  std::string_view name;
  std::string_view summary;
  Placement (*place)(const Step& step);
};

std::span<const PlacementPolicy> placement_policies();

// Rejects unknown policies; the message names the flag.
Placement place(const Step& step, const std::string& policy);

}  // namespace weir
