// The machine's floor: how long two cores take to pass a cache line to each other and back, with nothing else.
#include <algorithm>
#include <array>
#include <atomic>
#include <memory>
#include <vector>

#include "channel/system.h"
#include "lab/channels/loops/list.h"
#include "lab/channels/loops/trips.h"

namespace weir::channel_bench {
namespace {

enum class Shape {
  flag,       // one line that both write
  one_line,   // one line in each direction, 56 bytes of payload beside the flag
  two_lines,  // one line of flag and one line of payload in each direction
};

struct alignas(kApart) Way {
  std::atomic<std::uint64_t> flag{0};
  std::array<std::uint64_t, 7> beside{};
  std::array<std::uint64_t, 8> behind{};
};

template <Shape kShape>
auto& payload(Way& way) {
  if constexpr (kShape == Shape::two_lines) {
    return way.behind;
  } else {
    return way.beside;
  }
}

template <Shape kShape>
Measurement measure(const Conditions& conditions) {
  constexpr std::uint64_t kBack = std::uint64_t{1} << 40;
  const int count = std::max(1000, static_cast<int>(conditions.sample_ms * 1e6 / 300));
  const auto take_sample = [&](Trips& trips, Tally& sent, Tally& received) {
    // Newly allocated on the heap: the cost of a line depends on its address (its slice of the last-level cache).
    const auto there = std::make_unique<Way>(), back = std::make_unique<Way>();
    run_team(conditions.cores, 2, [&](int thread) {
      std::remove_reference_t<decltype(payload<kShape>(*there))> words{};
      for (int i = 1; i <= count; ++i) {
        const auto turn = static_cast<std::uint64_t>(i);
        if (thread == 0) {
          words[0] = turn;
          sent.add(turn);
          const std::int64_t began = now_ns();
          if constexpr (kShape != Shape::flag) payload<kShape>(*there) = words;
          there->flag.store(turn, std::memory_order_release);  // pairs with the acquire of the other thread
          Way& answer = kShape == Shape::flag ? *there : *back;
          while (answer.flag.load(std::memory_order_acquire) != (turn | kBack)) {
          }
          if constexpr (kShape != Shape::flag) words = payload<kShape>(*back);
          trips.add(now_ns() - began);
          received.add(words[0]);
        } else {
          while (there->flag.load(std::memory_order_acquire) != turn) {
          }
          if constexpr (kShape != Shape::flag) {
            words = payload<kShape>(*there);
            payload<kShape>(*back) = words;
          }
          Way& answer = kShape == Shape::flag ? *there : *back;
          answer.flag.store(turn | kBack, std::memory_order_release);  // pairs with the acquire of the first thread
        }
      }
    });
  };
  return measure_each_trip(conditions, take_sample, Trips(static_cast<std::size_t>(count)));
}

template <Shape kShape>
Benchmark make(const Conditions& conditions, std::string name, std::string what) {
  return {.name = std::move(name),
          .contestant = "floor",
          .is_ours = false,
          .what = std::move(what),
          .run = measure<kShape>,
          .unavailable = core_count(conditions) < 2 ? kNeedsTwoCores : ""};
}

std::vector<Benchmark> benchmarks(const Conditions& conditions) {
  return {
      make<Shape::flag>(conditions, "flag", "one line there and back, nothing in it"),
      make<Shape::one_line>(conditions, "one_line", "56 bytes in the flag's own line, there and back"),
      make<Shape::two_lines>(conditions, "two_lines", "a flag's line and 64 bytes in another, there and back"),
  };
}

}  // namespace

Group ping_pong() { return {"ping_pong", "the floor: a cache line between two cores and back", "", benchmarks}; }

}  // namespace weir::channel_bench
