// The devices by name, for list.cpp and for the files that define them.
#pragma once

#include "device/device.h"

namespace weir::device_list {

DeviceType null();
DeviceType cpu();
DeviceType cuda();
DeviceType hip();
DeviceType opencl();
DeviceType sim();

}  // namespace weir::device_list
