// sysfs class/kfd/kfd and module/amdgpu/parameters: GPUs, processes and their queues as KFD counts them. Knows these
// folders.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "amd/kfd/registers.h"

namespace weir::kfd {

struct SysfsNode {
  int node = 0;
  std::uint32_t gpu_id = 0;  // 0: the host's
  std::string name;
  std::optional<std::uint32_t> gfx_target_version;
  std::optional<int> xccs, cp_queues, sdma_engines, sdma_xgmi_engines, sdma_queues_per_engine, simds,
      max_waves_per_simd;
};

enum class SysfsQueueType : std::uint8_t {
  compute = 0,
  sdma = 1,
  hiq = 2,
  diq = 3,
  sdma_xgmi = 4,
  sdma_by_engine = 5,
  unknown
};

struct SysfsQueue {
  std::uint32_t id = 0;
  std::uint32_t gpu_id = 0;
  std::uint64_t ring_bytes = 0;
  SysfsQueueType type = SysfsQueueType::unknown;
};

struct SysfsProcess {
  int pid = 0;
  std::vector<SysfsQueue> queues;  // by id
  // By GPU.
  std::vector<std::pair<std::uint32_t, std::uint64_t>> vram_bytes, evicted_ms, cu_occupancy;
};

struct SysfsState {
  std::vector<SysfsNode> nodes;                                 // by number
  std::vector<SysfsProcess> processes;                          // by pid
  std::vector<std::pair<std::string, std::string>> parameters;  // of the module amdgpu
  std::vector<std::string> problems;                            // files that were there and not as expected

  std::optional<std::string> parameter(std::string_view name) const;
};

// What the files of one node say: gpu_id "63420", name, properties "num_xcc 4" and the like. Nothing where gpu_id is no
// number.
std::optional<SysfsNode> parse_node(int node, std::string_view gpu_id, std::string_view name,
                                    std::string_view properties);
// What the files of one queue say, a number each. Nothing where one of them has none.
std::optional<SysfsQueue> parse_queue(std::uint32_t id, std::string_view gpu_id, std::string_view size,
                                      std::string_view type);

// `root` holds class/kfd/kfd and module/amdgpu. Nothing where there is no KFD below it.
std::optional<SysfsState> read_sysfs(const std::filesystem::path& root);

}  // namespace weir::kfd
