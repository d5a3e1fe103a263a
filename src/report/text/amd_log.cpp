// weir.amd_log/2: what ROCm's runtime logged about queues, streams and kernels.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/units.h"
#include "report/text/documents.h"
#include "report/text/fields.h"

namespace weir {
namespace {

using namespace fields;

constexpr std::size_t kMaxListedStreams = 16, kMaxQueues = 16, kMaxKernels = 3, kMaxMessages = 8, kMaxCalls = 5;

std::size_t limit(bool is_full, std::size_t most) { return is_full ? SIZE_MAX : most; }

std::string whole(const std::optional<double>& value) {
  return value ? fmt::format("{}", static_cast<std::uint64_t>(std::max(0.0, *value))) : "-";
}

std::string priority_word(const Json& queue) {
  const auto value = number(queue, {"priority"});
  if (!value) return "-";
  return *value < 0.5 ? "low" : *value < 1.5 ? "normal" : *value < 2.5 ? "high" : whole(value);
}

void cut(ReportTable& table, std::size_t all) {
  if (table.rows.size() < all) table.after = fmt::format("and {} more (--full)", all - table.rows.size());
}

ReportTable log_queue_table(const Json& queues, bool is_full) {
  ReportTable table{
      {{"HWq", true}, {"SWq", true}, {"id"}, {"prio", true}, {"size"}, {"streams"}, {"create"}, {"end", true}}};
  for (const Json& queue : first(queues, limit(is_full, kMaxQueues)))
    table.rows.push_back({text(queue, {"hwq"}), text(queue, {"swq"}), whole(number(queue, {"id"})),
                          priority_word(queue), whole(number(queue, {"size_packets"})),
                          whole(number(queue, {"streams_most"})), duration(number(queue, {"creation_ns"})),
                          at(queue, {"deleted_ns"}).is_null() ? "lives" : "deleted"});
  cut(table, queues.size());
  return table;
}

ReportTable work_table(const Json& queues, bool is_full) {
  ReportTable table{
      {{"HWq", true}, {"kernels"}, {"per s"}, {"gap p50"}, {"gap p99"}, {"barriers"}, {"backlog"}, {"most"}}};
  for (const Json& queue : first(queues, limit(is_full, kMaxQueues))) {
    const auto rate = number(queue, {"launches_per_s"});
    table.rows.push_back({text(queue, {"hwq"}), whole(number(queue, {"launches"})), rate ? format_quantity(*rate) : "-",
                          duration(number(queue, {"gap_ns", "p50"})), duration(number(queue, {"gap_ns", "p99"})),
                          whole(number(queue, {"barriers"})), whole(number(queue, {"backlog_packets", "p50"})),
                          whole(number(queue, {"backlog_packets", "max"}))});
  }
  cut(table, queues.size());
  return table;
}

ReportTable kernel_table(const Json& queues, bool is_full) {
  ReportTable table{{{"HWq", true}, {"count"}, {"kernel", true}}};
  for (const Json& queue : first(queues, limit(is_full, kMaxQueues))) {
    std::string owner = text(queue, {"hwq"});
    for (const Json& kernel : first(at(queue, {"kernels", "top"}), limit(is_full, kMaxKernels)))
      table.rows.push_back({std::exchange(owner, ""), whole(number(kernel, {"count"})), text(kernel, {"name"})});
  }
  return table;
}

ReportTable stream_table(const Json& streams, bool is_full) {
  ReportTable table{{{"stream", true}, {"HWq", true}, {"priority"}, {"kernels"}, {"queues used"}, {"end", true}}};
  for (const Json& stream : first(streams, limit(is_full, kMaxListedStreams))) {
    const auto priority = number(stream, {"priority"});
    const double uses =
        static_cast<double>(at(stream, {"uses"}).size()) + number(stream, {"uses_left_out"}).value_or(0);
    table.rows.push_back({text(stream, {"stream"}), text(stream, {"hwq"}),
                          priority ? fmt::format("{}", static_cast<int>(*priority)) : "-",
                          whole(number(stream, {"launches"})), whole(uses),
                          at(stream, {"destroyed_ns"}).is_null() ? "lives" : "destroyed"});
  }
  cut(table, streams.size());
  return table;
}

ReportTable copy_table(const Json& copies) {
  ReportTable table{{{"engine", true}, {"copies"}, {"bytes"}}};
  for (const Json& copy : copies)
    table.rows.push_back({at(copy, {"engine"}).is_null() ? "ROCr chose" : text(copy, {"engine"}),
                          whole(number(copy, {"count"})),
                          format_bytes(static_cast<std::uint64_t>(number(copy, {"bytes"}).value_or(0)))});
  return table;
}

ReportTable message_table(const Json& process, bool is_full) {
  ReportTable table{{{"line"}, {"level"}, {"message", true}}};
  for (const Json& message : first(at(process, {"messages"}), limit(is_full, kMaxMessages)))
    table.rows.push_back(
        {whole(number(message, {"line"})), whole(number(message, {"level"})), text(message, {"text"})});
  const double all = number(process, {"errors"}).value_or(0) + number(process, {"warnings"}).value_or(0);
  if (all > static_cast<double>(table.rows.size()))
    table.after = fmt::format("and {} more", whole(all - static_cast<double>(table.rows.size())));
  return table;
}

std::string process_name(const Json& process) {
  std::string name = at(process, {"pid"}).is_null() ? "no pid" : "process " + text(process, {"pid"});
  if (number(process, {"run"}).value_or(0) > 0)
    name += fmt::format(", after restart {}", whole(number(process, {"run"})));
  return name;
}

void add_process(TextReport& report, const Json& process, bool is_full) {
  ReportSection& head = report.sections.emplace_back();
  head.title = process_name(process);
  head.title[0] = static_cast<char>(head.title[0] - 'a' + 'A');
  for (const Json& verdict : at(process, {"verdicts"})) head.remark(text(verdict, {}));
  const Json& queues = at(process, {"queues"});
  report.add_unless_empty(
      "Hardware queues", log_queue_table(queues, is_full),
      {"size: of the ring, in packets; streams: the greatest refCount that the log shows; create: from asking for the "
       "queue to having it"});
  report.add_unless_empty(
      "Work on each queue", work_table(queues, is_full),
      {"gap: between launches, on the host's clock; backlog: packets not yet read when one was written, median and "
       "most"});
  report.add_unless_empty("Kernels on each queue", kernel_table(queues, is_full));
  report.add_unless_empty("Streams", stream_table(at(process, {"streams"}), is_full));
  report.add_unless_empty("Copies by engine", copy_table(at(process, {"copies"})));
  report.add_unless_empty("Errors and warnings", message_table(process, is_full));
  ReportSection& last = report.sections.back();
  for (const std::string what : {"queue", "stream"})
    if (const auto count = number(process, {("launches_without_" + what).c_str()}); count && *count > 0)
      last.remark("{} kernels are on no {} here: the log does not name theirs.", whole(count), what);
  for (const char* what : {"queues", "streams"})
    if (const auto left = number(process, {"left_out", what}); left && *left > 0)
      last.remark("Too many {}: {} mentions of further ones were left out.", what, whole(left));
}

void add_file(TextReport& report, const Json& file, bool is_full) {
  ReportSection& head = report.section(text(file, {"file"}));
  const auto first = number(file, {"first_ns"}), last = number(file, {"last_ns"});
  head.fact("read", "{}, {} lines, {} of them the runtime's",
            format_bytes(static_cast<std::uint64_t>(number(file, {"bytes"}).value_or(0))), text(file, {"lines"}),
            text(file, {"records"}));
  if (first && last)
    head.fact("time", "{} from {:.6f} s (CLOCK_MONOTONIC)", format_duration(*last - *first), *first / 1e9);
  head.fact("HIP", text(file, {"hip_version"}));
  head.fact("highest level", text(file, {"highest_level"}));
  if (const auto most = number(file, {"most_queues_per_priority"}))
    head.fact("GPU_MAX_HW_QUEUES", whole(most) + " per priority, as the log says");
  std::string calls = fmt::format("{}, {} failed", text(file, {"calls", "total"}), text(file, {"calls", "failed"}));
  const char* glue = ":";
  for (const Json& call : fields::first(at(file, {"calls", "top"}), limit(is_full, kMaxCalls)))
    calls += fmt::format("{} {} {}", std::exchange(glue, ","), text(call, {"count"}), text(call, {"name"}));
  head.fact("HIP calls", calls);
  for (const Json& failure : at(file, {"calls", "failures"}))
    head.remark("{} failed {} times, first with {}.", text(failure, {"name"}), text(failure, {"count"}),
                text(failure, {"first"}));
  if (number(file, {"restarts", "count"}).value_or(0) > 0)
    head.remark("Time goes back {} times, first at line {}: the file holds several runs.",
                text(file, {"restarts", "count"}), text(at(file, {"restarts", "lines"})[0], {}));
  if (!at(file, {"problem"}).is_null()) head.remark("The file ended early: " + text(file, {"problem"}) + ".");
  if (at(file, {"processes"}).empty())
    head.remark(
        "Nothing in it is about queues, streams or kernels. `weir amd capture` sets what makes ROCm write that.");
  for (const Json& process : at(file, {"processes"})) add_process(report, process, is_full);

  ReportTable unread{{{"lines"}, {"first at"}, {"why", true}}};
  for (const Json& lines : at(file, {"unread"}))
    unread.rows.push_back({text(lines, {"count"}), text(lines, {"first_line"}), text(lines, {"reason"})});
  report.add_unless_empty("Not read", std::move(unread));
  if (const auto other = number(file, {"other_lines"}); other && *other > 0) {
    ReportSection& section = report.section("Other lines");
    section.remark("{} of a program's own output, or that go on with a message: nothing is read from {}.",
                   *other == 1 ? "1 line" : whole(other) + " lines", *other == 1 ? "it" : "them");
  }
}

}  // namespace

TextReport amd_log_report(const Json& document, bool is_full) {
  TextReport report;
  const Json& totals = at(document, {"totals"});
  report.title = "weir amd log";
  if (number(totals, {"files"}).value_or(0) > 1)
    report.open("{} files: {} processes, {} hardware queues, {} streams, {} kernels, {} errors.",
                text(totals, {"files"}), text(totals, {"processes"}), text(totals, {"queues"}),
                text(totals, {"streams"}), text(totals, {"launches"}), text(totals, {"errors"}));
  for (const Json& file : at(document, {"files"})) add_file(report, file, is_full);
  return report;
}

DocumentText text_list::amd_log(const Json& document) { return amd_log_report(document, false); }

}  // namespace weir
