// The device over a vendor's function table. What cuda.cpp and its siblings call once they have filled it.
#pragma once

#include <memory>

#include "device/gpu_api.h"

namespace weir {

// Names of the devices that the table reaches, or why there are none.
DeviceType::Found find_gpus(const GpuApi& api);

// The table must outlive the device. Rejects an index that is not there. `hardware_queues` is what the vendor's setting
// asks for in this process; 0 where that is not known. `communicator` is null where there are no other ranks.
std::unique_ptr<Device> open_gpu(const GpuApi& api, int index, int hardware_queues = 0,
                                 Communicator* communicator = nullptr);

}  // namespace weir
