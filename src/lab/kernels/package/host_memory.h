// Memory of this process: aligned buffers, peak use, and emptying caches. Knows no kernel.
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

// 64-byte aligned, and 2 MiB aligned from 4 MiB on, so that huge pages fit if the system provides them. Not touched:
// the first writer decides the NUMA node. On failure, the message has the name.
HostMemory allocate_host(std::uint64_t bytes, const std::string& name);

// The peak memory of the process above its size at construction. Does not count while paused, because reference results
// and the like belong to the harness and not to the kernel.
class PeakMemory {
 public:
  explicit PeakMemory(std::string proc = "/proc");
  // Memory allocated from now on does not count ...
  void pause();
  // ... until here; `kept_bytes` of it stay allocated without counting.
  void resume(std::uint64_t kept_bytes = 0);
  std::optional<std::uint64_t> bytes();
  const std::string& reason() const { return reason_; }

 private:
  std::optional<std::uint64_t> status_bytes(std::string_view key) const;
  bool reset();
  void note();

  std::string proc_, reason_;
  std::uint64_t before_ = 0, max_ = 0;
};

// The size of the machine's largest cache; nothing if neither sysfs nor the C library knows it.
std::optional<std::uint64_t> last_cache_bytes(const std::string& sys = "/sys");

// Empties the caches: flushes lines of the given buffers on all cores if the processor has an instruction for that, and
// writes a buffer larger than the last cache for the rest.
class CacheEmptier {
 public:
  explicit CacheEmptier(std::optional<std::uint64_t> last_cache);
  // Why it cannot; empty if it can.
  const std::string& reason() const { return reason_; }
  std::uint64_t bytes() const { return bytes_; }
  void empty(std::span<const std::pair<std::byte*, std::uint64_t>> buffers);

  static constexpr std::uint64_t kMaxBytes = std::uint64_t{256} << 20;

 private:
  std::string reason_;
  std::uint64_t bytes_ = 0;
  HostMemory memory_;  // allocated on first use
};

}  // namespace weir::package
