#include "amd/join/join.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "amd/join/join_match.h"

namespace weir::amd {
namespace {

bool has_absence(const JoinedQueue& queue, MatchSide part) {
  return std::any_of(queue.absences.begin(), queue.absences.end(),
                     [&](const Absence& absence) { return absence.part == part; });
}

// The owner of a queue that the log does not show.
void set_roles(const JoinInput& input, Join& join) {
  bool is_every_process_known = input.has_log;
  for (const JoinedProcess& process : join.processes)
    is_every_process_known = is_every_process_known && process.host_pid.has_value();
  for (JoinedQueue& queue : join.queues) {
    if (queue.runtime != nullptr) continue;
    for (std::size_t i = 0; i < join.processes.size() && queue.host_pid; ++i)
      if (join.processes[i].host_pid == queue.host_pid) queue.process = i;
    if (queue.process) {
      const LoggedProcess& logged = input.logged[*queue.process];
      // A log without any creation was written without the queue mask, so this queue's absence from it proves nothing.
      const auto& queues = logged.summary->queues;
      const bool shows_creations = std::any_of(
          queues.begin(), queues.end(), [](const QueueSummary& summary) { return summary.created_ns != kNoTime; });
      queue.role = logged.is_whole && shows_creations ? QueueRole::internal : QueueRole::unlogged;
    } else {
      queue.role = queue.host_pid && is_every_process_known ? QueueRole::other_process : QueueRole::unknown_process;
    }
  }
}

std::string no_snapshot_reason(const JoinInput& input, const JoinedQueue& queue) {
  if (input.snapshots.empty()) return "there are no snapshots";
  if (queue.runtime == nullptr) return "no snapshot shows it";
  const QueueSummary& runtime = *queue.runtime;
  if (!runtime.is_ring) return "the log gives no ring for it";
  const std::int64_t begin_ns = runtime.asked_ns != kNoTime ? runtime.asked_ns : runtime.created_ns;
  if (!has_rings(input)) return "the snapshots have neither hqds nor mqds, and nothing else shows a ring";
  std::size_t while_it_lived = 0;
  for (const JoinSnapshot& snapshot : input.snapshots) {
    const bool is_after_begin = begin_ns == kNoTime || snapshot.taken_ns >= begin_ns;
    const bool is_before_end = runtime.deleted_ns == kNoTime || snapshot.taken_ns <= runtime.deleted_ns;
    if (snapshot.has_rings && (snapshot.taken_ns == INT64_MIN || (is_after_begin && is_before_end))) ++while_it_lived;
  }
  if (while_it_lived == 0) return "no snapshot was taken while it lived";
  return fmt::format("its ring is in none of {} snapshot{}", while_it_lived, while_it_lived == 1 ? "" : "s");
}

// Processes with a creation in the trace.
struct Creators {
  std::set<int> pids;
  bool has_unknown = false, has_any = false;

