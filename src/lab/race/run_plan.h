// What is done to one run of a program: the instructions of race_format.h as a struct, and its text for the library in
// the program. Runs nothing.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lab/race/log.h"

namespace weir::race {

struct Delay {
  CommandName before;
  std::int64_t ns = 0;
  friend auto operator<=>(const Delay&, const Delay&) = default;
};

// The second command waits for the first; without a second, the host does.
struct Wait {
  CommandName first;
  std::optional<CommandName> second;
  friend auto operator<=>(const Wait&, const Wait&) = default;
};

struct BlindDelays {
  std::uint64_t seed = 1;
  std::uint32_t one_in = 4;
  std::int64_t ns = 0;
  std::uint32_t most = 0;
};

struct RunPlan {
  bool observes = false;
  std::optional<BlindDelays> blind;
  std::vector<Delay> delays;
  std::vector<Wait> waits;
  std::vector<CommandName> hashed, stacks;
};

// The file that the library reads. Delays beyond what the format allows are left out, the last ones first.
std::string text(const RunPlan& plan);

// The delays that `blind` puts into a run with this log.
std::vector<Delay> delays_of(const BlindDelays& blind, const Log& log);

}  // namespace weir::race
