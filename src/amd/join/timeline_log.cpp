// The lanes from a log and snapshots: host threads with their calls, streams, hardware queues with their packets. Knows
// the log's events, but not the kernel's trace.
#include <fmt/format.h>

#include <map>
#include <unordered_map>

#include "amd/join/merged_timeline.h"
#include "amd/join/timeline_events.h"
#include "amd/log/log_reader.h"

namespace weir::amd {
namespace {

// Groups of one process of the log, in the order in which they are drawn.
enum Group : std::int64_t { kThreads = 0, kStreams = 1, kQueues = 2, kGroups = 4 };
constexpr std::int64_t kOutside = 900'000;  // KFD queues whose process is not in the log

std::int64_t group_of(std::size_t process, Group group) {
  return kGroups * static_cast<std::int64_t>(process + 1) + group;
}

std::string queue_name(const JoinedQueue& queue) {
  std::string name = queue.ring() ? fmt::format("ring {:#x}", *queue.ring()) : std::string("ring not known");
  if (queue.runtime != nullptr && queue.runtime->id) name += fmt::format(", ROCr id {}", *queue.runtime->id);
  if (queue.kfd_id()) name += fmt::format(", KFD id {}", *queue.kfd_id());
  if (queue.role == QueueRole::internal) name += ", the runtime's own";
  return name;
}

std::string_view packet_name(const Packet& packet) {
  if (!packet.kernel.empty()) return packet.kernel;
  constexpr std::string_view kNames[] = {"dispatch", "barrier and", "barrier or", "barrier value", "packet"};
  return kNames[static_cast<std::size_t>(packet.kind)];
}

class LogLanes : public LogSink {
 public:
  LogLanes(TimelineEvents& events, const Join& join, const LogSummary& summary, std::size_t first) : events_(events) {
    for (std::size_t i = 0; i < summary.processes().size(); ++i)
      processes_[summary.processes()[i].pid.value_or(-1)] = first + i;
    std::map<std::pair<std::size_t, std::uint64_t>, std::size_t> queues;  // several in sequence on one ring
    for (const JoinedQueue& queue : join.queues) {
      if (queue.runtime == nullptr) continue;
      const std::pair key(*queue.process, queue.runtime->hwq);
      const std::size_t count = ++queues[key];
      names_[key] = count == 1 ? queue_name(queue)
                               : fmt::format("ring {:#x}, {} queues one after another", queue.runtime->hwq, count);
    }
  }

  void on(const QueueCreated& event) override {
    const auto process = process_of(event.created);
    if (!process) return;
    const Lane lane = queue_lane(*process, event.hwq);
    const std::string arguments = fmt::format("\"SWq\":\"{:#x}\",\"packets\":{},\"priority\":{},\"line\":{}", event.swq,
                                              event.packets, event.priority, event.created.line);
    if (is_time(event.asked.time_ns) && event.asked.time_ns <= event.created.time_ns)
      events_.slice(lane, "queue", "create (runtime)", event.asked.time_ns, event.created.time_ns, arguments);
    else
      events_.mark(lane, "queue", "created", event.created.time_ns, arguments);
  }
  void on(const QueueDeleted& event) override {
    const auto process = process_of(event.at);
    if (process)
      events_.mark(queue_lane(*process, event.hwq), "queue", "delete (runtime)", event.at.time_ns,
                   fmt::format("\"line\":{}", event.at.line));
  }
  void on(const QueueShared& event) override {
    const auto process = process_of(event.at);
    if (!process) return;
    const char* const name = event.change == QueueShared::Change::released ? "stream leaves" : "stream comes";
    events_.mark(queue_lane(*process, event.hwq), "queue", name, event.at.time_ns,
                 fmt::format("\"streams\":{},\"line\":{}", event.count, event.at.line));
  }
  void on(const StreamChanged& event) override {
    const auto process = process_of(event.at);
    if (process)
      events_.mark(stream_lane(*process, event.stream), "stream", event.is_created ? "created" : "destroyed",
                   event.at.time_ns, fmt::format("\"line\":{}", event.at.line));
  }

