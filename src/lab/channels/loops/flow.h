// A flow of commands from some threads to others for the duration of a sample: counts what each has sent and received,
// and detects when all have arrived. Channels plug in with two functions, push and pop.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "channel/system.h"
#include "lab/channels/loops/entry.h"
#include "lab/channels/loops/team.h"

namespace weir::channel_bench {

class Flow {
 public:
  Flow(int producers, int consumers, double sample_ms)
      : sent_(static_cast<std::size_t>(producers)),
        received_(static_cast<std::size_t>(consumers)),
        sample_ns_(static_cast<std::int64_t>(sample_ms * 1e6)),
        producing_(producers) {}

  const Patience& patience() const noexcept { return patience_; }

  // For producers: whether to go on. Called once per kBlock commands, because reading a clock costs as much as some
  // pushes.
  static constexpr int kBlock = 256;
  bool goes_on() noexcept {
    const std::int64_t now = now_ns();
    std::int64_t until = until_ns_.load(std::memory_order_relaxed);
    // The first producer sets the end for all. Relaxed, because it publishes nothing else.
    if (until == 0 && until_ns_.compare_exchange_strong(until, now + sample_ns_, std::memory_order_relaxed))
      return true;
    return now < until;
  }
  // The number of a producer's `index`-th command.
  static std::uint32_t number(int producer, std::uint64_t index) noexcept {
    return (static_cast<std::uint32_t>(producer) << 24) + static_cast<std::uint32_t>(index);
  }
  void end_producer(int producer, std::uint64_t count) noexcept {
    sent_[static_cast<std::size_t>(producer)].tally.count = count;
    total_sent_.fetch_add(count, std::memory_order_relaxed);
    producing_.fetch_sub(1, std::memory_order_acq_rel);  // pairs with the acquire in has_ended()
  }
  // For a consumer that found nothing to pop: whether nothing more will come. `counted` is the count that it last
  // reported.
  bool has_ended(const Tally& tally, std::uint64_t& counted) noexcept {
    if (producing_.load(std::memory_order_acquire) != 0) return false;  // pairs with end_producer()
    total_received_.fetch_add(tally.count - counted, std::memory_order_relaxed);
    counted = tally.count;
    return total_received_.load(std::memory_order_relaxed) >= total_sent_.load(std::memory_order_relaxed);
  }
  void end_consumer(int consumer, const Tally& tally) noexcept {
    received_[static_cast<std::size_t>(consumer)].tally = tally;
  }

  // To be called when all threads have ended. Sums are computed here to keep them out of the timed part.
  Tally sent() const noexcept {
    Tally all;
    for (std::size_t producer = 0; producer < sent_.size(); ++producer)
      for (std::uint64_t i = 0; i < sent_[producer].tally.count; ++i) all.add(number(static_cast<int>(producer), i));
    return all;
  }
  Tally received() const noexcept {
    Tally all;
    for (const auto& line : received_) all.add(line.tally);
    return all;
  }

 private:
  struct alignas(kApart) Line {
    Tally tally;
  };
  std::vector<Line> sent_, received_;
  std::int64_t sample_ns_;
  Patience patience_;
  alignas(kApart) std::atomic<std::int64_t> until_ns_{0};
  alignas(kApart) std::atomic<int> producing_;
  std::atomic<std::uint64_t> total_sent_{0}, total_received_{0};
};

// For each sample, `make` creates a channel, `produce(channel, index, flow)` returns how many commands it pushed, and
// `consume(channel, flow)` returns the tally of those it popped. Consumers are the first threads, so that one consumer
// and one producer are on the first two cores.
template <class Make, class Produce, class Consume>
Measurement measure_flow(const Conditions& conditions, int producers, int consumers, Make&& make, Produce&& produce,
                         Consume&& consume) {
  Measurement measurement;
  for (int sample = 0; sample < conditions.samples && measurement.failure.empty(); ++sample) {
    const auto channel = make();
    Flow flow(producers, consumers, conditions.sample_ms);
    const std::int64_t ns = run_team(conditions.cores, producers + consumers, [&](int thread) {
      if (thread < consumers) {
        flow.end_consumer(thread, consume(*channel, flow));
      } else {
        const int producer = thread - consumers;
        flow.end_producer(producer, produce(*channel, producer, flow));
      }
    });
    const Tally sent = flow.sent();
    measurement.samples.push_back(static_cast<double>(sent.count) * 1e9 / static_cast<double>(ns));
    judge(sent, flow.received(), measurement);
  }
  return measurement;
}

// The main loop of a consumer: `take(tally)` adds what it finds and returns false if it finds nothing. Always inlined,
// so that what `take` refers to stays in registers.
template <class Take>
[[gnu::always_inline]] inline Tally take_all(Flow& flow, Take&& take) {
  Tally tally;
  std::uint64_t counted = 0;
  for (int spins = 0;;) {
    if (take(tally)) {
      spins = 0;
      continue;
    }
    if (flow.has_ended(tally, counted) || flow.patience().is_over(spins)) return tally;
    System::relax(spins++);
  }
}

// One command at a time on both sides.
template <class Contestant, class Carried>
std::uint64_t produce_singly(Contestant& channel, int producer, Flow& flow) {
  const Carried carried;
  auto end = channel.producer();
  auto item = carried.make();
  std::uint64_t count = 0;
  while (flow.goes_on()) {
    for (int i = 0; i < Flow::kBlock; ++i) {
      carried.mark(item, Flow::number(producer, count));
      if (!flow.patience().until([&] { return end.try_push(item); })) return count;
      ++count;
    }
  }
  return count;
}
template <class Contestant, class Carried>
Tally consume_singly(Contestant& channel, Flow& flow) {
  const Carried carried;
  auto end = channel.consumer();
  auto item = carried.make();
  return take_all(flow, [&](Tally& tally) {
    if (!end.try_pop(item)) return false;
    tally.add(carried.mark_of(item));
    return true;
  });
}
// Up to `batch` commands in one call.
template <class Contestant, class Carried>
std::uint64_t produce_batches(Contestant& channel, std::size_t batch, Flow& flow) {
  const Carried carried;
  std::vector<typename Carried::Item> items(batch, carried.make());
  std::uint64_t count = 0;
  for (std::size_t since = Flow::kBlock;; since += batch) {
    if (since >= Flow::kBlock) {
      if (!flow.goes_on()) return count;
      since = 0;
    }
    for (std::size_t i = 0; i < batch; ++i) carried.mark(items[i], Flow::number(0, count + i));
    for (std::size_t done = 0; done < batch;) {
      const std::span<const typename Carried::Item> rest = std::span(items).subspan(done);
      std::size_t moved = 0;
      if (!flow.patience().until([&] { return (moved = channel.try_push_batch(rest)) != 0; })) return count;
      done += moved;
      count += moved;
    }
  }
}
template <class Contestant, class Carried>
Measurement measure_singly(const Conditions& conditions, int producers, int consumers) {
  return measure_flow(
      conditions, producers, consumers, [&] { return std::make_unique<Contestant>(conditions.capacity); },
      produce_singly<Contestant, Carried>, consume_singly<Contestant, Carried>);
}

}  // namespace weir::channel_bench
