#include "lab/advise/what_if.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <tuple>
#include <utility>

#include "lab/advise/communication.h"
#include "lab/advise/launch_order.h"
#include "trace/work_class.h"

namespace weir::advise {
namespace {

constexpr std::size_t kMostOfAKind = 5;
constexpr std::uint32_t kSmallestGraph = 10;       // launches
constexpr std::int64_t kNotOfLaunching = 300'000;  // what takes the host longer between launches is other work
constexpr double kMostOfWork = 0.6;
constexpr std::size_t kMostStreams = 3;

std::string_view name_in(const Timeline& timeline, std::uint32_t name) {
  return name < timeline.names.size() ? std::string_view(timeline.names[name]) : std::string_view();
}

const HostCall& call_of(const Timeline& timeline, const HostAction& action) { return timeline.calls[action.call]; }

void ask_about_queues(const ReplayModel& model, bool is_amd, std::vector<WhatIf>& found) {
  const QueueVariable variable = queue_variable(is_amd);
  const bool has_any = std::any_of(model.commands.begin(), model.commands.end(), [](const ReplayCommand& command) {
    return !command.is_in_graph && command.action != kNone;
  });
  if (!has_any || model.streams < 2) return;
  for (std::int64_t count = 1; count <= variable.most; count *= 2) {
    if (count == model.queues.queues) continue;
    WhatIf one;
    one.kind = "queues";
    one.title = fmt::format("{} hardware queue{}", count, count == 1 ? "" : "s");
    one.setting = fmt::format("{}={}", variable.name, count);
    one.effort = Effort::variable;
    one.value = count;
    one.change.queues = count;
    found.push_back(std::move(one));
  }
}

// Calls that wait, by function, operator and line of the program.
void ask_about_waits(const ReplayModel& model, const Timeline& timeline, std::vector<WhatIf>& found) {
  struct Site {
    std::vector<std::uint32_t> actions;
    double ns = 0;
  };
  std::map<std::tuple<std::uint32_t, std::uint32_t, std::uint32_t>, Site> sites;
  for (std::uint32_t i = 0; i < model.actions.size(); ++i) {
    const HostAction& action = model.actions[i];
    const HostCall& call = call_of(timeline, action);
    if (action.waits == 0) continue;
    const std::uint32_t operation =
        call.operation < timeline.operations.size() ? timeline.operations[call.operation].name : kNoName;
    Site& site = sites[{call.name, operation, call.line}];
    site.actions.push_back(i);
    site.ns += static_cast<double>(call.ended_ns - call.started_ns);
  }
  std::vector<std::pair<double, std::tuple<std::uint32_t, std::uint32_t, std::uint32_t>>> order;
  for (const auto& [key, site] : sites)
    if (site.ns > kLeastShare * static_cast<double>(model.observed_ns)) order.emplace_back(-site.ns, key);
  std::sort(order.begin(), order.end());
  if (order.size() > kMostOfAKind) order.resize(kMostOfAKind);
  for (const auto& [ns, key] : order) {
    const auto& [name, operation, line] = key;
    WhatIf one;
    one.kind = "wait";
    one.title = fmt::format("no {}", name_in(timeline, name));
    if (operation != kNoName) one.title += fmt::format(" in {}", name_in(timeline, operation));
    if (line != kNoName) one.title += fmt::format(" at {}", name_in(timeline, line));
    one.setting = "let the host go on: read results later, or not in every step";
    one.effort = Effort::line;
    one.share = -ns / static_cast<double>(model.observed_ns);
    one.change.no_wait.assign(model.actions.size(), 0);
    for (const std::uint32_t action : sites[key].actions) one.change.no_wait[action] = 1;
    found.push_back(std::move(one));
  }
}

bool can_be_captured(const HostAction& action, const HostCall& call) {
  if (action.waits != 0 || action.commands > 1) return false;
  return call.kind == CallKind::launch || call.kind == CallKind::copy || call.kind == CallKind::record ||
         call.kind == CallKind::wait || call.kind == CallKind::other;
}

// Runs of launches between waits become one graph each.
void ask_about_graphs(const ReplayModel& model, const Timeline& timeline, bool is_amd, std::vector<WhatIf>& found) {
  WhatIf one;
  one.kind = "graphs";
  one.title = "launches as graphs";
  one.setting =
      is_amd ? "capture the step into a HIP graph (torch.cuda.CUDAGraph, torch.compile mode=\"reduce-overhead\")"
             : "capture the step into a CUDA graph (torch.cuda.CUDAGraph, torch.compile mode=\"reduce-overhead\")";
  one.effort = Effort::code;
  one.change.graph.assign(model.actions.size(), kNone);
  std::uint32_t graphs = 0;
  for (std::size_t thread = 0; thread + 1 < model.thread_begin.size(); ++thread) {
    std::uint32_t first = model.thread_begin[thread];
    const std::uint32_t end = model.thread_begin[thread + 1];
    while (first < end) {
      std::uint32_t last = first, launches = 0;
      while (last < end && can_be_captured(model.actions[last], call_of(timeline, model.actions[last])) &&
             (last == first || (model.actions[last].after == kNone && model.actions[last].own_ns < kNotOfLaunching &&
                                model.actions[last].arrival_ns < 0)))
        launches += model.actions[last++].commands;
      if (launches >= kSmallestGraph) {
        for (std::uint32_t i = first; i < last; ++i) one.change.graph[i] = graphs;
        ++graphs;
      }
      first = std::max(last, first + 1);
    }
  }
  if (graphs != 0) found.push_back(std::move(one));
}

// Where launches take turns on several streams, another order may let the longest chain begin earlier.
void ask_about_order(const ReplayModel& model, std::vector<WhatIf>& found) {
  WhatIf one;
  one.change.next = order_by_longest_chain(model);
  if (one.change.next.empty()) return;
  one.kind = "order";
  one.title = "launches by the longest chain";
  one.setting = "launch on the streams in turn, what the longest chain of kernels needs first";
  one.effort = Effort::code;
  found.push_back(std::move(one));
}

// Of streams that have a part of the work only: more urgency for the one with most of it changes nothing.
void ask_about_priorities(const ReplayModel& model, const Timeline& timeline, std::vector<WhatIf>& found) {
  std::vector<double> work_ns(model.streams, 0);
  double all = 0;
  for (const ReplayCommand& command : model.commands) {
    if (command.engine != Engine::kernels) continue;
    work_ns[command.stream] += command.work_ns;
    all += command.work_ns;
  }
  std::vector<std::pair<double, std::uint32_t>> order;
  for (std::uint32_t stream = 0; stream < model.streams; ++stream)
    if (work_ns[stream] > kLeastShare * all && work_ns[stream] < kMostOfWork * all)
      order.emplace_back(-work_ns[stream], stream);
  std::sort(order.begin(), order.end());
  if (order.size() > kMostStreams) order.resize(kMostStreams);
  for (const auto& [ns, stream] : order) {
    WhatIf one;
    const std::string label = stream < timeline.streams.size() ? timeline.streams[stream].label : std::string();
    std::string name = label.empty() ? fmt::format("stream {}", stream) : label;
    if (timeline.devices.size() > 1 && stream < timeline.streams.size())
      name += fmt::format(" of {}", timeline.devices[timeline.streams[stream].device].label);
    one.kind = "priority";
    one.title = fmt::format("high priority for {}", name);
    one.setting = fmt::format("create {} with a high priority (torch.cuda.Stream(priority=-1))", name);
    one.effort = Effort::line;
    one.share = -ns / all;
    one.change.urgency = model.urgency;
    one.change.urgency[stream] = 1 + *std::max_element(model.urgency.begin(), model.urgency.end());
    found.push_back(std::move(one));
  }
}

void ask_about_data(const ReplayModel& model, std::vector<WhatIf>& found) {
  if (std::none_of(model.actions.begin(), model.actions.end(),
                   [](const HostAction& action) { return action.arrival_ns >= 0; }))
    return;
  WhatIf one;
  one.kind = "data";
  one.title = "data ready in time";
  one.setting = "more workers or cheaper preparation (DataLoader num_workers, prefetch_factor)";
  one.effort = Effort::line;
  one.change.is_data_ready = true;
  found.push_back(std::move(one));
}

void ask_about_host(std::vector<WhatIf>& found) {
  for (const double factor : {0.5, 0.0}) {
    WhatIf one;
    one.kind = "host";
    one.title = factor > 0 ? "a host twice as fast" : "a host that takes no time";
    one.change.host = factor;
    found.push_back(std::move(one));
  }
}

// Asks for each group of commands: `factor` times their durations.
template <class GroupOf>
void ask_about_work(const ReplayModel& model, std::size_t most, std::vector<WhatIf>& found, GroupOf group_of) {
  std::map<std::string, double> totals;
  std::vector<std::string> groups;
  double all = 0;
  for (std::uint32_t i = 0; i < model.commands.size(); ++i) {
    groups.push_back(group_of(i));
    all += model.commands[i].work_ns;
    if (!groups.back().empty()) totals[groups.back()] += model.commands[i].work_ns;
  }
  std::vector<std::pair<double, std::string>> order;
  for (const auto& [name, ns] : totals)
    if (ns > kLeastShare * all) order.emplace_back(-ns, name);
  std::sort(order.begin(), order.end());
  if (order.size() > most) order.resize(most);
  for (const auto& [ns, name] : order) {
    WhatIf one;
    one.title = name;
    one.share = -ns / all;
    one.change.work.assign(model.commands.size(), 1);
    for (std::uint32_t i = 0; i < model.commands.size(); ++i)
      if (groups[i] == name) one.change.work[i] = 0.5;
    found.push_back(std::move(one));
  }
}

void ask_about_kinds(const ReplayModel& model, const Timeline& timeline, std::vector<WhatIf>& found) {
  const auto span_of = [&](std::uint32_t i) -> const Span& { return timeline.spans[model.commands[i].span]; };
  const std::size_t before = found.size();
  ask_about_work(model, kMostOfAKind, found, [&](std::uint32_t i) {
    const Span& span = span_of(i);
    return std::string(to_string(work_class_of(span.kind, name_in(timeline, span.name))));
  });
  for (std::size_t i = before; i < found.size(); ++i) {
    found[i].kind = "work";
    found[i].title += " twice as fast";
  }
  const std::size_t kernels = found.size();
  ask_about_work(model, kMostOfAKind, found, [&](std::uint32_t i) {
    const Span& span = span_of(i);
    return span.kind == SpanKind::kernel ? std::string(name_in(timeline, span.name)) : std::string();
  });
  for (std::size_t i = kernels; i < found.size(); ++i) {
    found[i].kind = "kernel";
    found[i].title += " twice as fast";
  }
  const std::array kFree = {std::pair(SpanKind::collective, "communication"), std::pair(SpanKind::copy, "copies")};
  for (const auto& [kind, name] : kFree) {
    WhatIf one;
    one.kind = name;
    one.title = fmt::format("{} that take{} no time", name, kind == SpanKind::copy ? "" : "s");
    one.change.work.assign(model.commands.size(), 1);
    double ns = 0, all = 0;
    for (std::uint32_t i = 0; i < model.commands.size(); ++i) {
      all += model.commands[i].work_ns;
      if (span_of(i).kind != kind) continue;
      ns += model.commands[i].work_ns;
      one.change.work[i] = 0;
    }
    one.share = all > 0 ? ns / all : 0;
    if (one.share > kLeastShare) found.push_back(std::move(one));
  }
}

}  // namespace

QueueVariable queue_variable(bool is_amd) noexcept {
  return is_amd ? QueueVariable{"GPU_MAX_HW_QUEUES", 4, 16} : QueueVariable{"CUDA_DEVICE_MAX_CONNECTIONS", 8, 32};
}

std::vector<WhatIf> what_ifs(const ReplayModel& model, const Timeline& timeline, bool is_amd) {
  std::vector<WhatIf> found;
  ask_about_queues(model, is_amd, found);
  ask_about_data(model, found);
  ask_about_waits(model, timeline, found);
  ask_about_priorities(model, timeline, found);
  ask_about_graphs(model, timeline, is_amd, found);
  ask_about_order(model, found);
  ask_about_host(found);
  ask_about_kinds(model, timeline, found);
  ask_about_communication(model, timeline, found);
  return found;
}

}  // namespace weir::advise
