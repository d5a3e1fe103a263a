// The device over a vendor's function table. What cuda.cpp and its siblings call once they have filled it.
#pragma once

#include <memory>

#include "device/gpu/api.h"

namespace weir {

// Opens a vendor's table on the first call; null with a reason where there is none.
using GpuOpener = const GpuApi* (*)(std::string* reason);

// Names of the devices that the table reaches, or why there are none.
DeviceType::Found find_gpus(const GpuApi& api);
DeviceType::Found find_gpus(GpuOpener opener);

struct GpuOptions {
  int index = 0;
  int hardware_queues = 0;  // what the vendor's setting asks for in this process; 0 where that is not known
  int compute_units = 0;    // that each stream is confined to; 0 = all of them
  int rest_stream = -1;     // as of DeviceOptions
  Capability priorities;    // as far as settings of the process decide
  Communicator* communicator = nullptr;  // where there are other ranks
  bool stages_collectives = false;       // through host memory, whatever the vendor's library can
};
// The table must outlive the device. Rejects an index that is not there, and compute units that it cannot give.
std::unique_ptr<Device> open_gpu(const GpuApi& api, const GpuOptions& options);
// The same for what a user wrote after the backend's name. `priorities` is as of GpuOptions.
std::unique_ptr<Device> open_gpu(GpuOpener opener, const std::string& backend, const std::string& which,
                                 const DeviceOptions& options, const Capability& priorities = {});

}  // namespace weir
