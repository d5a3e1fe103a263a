// Which setting makes a program fail? Judges counts of trials and failures, and says which settings to try next.
// Knows no processes, so that it can be simulated; docs/try.md has the method and its simulated error rates.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "lab/try/design.h"

namespace weir::trials {

struct Tally {
  std::uint32_t trials = 0, failures = 0;
  double rate() const { return trials > 0 ? static_cast<double>(failures) / trials : 0; }
};

// A possible cause: one value of a factor (or several), values of two factors together, or one whole setting.
struct Suspect {
  struct Choice {
    std::size_t factor = 0;
    std::vector<std::uint32_t> values;  // any of these
  };
  std::vector<Choice> choices;          // all of them at once
  std::vector<std::uint32_t> settings;  // those that it applies to, ascending
  double weight = 0;                    // before any trial; the sum over all suspects is 1
};
// Suspects that no two of which apply to the same settings, and none of which applies to all.
std::vector<Suspect> suspects_of(const Design& design);
// "NCCL_ALGO=Tree", "GPU_MAX_HW_QUEUES=2 with NCCL_ALGO=Tree", "X=1 or 2".
std::string words_for(const Design& design, const Suspect& suspect);

struct Culprit {
  std::size_t suspect = 0;
  Tally inside, outside;  // trials with it and without it, apart from those of culprits named before
  double evidence = 0;    // logarithm of the e-value; above log(100) a false accusation happens in at most 1 %
};

struct SearchOptions {
  double rate = 0.3;           // rarer failures need not be found: suspects below it are cleared
  double significance = 0.01;  // of naming any culprit where there is none
};

struct Judgement {
  std::vector<Culprit> culprits;
  std::vector<bool> is_wanted;  // settings to try next; none where the question is settled
  double evidence = 0;          // of the strongest suspect, as above
};

class FailureSearch {
 public:
  explicit FailureSearch(const Design& design, SearchOptions options = {});

  const std::vector<Suspect>& suspects() const { return suspects_; }
  // `tallies` are those of the settings of the design, whichever way the settings were chosen.
  Judgement judge(const std::vector<Tally>& tallies) const;

 private:
  struct Weighed;
  std::vector<Weighed> weigh(const std::vector<Tally>& tallies, const std::vector<bool>& is_out, Tally& all) const;

  std::vector<Suspect> suspects_;
  std::size_t settings_;
  SearchOptions options_;
};

}  // namespace weir::trials
