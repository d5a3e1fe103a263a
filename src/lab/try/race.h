// Which setting is fastest, and which variable matters? Judges one value per process, and says which settings to try
// next: those that are clearly slower than the best leave early. Knows no processes, so that it can be simulated.
#pragma once

#include <cstddef>
#include <vector>

#include "lab/try/design.h"
#include "measure/comparison.h"

namespace weir::trials {

struct RaceOptions {
  // A stricter significance than elsewhere: at most 1 % of races between equal settings call one different.
  CompareOptions compare{.significance = 0.005};
  bool is_less_better = true;
  std::size_t trials = 10;  // of each setting, at most
};

using Values = std::vector<std::vector<double>>;  // positive values of each setting

// Settings that need another trial. The baseline stays to the end, because every ratio is one to it.
std::vector<bool> wanted_by_race(const Values& values, const RaceOptions& options);

// Each setting against the first, judged together; the first against itself is not judged and has no ratio.
std::vector<Change> compare_to_baseline(const Values& values, const RaceOptions& options);

// What a value of a factor does, compared with the factor's first value, all other factors being equal.
struct Effect {
  std::size_t factor = 0;
  std::uint32_t value = 0;
  std::size_t pairs = 0;  // of settings that differ in nothing else, and have values
  Change change;
};
// Empty unless two factors vary: with one, it would repeat the settings.
std::vector<Effect> effects_of(const Design& design, const Values& values, const RaceOptions& options);

}  // namespace weir::trials
