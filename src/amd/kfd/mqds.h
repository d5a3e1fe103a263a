// debugfs kfd/mqds: the memory images of every process's queues. Knows this one file.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "amd/kfd/registers.h"
#include "amd/kfd/text.h"

namespace weir::kfd {

// The image of a compute queue on one XCC.
struct MqdImage {
  QueueImage queue;
  std::optional<std::uint64_t> save_ticks, restore_ticks;  // of the GPU's clock; nothing where none was recorded
};

enum class MqdKind : std::uint8_t { compute, sdma, diq, other };

struct MqdQueue {
  MqdKind kind = MqdKind::compute;
  std::uint32_t gpu_id = 0;
  std::size_t line = 0;           // of its heading
  std::vector<MqdImage> images;   // compute: one per XCC
  std::optional<SdmaImage> sdma;  // its first image
};

struct MqdProcess {
  int pid = 0;
  std::uint32_t pasid = 0;
  bool is_pasid_real = false;    // newer kernels print the pid once more in its place
  std::vector<MqdQueue> queues;  // the newest first, as KFD lists them
};

struct MqdFile {
  std::string name;
  std::size_t bytes = 0, lines = 0;
  std::vector<MqdProcess> processes;
  std::vector<UnreadLines> unread;
  std::vector<std::string> problems;
};

bool looks_like_mqds(std::string_view text);
MqdFile parse_mqds(std::string_view text, const std::string& name);

}  // namespace weir::kfd
