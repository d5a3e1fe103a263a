// Decides whether channels became slower since a baseline. The process is the unit of repetition: its samples share
// memory layout and luck, so their number proves nothing (docs/adr/0018-channel-comparisons.md). Prints nothing.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "lab/channels/channel_results.h"
#include "measure/comparison.h"

namespace weir {

struct ChannelChange : Change {
  std::string id;
  bool is_ours = true;                 // others are controls: the same code on both sides
  std::vector<double> baseline, test;  // medians of the processes, in the benchmark's unit
};

struct ChannelComparison {
  std::string baseline;  // its name
  CompareOptions options;
  std::vector<ChannelChange> changes;
  std::vector<std::string> baseline_only, test_only;  // ids
  std::vector<std::string> notes;
  std::size_t hypotheses = 0;  // number of p-values of ours in Holm's correction
};

// Fills in everything except `adjusted_p` and the verdict; `baseline` and `test` must be set.
void measure_channel(const CompareOptions& options, ChannelChange& change);

// Rejects runs that have no benchmark in common, or different capacities.
ChannelComparison compare_channels(const ChannelRun& baseline, const std::string& baseline_name, const ChannelRun& test,
                                   const CompareOptions& options = {});

// 3 if one of ours is slower; else 4 if one of ours is ambiguous and `is_strict`; else 0. If none is ours, considers
// all.
int exit_code(const ChannelComparison& comparison, bool is_strict);

}  // namespace weir
