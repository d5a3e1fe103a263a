// Priorities: commands of every level that the device declares, and of undeclared levels, run and compute correctly.
// Which one runs first depends on timing on real devices, so `weir queues limits` examines that.
#include <fmt/format.h>

#include <algorithm>

#include "kernel/chain.h"
#include "lab/conformance/checks.h"
#include "lab/conformance/list.h"

namespace weir::conformance {
namespace {

// One stream per priority, with its own work and an input from the previous stream.
Step priority_step(std::span<const int> priorities) {
  constexpr std::int64_t kCount = 3'001;
  StepBuilder builder(23);
  const KernelShape add{.dims = {kCount, chain_ops({ChainOp::add})}, .scalars = {1.5f}};
  const BufferId shared = builder.uniform(ElementType::f32, kCount);
  for (std::size_t s = 0; s < priorities.size(); ++s) {
    const Lane lane{.stream = static_cast<StreamId>(s), .priority = static_cast<std::int8_t>(priorities[s])};
    const BufferId own = builder.uniform(ElementType::f32, kCount);
    for (int i = 0; i < 3; ++i) builder.launch("chain", lane, add, {{own}, {own}});
    builder.launch("chain", lane, add, {{shared}, {shared}});
  }
  return std::move(builder).seal(static_cast<int>(priorities.size()));
}

CaseOutcome examine_priorities(Subject& subject, std::span<const int> priorities) {
  const Step step = priority_step(priorities);
  for (const bool is_pipelined : {false, true})
    if (CaseOutcome outcome = same_buffers(subject, step, natural(step), {"inline", is_pipelined, 3});
        !outcome.is_passed())
      return outcome;
  return passed();
}

CaseOutcome declared_levels(Subject& subject) {
  const int lowest = subject.info.lowest_priority, highest = subject.info.highest_priority;
  if (lowest > highest) return failed(fmt::format("the levels go from {} to {}", lowest, highest));
  if (!subject.info.priorities && subject.info.priorities.reason.empty())
    return failed("priorities are not offered, without a reason");
  std::vector<int> levels;
  for (int level = lowest; level <= std::min(highest, lowest + 31); ++level) levels.push_back(level);
  return examine_priorities(subject, levels);
}

CaseOutcome one_level(Subject& subject) {
  if (!subject.info.priorities) return skipped("no priorities: " + subject.info.priorities.reason);
  if (subject.info.lowest_priority == subject.info.highest_priority) return failed("it offers priorities of one level");
  return passed();
}

}  // namespace

Cases priorities() {
  Cases cases;
  cases.push_back({"priorities", "every level that is declared", {}, declared_levels});
  cases.push_back({"priorities", "more than one level", {.runs = true}, one_level});
  cases.push_back({"priorities", "levels that are not there", {}, [](Subject& subject) {
                     constexpr int kLevels[] = {-40, 0, 40, 80, -128, 127};
                     return examine_priorities(subject, kLevels);
                   }});
  // A stream has the priority of its most urgent command.
  cases.push_back({"priorities", "several on one stream", {}, [](Subject& subject) {
                     constexpr int kLevels[] = {0, 1, 2, 0};
                     const Step step = priority_step(kLevels);
                     return same_buffers(subject, step, {"serial", 1, std::vector<StreamId>(step.commands().size(), 0)},
                                         {"inline", false, 2});
                   }});
  return cases;
}

}  // namespace weir::conformance
