#include "lab/advise/replay_model.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "base/error.h"
#include "lab/advise/durations.h"
#include "lab/advise/latencies.h"
#include "lab/advise/observed_times.h"
#include "trace/analyse/iterations.h"
#include "trace/device_spans.h"
#include "trace/kinds.h"

namespace weir::advise {
namespace {

constexpr std::int64_t kLongGap = 30'000;  // of a host thread: it may have been woken
// A command that starts this soon after another one's end: the more it is late otherwise, the longer that may be.
constexpr std::int64_t kSoon = 5'000, kLatest = 40'000, kLateness = 4;
constexpr std::int64_t kFetched = 100'000;  // data that take longer to fetch were waited for

Engine engine_of(const Span& span, std::string_view name) {
  if (span.kind == SpanKind::host) return Engine::host;
  if (span.kind != SpanKind::copy) return Engine::kernels;
  if (name.find("HtoD") != std::string_view::npos || name.find("HostToDevice") != std::string_view::npos)
    return Engine::to_device;
  if (name.find("DtoH") != std::string_view::npos || name.find("DeviceToHost") != std::string_view::npos)
    return Engine::to_host;
  if (name.find("PtoP") != std::string_view::npos) return Engine::link;
  return Engine::kernels;
}

double fill_of(const Span& span, const TraceDevice* device) {
  if (span.kind == SpanKind::memset || span.kind == SpanKind::copy) return 0.1;
  if (span.kind == SpanKind::collective) return 0.1;
  if (span.blocks == 0 || device == nullptr || device->multiprocessors == 0) return 1;
  return std::min(1.0, static_cast<double>(span.blocks) / device->multiprocessors);
}

bool gives_way(const Span& span, const TraceDevice* device) {
  if (span.kind != SpanKind::kernel || device == nullptr) return false;
  const double held = static_cast<double>(device->multiprocessors) * device->resident_threads;
  return held > 0 && static_cast<double>(span.blocks) * span.threads > held;
}

class Builder : ObservedTimes {
 public:
  Builder(const Timeline& timeline, const sim::SimProfile& queues) : ObservedTimes(timeline, made_) {
    made_.queues = queues;
  }

  ReplayModel build() {
    take_commands();
    take_actions();
    take_waits();
    take_handoffs();
    take_arrivals();
    take_edges();
    take_latencies(timeline_, made_);
    take_durations(timeline_, made_);
    take_steps();
    return std::move(made_);
  }

 private:
  void take_commands() {
    command_of_.assign(timeline_.spans.size(), kNone);
    std::uint16_t streams = 0;
    for (const std::uint32_t index : timed_by_start(timeline_)) {
      const Span& span = timeline_.spans[index];
      ReplayCommand command;
      command.span = index;
      command.stream = span.stream;
      streams = std::max<std::uint16_t>(streams, span.stream);
      const bool has_stream = span.stream < timeline_.streams.size();
      command.device = has_stream ? timeline_.streams[span.stream].device : std::uint16_t{0};
      made_.devices = std::max<std::uint16_t>(made_.devices, static_cast<std::uint16_t>(command.device + 1));
      command.engine = engine_of(span, name_of(span.name));
      const TraceDevice* const device =
          command.device < timeline_.devices.size() ? &timeline_.devices[command.device] : nullptr;
      command.fill = fill_of(span, device);
      command.gives_way = gives_way(span, device);
      command_of_[index] = static_cast<std::uint32_t>(made_.commands.size());
      made_.commands.push_back(command);
    }
    if (made_.commands.empty())
      reject("the trace has no commands with times", "Record one in which the device has work.");
    made_.streams = streams + 1U;
    made_.urgency.assign(made_.streams, 0);
    for (std::size_t i = 0; i < std::min<std::size_t>(made_.streams, timeline_.streams.size()); ++i)
      made_.urgency[i] = -timeline_.streams[i].priority.value_or(0);
    made_.origin_ns = start_of(0);
    for (std::uint32_t i = 0; i < made_.commands.size(); ++i) last_ns_ = std::max(last_ns_, end_of(i));
  }

