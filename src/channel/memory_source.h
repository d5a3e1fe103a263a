// Sources of a pool's memory: the host, pinned host memory, a device. Knows no pool.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <string_view>

#include "channel/system.h"

namespace weir {

enum class MemoryKind : std::uint8_t {
  host,
  pinned,  // host memory that a device's engines can access directly
  device,
};
constexpr std::string_view name_of(MemoryKind kind) {
  constexpr std::string_view kNames[] = {"host", "pinned", "device"};
  return kNames[static_cast<int>(kind)];
}

// Called by any thread, one at a time for each pool. Expensive: a pool exists to call it rarely.
class MemorySource {
 public:
  virtual ~MemorySource() = default;
  virtual MemoryKind kind() const noexcept = 0;
  // False: nothing on the host may read or write it, not even the pool.
  virtual bool is_host_accessible() const noexcept = 0;
  // Aligned at least to a cache line. Null: there is none left.
  virtual std::byte* allocate(std::size_t bytes) noexcept = 0;
  virtual void release(std::byte* memory, std::size_t bytes) noexcept = 0;
};

class HostMemorySource final : public MemorySource {
 public:
  MemoryKind kind() const noexcept override { return MemoryKind::host; }
  bool is_host_accessible() const noexcept override { return true; }
  std::byte* allocate(std::size_t bytes) noexcept override {
    return static_cast<std::byte*>(::operator new(bytes, std::align_val_t{kApart}, std::nothrow));
  }
  void release(std::byte* memory, std::size_t) noexcept override {
    ::operator delete(memory, std::align_val_t{kApart});
  }
};

}  // namespace weir
