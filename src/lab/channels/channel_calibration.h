// A/A: what comparisons say about one binary and itself. Deals the processes of one run to two sides again and again,
// and counts alarms. Knows runs; measures nothing.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "lab/channels/channel_compare.h"

namespace weir {

inline constexpr double kPlainThreshold = 0.10;  // of the rule that we do not use: "more than 10 % slower"

struct CalibrationRow {
  std::string group;
  std::size_t benchmarks = 0;
  // How often identical code is called slower, 0 to 1.
  double plain_single = 0;  // one process against one process, more than 10 %
  double plain_sides = 0;   // half of the processes against the other half, more than 10 %
  double ours = 0;          // the same halves by our rule
};

struct ChannelCalibration {
  std::size_t processes = 0;  // in all: both sides
  int deals = 0;              // ways in which they were dealt
  std::vector<CalibrationRow> groups;
  CalibrationRow all;           // its group is empty
  double deals_with_alarm = 0;  // part of all deals in which our rule calls any benchmark slower
  bool can_alarm = true;        // false: so few processes that our rule is silent whatever they say
  // The one deal that time made: the first half of the processes against the second. Drift shows here only.
  std::size_t drifted_faster = 0, drifted_slower = 0;
};

// Nothing where no benchmark has four processes.
std::optional<ChannelCalibration> calibrate_channels(const ChannelRun& run, int deals,
                                                     const CompareOptions& options = {});

}  // namespace weir