  // Of calls within calls only the outermost is an action: what the inner ones submit is its own.
  void take_actions() {
    std::vector<std::vector<std::uint32_t>> commands_of(timeline_.calls.size());
    for (std::uint32_t i = 0; i < made_.commands.size(); ++i)
      if (const std::uint32_t call = span_of(i).call; call < commands_of.size()) commands_of[call].push_back(i);
    std::pair<std::uint16_t, std::uint32_t> thread{};
    const HostCall* outer = nullptr;
    for (std::uint32_t i = 0; i < timeline_.calls.size(); ++i) {
      const HostCall& call = timeline_.calls[i];
      if (!is_timed(call) || call.started_ns > last_ns_) {
        commands_of[i].clear();
        continue;
      }
      const std::pair of{call.process, call.thread};
      const bool is_new_thread = made_.thread_begin.empty() || of != thread;
      if (is_new_thread) {
        made_.thread_begin.push_back(static_cast<std::uint32_t>(made_.actions.size()));
        thread = of;
        outer = nullptr;
      }
      if (outer == nullptr || call.started_ns >= outer->ended_ns) {
        HostAction action;
        action.call = i;
        action.thread = static_cast<std::uint32_t>(made_.thread_begin.size() - 1);
        action.own_ns =
            outer == nullptr ? call.started_ns : call.started_ns - outer->ended_ns;  // from the origin: below
        action.call_ns = call.ended_ns - call.started_ns;
        action.first_command = static_cast<std::uint32_t>(made_.submitted.size());
        made_.actions.push_back(action);
        outer = &call;
        made_.origin_ns = std::min(made_.origin_ns, call.started_ns);
      }
      HostAction& action = made_.actions.back();
      for (const std::uint32_t command : commands_of[i]) {
        made_.commands[command].action = static_cast<std::uint32_t>(made_.actions.size() - 1);
        made_.submitted.push_back(command);
        ++action.commands;
      }
    }
    made_.thread_begin.push_back(static_cast<std::uint32_t>(made_.actions.size()));
    for (std::size_t thread_index = 0; thread_index + 1 < made_.thread_begin.size(); ++thread_index)
      made_.actions[made_.thread_begin[thread_index]].own_ns -= made_.origin_ns;
    made_.observed_ns = last_ns_ - made_.origin_ns;
    for (const HostAction& action : made_.actions) {
      if (action.commands < 2) continue;
      for (std::uint32_t i = 0; i < action.commands; ++i)
        made_.commands[made_.submitted[action.first_command + i]].is_in_graph = true;
    }
    for (ReplayCommand& command : made_.commands) {
      if (command.action != kNone) continue;
      ++made_.uncalled;
    }
  }

  // The actions of all threads of all processes, as they began.
  std::vector<std::uint32_t> actions_by_start() const {
    std::vector<std::uint32_t> order(made_.actions.size());
    std::iota(order.begin(), order.end(), 0U);
    std::stable_sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
      return began(made_.actions[a]) < began(made_.actions[b]);
    });
    return order;
  }

