// The device over a vendor's function table. cuda.cpp and hip.cpp call this once they have filled the table.
#pragma once

#include <memory>

#include "device/gpu/api.h"

namespace weir {

// Opens a vendor's table on the first call; null with a reason if there is none.
using GpuOpener = const GpuApi* (*)(std::string* reason);

// Names of the devices that the table offers, or why there are none.
DeviceType::Found find_gpus(const GpuApi& api);
DeviceType::Found find_gpus(GpuOpener opener);

struct GpuOptions {
  int index = 0;
  int hardware_queues = 0;               // from the vendor's setting in this process; 0 if not known
  int compute_units = 0;                 // that each stream is confined to; 0 = all of them
  int rest_stream = -1;                  // see DeviceOptions
  Capability priorities;                 // as far as process settings decide
  Communicator* communicator = nullptr;  // if there are other ranks
  bool stages_collectives = false;       // always go through host memory
};
// The table must outlive the device. Rejects an unknown index, and compute units that the device cannot provide.
std::unique_ptr<Device> open_gpu(const GpuApi& api, const GpuOptions& options);
// The same for the user's text after the backend's name. `priorities`: see GpuOptions.
std::unique_ptr<Device> open_gpu(GpuOpener opener, const std::string& backend, const std::string& which,
                                 const DeviceOptions& options, const Capability& priorities = {});

}  // namespace weir
