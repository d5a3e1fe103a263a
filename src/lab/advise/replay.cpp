#include "lab/advise/replay.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <queue>
#include <tuple>
#include <utility>

#include "device/sim/mapping.h"
#include "lab/advise/replay_links.h"

namespace weir::advise {
namespace {

constexpr double kUntilAllAreThere = 1e15;

enum class Due : std::uint8_t {
  command_ends,
  command_is_submitted,
  action_begins,
  action_returns,
  command_starts,
  queue_head
};

struct Entry {
  std::int64_t ns;
  Due kind;
  std::uint32_t subject;
  std::uint32_t version;  // of a running command: entries of earlier rates are void
  bool operator>(const Entry& other) const {
    return std::tie(ns, kind, subject, version) > std::tie(other.ns, other.kind, other.subject, other.version);
  }
};

class Machine {
 public:
  Machine(const ReplayModel& model, const Change& change) : model_(model), change_(change), links_(model) {
    const std::size_t commands = model.commands.size(), actions = model.actions.size();
    found_.started_ns.assign(commands, -1);
    found_.ended_ns.assign(commands, -1);
    found_.action_ns.assign(actions, -1);
    missing_.assign(commands, 0);
    ready_ns_.assign(commands, 0);
    version_.assign(commands, 0);
    remaining_.assign(commands, 0);
    arrived_work_.assign(model.meetings.empty() ? 0 : commands, 0);
    waiting_for_.assign(actions, 0);
    is_returned_.assign(actions, 0);
    action_ready_.assign(actions, 0);
    profile_ = model.queues;
    if (change.queues > 0) profile_.queues = change.queues;
    for (std::uint16_t device = 0; device < model.devices; ++device) devices_.emplace_back(profile_);
    for (const Meeting& meeting : model.meetings) absent_.push_back(meeting.commands.size());
    streams_.resize(model.streams);
    link();
  }

  Replayed run() {
    for (std::size_t thread = 0; thread + 1 < model_.thread_begin.size(); ++thread)
      if (model_.thread_begin[thread] < model_.thread_begin[thread + 1]) consider(model_.thread_begin[thread], 0);
    for (std::uint32_t i = 0; i < model_.commands.size(); ++i)
      if (model_.commands[i].action == kNone) {
        ready_ns_[i] = model_.commands[i].arrival_ns;
        submit(i);
      }
    while (!due_.empty()) {
      const Entry entry = due_.top();
      due_.pop();
      now_ = entry.ns;
      switch (entry.kind) {
        case Due::command_ends:
          if (entry.version == version_[entry.subject]) end(entry.subject);
          break;
        case Due::command_is_submitted:
          submit(entry.subject);
          break;
        case Due::action_begins:
          begin(entry.subject);
          break;
        case Due::action_returns:
          returned(entry.subject);
          break;
        case Due::command_starts:
          start(entry.subject);
          break;
        case Due::queue_head:
          try_queue(devices_[entry.subject], entry.version);
          break;
      }
    }
    for (const std::int64_t ended : found_.ended_ns) {
      found_.is_stuck |= ended < 0;
      found_.finish_ns = std::max(found_.finish_ns, ended);
    }
    return std::move(found_);
  }

 private:
  struct Queue {
    std::deque<std::uint32_t> commands;
    std::uint32_t held_by = kNone;  // SimProfile::barrier: the command that has to end first
  };
  struct Device {
    explicit Device(const sim::SimProfile& profile)
        : map(profile), queues(static_cast<std::size_t>(sim::packet_queues(profile)) * kEngines) {}
    sim::StreamMap map;
    std::vector<Queue> queues;           // of kernels, then those of each engine
    std::vector<std::uint32_t> running;  // kernels
    std::vector<double> rates;           // of these
    std::int64_t since_ns = 0;           // when `remaining_` of the running ones was brought up to date
    std::int64_t engine_free_ns[kEngines]{};
  };
  struct Stream {
    std::uint32_t last = kNone;  // submitted
    std::int32_t home = kNoQueue, queue = kNoQueue;
    std::uint32_t outstanding = 0;
  };

