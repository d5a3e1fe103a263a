// Byte for byte what a kernel would show of a scene: hqds, mqds and rls of debugfs, and a tree of sysfs. Knows formats
// and registers; no decoder.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <string>

#include "support/amd_scene.h"

namespace weir::testing {

struct KfdTextOptions {
  bool has_instances = true;    // kernels before 6.5 print no "Inst"
  bool has_real_pasid = false;  // older kernels print PASID 0x8001, newer ones the pid once more
  std::uint64_t seed = 1;       // of what queues that are gone left behind
  int stale_slots = 3;          // of each GPU, where there are free ones
  int stale_sdma_slots = 2;
};

std::string hqds_text(const Scene& scene, const KfdTextOptions& options = {});
std::string mqds_text(const Scene& scene, const KfdTextOptions& options = {});
std::string rls_text(const Scene& scene, const KfdTextOptions& options = {});

// FOLDER/class/kfd/kfd and FOLDER/module/amdgpu/parameters.
void write_sysfs(const Scene& scene, const std::filesystem::path& folder);
// FOLDER/kfd/hqds, mqds, rls: as below /sys/kernel/debug.
void write_debugfs(const Scene& scene, const std::filesystem::path& folder, const KfdTextOptions& options = {});
// FOLDER/hqds, mqds, rls and FOLDER/sysfs: as a capture keeps them.
void write_snapshot(const Scene& scene, const std::filesystem::path& folder, const KfdTextOptions& options = {});

// Words of a compute queue on one XCC: as registers, or as they stand in its memory image.
std::array<std::uint32_t, 56> queue_words(const SceneQueue& queue, int xcc, bool is_memory_image);

// More queues than slots on the GPU, or more processes than VMIDs.
bool is_oversubscribed(const Scene& scene, int gpu);

}  // namespace weir::testing
