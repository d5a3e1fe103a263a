// The effect of thread placement: round trips and throughput on the same core, on neighbours, across caches and
// sockets.
#include "lab/channels/loops/carried.h"
#include "lab/channels/loops/contestants.h"
#include "lab/channels/loops/core_pairs.h"
#include "lab/channels/loops/flow.h"
#include "lab/channels/loops/list.h"
#include "lab/channels/loops/trips.h"

namespace weir::channel_bench {
namespace {

template <class Contestant>
void enter(std::vector<Benchmark>& list, const CorePair& pair) {
  const auto on_pair = [pair](auto measure) {
    return [pair, measure](Conditions conditions) {
      conditions.cores = {pair.first, pair.second};
      return measure(conditions);
    };
  };
  const std::string cores = pair.unavailable.empty()
                                ? " (" + std::to_string(pair.first) +
                                      (pair.first == pair.second ? "" : " and " + std::to_string(pair.second)) + ")"
                                : "";
  // Pauses and yields on both sides, even with two cores: otherwise the kinds could not be compared.
  list.push_back(entry<Contestant>("round_trip/" + pair.name, Unit::ns_per_operation,
                                   "a command there and back: " + pair.where + cores,
                                   on_pair(measure_trips<Contestant, Small, false>)));
  list.back().unavailable = pair.unavailable;
  list.push_back(entry<Contestant>(
      "throughput/" + pair.name, Unit::per_second, "commands singly, without a pause: " + pair.where + cores,
      on_pair([](const Conditions& here) { return measure_singly<Contestant, Small>(here, 1, 1); })));
  list.back().unavailable = pair.unavailable;
}

std::vector<Benchmark> benchmarks(const Conditions&) {
  std::vector<Benchmark> list;
  for (const CorePair& pair : core_pairs()) {
    enter<SpscContestant<CommandRecord>>(list, pair);
    enter<MpscContestant<CommandRecord>>(list, pair);
    enter<BroadcastContestant<CommandRecord>>(list, pair);
  }
  return list;
}

}  // namespace

Group placement() { return {"placement", "by where the two threads run", "", benchmarks}; }

}  // namespace weir::channel_bench