  void link() {
    for (std::uint32_t i = 0; i < model_.commands.size(); ++i)
      missing_[i] = (waits_for_nobody(i) ? 0 : model_.commands[i].edges) + 1;  // its submission
    next_on_stream_.assign(model_.commands.size(), kNone);
    causes_.assign(model_.actions.size(), 1);  // the action before it on its thread, or the beginning
    for (std::uint32_t action = 0; action < model_.actions.size(); ++action)
      if (model_.actions[action].after != kNone) ++causes_[action];
  }

  std::int64_t scaled(std::int64_t ns) const {
    return change_.host == 1 ? ns : static_cast<std::int64_t>(std::llround(static_cast<double>(ns) * change_.host));
  }
  bool waits_for_nobody(std::uint32_t command) const {
    return command < change_.waits_for_nobody.size() && change_.waits_for_nobody[command] != 0;
  }
  std::uint32_t next_of(std::uint32_t action) const {
    if (!change_.next.empty()) return change_.next[action];
    return action + 1 < model_.thread_begin[model_.actions[action].thread + 1] ? action + 1 : kNone;
  }
  std::uint32_t graph_of(std::uint32_t action) const {
    return action < change_.graph.size() ? change_.graph[action] : kNone;
  }
  bool is_first_of_graph(std::uint32_t action) const {
    return action == 0 || graph_of(action - 1) != graph_of(action) ||
           model_.actions[action - 1].thread != model_.actions[action].thread;
  }

  // One cause of an action is there at that time.
  void consider(std::uint32_t action, std::int64_t cause_ns) {
    action_ready_[action] = std::max(action_ready_[action], cause_ns);
    if (--causes_[action] != 0) return;
    const bool is_later_in_graph = graph_of(action) != kNone && !is_first_of_graph(action);
    const HostAction& one = model_.actions[action];
    std::int64_t ns = std::max<std::int64_t>(0, action_ready_[action]);
    if (one.after == kNone && !is_later_in_graph) ns += scaled(one.own_ns);
    if (one.arrival_ns >= 0) {
      if (!change_.is_data_ready) ns = std::max(ns, one.arrival_ns);
      ns += scaled(one.arrived_ns);
    }
    due_.push({ns, Due::action_begins, action, 0});
  }

  void begin(std::uint32_t index) {
    const HostAction& action = model_.actions[index];
    found_.action_ns[index] = now_;
    std::int64_t call_ns = scaled(action.call_ns);
    if (graph_of(index) != kNone) call_ns = is_first_of_graph(index) ? change_.graph_launch_ns : 0;
    for (std::uint32_t i = 0; i < action.commands; ++i) {
      const std::uint32_t command = model_.submitted[action.first_command + i];
      const ReplayCommand& one = model_.commands[command];
      ready_ns_[command] = now_ + one.launch_ns + (one.is_after_call ? call_ns : 0);
      if (gets_queue_late(one) && call_ns > 0)
        due_.push({now_ + call_ns, Due::command_is_submitted, command, 0});
      else
        submit(command);
    }
    const bool waits = action.waits != 0 && (index >= change_.no_wait.size() || change_.no_wait[index] == 0);
    std::int64_t until = now_ + call_ns;
    action_ready_[index] = until;
    waiting_for_[index] = 0;
    if (waits)
      for (std::uint32_t i = 0; i < action.waits; ++i) {
        const std::uint32_t command = model_.awaited[action.first_wait + i];
        if (found_.ended_ns[command] < 0) ++waiting_for_[index];
      }
    if (waiting_for_[index] == 0) due_.push({action_ready_[index], Due::action_returns, index, 0});
  }

  void returned(std::uint32_t index) {
    is_returned_[index] = 1;
    if (const std::uint32_t next = next_of(index); next != kNone) consider(next, now_);
    for (const std::uint32_t one : links_.woken[index]) consider(one, now_ + scaled(model_.actions[one].after_ns));
  }

