// The clocks of a Perfetto trace: what snapshots say of them, and times of packets on the clock of the trace. Reads no
// packets.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <unordered_map>

namespace weir {

class PerfettoClocks {
 public:
  // One clock in a snapshot. All of a snapshot were read at the same moment.
  struct Reading {
    std::uint32_t clock = 0;
    std::uint64_t time = 0;  // in the clock's unit
    std::uint64_t unit_ns = 1;
    bool is_incremental = false;
  };

  // `sequence`: of the packet with the snapshot. Returns false where a time is out of range; it is left out.
  bool add(std::uint32_t sequence, std::span<const Reading> readings);
  void set_trace_clock(std::uint32_t clock) noexcept { trace_clock_ = clock; }
  // The time of a packet, in nanoseconds of the trace's clock; call for every packet that has a time, in their order,
  // because times may count from the packet before. `clock` 0: the trace's. Empty where the clock is not known or the
  // time is out of range.
  std::optional<std::int64_t> time(std::uint32_t sequence, std::uint32_t clock, std::uint64_t time);
  // Packets used a clock that no snapshot relates to the trace's; their times were taken as they are.
  bool has_loose_clock() const noexcept { return has_loose_clock_; }
  std::size_t size() const noexcept { return clocks_.size(); }

 private:
  struct Clock {
    std::int64_t last_ns = 0;  // an incremental clock: of the snapshot or the packet before
    std::uint64_t unit_ns = 1;
    bool is_incremental = false;
    std::optional<std::int64_t> offset_ns;  // added, it is on the trace's clock
  };
  // Clocks 64 to 127 belong to a sequence; others to everybody.
  static std::uint64_t key_of(std::uint32_t sequence, std::uint32_t clock) noexcept {
    return clock >= 64 && clock < 128 ? std::uint64_t{sequence} << 32 | clock : clock;
  }

  static constexpr std::uint32_t kBoottime = 6;
  std::uint32_t trace_clock_ = kBoottime;
  std::unordered_map<std::uint64_t, Clock> clocks_;
  bool has_loose_clock_ = false;
};

}  // namespace weir
