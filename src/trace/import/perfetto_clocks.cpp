#include "trace/import/perfetto_clocks.h"

namespace weir {
namespace {

std::optional<std::int64_t> scaled_time(std::uint64_t time, std::uint64_t unit_ns) noexcept {
  std::int64_t ns = 0;
  if (__builtin_mul_overflow(time, unit_ns, &ns)) return std::nullopt;
  return ns;
}

}  // namespace

bool PerfettoClocks::add(std::uint32_t sequence, std::span<const Reading> readings) {
  bool are_all_good = true;
  std::optional<std::int64_t> now;
  for (const Reading& reading : readings)
    if (reading.clock == trace_clock_) now = scaled_time(reading.time, reading.unit_ns);
  for (const Reading& reading : readings) {
    const auto ns = scaled_time(reading.time, reading.unit_ns);
    std::int64_t offset = 0;
    if (!ns || (now && __builtin_sub_overflow(*now, *ns, &offset))) {
      are_all_good = false;
      continue;
    }
    Clock& clock = clocks_[key_of(sequence, reading.clock)];
    clock.last_ns = *ns;
    clock.unit_ns = reading.unit_ns;
    clock.is_incremental = reading.is_incremental;
    if (now) clock.offset_ns = offset;
  }
  return are_all_good;
}

std::optional<std::int64_t> PerfettoClocks::time(std::uint32_t sequence, std::uint32_t clock, std::uint64_t time) {
  if (clock == 0 || clock == trace_clock_) return scaled_time(time, 1);
  const auto found = clocks_.find(key_of(sequence, clock));
  if (found == clocks_.end()) {
    // The computer's clocks count nanoseconds; what others count is not known.
    if (clock >= 64) return std::nullopt;
    has_loose_clock_ = true;
    return scaled_time(time, 1);
  }
  Clock& known = found->second;
  auto ns = scaled_time(time, known.unit_ns);
  if (!ns) return std::nullopt;
  if (known.is_incremental) {
    if (__builtin_add_overflow(known.last_ns, *ns, &known.last_ns)) {
      known.last_ns = 0;
      return std::nullopt;
    }
    ns = known.last_ns;
  }
  if (!known.offset_ns) {
    has_loose_clock_ = true;
    return ns;
  }
  std::int64_t on_trace = 0;
  if (__builtin_add_overflow(*ns, *known.offset_ns, &on_trace)) return std::nullopt;
  return on_trace;
}

}  // namespace weir
