// Memory for payloads: allocate, free, write, read, and all of these in turn, on one thread and from one thread to
// another.
#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <vector>

#include "lab/channels/loops/allocators.h"
#include "lab/channels/loops/entry.h"
#include "lab/channels/loops/list.h"
#include "lab/channels/loops/team.h"

namespace weir::channel_bench {
namespace {

constexpr std::size_t kKilo = std::size_t{1} << 10, kMega = std::size_t{1} << 20;

enum class Timed { allocate, deallocate, write, read, cycle };

void mark(std::byte* memory, std::uint64_t value) { std::memcpy(memory, &value, sizeof value); }
std::uint64_t marked(const std::byte* memory) {
  std::uint64_t value = 0;
  std::memcpy(&value, memory, sizeof value);
  return value;
}

// Batches are allocated, marked, read back and freed; only one of the four is timed.
template <class Allocator, Timed kTimed>
Measurement measure_handful(const Conditions& conditions, std::size_t size) {
  const BoundToCore bound(conditions.cores);
  Allocator allocator(size);
  std::vector<typename Allocator::Held> held(size >= kMega ? 16 : 64);
  std::array<std::byte, kKilo> buffer{};
  std::uint64_t next = 0;
  // An estimate for a whole batch: the untimed parts take longer than the timed one.
  const double handful_ns = static_cast<double>(held.size()) * 150;
  const int rounds = std::max(20, static_cast<int>(conditions.sample_ms * 1e6 / handful_ns));
  return measure_warm(conditions, [&](Tally& sent, Tally& received) {
    std::int64_t total_ns = 0;
    for (int round = 0; round < rounds; ++round) {
      std::int64_t began = now_ns();
      for (auto& one : held) one = allocator.take();
      if (kTimed == Timed::allocate) total_ns += now_ns() - began;
      for (const auto& one : held) {
        mark(allocator.data(one), next);
        sent.add(next++);
      }
      began = now_ns();
      if constexpr (kTimed == Timed::write) {
        for (const auto& one : held) {
          std::byte* const to = allocator.data(one);
          std::memcpy(buffer.data(), to, sizeof(std::uint64_t));
          std::memcpy(to, buffer.data(), kKilo);
          keep(to);
        }
        total_ns += now_ns() - began;
      }
      if constexpr (kTimed == Timed::read) {
        for (const auto& one : held) {
          std::memcpy(buffer.data(), allocator.data(one), kKilo);
          keep(buffer.data());
        }
        total_ns += now_ns() - began;
      }
      for (const auto& one : held) received.add(marked(allocator.data(one)));
      began = now_ns();
      for (auto& one : held) allocator.give(one);
      if (kTimed == Timed::deallocate) total_ns += now_ns() - began;
    }
    return static_cast<double>(total_ns) / (static_cast<double>(rounds) * static_cast<double>(held.size()));
  });
}

// One at a time, in the tightest possible loop.
template <class Allocator>
Measurement measure_cycle(const Conditions& conditions, std::size_t size) {
  const BoundToCore bound(conditions.cores);
  Allocator allocator(size);
  // Short enough that some samples are not interrupted.
  const auto count = static_cast<std::uint64_t>(std::max(1000.0, conditions.sample_ms * 1e6 / 20));
  return measure_warm(conditions, [&](Tally& sent, Tally& received) {
    std::uint64_t there = 0;
    const std::int64_t began = now_ns();
    for (std::uint64_t i = 0; i < count; ++i) {
      auto held = allocator.take();
      std::byte* const memory = allocator.data(held);
      keep(memory);
      there += memory != nullptr ? 1 : 0;
      allocator.give(held);
    }
    const std::int64_t ns = now_ns() - began;
    sent.count += count;
    received.count += there;
    return static_cast<double>(ns) / static_cast<double>(count);
  });
}

// One thread allocates batches, the other frees them; each times only the allocator's work.
template <class Allocator>
Measurement measure_across(const Conditions& conditions, std::size_t size) {
  Allocator allocator(size);
  std::vector<typename Allocator::Held> held(64);
  const double handful_ns = static_cast<double>(held.size()) * 150;
  const int rounds = std::max(20, static_cast<int>(conditions.sample_ms * 1e6 / handful_ns));
  return measure_warm(conditions, [&](Tally& sent, Tally& received) {
    std::atomic<int> turn{0};  // even: the allocating thread's turn
    std::int64_t spent_ns[2] = {0, 0};
    const auto wait = [&](int value) {
      // Pairs with the release of the other thread.
      for (int spins = 0; turn.load(std::memory_order_acquire) != value; ++spins) System::relax(spins);
    };
    run_team(conditions.cores, 2, [&](int thread) {
      for (int round = 0; round < rounds; ++round) {
        wait(2 * round + thread);
        if (thread == 0) {
          const std::int64_t began = now_ns();
          for (auto& one : held) one = allocator.take();
          spent_ns[0] += now_ns() - began;
          for (std::size_t i = 0; i < held.size(); ++i) {
            const std::uint64_t value = static_cast<std::uint64_t>(round) * held.size() + i;
            mark(allocator.data(held[i]), value);
            sent.add(value);
          }
        } else {
          for (const auto& one : held) received.add(marked(allocator.data(one)));
          const std::int64_t began = now_ns();
          for (auto& one : held) allocator.give(one);
          spent_ns[1] += now_ns() - began;
        }
        turn.store(2 * round + thread + 1, std::memory_order_release);  // pairs with the acquire in wait()
      }
    });
    return static_cast<double>(spent_ns[0] + spent_ns[1]) /
           (static_cast<double>(rounds) * static_cast<double>(held.size()));
  });
}

template <class Allocator>
struct Offer {
  std::vector<Benchmark>& all;
  const Conditions& conditions;

