#include "support/kfd_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <iterator>
#include <random>
#include <set>
#include <vector>

namespace weir::testing {
namespace {

constexpr std::uint32_t kSaveBytes = 0xba6000, kStackBytes = 0x2000;
constexpr int kVmids = 8;

using Words = std::vector<std::uint32_t>;

std::uint32_t low(std::uint64_t value) { return static_cast<std::uint32_t>(value); }
std::uint32_t high(std::uint64_t value) { return static_cast<std::uint32_t>(value >> 32); }
std::uint32_t log2_of(std::uint64_t value) { return static_cast<std::uint32_t>(std::countr_zero(value)); }

// A new row after 8 words, and where addresses do not follow each other.
void put_registers(std::string& text, const std::vector<std::pair<std::uint32_t, std::uint32_t>>& registers) {
  int room = 0;
  for (std::size_t i = 0; i < registers.size(); ++i) {
    const auto [address, value] = registers[i];
    if (room == 0 || registers[i - 1].first + 4 != address) {
      fmt::format_to(std::back_inserter(text), "{}    {:08x}: {:08x}", i ? "\n" : "", address, value);
      room = 7;
    } else {
      fmt::format_to(std::back_inserter(text), " {:08x}", value);
      --room;
    }
  }
  text += '\n';
}

// Rows of 32 bytes with offsets.
void put_dump(std::string& text, const char* indent, const Words& words) {
  for (std::size_t i = 0; i < words.size(); i += 8) {
    fmt::format_to(std::back_inserter(text), "{}{:08x}:", indent, i * 4);
    for (std::size_t k = i; k < std::min(i + 8, words.size()); ++k)
      fmt::format_to(std::back_inserter(text), " {:08x}", words[k]);
    text += '\n';
  }
}

std::uint32_t first_register(Gfx gfx, int xcc) {
  constexpr std::uint32_t kOfXcc[] = {0xc914, 0xcc914, 0x10c914, 0x1cc914, 0x20c914, 0x2cc914, 0x30c914, 0x3cc914};
  if (gfx == Gfx::gfx9_4_3) return kOfXcc[xcc];
  return gfx == Gfx::gfx9 ? 0xc914 : 0xc824;
}

template <class Container>
void put_queue(std::string& text, Gfx gfx, int xcc, const Container& words) {
  std::vector<std::pair<std::uint32_t, std::uint32_t>> registers;
  std::uint32_t address = first_register(gfx, xcc);
  for (const std::uint32_t word : words) {
    registers.emplace_back(address, word);
    address += 4;
  }
  put_registers(text, registers);
}

// KFD's own queue to the scheduler: 512 dwords, its write pointer beyond them, empty.
std::array<std::uint32_t, 56> hiq_words(int xcc) {
  std::array<std::uint32_t, 56> words{};
  words[0] = 0x5f2000 + 0x800 * static_cast<std::uint32_t>(xcc);
  words[2] = 1;
  words[4] = 0x5300;
  words[6] = 1;
  words[7] = 0x111;
  words[8] = 0xfb10;
  words[10] = 0x42;
  words[15] = 0xe0003000;
  words[17] = 0xd0008508;
  words[32] = 0x4000c440;
  words[34] = 0x100;
  words[54] = 0x642;
  return words;
}

// What registers of a slot hold that no queue ever was in.
std::array<std::uint32_t, 56> unused_words() {
  std::array<std::uint32_t, 56> words{};
  words[4] = 0x0be05301;
  words[17] = 0x00308509;
  words[21] = 0x00300000;
  words[32] = 0x40000000;
  words[34] = 0x100;
  words[39] = 6;
  words[40] = 0x40000000;
  words[41] = 0x007f8000;
  return words;
}

// {first dword, count} of the groups of registers of an SDMA queue.
std::vector<std::pair<std::uint32_t, std::uint32_t>> sdma_groups(Gfx gfx) {
  switch (gfx) {
    case Gfx::gfx11:
      return {{0, 7}, {8, 11}, {0x29, 1}, {0x2b, 12}, {0x40, 12}};
    case Gfx::gfx12:
      return {{0, 49}};
    case Gfx::gfx9_4_3:
      return {{0, 19}, {0x28, 6}, {0x2f, 7}, {0x40, 12}};
    default:
      return {{0, 19}, {0x28, 6}, {0x2f, 7}, {0x40, 10}};
  }
}

std::pair<std::size_t, std::size_t> doorbell_places(Gfx gfx) {
  if (gfx == Gfx::gfx11) return {17, 19};
  return gfx == Gfx::gfx12 ? std::pair<std::size_t, std::size_t>{15, 17} : std::pair<std::size_t, std::size_t>{18, 22};
}

Words sdma_words(const SceneQueue& queue, Gfx gfx, std::size_t count, bool is_memory_image, bool is_stale) {
  Words words(count);
  const std::uint32_t vmid = is_memory_image ? 0 : static_cast<std::uint32_t>(queue.vmid);
  words[0] = vmid << 24 | 0x60000 | log2_of(queue.ring_bytes / 4) << 1 | (is_memory_image ? 0u : 1u);
  words[1] = low(queue.ring_base >> 8);
  words[2] = high(queue.ring_base >> 8);
  const auto [doorbell, offset] = doorbell_places(gfx);
  if (is_stale) return words;
  words[3] = low(queue.read_packets * 64);
  words[4] = high(queue.read_packets * 64);
  words[5] = low(queue.written_packets * 64);
  words[6] = high(queue.written_packets * 64);
  words[doorbell] = 0x10000000;
  words[offset] = queue.doorbell << 2;
  return words;
}

void put_sdma(std::string& text, const SceneGpu& gpu, int engine, int rlc, const Words& words) {
  const std::uint32_t base =
      0x4e40 + 0x1800 * static_cast<std::uint32_t>(engine) + 0x160 * static_cast<std::uint32_t>(rlc);
  std::vector<std::pair<std::uint32_t, std::uint32_t>> registers;
  for (const auto& [first, count] : sdma_groups(gpu.gfx)) {
    for (std::uint32_t i = 0; i < count; ++i) registers.emplace_back(base + 4 * (first + i), words[registers.size()]);
  }
  put_registers(text, registers);
}

std::size_t sdma_registers(Gfx gfx) {
  std::size_t sum = 0;
  for (const auto& [first, count] : sdma_groups(gfx)) sum += count;
  return sum;
}

// A queue of a process that ended.
SceneQueue gone_queue(std::mt19937_64& random) {
  SceneQueue queue;
  queue.ring_base = 0x7e1000000000 + (random() % 4096) * 0x200000;
  queue.mqd_base = 0x900000 + (random() % 256) * 0x20000;
  queue.doorbell = static_cast<std::uint32_t>(random() % 4096 * 2);
  queue.vmid = 9;
  queue.read_packets = random() % 1000;
  queue.written_packets = queue.read_packets + random() % 1000;
  return queue;
}

class HqdWriter {
 public:
  HqdWriter(const Scene& scene, const KfdTextOptions& options)
      : scene_(scene), options_(options), random_(options.seed) {}

