// Observations whose latencies are known beforehand, for tests of what is made of them.
#pragma once

#include <functional>
#include <vector>

#include "lab/preempt/curve.h"
#include "measure/bootstrap.h"

namespace weir::preempt::testing {

inline const Mechanism kNone{"none", "", "nothing is done", nullptr, nullptr, nullptr};
inline const Mechanism kPriority{"priority", "", "streams of two priorities", nullptr, nullptr, nullptr};
inline const Mechanism kGate{"launch_gate", "Lv1", "few commands in flight", nullptr, nullptr, nullptr};
inline const Mechanism kFlag{"cooperative_flag", "Lv2", "blocks look at a flag", nullptr, nullptr, nullptr};

// `latency` gives that of the i-th request to its first block; it ends 1 us later.
inline Observation observed(int requests, const std::function<double(int, SplitMix&)>& latency,
                            std::uint64_t seed = 1) {
  Observation seen;
  SplitMix random(seed);
  for (int i = 0; i < requests; ++i) {
    const std::int64_t due = 3'000'000LL * i;
    const auto started = due + static_cast<std::int64_t>(latency(i, random));
    seen.requests.push_back({due, due + 500, started, started + 1000});
  }
  return seen;
}

// Waits between nothing and `blocks` block times on top of `min_ns`: a request comes at any moment of them.
inline Point waiting(const Victim& victim, double blocks, double min_ns, int requests = 400,
                     std::uint64_t victim_blocks = 900) {
  Observation seen = observed(
      requests,
      [&](int, SplitMix& random) { return min_ns + random.fraction() * blocks * static_cast<double>(victim.block_ns); },
      static_cast<std::uint64_t>(victim.block_ns));
  seen.victim_wall_ns = 1'000'000'000;
  seen.victim_blocks = victim_blocks;
  seen.lost_blocks = 0;
  seen.repeated_blocks = 0;
  seen.block_ns = victim.block_ns;
  ExperimentPlan plan;
  plan.requests = requests;
  return point_of(victim, std::move(seen), plan);
}

inline std::vector<Victim> lengths(int waves = 4) {
  std::vector<Victim> victims;
  for (const std::int64_t block : {10'000, 100'000, 1'000'000, 10'000'000})
    victims.push_back({VictimKind::waves, waves, block});
  return victims;
}

inline Curve curve_of(const Mechanism& mechanism, double blocks, double min_ns, std::uint64_t victim_blocks = 900,
                      int waves = 4) {
  Curve curve;
  curve.mechanism = &mechanism;
  for (const Victim& victim : lengths(waves))
    curve.points.push_back(waiting(victim, blocks, min_ns, 400, victim_blocks));
  return curve;
}

inline Alone quiet_alone() {
  const auto latency = [](int, SplitMix& random) { return 10'000 + 1000 * random.fraction(); };
  return alone_of({observed(400, latency, 1), observed(400, latency, 2), observed(400, latency, 3)}, 1);
}

inline std::vector<Undisturbed> undisturbed(const std::vector<Victim>& victims) {
  std::vector<Undisturbed> all;
  for (const Victim& victim : victims) {
    Undisturbed one;
    one.victim = victim;
    one.observation.victim_wall_ns = 1'000'000'000;
    one.observation.victim_blocks = 1000;
    one.observation.block_ns = victim.block_ns;
    all.push_back(one);
  }
  return all;
}

inline ExperimentPlan plan_of(std::vector<Victim> victims) {
  ExperimentPlan plan;
  plan.victims = std::move(victims);
  plan.requests = 400;
  return plan;
}

// None waits for whole kernels, priority for a block, the flag for hardly anything; one thing cannot be had.
inline Findings usual_findings() {
  std::vector<Curve> curves = {curve_of(kNone, 8, 10'000), curve_of(kPriority, 1, 10'000),
                               curve_of(kFlag, 0, 12'000, 850)};
  Curve gate;
  gate.mechanism = &kGate;
  gate.offered = lacking("nothing can be held back here");
  curves.push_back(gate);
  return conclude(plan_of(lengths()), quiet_alone(), undisturbed(lengths()), std::move(curves));
}

}  // namespace weir::preempt::testing
