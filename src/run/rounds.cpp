#include "run/rounds.h"

#include <numeric>
#include <utility>

#include "base/clock.h"
#include "measure/bootstrap.h"

namespace weir {

const char* name_of(RoundsEnd end) {
  switch (end) {
    case RoundsEnd::rounds:
      return "rounds";
    case RoundsEnd::enough:
      return "enough";
    case RoundsEnd::budget:
      return "budget";
    case RoundsEnd::interrupted:
      return "interrupted";
  }
  return "?";
}

std::vector<std::size_t> order_of_round(std::size_t sides, std::uint64_t seed, std::size_t round) {
  std::vector<std::size_t> order(sides);
  std::iota(order.begin(), order.end(), std::size_t{0});
  SplitMix random(SplitMix(seed + 0x632be59bd9b4e019U * (round + 1)).next());
  for (std::size_t left = sides; left > 1; --left)
    std::swap(order[left - 1], order[random.below(static_cast<std::uint32_t>(left))]);
  return order;
}

RoundsOutcome run_rounds(const RoundsPlan& plan, const RoundsControl& control, const std::atomic<bool>& stop) {
  RoundsOutcome outcome;
  const std::int64_t begun_ns = now_ns();
  std::int64_t round_ns = 0;  // how long the last round took that ran a process
  for (std::size_t round = 0; round < plan.max_rounds; ++round) {
    const std::int64_t now = now_ns();
    if (plan.budget_ns > 0 && round > 0 && now - begun_ns + round_ns > plan.budget_ns) {
      outcome.end = RoundsEnd::budget;
      return outcome;
    }
    bool has_run = false;
    for (const std::size_t side : order_of_round(plan.sides, plan.seed, round)) {
      if (control.wants && !control.wants(side, round)) continue;
      if (stop.load() || !control.run(side, round)) {
        outcome.end = RoundsEnd::interrupted;
        return outcome;
      }
      has_run = true;
    }
    if (has_run) round_ns = now_ns() - now;
    ++outcome.rounds;
    if (control.is_enough && outcome.rounds >= plan.min_rounds && control.is_enough(outcome.rounds)) {
      outcome.end = RoundsEnd::enough;
      return outcome;
    }
  }
  return outcome;
}

}  // namespace weir
