// A hundred commands one after another: on one thread, streamed to another thread, and handed over one by one.
#include <atomic>
#include <memory>

#include "lab/channels/loops/carried.h"
#include "lab/channels/loops/contestants.h"
#include "lab/channels/loops/list.h"
#include "lab/channels/loops/trips.h"
#include "lab/channels/loops/uncontended.h"

namespace weir::channel_bench {
namespace {

constexpr std::uint32_t kCommands = 100;

// Each sample is the time of all hundred, so a round of the uncontended loop counts a hundred times.
template <class Contestant>
Measurement measure_one_thread(const Conditions& conditions) {
  Measurement measurement = measure_uncontended<Timed::fill_drain, Contestant, Small>(conditions, kCommands);
  for (double& sample : measurement.samples) sample *= kCommands;
  return measurement;
}

struct alignas(kApart) Done {
  std::atomic<std::uint32_t> count{0};  // commands that the second thread has processed
};

// kIsOneByOne: the next command is pushed when the previous one is done; otherwise when there is room.
template <class Contestant, bool kIsOneByOne>
Measurement measure_two_threads(const Conditions& conditions) {
  constexpr std::size_t kMinRounds = 3, kMaxRounds = 1 << 16;
  constexpr std::uint32_t kLast = UINT32_MAX;
  const Small carried;
  Measurement measurement;
  std::vector<double> rounds;
  rounds.reserve(kMaxRounds);
  for (int sample = 0; sample < conditions.samples && measurement.failure.empty(); ++sample) {
    const auto channel = std::make_unique<Contestant>(conditions.capacity);
    const auto done = std::make_unique<Done>();
    rounds.clear();
    Tally sent, received;
    run_team(conditions.cores, 2, [&](int thread) {
      const Patience patience;
      auto item = carried.make();
      if (thread == 0) {
        auto end = channel->producer();
        const auto push = [&](std::uint32_t number) {
          carried.mark(item, number);
          return patience.until([&] { return end.try_push(item); });
        };
        // Pairs with the release of the other thread.
        const auto is_done = [&](std::uint32_t number) {
          return patience.until([&] { return done->count.load(std::memory_order_acquire) == number; });
        };
        std::uint32_t number = 0;
        const std::int64_t until_ns = now_ns() + static_cast<std::int64_t>(conditions.sample_ms * 1e6);
        bool is_well = true;
        while (is_well && rounds.size() < kMaxRounds && (rounds.size() < kMinRounds || now_ns() < until_ns)) {
          const std::int64_t began = now_ns();
          for (std::uint32_t i = 0; i < kCommands && is_well; ++i) {
            is_well = push(++number);
            if constexpr (kIsOneByOne) is_well = is_well && is_done(number);
          }
          is_well = is_well && is_done(number);
          rounds.push_back(static_cast<double>(now_ns() - began));
        }
        for (std::uint32_t i = 1; i <= number; ++i) sent.add(i);
        push(kLast);
      } else {
        auto end = channel->consumer();
        while (patience.until([&] { return end.try_pop(item); }) && carried.mark_of(item) != kLast) {
          received.add(carried.mark_of(item));
          done->count.store(static_cast<std::uint32_t>(received.count),
                            std::memory_order_release);  // pairs with is_done
        }
      }
    });
    measurement.samples.push_back(median(rounds));
    judge(sent, received, measurement);
  }
  return measurement;
}

std::vector<Benchmark> benchmarks(const Conditions& conditions) {
  std::vector<Benchmark> list;
  const std::string shared = sharing(conditions, 2);
  for_each_contestant<CommandRecord, 1, 1>([&]<class Contestant>() {
    list.push_back(entry<Contestant>("one_thread", Unit::ns_in_all, "one thread pushes 100 commands, then pops them",
                                     measure_one_thread<Contestant>));
  });
  for_each_contestant<CommandRecord, 1, 1>([&]<class Contestant>() {
    list.push_back(entry<Contestant>("two_threads", Unit::ns_in_all,
                                     "100 commands to another thread, until it is done with the last" + shared,
                                     measure_two_threads<Contestant, false>));
  });
  for_each_contestant<CommandRecord, 1, 1>([&]<class Contestant>() {
    list.push_back(entry<Contestant>("one_by_one", Unit::ns_in_all,
                                     "100 commands to another thread, each when the one before it is done" + shared,
                                     measure_two_threads<Contestant, true>));
  });
  return list;
}

}  // namespace

Group sequential() {
  return {"sequential", "a hundred commands one after another", "Command Processing Patterns", benchmarks};
}

}  // namespace weir::channel_bench