  explicit Creators(const JoinInput& input) {
    for (const ftrace::KfdSpan& call : input.calls) {
      if (call.verb != ftrace::KfdVerb::create) continue;
      has_any = true;
      if (call.process)
        pids.insert(*call.process);
      else
        has_unknown = true;
    }
  }
  bool may_have(const std::optional<int>& pid) const { return pid ? has_unknown || pids.contains(*pid) : has_any; }
};

std::string no_creation_reason(const JoinInput& input, const Creators& creators, const Join& join,
                               const JoinedQueue& queue) {
  if (!input.has_trace) return "there is no kernel trace";
  if (!creators.may_have(queue.host_pid))
    return queue.host_pid ? fmt::format("the trace has no creation of process {}", *queue.host_pid)
                          : "the trace has no creation";
  if (!queue.host_pid) return "its process on the host is not known, and no creation of the trace has its ring";
  if (!join.clock.is_known())
    return "no creation of the trace has its ring or id, and times cannot be compared without an offset";
  if (input.has_lost_events) return "no creation of the trace has its ring or id, and the trace lost events";
  return "no creation of the trace fits";
}

void explain(const JoinInput& input, Join& join) {
  const Creators creators(input);
  for (JoinedQueue& queue : join.queues) {
    if (queue.runtime == nullptr) {
      std::string reason = !input.has_log ? "there is no log" : "";
      if (queue.role == QueueRole::internal) reason = "the runtime's own: the log of its process does not show it";
      if (queue.role == QueueRole::unlogged) reason = "the log of its process does not show it, and is not whole";
      if (queue.role == QueueRole::other_process) reason = "its process is not in the log";
      if (reason.empty())
        reason = "no queue of the log has its ring, and whether its process is in the log is not known";
      queue.absences.push_back({MatchSide::log, std::move(reason)});
    }
    if (queue.sightings.empty()) queue.absences.push_back({MatchSide::snapshot, no_snapshot_reason(input, queue)});
    if (queue.create == nullptr && !has_absence(queue, MatchSide::trace))
      queue.absences.push_back({MatchSide::trace, no_creation_reason(input, creators, join, queue)});
  }
}

// A duration on the trace's own clock: needs no offset, but its stamps are rounded.
DurationRange kfd_duration(const ftrace::KfdSpan& call) {
  const bool has_end = call.ended_ns != INT64_MIN;
  if (call.end == ftrace::EndKind::exact) {
    if (call.duration_ns >= 0) return {call.duration_ns, call.duration_ns, call.duration_ns > 0};
    return duration_between(moment_of_trace(call.started_ns, {}), moment_of_trace(call.ended_ns, {}));
  }
  DurationRange range{0, call.longest_ns >= 0 ? call.longest_ns : INT64_MAX, false};
  if (call.duration_ns >= 0)
    range.least_ns = call.duration_ns;
  else if (has_end)
    range.least_ns =
        duration_between(moment_of_trace(call.started_ns, {}), moment_of_trace(call.ended_ns, {})).least_ns;
  range.is_distinguishable = range.least_ns > 0;
  return range;
}

// When the call left KFD. Without a traced return: at its last step or later, and before the thread's next one.
Moment left_moment(const ftrace::KfdSpan& call, const OffsetRange& offset) {
  Moment left = moment_of_trace(call.ended_ns == INT64_MIN ? call.started_ns : call.ended_ns, offset);
  if (call.end != ftrace::EndKind::exact)
    left.high_ns =
        call.longest_ns >= 0 ? plus(moment_of_trace(call.started_ns, offset).high_ns, call.longest_ns) : INT64_MAX;
  return left;
}

CreationHops hops_of(const JoinedQueue& queue, const ClockOffset& clock) {
  CreationHops hops;
  const QueueSummary* const runtime = queue.runtime;
  const bool has_asked = runtime != nullptr && runtime->asked_ns != kNoTime;
  const bool has_created = runtime != nullptr && runtime->created_ns != kNoTime;
  if (has_asked && has_created)
    hops.asked_to_created = duration_between(moment_of_log(runtime->asked_ns), moment_of_log(runtime->created_ns));
  const ftrace::KfdSpan* const create = queue.create;
  if (create == nullptr) {
    hops.reason = "which creation of the trace is its own is not known";
    return hops;
  }
  hops.is_left_exact = create->end == ftrace::EndKind::exact;
  if (create->started_ns != INT64_MIN) hops.entered_to_left = kfd_duration(*create);
  // The thread's next step may come long after, but KFD's part lies within the runtime's.
  if (hops.entered_to_left && hops.asked_to_created && hops.entered_to_left->most_ns != INT64_MAX)
    hops.entered_to_left->most_ns = std::max(hops.entered_to_left->least_ns,
                                             std::min(hops.entered_to_left->most_ns, hops.asked_to_created->most_ns));
  if (runtime == nullptr) {
    hops.reason = "the log does not show it";
  } else if (!clock.is_known()) {
    hops.reason = "the clocks are not aligned: " + clock.reason;
  } else if (create->started_ns == INT64_MIN) {
    hops.reason = "the trace has no time for it";
  } else {
    if (has_asked)
      hops.asked_to_entered =
          duration_between(moment_of_log(runtime->asked_ns), moment_of_trace(create->started_ns, clock.range));
    if (has_created)
      hops.left_to_created = duration_between(left_moment(*create, clock.range), moment_of_log(runtime->created_ns));
  }
  return hops;
}

}  // namespace

bool has_rings(const JoinInput& input) {
  return std::any_of(input.snapshots.begin(), input.snapshots.end(),
                     [](const JoinSnapshot& snapshot) { return snapshot.has_rings; });
}

std::optional<std::uint32_t> JoinedQueue::kfd_id() const {
  if (create != nullptr && create->queue_id) return create->queue_id;
  for (const Sighting& sighting : sightings)
    if (sighting.queue->queue_id) return sighting.queue->queue_id;
  return std::nullopt;
}

std::optional<std::uint32_t> JoinedQueue::gpu_id() const {
  for (const Sighting& sighting : sightings)
    if (sighting.queue->gpu_id != 0) return sighting.queue->gpu_id;
  return create != nullptr ? create->gpu_id : std::nullopt;
}

std::optional<std::uint64_t> JoinedQueue::ring() const {
  if (runtime != nullptr && runtime->is_ring) return runtime->hwq;
  for (const Sighting& sighting : sightings)
    if (sighting.queue->ring_base != 0) return sighting.queue->ring_base;
  return create != nullptr ? create->ring_base : std::nullopt;
}

Join join_queues(const JoinInput& input) {
  Join join;
  join.processes = match_processes(input);
  join.clock = offset_of(input, join.processes);
  join.queues = rows_of_log(input, join.processes);
  match_snapshots(input, join);
  match_trace(input, join);
  set_roles(input, join);
  explain(input, join);
  for (JoinedQueue& queue : join.queues) queue.hops = hops_of(queue, join.clock);
  return join;
}

}  // namespace weir::amd
