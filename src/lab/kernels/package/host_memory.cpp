#include "lab/kernels/package/host_memory.h"

#include <fmt/format.h>
#include <malloc.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <sstream>

#include "base/error.h"
#include "base/file.h"
#include "base/options.h"
#include "base/units.h"

#if defined(__x86_64__)
#include <emmintrin.h>
#endif

namespace weir::package {
namespace {

constexpr std::uint64_t kLine = 64;
constexpr std::uint64_t kHugePage = std::uint64_t{2} << 20;

// Parses sizes as sysfs writes them: "32K", "1024K", "32M".
std::optional<std::uint64_t> size_in(std::string text) {
  std::uint64_t unit = 1;
  if (!text.empty() && (text.back() == 'K' || text.back() == 'M')) {
    unit = text.back() == 'K' ? 1024 : 1024 * 1024;
    text.pop_back();
  }
  const auto number = parse_integer(text);
  if (!number || *number <= 0 || *number > (std::int64_t{1} << 40)) return std::nullopt;
  return static_cast<std::uint64_t>(*number) * unit;
}

// Flushes it on all cores, because caches are coherent.
void flush_line([[maybe_unused]] const std::byte* line) {
#if defined(__x86_64__)
  _mm_clflush(line);
#elif defined(__aarch64__)
  asm volatile("dc civac, %0" : : "r"(line) : "memory");
#endif
}

void wait_for_flush() {
#if defined(__x86_64__)
  _mm_mfence();
#elif defined(__aarch64__)
  asm volatile("dsb sy" : : : "memory");
#endif
}

}  // namespace

HostMemory allocate_host(std::uint64_t bytes, const std::string& name) {
  const std::uint64_t alignment = bytes >= 2 * kHugePage ? kHugePage : kLine;
  void* memory = nullptr;
  if (::posix_memalign(&memory, alignment, bytes) != 0)
    fail(fmt::format("{}: cannot allocate {} of memory", name, format_bytes(bytes)), "Choose a smaller problem_size.");
  return HostMemory(static_cast<std::byte*>(memory));
}

PeakMemory::PeakMemory(std::string proc) : proc_(std::move(proc)) {
  // Memory that an earlier kernel freed would still be held, and would hide the next kernel's memory.
  ::malloc_trim(0);
  if (!reset()) {
    reason_ =
        fmt::format("{}/self/clear_refs cannot be written, so the process's earlier peak cannot be excluded", proc_);
    return;
  }
  const auto now = status_bytes("VmRSS:");
  if (!now) reason_ = fmt::format("{}/self/status has no VmRSS", proc_);
  before_ = max_ = now.value_or(0);
}

// VmHWM:	   12345 kB
std::optional<std::uint64_t> PeakMemory::status_bytes(std::string_view key) const {
  std::istringstream file(read_kernel_file(proc_ + "/self/status"));
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with(key)) continue;
    const std::size_t begin = line.find_first_not_of(" \t", key.size());
    const std::size_t end = line.find(" kB");
    if (begin == std::string::npos || end == std::string::npos || end < begin) return std::nullopt;
    const auto number = parse_integer(std::string_view(line).substr(begin, end - begin));
    if (!number || *number < 0) return std::nullopt;
    return static_cast<std::uint64_t>(*number) * 1024;
  }
  return std::nullopt;
}

// 5 resets the high-water mark to the current size (Linux 4.0).
bool PeakMemory::reset() {
  const Descriptor file = open_kernel_file(proc_ + "/self/clear_refs", O_WRONLY);
  return file && write_all(file.get(), "5\n");
}

void PeakMemory::note() {
  if (const auto mark = status_bytes("VmHWM:")) max_ = std::max(max_, *mark);
}

void PeakMemory::pause() {
  if (reason_.empty()) note();
}

void PeakMemory::resume(std::uint64_t kept_bytes) {
  if (!reason_.empty()) return;
  ::malloc_trim(0);  // freed memory would still be held and would count
  before_ += kept_bytes;
  max_ += kept_bytes;
  if (!reset()) reason_ = fmt::format("{}/self/clear_refs can no longer be written", proc_);
}

std::optional<std::uint64_t> PeakMemory::bytes() {
  if (!reason_.empty()) return std::nullopt;
  note();
  return max_ - std::min(max_, before_);
}

std::optional<std::uint64_t> last_cache_bytes(const std::string& sys) {
  std::optional<std::uint64_t> largest;
  std::error_code status;
  for (const auto& entry : std::filesystem::directory_iterator(sys + "/devices/system/cpu/cpu0/cache", status)) {
    std::istringstream file(read_kernel_file(entry.path() / "size"));
    std::string text;
    if (!(file >> text)) continue;
    if (const auto bytes = size_in(text)) largest = std::max(largest.value_or(0), *bytes);
  }
  if (largest) return largest;
#ifdef _SC_LEVEL3_CACHE_SIZE
  for (const int level : {_SC_LEVEL3_CACHE_SIZE, _SC_LEVEL2_CACHE_SIZE})
    if (const long bytes = ::sysconf(level); bytes > 0) return static_cast<std::uint64_t>(bytes);
#endif
  return std::nullopt;
}

CacheEmptier::CacheEmptier(std::optional<std::uint64_t> last_cache) {
  if (!last_cache) {
    reason_ = "the size of the last cache is not known here";
  } else if (*last_cache > kMaxBytes / 2) {
    reason_ = fmt::format("the last cache has {}, which takes more than {} to empty", format_bytes(*last_cache),
                          format_bytes(kMaxBytes));
  } else {
    bytes_ = 2 * *last_cache;  // replacement is not strictly by age, so the size of the cache is not enough
  }
}

void CacheEmptier::empty(std::span<const std::pair<std::byte*, std::uint64_t>> buffers) {
  if (!memory_) memory_ = allocate_host(bytes_, "emptying of caches");
  for (const auto& [begin, bytes] : buffers) {
    for (std::uint64_t at = 0; at < bytes; at += kLine) flush_line(begin + at);
  }
  wait_for_flush();
  volatile std::byte* const memory = memory_.get();
  for (std::uint64_t at = 0; at < bytes_; at += kLine)
    memory[at] = static_cast<std::byte>(std::to_integer<unsigned>(memory[at]) + 1U);
}

}  // namespace weir::package
