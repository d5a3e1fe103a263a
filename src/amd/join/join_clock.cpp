// Queue operations that both log and trace show, as brackets for the clock solver.
#include <algorithm>
#include <deque>
#include <unordered_map>

#include "amd/join/join_match.h"

namespace weir::amd {
namespace {

using ftrace::KfdSpan;
using ftrace::KfdVerb;

bool has_time(const KfdSpan& call) { return call.started_ns != INT64_MIN; }

TraceInstant instant_of(const KfdSpan& call) {
  return {call.started_ns, call.ended_ns == INT64_MIN ? call.started_ns : call.ended_ns};
}

class Brackets {
 public:
  explicit Brackets(const JoinInput& input) : input_(input) {}

  void add(const ProcessSummary& summary, int host_pid) {
    add_creates(summary, host_pid);
    // A queue without normal priority is created and then updated, before the line "Created".
    const Calls updates = calls_of(KfdVerb::update, host_pid);
    const Calls destroys = calls_of(KfdVerb::destroy, host_pid);
    for (const QueueSummary& queue : summary.queues) {
      if (queue.priority && *queue.priority != 1 && has_bracket(queue) && !updates.instants->empty())
        brackets_.push_back({queue.asked_ns, queue.created_ns, *updates.instants});
      // "Deleting hardware queue" is logged before the runtime requests it.
      if (queue.deleted_ns != kNoTime && !destroys.instants->empty())
        brackets_.push_back({queue.deleted_ns, INT64_MAX, *destroys.instants});
    }
  }

  const std::vector<ClockBracket>& all() const { return brackets_; }

 private:
  struct Calls {
    const std::vector<TraceInstant>* instants = nullptr;
    std::vector<const KfdSpan*> spans;
    bool has_foreign = false;  // some may belong to another process
  };

  static bool has_bracket(const QueueSummary& queue) {
    return queue.asked_ns != kNoTime && queue.created_ns != kNoTime && queue.asked_ns <= queue.created_ns;
  }

  Calls calls_of(KfdVerb verb, int host_pid) {
    Calls calls;
    for (const KfdSpan& call : input_.calls) {
      if (call.verb != verb || !has_time(call) || has_failed(call) || !may_be_of(call, host_pid)) continue;
      calls.spans.push_back(&call);
      calls.has_foreign = calls.has_foreign || !call.process;
    }
    calls.instants = keep(calls.spans);
    return calls;
  }

  const std::vector<TraceInstant>* keep(const std::vector<const KfdSpan*>& spans) {
    std::vector<TraceInstant> instants;
    for (const KfdSpan* span : spans) instants.push_back(instant_of(*span));
    return &instants_.emplace_back(std::move(instants));
  }

  void add_creates(const ProcessSummary& summary, int host_pid) {
    const Calls creates = calls_of(KfdVerb::create, host_pid);
    if (creates.spans.empty()) return;
    std::vector<const QueueSummary*> queues;
    for (const QueueSummary& queue : summary.queues)
      if (queue.created_ns != kNoTime) queues.push_back(&queue);
    std::sort(queues.begin(), queues.end(),
              [](const QueueSummary* a, const QueueSummary* b) { return a->created_ns < b->created_ns; });
    // Order pairs them only if no two overlapped, and every call is known to belong to this process.
    bool is_ordered = !creates.has_foreign && !input_.has_lost_events && input_.uncounted_calls == 0;
    for (std::size_t i = 0; i < queues.size() && is_ordered; ++i)
      is_ordered = has_bracket(*queues[i]) && (i == 0 || queues[i - 1]->created_ns <= queues[i]->asked_ns);
    std::unordered_map<std::uint64_t, std::vector<const KfdSpan*>> spans_by_ring;
    for (const KfdSpan* span : creates.spans)
      if (span->ring_base) spans_by_ring[*span->ring_base].push_back(span);
    std::unordered_map<std::uint64_t, const std::vector<TraceInstant>*> by_ring;
    for (const auto& [ring, spans] : spans_by_ring) by_ring[ring] = keep(spans);
    for (std::size_t i = 0; i < queues.size(); ++i) {
      if (!has_bracket(*queues[i])) continue;
      // If a probe recorded the ring, there are fewer candidates.
      const auto same_ring = queues[i]->is_ring ? by_ring.find(queues[i]->hwq) : by_ring.end();
      if (same_ring != by_ring.end())
        brackets_.push_back({queues[i]->asked_ns, queues[i]->created_ns, *same_ring->second});
      else
        brackets_.push_back({queues[i]->asked_ns, queues[i]->created_ns, *creates.instants, i,
                             is_ordered ? queues.size() : std::size_t{0}});
    }
  }

  const JoinInput& input_;
  std::deque<std::vector<TraceInstant>> instants_;  // brackets point into these
  std::vector<ClockBracket> brackets_;
};

}  // namespace

bool may_be_of(const KfdSpan& call, int host_pid) { return !call.process || *call.process == host_pid; }

ClockOffset offset_of(const JoinInput& input, const std::vector<JoinedProcess>& processes) {
  ClockOffset none;
  if (!input.has_trace || !input.has_log) {
    none.reason = input.has_trace ? "there is no log" : "there is no kernel trace";
    return none;
  }
  Brackets brackets(input);
  bool has_process = false;
  for (std::size_t i = 0; i < processes.size(); ++i) {
    if (!processes[i].host_pid) continue;
    has_process = true;
    brackets.add(*input.logged[i].summary, *processes[i].host_pid);
  }
  ClockOffset offset =
      solve_clock_offset(brackets.all(), input.trace_clock, input.has_lost_events || input.uncounted_calls > 0);
  if (!offset.is_known() && !has_process && brackets.all().empty())
    offset.reason = "no process of the log is known by its number on the host";
  return offset;
}

}  // namespace weir::amd
