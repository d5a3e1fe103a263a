// The document weir.amd_ftrace/2: what was read, what was lost, what KFD did. A value without data is null, and
// `unavailable` holds the reason under the value's path.
#include <fmt/format.h>

#include "amd/ftrace/summary.h"
#include "base/named_values.h"
#include "base/schemas.h"

namespace weir::ftrace {
namespace {

Json names_document(const std::vector<NameCount>& names) {
  return json_list(names, [](const NameCount& one) -> Json { return {{"name", one.name}, {"calls", one.count}}; });
}

// The time between the first and the last stamp; nothing without stamps.
std::optional<std::int64_t> length_of(const FtraceCounters& counters) {
  if (counters.first_ns == kNoTime || counters.last_ns <= counters.first_ns) return std::nullopt;
  return counters.last_ns - counters.first_ns;
}

Json trace_document(const FtraceCounters& counters, const std::string& clock, Json& unavailable) {
  const auto length_ns = length_of(counters);
  if (!length_ns) unavailable["trace.length_ns"] = "no two stamps (function_graph has them with funcgraph-abstime)";
  if (clock.empty()) unavailable["trace.clock"] = "the text does not name its clock; --trace-clock does";
  if (counters.tracer.empty()) unavailable["trace.tracer"] = "the text has no header";
  Json overwritten = nullptr;
  if (counters.written_entries)
    overwritten = *counters.written_entries - *counters.buffer_entries;
  else
    unavailable["trace.lost.overwritten"] = "the text has no header that counts entries";
  Json unread = Json::array();
  for (const UnreadLines& one : counters.unread)
    unread.push_back({{"reason", one.reason}, {"lines", one.count}, {"first_line", one.first_line}});
  Json json = WEIR_NAMED(text_or_null(counters.tracer), counters.lines);
  json["forms"] = WEIR_NAMED(counters.functions, named("graph", counters.graph_calls), counters.probes, counters.events,
                             counters.texts);
  const Json resolution_ns = counters.first_ns == kNoTime ? Json(nullptr) : Json(counters.resolution_ns);
  json.update(WEIR_NAMED(text_or_null(clock), resolution_ns, time_or_null(counters.first_ns), length_ns,
                         counters.has_returns, counters.has_tgid));
  json["lost"] = {{"events", counters.lost_events},
                  {"gaps", counters.lost_gaps},
                  {"gaps_without_number", counters.lost_uncounted},
                  {"overwritten", overwritten},
                  {"spans_given_up", counters.given_up}};
  json.update(WEIR_NAMED(counters.unmatched_returns, named("calls_without_time", counters.without_time),
                         named("lines_without_thread", counters.without_pid), std::move(unread),
                         text_or_null(counters.problem)));
  return json;
}

Json runlist_document(const FtraceCounters& counters, Json& unavailable) {
  const KfdCalls& calls = counters.calls;
  const bool is_sent = calls.runlist_sent > 0;
  const std::uint64_t rebuilds = is_sent ? calls.runlist_sent : calls.runlist_map;
  const auto length = length_of(counters);
  Json rebuilds_per_s = nullptr;
  if (rebuilds > 0 && length) {
    rebuilds_per_s = static_cast<double>(rebuilds) * 1e9 / static_cast<double>(*length);
  } else {
    unavailable["runlist.rebuilds_per_s"] = rebuilds > 0          ? "the trace has no length"
                                            : calls.mes_add > 0   ? "this GPU's queues are mapped by its firmware (MES)"
                                            : calls.map_texts > 0 ? "the texts describe queues, not runlists"
                                                                  : "no runlist was sent, or the filter left it out";
  }
  return {{"rebuilds", positive_or_null(rebuilds)},
          {"basis", is_sent                 ? Json("pm_send_runlist")
                    : calls.runlist_map > 0 ? Json("map_queues_cpsch, which may find nothing to send: at most")
                                            : Json(nullptr)},
          {"rebuilds_per_s", rebuilds_per_s},
          {"queues_by_text", calls.map_texts},
          {"mes_adds", calls.mes_add},
          {"mes_removes", calls.mes_remove}};
}

Json warning(const char* kind, std::string text, std::string advice) {
  return WEIR_NAMED(kind, std::move(text), std::move(advice));
}

Json warnings_document(const FtraceCounters& counters) {
  Json list = Json::array();
  if (counters.lost_gaps > 0)
    list.push_back(warning("lost_events",
                           fmt::format("{} events lost in {} gaps; {} spans were cut", counters.lost_events,
                                       counters.lost_gaps, counters.given_up),
                           "Counts are lower bounds. Give tracing a larger buffer_size_kb or a narrower filter."));
  if (counters.written_entries > counters.buffer_entries)
    list.push_back(warning("overwritten",
                           fmt::format("{} of {} entries were overwritten before they were read",
                                       *counters.written_entries - *counters.buffer_entries, *counters.written_entries),
                           "The beginning is missing: what was created there is not counted."));
  else if (counters.buffers_started > 0)
    list.push_back(warning(
        "overwritten",
        fmt::format("the buffers of {} CPUs begin late: events before were overwritten", counters.buffers_started),
        "The beginning is missing: what was created there is not counted."));
  if (counters.without_time > 0)
    list.push_back(warning("no_times", fmt::format("{} calls of the graph have no stamp", counters.without_time),
                           "echo 1 > options/funcgraph-abstime"));
  if (counters.unmatched_returns > 0)
    list.push_back(warning("unmatched_returns",
                           fmt::format("{} returns without an entry were left out", counters.unmatched_returns),
                           "Probe entries as well as returns, and start the trace before the program."));
  if (!counters.has_returns && counters.functions > 0)
    list.push_back(warning("entries_only", "the function tracer shows entries: lengths are bounded, not measured",
                           "Use function_graph with funcgraph-abstime, or return probes."));
  if (!counters.problem.empty()) list.push_back(warning("ends_early", counters.problem, "Fetch the file again."));
  return list;
}

}  // namespace

Json ftrace_document(const KfdSummary& summary, const FtraceCounters& counters, const DocumentOptions& options) {
  const KfdCalls& calls = counters.calls;
  Json unavailable = Json::object();
  Json trace = trace_document(counters, options.trace_clock, unavailable);
  Json runlist = runlist_document(counters, unavailable);
  Json mqds = summary.mqds_document(calls);
  if (mqds["inits_per_create"].is_null())
    unavailable["mqds.inits_per_create"] = unavailable["mqds.allocations_per_create"] =
        summary.creates() == 0 ? "no queue was created in the trace" : "no function of MQDs is in the trace";
  unavailable["doorbells.user_writes"] = "programs write doorbells by plain stores: ftrace cannot see them";
  Json json = WEIR_NAMED(named("schema", schemas::amd_ftrace), options.file, options.command_line, std::move(trace),
                         named("verbs", summary.verbs_document()), named("processes", summary.processes_document()),
                         named("creates", summary.creates_document()), std::move(mqds));
  json["kernel_queues"] = {{"calls", calls.kcq},
                           {"functions", names_document(calls.kcq_names)},
                           {"jobs_on_compute_rings", calls.compute_ring_jobs},
                           {"amdgpu_calls_beyond_kfd", calls.amdgpu_beyond_kfd}};
  json["doorbells"] = {{"allocations", calls.doorbell_allocate},
                       {"creates_with_one", summary.creates_with_doorbell()},
                       {"mmaps", calls.doorbell_mmap},
                       {"kernel_writes", calls.kernel_doorbell_write},
                       {"user_writes", nullptr}};
  json["runlist"] = std::move(runlist);
  json["ioctls"] = {{"calls", calls.kfd_ioctl}, {"by_name", names_document(calls.ioctls)}};
  json["other_calls"] = {{"amdgpu_cs_ioctl", calls.cs_ioctl},
                         {"memory_maps", calls.memory_map},
                         {"evictions_scheduled", calls.evict_scheduled},
                         {"processes_ended", calls.process_end},
                         {"kfd_without_role", calls.unknown_kfd_calls},
                         {"kfd_without_role_names", names_document(calls.unknown_kfd)}};
  json["answers"] = ftrace_answers(summary, counters);
  json["warnings"] = warnings_document(counters);
  json["unavailable"] = std::move(unavailable);
  return json;
}

}  // namespace weir::ftrace
