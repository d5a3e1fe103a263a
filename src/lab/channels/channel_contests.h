// For each benchmark: the best competitor of the same run, the mutex, the machine's floor, the target, and where a
// mutex would have been enough; for the run: what the requirements document promises of channels. Knows results; prints
// nothing.
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
  std::optional<std::string> mutex;   // contestant: the fastest mutex of the same benchmark; only for what is no mutex
  std::optional<double> times_mutex;  // times as fast as that mutex
  std::optional<std::string> floor;   // id
  std::optional<double> times_floor;
  std::optional<bool> is_target_met;
};

// A mutex that is faster than one of Weir's channels, in all processes of each.
struct MutexWin {
  std::string group, name, mutex, channel;
  double factor = 1;
};

// How many times as fast as a mutex the document wants channels to be, and how many times the best of ours was.
struct MutexFactor {
  std::string name, place;  // place: group/name of the benchmark
  std::string channel, mutex;
  double wanted = 1, speedup = 1;
  bool is_met = false;
};

// One of the document's four criteria of success. `value` is the worst case that was measured, `limit` what is allowed.
struct ChannelCriterion {
  std::string name;  // beats_mutex, linear_throughput, constant_clone, contention_resilience
  double value = 1, limit = 1;
  bool is_met = false;
  std::string text;  // what was measured, with its numbers
};

struct ChannelContests {
  std::vector<BenchmarkStanding> standings;  // one for each result, in their order
  std::vector<MutexWin> mutex_wins;
  // Only those for which this run has the benchmarks.
  std::vector<MutexFactor> factors;
  std::vector<ChannelCriterion> criteria;
};

bool is_floor(const ChannelResult& result);
bool is_mutex(const ChannelResult& result);  // the pattern that channels replace: counts as a competitor, although ours
// The floor for a benchmark: one of its own group and name, or the ping-pong of its name.
const ChannelResult* floor_of(const ChannelRun& run, const ChannelResult& result);

ChannelContests judge_contests(const ChannelRun& run);

}  // namespace weir
