// Random scenes: processes, their queues and streams, launches and preemptions that could all have happened on one
// machine. Knows what KFD and the runtime allow; writes no text.
#include "support/amd_scene.h"

#include <algorithm>
#include <random>
#include <set>

namespace weir::testing {

namespace {

constexpr std::int64_t kMicrosecond = 1000;
constexpr std::int64_t kMillisecond = 1000 * kMicrosecond;
constexpr std::uint64_t kPacketBytes = 64;
constexpr std::uint32_t kDoorbellsOfProcess = 2048;  // dwords: two pages
constexpr std::uint64_t kMqdStride = 0x3000;         // from one XCC's image to the next

class SceneMaker {
 public:
  SceneMaker(std::uint64_t seed, Gfx gfx) : random_(seed * 8 + static_cast<std::uint64_t>(gfx)), gfx_(gfx) {}

  Scene make() {
    add_gpus();
    add_processes();
    for (int process = 0; process < static_cast<int>(scene_.processes.size()); ++process) add_queues(process);
    for (int process = 0; process < static_cast<int>(scene_.processes.size()); ++process) add_streams(process);
    add_launches();
    for (SceneQueue& queue : scene_.queues) {
      if (!queue.is_sdma && queue.is_preempted && queue.written_packets == 0) queue.is_preempted = false;
    }
    add_preemptions();
    add_ends();
    return std::move(scene_);
  }

 private:
  int between(int low, int high) { return std::uniform_int_distribution<int>(low, high)(random_); }
  bool one_in(int count) { return between(1, count) == 1; }
  // Whole microseconds: logs and tracers print no more.
  std::int64_t microseconds(int low, int high) { return between(low, high) * kMicrosecond; }

  void add_gpus() {
    std::set<std::uint32_t> ids;
    int node = between(1, 2);  // the host's nodes come first
    for (int i = between(1, 3); i > 0; --i) {
      SceneGpu gpu;
      gpu.node = node++;
      do gpu.gpu_id = static_cast<std::uint32_t>(between(1, 0xffff));
      while (!ids.insert(gpu.gpu_id).second);
      gpu.gfx = gfx_;
      constexpr int kXccs[] = {1, 2, 4, 6, 8};
      gpu.xccs = gfx_ == Gfx::gfx9_4_3 ? kXccs[between(0, 4)] : 1;
      const bool has_few_slots = gfx_ == Gfx::gfx11 || gfx_ == Gfx::gfx12;  // 4 queues of a pipe instead of 8
      gpu.first_slot = has_few_slots ? 1 : between(1, 2);
      gpu.last_slot = has_few_slots ? 3 : 7;
      gpu.sdma_engines = between(1, 2);
      gpu.sdma_queues = gfx_ == Gfx::gfx9 ? 2 : 8;
      scene_.gpus.push_back(gpu);
    }
    free_.resize(scene_.gpus.size());
    free_sdma_.resize(scene_.gpus.size());
    for (std::size_t g = 0; g < scene_.gpus.size(); ++g) {
      const SceneGpu& gpu = scene_.gpus[g];
      for (int slot = gpu.first_slot; slot <= gpu.last_slot; ++slot) {
        for (int pipe = 0; pipe < gpu.pipes; ++pipe) free_[g].push_back({pipe, slot});
      }
      for (int engine = 0; engine < gpu.sdma_engines; ++engine) {
        for (int rlc = 0; rlc < gpu.sdma_queues; ++rlc) free_sdma_[g].push_back({engine, rlc});
      }
      std::shuffle(free_[g].begin(), free_[g].end(), random_);
      std::shuffle(free_sdma_[g].begin(), free_sdma_[g].end(), random_);
    }
  }

