// The machine and settings of a measurement. Reads /proc and /sys; the caller passes the variables.
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "base/json.h"

namespace weir {

// `variables` are "NAME=value" lines of the process environment; those that affect GPU runtimes, BLAS, MPI or threads
// are kept. `root` is prefixed to every path that is read, so that tests can describe a machine.
Json describe_environment(std::span<const std::string> variables, const std::filesystem::path& root = "/");

// True for variables that can change a measurement: CUDA_*, HIP_*, GPU_MAX_HW_QUEUES, NCCL_*, ...
bool affects_measurement(std::string_view name);

// Cores that this process may use.
std::vector<int> usable_cores();

// CPU energy since boot from powercap (RAPL) below `sys`, all packages; nothing if the kernel does not offer it.
std::optional<double> rapl_energy_j(const std::filesystem::path& sys = "/sys");

}  // namespace weir
