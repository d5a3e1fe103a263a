// A described set of AMD queues, from which generators write the text that a kernel, a runtime and a tracer would show
// of it: each decoder is then asked for what was described. Knows no decoder.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace weir::testing {

enum class Gfx { gfx9, gfx9_4_3, gfx10, gfx11, gfx12 };

struct SceneGpu {
  int node = 2;
  std::uint32_t gpu_id = 0xf7bc;
  Gfx gfx = Gfx::gfx9_4_3;
  int xccs = 4;
  int pipes = 4;
  int first_slot = 2, last_slot = 7;  // of each pipe, that KFD may use
  int sdma_engines = 2, sdma_queues = 8;
};

struct SceneProcess {
  int host_pid = 4000, namespace_pid = 17;
  std::string comm = "python3";
};

struct SceneQueue {
  int process = 0, gpu = 0;  // indices
  bool is_sdma = false;
  std::uint32_t id = 0;      // KFD's, within its process
  std::uint32_t hsa_id = 0;  // id= of the log
  std::uint64_t swq = 0;     // 0: the runtime's own, which the log does not show
  std::uint64_t ring_base = 0, ring_bytes = 1 << 20;
  std::uint64_t mqd_base = 0;  // of the first XCC
  std::uint32_t doorbell = 0;  // in dwords
  int priority = 1;            // 0 low, 1 normal, 2 high
  int vmid = 8;
  bool is_mapped = true;
  int pipe = 0, slot = 2;  // where it is mapped
  std::uint64_t read_packets = 0, written_packets = 0;
  bool is_preempted = false;  // in mid-kernel: waves are saved
  std::uint64_t save_ticks = 0, restore_ticks = 0;
  std::int64_t asked_ns = 0;                    // runtime: "Number of allocated hardware queues"
  std::int64_t ioctl_ns = 0, ioctl_end_ns = 0;  // KFD's part
  std::int64_t created_ns = 0;                  // runtime: "Created SWq"
  std::int64_t deleted_ns = 0;                  // 0: lives
};

struct SceneStream {
  int process = 0, queue = 0;  // index of its queue
  std::uint64_t handle = 0;
  int priority = 0;  // HIP's: -1 high
  std::int64_t created_ns = 0, destroyed_ns = 0;
};

struct SceneLaunch {
  int stream = 0;
  std::string kernel = "dummy_kernel(int*, int)";
  std::uint32_t grid = 1024, workgroup = 256;
  std::int64_t called_ns = 0, written_ns = 0, returned_ns = 0;
  std::uint64_t read_index = 0, write_index = 0;
};

// One preemption as KFD sees it: unmap, fence, map again.
struct ScenePreemption {
  int process = 0, gpu = 0;
  std::int64_t unmap_ns = 0, fence_ns = 0, mapped_ns = 0;
};

// Times are CLOCK_MONOTONIC. Launches are in the order of time.
struct Scene {
  std::vector<SceneGpu> gpus;
  std::vector<SceneProcess> processes;
  std::vector<SceneQueue> queues;
  std::vector<SceneStream> streams;
  std::vector<SceneLaunch> launches;
  std::vector<ScenePreemption> preemptions;
};

inline const SceneGpu& gpu_of(const Scene& scene, const SceneQueue& queue) {
  return scene.gpus[static_cast<std::size_t>(queue.gpu)];
}

// Consistent in itself: rings apart, slots taken once, indices that fit their rings, times in order. The same for the
// same seed.
Scene random_scene(std::uint64_t seed, Gfx gfx);

}  // namespace weir::testing
