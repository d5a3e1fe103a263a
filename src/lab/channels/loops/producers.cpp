// Commands per second from 1 to 16 producers to one consumer, without pauses.
#include "lab/channels/loops/carried.h"
#include "lab/channels/loops/contestants.h"
#include "lab/channels/loops/flow.h"
#include "lab/channels/loops/list.h"

namespace weir::channel_bench {
namespace {

template <int kProducers>
void enter(std::vector<Benchmark>& list, const Conditions& conditions) {
  for_each_contestant<CommandRecord, kProducers, 1>([&]<class Contestant>() {
    const std::string count = std::to_string(kProducers);
    list.push_back(entry<Contestant>(
        count, Unit::per_second, count + " to 1, commands singly" + sharing(conditions, kProducers + 1),
        [](const Conditions& here) { return measure_singly<Contestant, Small>(here, kProducers, 1); }));
  });
}

std::vector<Benchmark> benchmarks(const Conditions& conditions) {
  std::vector<Benchmark> list;
  enter<1>(list, conditions);
  enter<2>(list, conditions);
  enter<4>(list, conditions);
  enter<8>(list, conditions);
  enter<16>(list, conditions);
  return list;
}

}  // namespace

Group producers() {
  return {"producers", "commands per second from 1 to 16 producers to one consumer", "", benchmarks};
}

}  // namespace weir::channel_bench
