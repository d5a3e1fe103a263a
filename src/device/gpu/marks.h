// The progress of a GPU's streams, for watching a run that may hang: the streams themselves write counts into host
// memory. Knows streams and counts; not what was submitted.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "device/gpu/error.h"

namespace weir {

class StreamMarks {
 public:
  // A lane is a stream, or the only lane of graphs.
  StreamMarks(const GpuApi& api, std::size_t lanes);

  // Call after a command (or a graph): counts it and makes the stream report when it has passed this point. Several
  // threads may call it at once, each for its own lanes.
  int mark(std::size_t lane, GpuStream stream) noexcept {
    // Relaxed: one thread writes a lane, and readers do not need the newest value.
    std::atomic<std::uint64_t>& submitted = submitted_[lane].count;
    const std::uint64_t count = submitted.load(std::memory_order_relaxed) + 1;
    submitted.store(count, std::memory_order_relaxed);
    if (api_.stream_write == nullptr) return 0;
    return api_.stream_write(stream, reinterpret_cast<GpuPointer>(words_ + lane), static_cast<std::uint32_t>(count), 0);
  }
  // Records that everything has ended, for drivers without stream_write.
  void note_all_ended() noexcept;

  bool is_exact() const noexcept { return api_.stream_write != nullptr; }
  struct Counts {
    std::uint64_t submitted = 0, ended = 0;
  };
  // May be called from any thread at any time; makes no driver call, because the driver may be what hangs.
  Counts counts(std::size_t lane) const noexcept;

 private:
  struct alignas(64) Submitted {
    std::atomic<std::uint64_t> count{0};
  };
  const GpuApi& api_;
  std::size_t lanes_;
  std::unique_ptr<Submitted[]> submitted_;
  GpuHostMemoryOwner memory_;
  std::uint32_t* words_;  // by lane: low half of the number of marks that the stream has passed
};

}  // namespace weir
