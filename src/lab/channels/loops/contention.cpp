// Four producers with 250 commands each and one consumer, and the same thousand commands from one producer: measures
// from their common start until the last command has arrived.
#include <memory>

#include "lab/channels/loops/carried.h"
#include "lab/channels/loops/contestants.h"
#include "lab/channels/loops/flow.h"
#include "lab/channels/loops/list.h"
#include "measure/statistics.h"

namespace weir::channel_bench {
namespace {

constexpr int kProducers = 4;
constexpr std::uint64_t kCommands = 1000;

// A round starts all threads once; a sample is the median of as many rounds as fit.
template <class Contestant>
Measurement measure(const Conditions& conditions, int producers) {
  constexpr std::size_t kMinRounds = 3;
  const std::uint64_t each = kCommands / static_cast<std::uint64_t>(producers);
  const Small carried;
  Measurement measurement;
  std::vector<double> rounds;
  for (int sample = 0; sample < conditions.samples && measurement.failure.empty(); ++sample) {
    rounds.clear();
    const std::int64_t until_ns = now_ns() + static_cast<std::int64_t>(conditions.sample_ms * 1e6);
    while (measurement.failure.empty() && (rounds.size() < kMinRounds || now_ns() < until_ns)) {
      const auto channel = std::make_unique<Contestant>(conditions.capacity);
      Tally sent, received;
      for (int producer = 0; producer < producers; ++producer)
        for (std::uint64_t i = 0; i < each; ++i) sent.add(Flow::number(producer, i));
      const std::int64_t ns = run_team(conditions.cores, 1 + producers, [&](int thread) {
        const Patience patience;
        auto item = carried.make();
        if (thread == 0) {
          auto end = channel->consumer();
          Tally tally;
          while (tally.count < kCommands && patience.until([&] { return end.try_pop(item); }))
            tally.add(carried.mark_of(item));
          received = tally;
        } else {
          auto end = channel->producer();
          for (std::uint64_t i = 0; i < each; ++i) {
            carried.mark(item, Flow::number(thread - 1, i));
            if (!patience.until([&] { return end.try_push(item); })) return;
          }
        }
      });
      rounds.push_back(static_cast<double>(ns));
      judge(sent, received, measurement);
    }
    if (measurement.failure.empty()) measurement.samples.push_back(median(rounds));
  }
  return measurement;
}

std::vector<Benchmark> benchmarks(const Conditions& conditions) {
  std::vector<Benchmark> list;
  for_each_contestant<CommandRecord, kProducers, 1>([&]<class Contestant>() {
    list.push_back(entry<Contestant>("4x250", Unit::ns_in_all,
                                     "4 threads push 250 commands each, one pops them" + sharing(conditions, 5),
                                     [](const Conditions& here) { return measure<Contestant>(here, kProducers); }));
    list.back().target = target_for(Contestant::kName, {5e6, "4 x 250 < 5 ms"}, {50e6, "mutex: 4 x 250 < 50 ms"});
  });
  for_each_contestant<CommandRecord, kProducers, 1>([&]<class Contestant>() {
    list.push_back(entry<Contestant>("1x1000", Unit::ns_in_all,
                                     "one thread pushes 1000 commands, one pops them" + sharing(conditions, 2),
                                     [](const Conditions& here) { return measure<Contestant>(here, 1); }));
  });
  return list;
}

}  // namespace

Group contention() {
  return {"contention", "four producers with 250 commands each and one consumer", "Contention Scenarios", benchmarks};
}

}  // namespace weir::channel_bench
