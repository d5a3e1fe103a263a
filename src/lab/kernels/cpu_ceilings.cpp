// Measures bandwidth and arithmetic of this CPU with a given number of threads. Knows threads and memory; never a
// package.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <barrier>
#include <functional>
#include <future>
#include <memory>
#include <system_error>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "base/units.h"
#include "lab/kernels/ceiling_loops.h"
#include "lab/kernels/package/host_memory.h"
#include "lab/kernels/roofline.h"

namespace weir::bench {
namespace {

constexpr std::uint64_t kMebi = 1U << 20;
constexpr int kMemoryRounds = 10, kArithmeticRounds = 60;
// Duration of one round: short, so that some rounds are undisturbed on a busy machine.
constexpr double kArithmeticNs = 2e6;

// The seconds of the fastest round in which all threads do `work`, from the first start to the last end. A ceiling is
// the best that can be reached, so the fastest round counts.
double best_seconds(int threads, int rounds, const std::function<void(int thread)>& prepare,
                    const std::function<void(int thread)>& work) {
  std::vector<std::int64_t> begun(static_cast<std::size_t>(threads)), ended(begun.size());
  double best = 0;
  std::barrier start(threads);
  std::barrier end(threads, [&]() noexcept {
    const auto first = *std::min_element(begun.begin(), begun.end());
    const double seconds = static_cast<double>(*std::max_element(ended.begin(), ended.end()) - first) / 1e9;
    best = best == 0 ? seconds : std::min(best, seconds);
  });
  std::promise<bool> is_complete;  // false: one could not be started, and the barriers would wait for it forever
  const std::shared_future<bool> may_begin = is_complete.get_future().share();
  std::vector<std::jthread> team;
  const auto start_one = [&](int t) {
    team.emplace_back([&, t] {
      if (!may_begin.get()) return;
      prepare(t);
      for (int round = 0; round < rounds; ++round) {
        start.arrive_and_wait();
        begun[static_cast<std::size_t>(t)] = now_ns();
        work(t);
        ended[static_cast<std::size_t>(t)] = now_ns();
        end.arrive_and_wait();
      }
    });
  };
  try {
    for (int t = 0; t < threads; ++t) start_one(t);
  } catch (const std::system_error& error) {
    is_complete.set_value(false);
    fail(fmt::format("cannot start {} threads: {}", threads, error.code().message()),
         "Raise the limits on processes and address space (ulimit -u, ulimit -v).");
  }
  is_complete.set_value(true);
  team.clear();
  return best;
}

Ceiling bandwidth_ceiling(int threads) {
  const std::uint64_t cache = package::last_cache_bytes().value_or(0);
  const auto available = static_cast<std::uint64_t>(std::max(0L, sysconf(_SC_AVPHYS_PAGES))) *
                         static_cast<std::uint64_t>(std::max(0L, sysconf(_SC_PAGESIZE)));
  // Several last-level caches may serve the threads; their number is unknown.
  const std::uint64_t wanted = 4 * cache * static_cast<std::uint64_t>(std::clamp(threads, 1, 8));
  const std::uint64_t total = std::min(std::clamp(wanted, 192 * kMebi, 3072 * kMebi), available / 4);
  const std::size_t count = total / 3 / sizeof(double) / static_cast<std::size_t>(threads);
  if (count < kMebi / sizeof(double)) return {std::nullopt, "not enough memory is free for arrays beyond the caches"};
  struct Arrays {
    std::unique_ptr<double[]> to, a, b;
  };
  std::vector<Arrays> arrays(static_cast<std::size_t>(threads));
  const double seconds = best_seconds(
      threads, kMemoryRounds,
      [&](int t) {
        // Allocated by the thread that uses them, so that they are on its node.
        Arrays& own = arrays[static_cast<std::size_t>(t)];
        own.to.reset(new double[count]());
        own.a.reset(new double[count]());
        own.b.reset(new double[count]());
      },
      [&](int t) {
        const Arrays& own = arrays[static_cast<std::size_t>(t)];
        triad(own.to.get(), own.a.get(), own.b.get(), count);
      });
  const double bytes = 3.0 * sizeof(double) * static_cast<double>(count) * threads;
  if (!(seconds > 0)) return {std::nullopt, "the clock saw no time pass"};
  std::string how =
      fmt::format("a[i] = b[i] + s c[i] over {} by {} thread{}, best of {}; two reads and a write count",
                  format_bytes(static_cast<std::uint64_t>(bytes)), threads, threads == 1 ? "" : "s", kMemoryRounds);
  if (cache == 0)
    how += "; the size of the last cache is not known";
  else if (total < 2 * cache)
    how += "; little memory was free, so caches may have helped";
  return {bytes / seconds, std::move(how)};
}

Ceiling compute_ceiling(Precision precision, int threads) {
  const FmaLoop loop = fma_loop(precision);
  if (loop.run == nullptr) return {std::nullopt, loop.how};
  std::uint64_t rounds = 1000;
  for (std::int64_t taken = 0; taken < static_cast<std::int64_t>(kArithmeticNs / 4) && rounds < (1ULL << 40);) {
    rounds *= 2;
    const std::int64_t begun = now_ns();
    loop.run(rounds);
    taken = now_ns() - begun;
  }
  rounds *= 4;
  std::vector<double> results(static_cast<std::size_t>(threads));
  const double seconds = best_seconds(
      threads, kArithmeticRounds, [](int) {}, [&](int t) { results[static_cast<std::size_t>(t)] = loop.run(rounds); });
  if (!(seconds > 0)) return {std::nullopt, "the clock saw no time pass"};
  return {loop.flop_per_round * static_cast<double>(rounds) * threads / seconds,
          fmt::format("chains of {} by {} thread{}, best of {}", loop.how, threads, threads == 1 ? "" : "s",
                      kArithmeticRounds)};
}

}  // namespace

Ceilings cpu_ceilings(int threads) {
  const int team = std::max(threads, 1);
  Ceilings ceilings;
  ceilings.device = "cpu";
  ceilings.bandwidth = bandwidth_ceiling(team);
  for (const Precision precision : package::kPrecisions) ceilings.compute[precision] = compute_ceiling(precision, team);
  return ceilings;
}

}  // namespace weir::bench
