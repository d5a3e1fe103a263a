#include "lab/channels/channel_contests.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/units.h"

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

bool is_channel(const ChannelResult& result) { return result.is_ours && !is_mutex(result) && !is_floor(result); }

// Those of one benchmark that were measured: the fastest of our channels and the fastest mutex.
struct Duel {
  std::string place;
  const Measured* channel = nullptr;
  const Measured* mutex = nullptr;

  bool is_fought() const { return channel != nullptr && mutex != nullptr; }
  double speedup() const { return times(channel->result->unit, *mutex->summary.value, *channel->summary.value); }
};

std::vector<Duel> duels_of(const std::vector<Measured>& all) {
  std::vector<Duel> duels;
  for (const Measured& one : all) {
    const ChannelResult& result = *one.result;
    if (!one.summary.value || !(is_channel(result) || is_mutex(result))) continue;
    const std::string place = result.group + "/" + result.name;
    auto duel = std::find_if(duels.begin(), duels.end(), [&](const Duel& known) { return known.place == place; });
    if (duel == duels.end()) duel = duels.insert(duels.end(), {place});
    const Measured*& side = is_mutex(result) ? duel->mutex : duel->channel;
    if (side == nullptr || times(result.unit, *one.summary.value, *side->summary.value) < 1) side = &one;
  }
  return duels;
}

// The document's table of performance targets: its last column.
struct WantedFactor {
  const char *name, *place;
  double wanted;
};
constexpr std::array<WantedFactor, 4> kWantedFactors = {{{"send latency", "send_latency/small", 5},
                                                         {"round trip", "request/round_trip", 5},
                                                         {"throughput at 1000", "throughput/batch/1000", 10},
                                                         {"contention, 4 x 250", "contention/4x250", 10}}};

std::vector<MutexFactor> factors_of(const std::vector<Duel>& duels) {
  std::vector<MutexFactor> factors;
  for (const WantedFactor& wanted : kWantedFactors) {
    for (const Duel& duel : duels) {
      if (duel.place != wanted.place || !duel.is_fought()) continue;
      factors.push_back({wanted.name, duel.place, duel.channel->result->contestant, duel.mutex->result->contestant,
                         wanted.wanted, duel.speedup(), duel.speedup() >= wanted.wanted});
    }
  }
  return factors;
}

// "Channels are faster" is claimed of these groups. A mutex wins where all its processes are faster than all of ours.
std::optional<ChannelCriterion> beats_mutex(const std::vector<Duel>& duels) {
  constexpr std::array<std::string_view, 7> kClaimed = {"send_latency", "round_trip", "request",   "throughput",
                                                        "backpressure", "sequential", "contention"};
  std::size_t fought = 0, lost = 0;
  const Duel* worst = nullptr;
  for (const Duel& duel : duels) {
    const std::string group = duel.place.substr(0, duel.place.find('/'));
    if (!duel.is_fought() || std::find(kClaimed.begin(), kClaimed.end(), group) == kClaimed.end()) continue;
    ++fought;
    lost += is_clearly_faster(*duel.mutex, *duel.channel) ? 1 : 0;
    if (worst == nullptr || duel.speedup() < worst->speedup()) worst = &duel;
  }
  if (worst == nullptr) return std::nullopt;
  return ChannelCriterion{"beats_mutex", worst->speedup(), 1, lost == 0,
                          fmt::format("the mutex is faster in {} of {} benchmarks; {:.2f}x as fast as the mutex at "
                                      "least ({})",
                                      lost, fought, worst->speedup(), worst->place)};
}

// The value of `contestant` in this benchmark; nothing where it was not measured.
std::optional<double> value_of(const std::vector<Measured>& all, const std::string& place,
                               const std::string& contestant) {
  for (const Measured& one : all)
    if (one.result->contestant == contestant && one.result->group + "/" + one.result->name == place)
      return one.summary.value;
  return std::nullopt;
}