  void submit(std::uint32_t index) {
    const ReplayCommand& command = model_.commands[index];
    Stream& stream = streams_[command.stream];
    if (stream.last != kNone && found_.ended_ns[stream.last] < 0) {
      next_on_stream_[stream.last] = index;
      ++missing_[index];
    } else if (stream.last != kNone) {
      ready_ns_[index] = std::max(ready_ns_[index], found_.ended_ns[stream.last] + command.stream_ns);
    }
    stream.last = index;
    if (!passes_queue(command)) {
      satisfy(index);
      return;
    }
    Device& device = devices_[command.device];
    if (stream.home == kNoQueue) stream.queue = stream.home = device.map.create();
    if (device.map.is_dynamic() && stream.outstanding == 0) stream.queue = device.map.assign(stream.home);
    ++stream.outstanding;
    device.map.add_command(stream.queue);
    device.queues[queue_of(index)].commands.push_back(index);
    satisfy(index);
  }

  bool is_in_graph(const ReplayCommand& command) const {
    return command.is_in_graph || (command.action != kNone && graph_of(command.action) != kNone);
  }
  bool passes_queue(const ReplayCommand& command) const {
    return !is_in_graph(command) && !command.has_own_queue && command.engine != Engine::host && command.action != kNone;
  }

  // One cause of a command is there; its time is in ready_ns_.
  void satisfy(std::uint32_t index) {
    if (--missing_[index] != 0) return;
    const ReplayCommand& command = model_.commands[index];
    if (passes_queue(command))
      look(command.device, queue_of(index));
    else if (ready_ns_[index] > now_)
      due_.push({ready_ns_[index], Due::command_starts, index, 0});
    else
      start(index);
  }

  // Copies by an engine wait in queues of that engine (measured on an H200: with one queue in all, copies to the device
  // do not wait for the kernels of other streams).
  std::size_t queue_of(std::uint32_t index) const {
    const ReplayCommand& command = model_.commands[index];
    return static_cast<std::size_t>(streams_[command.stream].queue) +
           static_cast<std::size_t>(command.engine) * static_cast<std::size_t>(sim::packet_queues(profile_));
  }

  void look(std::uint16_t device, std::size_t queue) {
    const Queue& one = devices_[device].queues[queue];
    if (one.commands.empty() || missing_[one.commands.front()] != 0) return;
    due_.push(
        {std::max(now_, ready_ns_[one.commands.front()]), Due::queue_head, device, static_cast<std::uint32_t>(queue)});
  }

  // A queue hands out its commands in the order in which it got them.
  void try_queue(Device& device, std::uint32_t queue) {
    Queue& one = device.queues[queue];
    while (!one.commands.empty() && one.held_by == kNone) {
      const std::uint32_t head = one.commands.front();
      if (missing_[head] != 0) return;
      if (ready_ns_[head] > now_) {
        due_.push({ready_ns_[head], Due::queue_head, model_.commands[head].device, queue});
        return;
      }
      one.commands.pop_front();
      if (profile_.barrier == 1) one.held_by = head;
      start(head);
    }
  }

  void start(std::uint32_t index) {
    const ReplayCommand& command = model_.commands[index];
    Device& device = devices_[command.device];
    remaining_[index] = command.work_ns * (index < change_.work.size() ? change_.work[index] : 1);
    found_.started_ns[index] = now_;
    if (command.engine != Engine::kernels) {
      std::int64_t& free_ns = device.engine_free_ns[static_cast<std::size_t>(command.engine)];
      if (command.engine != Engine::host) found_.started_ns[index] = std::max(now_, free_ns);
      free_ns = found_.started_ns[index] + std::llround(remaining_[index]);
      due_.push({free_ns, Due::command_ends, index, version_[index]});
      return;
    }
    bring_up_to_date(device);
    const std::vector<std::int32_t>& urgency = change_.urgency.empty() ? model_.urgency : change_.urgency;
    const std::size_t at = join_running(model_, urgency, device.running, index);
    device.rates.insert(device.rates.begin() + static_cast<std::ptrdiff_t>(at), 0);
    if (command.meeting != kNone) meet(index);
    set_rates(device);
  }

