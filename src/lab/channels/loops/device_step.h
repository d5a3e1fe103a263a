// A step on a device for benchmarks that send commands to one: prepares, submits and awaits it. Knows no channel.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "device/device.h"

namespace weir::channel_bench {

// Kernels that do almost nothing, one after the other on one stream. May be used by one thread at a time.
class DeviceStep {
 public:
  DeviceStep(const std::string& device, int kernels);

  // Submits them all and waits until they have ended. Throws errors of the device.
  void run();

 private:
  std::unique_ptr<Device> device_;
  Step step_;
  Placement placement_;
  std::vector<CommandId> commands_;
  std::unique_ptr<Session> session_;
};

// Why benchmarks cannot run on such a device here; empty if they can.
std::string why_not_on(const std::string& device);

// This machine's devices of that kind: cuda:0, cuda:1.
std::vector<std::string> devices_like(const std::string& device);

}  // namespace weir::channel_bench
