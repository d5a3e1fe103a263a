// The cost of counters: the same channel with and without them.
#include <algorithm>
#include <memory>

#include "channel/channel.h"
#include "lab/channels/loops/contestants.h"
#include "lab/channels/loops/entry.h"
#include "lab/channels/loops/list.h"
#include "lab/channels/loops/team.h"

namespace weir::channel_bench {
namespace {

template <class Channel>
Measurement measure_pair(const Conditions& conditions) {
  const BoundToCore bound(conditions.cores);
  const auto channel = std::make_unique<Channel>(conditions.capacity);
  const auto pairs = static_cast<std::uint32_t>(std::max(1000.0, conditions.sample_ms * 1e6 / 40));
  return measure_warm(conditions, [&](Tally& sent, Tally& received) {
    CommandRecord record = make_synchronize(0), out;
    std::uint64_t popped = 0;
    const std::int64_t began_ns = now_ns();
    for (std::uint32_t i = 0; i < pairs; ++i) {
      record.id = i;
      channel->try_push(record);
      if (channel->try_pop(out) == Outcome::done) popped += out.id == i ? 1U : 0U;
    }
    const std::int64_t took_ns = now_ns() - began_ns;
    for (std::uint32_t i = 0; i < pairs; ++i) sent.add(i);
    for (std::uint64_t i = 0; i < popped; ++i) received.add(i);
    return static_cast<double>(took_ns) / pairs;
  });
}

template <class Channel>
Measurement measure_throughput(const Conditions& conditions) {
  Measurement measurement;
  Tally sent, received;
  const auto commands = static_cast<std::uint32_t>(std::max(10'000.0, conditions.sample_ms * 1e6 / 50));
  for (int sample = 0; sample < conditions.samples; ++sample) {
    const auto channel = std::make_unique<Channel>(conditions.capacity);
    const std::int64_t took_ns = run_team(conditions.cores, 2, [&](int thread) {
      const CloseOnExit closer(*channel);
      CommandRecord record = make_synchronize(0);
      if (thread == 0) {
        for (std::uint32_t i = 0; i < commands; ++i) {
          record.id = i;
          if (channel->push(record) != Outcome::done) return;
          sent.add(i);
        }
      } else {
        while (channel->pop(record) == Outcome::done) received.add(record.id);
      }
    });
    measurement.samples.push_back(commands / (static_cast<double>(took_ns) / 1e9));
  }
  judge(sent, received, measurement);
  return measurement;
}

template <class Channel>
void offer(const Conditions& conditions, std::vector<Benchmark>& all, const std::string& contestant) {
  all.push_back({.name = "push_pop",
                 .contestant = contestant,
                 .what = "one thread pushes and pops; per pair",
                 .run = measure_pair<Channel>});
  all.push_back({.name = "throughput",
                 .contestant = contestant,
                 .unit = Unit::per_second,
                 .what = "one producer, one consumer, one command at a time",
                 .run = measure_throughput<Channel>,
                 .unavailable = conditions.cores.size() == 1 ? "producer and consumer need a core each" : ""});
}

std::vector<Benchmark> benchmarks(const Conditions& conditions) {
  std::vector<Benchmark> all;
  offer<Spsc<CommandRecord>>(conditions, all, "spsc");
  offer<Metered<Spsc<CommandRecord>>>(conditions, all, "spsc_metered");
  offer<Mpsc<CommandRecord>>(conditions, all, "mpsc");
  offer<Metered<Mpsc<CommandRecord>>>(conditions, all, "mpsc_metered");
  offer<Mpmc<CommandRecord>>(conditions, all, "mpmc");
  offer<Metered<Mpmc<CommandRecord>>>(conditions, all, "mpmc_metered");
  offer<OneSubscriber<CommandRecord>>(conditions, all, "broadcast");
  offer<Metered<OneSubscriber<CommandRecord>>>(conditions, all, "broadcast_metered");
  return all;
}

}  // namespace

Group metrics() { return {"metrics", "what counters cost", "", benchmarks}; }

}  // namespace weir::channel_bench
