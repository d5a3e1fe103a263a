// On which track of its process each slice of a Chrome trace is: slices of one track have to lie within each other or
// apart, as viewers read them. Writes nothing.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "measure/timeline.h"
#include "trace/export/chrome_lanes.h"

namespace weir {

// A slice that wants to be on a track: a thread of a process.
struct TrackSlice {
  std::int64_t pid = 0, tid = 0;
  std::int64_t from_ns = 0, to_ns = 0;
};

// The slices of a track of a Chrome trace have to lie within each other or apart. By slice, in the order in which they
// are written: the number of the first lane of its track where it does, from 0; at most kMostLanes.
inline constexpr std::uint32_t kMostLanes = 64;
std::vector<std::uint32_t> nesting_lanes(const std::vector<TrackSlice>& slices);

class ChromeTracks {
 public:
  // `is_written` is by span. What a written process has of calls and ranges with times is written, too.
  ChromeTracks(const Timeline& timeline, const ChromeLanes& lanes, const std::vector<bool>& is_written);

  // Indices of the calls and ranges that are written, outer ones first.
  std::vector<std::uint32_t> calls, ranges;
  std::vector<std::int64_t> of_span, of_call;  // by span and by call
  std::vector<std::int64_t> of_range;          // as `ranges`

  // A stream may have an id that viewers, which take 32 bits, cannot tell from others.
  std::int64_t of_stream(std::size_t stream) const;

  // Each track once. Those beside others are shown after them.
  struct Name {
    std::int64_t pid = 0, tid = 0, order = 0;
    std::string label;
  };
  std::vector<Name> names(const std::vector<bool>& is_written) const;

 private:
  std::int64_t beside(const TrackSlice& slice, std::uint32_t lane);
  void place_spans(const std::vector<bool>& is_written);
  void place_host();

  const Timeline& timeline_;
  const ChromeLanes& lanes_;
  std::map<std::tuple<std::int64_t, std::int64_t, std::uint32_t>, std::int64_t> more_;  // by first track and lane
};

}  // namespace weir