  Benchmark& add(std::string name, std::string what, std::optional<Target> target, Run run) {
    all.push_back(entry<Allocator>(std::move(name), Unit::ns_per_operation, std::move(what), std::move(run)));
    all.back().target = std::move(target);
    return all.back();
  }
  void operator()(const std::string& size_name, std::size_t size) {
    const auto with = [size](Measurement (*measure)(const Conditions&, std::size_t)) {
      return [measure, size](const Conditions& c) { return measure(c, size); };
    };
    const std::string handful = size >= kMega ? "16" : "64";
    add("allocate/" + size_name, "allocate " + handful + " of " + size_name + " in a row; one thread",
        Target{1000, "allocation < 1 us"}, with(measure_handful<Allocator, Timed::allocate>));
    add("deallocate/" + size_name, "free " + handful + " of " + size_name + " in a row; one thread",
        Target{500, "deallocation < 500 ns"}, with(measure_handful<Allocator, Timed::deallocate>));
    if (size == kKilo) {
      add("write/" + size_name, "write 1 KB into each of 64; one thread", Target{100, "write of 1 KB < 100 ns"},
          with(measure_handful<Allocator, Timed::write>));
      add("read/" + size_name, "read 1 KB from each of 64; one thread", Target{100, "read of 1 KB < 100 ns"},
          with(measure_handful<Allocator, Timed::read>));
    }
    add("cycle/" + size_name, "allocate and free, one at a time; one thread", Target{1500, "allocation + deallocation"},
        with(measure_cycle<Allocator>));
    if (!Allocator::kIsShared) return;
    Benchmark& across = add("across/" + size_name,
                            "allocated by one thread, freed by another: what both take, without the handing over",
                            std::nullopt, with(measure_across<Allocator>));
    if (conditions.cores.size() < 2) across.unavailable = kNeedsTwoCores;
  }
};

std::vector<Benchmark> benchmarks(const Conditions& conditions) {
  std::vector<Benchmark> all;
  for (const auto& [name, size] : {std::pair{"1KB", kKilo}, std::pair{"1MB", kMega}})
    for_each_allocator(
        [&, name = name, size = size]<class Allocator>() { Offer<Allocator>{all, conditions}(name, size); });
  return all;
}

}  // namespace

Group memory_pool() {
  return {"memory_pool", "memory for payloads: allocate, free, write, read, cycle", "Memory Pool Operations",
          benchmarks};
}

}  // namespace weir::channel_bench
