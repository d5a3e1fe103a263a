// How groups add their benchmarks, and what limits all loops of benchmarks. Knows no channel.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>

#include "channel/system.h"
#include "lab/channels/loops/benchmark.h"
#include "lab/channels/loops/team.h"
#include "measure/environment.h"

namespace weir::channel_bench {

using Run = std::function<Measurement(const Conditions&)>;

// Why a benchmark cannot be run on too few cores.
inline constexpr const char* kNeedsTwoCores = "two threads that only spin need two cores";
inline constexpr const char* kNeedsOwnCore = "a consumer that works by the clock needs a core of its own";

template <class Contestant>
Benchmark entry(std::string name, Unit unit, std::string what, Run run) {
  return {.name = std::move(name),
          .contestant = std::string(Contestant::kName),
          .is_ours = Contestant::kIsOurs,
          .unit = unit,
          .what = std::move(what),
          .run = std::move(run)};
}

// The requirements document asks less of the pattern that channels are to replace.
inline Target target_for(std::string_view contestant, Target channel, Target mutex) {
  return contestant.starts_with("mutex") ? mutex : channel;
}

inline int core_count(const Conditions& conditions) {
  return static_cast<int>(conditions.cores.empty() ? usable_cores().size() : conditions.cores.size());
}
// For `what`: empty if each thread has its own core.
inline std::string sharing(const Conditions& conditions, int threads) {
  const int cores = core_count(conditions);
  if (cores >= threads) return {};
  return " (" + std::to_string(threads) + " threads on " + std::to_string(cores) + (cores == 1 ? " core)" : " cores)");
}

// `sample(sent, received)` takes one sample. The first one is warm-up and does not count.
template <class Sample>
Measurement measure_warm(const Conditions& conditions, Sample&& sample) {
  Measurement measurement;
  Tally sent, received;
  for (int i = -1; i < conditions.samples; ++i) {
    const double value = sample(sent, received);
    if (i >= 0) measurement.samples.push_back(value);
  }
  judge(sent, received, measurement);
  return measurement;
}

// How long threads of a sample wait for commands that do not come. Lost commands then show in the tallies.
class Patience {
 public:
  // Called with the number of attempts in a row without a change.
  bool is_over(int spins) const noexcept { return (spins & 1023) == 1023 && now_ns() > deadline_ns_; }
  std::int64_t deadline_ns() const noexcept { return deadline_ns_; }

  // Waits until `attempt` is true; returns false if time is up. Every contestant waits this way.
  template <class Attempt>
  bool until(Attempt&& attempt) const noexcept(noexcept(attempt())) {
    for (int spins = 0; !attempt(); ++spins) {
      if (is_over(spins)) return false;
      System::relax(spins);
    }
    return true;
  }
  // The same without a pause between attempts: for threads with their own cores, where every nanosecond counts.
  template <class Attempt>
  bool poll(Attempt&& attempt) const noexcept(noexcept(attempt())) {
    for (int spins = 0; !attempt(); spins = (spins + 1) & 0xffff)
      if (is_over(spins)) return false;
    return true;
  }

 private:
  static constexpr std::int64_t kNs = 10'000'000'000;
  std::int64_t deadline_ns_ = now_ns() + kNs;
};

}  // namespace weir::channel_bench
