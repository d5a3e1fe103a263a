#include "lab/race/run_plan.h"

#include <fmt/format.h>

#include <algorithm>

#include "trace/race_format.h"

namespace weir::race {

std::string text(const RunPlan& plan) {
  std::string lines = fmt::format("{}\n", race_format::kPlanTitle);
  std::size_t left = race_format::kMostInstructions;
  const auto add = [&](const std::string& line) {
    if (left == 0) return;
    --left;
    lines += line + "\n";
  };
  if (plan.observes) add("observe");
  if (plan.blind) {
    add(fmt::format("most {}", plan.blind->most));
    add(fmt::format("blind {} {} {}", plan.blind->seed, plan.blind->one_in,
                    std::min(plan.blind->ns, race_format::kLongestDelayNs)));
  }
  for (const CommandName name : plan.hashed) add(fmt::format("hash {}", text(name)));
  for (const CommandName name : plan.stacks) add(fmt::format("stack {}", text(name)));
  // Waits before delays: a plan that is cut must not lose what makes the program right.
  for (const Wait& wait : plan.waits)
    add(wait.second ? fmt::format("wait {} {}", text(wait.first), text(*wait.second))
                    : fmt::format("join {}", text(wait.first)));
  for (const Delay& delay : plan.delays)
    add(fmt::format("delay {} {}", text(delay.before), std::min(delay.ns, race_format::kLongestDelayNs)));
  return lines;
}

std::vector<Delay> delays_of(const BlindDelays& blind, const Log& log) {
  std::vector<Delay> delays;
  for (const Call& call : log.calls) {
    if (!is_command(call.kind) || call.name.sequence == 0 || delays.size() == blind.most) continue;
    if (race_format::mix(blind.seed, call.name.thread, call.name.sequence) % blind.one_in == 0)
      delays.push_back({call.name, blind.ns});
  }
  return delays;
}

}  // namespace weir::race
