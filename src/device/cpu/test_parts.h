// Opens the cpu device with replaced parts, for tests: other kernel bodies, other files to read facts from.
#pragma once

#include <memory>

#include "device/cpu/host.h"
#include "device/device.h"
#include "kernel/kernel.h"

namespace weir::cpu {

struct TestParts {
  const Kernel& (*kernel_of)(KernelId) = &kernel;
  HostRoots roots = {};
};

// Rejects options out of range. Starts no thread; the first prepare() does.
std::unique_ptr<Device> open_cpu(const DeviceOptions& options, const TestParts& test_parts = {});

}  // namespace weir::cpu
