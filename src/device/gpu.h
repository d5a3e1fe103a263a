// The device over a vendor's function table. What cuda.cpp and its siblings call once they have filled it.
#pragma once

#include <memory>

#include "device/gpu_api.h"

namespace weir {

// Names of the devices that the table reaches, or why there are none.
DeviceType::Found find_gpus(const GpuApi& api);

struct GpuOptions {
  int index = 0;
  int hardware_queues = 0;  // what the vendor's setting asks for in this process; 0 where that is not known
  int compute_units = 0;    // that each stream is confined to; 0 = all of them
  Capability priorities;    // as far as settings of the process decide
  Communicator* communicator = nullptr;  // where there are other ranks
};
// The table must outlive the device. Rejects an index that is not there, and compute units that it cannot give.
std::unique_ptr<Device> open_gpu(const GpuApi& api, const GpuOptions& options);

}  // namespace weir
