// Which operators of a framework the device worked for: those in which the launches were made. Reads the timeline of
// one device; names are numbers of the whole timeline.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "measure/timeline.h"

namespace weir {

struct OperatorUse {
  std::uint32_t name = kNoName;
  std::size_t commands = 0;
  std::uint64_t total_ns = 0;  // sum of the durations of its commands
  std::uint64_t launching_ns =
      0;             // sum of the durations of the calls that launched them; without copies, which may wait
  double share = 0;  // of the sum over all commands
};

// Commands that belong to none.
struct WithoutOperator {
  std::size_t commands = 0;
  std::uint64_t total_ns = 0;
};

struct Operators {
  std::string reason;            // why there are none; then nothing else is filled in
  std::vector<OperatorUse> all;  // most time first
  WithoutOperator outside;       // submitted by a call that no operator made
  WithoutOperator without_call;  // whose call is not in the trace
};

Operators operators(const Timeline& timeline);

}  // namespace weir