  void on(const Packet& event) override {
    const auto process = process_of(event.at);
    if (!process) return;
    const std::string_view name = packet_name(event);
    std::string arguments =
        fmt::format("\"stream\":\"{:#x}\",\"header\":\"{:#x}\",\"line\":{}", event.stream, event.header, event.at.line);
    if (event.kind == Packet::Kind::dispatch)
      arguments += fmt::format(",\"grid\":[{},{},{}],\"workgroup\":[{},{},{}]", event.grid[0], event.grid[1],
                               event.grid[2], event.workgroup[0], event.workgroup[1], event.workgroup[2]);
    if (event.write_index) arguments += fmt::format(",\"write index\":{}", *event.write_index);
    if (event.read_index) arguments += fmt::format(",\"read index\":{}", *event.read_index);
    const Lane lane = queue_lane(*process, event.hwq);
    events_.point(lane, "packet", name, event.at.time_ns, arguments);
    if (event.stream != 0)
      events_.mark(stream_lane(*process, event.stream), "packet", name, event.at.time_ns,
                   fmt::format("\"queue\":\"{:#x}\"", event.hwq));
    // The call that wrote it is reported when it returns.
    auto& pending = pending_[{*process, event.at.tid}];
    if (event.at.tid != 0 && pending.size() < kMaxPending) pending.push_back({lane, event.at.time_ns});
    if (pending_.size() > kMaxThreads) pending_.clear();
  }

  void on(const KernelNamed& event) override {
    const auto process = process_of(event.at);
    if (process && event.stream != 0)
      events_.mark(stream_lane(*process, event.stream), "kernel", event.kernel, event.at.time_ns,
                   fmt::format("\"line\":{}", event.at.line));
  }

  void on(const LoggedCopy& event) override {
    const auto process = process_of(event.at);
    if (!process) return;
    const std::string engine = event.engine ? fmt::format("\"{:#x}\"", *event.engine) : std::string("null");
    events_.mark(events_.lane(group_of(*process, kQueues), UINT64_MAX, "copy engines"), "copy", "copy",
                 event.at.time_ns,
                 fmt::format("\"bytes\":{},\"engine\":{},\"line\":{}", event.bytes, engine, event.at.line));
  }

  void on(const ApiCall& event) override {
    const auto process = process_of(event.returned);
    if (!process) return;
    const Lane lane = thread_lane(*process, event.returned.tid);
    std::string arguments =
        fmt::format("\"status\":{},\"line\":{}", TimelineEvents::quoted(event.status), event.returned.line);
    if (event.stream != 0) arguments += fmt::format(",\"stream\":\"{:#x}\"", event.stream);
    const auto pending = pending_.find({*process, event.returned.tid});
    if (!is_time(event.begun.time_ns) || event.begun.time_ns > event.returned.time_ns) {
      events_.mark(lane, "hip", event.name, event.returned.time_ns, arguments);
    } else {
      const Lane place = events_.slice(lane, "hip", event.name, event.begun.time_ns, event.returned.time_ns, arguments);
      if (pending != pending_.end())
        for (const auto& [to, ns] : pending->second)
          if (ns >= event.begun.time_ns && ns <= event.returned.time_ns) events_.arrow(place, ns, to, ns);
    }
    if (pending != pending_.end()) pending->second.clear();
  }

  void on(const LoggedError& event) override {
    const auto process = process_of(event.at);
    if (process)
      events_.mark(thread_lane(*process, event.at.tid), "log", event.level >= 2 ? "warning" : "error", event.at.time_ns,
                   fmt::format("\"text\":{},\"line\":{}", TimelineEvents::quoted(event.text), event.at.line));
  }
  void on_restart(std::uint64_t) override { pending_.clear(); }

 private:
  static constexpr std::size_t kMaxPending = 64;
  static constexpr std::size_t kMaxThreads = 4096;

