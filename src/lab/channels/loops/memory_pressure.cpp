// A pool that is nearly or completely empty, or asked for every size at once: measures the cost of a request, typical
// and at the 99th percentile. Each request is timed individually, so every number includes a reading of the clock.
#include <algorithm>
#include <array>
#include <cstring>
#include <random>
#include <vector>

#include "base/error.h"
#include "channel/spsc.h"
#include "lab/channels/loops/allocators.h"
#include "lab/channels/loops/list.h"
#include "lab/channels/loops/trips.h"

namespace weir::channel_bench {
namespace {

constexpr std::size_t kKilo = std::size_t{1} << 10, kMega = std::size_t{1} << 20;

PoolOptions tight(std::size_t slots, Exhaustion when_exhausted) {
  return {.limit_bytes = slots * kKilo, .when_exhausted = when_exhausted};
}

decltype(Measurement::facts) facts_of(const MemoryPool& pool) {
  const PoolStatistics now = pool.statistics();
  return {{"refused", static_cast<double>(now.refused)},
          {"source_calls", static_cast<double>(now.source_calls)},
          {"drained", static_cast<double>(now.drained)},
          {"peak_source_bytes", static_cast<double>(now.peak_source_bytes)}};
}

// All slots are in use: the cost of a refusal, or of getting a slot nevertheless.
enum class Answer { refuse, refuse_by_error, grow };

template <Answer kAnswer>
Measurement measure_exhausted(const Conditions& conditions) {
  constexpr std::size_t kSlots = 256;
  const BoundToCore bound(conditions.cores);
  const int requests = kAnswer == Answer::refuse ? 2000 : 200;
  decltype(Measurement::facts) facts;
  Measurement measurement = measure_each_trip(conditions, [&](Trips& times, Tally& sent, Tally& received) {
    MemoryPool pool(tight(kSlots, kAnswer == Answer::grow ? Exhaustion::grow : Exhaustion::refuse));
    std::vector<Slot> held;
    held.reserve(kSlots + static_cast<std::size_t>(requests));
    while (held.size() < kSlots) held.push_back(pool.allocate(kKilo));
    for (int i = 0; i < requests; ++i) {
      bool is_right = false;
      const std::int64_t began = now_ns();
      if constexpr (kAnswer == Answer::refuse) {
        is_right = !pool.try_allocate(kKilo);
      } else if constexpr (kAnswer == Answer::refuse_by_error) {
        try {
          held.push_back(pool.allocate(kKilo));
        } catch (const Error&) {
          is_right = true;
        }
      } else {
        held.push_back(pool.try_allocate(kKilo));
        is_right = static_cast<bool>(held.back());
      }
      times.add(now_ns() - began);
      sent.add(1);
      if (is_right) received.add(1);
    }
    facts = facts_of(pool);
  });
  measurement.facts = std::move(facts);
  return measurement;
}

// One thread allocates and passes on, the other frees. The pool has no more slots than the channel has places, so the
// allocating thread is refused repeatedly, and retries until it gets a slot.
Measurement measure_near(const Conditions& conditions, const PoolOptions& options) {
  constexpr std::size_t kPlaces = 32;
  MemoryPool pool(options);
  const int commands = std::max(1000, static_cast<int>(conditions.sample_ms * 1e6 / 500));
  Measurement measurement = measure_each_trip(conditions, [&](Trips& times, Tally& sent, Tally& received) {
    Spsc<PayloadHandle> channel(kPlaces);
    run_team(conditions.cores, 2, [&](int thread) {
      for (int i = 0; i < commands; ++i) {
        if (thread == 0) {
          const std::int64_t began = now_ns();
          Slot slot = pool.try_allocate(kKilo);
          for (int spins = 0; !slot; ++spins) {
            System::relax(spins);
            slot = pool.try_allocate(kKilo);
          }
          times.add(now_ns() - began);
          const auto value = static_cast<std::uint64_t>(i);
          std::memcpy(slot.data(), &value, sizeof value);
          sent.add(value);
          channel.push(slot.release());
        } else {
          PayloadHandle handle = 0;
          channel.pop(handle);
          const Slot slot = Slot::adopt(handle, kKilo);
          std::uint64_t value = 0;
          std::memcpy(&value, slot.data(), sizeof value);
          received.add(value);
        }
      }
    });
  });
  measurement.facts = facts_of(pool);
  return measurement;
}

// Sizes from 256 B to 1 MB, uniform in the logarithm; 64 alive, replaced in random order.
struct AnyPool {
  static constexpr std::string_view kName = "pool";
  static constexpr bool kIsOurs = true;
  using Held = Slot;
  explicit AnyPool(std::size_t limit) : pool({.limit_bytes = limit}) {}
  Held take(std::size_t size) { return pool.allocate(size); }
  void give(Held& held, std::size_t) { held.reset(); }
  static std::byte* data(const Held& held) { return held.data(); }
  auto facts() const { return facts_of(pool); }
  MemoryPool pool;
};
struct AnyMalloc {
  static constexpr std::string_view kName = "malloc";
  static constexpr bool kIsOurs = false;
  using Held = std::byte*;
  explicit AnyMalloc(std::size_t) {}
  Held take(std::size_t size) { return static_cast<std::byte*>(std::malloc(size)); }
  void give(Held& held, std::size_t) { std::free(std::exchange(held, nullptr)); }
  static std::byte* data(const Held& held) { return held; }
  static decltype(Measurement::facts) facts() { return {}; }
};
struct AnyPmr {
  static constexpr std::string_view kName = "pmr_synchronized";
  static constexpr bool kIsOurs = false;
  using Held = std::byte*;
  explicit AnyPmr(std::size_t) : resource({.max_blocks_per_chunk = 0, .largest_required_pool_block = 4 * kMega}) {}
  Held take(std::size_t size) { return static_cast<std::byte*>(resource.allocate(size)); }
  void give(Held& held, std::size_t size) {
    if (held != nullptr) resource.deallocate(std::exchange(held, nullptr), size);
  }
  static std::byte* data(const Held& held) { return held; }
  static decltype(Measurement::facts) facts() { return {}; }
  std::pmr::synchronized_pool_resource resource;
};

template <class Any>
Measurement measure_sizes(const Conditions& conditions, std::size_t limit) {
  const BoundToCore bound(conditions.cores);
  Measurement measurement;
  Trips times;
  Any any(limit);
  struct Alive {
    typename Any::Held held{};
    std::size_t size = 0;
    std::uint64_t value = 0;
  };
  std::array<Alive, 64> alive;
  Tally sent, received;
  const auto replace = [&](Alive& one, std::size_t size, std::uint64_t value) {
    if (one.size != 0) {
      std::uint64_t seen = 0;
      std::memcpy(&seen, Any::data(one.held), sizeof seen);
      received.add(seen);
    }
    const std::int64_t began = now_ns();
    if (one.size != 0) any.give(one.held, one.size);
    if (size != 0) one.held = any.take(size);
    const std::int64_t ns = now_ns() - began;
    one.size = size;
    if (size == 0) return ns;
    std::memcpy(Any::data(one.held), &value, sizeof value);
    sent.add(value);
    return ns;
  };
  std::mt19937_64 random(conditions.seed);
  const int requests = std::max(1000, static_cast<int>(conditions.sample_ms * 1e6 / 500));
  for (int sample = -1; sample < conditions.samples; ++sample) {
    for (int i = 0; i < requests; ++i) {
      const std::size_t floor = std::size_t{256} << random() % 12;
      Alive& one = alive[random() % alive.size()];
      const std::size_t size = floor + random() % floor;
      const std::int64_t ns = replace(one, size, random());
      if (sample >= 0) times.add(ns);
    }
    times.end_sample(measurement);
  }
  for (Alive& one : alive) replace(one, 0, 0);
  times.end(measurement);
  measurement.facts = any.facts();
  judge(sent, received, measurement);
  return measurement;
}

// Allocates in a row and frees in a row far more than any cache holds: the cost of exchanging magazines.
Measurement measure_misses(const Conditions& conditions, std::size_t thread_cache_bytes) {
  constexpr std::size_t kSlots = 4096;
  const BoundToCore bound(conditions.cores);
  MemoryPool pool({.limit_bytes = 64 * kMega, .thread_cache_bytes = thread_cache_bytes});
  std::vector<Slot> held(kSlots);
  const int rounds = std::max(1, static_cast<int>(conditions.sample_ms * 1e6 / (kSlots * 40.0)));
  Measurement measurement = measure_warm(conditions, [&](Tally& sent, Tally& received) {
    std::int64_t ns = 0;
    for (int round = 0; round < rounds; ++round) {
      const std::int64_t began = now_ns();
      for (Slot& slot : held) slot = pool.allocate(kKilo);
      ns += now_ns() - began;
      for (std::size_t i = 0; i < kSlots; ++i) {
        std::memcpy(held[i].data(), &i, sizeof i);
        sent.add(i);
      }
      for (const Slot& slot : held) {
        std::size_t value = 0;
        std::memcpy(&value, slot.data(), sizeof value);
        received.add(value);
      }
      const std::int64_t freed = now_ns();
      for (Slot& slot : held) slot.reset();
      ns += now_ns() - freed;
    }
    return static_cast<double>(ns) / (static_cast<double>(rounds) * kSlots);
  });
  measurement.facts = facts_of(pool);
  return measurement;
}

std::vector<Benchmark> benchmarks(const Conditions& conditions) {
  std::vector<Benchmark> all;
  const auto add = [&](std::string name, std::string_view contestant, bool is_ours, std::string what,
                       Run run) -> Benchmark& {
    all.push_back({.name = std::move(name),
                   .contestant = std::string(contestant),
                   .is_ours = is_ours,
                   .what = std::move(what),
                   .run = std::move(run)});
    return all.back();
  };
  add("exhausted", "pool_refuse", true, "all 256 slots in use; one more request gets an empty answer",
      measure_exhausted<Answer::refuse>);
  add("exhausted", "pool_error", true, "all 256 slots in use; one more request gets an exception",
      measure_exhausted<Answer::refuse_by_error>);
  add("exhausted", "pool_grow", true, "all 256 slots in use; one more request is served beyond the limit",
      measure_exhausted<Answer::grow>);
  const auto near = [&](std::string_view contestant, std::string what, const PoolOptions& options) {
    Benchmark& benchmark = add("near", contestant, true, std::move(what),
                               [options](const Conditions& c) { return measure_near(c, options); });
    if (conditions.cores.size() < 2) benchmark.unavailable = kNeedsTwoCores;
  };
  near("pool_refuse", "32 slots, 32 places in the channel: allocate until it works; another thread frees",
       tight(32, Exhaustion::refuse));
  near("pool_grow", "the same with a pool that may grow beyond its 32 slots", tight(32, Exhaustion::grow));
  near("pool_ample", "the same with a pool that has plenty", {.limit_bytes = 64 * kMega});
  const auto sizes = [&]<class Any>(std::string name, std::size_t limit, std::string what) {
    add(std::move(name), Any::kName, Any::kIsOurs, std::move(what),
        [limit](const Conditions& c) { return measure_sizes<Any>(c, limit); });
  };
  const std::string mixed = "256 B to 1 MB, 64 alive, replaced in random order: free one, allocate another";
  sizes.template operator()<AnyPool>("many_sizes", 256 * kMega, mixed);
  sizes.template operator()<AnyMalloc>("many_sizes", 256 * kMega, mixed);
  sizes.template operator()<AnyPmr>("many_sizes", 256 * kMega, mixed);
  add("misses", "pool", true, "4096 of 1 KB allocated in a row, freed in a row; magazines of 29",
      [](const Conditions& c) { return measure_misses(c, 16 * kMega); });
  add("misses", "pool_uncached", true, "the same where a thread may keep two slots",
      [](const Conditions& c) { return measure_misses(c, 0); });
  return all;
}

}  // namespace

Group memory_pressure() {
  return {"memory_pressure", "a pool that is nearly empty, or asked for every size at once", "", benchmarks};
}

}  // namespace weir::channel_bench
