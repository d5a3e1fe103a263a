// How busy AMD's GPUs are, and what each process takes of them: files of sysfs, and what the driver says of a process's
// open files (/proc/PID/fdinfo). A value that is missing has its reason.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "amd/kfd/snapshot.h"

namespace weir::kfd {

struct UseValue {
  std::optional<double> value;
  std::string reason;  // why there is none
};

struct GpuUse {
  std::uint32_t gpu_id = 0;
  UseValue busy;  // 0 to 1
  UseValue memory_used_bytes, memory_bytes, power_w;
};
// From class/drm/renderD<minor>/device.
GpuUse read_gpu_use(const std::filesystem::path& sysfs, const SysfsNode& node);

// What a process's open files of one GPU add up to.
struct DrmUse {
  std::uint64_t memory_bytes = 0;                  // of video memory
  std::map<std::string, std::uint64_t> engine_ns;  // "gfx", "compute", "dma": time on each since it began
};
// By GPU, as PCI names it: "0000:05:00.0".
using DrmUses = std::map<std::string, DrmUse>;

// Adds one file of fdinfo. `clients`: those that were counted; several descriptors may be of one client.
void add_fdinfo(std::string_view text, std::vector<std::string>& clients, DrmUses& uses);
// Nothing where the process's descriptors may not be read.
std::optional<DrmUses> read_drm_use(const std::filesystem::path& proc, int pid);

// "0000:05:00.0"; empty where the topology does not say.
std::string pci_name(const SysfsNode& node);

}  // namespace weir::kfd