  // A collective holds its place on the device until its last rank is there, and only then gets on.
  void meet(std::uint32_t index) {
    const std::uint32_t meeting = model_.commands[index].meeting;
    const double work_ns = std::exchange(remaining_[index], kUntilAllAreThere);
    arrived_work_[index] = work_ns;
    if (--absent_[meeting] != 0) return;
    for (const std::uint32_t one : model_.meetings[meeting].commands) {
      Device& device = devices_[model_.commands[one].device];
      bring_up_to_date(device);
      remaining_[one] = arrived_work_[one];
      device.rates[static_cast<std::size_t>(std::find(device.running.begin(), device.running.end(), one) -
                                            device.running.begin())] = 0;
      set_rates(device);
    }
  }

  void bring_up_to_date(Device& device) {
    const auto passed = static_cast<double>(now_ - device.since_ns);
    for (std::size_t k = 0; k < device.running.size(); ++k) remaining_[device.running[k]] -= passed * device.rates[k];
    device.since_ns = now_;
  }

  void set_rates(Device& device) {
    share_device(model_, device.running, change_.beyond, rates_);
    for (std::size_t k = 0; k < device.running.size(); ++k) {
      const std::uint32_t one = device.running[k];
      if (rates_[k] == device.rates[k]) continue;
      device.rates[k] = rates_[k];
      ++version_[one];
      if (rates_[k] > 0 && remaining_[one] < kUntilAllAreThere / 2)
        due_.push({now_ + std::max<std::int64_t>(0, std::llround(remaining_[one] / rates_[k])), Due::command_ends, one,
                   version_[one]});
    }
  }

  void end(std::uint32_t index) {
    const ReplayCommand& command = model_.commands[index];
    Device& device = devices_[command.device];
    found_.ended_ns[index] = now_;
    if (const auto at = std::find(device.running.begin(), device.running.end(), index); at != device.running.end()) {
      bring_up_to_date(device);
      device.rates.erase(device.rates.begin() + (at - device.running.begin()));
      device.running.erase(at);
      set_rates(device);
    }
    Stream& stream = streams_[command.stream];
    if (passes_queue(command)) {
      Queue& queue = device.queues[queue_of(index)];
      if (queue.held_by == index) {
        queue.held_by = kNone;
        look(command.device, queue_of(index));
      }
      --stream.outstanding;
      device.map.end_command(stream.queue);
    }
    const bool is_graph = is_in_graph(command);
    if (const std::uint32_t next = next_on_stream_[index]; next != kNone) {
      const ReplayCommand& one = model_.commands[next];
      const bool is_new_graph = is_graph && is_in_graph(one) && !command.is_in_graph;
      ready_ns_[next] = std::max(ready_ns_[next],
                                 now_ + (is_new_graph ? std::min(one.stream_ns, change_.graph_gap_ns) : one.stream_ns));
      satisfy(next);
    }
    for (const std::uint32_t next : links_.followers[index]) {
      if (waits_for_nobody(next)) continue;
      ready_ns_[next] = std::max(ready_ns_[next], now_ + model_.commands[next].edge_ns);
      satisfy(next);
    }
    for (const std::uint32_t action : links_.awaiting[index]) {
      if (found_.action_ns[action] < 0 || is_returned_[action] != 0 || waiting_for_[action] == 0) continue;
      action_ready_[action] = std::max(action_ready_[action], now_ + model_.actions[action].wake_ns);
      if (--waiting_for_[action] == 0) due_.push({action_ready_[action], Due::action_returns, action, 0});
    }
  }

  const ReplayModel& model_;
  const Change& change_;
  const ReplayLinks links_;
  sim::SimProfile profile_;
  Replayed found_;
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> due_;
  std::int64_t now_ = 0;
  std::vector<Device> devices_;
  std::vector<Stream> streams_;
  std::vector<double> rates_;
  std::vector<std::uint32_t> missing_, version_;  // by command
  std::vector<std::int64_t> ready_ns_;
  std::vector<double> remaining_, arrived_work_;  // of collectives that wait for others
  std::vector<std::size_t> absent_;               // by meeting
  std::vector<std::uint32_t> next_on_stream_;
  std::vector<std::uint32_t> causes_, waiting_for_;  // by action
  std::vector<std::uint8_t> is_returned_;
  std::vector<std::int64_t> action_ready_;
};

}  // namespace

Replayed replay(const ReplayModel& model, const Change& change) {
  return Machine(change.instead != nullptr ? *change.instead : model, change).run();
}

}  // namespace weir::advise
