// A/A test: compares one binary with itself. Deals the processes of one run to two sides repeatedly, and counts alarms.
// Knows runs; measures nothing.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "lab/channels/channel_compare.h"

namespace weir {

inline constexpr double kPlainThreshold = 0.10;  // of the rule that Weir does not use: "more than 10 % slower"

struct CalibrationRow {
  std::string group;
  std::size_t benchmarks = 0;
  // How often identical code is called slower, 0 to 1.
  double plain_single = 0;  // one process against one process, more than 10 %
  double plain_sides = 0;   // half of the processes against the other half, more than 10 %
  double ours = 0;          // the same halves by Weir's rule
};

struct ChannelCalibration {
  std::size_t processes = 0;  // in total, on both sides
  int deals = 0;              // number of ways in which they were dealt
  std::vector<CalibrationRow> groups;
  CalibrationRow all;           // its group is empty
  double deals_with_alarm = 0;  // fraction of all deals in which Weir's rule calls any benchmark slower
  bool can_alarm = true;        // false: there are too few processes for Weir's rule to raise any alarm
  // The deal in order of time: the first half of the processes against the second. Only this one shows drift.
  std::size_t drifted_faster = 0, drifted_slower = 0;
};

// Returns nothing if no benchmark has four processes.
std::optional<ChannelCalibration> calibrate_channels(const ChannelRun& run, int deals,
                                                     const CompareOptions& options = {});

}  // namespace weir
