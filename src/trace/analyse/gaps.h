// How long nothing ran, on the device and on its streams: how often, how long, and between which commands. Reads the
// timeline of one device.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "measure/timeline.h"

namespace weir {

inline constexpr std::size_t kMaxLongGaps = 10;

// Gaps of at least `from_ns` and less than twice that.
struct GapBin {
  double from_ns = 0;
  std::size_t count = 0;
  double total_ns = 0;
};

struct LongGap {
  std::int64_t from_ns = 0, to_ns = 0;
  std::uint32_t before = 0, after = 0;  // the command that ended last, the one that started next: indices into spans
};

struct IdleGaps {
  std::size_t count = 0;
  double total_ns = 0;
  double mean_ns = 0, p50_ns = 0, p95_ns = 0, p99_ns = 0, max_ns = 0;
  std::vector<GapBin> histogram;  // by length, from the first to the last non-empty bin; at most 64
  std::vector<LongGap> longest;   // longest first, at most kMaxLongGaps
};

// Commands that took no time neither end a gap nor begin one.
struct GapsFound {
  std::optional<IdleGaps> device;          // between unions of everything that the device ran
  std::optional<IdleGaps> within_streams;  // of all streams together; a host function occupies its stream
  std::string reason;                      // why the device has none
};

GapsFound gaps(const Timeline& timeline);

}  // namespace weir
