// weir.analysis/2: what a trace shows as a whole; its devices are in analysis_use.cpp and analysis_causes.cpp.
#include <fmt/format.h>

#include <algorithm>

#include "report/text/analysis_sections.h"
#include "report/text/analysis_words.h"
#include "report/text/documents.h"
#include "report/text/renewed.h"

namespace weir {
namespace {

using namespace analysis;

void add_ranks(TextReport& report, const Json& document) {
  const Json& clocks = at(document, {"clocks"});
  if (!clocks.is_object()) return;
  ReportSection& section = report.section("Ranks");
  // If times were moved, the summary is already among the notes.
  const Json& notes = at(document, {"notes"});
  if (std::find(notes.begin(), notes.end(), at(clocks, {"summary"})) == notes.end())
    section.remark(word(clocks, "summary"));
  if (const Json& ranks = at(document, {"ranks"}); ranks.is_object()) {
    if (const Json& skew = at(ranks, {"skew"}); skew.is_object())
      section.fact("skew of arrivals", "p50 {}, p95 {}, p99 {}, most {} ({} collectives)",
                   duration(skew, "skew_ns", "p50"), duration(skew, "skew_ns", "p95"), duration(skew, "skew_ns", "p99"),
                   duration(skew, "skew_ns", "max"), count(skew, "instances"));
    ReportTable& table =
        section.table({{"rank"}, {"collectives"}, {"in them"}, {"waiting"}, {"of its span"}, {"last"}, {"behind"}});
    for (const Json& rank : at(ranks, {"ranks"}))
      table.rows.push_back({count(rank, "rank"), count(rank, "collectives"), duration(rank, "collective_ns"),
                            duration(rank, "waiting_ns"), percent(number(rank, {"wait_share"})),
                            percent(number(rank, {"last_share"})), duration(rank, "behind_ns")});
    for (const Json& straggler : at(ranks, {"stragglers"}))
      section.remark("Straggler: rank {}, {}", count(straggler, "rank"), word(straggler, "reason"));
  } else {
    section.remark("Skew between ranks is not known: {}.", fields::text(document, {"unavailable", "ranks"}));
  }
}

// One row per device, where there are several.
void add_devices(TextReport& report, const Json& document) {
  const Json& devices = at(document, {"devices"});
  if (devices.size() < 2) return;
  ReportSection& section = report.section("Devices");
  ReportTable& table = section.table(
      {{"rank"}, {"device", true}, {"commands"}, {"span"}, {"busy"}, {"compute"}, {"comm."}, {"exposed"}});
  for (const Json& device : devices) {
    const Json& times = at(device, {"times"});
    table.rows.push_back({count(device, "rank"), word(device, "label"), count(device, "commands"),
                          duration(times, "span_ns"), duration(times, "busy_ns"), duration(times, "compute_ns"),
                          duration(times, "communication_ns"), duration(times, "exposed_communication_ns")});
  }
}

// The hops of each class of command, with the dominating one named. Null: an empty section.
ReportSection waterfall_section(const Json& waterfall) {
  ReportSection section{"Waterfall: from the host to the device and back"};
  for (const Json& each : at(waterfall, {"classes"})) {
    ReportTable table{{{fmt::format("{} ({})", word(each, "kind"), count(each, "commands")), true},
                       {"p50"},
                       {"p95"},
                       {"p99"},
                       {"share"},
                       {"n"}}};
    bool is_seen_later = false;
    for (const Json& hop : at(each, {"hops"})) {
      const auto share = number(hop, {"share"});
      is_seen_later = is_seen_later || (!share && at(hop, {"to"}) == "seen");
      table.rows.push_back({fmt::format("{} -> {}", word(hop, "from"), word(hop, "to")),
                            duration(hop, "duration_ns", "p50"), duration(hop, "duration_ns", "p95"),
                            duration(hop, "duration_ns", "p99"), percent(share), count(hop, "count")});
    }
    // Start and end alone show no path.
    if (at(each, {"hops"}).size() < 2) {
      table.after = "when the host submitted them is not in the source";
      section.tables.push_back(std::move(table));
      continue;
    }
    const std::string words = word(each, "words_to_end");
    table.after = words == "-" || words.empty() ? word(each, "words") : words;
    if (is_seen_later) table.after += fmt::format(". {}", why_seen_is_left_out(each));
    section.tables.push_back(std::move(table));
  }
  if (section.tables.empty()) section.remark("No hop is known.");
  return section;
}

}  // namespace

TextReport analysis_report(const Json& document, bool is_full) {
  const std::size_t most = is_full ? 1000 : 10;
  TextReport report;
  const Json& files = at(document, {"files"});
  report.title = files.size() == 1 ? fmt::format("weir analyze {}", word(files[0], "name"))
                                   : fmt::format("weir analyze: {} files", files.size());
  std::uint64_t bytes = 0;
  std::string formats;
  for (const Json& file : files) {
    bytes += static_cast<std::uint64_t>(number(file, {"bytes"}).value_or(0));
    if (const std::string format = word(file, "format"); formats.find(format) == std::string::npos)
      formats += (formats.empty() ? "" : ", ") + format;
  }
  report.open("{}, {}; {}, {}", formats, format_bytes(bytes), counted(document, "commands", "command"),
              counted(document, "calls", "host call"));
  if (const Json& window = at(document, {"window"}); window.is_object())
    report.open("Analysed: {} to {} of the trace, {}{}", duration(window, "begin_ns"), duration(window, "end_ns"),
                counted(window, "commands", "command"),
                word(window, "reason") == "start-up"
                    ? "; what is before is the program's start-up (--window all includes it)"
                    : "");
  for (const Json& note : at(document, {"notes"})) report.open("Note: " + fields::text(note, {}));
  for (const Json& dropped : at(document, {"dropped"}))
    report.open("Dropped: {} x {} (first: {})", count(dropped, "count"), word(dropped, "reason"),
                word(dropped, "first"));
  const Json& devices = at(document, {"devices"});
  if (devices.empty())
    report.open(
        "The trace has no GPU commands, so there is nothing to analyse. Was the GPU traced (PyTorch: "
        "ProfilerActivity.CUDA)?");
  if (const std::vector<std::string> found = findings(document); !found.empty()) {
    ReportSection& section = report.section("What stands out");
    for (std::size_t i = 0; i < found.size(); ++i)
      section.remark(found.size() == 1 ? found[i] : fmt::format("{}. {}", i + 1, found[i]));
  }
  add_ranks(report, document);
  add_devices(report, document);
  if (at(document, {"rank_phases"}).is_object()) report.sections.push_back(rank_phases_section(document, most));
  // With many devices only the first is printed in detail; the others have a row, and everything is in the JSON.
  const std::size_t listed = is_full ? devices.size() : std::min<std::size_t>(devices.size(), 1);
  for (std::size_t i = 0; i < listed; ++i) {
    const Json& device = devices[i];
    report.section(
        fmt::format("Rank {}, {}: {} on {}{}", count(device, "rank"), word(device, "label"),
                    counted(device, "commands", "command"), counted(device, "streams", "stream"),
                    at(device, {"queues"}).is_null() ? "" : ", " + counted(device, "queues", "hardware queue")));
    report.sections.push_back(times_section(device));
    if (!at(device, {"work"}).empty()) report.sections.push_back(work_section(device));
    if (at(device, {"model"}).is_object()) {
      report.sections.push_back(modules_section(device, most));
      report.sections.push_back(phases_section(device, most));
      report.sections.push_back(shapes_section(device, most));
      if (number(device, {"model", "launch_limited", "count"}).value_or(0) > 0)
        report.sections.push_back(launching_section(device, most));
      if (!at(device, {"copies"}).empty()) report.sections.push_back(copies_section(device, most));
    }
    if (at(device, {"memory"}).is_object()) report.sections.push_back(memory_section(device, most));
    if (at(device, {"efficiency"}).is_object()) report.sections.push_back(efficiency_section(device, most));
    if (at(device, {"iterations"}).is_object()) report.sections.push_back(iterations_section(device, most));
    report.sections.push_back(queues_section(device, most));
    report.sections.push_back(serialisation_section(device, most));
    report.sections.push_back(host_section(device));
    report.sections.push_back(waterfall_section(at(device, {"waterfall"})));
    report.sections.push_back(path_section(device, is_full ? most : 5));
    if (at(device, {"exposed_causes"}).is_object()) report.sections.push_back(exposed_section(device));
    if (at(device, {"collectives"}).is_object()) report.sections.push_back(collectives_section(device, most));
    report.sections.push_back(top_section(device, most));
    report.sections.push_back(gaps_section(device));
  }
  if (listed < devices.size())
    report.sections.push_back(
        {"More",
         {},
         {},
         {devices.size() - listed == 1
              ? std::string("--full prints the other device, and --json has it.")
              : fmt::format("--full prints the other {} devices, and --json has them.", devices.size() - listed)}});
  return report;
}

DocumentText text_list::analysis(const Json& document) { return analysis_report(renewed_analysis(document), false); }

}  // namespace weir
