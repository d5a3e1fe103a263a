#include "device/gpu/marks.h"

#include <cstring>

namespace weir {
namespace {

GpuHostMemoryOwner pinned(const GpuApi& api, std::size_t bytes) {
  void* memory = nullptr;
  check(api, api.host_allocate(&memory, bytes, kGpuHostPortable), "allocating host memory for marks of streams");
  std::memset(memory, 0, bytes);
  return GpuHostMemoryOwner(memory, {&api});
}

}  // namespace

StreamMarks::StreamMarks(const GpuApi& api, std::size_t lanes)
    : api_(api),
      lanes_(lanes),
      submitted_(std::make_unique<Submitted[]>(lanes)),
      memory_(pinned(api, lanes * sizeof(std::uint32_t))),
      words_(static_cast<std::uint32_t*>(memory_.get())) {}

void StreamMarks::note_all_ended() noexcept {
  if (is_exact()) return;
  for (std::size_t i = 0; i < lanes_; ++i) {
    const auto count = static_cast<std::uint32_t>(submitted_[i].count.load(std::memory_order_relaxed));
    std::atomic_ref(words_[i]).store(count, std::memory_order_release);  // pairs with counts()
  }
}

StreamMarks::Counts StreamMarks::counts(std::size_t lane) const noexcept {
  // Load the word first: it is never ahead of `submitted`. Pairs with note_all_ended(), or with the device.
  const std::uint32_t passed = std::atomic_ref(words_[lane]).load(std::memory_order_acquire);
  const std::uint64_t submitted = submitted_[lane].count.load(std::memory_order_relaxed);
  return {submitted, submitted - static_cast<std::uint32_t>(static_cast<std::uint32_t>(submitted) - passed)};
}

}  // namespace weir