// Each channel's rate at a batch size, by its best rate at a smaller one: 1 where commands cost the same in any batch.
std::optional<ChannelCriterion> linear_throughput(const std::vector<Measured>& all) {
  constexpr double kLeast = 0.8;  // the same program differs by a fifth between processes
  std::optional<double> worst;
  std::string where;
  for (const Measured& one : all) {
    if (!is_channel(*one.result) || one.result->group != "throughput" || one.result->name != "batch/10") continue;
    const std::string& contestant = one.result->contestant;
    double best = 0;
    for (const char* batch : {"batch/10", "batch/100", "batch/1000", "batch/10000"}) {
      const auto rate = value_of(all, std::string("throughput/") + batch, contestant);
      if (!rate) continue;
      if (best > 0 && (!worst || *rate / best < *worst)) {
        worst = *rate / best;
        where = fmt::format("{} at {}", contestant, batch);
      }
      best = std::max(best, *rate);
    }
  }
  if (!worst) return std::nullopt;
  return ChannelCriterion{
      "linear_throughput", *worst, kLeast, *worst >= kLeast,
      fmt::format("{:.2f} of the rate at smaller batches at least ({}); {:.2f} are needed", *worst, where, kLeast)};
}

std::optional<ChannelCriterion> constant_clone(const std::vector<Measured>& all) {
  constexpr double kMost = 1.5;
  std::vector<double> ns;
  for (const char* size : {"1KB", "64KB", "1MB"})
    if (const auto value = value_of(all, std::string("payload_clone/") + size, "payload")) ns.push_back(*value);
  if (ns.size() < 2) return std::nullopt;
  const auto [low, high] = std::minmax_element(ns.begin(), ns.end());
  const double spread = *high / *low;
  return ChannelCriterion{"constant_clone", spread, kMost, spread <= kMost,
                          fmt::format("{} to {} from 1 KB to 1 MB: {:.2f}x, {:.1f}x is allowed", format_duration(*low),
                                      format_duration(*high), spread, kMost)};
}

// A thousand commands from four producers by the same from one: the fastest of our channels, and the mutex beside it.
std::optional<ChannelCriterion> contention_resilience(const std::vector<Measured>& all,
                                                      const std::vector<Duel>& duels) {
  constexpr double kMost = 2;
  for (const Duel& duel : duels) {
    if (duel.place != "contention/4x250" || duel.channel == nullptr) continue;
    const auto degraded = [&](const Measured& one) -> std::optional<double> {
      const auto alone = value_of(all, "contention/1x1000", one.result->contestant);
      if (!alone) return std::nullopt;
      return *one.summary.value / *alone;
    };
    const auto ours = degraded(*duel.channel);
    if (!ours) return std::nullopt;
    const auto mutex = duel.mutex != nullptr ? degraded(*duel.mutex) : std::nullopt;
    return ChannelCriterion{
        "contention_resilience", *ours, kMost, *ours <= kMost,
        fmt::format("four producers take {:.2f}x as long as one ({}{}); {:.1f}x is allowed", *ours,
                    duel.channel->result->contestant, mutex ? fmt::format("; mutex {:.2f}x", *mutex) : "", kMost)};
  }
  return std::nullopt;
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
  const std::vector<Duel> duels = duels_of(all);
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
    for (const Duel& duel : duels) {
      if (duel.place != result.group + "/" + result.name || duel.mutex == nullptr || is_mutex(result) ||
          is_floor(result) || duel.mutex->result->unit != result.unit)
        continue;
      standing.mutex = duel.mutex->result->contestant;
      standing.times_mutex = times(result.unit, *duel.mutex->summary.value, *one.summary.value);
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
  contests.factors = factors_of(duels);
  for (auto& criterion :
       {beats_mutex(duels), linear_throughput(all), constant_clone(all), contention_resilience(all, duels)})
    if (criterion) contests.criteria.push_back(*criterion);
  return contests;
}

}  // namespace weir
