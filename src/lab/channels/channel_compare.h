// Decides whether channels became slower since a baseline. What is repeated is the process: samples within one share
// its memory layout and its luck, so their number proves nothing (docs/adr/0018-channel-comparisons.md). Prints
// nothing.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "lab/channels/channel_results.h"
#include "run/compare.h"

namespace weir {

struct ChannelCompareOptions {
  double threshold = 0.05;     // a change below this does not matter
  double significance = 0.05;  // for the p-values after Holm's correction
  std::uint64_t seed = 1;      // of the splits, where there are too many to try all
};

struct ChannelChange {
  std::string id;
  bool is_ours = true;  // others are controls: the same code on both sides
  bool is_less_better = true;
  Verdict verdict = Verdict::ambiguous;
  std::string reason;                  // why it is ambiguous, or failed
  std::vector<double> baseline, test;  // medians of the processes, in the benchmark's unit
  std::optional<double> baseline_value, test_value;
  std::optional<double> ratio;     // test / baseline: the median of all ratios between a process of each side
  std::optional<double> slowness;  // the same as time: above 1 is slower, whatever the unit
  std::optional<double> noise;     // A/A: identical sides of this size differ by less than this factor, 19 times of 20
  std::optional<double> p, adjusted_p;
};

struct ChannelComparison {
  std::string baseline;  // its name
  ChannelCompareOptions options;
  std::vector<ChannelChange> changes;
  std::vector<std::string> baseline_only, test_only;  // ids
  std::vector<std::string> notes;
  std::size_t hypotheses = 0;  // p-values of ours that Holm's correction had to share among
};

// The median of all ratios (Hodges and Lehmann), as a logarithm. Values must be positive.
double log_change(std::span<const double> before, std::span<const double> after);
// By which factor two sides of `before` and `after` processes differ without any cause: each side is split against
// itself in every way (in 200 random ones beyond 12 processes), and 95 % of the splits differ by less, scaled to the
// sizes of whole sides. Nothing where neither side has two processes.
std::optional<double> aa_noise(std::span<const double> before, std::span<const double> after, std::uint64_t seed);
// The smallest p that so many processes can give.
double smallest_p(std::size_t before, std::size_t after);

// Fills in everything but `adjusted_p` and the verdict; `baseline` and `test` must be there.
void measure_channel(const ChannelCompareOptions& options, ChannelChange& change);
// Holm's correction over all that have a p, and the verdicts; returns how many these are.
std::size_t decide_channels(const ChannelCompareOptions& options, std::span<ChannelChange* const> changes);

// Rejects runs that have no benchmark in common, or different capacities.
ChannelComparison compare_channels(const ChannelRun& baseline, const std::string& baseline_name, const ChannelRun& test,
                                   const ChannelCompareOptions& options = {});

// 3 if one of ours is slower; else 4 if one of ours is ambiguous and `is_strict`; else 0. Where none is ours: of all.
int exit_code(const ChannelComparison& comparison, bool is_strict);

}  // namespace weir
