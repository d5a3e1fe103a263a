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
#include "lab/advise/observed_queues.h"
#include "lab/advise/slowdown.h"
#include "trace/analyse/iterations.h"
#include "trace/collective_match.h"
#include "trace/device_spans.h"
#include "trace/kinds.h"

namespace weir::advise {
namespace {

constexpr std::int64_t kLongGap = 30'000;  // of a host thread: it may have been woken
// A command that starts this soon after another one's end: the more it is late otherwise, the longer that may be.
constexpr std::int64_t kSoon = 5'000, kLatest = 40'000, kLateness = 4;
constexpr std::int64_t kFetched = 100'000;  // data that take longer to fetch were waited for
constexpr double kLeavesRoom = 0.5;         // kernels that fill no more of the device
constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::min();

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

std::int64_t median_of(std::vector<std::int64_t>& values, std::int64_t otherwise) {
  if (values.empty()) return otherwise;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

class Builder {
 public:
  Builder(const Timeline& timeline, const sim::SimProfile& queues) : timeline_(timeline) { made_.queues = queues; }

  ReplayModel build() {
    take_commands();
    take_actions();
    take_waits();
    take_handoffs();
    take_arrivals();
    take_edges();
    take_latencies();
    take_slowdowns();
    take_work();
    take_meetings();
    take_steps();
    return std::move(made_);
  }

 private:
  const Span& span_of(std::uint32_t command) const { return timeline_.spans[made_.commands[command].span]; }
  std::int64_t start_of(std::uint32_t command) const { return span_of(command).started_ns; }
  std::int64_t end_of(std::uint32_t command) const { return span_of(command).ended_ns; }
  std::uint32_t shapes_of(std::uint32_t command) const {
    const std::uint32_t call = span_of(command).call;
    const std::uint32_t operation = call < timeline_.calls.size() ? timeline_.calls[call].operation : kNoOperation;
    return operation < timeline_.operations.size() ? timeline_.operations[operation].shapes : kNoName;
  }
  std::string_view name_of(std::uint32_t name) const {
    return name < timeline_.names.size() ? std::string_view(timeline_.names[name]) : std::string_view();
  }

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

  std::int64_t began(const HostAction& action) const { return timeline_.calls[action.call].started_ns; }
  std::int64_t returned(const HostAction& action) const {
    const HostCall& call = timeline_.calls[action.call];
    return call.ended_ns;
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
      // The last one that had ended; those behind it were not waited for.
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
      if (start - known <= kSoon) continue;
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

  struct Causes {
    std::int64_t launch = kNever, stream = kNever, edge = kNever, queue = kNever, engine = kNever;
  };

  // By command: whether other kernels filled its device right before it started.
  std::vector<bool> full_before() const {
    constexpr std::int64_t kRight = 2'000;
    std::vector<bool> is_full(made_.commands.size(), false);
    std::vector<std::vector<std::uint32_t>> running(made_.devices);
    for (std::uint32_t i = 0; i < made_.commands.size(); ++i) {
      const ReplayCommand& command = made_.commands[i];
      if (command.engine != Engine::kernels) continue;
      std::vector<std::uint32_t>& others = running[command.device];
      std::erase_if(others, [&](std::uint32_t one) { return end_of(one) < start_of(i) - kRight; });
      double filled = 0;
      for (const std::uint32_t one : others)
        if (made_.commands[one].stream != command.stream) filled += made_.commands[one].fill;
      is_full[i] = filled > 0.95;
      others.push_back(i);
    }
    return is_full;
  }

  // What every start is made of: the cause that came last and a latency. A latency far beyond the usual one is not
  // kept: the start is late for a reason that the trace does not show, and the replay will be early there.
  void take_latencies() {
    for (std::uint32_t i = 0; i < made_.commands.size(); ++i) {
      ReplayCommand& command = made_.commands[i];
      if (command.action == kNone) continue;
      // Most launches return before the command starts; the beginning of a graph's may come long before.
      const HostAction& action = made_.actions[command.action];
      command.is_after_call = action.waits == 0 && returned(action) <= start_of(i);
    }
    const std::vector<std::uint32_t> ahead = ahead_in_queue(timeline_, made_);
    std::vector<Causes> causes(made_.commands.size());
    std::vector<std::uint32_t> last_on(made_.streams, kNone);
    std::map<std::pair<std::uint16_t, Engine>, std::uint32_t> last_by;
    for (std::uint32_t i = 0; i < made_.commands.size(); ++i) {
      ReplayCommand& command = made_.commands[i];
      Causes& cause = causes[i];
      if (command.action != kNone) {
        const HostAction& action = made_.actions[command.action];
        cause.launch = command.is_after_call ? returned(action) : began(action);
      }
      if (const std::uint32_t own = std::exchange(last_on[command.stream], i); own != kNone) cause.stream = end_of(own);
      for (std::uint32_t e = 0; e < command.edges; ++e)
        cause.edge = std::max(cause.edge, end_of(made_.edges[command.first_edge + e]));
      if (ahead[i] != kNone) cause.queue = made_.queues.barrier == 1 ? end_of(ahead[i]) : start_of(ahead[i]);
      if (command.engine != Engine::kernels && command.engine != Engine::host) {
        const auto [at, is_new] = last_by.try_emplace({command.device, command.engine}, i);
        if (!is_new) cause.engine = end_of(std::exchange(at->second, i));
      }
    }
    const std::vector<bool> is_full = full_before();
    // The usual latencies: of commands for which the other causes were long past.
    std::vector<std::int64_t> launches[2], streams, edges;
    constexpr std::int64_t kPast = 20'000;
    for (std::uint32_t i = 0; i < made_.commands.size(); ++i) {
      const Causes& cause = causes[i];
      const std::int64_t start = start_of(i);
      const std::int64_t others = std::max({cause.queue, cause.engine});
      if (others > start - kPast || is_full[i]) continue;
      if (cause.launch != kNever && cause.stream <= cause.launch && cause.edge <= cause.launch)
        launches[made_.commands[i].is_after_call ? 1 : 0].push_back(start - cause.launch);
      else if (cause.stream != kNever && cause.stream >= cause.edge && cause.launch <= cause.stream - kPast)
        streams.push_back(start - cause.stream);
      else if (cause.edge != kNever && cause.edge > cause.stream && cause.launch <= cause.edge - kPast)
        edges.push_back(start - cause.edge);
    }
    const std::int64_t launch_by[2] = {std::max<std::int64_t>(0, median_of(launches[0], 6'000)),
                                       std::max<std::int64_t>(0, median_of(launches[1], 3'000))};
    const std::int64_t stream = std::max<std::int64_t>(0, median_of(streams, 1'000));
    const std::int64_t edge = std::max<std::int64_t>(0, median_of(edges, 2'000));
    for (std::uint32_t i = 0; i < made_.commands.size(); ++i) {
      const Causes& cause = causes[i];
      const std::int64_t start = start_of(i);
      ReplayCommand& command = made_.commands[i];
      const std::int64_t launch = launch_by[command.is_after_call ? 1 : 0];
      const auto ready = [](std::int64_t at, std::int64_t usual) { return at == kNever ? kNever : at + usual; };
      const std::int64_t by_launch = ready(cause.launch, launch), by_stream = ready(cause.stream, stream),
                         by_edge = ready(cause.edge, edge);
      const std::int64_t last = std::max({by_launch, by_stream, by_edge, cause.queue, cause.engine});
      // No cause may delay it beyond its start; those that were not the last keep their usual latency otherwise.
      const auto within = [&](std::int64_t at, std::int64_t usual) {
        return at == kNever ? usual : std::min(usual, start - at);
      };
      command.launch_ns = within(cause.launch, launch);
      command.stream_ns = within(cause.stream, stream);
      command.edge_ns = within(cause.edge, edge);
      if (last == kNever) {
        command.arrival_ns = start - made_.origin_ns;
        continue;
      }
      if (command.action == kNone) {
        // Nobody says when it was submitted: as late as it was possible, if it came after its causes.
        command.arrival_ns = start > last + stream ? start - made_.origin_ns : 0;
        continue;
      }
      const std::int64_t late = start - last;
      const std::int64_t usual = last == by_launch ? launch : last == by_stream ? stream : edge;
      if (late <= 0 || is_full[i]) continue;
      if (late > 3 * usual + 10'000) {
        ++made_.late_commands;
        made_.late_ns += static_cast<double>(late);
        continue;
      }
      if (last == by_launch)
        command.launch_ns += late;
      else if (last == by_stream)
        command.stream_ns += late;
      else if (last == by_edge)
        command.edge_ns += late;
    }
  }

  struct Moment {
    std::int64_t ns;
    std::uint32_t command;
    bool is_end;
  };
  // Calls visit(running, from, to) for each stretch of a device in which the same kernels run, first come first.
  template <class Visit>
  void visit_stretches(Visit visit) const {
    std::vector<std::vector<Moment>> by_device(made_.devices);
    for (std::uint32_t i = 0; i < made_.commands.size(); ++i) {
      const ReplayCommand& command = made_.commands[i];
      if (command.engine != Engine::kernels || end_of(i) == start_of(i)) continue;
      by_device[command.device].push_back({start_of(i), i, false});
      by_device[command.device].push_back({end_of(i), i, true});
    }
    std::vector<std::uint32_t> running;
    for (std::vector<Moment>& moments : by_device) {
      std::sort(moments.begin(), moments.end(), [](const Moment& a, const Moment& b) {
        return std::tuple(a.ns, !a.is_end, a.command) < std::tuple(b.ns, !b.is_end, b.command);
      });
      std::int64_t before = 0;
      running.clear();
      for (const Moment& moment : moments) {
        if (!running.empty() && moment.ns > before) visit(running, before, moment.ns);
        before = moment.ns;
        if (moment.is_end)
          running.erase(std::find(running.begin(), running.end(), moment.command));
        else
          join_running(made_, made_.urgency, running, moment.command);
      }
    }
  }

  // Kernels that leave room for others may slow them down all the same, through memory. How much shows in a kernel that
  // runs many times, beside few and beside many.
  void take_slowdowns() {
    std::vector<double> others_ns(made_.commands.size(), 0);
    visit_stretches([&](const std::vector<std::uint32_t>& running, std::int64_t from, std::int64_t to) {
      const double weight = static_cast<double>(to - from) * static_cast<double>(running.size() - 1);
      for (const std::uint32_t one : running) others_ns[one] += weight;
    });
    struct Kind {
      std::vector<BesideOthers> launches;
      std::uint32_t slowdown = kNone;
    };
    const auto key_of = [&](std::uint32_t i) { return std::tuple(span_of(i).name, span_of(i).blocks, shapes_of(i)); };
    const auto leaves_room = [&](std::uint32_t i) {
      const ReplayCommand& command = made_.commands[i];
      return command.engine == Engine::kernels && command.fill <= kLeavesRoom && end_of(i) > start_of(i);
    };
    std::map<std::tuple<std::uint32_t, std::uint32_t, std::uint32_t>, Kind> kinds;
    for (std::uint32_t i = 0; i < made_.commands.size(); ++i) {
      if (!leaves_room(i)) continue;
      const std::int64_t took = end_of(i) - start_of(i);
      kinds[key_of(i)].launches.push_back({others_ns[i] / static_cast<double>(took), took});
    }
    for (auto& [key, kind] : kinds) {
      std::vector<double> factors = slowdown_of(std::move(kind.launches));
      if (factors.empty()) continue;
      kind.slowdown = static_cast<std::uint32_t>(made_.slowdowns.size());
      made_.slowdowns.push_back(std::move(factors));
    }
    for (std::uint32_t i = 0; i < made_.commands.size(); ++i)
      if (leaves_room(i)) made_.commands[i].slowdown = kinds[key_of(i)].slowdown;
  }

  // How long each would have taken by itself, by the rule by which the replay lets them share the device.
  void take_work() {
    for (std::uint32_t i = 0; i < made_.commands.size(); ++i)
      made_.commands[i].work_ns =
          made_.commands[i].engine == Engine::kernels ? 0 : static_cast<double>(end_of(i) - start_of(i));
    std::vector<double> rates;
    visit_stretches([&](const std::vector<std::uint32_t>& running, std::int64_t from, std::int64_t to) {
      share_device(made_, running, 0, rates);
      for (std::size_t k = 0; k < running.size(); ++k)
        made_.commands[running[k]].work_ns += rates[k] * static_cast<double>(to - from);
    });
  }

  // The same collective on several ranks: what it took from the moment when the last one had started it.
  void take_meetings() {
    if (timeline_.collectives.empty() || timeline_.processes.size() < 2) return;
    for (const MatchedCollective& match :
         match_collectives(timeline_, std::vector<bool>(timeline_.processes.size(), true))) {
      if (match.kind == CollectiveKind::send_receive || match.kind == CollectiveKind::broadcast ||
          match.kind == CollectiveKind::reduce)
        continue;  // not everybody waits for everybody
      Meeting meeting;
      std::int64_t begun = kNever, ended = std::numeric_limits<std::int64_t>::max();
      for (const Participant& participant : match.participants) {
        const std::uint32_t command = command_of_[participant.span];
        if (command == kNone || made_.commands[command].engine != Engine::kernels) continue;
        meeting.commands.push_back(command);
        begun = std::max(begun, start_of(command));
        ended = std::min(ended, end_of(command));
      }
      if (meeting.commands.size() < 2 || ended <= begun) continue;
      for (const std::uint32_t command : meeting.commands) {
        made_.commands[command].meeting = static_cast<std::uint32_t>(made_.meetings.size());
        made_.commands[command].work_ns = static_cast<double>(end_of(command) - begun);
      }
      made_.meetings.push_back(std::move(meeting));
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

  const Timeline& timeline_;
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
