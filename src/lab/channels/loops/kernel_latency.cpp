// Measures from the moment when a producer enqueues a command until it sees that the command's kernel has ended, on a
// real device: through each channel to a thread that submits and waits, and without any channel.
#include <atomic>
#include <memory>

#include "lab/channels/loops/carried.h"
#include "lab/channels/loops/contestants.h"
#include "lab/channels/loops/device_step.h"
#include "lab/channels/loops/list.h"
#include "lab/channels/loops/trips.h"

namespace weir::channel_bench {
namespace {

// Where the submitter reports that a kernel has ended: the same cache line for every contestant.
struct alignas(kApart) Ended {
  std::atomic<std::uint32_t> mark{0};
  std::atomic<bool> is_broken{false};  // the device failed: nobody needs to wait any longer
};

template <class Contestant>
Measurement through_channel(const Conditions& conditions) {
  DeviceStep kernel(conditions.device, 1);
  kernel.run();
  return measure_each_trip(conditions, [&](Trips& trips, Tally& sent, Tally& received) {
    const auto channel = std::make_unique<Contestant>(conditions.capacity);
    const auto ended = std::make_unique<Ended>();
    run_team(conditions.cores, 2, [&](int thread) {
      const Patience patience;
      if (thread == 0) {
        auto out = channel->producer();
        ask(
            conditions, Small{}, trips, sent, received,
            [&](const CommandRecord& item) { return patience.until([&] { return out.try_push(item); }); },
            [&](CommandRecord& item) {
              // Pairs with the release below.
              return patience.until([&] {
                return ended->mark.load(std::memory_order_acquire) == item.id ||
                       ended->is_broken.load(std::memory_order_relaxed);
              }) && !ended->is_broken.load(std::memory_order_relaxed);
            });
        return;
      }
      auto in = channel->consumer();
      answer(
          Small{}, [&](CommandRecord& item) { return patience.until([&] { return in.try_pop(item); }); },
          [&](const CommandRecord& item) {
            try {
              kernel.run();
            } catch (...) {
              ended->is_broken.store(true, std::memory_order_relaxed);
              throw;
            }
            ended->mark.store(item.id, std::memory_order_release);  // pairs with the acquire above
            return true;
          });
    });
  });
}

// The lower bound: the producer submits and waits itself.
Measurement without_channel(const Conditions& conditions) {
  DeviceStep kernel(conditions.device, 1);
  kernel.run();
  return measure_each_trip(conditions, [&](Trips& trips, Tally& sent, Tally& received) {
    run_team(conditions.cores, 1, [&](int) {
      ask(
          conditions, Small{}, trips, sent, received,
          [&](const CommandRecord&) {
            kernel.run();
            return true;
          },
          [](const CommandRecord&) { return true; });
    });
  });
}

constexpr int kThreadsOnCpu = 3;  // producer, submitter, and the worker that runs the kernel

std::vector<Benchmark> benchmarks(const Conditions& conditions) {
  std::string where = "an empty kernel on " + conditions.device;
  if (conditions.device == "cpu") where += sharing(conditions, kThreadsOnCpu);
  const std::string missing = why_not_on(conditions.device);
  // Not on a GPU, whose launch and completion alone take longer, nor if the cpu device's worker shares a core.
  const bool has_target =
      conditions.device == "null" || (conditions.device == "cpu" && core_count(conditions) >= kThreadsOnCpu);
  std::vector<Benchmark> list = {{.name = "empty",
                                  .contestant = "inline",
                                  .is_ours = false,
                                  .what = where + ": the producer submits it and waits itself",
                                  .run = without_channel,
                                  .unavailable = missing}};
  for_each_contestant<CommandRecord, 1, 1>([&]<class Contestant>() {
    list.push_back(
        entry<Contestant>("empty", Unit::ns_per_operation,
                          where + ": enqueued, submitted and awaited by another thread, seen by the producer",
                          through_channel<Contestant>));
    if (has_target) list.back().target = Target{5000, "round trip < 5 us"};
    list.back().unavailable = missing;
    if (missing.empty() && core_count(conditions) < 2)
      list.back().unavailable = "two threads that wait for each other need two cores";
  });
  return list;
}

}  // namespace

Group kernel_latency() {
  return {"kernel_latency", "from enqueue to the end of an empty kernel, as the producer sees it", "", benchmarks};
}

}  // namespace weir::channel_bench
