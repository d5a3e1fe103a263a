// The roadmap's checklist, ticked off by what two captures hold.
#include <fmt/format.h>

#include <algorithm>

#include "amd/compare/case_verdict.h"
#include "amd/compare/roadmap.h"

namespace weir::amd {
namespace {

struct Evidence {
  CheckState state = CheckState::cannot_be_seen;
  std::string because;
};
Evidence done(std::string because) { return {CheckState::done, std::move(because)}; }
Evidence not_seen(std::string because) { return {CheckState::not_seen, std::move(because)}; }
Evidence cannot(std::string because) { return {CheckState::cannot_be_seen, std::move(because)}; }

bool has_log(const RoadmapCase& from) {
  return from.side && (from.side->source == CaseSource::log || from.side->source == CaseSource::log_report ||
                       (from.side->source == CaseSource::capture && from.side->launches > 0));
}

Evidence trace_recorded(const RoadmapCase& a, const RoadmapCase& b) {
  if (a.trace && b.trace) return done("the captures of A and B have one");
  if (a.trace || b.trace) return done(fmt::format("the capture of {} has one", a.trace ? "A" : "B"));
  return cannot(both_reasons(a.trace_reason, b.trace_reason));
}

Evidence both_logs(const RoadmapCase& a, const RoadmapCase& b) {
  for (const RoadmapCase* from : {&a, &b})
    if (from->trace && has_log(*from)) return done(fmt::format("{} has both", from == &a ? "A" : "B"));
  if (!a.trace && !b.trace) return cannot(both_reasons(a.trace_reason, b.trace_reason));
  return not_seen("no capture has a runtime log beside its kernel trace");
}

Evidence creation_flow(const RoadmapCase& a, const RoadmapCase& b) {
  bool has_trace = false;
  for (const RoadmapCase* from : {&a, &b}) {
    if (!from->trace) continue;
    has_trace = true;
    if (const std::uint64_t creates = from->trace->summary.creates(); creates > 0)
      return done(fmt::format("{} creations in the trace of {}; `weir amd ftrace` has the steps", creates,
                              from == &a ? "A" : "B"));
  }
  if (!has_trace) return cannot(both_reasons(a.trace_reason, b.trace_reason));
  return not_seen("no creation of a queue is in the kernel traces");
}

Evidence mqds_identified(const RoadmapCase& a, const RoadmapCase& b) {
  std::uint64_t calls = 0;
  for (const RoadmapCase* from : {&a, &b})
    if (from->trace) calls += from->trace->counters.calls.mqd_allocate + from->trace->counters.calls.mqd_init;
  if (!a.trace && !b.trace) return cannot(both_reasons(a.trace_reason, b.trace_reason));
  if (calls == 0) return not_seen("no allocate_mqd or init_mqd is in the kernel traces");
  return done(fmt::format("{} allocations and initialisations of MQDs", calls));
}

Evidence case_ran(const RoadmapCase& from) {
  if (from.manifest && from.manifest->target) return done("it ran already, and was captured");
  if (from.manifest && !from.manifest->exit_code) return not_seen("its program did not run");
  if (from.manifest && *from.manifest->exit_code != 0)
    return not_seen(fmt::format("its program ended with exit code {}", *from.manifest->exit_code));
  if (!from.side) return not_seen(from.side_reason);
  return done(fmt::format("{} launches", from.side->launches));
}

Evidence use_compared(const RoadmapCase& a, const RoadmapCase& b) {
  if (!a.side || !b.side) return cannot(both_reasons(a.side_reason, b.side_reason));
  const std::string reason = both_reasons(a.side->queues_reason, b.side->queues_reason);
  if (!reason.empty()) return cannot(reason);
  return done(fmt::format("{} compute queues in A, {} in B", a.side->count(CaseQueue::Kind::compute),
                          b.side->count(CaseQueue::Kind::compute)));
}

Evidence hqds_seen(const RoadmapCase& a, const RoadmapCase& b) {
  const std::size_t snapshots = a.hqd_snapshots + b.hqd_snapshots, active = std::max(a.active_queues, b.active_queues);
  if (snapshots == 0) return cannot(both_reasons(a.hqds_reason, b.hqds_reason));
  return done(
      fmt::format("{} snapshots of hqds while the cases ran, up to {} queues active at once", snapshots, active));
}

// The same ring in the runtime's log, in a call of KFD, and in a hardware slot.
Evidence whole_path(const RoadmapCase& a, const RoadmapCase& b) {
  for (const RoadmapCase* from : {&a, &b}) {
    if (!from->side || !from->trace || from->trace->summary.creates() == 0) continue;
    const auto& queues = from->side->queues;
    const auto count = std::count_if(queues.begin(), queues.end(),
                                     [](const CaseQueue& queue) { return queue.seen_in == "log and snapshot"; });
    if (count > 0)
      return done(
          fmt::format("{} queues of {} are in the log and in hardware slots, and KFD's trace has their creation; "
                      "`weir amd join` has one row for each",
                      count, from == &a ? "A" : "B"));
  }
  if (a.hqd_snapshots + b.hqd_snapshots == 0) return cannot(both_reasons(a.hqds_reason, b.hqds_reason));
  if (!a.trace && !b.trace) return cannot(both_reasons(a.trace_reason, b.trace_reason));
  return not_seen("no queue of a log is in a snapshot of the same capture");
}

Evidence queues_known(const RoadmapCase& from) {
  if (!from.side) return cannot(from.side_reason);
  if (!from.side->queues_reason.empty()) return cannot(from.side->queues_reason);
  if (from.side->queues.empty()) return not_seen("it used no queue");
  std::string names;
  for (std::size_t i = 0; i < from.side->queues.size() && i < 4; ++i)
    names += (i == 0 ? "" : ", ") + from.side->queues[i].label;
  return done(names + (from.side->queues.size() > 4 ? ", ..." : ""));
}

Evidence priorities_known(const RoadmapCase& a, const RoadmapCase& b) {
  std::size_t known = 0, all = 0;
  for (const RoadmapCase* from : {&a, &b})
    if (from->side)
      for (const CaseQueue& queue : from->side->queues) {
        ++all;
        known += queue.priority ? 1 : 0;
      }
  if (all == 0) return cannot("no queue is known");
  if (known == 0) return not_seen("no queue shows its priority; `weir preempt` measures what it does");
  return done(fmt::format("{} of {} queues show their priority; `weir preempt` measures what it does", known, all));
}

Evidence strategy_chosen(const RoadmapCase& a, const RoadmapCase& b) {
  if (!a.side || !b.side) return cannot(both_reasons(a.side_reason, b.side_reason));
  const auto verdict =
      judge_preemption(*a.side, *b.side, compare_quantities(*a.side, *b.side), relate_queues(*a.side, *b.side));
  if (verdict.strategy.empty()) return not_seen(verdict.because);
  return done(fmt::format("{}: {}", verdict.strategy, verdict.because));
}

}  // namespace

std::string_view name_of(CheckState state) {
  constexpr std::string_view kNames[] = {"done", "not_seen", "cannot_be_seen"};
  return kNames[static_cast<std::size_t>(state)];
}

std::vector<RoadmapCheck> tick_checklist(const RoadmapCase& a, const RoadmapCase& b) {
  std::vector<RoadmapCheck> checks;
  const auto add = [&](std::string_view phase, std::string_view item, Evidence evidence) {
    checks.push_back({phase, item, evidence.state, std::move(evidence.because)});
  };
  add("1", "kernel trace recorded", trace_recorded(a, b));
  add("1", "runtime log and kernel trace of one run", both_logs(a, b));
  add("1", "creation of queues followed", creation_flow(a, b));
  add("1", "MQD operations identified", mqds_identified(a, b));
  add("1", "case A ran", case_ran(a));
  add("1", "case B ran", case_ran(b));
  add("1", "use of queues compared", use_compared(a, b));
  add("1", "hardware queues looked at", hqds_seen(a, b));
  add("1", "path from ROCm over KFD to the GPU", whole_path(a, b));
  add("2", "queues of case A known", queues_known(a));
  add("2", "queues of case B known", queues_known(b));
  add("2", "priorities of queues understood", priorities_known(a, b));
  add("2", "preemption strategy chosen", strategy_chosen(a, b));
  add("2", "preemption test designed", cannot("a capture holds no design; `weir preempt` runs one"));
  return checks;
}

}  // namespace weir::amd