  // What calls that wait waited for. `seen_ns` says it where the source does; otherwise it was the last command to end
  // among those that were submitted before, and everything before that on its stream.
  void take_waits() {
    std::unordered_map<std::int64_t, std::vector<std::uint32_t>> seen_at;
    for (std::uint32_t i = 0; i < made_.commands.size(); ++i)
      if (span_of(i).seen_ns != kNoTime) seen_at[span_of(i).seen_ns].push_back(i);
    std::vector<std::vector<std::uint32_t>> submitted(made_.streams);  // so far, by stream
    std::vector<std::int64_t> wakes;
    for (const std::uint32_t index : actions_by_start()) {
      HostAction& action = made_.actions[index];
      const HostCall& call = timeline_.calls[action.call];
      action.first_wait = static_cast<std::uint32_t>(made_.awaited.size());
      for (std::uint32_t i = 0; i < action.commands; ++i) {
        const std::uint32_t command = made_.submitted[action.first_command + i];
        submitted[made_.commands[command].stream].push_back(command);
        // A copy that returns when the data has arrived.
        if (call.kind == CallKind::copy && call.ended_ns >= end_of(command)) made_.awaited.push_back(command);
      }
      if (call.kind == CallKind::synchronize) await(call, submitted, seen_at);
      action.waits = static_cast<std::uint32_t>(made_.awaited.size()) - action.first_wait;
      if (action.waits == 0) continue;
      std::int64_t last = kNever;
      for (std::uint32_t i = 0; i < action.waits; ++i)
        last = std::max(last, end_of(made_.awaited[action.first_wait + i]));
      if (last > call.started_ns && last <= call.ended_ns) {
        action.wake_ns = call.ended_ns - last;
        action.call_ns = std::min(action.call_ns, std::min<std::int64_t>(last - call.started_ns, 5'000));
        wakes.push_back(action.wake_ns);
      } else {
        action.wake_ns = kNever;
      }
    }
    const std::int64_t usual = median_of(wakes, 5'000);
    for (HostAction& action : made_.actions)
      if (action.wake_ns == kNever) action.wake_ns = std::min(usual, action.call_ns);
  }

  void await(const HostCall& call, const std::vector<std::vector<std::uint32_t>>& submitted,
             const std::unordered_map<std::int64_t, std::vector<std::uint32_t>>& seen_at) {
    const auto process_of = [&](std::uint32_t stream) {
      return stream < timeline_.streams.size() ? timeline_.devices[timeline_.streams[stream].device].process
                                               : std::uint16_t{0};
    };
    if (waits_for_everything(name_of(call.name))) {
      for (std::uint32_t stream = 0; stream < made_.streams; ++stream)
        if (process_of(stream) == call.process && !submitted[stream].empty())
          made_.awaited.push_back(submitted[stream].back());
      return;
    }
    if (const auto seen = seen_at.find(call.ended_ns); seen != seen_at.end()) {
      std::map<std::uint16_t, std::uint32_t> last;
      for (const std::uint32_t command : seen->second) last[made_.commands[command].stream] = command;
      for (const auto& [stream, command] : last) made_.awaited.push_back(command);
      return;
    }
    std::uint32_t last = kNone;
    for (std::uint32_t stream = 0; stream < made_.streams; ++stream) {
      if (process_of(stream) != call.process) continue;
      // The last one that had ended; later ones were not waited for.
      for (auto at = submitted[stream].rbegin(); at != submitted[stream].rend(); ++at) {
        if (end_of(*at) > call.ended_ns) continue;
        if (last == kNone || end_of(*at) > end_of(last)) last = *at;
        break;
      }
    }
    if (last != kNone) made_.awaited.push_back(last);
  }

  // A thread that did nothing for a while, until another one stopped, was woken by it: the thread that computes
  // gradients goes on when backward() is called, and the main thread when it has finished.
  void take_handoffs() {
    std::vector<std::uint32_t> last_of(made_.thread_begin.size(), kNone);  // action, by thread
    std::uint32_t latest = kNone;                                          // to return, of all
    std::uint32_t second = kNone;                                          // of other threads than that
    for (const std::uint32_t index : actions_by_start()) {
      HostAction& action = made_.actions[index];
      const std::int64_t now = began(action);
      const std::uint32_t own = last_of[action.thread];
      const std::int64_t own_end = own == kNone ? made_.origin_ns : returned(made_.actions[own]);
      std::uint32_t other = latest;
      if (other != kNone && made_.actions[other].thread == action.thread) other = second;
      if (other != kNone && now - own_end > kLongGap) {
        const HostAction& before = made_.actions[other];
        const bool is_of_process = timeline_.calls[before.call].process == timeline_.calls[action.call].process;
        const std::uint32_t next = other + 1;
        const bool has_next = next < made_.thread_begin[before.thread + 1];
        const bool is_silent = !has_next || began(made_.actions[next]) - returned(before) > kLongGap;
        if (is_of_process && is_silent && returned(before) <= now && returned(before) > own_end) {
          action.after = other;
          action.after_ns = now - returned(before);
          action.own_ns = 0;
        }
      }
      last_of[action.thread] = index;
      if (latest == kNone || returned(action) >= returned(made_.actions[latest])) {
        if (latest != kNone && made_.actions[latest].thread != action.thread) second = latest;
        latest = index;
      } else if (made_.actions[latest].thread != action.thread &&
                 (second == kNone || returned(action) >= returned(made_.actions[second]))) {
        second = index;
      }
    }
  }

  // A thread that fetches data goes on when these are there, however fast it came to them itself.
  void take_arrivals() {
    const std::vector<std::uint32_t> order = actions_by_start();
    for (const TraceRange& range : timeline_.ranges) {
      if (!name_of(range.name).starts_with("enumerate(DataLoader)") || range.ended_ns - range.started_ns < kFetched)
        continue;
      auto at = std::lower_bound(order.begin(), order.end(), range.ended_ns,
                                 [&](std::uint32_t one, std::int64_t ns) { return began(made_.actions[one]) < ns; });
      for (; at != order.end(); ++at) {
        HostAction& action = made_.actions[*at];
        if (timeline_.calls[action.call].process != range.process) continue;
        const bool is_first = *at == made_.thread_begin[action.thread];
        const std::int64_t before = is_first ? made_.origin_ns : returned(made_.actions[*at - 1]);
        if (before > range.started_ns) break;  // the thread did something else meanwhile
        action.own_ns = std::max<std::int64_t>(0, range.started_ns - before);
        action.arrival_ns = std::max<std::int64_t>(0, range.ended_ns - made_.origin_ns);
        action.arrived_ns = began(action) - range.ended_ns;
        action.after = kNone;
        break;
      }
    }
  }

  // A program can only wait for what it has submitted before.
  bool is_submitted_before(std::uint32_t a, std::uint32_t b) const {
    const std::uint32_t first = made_.commands[a].action, second = made_.commands[b].action;
    return first == kNone || second == kNone || first == second ||
           began(made_.actions[first]) <= began(made_.actions[second]);
  }

  void take_edges() {
    std::vector<std::vector<std::uint32_t>> before(made_.commands.size());
    for (const Dependency& dependency : timeline_.dependencies) {
      const std::uint32_t a = command_of_[dependency.before], b = command_of_[dependency.after];
      if (a != kNone && b != kNone && a != b && end_of(a) <= end_of(b)) before[b].push_back(a);
    }
    infer_edges(before);
    for (std::uint32_t i = 0; i < made_.commands.size(); ++i) {
      ReplayCommand& command = made_.commands[i];
      command.first_edge = static_cast<std::uint32_t>(made_.edges.size());
      // One that began later cannot be waited for: clocks of devices differ, and edges must have no circle.
      for (const std::uint32_t one : before[i])
        if (one < i && is_submitted_before(one, i)) made_.edges.push_back(one);
      command.edges = static_cast<std::uint32_t>(made_.edges.size()) - command.first_edge;
    }
  }

  // Where waits are not recorded, and within graphs, where they never are: a command that starts right after one of
  // another stream ended, and for no other reason, waited for it.
  void infer_edges(std::vector<std::vector<std::uint32_t>>& before) {
    std::vector<std::uint32_t> last_on(made_.streams, kNone);
    std::vector<std::pair<std::int64_t, std::uint32_t>> ends;
    for (std::uint32_t i = 0; i < made_.commands.size(); ++i) ends.emplace_back(end_of(i), i);
    std::sort(ends.begin(), ends.end());
    for (std::uint32_t i = 0; i < made_.commands.size(); ++i) {
      const ReplayCommand& command = made_.commands[i];
      const std::uint32_t own = std::exchange(last_on[command.stream], i);
      if (timeline_.has_dependencies && !command.is_in_graph) continue;
      const std::int64_t start = start_of(i);
      std::int64_t known = own == kNone ? kNever : end_of(own);
      if (command.action != kNone) known = std::max(known, began(made_.actions[command.action]));
      for (const std::uint32_t one : before[i]) known = std::max(known, end_of(one));
      if (known != kNever && start - known <= kSoon) continue;
      const std::int64_t within = known == kNever ? kSoon : std::clamp((start - known) / kLateness, kSoon, kLatest);
      auto at = std::upper_bound(ends.begin(), ends.end(), std::pair(start, kNone));
      for (int steps = 0; at != ends.begin() && steps < 64; ++steps) {
        --at;
        if (at->first < start - within) break;
        const ReplayCommand& other = made_.commands[at->second];
        if (at->second >= i || other.stream == command.stream || other.device != command.device) continue;
        if (!is_submitted_before(at->second, i)) continue;
        before[i].push_back(at->second);
        ++made_.inferred_edges;
        break;
      }
    }
  }

  void take_steps() {
    std::vector<std::uint32_t> order;
    for (const ReplayCommand& command : made_.commands) order.push_back(command.span);
    const std::vector<TraceRange> ranges =
        timeline_.processes.empty() ? std::vector<TraceRange>() : iteration_ranges(timeline_, 0);
    Iterations iterations = place_in_iterations(timeline_, order, ranges);
    made_.steps = static_cast<std::uint32_t>(iterations.numbers.size());
    if (made_.steps < 2) return;
    // Steps whose commands end at the same time have no length.
    std::int64_t first = kNever, last = kNever;
    for (std::uint32_t i = 0; i < made_.commands.size(); ++i) {
      if (iterations.of[i] == 0) first = std::max(first, end_of(i));
      if (iterations.of[i] != kNoIteration) last = std::max(last, end_of(i));
    }
    if (last <= first) {
      made_.steps = 0;
      return;
    }
    made_.step_of = std::move(iterations.of);
    static_assert(kNoIteration == kNone);
  }

  ReplayModel made_;
  std::vector<std::uint32_t> command_of_;  // by span
  std::int64_t last_ns_ = kNever;
};

}  // namespace

std::size_t join_running(const ReplayModel& model, const std::vector<std::int32_t>& urgency,
                         std::vector<std::uint32_t>& running, std::uint32_t command) {
  const auto urgency_of = [&](std::uint32_t one) { return urgency[model.commands[one].stream]; };
  std::size_t at = running.size();
  while (at > 0 && model.commands[running[at - 1]].gives_way && urgency_of(running[at - 1]) < urgency_of(command)) --at;
  running.insert(running.begin() + static_cast<std::ptrdiff_t>(at), command);
  return at;
}

void share_device(const ReplayModel& model, std::span<const std::uint32_t> running, double beyond,
                  std::vector<double>& rates) {
  rates.clear();
  double left = 1;
  for (const std::uint32_t one : running) {
    const double fill = model.commands[one].fill, given = std::min(fill, left);
    left -= given;
    rates.push_back(given / fill);
  }
  const auto active =
      static_cast<std::size_t>(std::count_if(rates.begin(), rates.end(), [](double rate) { return rate > 0; }));
  for (std::size_t k = 0; k < rates.size(); ++k) {
    const std::uint32_t slowdown = model.commands[running[k]].slowdown;
    if (slowdown == kNone || rates[k] == 0) continue;
    const std::vector<double>& curve = model.slowdowns[slowdown];
    if (active <= curve.size())
      rates[k] /= curve[active - 1];
    else
      rates[k] /=
          curve.back() * (1 + beyond * static_cast<double>(active - curve.size()) / static_cast<double>(curve.size()));
  }
}

ReplayModel replay_model(const Timeline& timeline, const sim::SimProfile& queues) {
  return Builder(timeline, queues).build();
}

}  // namespace weir::advise