  void add_processes() {
    constexpr const char* kNames[] = {"python3", "case a-cnn", "vllm", "rocm_test"};
    int host = between(1000, 100000), inner = between(1, 300);
    for (int i = between(1, 3); i > 0; --i) {
      scene_.processes.push_back({host, one_in(3) ? host : inner, kNames[between(0, 3)]});
      host += between(1, 500);
      inner += between(1, 20);
    }
    process_ns_.resize(scene_.processes.size());
    for (std::int64_t& ns : process_ns_) ns = 1'000'000 * kMillisecond + microseconds(0, 500'000);
  }

  void add_queues(int process) {
    int gpu = between(0, static_cast<int>(scene_.gpus.size()) - 1);
    std::uint32_t id = static_cast<std::uint32_t>(between(0, 2)), hsa_id = 0;
    // One process in four asks for more than there are slots.
    const int computes = one_in(4) ? between(10, 32) : between(1, 6);
    for (int i = 0; i < computes; ++i) {
      if (one_in(6)) gpu = between(0, static_cast<int>(scene_.gpus.size()) - 1);
      SceneQueue& queue = add_queue(process, gpu, id);
      queue.hsa_id = hsa_id++;
      const bool is_internal = i == computes - 1 && computes > 1;  // ROCr's own: the log shows none of it
      queue.ring_bytes = is_internal ? 4096 : std::uint64_t{1} << between(12, 22);
      if (!is_internal) queue.swq = 0x7e0000000000 + 0x8000 * (scene_.queues.size() + 1);
      queue.priority = is_internal || !one_in(3) ? 1 : between(0, 2);
      id += static_cast<std::uint32_t>(between(1, 2));
    }
    for (int i = between(0, 2); i > 0; --i) {
      SceneQueue& queue = add_queue(process, gpu, id++);
      queue.is_sdma = true;
      queue.ring_bytes = std::uint64_t{1} << between(16, 21);
    }
    for (SceneQueue& queue : scene_.queues) {
      if (queue.process == process) settle(queue);
    }
  }

  SceneQueue& add_queue(int process, int gpu, std::uint32_t id) {
    const std::uint64_t number = scene_.queues.size() + 1;
    SceneQueue& queue = scene_.queues.emplace_back();
    queue.process = process;
    queue.gpu = gpu;
    queue.id = id;
    queue.ring_base = 0x7f4000000000 + number * 0x1000000;
    queue.mqd_base = 0x1600000 + number * kMqdStride * 8;
    queue.doorbell = kDoorbellsOfProcess * static_cast<std::uint32_t>(process + 1) + 2 * id;
    queue.vmid = (gfx_ == Gfx::gfx9_4_3 ? 3 : 8) + process;
    std::int64_t& now = process_ns_[static_cast<std::size_t>(process)];
    queue.asked_ns = now += microseconds(20, 3000);
    queue.ioctl_ns = now += microseconds(100, 4000);
    queue.ioctl_end_ns = now += microseconds(80, 400);
    queue.created_ns = now += microseconds(100, 4000);
    return queue;
  }

  // What of the queue is in hardware, and how far it has come.
  void settle(SceneQueue& queue) {
    auto& slots = (queue.is_sdma ? free_sdma_ : free_)[static_cast<std::size_t>(queue.gpu)];
    queue.is_mapped = !slots.empty() && !one_in(8);
    queue.pipe = queue.slot = -1;
    if (queue.is_mapped) {
      queue.pipe = slots.back().first;
      queue.slot = slots.back().second;
      slots.pop_back();
    }
    // A full ring and an empty one look alike in its registers, so none is full.
    const int packets = static_cast<int>(queue.ring_bytes / kPacketBytes);
    queue.read_packets =
        one_in(3) ? 0 : static_cast<std::uint64_t>(between(0, one_in(4) ? 2'000'000'000 : 3 * packets));
    queue.written_packets = queue.read_packets + (one_in(3) ? 0 : static_cast<std::uint64_t>(between(0, packets - 1)));
    if (queue.is_sdma) return;
    queue.is_preempted = one_in(4) && queue.written_packets > 0;
    if (queue.is_preempted || one_in(4)) {
      queue.save_ticks = static_cast<std::uint64_t>(between(1, 1'000'000));
      queue.restore_ticks = static_cast<std::uint64_t>(between(1, 1'000'000));
    }
  }

  void add_streams(int process) {
    std::vector<int> own;
    for (int i = 0; i < static_cast<int>(scene_.queues.size()); ++i) {
      if (scene_.queues[static_cast<std::size_t>(i)].process == process &&
          scene_.queues[static_cast<std::size_t>(i)].swq != 0) {
        own.push_back(i);
      }
    }
    std::int64_t& now = process_ns_[static_cast<std::size_t>(process)];
    const int extra = between(0, 8);
    for (int i = 0; i < static_cast<int>(own.size()) + extra; ++i) {
      SceneStream stream;
      stream.process = process;
      // A queue exists because some stream asked for it; later streams share.
      stream.queue = i < static_cast<int>(own.size())
                         ? own[static_cast<std::size_t>(i)]
                         : own[static_cast<std::size_t>(between(0, static_cast<int>(own.size()) - 1))];
      stream.handle = 0x1950000 + 0x100 * (scene_.streams.size() + 1);
      stream.priority = 1 - scene_.queues[static_cast<std::size_t>(stream.queue)].priority;
      stream.created_ns = now += microseconds(5, 200);
      scene_.streams.push_back(stream);
    }
  }

  void add_launches() {
    constexpr const char* kKernels[] = {"dummy_kernel(int*, int)", "void conv<float, 3>(float const*, float*)",
                                        "Cijk_Ailk_Bljk_HHS_BH_MT128x128x32", "error_kernel(int)",
                                        "__amd_rocclr_fillBufferAligned"};
    now_ns_ = *std::max_element(process_ns_.begin(), process_ns_.end()) + microseconds(100, 5000);
    std::vector<bool> is_used(scene_.queues.size());
    for (int i = between(0, 200); i > 0; --i) {
      SceneLaunch launch;
      launch.stream = between(0, static_cast<int>(scene_.streams.size()) - 1);
      const std::size_t at = static_cast<std::size_t>(scene_.streams[static_cast<std::size_t>(launch.stream)].queue);
      SceneQueue& queue = scene_.queues[at];
      if (!is_used[at]) {
        is_used[at] = true;
        queue.read_packets = queue.written_packets = one_in(2) ? 0 : static_cast<std::uint64_t>(between(1, 100'000));
      }
      launch.kernel = kKernels[between(0, 4)];
      launch.workgroup = 64u << between(0, 4);
      launch.grid = launch.workgroup * static_cast<std::uint32_t>(between(1, 1000));
      launch.called_ns = now_ns_ += microseconds(1, 2000);
      launch.written_ns = now_ns_ += microseconds(1, 60);
      launch.returned_ns = now_ns_ += microseconds(1, 30);
      const std::uint64_t backlog = queue.written_packets - queue.read_packets;
      const bool is_nearly_full = backlog + 2 >= queue.ring_bytes / kPacketBytes;
      queue.read_packets +=
          is_nearly_full ? backlog : static_cast<std::uint64_t>(between(0, static_cast<int>(backlog)));
      launch.read_index = queue.read_packets;
      launch.write_index = queue.written_packets++;
      scene_.launches.push_back(launch);
    }
  }

  void add_preemptions() {
    std::int64_t now = *std::max_element(process_ns_.begin(), process_ns_.end());
    for (int i = between(0, 20); i > 0; --i) {
      const SceneQueue& queue =
          scene_.queues[static_cast<std::size_t>(between(0, static_cast<int>(scene_.queues.size()) - 1))];
      ScenePreemption preemption{queue.process, queue.gpu, 0, 0, 0};
      preemption.unmap_ns = now += microseconds(50, 10'000);
      preemption.fence_ns = now += microseconds(5, 900);
      preemption.mapped_ns = now += microseconds(2, 40);
      scene_.preemptions.push_back(preemption);
    }
    now_ns_ = std::max(now_ns_, now);
  }

  // Half of the processes tidy up; what the others have lives when the capture ends.
  void add_ends() {
    for (int process = 0; process < static_cast<int>(scene_.processes.size()); ++process) {
      if (one_in(2)) continue;
      for (SceneStream& stream : scene_.streams) {
        if (stream.process == process) stream.destroyed_ns = now_ns_ += microseconds(5, 100);
      }
      for (SceneQueue& queue : scene_.queues) {
        if (queue.process == process) queue.deleted_ns = now_ns_ += microseconds(50, 2000);
      }
    }
  }

  std::mt19937_64 random_;
  Gfx gfx_;
  Scene scene_;
  std::vector<std::int64_t> process_ns_;  // how far each process has come
  std::int64_t now_ns_ = 0;
  std::vector<std::vector<std::pair<int, int>>> free_, free_sdma_;  // pipe and slot, engine and queue; by GPU
};

}  // namespace

Scene random_scene(std::uint64_t seed, Gfx gfx) { return SceneMaker(seed, gfx).make(); }

}  // namespace weir::testing
