#include "run/step_view.h"

#include "device/plan.h"

namespace weir {

StepView view_of(const RunRequest& request, BuiltRun built) {
  const Workload& workload = workload_of(request);
  StepView view;
  view.workload = workload.name;
  view.unit = workload.unit;
  view.roles = workload.roles;
  view.scale = name_of(built.scale);
  view.precision = name_of(built.params.precision);
  view.streams = built.streams;
  for (const auto& [name, value] : built.params.values()) view.params.emplace_back(name, to_string(value));

  const StepPlan plan = make_plan(built.step, built.placement, true);
  std::vector<CommandId> recorder(plan.event_count);
  for (CommandId id = 0; id < plan.hops.size(); ++id)
    if (plan.hops[id].flags & StepPlan::kRecords) recorder[plan.hops[id].event] = id;
  for (CommandId id = 0; id < plan.hops.size(); ++id) {
    const StepPlan::Hop& hop = plan.hops[id];
    for (std::uint32_t i = 0; i < hop.wait_count; ++i) {
      const CommandId before = recorder[plan.waits[hop.first_wait + i]];
      // Within an iteration a command waits only for earlier ones; a later one must be of the previous iteration.
      view.waits.push_back({before, id, before > id});
    }
  }
  view.placement = std::move(built.placement);
  view.step = std::move(built.step);
  return view;
}

}  // namespace weir
