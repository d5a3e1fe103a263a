// weir.bench/2: the summary of kernel packages, in six sections.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/plain_text.h"
#include "base/units.h"
#include "report/text/documents.h"
#include "report/text/fields.h"

namespace weir {
namespace {

using namespace fields;

constexpr std::size_t kShownInTerminal = 25;
constexpr std::size_t kLongestReason = 600, kMaxNamedKernels = 4;
constexpr const char* kNone = "None.";

std::string word_or_empty(const Json& json, const char* key) { return string(json, {key}); }

std::string latency(const Json& entry, const char* quantile) {
  return duration(entry, {"timing", "latency_ns", quantile});
}
std::string with_digits(std::optional<double> value, const char* unit = "") {
  return value ? fmt::format("{:.3g}{}", *value, unit) : "-";
}
// 1.34 GB, not 1.34e+03 MB.
std::string megabytes(std::optional<double> bytes) {
  if (!bytes) return "-";
  return *bytes >= 999.5e6 ? with_digits(*bytes / 1e9, " GB") : with_digits(*bytes / 1e6, " MB");
}
std::string whole_percent(std::optional<double> share) { return share ? fmt::format("{:.0f} %", *share * 100) : "-"; }

bool has_samples(const Json& entry) { return number(entry, {"timing", "latency_ns", "p50"}).has_value(); }
bool is_good(const Json& entry) { return word_or_empty(entry, "status") == "ok"; }

// "12.3 G cell/s", or runs where the kernel does not declare its work.
std::string bench_rate(const Json& entry) {
  if (const auto items = number(entry, {"timing", "items_per_s"})) {
    const std::string name = text(entry, {"timing", "item_name"});
    return fmt::format("{} {}/s", format_quantity(*items), name == "-" ? "items" : name);
  }
  const auto runs = number(entry, {"timing", "runs_per_s"});
  return runs ? fmt::format("{} runs/s", format_quantity(*runs)) : "-";
}

ReportSection environment_section(const Json& summary) {
  ReportSection section{"Environment"};
  const Json& environment = at(summary, {"environment"});
  const auto fact = [&](const char* label, const std::string& value) {
    if (!value.empty() && value != "-") section.fact(label, value);
  };
  const Json& git = at(environment, {"git"});
  fact("commit", git.is_object() ? fmt::format("{}{}", word_or_empty(git, "commit").substr(0, 12),
                                               at(git, {"is_changed"}) == true ? ", with changes" : "")
                                 : "none: the working folder is not in a git repository that has a commit");
  fact("system", fmt::format("{}, {}", text(environment, {"system"}), text(environment, {"kernel"})));
  fact("processor", fmt::format("{}, {} logical cores", text(environment, {"cpu_model"}), text(environment, {"cpus"})));
  for (const auto& [name, compiler] : fields::members(at(environment, {"compilers"})))
    if (compiler.is_string()) fact(name == "host" ? "compiler" : name.c_str(), fields::text(compiler, {}));
  if (const Json& python = at(environment, {"python"}); python.is_object()) {
    std::string libraries;
    for (const auto& [name, version] : fields::members(at(python, {"libraries"})))
      if (version.is_string()) libraries += fmt::format(", {} {}", name, fields::text(version, {}));
    fact("python", fmt::format("{} ({}){}", text(python, {"version"}), text(python, {"program"}), libraries));
  }
  for (const auto& [name, device] : fields::members(at(environment, {"devices"}))) {
    const bool is_here = at(device, {"is_present"}) == true;
    if (name != "cpu")
      fact(name.c_str(),
           is_here ? fmt::format(
                         "{} {}{}", word_or_empty(device, "name"), word_or_empty(device, "model"),
                         word_or_empty(device, "driver").empty() ? "" : ", driver " + word_or_empty(device, "driver"))
                   : fmt::format("not here: {}", text(device, {"reason"})));
  }
  for (const auto& [name, ceilings] : fields::members(at(summary, {"ceilings"}))) {
    std::string told;
    if (const auto bandwidth = number(ceilings, {"bytes_per_s", "value"}))
      told = fmt::format("{:.3g} GB/s", *bandwidth / 1e9);
    for (const auto& [precision, ceiling] : fields::members(at(ceilings, {"flop_per_s"})))
      if (const auto value = number(ceiling, {"value"}))
        told += fmt::format("{}{} {:.3g} Gflop/s", told.empty() ? "" : ", ", precision, *value / 1e9);
    fact(fmt::format("{} at best", name).c_str(), told);
  }
  return section;
}

// A terminal has room for few columns, so the parts of a key give way one by one; a file has room for all of it.
void add_columns(ReportTable& table, bool is_full) {
  if (is_full) {
    table.columns.push_back({"case", true});
  } else {
    for (const char* heading : {"kernel", "on", "in", "problem"}) table.columns.push_back({heading, true});
  }
}
void add_cells(std::vector<std::string>& row, const Json& entry, bool is_full) {
  const std::string key = word_or_empty(entry, "key"), kernel = word_or_empty(entry, "kernel_name");
  if (is_full) {
    row.push_back(key);
    return;
  }
  const std::string backend = text(entry, {"backend"}), precision = text(entry, {"precision"});
  const std::string before = fmt::format("{}/{}/{}/", kernel, backend, precision);
  row.insert(row.end(), {kernel, backend, precision, key.starts_with(before) ? key.substr(before.size()) : "-"});
}

ReportSection leaderboard(const Json& cases, std::size_t most, bool is_full) {
  ReportSection section{"Performance Leaderboard"};
  ReportTable table{{{"no."}}};
  add_columns(table, is_full);
  table.columns.push_back({"p50"});
  if (is_full) table.columns.push_back({"p90"});
  table.columns.push_back({"p99"});
  if (is_full) table.columns.push_back({"rate"});
  table.columns.push_back({"of best"});
  std::size_t rank = 0;
  for (const Json& entry : cases) {
    if (!is_good(entry) || !has_samples(entry)) continue;
    if (++rank > most) continue;
    std::vector<std::string> row = {std::to_string(rank)};
    add_cells(row, entry, is_full);
    row.push_back(latency(entry, "p50"));
    if (is_full) row.push_back(latency(entry, "p90"));
    row.push_back(latency(entry, "p99"));
    if (is_full) row.push_back(bench_rate(entry));
    row.push_back(whole_percent(number(entry, {"roofline", "of_ceiling"})));
    table.rows.push_back(std::move(row));
  }
  if (rank > most) table.after = fmt::format("{} more are in summary.md.", rank - most);
  if (rank == 0) {
    section.remark("None: no case was measured.");
  } else {
    section.tables.push_back(std::move(table));
  }
  return section;
}

std::string why_not(const Json& entry) {
  std::string why = text(entry, {"error", "what"});
  if (const std::string signal = text(entry, {"error", "signal"}); signal != "-") why = signal + ", " + why;
  if (has_samples(entry) && word_or_empty(entry, "status") != "inaccurate")
    why +=
        fmt::format("; {} samples before that, p50 {}", text(entry, {"timing", "iterations"}), latency(entry, "p50"));
  return why.substr(0, kLongestReason);
}

// "a, b, c and 4 more"
std::string first_names(const std::vector<std::string>& names) {
  std::string text;
  for (std::size_t i = 0; i < std::min(names.size(), kMaxNamedKernels); ++i) text += (i == 0 ? "" : ", ") + names[i];
  if (names.size() > kMaxNamedKernels) text += fmt::format(" and {} more", names.size() - kMaxNamedKernels);
  return text;
}

// Cases that are not on the leaderboard, and why: case by case in a file, by reason on a terminal.
void add_missing(const Json& cases, bool is_full, ReportSection& section) {
  ReportTable table{{{"case", true}, {"status", true}, {"why", true}}};
  std::vector<std::pair<std::string, std::vector<std::string>>> by_reason;
  for (const Json& entry : cases) {
    if (is_good(entry)) continue;
    const std::string status =
        word_or_empty(entry, "status") == "timed_out" ? "timed out" : word_or_empty(entry, "status");
    table.rows.push_back({word_or_empty(entry, "key"), status, why_not(entry)});
    const std::string reason = fmt::format("{}: {}", status, why_not(entry));
    const auto found =
        std::find_if(by_reason.begin(), by_reason.end(), [&](const auto& one) { return one.first == reason; });
    if (found == by_reason.end()) {
      by_reason.push_back({reason, {word_or_empty(entry, "key")}});
    } else {
      found->second.push_back(word_or_empty(entry, "key"));
    }
  }
  if (is_full && !table.rows.empty()) section.tables.push_back(std::move(table));
  if (is_full) return;
  for (const auto& [reason, keys] : by_reason) section.remark("{} ({})", reason, first_names(keys));
}

ReportSection resources(const Json& cases, std::size_t most, bool is_full) {
  ReportSection section{"Resource Usage"};
  ReportTable table;
  add_columns(table, is_full);
  table.columns.push_back({"peak"});
  if (is_full) table.columns.push_back({"allocated"});
  table.columns.push_back({"energy/run"});
  if (is_full) table.columns.push_back({"power"});
  table.columns.push_back({"rmse"});
  std::map<std::string, std::size_t> reasons;
  std::size_t count = 0;
  for (const Json& entry : cases) {
    if (!has_samples(entry)) continue;
    for (const char* block : {"memory", "energy", "accuracy"})
      if (const std::string reason = text(entry, {block, "reason"}); reason != "-" && is_good(entry))
        ++reasons[fmt::format("{}: {}", block, reason)];
    if (++count > most) continue;
    std::vector<std::string> row;
    add_cells(row, entry, is_full);
    row.push_back(megabytes(number(entry, {"memory", "peak_bytes"})));
    if (is_full) row.push_back(megabytes(number(entry, {"memory", "allocated_bytes"})));
    row.push_back(with_digits(number(entry, {"energy", "energy_j"}), " J"));
    if (is_full) row.push_back(with_digits(number(entry, {"energy", "power_w"}), " W"));
    row.push_back(with_digits(number(entry, {"accuracy", "rmse"})));
    table.rows.push_back(std::move(row));
  }
  if (count > most) table.after = fmt::format("{} more are in summary.md.", count - most);
  if (count == 0) {
    section.remark("None: no case was measured.");
    return section;
  }
  section.tables.push_back(std::move(table));
  for (const auto& [reason, times] : reasons) section.remark("{} ({} of {} cases)", reason, times, count);
  return section;
}

ReportSection list_section(const char* title, const Json& lines) {
  ReportSection section{title};
  for (const Json& line : lines)
    if (line.is_string()) section.remark("- " + fields::text(line, {}));
  if (section.remarks.empty()) section.remark(kNone);
  return section;
}

}  // namespace

TextReport bench_report(const Json& summary, bool is_full) {
  const std::size_t most = is_full ? SIZE_MAX : kShownInTerminal;
  TextReport report{"weir bench"};
  const Json &cases = at(summary, {"cases"}), &counts = at(summary, {"counts"});
  std::string told = fmt::format("{} case{}", cases.size(), cases.size() == 1 ? "" : "s");
  for (const auto& [status, count] : fields::members(counts))
    if (count.is_number_integer() && count.get<std::int64_t>() > 0)
      told += fmt::format(", {} {}", count.get<std::int64_t>(), status == "timed_out" ? "timed out" : status);
  report.open("{}; {}", told, text(summary, {"created"}));
  const bool is_interrupted = word_or_empty(summary, "status") == "interrupted";
  if (is_interrupted) report.open("Interrupted: these are the results so far.");
  if (at(summary, {"options", "is_cold"}) == true) report.open("Caches were emptied before every run (--cold).");
  report.sections.push_back(environment_section(summary));
  report.sections.push_back(leaderboard(cases, most, is_full));
  add_missing(cases, is_full, report.sections.back());
  report.sections.push_back(resources(cases, most, is_full));
  report.sections.push_back(list_section("Key Findings", at(summary, {"findings"})));
  report.sections.push_back(list_section("Recommendations", at(summary, {"recommendations"})));
  report.sections.push_back(regressions_section(at(summary, {"regressions"})));
  if (is_interrupted)
    report.sections.back().remarks = {"Nothing was compared: the run was interrupted before all was measured."};
  return report;
}

TextReport bench_plan_report(const Json& plan) {
  TextReport report{"weir bench --list"};
  ReportSection& units = report.section("Would run");
  ReportTable table{
      {{"package", true}, {"backend", true}, {"precisions", true}, {"problems"}, {"samples"}, {"rounds"}}};
  for (const Json& unit : at(plan, {"units"})) {
    const std::string precisions = fields::joined(at(unit, {"precisions"}), ",");
    table.rows.push_back({word_or_empty(unit, "package"), word_or_empty(unit, "backend"),
                          precisions.empty() ? "of the kernel" : precisions,
                          std::to_string(at(unit, {"problems"}).size()), text(unit, {"iterations"}),
                          text(unit, {"rounds"})});
  }
  if (table.rows.empty())
    units.remark("Nothing.");
  else
    units.tables.push_back(std::move(table));
  ReportSection& others = report.section("Would not run");
  std::map<std::string, std::vector<std::string>> by_reason;
  for (const Json& one : at(plan, {"skipped"}))
    by_reason[word_or_empty(one, "reason")].push_back(
        word_or_empty(one, "backend").empty() ? word_or_empty(one, "package")
                                              : word_or_empty(one, "package") + "/" + word_or_empty(one, "backend"));
  for (const auto& [reason, names] : by_reason) others.remark("{} ({})", reason, first_names(names));
  if (others.remarks.empty()) others.remark("Nothing.");
  return report;
}

std::string bench_line(const Json& entry) {
  std::string line = fmt::format("{}: {}", word_or_empty(entry, "key"), word_or_empty(entry, "status"));
  if (has_samples(entry)) line += ", p50 " + latency(entry, "p50");
  if (const std::string what = fields::first_line(entry, {"error", "what"}); !what.empty())
    line += fmt::format(": {}", whole_characters(what, 200));
  return line;
}

}  // namespace weir
