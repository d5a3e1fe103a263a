// A GPU in virtual time, made from a profile. For the list of devices and for code that makes its own profiles.
#pragma once

#include <memory>

#include "device/device.h"
#include "device/sim/profile.h"

namespace weir {

// Rejects a profile that contradicts itself.
std::unique_ptr<Device> open_sim(sim::SimProfile profile);

}  // namespace weir
