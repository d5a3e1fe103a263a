// Several devices that work on one step: a producer tells one submitter per device to run its part, and continues when
// all are done. The extra cost over one device is the price of coordination.
#include <algorithm>
#include <atomic>
#include <memory>

#include "channel/broadcast.h"
#include "channel/command_record.h"
#include "channel/mutex_deque.h"
#include "channel/spsc.h"
#include "lab/channels/loops/device_step.h"
#include "lab/channels/loops/list.h"
#include "lab/channels/loops/trips.h"

namespace weir::channel_bench {
namespace {

constexpr int kKernels = 64;  // in one device's part of a step

// One channel per device.
template <class Channel>
class OneEach {
 public:
  OneEach(std::size_t capacity, int devices) {
    for (int i = 0; i < devices; ++i) channels_.push_back(std::make_unique<Channel>(capacity));
  }
  // Sends to the first `devices` of them.
  bool send(const CommandRecord& item, int devices, const Patience& patience) noexcept {
    for (int i = 0; i < devices; ++i) {
      Channel& channel = *channels_[static_cast<std::size_t>(i)];
      if (!patience.until([&] { return channel.try_push(item) == Outcome::done; })) return false;
    }
    return true;
  }
  bool receive(int device, CommandRecord& item, const Patience& patience) noexcept {
    Channel& channel = *channels_[static_cast<std::size_t>(device)];
    return patience.until([&] { return channel.try_pop(item) == Outcome::done; });
  }

 private:
  std::vector<std::unique_ptr<Channel>> channels_;
};

// One channel for all: every receiver gets everything, and does its own part.
class OneForAll {
 public:
  OneForAll(std::size_t capacity, int devices) : channel_(capacity, static_cast<std::size_t>(devices)) {
    for (int i = 0; i < devices; ++i) ends_.push_back(channel_.subscribe(LagPolicy::blocks));
  }
  bool send(const CommandRecord& item, int, const Patience& patience) noexcept {
    return patience.until([&] { return channel_.try_push(item) == Outcome::done; });
  }
  bool receive(int device, CommandRecord& item, const Patience& patience) noexcept {
    auto& end = ends_[static_cast<std::size_t>(device)];
    return patience.until([&] { return end.try_pop(item) == Outcome::done; });
  }

 private:
  Broadcast<CommandRecord> channel_;
  std::vector<Broadcast<CommandRecord>::Subscriber> ends_;
};

struct alignas(kApart) Ended {
  std::atomic<std::uint32_t> step{0};
};

constexpr std::uint32_t kLast = std::uint32_t{1} << 31;

template <class Way>
class Run {
 public:
  Run(const Conditions& conditions, std::vector<std::unique_ptr<DeviceStep>>& steps)
      : conditions_(conditions),
        steps_(steps),
        devices_(static_cast<int>(steps.size())),
        way_(conditions.capacity, devices_),
        ended_(steps.size()) {}

  // Steps on all devices and on the first alone take turns, so that both see the same conditions.
  void sample(Trips& all, std::vector<double>& one, Tally& sent, Tally& received) {
    run_team(conditions_.cores, devices_ + 1, [&](int thread) {
      if (thread == 0) {
        lead(all, one, sent, received);
      } else {
        follow(thread - 1);
      }
    });
  }

 private:
  void lead(Trips& all, std::vector<double>& one, Tally& sent, Tally& received) {
    const Patience patience;
    const std::int64_t until_ns = now_ns() + static_cast<std::int64_t>(conditions_.sample_ms * 1e6);
    CommandRecord item = make_synchronize(kAllStreams);
    Tally asked, answered;
    for (std::uint32_t turn = 1;; ++turn) {
      // The last turn must include all devices, or some would wait for more.
      const bool is_last = turn % 2 == 0 && turn >= 40 && (now_ns() >= until_ns || turn >= (1U << 20));
      const int devices = turn % 2 == 0 ? devices_ : 1;
      item.id = is_last ? turn | kLast : turn;
      item.stream = static_cast<std::uint16_t>(devices);
      for (int i = 0; i < devices; ++i) asked.add(item.id * std::uint64_t{64} + static_cast<std::uint64_t>(i));
      const std::int64_t began = now_ns();
      bool is_answered = way_.send(item, devices, patience);
      for (int i = 0; i < devices && is_answered; ++i) {
        // Pairs with the release in follow().
        is_answered = patience.until([&] {
          return ended_[static_cast<std::size_t>(i)].step.load(std::memory_order_acquire) == item.id ||
                 is_broken_.load(std::memory_order_relaxed);
        }) && !is_broken_.load(std::memory_order_relaxed);
        if (is_answered) answered.add(item.id * std::uint64_t{64} + static_cast<std::uint64_t>(i));
      }
      const std::int64_t ns = now_ns() - began;
      if (!is_answered) break;
      if (turn % 2 == 0) {
        all.add(ns);
      } else {
        one.push_back(static_cast<double>(ns));
      }
      if (is_last) break;
    }
    sent.add(asked);
    received.add(answered);
  }
  void follow(int device) {
    const Patience patience;
    CommandRecord item{};
    while (way_.receive(device, item, patience)) {
      if (device < item.stream) {
        try {
          steps_[static_cast<std::size_t>(device)]->run();
        } catch (...) {
          is_broken_.store(true, std::memory_order_relaxed);
          throw;
        }
        // Pairs with the acquire in lead().
        ended_[static_cast<std::size_t>(device)].step.store(item.id, std::memory_order_release);
      }
      if ((item.id & kLast) != 0) return;
    }
  }

