// Where a series of medians, one per run, changed its level: distinguishes steps from noise, outliers and slow drift.
// Knows only numbers, no commits or machines. docs/history.md has the method, its references and its power.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "measure/statistics.h"

namespace weir {

struct ChangeOptions {
  double threshold = 0.02;     // smaller steps do not matter
  double significance = 0.06;  // for ranks alone: how often unordered values show a step of any size
  int permutations = 1'000;    // shuffles of the series against which a step is judged
  std::uint64_t seed = 1;
};

// Runs required on either side of a step: two in a row may be bad luck and are not a change.
inline constexpr std::size_t kMinPerLevel = 3;
// Longer series are judged by their last values.
inline constexpr std::size_t kLongestSeries = 256;

struct ChangePoint {
  std::size_t index = 0;  // the first value of the new level
  double before = 0;      // medians of the levels on either side
  double after = 0;
  double ratio = 1;  // after / before
  // How often as clear a step shows without a change: in a random order of the values, or in runs as correlated as
  // these, whichever is more often.
  double p = 1;
};

struct ChangeReport {
  std::vector<ChangePoint> changes;  // in order
  std::optional<Trend> drift;        // a clear slow trend, if there is no step
  std::string reason;                // why nothing could be judged; otherwise empty
};

// Judges series; caches the distributions under chance, so that many series cost little more than one. One thread at a
// time.
class ChangeDetector {
 public:
  explicit ChangeDetector(const ChangeOptions& options = {}) : options_(options) {}

  // `values` in order of time, all above 0. `noise` is the standard error of each value if known (relative: 0.01 is 1
  // %), or empty: a step must be larger than this error explains.
  ChangeReport judge(std::span<const double> values, std::span<const double> noise = {});

 private:
  struct Judged {
    std::vector<std::size_t> splits;
    double p = 1;
  };
  // A series without a change: its own lag-1 correlation, and how clear its best step (or two) looks.
  struct Drawn {
    double lag1, clear;
  };
  std::vector<Drawn> drawn(std::size_t count, int steps) const;  // by lag1, ascending
  // How often series without a change that look as correlated as this one show as clear a step.
  double share_by_correlation(std::span<const double> part, int steps);
  // How clear a step looks in randomly ordered ranks; ascending.
  std::vector<double> shuffled(std::vector<double> ranks) const;
  Judged judge_part(std::span<const double> part);
  Judged judge_two(std::span<const double> part);
  void split(std::span<const double> part, std::size_t offset, std::vector<ChangePoint>& found);

  ChangeOptions options_;
  std::map<std::size_t, std::vector<double>> chances_;               // by length, for values without ties
  std::map<std::pair<std::size_t, int>, std::vector<Drawn>> drawn_;  // by length and number of steps
};

}  // namespace weir