  std::string text() {
    for (std::size_t gpu = 0; gpu < scene_.gpus.size(); ++gpu) put_gpu(gpu);
    return std::move(text_);
  }

 private:
  void put_gpu(std::size_t at) {
    const SceneGpu& gpu = scene_.gpus[at];
    put("Node {}, gpu_id {:x}:\n", gpu.node, gpu.gpu_id);
    std::vector<const SceneQueue*> mapped, mapped_sdma;
    for (const SceneQueue& queue : scene_.queues) {
      if (static_cast<std::size_t>(queue.gpu) != at || !queue.is_mapped) continue;
      (queue.is_sdma ? mapped_sdma : mapped).push_back(&queue);
    }
    const auto in_slot = [](const std::vector<const SceneQueue*>& queues, int pipe, int slot) -> const SceneQueue* {
      for (const SceneQueue* const queue : queues) {
        if (queue->pipe == pipe && queue->slot == slot) return queue;
      }
      return nullptr;
    };
    const std::vector<std::pair<int, int>> stale =
        some_free(gpu.pipes, gpu.first_slot, gpu.last_slot, mapped, in_slot, options_.stale_slots);
    std::vector<SceneQueue> gone;
    for (std::size_t i = 0; i < stale.size(); ++i) gone.push_back(gone_queue(random_));
    for (int xcc = 0; xcc < gpu.xccs; ++xcc) {
      if (options_.has_instances)
        put("   Inst {}, HIQ on MEC 2 Pipe 0 Queue 0\n", xcc);
      else
        put("  HIQ on MEC 2 Pipe 0 Queue 0\n");
      put_queue(text_, gpu.gfx, xcc, hiq_words(xcc));
      for (int pipe = 0; pipe < gpu.pipes; ++pipe) {
        for (int slot = gpu.first_slot; slot <= gpu.last_slot; ++slot) {
          if (options_.has_instances)
            put(" Inst {},  CP Pipe {}, Queue {}\n", xcc, pipe, slot);
          else
            put("  CP Pipe {}, Queue {}\n", pipe, slot);
          const auto old = std::find(stale.begin(), stale.end(), std::pair(pipe, slot));
          if (const SceneQueue* const queue = in_slot(mapped, pipe, slot)) {
            put_queue(text_, gpu.gfx, xcc, queue_words(*queue, xcc, false));
          } else if (old != stale.end()) {
            auto words = queue_words(gone[static_cast<std::size_t>(old - stale.begin())], xcc, false);
            words[2] = 0;
            put_queue(text_, gpu.gfx, xcc, words);
          } else {
            put_queue(text_, gpu.gfx, xcc, unused_words());
          }
        }
      }
    }
    const std::vector<std::pair<int, int>> stale_sdma =
        some_free(gpu.sdma_engines, 0, gpu.sdma_queues - 1, mapped_sdma, in_slot, options_.stale_sdma_slots);
    for (int engine = 0; engine < gpu.sdma_engines; ++engine) {
      for (int rlc = 0; rlc < gpu.sdma_queues; ++rlc) {
        put("  SDMA Engine {}, RLC {}\n", engine, rlc);
        const std::size_t count = sdma_registers(gpu.gfx);
        if (const SceneQueue* const queue = in_slot(mapped_sdma, engine, rlc)) {
          put_sdma(text_, gpu, engine, rlc, sdma_words(*queue, gpu.gfx, count, false, false));
        } else if (std::find(stale_sdma.begin(), stale_sdma.end(), std::pair(engine, rlc)) != stale_sdma.end()) {
          put_sdma(text_, gpu, engine, rlc, sdma_words(gone_queue(random_), gpu.gfx, count, false, true));
        } else {
          Words words(count);
          words[0] = 0x40000;
          put_sdma(text_, gpu, engine, rlc, words);
        }
      }
    }
  }

