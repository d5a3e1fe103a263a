// Commands per second from one thread to another: in batches each of which must have arrived before the next begins,
// without a pause, and with the calls that move several commands at once.

#include "lab/channels/loops/carried.h"
#include "lab/channels/loops/contestants.h"
#include "lab/channels/loops/flow.h"
#include "lab/channels/loops/list.h"

namespace weir::channel_bench {
namespace {

// Single pushes; the producer waits for the consumer after each batch, as if it needed the results.
template <class Contestant>
Measurement measure_batches(const Conditions& conditions, std::uint64_t batch) {
  struct alignas(kApart) Arrived {
    std::atomic<std::uint64_t> count{0};
  };
  const auto arrived = std::make_unique<Arrived>();
  return measure_flow(
      conditions, 1, 1,
      [&] {
        arrived->count.store(0, std::memory_order_relaxed);  // before the threads exist
        return std::make_unique<Contestant>(conditions.capacity);
      },
      [&](Contestant& channel, int, Flow& flow) {
        const Small carried;
        auto end = channel.producer();
        auto item = carried.make();
        std::uint64_t count = 0;
        while (flow.goes_on()) {
          for (std::uint64_t i = 0; i < batch; ++i) {
            carried.mark(item, Flow::number(0, count));
            if (!flow.patience().until([&] { return end.try_push(item); })) return count;
            ++count;
          }
          // Pairs with the release of the consumer.
          if (!flow.patience().until([&] { return arrived->count.load(std::memory_order_acquire) == count; })) break;
        }
        return count;
      },
      [&](Contestant& channel, Flow& flow) {
        const Small carried;
        auto end = channel.consumer();
        auto item = carried.make();
        return take_all(flow, [&](Tally& tally) {
          if (!end.try_pop(item)) return false;
          tally.add(carried.mark_of(item));
          // Pairs with the acquire of the producer.
          if (tally.count % batch == 0) arrived->count.store(tally.count, std::memory_order_release);
          return true;
        });
      });
}

// The calls that move several commands.
template <class Contestant>
Measurement measure_spans(const Conditions& conditions, std::size_t batch) {
  return measure_flow(
      conditions, 1, 1, [&] { return std::make_unique<Contestant>(conditions.capacity); },
      [&](Contestant& channel, int, Flow& flow) { return produce_batches<Contestant, Small>(channel, batch, flow); },
      [&](Contestant& channel, Flow& flow) {
        const Small carried;
        std::vector<CommandRecord> items(batch, carried.make());
        return take_all(flow, [&](Tally& tally) {
          const std::size_t count = channel.try_pop_batch(items);
          for (std::size_t i = 0; i < count; ++i) tally.add(carried.mark_of(items[i]));
          return count != 0;
        });
      });
}

std::vector<Benchmark> benchmarks(const Conditions& conditions) {
  std::vector<Benchmark> list;
  const std::string shared = sharing(conditions, 2);
  const auto enter = [&]<class Contestant>(const std::string& name, const std::string& what, Run run) {
    list.push_back(entry<Contestant>(name, Unit::per_second, what + ", one thread to another" + shared, run));
  };
  for (const std::size_t batch : {10u, 100u, 1000u, 10000u}) {
    const std::string count = std::to_string(batch);
    for_each_contestant<CommandRecord, 1, 1>([&]<class Contestant>() {
      enter.template operator()<Contestant>(
          "batch/" + count, "pushed singly; each " + count + " must have arrived before the next",
          [batch](const Conditions& here) { return measure_batches<Contestant>(here, batch); });
      if (batch == 1000)
        list.back().target =
            target_for(Contestant::kName, {500e3, "> 500 k/s at 1000"}, {50e3, "mutex: > 50 k/s at 1000"});
    });
  }
  for_each_contestant<CommandRecord, 1, 1>([&]<class Contestant>() {
    enter.template operator()<Contestant>(
        "sustained", "pushed and popped singly, without a pause",
        [](const auto& here) { return measure_singly<Contestant, Small>(here, 1, 1); });
  });
  for (const std::size_t batch : {10u, 100u, 1000u}) {
    const std::string count = std::to_string(batch);
    for_each_contestant<CommandRecord, 1, 1>([&]<class Contestant>() {
      if constexpr (requires(Contestant& each) { each.try_pop_batch({}); }) {
        enter.template operator()<Contestant>(
            "batch_api/" + count, "up to " + count + " in one call, without a pause",
            [batch](const Conditions& here) { return measure_spans<Contestant>(here, batch); });
      }
    });
  }
  return list;
}

}  // namespace

Group throughput() {
  return {"throughput", "commands per second from one thread to another", "Throughput", benchmarks};
}

}  // namespace weir::channel_bench
