#include "trace/analyse/model_use.h"

#include <algorithm>
#include <tuple>
#include <unordered_map>

#include "trace/analyse/iterations.h"
#include "trace/analyse/operator_calls.h"
#include "trace/device_spans.h"
#include "trace/intervals.h"

namespace weir {
namespace {

std::size_t number_of(Phase phase) noexcept { return static_cast<std::size_t>(phase); }

// What is known of a command; null where nothing is.
const Operation* operation_of(const Timeline& timeline, const Span& span) {
  if (span.call >= timeline.calls.size()) return nullptr;
  const std::uint32_t operation = timeline.calls[span.call].operation;
  return operation < timeline.operations.size() ? &timeline.operations[operation] : nullptr;
}

// By command: how long the device was idle before it because the host had not submitted it.
std::vector<std::uint64_t> late_by_command(const Timeline& timeline) {
  std::vector<std::uint64_t> late(timeline.spans.size());
  const std::vector<std::uint32_t> order = device_work_by_start(timeline);
  std::int64_t until = order.empty() ? 0 : timeline.spans[order.front()].ended_ns;
  for (const std::uint32_t index : order) {
    const Span& span = timeline.spans[index];
    if (span.started_ns > until && span.submitted_ns != kNoTime)
      late[index] = distance_ns(until, std::min(span.submitted_ns, span.started_ns));
    until = std::max(until, span.ended_ns);
  }
  return late;
}

// By module of the timeline: its own commands, without those of its parts.
std::vector<ModuleUse> with_parts(const Timeline& timeline, std::vector<ModuleUse> own) {
  // Parents come before their parts, so from the back every part is complete when it is added.
  for (std::size_t i = own.size(); i-- > 0;) {
    own[i].name = timeline.modules[i].name;
    own[i].parent = timeline.modules[i].parent;
    own[i].all.commands += own[i].own.commands;
    own[i].all.total_ns += own[i].own.total_ns;
    if (own[i].parent >= i) continue;  // none
    ModuleUse& parent = own[own[i].parent];
    parent.all.commands += own[i].all.commands;
    parent.all.total_ns += own[i].all.total_ns;
    for (std::size_t phase = 0; phase < kPhases; ++phase) parent.phase_ns[phase] += own[i].phase_ns[phase];
  }
  std::vector<std::uint32_t> order;
  for (std::uint32_t i = 0; i < own.size(); ++i)
    if (own[i].all.commands > 0) order.push_back(i);
  std::stable_sort(order.begin(), order.end(),
                   [&](std::uint32_t a, std::uint32_t b) { return own[a].all.total_ns > own[b].all.total_ns; });
  std::vector<std::uint32_t> place(own.size(), kNoModule);
  for (std::uint32_t i = 0; i < order.size(); ++i) place[order[i]] = i;
  std::vector<ModuleUse> found;
  for (const std::uint32_t i : order) {
    found.push_back(own[i]);
    found.back().parent = own[i].parent < i ? place[own[i].parent] : kNoModule;
  }
  return found;
}

void add_steps(const Timeline& timeline, std::span<const TraceRange> steps, ModelUse& to) {
  const std::vector<std::uint32_t> order = device_work_by_start(timeline);
  const Iterations placed = place_in_iterations(timeline, order, steps);
  for (const TraceRange& step : steps) to.steps.push_back({.name = step.name});
  for (std::size_t i = 0; i < order.size(); ++i) {
    const Span& span = timeline.spans[order[i]];
    const std::uint64_t ns = distance_ns(span.started_ns, span.ended_ns);
    if (placed.of[i] == kNoIteration) {
      to.outside_steps.add(ns);
      continue;
    }
    const Operation* const operation = operation_of(timeline, span);
    StepUse& step = to.steps[placed.of[i]];
    step.work.add(ns);
    step.phase_ns[number_of(operation == nullptr ? Phase::unknown : operation->phase)] += ns;
  }
}

}  // namespace

const char* to_string(Phase phase) noexcept {
  constexpr std::array<const char*, kPhases> kNames = {"unknown", "forward", "backward", "optimizer"};
  return kNames[number_of(phase)];
}

ModelUse model_use(const Timeline& timeline, std::span<const TraceRange> steps) {
  ModelUse found;
  if (!timeline.has_operations) {
    found.reason = "operators were not read (--operators reads those of PyTorch's and XLA's traces)";
    return found;
  }
  const std::vector<std::uint64_t> late = late_by_command(timeline);
  std::vector<ModuleUse> modules(timeline.modules.size());
  std::unordered_map<std::uint64_t, std::size_t> places;  // by name and shapes
  const std::vector<bool> begins = operator_calls(timeline);
  std::vector<bool> is_counted(timeline.calls.size());  // a graph's launch submits many commands
  for (const Span& span : timeline.spans) {
    if (!is_device_work(span)) continue;
    const std::uint64_t ns = distance_ns(span.started_ns, span.ended_ns);
    found.work.add(ns);
    const Operation* const operation = operation_of(timeline, span);
    if (operation == nullptr) {
      (span.call >= timeline.calls.size() ? found.without_call : found.outside).add(ns);
      found.without_module.add(ns);
      found.phases[number_of(Phase::unknown)].add(ns);
      continue;
    }
    const std::size_t phase = number_of(operation->phase);
    found.phases[phase].add(ns);
    if (operation->module < modules.size()) {
      modules[operation->module].own.add(ns);
      modules[operation->module].phase_ns[phase] += ns;
    } else {
      found.without_module.add(ns);
    }
    const std::uint32_t function = operation->name == kNoName ? timeline.calls[span.call].name : kNoName;
    const std::uint64_t key =
        std::uint64_t{operation->name} << 32 | (operation->name == kNoName ? function : operation->shapes);
    const auto [at, is_new] = places.try_emplace(key, found.shaped.size());
    if (is_new) found.shaped.push_back({.name = operation->name, .shapes = operation->shapes, .call = function});
    ShapedUse& use = found.shaped[at->second];
    use.work.add(ns);
    use.late_ns += late[static_cast<std::size_t>(&span - timeline.spans.data())];
    if (is_counted[span.call]) continue;
    is_counted[span.call] = true;
    if (use.name == kNoName || begins[span.call]) ++use.calls;
    const HostCall& call = timeline.calls[span.call];
    if (is_timed(call) && call.kind != CallKind::copy) use.launching_ns += distance_ns(call.started_ns, call.ended_ns);
  }
  if (found.shaped.empty()) {
    found = {.reason = "no command was submitted within an operator that the source names"};
    return found;
  }
  found.modules = with_parts(timeline, std::move(modules));
  std::sort(found.shaped.begin(), found.shaped.end(), [](const ShapedUse& a, const ShapedUse& b) {
    return std::tie(b.work.total_ns, a.name, a.shapes, a.call) < std::tie(a.work.total_ns, b.name, b.shapes, b.call);
  });
  if (!steps.empty()) add_steps(timeline, steps, found);
  return found;
}

}  // namespace weir
