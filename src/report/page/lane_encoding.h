// Encodes the spans of one timeline lane as text that a page unpacks: base64 of unsigned LEB128 triples
// (web/src/document.ts). Knows no timeline.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace weir::page {

// The end is never before the start.
struct LaneSpan {
  std::uint64_t start_ns = 0, end_ns = 0;
  std::uint32_t name = 0;
};

struct EncodedLane {
  std::size_t count = 0;
  std::uint64_t busy_ns = 0;  // of the union: time when several spans run counts once
  std::uint64_t end_ns = 0;   // of the span that ends last
  std::string spans;
};

// Sorts `spans` by start, then end, then name.
EncodedLane encode_lane(std::vector<LaneSpan>& spans);

}  // namespace weir::page
