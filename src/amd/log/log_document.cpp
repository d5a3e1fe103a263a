#include "amd/log/log_document.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/named_values.h"
#include "base/schemas.h"

namespace weir::amd {
namespace {

Json address(std::uint64_t value) { return value == 0 ? Json(nullptr) : Json(fmt::format("0x{:x}", value)); }

Json distribution(const LogHistogram& histogram) {
  if (histogram.count() == 0) return nullptr;
  return WEIR_NAMED(histogram.count(), *histogram.min(), named("p50", *histogram.quantile(0.5)),
                    named("p90", *histogram.quantile(0.9)), named("p99", *histogram.quantile(0.99)), *histogram.max(),
                    histogram.mean());
}

Json over_time(const TimeCounts& counts) {
  if (counts.begin_ns() == kNoTime) return nullptr;
  return WEIR_NAMED(counts.begin_ns(), counts.width_ns(), counts.counts());
}

// Launches per second between the first and the last; a single launch has no rate.
Json rate(std::uint64_t launches, std::int64_t first_ns, std::int64_t last_ns) {
  if (launches < 2 || first_ns == kNoTime || last_ns <= first_ns) return nullptr;
  return static_cast<double>(launches - 1) * 1e9 / (static_cast<double>(last_ns) - static_cast<double>(first_ns));
}

Json top_kernels(const std::unordered_map<std::uint32_t, std::uint64_t>& counts, std::uint64_t uncounted,
                 const std::vector<std::string>& names, std::size_t top) {
  std::vector<std::pair<std::uint64_t, std::uint32_t>> order;
  for (const auto& [kernel, count] : counts) order.emplace_back(count, kernel);
  std::sort(order.begin(), order.end(), [&](const auto& a, const auto& b) {
    return a.first != b.first ? a.first > b.first : names[a.second] < names[b.second];
  });
  Json list = Json::array();
  for (std::size_t i = 0; i < std::min(top, order.size()); ++i)
    list.push_back({{"name", names[order[i].second]}, {"count", order[i].first}});
  return {{"distinct", counts.size()}, {"without_name", uncounted}, {"top", list}};
}

Json queue_json(const QueueSummary& queue, std::uint64_t streams, const std::vector<std::string>& names,
                std::size_t top) {
  Json json =
      WEIR_NAMED(address(queue.hwq), named("hwq_is_ring", queue.is_ring), address(queue.swq), queue.id, queue.priority,
                 named("size_packets", queue.packets), queue.is_cooperative, time_or_null(queue.asked_ns),
                 time_or_null(queue.created_ns), queue.creation_ns(), time_or_null(queue.deleted_ns), queue.streams_now,
                 queue.streams_most, named("streams_seen", streams), named("launches", queue.launched()),
                 queue.dispatches, queue.barriers, queue.other_packets);
  json["launches_per_s"] = rate(queue.launched(), queue.first_launch_ns, queue.last_launch_ns);
  json.update(WEIR_NAMED(distribution(queue.gap_ns), named("backlog_packets", distribution(queue.backlog)),
                         named("launches_over_time", over_time(queue.launches))));
  json["kernels"] = top_kernels(queue.kernels, queue.uncounted_kernels, names, top);
  return json;
}

Json stream_json(const StreamSummary& stream) {
  Json uses = Json::array();
  for (const StreamUse& use : stream.uses) uses.push_back(WEIR_NAMED(time_or_null(use.since_ns), address(use.hwq)));
  return WEIR_NAMED(named("stream", address(stream.handle)), named("has_creation", !stream.is_default), stream.priority,
                    time_or_null(stream.created_ns), time_or_null(stream.destroyed_ns), address(stream.hwq), uses,
                    named("uses_left_out", stream.uncounted_uses), stream.launches);
}

Json creation_json(const ProcessSummary& process) {
  const CreationTimes times = creation_times(process);
  if (times.created == 0) return nullptr;
  Json out = {{"first_ns", or_null(times.first_ns)}, {"later_ns", nullptr}};
  if (times.later > 0)
    out["later_ns"] = {{"count", times.later},
                       {"min", times.min_ns},
                       {"max", times.max_ns},
                       {"mean", times.sum_ns / static_cast<double>(times.later)}};
  return out;
}

Json process_json(const ProcessSummary& process, const LogReading& reading, const std::vector<std::string>& names,
                  std::size_t top) {
  Json queues = Json::array(), copies = Json::array(), messages = Json::array();
  LogHistogram backlog;
  const auto seen = streams_by_queue(process);
  for (const QueueSummary& queue : process.queues) {
    const auto found = seen.find(queue.hwq);
    queues.push_back(queue_json(queue, found == seen.end() ? 0 : found->second, names, top));
    backlog.merge(queue.backlog);
  }
  for (const auto& [engine, copied] : process.copies)
    copies.push_back(WEIR_NAMED(named("engine", engine ? Json(fmt::format("0x{:x}", *engine)) : Json(nullptr)),
                                copied.count, copied.bytes));
  for (const ProcessSummary::Message& message : process.messages)
    messages.push_back(WEIR_NAMED(message.at.line, time_or_null(message.at.time_ns), message.level, message.is_queue,
                                  address(message.queue), message.text));
  Json json = WEIR_NAMED(process.pid);
  json["pid_reason"] = process.pid ? Json(nullptr) : Json("the log has no pid: it is written from level 4 on");
  json["rests_on"] = process.pid ? "thread" : "order";
  json.update(WEIR_NAMED(process.run, time_or_null(process.first_ns), time_or_null(process.last_ns)));
  json["verdicts"] = log_verdicts(process, reading);
  json["creation"] = creation_json(process);
  json["launches"] = process.launched();
  json["launches_from"] = process.dispatches > 0 ? Json("packets") : process.named > 0 ? Json("names") : Json(nullptr);
  json["dispatches"] = process.dispatches;
  json["named_without_packet"] = process.named;
  json.update(WEIR_NAMED(process.barriers, process.other_packets, process.launches_without_queue,
                         process.launches_without_stream));
  json["launches_over_time"] = over_time(process.launches);
  json["gap_ns"] = distribution(process.gap_ns);
  json["backlog_packets"] = distribution(backlog);
  json["kernels"] = top_kernels(process.kernels, process.uncounted_kernels, names, top);
  Json streams = json_list(process.streams, stream_json);
  json.update(WEIR_NAMED(queues, streams, process.commands, copies, process.errors, process.warnings,
                         process.queue_errors, messages));
  json["left_out"] = {{"queues", process.uncounted_queues}, {"streams", process.uncounted_streams}};
  return json;
}

Json calls_json(const LogSummary& summary, std::size_t top) {
  std::vector<std::pair<std::string, const CallCounts*>> order;
  std::uint64_t total = summary.uncounted_calls(), failed = 0;
  const auto count = [](const CallCounts& calls) { return std::max(calls.begun, calls.returned); };
  Json failures = Json::array();
  for (const auto& [name, calls] : summary.calls()) {
    order.emplace_back(name, &calls);
    total += count(calls);
    failed += calls.failed;
    if (calls.failed > 0 && failures.size() < top)
      failures.push_back({{"name", name}, {"count", calls.failed}, {"first", calls.first_failure}});
  }
  std::sort(order.begin(), order.end(), [&](const auto& a, const auto& b) {
    return count(*a.second) != count(*b.second) ? count(*a.second) > count(*b.second) : a.first < b.first;
  });
  Json list = Json::array();
  for (std::size_t i = 0; i < std::min(top, order.size()); ++i)
    list.push_back({{"name", order[i].first}, {"count", count(*order[i].second)}, {"failed", order[i].second->failed}});
  return {{"total", total}, {"failed", failed}, {"distinct", order.size()}, {"top", list}, {"failures", failures}};
}

Json file_json(const SummarisedLog& log, std::size_t top) {
  const LogReading& reading = log.reading;
  Json unread = Json::array(), processes = Json::array();
  for (const UnreadLines& lines : reading.unread)
    unread.push_back(WEIR_NAMED(lines.reason, lines.count, lines.first_line));
  for (const ProcessSummary& process : log.summary.processes())
    processes.push_back(process_json(process, reading, log.summary.kernel_names(), top));
  Json json = WEIR_NAMED(log.file, reading.bytes, reading.lines, reading.records, named("records_glued", reading.glued),
                         named("records_without_pid", reading.without_pid), reading.other_lines,
                         time_or_null(reading.first_ns), time_or_null(reading.last_ns), reading.highest_level,
                         named("hip_version", text_or_null(reading.runtime_version)), reading.runtimes,
                         named("most_queues_per_priority", reading.most_per_priority));
  json["restarts"] = {{"count", log.summary.restart_count()}, {"lines", log.summary.restarts()}};
  json.update(WEIR_NAMED(text_or_null(reading.problem), unread));
  json["calls"] = calls_json(log.summary, top);
  json["processes"] = processes;
  json["left_out"] = {{"processes", log.summary.uncounted_processes()},
                      {"kernel_names", log.summary.uncounted_names()}};
  return json;
}

}  // namespace

std::map<std::uint64_t, std::uint64_t> streams_by_queue(const ProcessSummary& process) {
  std::map<std::uint64_t, std::uint64_t> seen;
  for (const StreamSummary& stream : process.streams) {
    std::set<std::uint64_t> used;
    for (const StreamUse& use : stream.uses) used.insert(use.hwq);
    for (const std::uint64_t hwq : used) ++seen[hwq];
  }
  return seen;
}

CreationTimes creation_times(const ProcessSummary& process) {
  CreationTimes times;
  for (const QueueSummary& queue : process.queues) {
    if (queue.created_ns == kNoTime) continue;
    const auto ns = queue.creation_ns();
    if (++times.created == 1) {
      times.first_ns = ns;
    } else if (ns) {
      ++times.later;
      times.min_ns = std::min(times.min_ns, *ns);
      times.max_ns = std::max(times.max_ns, *ns);
      times.sum_ns += static_cast<double>(static_cast<std::uint64_t>(*ns));
    }
  }
  return times;
}

Json log_document(const std::vector<SummarisedLog>& logs, const LogDocumentOptions& options) {
  Json files = Json::array();
  std::uint64_t bytes = 0, lines = 0, records = 0, processes = 0, queues = 0, streams = 0, launches = 0, barriers = 0,
                copies = 0, copied = 0, errors = 0, warnings = 0, queue_errors = 0;
  for (const SummarisedLog& log : logs) {
    files.push_back(file_json(log, options.top));
    bytes += log.reading.bytes;
    lines += log.reading.lines;
    records += log.reading.records;
    processes += log.summary.processes().size();
    for (const ProcessSummary& process : log.summary.processes()) {
      queues += process.queues.size();
      streams += process.streams.size();
      launches += process.launched();
      barriers += process.barriers;
      errors += process.errors;
      warnings += process.warnings;
      queue_errors += process.queue_errors;
      for (const auto& [engine, copy] : process.copies) {
        copies += copy.count;
        copied += copy.bytes;
      }
    }
  }
  return {
      {"schema", schemas::amd_log},
      {"files", files},
      {"totals", WEIR_NAMED(named("files", logs.size()), bytes, lines, records, processes, queues, streams, launches,
                            barriers, copies, named("copied_bytes", copied), errors, warnings, queue_errors)}};
}

}  // namespace weir::amd