  const Conditions& conditions_;
  std::vector<std::unique_ptr<DeviceStep>>& steps_;
  int devices_;
  Way way_;
  std::vector<Ended> ended_;
  std::atomic<bool> is_broken_{false};
};

template <class Way>
Measurement measure(const Conditions& conditions, const std::vector<std::string>& devices) {
  std::vector<std::unique_ptr<DeviceStep>> steps;
  for (const std::string& device : devices) {
    steps.push_back(std::make_unique<DeviceStep>(device, kKernels));
    steps.back()->run();
  }
  constexpr std::size_t kMaxTurns = std::size_t{1} << 20;  // of a sample
  std::vector<double> one;
  Measurement measurement = measure_each_trip(
      conditions,
      [&](Trips& all, Tally& sent, Tally& received) {
        one.reserve(one.size() + kMaxTurns);
        Run<Way>(conditions, steps).sample(all, one, sent, received);
      },
      Trips(kMaxTurns));
  if (measurement.p50_ns)
    measurement.facts = {{"one_device_ns", median(one)}, {"overhead_ns", *measurement.p50_ns - median(one)}};
  return measurement;
}

template <class Way>
void enter(std::vector<Benchmark>& list, const Conditions& conditions, const char* contestant, bool is_null, int count,
           const std::vector<std::string>& devices, const std::string& missing) {
  list.push_back({.name = (is_null ? "null/" : "gpus/") + std::to_string(count),
                  .contestant = contestant,
                  .what = std::to_string(kKernels) + " kernels on each of " + std::to_string(count) +
                          (is_null ? " devices that run nothing" : " GPUs") +
                          ", a thread each, until one producer knows that all have ended",
                  .run = [devices](const Conditions& given) { return measure<Way>(given, devices); },
                  .unavailable = missing});
  const int cores = core_count(conditions);
  if (missing.empty() && cores < count + 1)
    list.back().unavailable = std::to_string(count + 1) +
                              " threads that wait for each other need as many cores; there " +
                              (cores == 1 ? "is 1" : "are " + std::to_string(cores));
}

std::vector<Benchmark> benchmarks(const Conditions& conditions) {
  std::vector<Benchmark> list;
  const auto enter_all = [&](bool is_null, int count, const std::vector<std::string>& devices,
                             const std::string& missing) {
    enter<OneEach<Spsc<CommandRecord>>>(list, conditions, "spsc", is_null, count, devices, missing);
    enter<OneForAll>(list, conditions, "broadcast", is_null, count, devices, missing);
    enter<OneEach<MutexDeque<CommandRecord>>>(list, conditions, "mutex_deque", is_null, count, devices, missing);
  };
  for (const int count : {1, 2, 4})
    enter_all(true, count, std::vector<std::string>(static_cast<std::size_t>(count), "null"), "");
  const std::string kind = conditions.device.substr(0, conditions.device.find(':'));
  const bool has_gpus = kind != "cpu" && kind != "sim" && kind != "null";
  const std::vector<std::string> found = has_gpus ? devices_like(conditions.device) : std::vector<std::string>();
  for (const std::size_t count : {std::size_t{1}, std::size_t{2}, std::size_t{4}}) {
    std::string missing;
    if (!has_gpus) {
      missing = "device '" + conditions.device + "' has no GPUs; use --device cuda, hip or opencl";
    } else if (found.size() < count) {
      missing = found.empty() ? why_not_on(conditions.device) : "there are " + std::to_string(found.size()) + " GPUs";
      if (found.size() == 1) missing = "there is one GPU";
    }
    const auto used = found.begin() + static_cast<std::ptrdiff_t>(std::min(count, found.size()));
    enter_all(false, static_cast<int>(count), {found.begin(), used}, missing);
  }
  return list;
}

}  // namespace

Group devices() {
  return {"devices", "one producer and several devices, a submitter each: what it costs to wait for all", "",
          benchmarks};
}

}  // namespace weir::channel_bench