  template <class InSlot>
  std::vector<std::pair<int, int>> some_free(int pipes, int first, int last,
                                             const std::vector<const SceneQueue*>& mapped, const InSlot& in_slot,
                                             int count) {
    std::vector<std::pair<int, int>> free;
    for (int pipe = 0; pipe < pipes; ++pipe) {
      for (int slot = first; slot <= last; ++slot) {
        if (!in_slot(mapped, pipe, slot)) free.emplace_back(pipe, slot);
      }
    }
    std::shuffle(free.begin(), free.end(), random_);
    free.resize(std::min(free.size(), static_cast<std::size_t>(count)));
    return free;
  }

  template <class... Args>
  void put(fmt::format_string<Args...> format, Args&&... args) {
    fmt::format_to(std::back_inserter(text_), format, std::forward<Args>(args)...);
  }

  const Scene& scene_;
  const KfdTextOptions& options_;
  std::mt19937_64 random_;
  std::string text_;
};

}  // namespace

std::array<std::uint32_t, 56> queue_words(const SceneQueue& queue, int xcc, bool is_memory_image) {
  std::array<std::uint32_t, 56> words{};
  const std::uint64_t dwords = queue.ring_bytes / 4, read = queue.read_packets * 16,
                      written = queue.written_packets * 16;
  const std::uint64_t mqd = queue.mqd_base + 0x3000 * static_cast<std::uint64_t>(xcc);
  const auto vmid = static_cast<std::uint32_t>(queue.vmid);
  words[0] = low(mqd);
  words[1] = high(mqd);
  words[2] = 1;
  words[3] = is_memory_image ? 0 : vmid << 8 | vmid;
  words[4] = 0x40005301;
  words[5] = static_cast<std::uint32_t>(queue.priority);
  words[6] = queue.priority == 0 ? 0 : queue.priority == 1 ? 7 : 11;
  words[7] = 0x111;
  words[8] = low(queue.ring_base >> 8);
  words[9] = high(queue.ring_base >> 8);
  words[10] = low(read % dwords);  // within the ring; the write pointer goes on
  words[11] = low(queue.ring_base + 0x80);
  words[12] = high(queue.ring_base);
  words[15] = queue.doorbell << 2 | 2 | (is_memory_image ? 0 : 0x60000000);
  // Only the first XCC reports how far it read.
  words[17] = 0x14014500 | (log2_of(dwords) - 1) | (xcc > 0 ? 0x08000000 : 0) |
              (!is_memory_image && read == written ? 0x8000 : 0);
  words[21] = 0xb00000;
  words[32] = 0x40004000;
  words[34] = 0x100;
  words[40] = 0x40000000;
  words[41] = 0x7f8000;
  words[43] = low(queue.ring_base + 0x400000);
  words[44] = high(queue.ring_base + 0x400000);
  words[46] = queue.is_preempted ? 0x1740 : kStackBytes;
  words[47] = kStackBytes;
  words[48] = kStackBytes;
  words[49] = kSaveBytes;
  words[53] = 1;
  words[54] = low(written);
  words[55] = high(written);
  return words;
}

std::string hqds_text(const Scene& scene, const KfdTextOptions& options) { return HqdWriter(scene, options).text(); }

std::string mqds_text(const Scene& scene, const KfdTextOptions& options) {
  std::string text;
  for (std::size_t process = 0; process < scene.processes.size(); ++process) {
    const int pid = scene.processes[process].host_pid;
    text += options.has_real_pasid ? fmt::format("Process {} PASID 0x{:x}:\n", pid, 0x8001 + process)
                                   : fmt::format("Process {} PASID {}:\n", pid, pid);
    // The newest first.
    for (auto queue = scene.queues.rbegin(); queue != scene.queues.rend(); ++queue) {
      if (static_cast<std::size_t>(queue->process) != process) continue;
      const SceneGpu& gpu = gpu_of(scene, *queue);
      text += fmt::format("  {} queue on device {:x}\n", queue->is_sdma ? "SDMA" : "Compute", gpu.gpu_id);
      if (queue->is_sdma) {
        put_dump(text, "    ", sdma_words(*queue, gpu.gfx, gpu.gfx == Gfx::gfx10 ? 130 : 128, true, false));
        continue;
      }
      for (int xcc = 0; xcc < gpu.xccs; ++xcc) {
        Words words(512);
        words[0] = 0xc0310800;
        const auto put_time = [&](std::size_t byte, std::uint64_t ticks) {
          words[byte / 4] = low(ticks);
          words[byte / 4 + 1] = high(ticks);
        };
        // The longest of its XCCs is the first.
        const std::uint64_t start = 0x1'0000'0000 + static_cast<std::uint64_t>(xcc);
        if (queue->save_ticks > 0) {
          put_time(0x188, start);
          put_time(0x190, start + queue->save_ticks - (xcc > 0 && queue->save_ticks > 1 ? 1 : 0));
        }
        if (queue->restore_ticks > 0) {
          put_time(0x198, start);
          put_time(0x1a0, start + queue->restore_ticks);
        }
        const auto registers = queue_words(*queue, xcc, true);
        std::copy(registers.begin(), registers.end(), words.begin() + 128);
        put_dump(text, "    ", words);
      }
    }
  }
  return text;
}

bool is_oversubscribed(const Scene& scene, int gpu) {
  const SceneGpu& of = scene.gpus[static_cast<std::size_t>(gpu)];
  std::set<int> processes;
  int queues = 0;
  for (const SceneQueue& queue : scene.queues) {
    if (queue.gpu != gpu) continue;
    processes.insert(queue.process);
    if (!queue.is_sdma) ++queues;
  }
  return queues > of.pipes * (of.last_slot - of.first_slot + 1) || processes.size() > kVmids;
}

std::string rls_text(const Scene& scene, const KfdTextOptions&) {
  std::string text;
  for (std::size_t at = 0; at < scene.gpus.size(); ++at) {
    const SceneGpu& gpu = scene.gpus[at];
    text += fmt::format("Node {}, gpu_id {:x}:\n", gpu.node, gpu.gpu_id);
    Words words;
    const auto packet = [&](std::uint32_t opcode, std::size_t size) {
      const std::size_t begin = words.size();
      words.resize(begin + size);
      words[begin] = 3u << 30 | static_cast<std::uint32_t>(size - 2) << 16 | opcode << 8;
      return words.data() + begin;
    };
    for (std::size_t process = 0; process < scene.processes.size(); ++process) {
      std::vector<const SceneQueue*> own;
      for (const SceneQueue& queue : scene.queues) {
        if (static_cast<std::size_t>(queue.process) == process && static_cast<std::size_t>(queue.gpu) == at)
          own.push_back(&queue);
      }
      if (own.empty()) continue;
      std::uint32_t* const map = packet(0xa1, gpu.gfx == Gfx::gfx9_4_3 ? 21 : 16);
      map[1] = (0x8001 + static_cast<std::uint32_t>(process)) | 10u << 25;
      map[13] = static_cast<std::uint32_t>(own.size()) << 22;
      for (const SceneQueue* const queue : own) {
        std::uint32_t* const queues = packet(0xa2, 7);
        queues[1] = 1u << 29 | (queue->is_sdma ? 2u << 26 : 0);
        queues[2] = queue->doorbell << 2;
        queues[3] = low(queue->mqd_base);
        queues[4] = high(queue->mqd_base);
      }
    }
    // The scheduler of gfx11 and later (MES) has no run list.
    if (words.empty() || gpu.gfx == Gfx::gfx11 || gpu.gfx == Gfx::gfx12) {
      text += "  No active runlist\n";
      continue;
    }
    if (is_oversubscribed(scene, static_cast<int>(at))) {
      const auto size = static_cast<std::uint32_t>(words.size() + 4);
      std::uint32_t* const list = packet(0xa5, 4);
      list[1] = 0x12345000;
      list[3] = size | 1u << 20 | 1u << 23;
    }
    put_dump(text, "  ", words);
  }
  return text;
}

}  // namespace weir::testing
