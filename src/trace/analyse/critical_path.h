// What the end of a timeline waited for, step by step back to its beginning: commands, the host that submitted them,
// and the time between. Reads one device's spans, dependencies and calls; knows no kernel names.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "measure/timeline.h"

namespace weir {

enum class PathResource : std::uint8_t {
  compute,
  communication,
  copy,
  host,     // driver calls, the program between them, host functions
  launch,   // from the call that submitted a command to its start
  waiting,  // from the end of a command to the start of the next, where the source records no reason
  unknown   // before a command that has no known link to another
};
inline constexpr std::size_t kPathResources = 7;
const char* to_string(PathResource resource) noexcept;

// All steps of the path that share a name.
struct PathName {
  std::uint32_t name = kNoName;
  PathResource resource = PathResource::compute;
  std::size_t steps = 0;
  double total_ns = 0;  // on the path
};

struct PathStep {
  PathResource resource = PathResource::compute;
  std::int64_t from_ns = 0, to_ns = 0;
  std::uint32_t span = UINT32_MAX;  // the command that ran, or that was waited for
  std::uint32_t call = kNoCall;
};

inline constexpr std::size_t kMaxPathNames = 20;
inline constexpr std::size_t kMaxPathSteps = 20;

struct CriticalPath {
  double span_ns = 0;                          // first start to last end
  std::array<double, kPathResources> ns{};     // by resource; the sum is span_ns
  std::array<double, kPathResources> share{};  // of span_ns; the sum is 1, or all are 0 where span_ns is 0
  double in_calls_ns = 0;                      // part of the host's time: inside driver calls
  std::size_t steps = 0;                       // commands and calls on the path
  std::size_t commands = 0;
  std::size_t queue_steps = 0;  // queued behind a command of another stream that left, or ended, right before
  std::size_t inferred_steps =
      0;                          // a command of another stream ended right before, and nothing else explains the start
  std::vector<PathName> names;    // commands, by time on the path
  std::vector<PathName> calls;    // driver calls, by time on the path
  std::vector<PathStep> longest;  // single steps, by length
  std::string known;              // what the path could take into account, in words
};

// Empty without spans that have times.
std::optional<CriticalPath> critical_path(const Timeline& timeline);

}  // namespace weir
