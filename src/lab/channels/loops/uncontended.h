// The cost of a push and a pop without any other thread: one thread fills and drains a channel.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/clock.h"
#include "lab/channels/loops/allocators.h"
#include "lab/channels/loops/entry.h"
#include "lab/channels/loops/team.h"
#include "measure/statistics.h"

namespace weir::channel_bench {

enum class Timed {
  push,        // while filling a channel; draining it is not timed
  pop,         // while draining a channel; filling it is not timed
  fill_drain,  // both
  cycle,       // push, pop, push, pop ...
};

namespace uncontended {

// One round of `count` commands: the timed part in nanoseconds per command. Commands that find no room are not sent.
template <Timed kTimed, class Carried, class Producer, class Consumer>
[[gnu::noinline]] double time_round(Producer& producer, Consumer& consumer, const Carried& carried, std::size_t count,
                                    std::uint32_t first, Tally& received) {
  typename Carried::Item item = carried.make(), taken = item;
  const auto push = [&](std::size_t i) {
    carried.mark(item, first + static_cast<std::uint32_t>(i));
    return producer.try_push(item);
  };
  const auto pop = [&] {
    if (!consumer.try_pop(taken)) return;
    keep(&taken);  // a compiler would leave out copying what nobody reads
    received.add(carried.mark_of(taken));
  };
  const std::int64_t began = now_ns();
  std::int64_t between = began;
  if constexpr (kTimed == Timed::cycle) {
    for (std::size_t i = 0; i < count; ++i) {
      if (!push(i)) break;
      pop();
    }
  } else {
    for (std::size_t i = 0; i < count; ++i)
      if (!push(i)) break;
    between = now_ns();
    for (std::size_t i = 0; i < count; ++i) pop();
  }
  const std::int64_t ended = now_ns();
  const std::int64_t ns = kTimed == Timed::push  ? between - began
                          : kTimed == Timed::pop ? ended - between
                                                 : ended - began;
  return static_cast<double>(ns) / static_cast<double>(count);
}

}  // namespace uncontended

// A sample is the lower quartile of many rounds of some ten microseconds. Other activity on the machine (interrupts,
// other programs, their traces in the caches) can only add time to a round, so the upper half says more about it than
// about the channel; the minimum would be the luckiest of a number of rounds that differs between contestants.
//
// It is taken on a separate thread: as long as a process has never had a second one, glibc takes no lock and uses no
// atomics for references (push of mutex_deque: 14 ns, then 38; Neoverse-V1, 2026-11), and benchmarks are shuffled.
template <Timed kTimed, class Contestant, class Carried>
Measurement measure_uncontended(const Conditions& conditions, std::size_t capacity) {
  constexpr int kMinRounds = 4;
  const Carried carried;
  Measurement measurement;
  Tally sent, received;
  const auto take_sample = [&](int) {
    // Newly allocated on the heap: the cost of memory depends on its address.
    const auto channel = std::make_unique<Contestant>(capacity);
    auto producer = channel->producer();
    auto consumer = channel->consumer();
    std::vector<double> rounds;
    const std::int64_t until_ns = now_ns() + static_cast<std::int64_t>(conditions.sample_ms * 1e6);
    for (int round = 0; round < kMinRounds || now_ns() < until_ns; ++round) {
      const auto first = static_cast<std::uint32_t>(sent.count);
      const double ns = uncontended::time_round<kTimed>(producer, consumer, carried, capacity, first, received);
      for (std::size_t i = 0; i < capacity; ++i) sent.add(first + static_cast<std::uint32_t>(i));
      if (round > 0) rounds.push_back(ns);  // the first round faults pages in and allocates blocks
    }
    measurement.samples.push_back(quantile(rounds, 0.25));
  };
  for (int sample = 0; sample < conditions.samples && sent == received; ++sample)
    run_team(conditions.cores, 1, take_sample);
  judge(sent, received, measurement);
  return measurement;
}

}  // namespace weir::channel_bench
