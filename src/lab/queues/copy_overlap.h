// Which copies hide behind which: each direction alone, in pairs and all together, on streams of their own. Counts
// engines by that; a link that two copies share looks like one engine.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "device/device.h"

namespace weir {

enum class CopyDirection : std::uint8_t { to_device, to_host, on_device };
inline constexpr int kCopyDirections = 3;
std::string_view name_of(CopyDirection direction);

struct CopyOverlap {
  struct Alone {
    CopyDirection direction{};
    std::uint64_t size_bytes = 0;  // of all repetitions that were timed as one
    double time_ns = 0;
  };
  struct Together {
    std::vector<CopyDirection> directions;
    double time_ns = 0;
    double overlap = 0;  // 1: the shorter ones were hidden, 0: one after the other
  };
  std::vector<Alone> alone;        // by direction
  std::vector<Together> together;  // pairs, then all three
  int engines_at_least = 1;
};

// `size_bytes` of one copy; repeated until it takes a millisecond.
CopyOverlap measure_copy_overlap(Device& device, std::uint64_t size_bytes);

// How much of what could be hidden was: (sum - together) / (sum - longest), within 0 and 1.
double overlap_of(std::span<const double> alone_ns, double together_ns);
// The largest set of copies of which more than half was hidden.
int engines_at_least(std::span<const CopyOverlap::Together> together);

}  // namespace weir
