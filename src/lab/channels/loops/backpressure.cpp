// A consumer that is slower than its producer: the channel fills, the producer is held up, nothing is lost, and
// everything runs exactly as fast as the consumer.
#include <algorithm>
#include <memory>

#include "channel/channel.h"
#include "lab/channels/loops/contestants.h"
#include "lab/channels/loops/entry.h"
#include "lab/channels/loops/list.h"
#include "lab/channels/loops/team.h"

namespace weir::channel_bench {
namespace {

constexpr std::size_t kCapacity = 100;  // 128 if a ring needs a power of two, as all of Weir's do
constexpr std::uint32_t kCommands = 1000;
constexpr std::int64_t kWorkNs = 10'000;

// By the clock: the length of a sleep would be up to the kernel.
void work() {
  const std::int64_t until_ns = now_ns() + kWorkNs;
  while (now_ns() < until_ns) System::pause();
}

template <class Channel>
Measurement measure(const Conditions& conditions) {
  Measurement measurement;
  Tally sent, received;
  double held_ns = 0, worked_ns = 0, in_all_ns = 0;
  for (int sample = 0; sample < conditions.samples; ++sample) {
    const auto channel = std::make_unique<Channel>(kCapacity);
    std::int64_t producer_held_ns = 0, consumer_worked_ns = 0;
    const std::int64_t took_ns = run_team(conditions.cores, 2, [&](int thread) {
      const CloseOnExit closer(*channel);
      if (thread == 0) {
        for (std::uint32_t i = 0; i < kCommands; ++i) {
          const CommandRecord record = make_synchronize(0, i);
          Outcome outcome = channel->try_push(record);
          if (outcome == Outcome::full) {
            const std::int64_t began_ns = now_ns();
            outcome = channel->push(record, Limit::within(10'000'000'000));
            producer_held_ns += now_ns() - began_ns;
          }
          if (outcome != Outcome::done) return;
          sent.add(i);
        }
      } else {
        CommandRecord record;
        while (channel->pop(record, Limit::within(10'000'000'000)) == Outcome::done) {
          const std::int64_t began_ns = now_ns();
          work();
          consumer_worked_ns += now_ns() - began_ns;
          received.add(record.id);
        }
      }
    });
    measurement.samples.push_back(static_cast<double>(took_ns));
    in_all_ns += static_cast<double>(took_ns);
    held_ns += static_cast<double>(producer_held_ns);
    worked_ns += static_cast<double>(consumer_worked_ns);
  }
  measurement.facts = {{"capacity", static_cast<double>(Channel(kCapacity).capacity())},
                       {"producer_held_up_ns", held_ns / conditions.samples},
                       {"consumer_ns_per_command", worked_ns / conditions.samples / kCommands},
                       // 1: the channel adds nothing to the consumer's time.
                       {"time_over_consumer_time", in_all_ns / std::max(worked_ns, 1.0)}};
  judge(sent, received, measurement);
  return measurement;
}

template <class Channel>
Benchmark make(const Conditions& conditions, std::string contestant) {
  return {.name = "slow_consumer",
          .contestant = std::move(contestant),
          .unit = Unit::ns_in_all,
          .what = "1000 commands, room for 100 (rounded to 128), a consumer of 10 us each by the clock",
          .run = measure<Channel>,
          .unavailable = conditions.cores.size() == 1 ? kNeedsOwnCore : ""};
}

std::vector<Benchmark> benchmarks(const Conditions& conditions) {
  return {
      make<Spsc<CommandRecord>>(conditions, "spsc"),
      make<Mpsc<CommandRecord>>(conditions, "mpsc"),
      make<Mpmc<CommandRecord>>(conditions, "mpmc"),
      make<OneSubscriber<CommandRecord>>(conditions, "broadcast"),
      make<Priority<CommandRecord>>(conditions, "priority"),
      make<MutexDeque<CommandRecord>>(conditions, "mutex_deque"),
  };
}

}  // namespace

Group backpressure() {
  return {"backpressure", "a producer held up by a consumer that takes 10 us", "Backpressure", benchmarks};
}

}  // namespace weir::channel_bench
