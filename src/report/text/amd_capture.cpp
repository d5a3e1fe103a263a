// weir.amd_capture/1: what a capture of a program contains and lacks.
#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "base/units.h"
#include "report/text/documents.h"
#include "report/text/fields.h"

namespace weir {
namespace {

using namespace fields;

constexpr const char* kOfQueues[] = {"log", "ftrace", "hqds", "mqds", "rls"};

std::string end_of_program(const Json& manifest) {
  const auto code = number(manifest, {"exit_code"});
  if (at(manifest, {"target"}).is_object())
    return fmt::format("watched for {}", format_duration(number(manifest, {"ended_ns"}).value_or(0) -
                                                         number(manifest, {"started_ns"}).value_or(0)));
  if (!code) return "it did not run";
  const double took = number(manifest, {"ended_ns"}).value_or(0) - number(manifest, {"started_ns"}).value_or(0);
  if (*code > 128)
    return fmt::format("ended by signal {:.0f} (or exit code {:.0f}) after {}", *code - 128, *code,
                       format_duration(took));
  return fmt::format("exit code {:.0f} after {}", *code, format_duration(took));
}

const Json* part_of(const Json& manifest, const char* name) {
  for (const Json& part : at(manifest, {"parts"}))
    if (text(part, {"name"}) == name) return &part;
  return nullptr;
}

bool has_files(const Json* part) { return part != nullptr && !at(*part, {"files"}).empty(); }

// The last snapshot in which the program may have had queues.
std::string fullest_snapshot(const Json& manifest) {
  std::string folder;
  for (const Json& snapshot : at(manifest, {"snapshots"}))
    if (folder.empty() || text(snapshot, {"when"}).starts_with("during")) folder = text(snapshot, {"folder"});
  return folder;
}

// "Missing" lists parts that do not exist at all, "Incomplete" parts that contain less than requested.
ReportSection lacks(const Json& manifest, bool is_there, const char* title) {
  ReportSection section{title};
  std::map<std::string, std::string> fixes;  // hint to names of parts
  for (const Json& part : at(manifest, {"parts"})) {
    if (!at(part, {"reason"}).is_string() || has_files(&part) != is_there) continue;
    const std::string name = text(part, {"name"});
    section.fact(name, text(part, {"reason"}));
    if (at(part, {"hint"}).is_string()) {
      std::string& names = fixes[text(part, {"hint"})];
      names += (names.empty() ? "" : ", ") + name;
    }
  }
  // One fix often applies to several parts.
  for (const auto& [hint, names] : fixes) section.remark("{}: {}", names, hint);
  return section;
}

}  // namespace

TextReport capture_report(const Json& manifest, const std::map<std::string, std::uint64_t>& bytes,
                          const std::string& folder) {
  TextReport report{"Capture " + folder};
  ReportSection& run = report.section("Program");
  run.facts = {{"command", joined(at(manifest, {"command"}), " ")},
               {"end", end_of_program(manifest)},
               {"processes seen", std::to_string(at(manifest, {"processes"}).size())},
               {"snapshots", std::to_string(at(manifest, {"snapshots"}).size())}};
  if (const std::string container = text(manifest, {"target", "container"}); !container.empty())
    run.fact("container", fmt::format("{} ({})", container, text(manifest, {"target", "container_id"}).substr(0, 12)));
  if (has_files(part_of(manifest, "ftrace"))) run.fact("trace clock", text(manifest, {"trace_clock"}));

  if (const auto evictions = number(manifest, {"queue_events", "evictions"})) {
    const auto longest = number(manifest, {"queue_events", "longest_eviction_ns"});
    run.fact("evictions", "{:.0f} of queues, of all programs{}", *evictions,
             longest ? fmt::format("; the longest took {}", format_duration(*longest)) : "");
  }

  ReportTable table{{{"part", true}, {"files", false}, {"size", false}}};
  for (const Json& part : at(manifest, {"parts"})) {
    if (!has_files(&part)) continue;
    const std::string name = text(part, {"name"});
    const auto size = bytes.find(name);
    table.rows.push_back(
        {name, std::to_string(at(part, {"files"}).size()), size == bytes.end() ? "-" : format_bytes(size->second)});
  }
  ReportSection& captured = report.section("Captured");
  captured.add_unless_empty(std::move(table));
  if (!std::any_of(std::begin(kOfQueues), std::end(kOfQueues),
                   [&](const char* name) { return has_files(part_of(manifest, name)); }))
    captured.remark("Nothing about queues could be captured here. The program ran as it would have alone.");
  for (ReportSection& section :
       std::vector<ReportSection>{lacks(manifest, true, "Incomplete"), lacks(manifest, false, "Missing")})
    if (!section.facts.empty()) report.sections.push_back(std::move(section));

  ReportSection next{"Next"};
  const bool has_log = has_files(part_of(manifest, "log")), has_trace = has_files(part_of(manifest, "ftrace"));
  const bool has_hqds = has_files(part_of(manifest, "hqds"));
  if (has_log || has_trace || has_hqds) next.remark("weir amd join " + folder);
  if (has_log) next.remark("weir amd log {}/log*", folder);
  if (has_trace)
    next.remark("weir amd ftrace {}/ftrace.txt{}", folder,
                text(manifest, {"trace_clock"}) == "mono" ? " --trace-clock mono" : "");
  if (has_hqds) next.remark("weir amd hqd {}/{}", folder, fullest_snapshot(manifest));
  if (!next.remarks.empty()) report.sections.push_back(std::move(next));
  return report;
}

DocumentText text_list::amd_capture(const Json& document) { return capture_report(document, {}, "the folder"); }

}  // namespace weir