  // Nothing if the process is unknown or the moment has no time.
  std::optional<std::size_t> process_of(const LogMoment& moment) const {
    const auto found = processes_.find(moment.pid.value_or(-1));
    return found == processes_.end() || !is_time(moment.time_ns) ? std::nullopt : std::optional(found->second);
  }
  Lane thread_lane(std::size_t process, std::uint64_t tid) {
    return events_.lane(
        group_of(process, kThreads), tid,
        tid == 0 ? std::string("threads (the log does not distinguish them)") : fmt::format("thread {:#x}", tid));
  }
  Lane stream_lane(std::size_t process, std::uint64_t stream) {
    return events_.lane(group_of(process, kStreams), stream, fmt::format("stream {:#x}", stream));
  }
  Lane queue_lane(std::size_t process, std::uint64_t hwq) {
    const auto found = names_.find({process, hwq});
    return events_.lane(group_of(process, kQueues), hwq,
                        found == names_.end() ? fmt::format("ring {:#x}", hwq) : found->second);
  }

  TimelineEvents& events_;
  std::unordered_map<int, std::size_t> processes_;
  std::map<std::pair<std::size_t, std::uint64_t>, std::string> names_;
  std::map<std::pair<std::size_t, std::uint64_t>, std::vector<std::pair<Lane, std::int64_t>>> pending_;
};

void name_groups(const LoadedCapture& capture, const Join& join, TimelineEvents& events) {
  for (std::size_t i = 0; i < join.processes.size(); ++i) {
    const JoinedProcess& process = join.processes[i];
    std::string name = process.log_pid ? fmt::format("process {}", *process.log_pid) : std::string("process not known");
    if (process.host_pid && process.host_pid != process.log_pid)
      name += fmt::format(" ({} of the host)", *process.host_pid);
    if (!process.name.empty()) name += " " + process.name;
    events.name_group(group_of(i, kThreads), name + ": threads");
    events.name_group(group_of(i, kStreams), name + ": streams");
    events.name_group(group_of(i, kQueues), name + ": hardware queues");
  }
  if (!capture.input.snapshots.empty()) events.name_group(kOutside, "KFD: queues of processes that are not in the log");
}

// Queues seen in snapshots, as marks on their lanes.
void write_sightings(const LoadedCapture& capture, const Join& join, TimelineEvents& events) {
  std::uint64_t number = 0;
  for (const JoinedQueue& queue : join.queues) {
    ++number;
    for (const Sighting& sighting : queue.sightings) {
      const JoinSnapshot& snapshot = capture.input.snapshots[sighting.snapshot];
      if (!is_time(snapshot.taken_ns)) continue;
      const std::int64_t group = queue.process ? group_of(*queue.process, kQueues) : kOutside;
      // A queue of the log shares the lane of its packets.
      const std::uint64_t key = queue.runtime != nullptr ? queue.runtime->hwq : UINT64_MAX - number;
      const kfd::Queue& seen = *sighting.queue;
      const std::string backlog = seen.backlog_packets ? fmt::format("{}", *seen.backlog_packets) : std::string("null");
      events.mark(events.lane(group, key, queue_name(queue)), "snapshot",
                  fmt::format("{}: {}", snapshot.when, seen.is_active ? "active" : "not active"), snapshot.taken_ns,
                  fmt::format("\"backlog packets\":{},\"slots\":{}", backlog, seen.slots.size()));
    }
  }
}

}  // namespace

void write_log_lanes(const LoadedCapture& capture, const Join& join, TimelineEvents& events,
                     const std::atomic<bool>* stop) {
  name_groups(capture, join, events);
  for (std::size_t i = 0; i < capture.logs.size(); ++i) {
    LogLanes lanes(events, join, capture.summaries[i], capture.first_logged[i]);
    LogOptions options;
    options.stop = stop;
    read_log(capture.logs[i], lanes, options);
  }
  write_sightings(capture, join, events);
}

}  // namespace weir::amd
