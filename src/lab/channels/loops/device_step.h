// A step on a device for benchmarks that send commands there: made, submitted and awaited. Knows no channel.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "device/device.h"

namespace weir::channel_bench {

// Kernels that do next to nothing, one behind the other on one stream. May be used by one thread at a time.
class DeviceStep {
 public:
  DeviceStep(const std::string& device, int kernels);

  // Submits them all and waits until they have ended. Throws what the device says went wrong.
  void run();

 private:
  std::unique_ptr<Device> device_;
  Step step_;
  Placement placement_;
  std::vector<CommandId> commands_;
  std::unique_ptr<Session> session_;
};

// Why benchmarks cannot run on such a device here; empty where they can.
std::string why_not_on(const std::string& device);

// What this machine has of that kind of device: cuda:0, cuda:1.
std::vector<std::string> devices_like(const std::string& device);

}  // namespace weir::channel_bench
