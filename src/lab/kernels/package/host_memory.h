// Memory of this process: aligned buffers, how much it held at most, and caches emptied. Knows no kernel.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <optional>
#include <span>
#include <string>

namespace weir::package {

struct FreeMemory {
  void operator()(std::byte* memory) const noexcept { std::free(memory); }
};
using HostMemory = std::unique_ptr<std::byte[], FreeMemory>;

// 64-byte aligned, and from 4 MiB on 2 MiB aligned, so that huge pages fit where the system gives some. Not touched:
// whoever writes first decides the NUMA node. Fails by name where there is none.
HostMemory allocate_host(std::uint64_t bytes, const std::string& name);

// The most memory that the process held above what it had when this was made; not while paused, because reference
// results and the like are ours and not the kernel's.
class PeakMemory {
 public:
  explicit PeakMemory(std::string proc = "/proc");
  // What is allocated from now on does not count ...
  void pause();
  // ... until here, and `kept_bytes` of it stay without counting.
  void resume(std::uint64_t kept_bytes = 0);
  std::optional<std::uint64_t> bytes();
  const std::string& reason() const { return reason_; }

 private:
  std::optional<std::uint64_t> status_bytes(std::string_view key) const;
  bool reset();
  void note();

  std::string proc_, reason_;
  std::uint64_t before_ = 0, most_ = 0;
};

// Bytes of the largest cache of the machine; nothing where neither sysfs nor the C library knows.
std::optional<std::uint64_t> last_cache_bytes(const std::string& sys = "/sys");

// Empties caches of what matters: lines of the given buffers are flushed on all cores where the processor has an
// instruction for that, and a buffer larger than the last cache is written through for the rest.
class CacheEmptier {
 public:
  explicit CacheEmptier(std::optional<std::uint64_t> last_cache);
  // Why it cannot; empty where it can.
  const std::string& reason() const { return reason_; }
  std::uint64_t bytes() const { return bytes_; }
  void empty(std::span<const std::pair<std::byte*, std::uint64_t>> buffers);

  static constexpr std::uint64_t kMostBytes = std::uint64_t{256} << 20;

 private:
  std::string reason_;
  std::uint64_t bytes_ = 0;
  HostMemory memory_;  // taken when first used
};

}  // namespace weir::package
