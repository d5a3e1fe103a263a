#include "report/text/amd_capture.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "base/units.h"
#include "report/text/fields.h"

namespace weir {
namespace {

constexpr const char* kOfQueues[] = {"log", "ftrace", "hqds", "mqds", "rls"};

std::string end_of_program(const Json& manifest) {
  const auto code = fields::number(manifest, {"exit_code"});
  if (!code) return "it did not run";
  const double took =
      fields::number(manifest, {"ended_ns"}).value_or(0) - fields::number(manifest, {"started_ns"}).value_or(0);
  if (*code > 128)
    return fmt::format("ended by signal {:.0f} (or exit code {:.0f}) after {}", *code - 128, *code,
                       format_duration(took));
  return fmt::format("exit code {:.0f} after {}", *code, format_duration(took));
}

std::string words_of(const Json& command) {
  std::string text;
  for (const Json& word : command)
    if (word.is_string()) text += (text.empty() ? "" : " ") + word.get<std::string>();
  return text;
}

const Json* part_of(const Json& manifest, const char* name) {
  for (const Json& part : fields::at(manifest, {"parts"}))
    if (fields::text(part, {"name"}) == name) return &part;
  return nullptr;
}

bool has_files(const Json* part) { return part != nullptr && !fields::at(*part, {"files"}).empty(); }

// The last snapshot in which the program may have had queues.
std::string liveliest(const Json& manifest) {
  std::string folder;
  for (const Json& snapshot : fields::at(manifest, {"snapshots"}))
    if (folder.empty() || fields::text(snapshot, {"when"}).starts_with("during"))
      folder = fields::text(snapshot, {"folder"});
  return folder;
}

// "Missing" holds what is not there at all, "Incomplete" what is less than asked for.
ReportSection lacks(const Json& manifest, bool is_there, const char* title) {
  ReportSection section{title, {}, {}, {}};
  std::map<std::string, std::string> fixes;  // hint to names of parts
  for (const Json& part : fields::at(manifest, {"parts"})) {
    if (!fields::at(part, {"reason"}).is_string() || has_files(&part) != is_there) continue;
    const std::string name = fields::text(part, {"name"});
    section.facts.emplace_back(name, fields::text(part, {"reason"}));
    if (fields::at(part, {"hint"}).is_string()) {
      std::string& names = fixes[fields::text(part, {"hint"})];
      names += (names.empty() ? "" : ", ") + name;
    }
  }
  // One fix often serves several parts.
  for (const auto& [hint, names] : fixes) section.remarks.push_back(fmt::format("{}: {}", names, hint));
  return section;
}

}  // namespace

Report capture_report(const Json& manifest, const std::map<std::string, std::uint64_t>& bytes,
                      const std::string& folder) {
  Report report;
  report.title = "Capture " + folder;
  ReportSection run{"Program", {}, {}, {}};
  run.facts = {{"command", words_of(fields::at(manifest, {"command"}))},
               {"end", end_of_program(manifest)},
               {"processes seen", std::to_string(fields::at(manifest, {"processes"}).size())},
               {"snapshots", std::to_string(fields::at(manifest, {"snapshots"}).size())}};
  if (has_files(part_of(manifest, "ftrace")))
    run.facts.emplace_back("trace clock", fields::text(manifest, {"trace_clock"}));
  report.sections.push_back(std::move(run));

  ReportTable table{{{"part", true}, {"files", false}, {"size", false}}, {}, ""};
  for (const Json& part : fields::at(manifest, {"parts"})) {
    if (!has_files(&part)) continue;
    const std::string name = fields::text(part, {"name"});
    const auto size = bytes.find(name);
    table.rows.push_back({name, std::to_string(fields::at(part, {"files"}).size()),
                          size == bytes.end() ? "-" : format_bytes(size->second)});
  }
  ReportSection captured{"Captured", {}, {}, {}};
  if (!table.rows.empty()) captured.tables.push_back(std::move(table));
  if (!std::any_of(std::begin(kOfQueues), std::end(kOfQueues),
                   [&](const char* name) { return has_files(part_of(manifest, name)); }))
    captured.remarks.push_back("Nothing about queues was to be had here. The program ran as it would have alone.");
  report.sections.push_back(std::move(captured));
  for (ReportSection& section :
       std::vector<ReportSection>{lacks(manifest, true, "Incomplete"), lacks(manifest, false, "Missing")})
    if (!section.facts.empty()) report.sections.push_back(std::move(section));

  ReportSection next{"Next", {}, {}, {}};
  const bool has_log = has_files(part_of(manifest, "log")), has_trace = has_files(part_of(manifest, "ftrace"));
  const bool has_hqds = has_files(part_of(manifest, "hqds"));
  if (has_log || has_trace || has_hqds) next.remarks.push_back("weir amd join " + folder);
  if (has_log) next.remarks.push_back(fmt::format("weir amd log {}/log*", folder));
  if (has_trace)
    next.remarks.push_back(fmt::format("weir amd ftrace {}/ftrace.txt{}", folder,
                                       fields::text(manifest, {"trace_clock"}) == "mono" ? " --trace-clock mono" : ""));
  if (has_hqds) next.remarks.push_back(fmt::format("weir amd hqd {}/{}", folder, liveliest(manifest)));
  if (!next.remarks.empty()) report.sections.push_back(std::move(next));
  return report;
}

}  // namespace weir
