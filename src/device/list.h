// The devices, GPUs first, because "auto" takes the first GPU that is found: a file or folder each, and its name here.
#pragma once

#include "device/device.h"

#define WEIR_DEVICES cuda(), hip(), opencl(), cpu(), sim(), null()

namespace weir::device_list {
DeviceType WEIR_DEVICES;
}  // namespace weir::device_list

namespace weir {

// What to type instead of an unknown kind of device ("gpu", "cdua").
std::string device_suggestion(const std::string& kind);

}  // namespace weir
