#include "amd/log/log_document.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/json.h"
#include "base/schemas.h"

namespace weir::amd {
namespace {

Json time_or_null(std::int64_t ns) { return ns == kNoTime ? Json(nullptr) : Json(ns); }

Json address(std::uint64_t value) { return value == 0 ? Json(nullptr) : Json(fmt::format("0x{:x}", value)); }

Json distribution(const LogHistogram& histogram) {
  if (histogram.count() == 0) return nullptr;
  return {{"count", histogram.count()},
          {"min", *histogram.min()},
          {"p50", *histogram.quantile(0.5)},
          {"p90", *histogram.quantile(0.9)},
          {"p99", *histogram.quantile(0.99)},
          {"max", *histogram.max()},
          {"mean", number_or_null(histogram.mean())}};
}

Json over_time(const TimeCounts& counts) {
  if (counts.begin_ns() == kNoTime) return nullptr;
  return {{"begin_ns", counts.begin_ns()}, {"width_ns", counts.width_ns()}, {"counts", counts.counts()}};
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
  return {{"hwq", address(queue.hwq)},
          {"hwq_is_ring", queue.is_ring},
          {"swq", address(queue.swq)},
          {"id", or_null(queue.id)},
          {"priority", or_null(queue.priority)},
          {"size_packets", or_null(queue.packets)},
          {"is_cooperative", queue.is_cooperative},
          {"asked_ns", time_or_null(queue.asked_ns)},
          {"created_ns", time_or_null(queue.created_ns)},
          {"creation_ns", or_null(queue.creation_ns())},
          {"deleted_ns", time_or_null(queue.deleted_ns)},
          {"streams_now", or_null(queue.streams_now)},
          {"streams_most", or_null(queue.streams_most)},
          {"streams_seen", streams},
          {"launches", queue.launched()},
          {"dispatches", queue.dispatches},
          {"barriers", queue.barriers},
          {"other_packets", queue.other_packets},
          {"launches_per_s", rate(queue.launched(), queue.first_launch_ns, queue.last_launch_ns)},
          {"gap_ns", distribution(queue.gap_ns)},
          {"backlog_packets", distribution(queue.backlog)},
          {"launches_over_time", over_time(queue.launches)},
          {"kernels", top_kernels(queue.kernels, queue.uncounted_kernels, names, top)}};
}

Json stream_json(const StreamSummary& stream) {
  Json uses = Json::array();
  for (const StreamUse& use : stream.uses)
    uses.push_back({{"since_ns", time_or_null(use.since_ns)}, {"hwq", address(use.hwq)}});
  return {{"stream", address(stream.handle)},
          {"has_creation", !stream.is_default},
          {"priority", or_null(stream.priority)},
          {"created_ns", time_or_null(stream.created_ns)},
          {"destroyed_ns", time_or_null(stream.destroyed_ns)},
          {"hwq", address(stream.hwq)},
          {"uses", uses},
          {"uses_left_out", stream.uncounted_uses},
          {"launches", stream.launches}};
}

Json creation_json(const ProcessSummary& process) {
  const CreationTimes times = creation_times(process);
  if (times.created == 0) return nullptr;
  Json out = {{"first_ns", or_null(times.first_ns)}, {"later", nullptr}};
  if (times.later > 0)
    out["later"] = {{"count", times.later},
                    {"min_ns", times.least_ns},
                    {"max_ns", times.most_ns},
                    {"mean_ns", times.sum_ns / static_cast<double>(times.later)}};
  return out;
}

Json process_json(const ProcessSummary& process, const LogReading& reading, const std::vector<std::string>& names,
                  std::size_t top) {
  Json queues = Json::array(), streams = Json::array(), commands = Json::object(), copies = Json::array(),
       messages = Json::array();
  LogHistogram backlog;
  const auto seen = streams_by_queue(process);
  for (const QueueSummary& queue : process.queues) {
    const auto found = seen.find(queue.hwq);
    queues.push_back(queue_json(queue, found == seen.end() ? 0 : found->second, names, top));
    backlog.merge(queue.backlog);
  }
  for (const StreamSummary& stream : process.streams) streams.push_back(stream_json(stream));
  for (const auto& [kind, count] : process.commands) commands[kind] = count;
  for (const auto& [engine, copied] : process.copies)
    copies.push_back({{"engine", engine ? Json(fmt::format("0x{:x}", *engine)) : Json(nullptr)},
                      {"count", copied.count},
                      {"bytes", copied.bytes}});
  for (const ProcessSummary::Message& message : process.messages)
    messages.push_back({{"line", message.at.line},
                        {"time_ns", time_or_null(message.at.time_ns)},
                        {"level", message.level},
                        {"is_queue", message.is_queue},
                        {"queue", address(message.queue)},
                        {"text", message.text}});
  return {{"pid", or_null(process.pid)},
          {"pid_reason", process.pid ? Json(nullptr) : Json("the log has no pid: it is written from level 4 on")},
          {"rests_on", process.pid ? "thread" : "order"},
          {"run", process.run},
          {"first_ns", time_or_null(process.first_ns)},
          {"last_ns", time_or_null(process.last_ns)},
          {"verdicts", log_verdicts(process, reading)},
          {"creation", creation_json(process)},
          {"launches", process.launched()},
          {"launches_from", process.dispatches > 0 ? Json("packets")
                            : process.named > 0    ? Json("names")
                                                   : Json(nullptr)},
          {"dispatches", process.dispatches},
          {"named_without_packet", process.named},
          {"barriers", process.barriers},
          {"other_packets", process.other_packets},
          {"launches_without_queue", process.launches_without_queue},
          {"launches_without_stream", process.launches_without_stream},
          {"launches_over_time", over_time(process.launches)},
          {"gap_ns", distribution(process.gap_ns)},
          {"backlog_packets", distribution(backlog)},
          {"kernels", top_kernels(process.kernels, process.uncounted_kernels, names, top)},
          {"queues", queues},
          {"streams", streams},
          {"commands", commands},
          {"copies", copies},
          {"errors", process.errors},
          {"warnings", process.warnings},
          {"queue_errors", process.queue_errors},
          {"messages", messages},
          {"left_out", {{"queues", process.uncounted_queues}, {"streams", process.uncounted_streams}}}};
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
    unread.push_back({{"reason", lines.reason}, {"count", lines.count}, {"first_line", lines.first_line}});
  for (const ProcessSummary& process : log.summary.processes())
    processes.push_back(process_json(process, reading, log.summary.kernel_names(), top));
  return {{"file", log.file},
          {"bytes", reading.bytes},
          {"lines", reading.lines},
          {"records", reading.records},
          {"records_glued", reading.glued},
          {"records_without_pid", reading.without_pid},
          {"other_lines", reading.other_lines},
          {"first_ns", time_or_null(reading.first_ns)},
          {"last_ns", time_or_null(reading.last_ns)},
          {"highest_level", reading.highest_level},
          {"hip_version", reading.runtime_version.empty() ? Json(nullptr) : Json(reading.runtime_version)},
          {"runtimes", reading.runtimes},
          {"most_queues_per_priority", or_null(reading.most_per_priority)},
          {"restarts", {{"count", log.summary.restart_count()}, {"lines", log.summary.restarts()}}},
          {"problem", reading.problem.empty() ? Json(nullptr) : Json(reading.problem)},
          {"unread", unread},
          {"calls", calls_json(log.summary, top)},
          {"processes", processes},
          {"left_out",
           {{"processes", log.summary.uncounted_processes()}, {"kernel_names", log.summary.uncounted_names()}}}};
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
      times.least_ns = std::min(times.least_ns, *ns);
      times.most_ns = std::max(times.most_ns, *ns);
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
  return {{"schema", schemas::amd_log},
          {"files", files},
          {"totals",
           {{"files", logs.size()},
            {"bytes", bytes},
            {"lines", lines},
            {"records", records},
            {"processes", processes},
            {"queues", queues},
            {"streams", streams},
            {"launches", launches},
            {"barriers", barriers},
            {"copies", copies},
            {"copied_bytes", copied},
            {"errors", errors},
            {"warnings", warnings},
            {"queue_errors", queue_errors}}}};
}

}  // namespace weir::amd
