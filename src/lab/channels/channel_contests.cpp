#include "lab/channels/channel_contests.h"

namespace weir {
namespace {

double times(channel_bench::Unit unit, double value, double reference) {
  return channel_bench::is_less_better(unit) ? value / reference : reference / value;
}

struct Measured {
  const ChannelResult* result = nullptr;
  ChannelSummary summary;
};

// Whether every process of one is faster than every process of the other.
bool is_clearly_faster(const Measured& one, const Measured& other) {
  return channel_bench::is_less_better(one.result->unit) ? *one.summary.high < *other.summary.low
                                                         : *one.summary.low > *other.summary.high;
}

}  // namespace

bool is_floor(const ChannelResult& result) { return result.contestant == "floor"; }

bool is_mutex(const ChannelResult& result) { return result.contestant.starts_with("mutex"); }

const ChannelResult* floor_of(const ChannelRun& run, const ChannelResult& result) {
  if (is_floor(result)) return nullptr;
  if (const ChannelResult* own = run.find(result.group + "/" + result.name + "/floor")) return own;
  return result.group == "round_trip" ? run.find("ping_pong/" + result.name + "/floor") : nullptr;
}

ChannelContests judge_contests(const ChannelRun& run) {
  std::vector<Measured> all;
  for (const ChannelResult& result : run.results) all.push_back({&result, summarise(result)});
  ChannelContests contests;
  for (const Measured& one : all) {
    BenchmarkStanding& standing = contests.standings.emplace_back();
    if (!one.summary.value) continue;
    const ChannelResult& result = *one.result;
    const Measured* best = nullptr;
    for (const Measured& other : all) {
      const ChannelResult& rival = *other.result;
      if (&rival == &result || rival.group != result.group || rival.name != result.name || rival.unit != result.unit)
        continue;
      if ((rival.is_ours && !is_mutex(rival)) || is_floor(rival) || !other.summary.value) continue;
      if (best == nullptr || times(result.unit, *other.summary.value, *best->summary.value) < 1) best = &other;
      if (is_mutex(rival) && result.is_ours && !is_mutex(result) && is_clearly_faster(other, one))
        contests.mutex_wins.push_back({result.group, result.name, rival.contestant, result.contestant,
                                       times(result.unit, *one.summary.value, *other.summary.value)});
    }
    if (best != nullptr && !is_floor(result)) {
      standing.best = best->result->contestant;
      standing.times_best = times(result.unit, *one.summary.value, *best->summary.value);
    }
    if (const ChannelResult* floor = floor_of(run, result); floor != nullptr && floor->unit == result.unit) {
      if (const auto value = summarise(*floor).value) {
        standing.floor = floor->id();
        standing.times_floor = times(result.unit, *one.summary.value, *value);
      }
    }
    if (result.target)
      standing.is_target_met = channel_bench::is_less_better(result.unit) ? *one.summary.value <= result.target->limit
                                                                          : *one.summary.value >= result.target->limit;
  }
  return contests;
}

}  // namespace weir
