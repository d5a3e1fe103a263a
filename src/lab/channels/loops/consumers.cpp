// Measures commands per second between several producers and several consumers; each command is popped by one of them.
#include "lab/channels/loops/carried.h"
#include "lab/channels/loops/contestants.h"
#include "lab/channels/loops/flow.h"
#include "lab/channels/loops/list.h"

namespace weir::channel_bench {
namespace {

void enter(std::vector<Benchmark>& list, const Conditions& conditions, int producers, int consumers) {
  const std::string name = std::to_string(producers) + "x" + std::to_string(consumers);
  for_each_contestant<CommandRecord, kMany, kMany>([&]<class Contestant>() {
    list.push_back(entry<Contestant>(
        name, Unit::per_second,
        std::to_string(producers) + " to " + std::to_string(consumers) + ", commands singly" +
            sharing(conditions, producers + consumers),
        [=](const Conditions& here) { return measure_singly<Contestant, Small>(here, producers, consumers); }));
  });
}

std::vector<Benchmark> benchmarks(const Conditions& conditions) {
  std::vector<Benchmark> list;
  enter(list, conditions, 1, 2);
  enter(list, conditions, 1, 4);
  enter(list, conditions, 2, 2);
  enter(list, conditions, 4, 2);
  enter(list, conditions, 4, 4);
  return list;
}

}  // namespace

Group consumers() {
  return {"consumers", "commands per second between several producers and several consumers", "", benchmarks};
}

}  // namespace weir::channel_bench
