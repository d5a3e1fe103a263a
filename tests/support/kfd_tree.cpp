// Folders of a scene: sysfs, debugfs, and a snapshot as a capture keeps it.
#include <fmt/format.h>

#include <algorithm>
#include <fstream>

#include "support/kfd_text.h"

namespace weir::testing {
namespace {

void save(const std::filesystem::path& path, const std::string& text) {
  std::filesystem::create_directories(path.parent_path());
  std::ofstream(path, std::ios::binary) << text;
}

std::uint32_t target_version(Gfx gfx) {
  switch (gfx) {
    case Gfx::gfx9:
      return 90010;
    case Gfx::gfx9_4_3:
      return 90402;
    case Gfx::gfx10:
      return 100300;
    case Gfx::gfx11:
      return 110000;
    case Gfx::gfx12:
      break;
  }
  return 120001;
}

std::string properties(const SceneGpu* gpu) {
  const int slots = gpu ? gpu->pipes * (gpu->last_slot - gpu->first_slot + 1) * gpu->xccs : 0;
  std::string text = fmt::format("cpu_cores_count {}\nsimd_count {}\n", gpu ? 0 : 64, gpu ? 320 : 0);
  text +=
      fmt::format("max_waves_per_simd {}\ngfx_target_version {}\n", gpu ? 8 : 0, gpu ? target_version(gpu->gfx) : 0);
  text += fmt::format("num_sdma_engines {}\nnum_sdma_xgmi_engines 0\nnum_sdma_queues_per_engine {}\nnum_cp_queues {}\n",
                      gpu ? gpu->sdma_engines : 0, gpu ? gpu->sdma_queues : 0, slots);
  if (gpu) text += fmt::format("unique_id 18364758544493064720\nnum_xcc {}\n", gpu->xccs);
  return text + "max_engine_clk_ccompute 3100\n";
}

}  // namespace

void write_sysfs(const Scene& scene, const std::filesystem::path& folder) {
  const std::filesystem::path kfd = folder / "class/kfd/kfd";
  std::filesystem::create_directories(kfd / "proc");
  int host_nodes = scene.gpus.front().node;
  for (const SceneGpu& gpu : scene.gpus) host_nodes = std::min(host_nodes, gpu.node);
  for (int node = 0; node < host_nodes; ++node) {
    const auto at = kfd / "topology/nodes" / std::to_string(node);
    save(at / "gpu_id", "0\n");
    save(at / "name", "\n");
    save(at / "properties", properties(nullptr));
  }
  for (const SceneGpu& gpu : scene.gpus) {
    const auto at = kfd / "topology/nodes" / std::to_string(gpu.node);
    save(at / "gpu_id", fmt::format("{}\n", gpu.gpu_id));
    save(at / "name", "ip discovery\n");
    save(at / "properties", properties(&gpu));
  }
  for (std::size_t process = 0; process < scene.processes.size(); ++process) {
    const auto at = kfd / "proc" / std::to_string(scene.processes[process].host_pid);
    save(at / "pasid", "0\n");
    for (const SceneGpu& gpu : scene.gpus) {
      save(at / fmt::format("vram_{}", gpu.gpu_id), fmt::format("{}\n", 4096 * gpu.gpu_id));
      save(at / fmt::format("stats_{}", gpu.gpu_id) / "evicted_ms", "0\n");
    }
    for (const SceneQueue& queue : scene.queues) {
      if (static_cast<std::size_t>(queue.process) != process) continue;
      const auto own = at / "queues" / std::to_string(queue.id);
      // These three have no newline at their end.
      save(own / "gpuid", std::to_string(gpu_of(scene, queue).gpu_id));
      save(own / "size", std::to_string(queue.ring_bytes));
      save(own / "type", queue.is_sdma ? "1" : "0");
    }
  }
  const std::filesystem::path parameters = folder / "module/amdgpu/parameters";
  save(parameters / "mes", "0\n");
  save(parameters / "cwsr_enable", "1\n");
  save(parameters / "sched_policy", "0\n");
  save(parameters / "num_kcq", "8\n");
  save(parameters / "hws_max_conc_proc", "-1\n");
}

void write_debugfs(const Scene& scene, const std::filesystem::path& folder, const KfdTextOptions& options) {
  save(folder / "kfd/hqds", hqds_text(scene, options));
  save(folder / "kfd/mqds", mqds_text(scene, options));
  save(folder / "kfd/rls", rls_text(scene, options));
}

void write_snapshot(const Scene& scene, const std::filesystem::path& folder, const KfdTextOptions& options) {
  save(folder / "hqds", hqds_text(scene, options));
  save(folder / "mqds", mqds_text(scene, options));
  save(folder / "rls", rls_text(scene, options));
  write_sysfs(scene, folder / "sysfs");
}

}  // namespace weir::testing
