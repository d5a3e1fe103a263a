// For each benchmark: the best competitor of the same run, the machine's floor, the target, and where a mutex would
// have been enough. Knows results; prints nothing.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "lab/channels/channel_results.h"

namespace weir {

// How one benchmark compares with others. Factors are of time: 1.2 takes a fifth longer, whatever the unit.
struct BenchmarkStanding {
  std::optional<std::string> best;  // contestant: the fastest one that is not ours, or a mutex; never itself
  std::optional<double> times_best;
  std::optional<std::string> floor;  // id
  std::optional<double> times_floor;
  std::optional<bool> is_target_met;
};

// A mutex that is faster than one of Weir's channels, in all processes of each.
struct MutexWin {
  std::string group, name, mutex, channel;
  double factor = 1;
};

struct ChannelContests {
  std::vector<BenchmarkStanding> standings;  // one for each result, in their order
  std::vector<MutexWin> mutex_wins;
};

bool is_floor(const ChannelResult& result);
bool is_mutex(const ChannelResult& result);  // the pattern that channels replace: counts as a competitor, although ours
// The floor for a benchmark: one of its own group and name, or the ping-pong of its name.
const ChannelResult* floor_of(const ChannelRun& run, const ChannelResult& result);

ChannelContests judge_contests(const ChannelRun& run);

}  // namespace weir
