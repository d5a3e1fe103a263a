// Facts about the host that the cpu device runs on: model, memory, clocks. Reads files under given roots; knows no
// step.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "device/device.h"

namespace weir::cpu {

struct HostRoots {
  std::string proc = "/proc";
  std::string sys = "/sys";
};

// "AMD EPYC 9654 96-Core Processor", "ARM Neoverse-V1"; "unknown CPU" if the kernel does not report it.
std::string host_model(const HostRoots& roots);
std::optional<std::uint64_t> total_memory_bytes(const HostRoots& roots);
// Memory that can be allocated without swapping or being killed: the smaller of the machine's and the control group's.
std::optional<std::uint64_t> available_memory_bytes(const HostRoots& roots);
Telemetry host_telemetry(const HostRoots& roots);

}  // namespace weir::cpu
