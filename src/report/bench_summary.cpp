#include "report/bench_summary.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "base/units.h"
#include "report/bench_regressions.h"
#include "report/fields.h"
#include "report/sections.h"

namespace weir {
namespace {

using fields::at;
using fields::number;
using fields::text;

constexpr std::size_t kShownInTerminal = 25;
constexpr const char* kNone = "None.";

std::string word(const Json& json, const char* key) {
  const Json& value = at(json, {key});
  return value.is_string() ? value.get<std::string>() : "";
}

std::string milliseconds(const Json& entry, const char* key) {
  const auto value = number(entry, {"timing", key});
  return value ? format_duration(*value * 1e6) : "-";
}
std::string with_digits(std::optional<double> value, const char* unit = "") {
  return value ? fmt::format("{:.3g}{}", *value, unit) : "-";
}
std::string percent(std::optional<double> share) { return share ? fmt::format("{:.0f} %", *share * 100) : "-"; }

bool has_samples(const Json& entry) { return number(entry, {"timing", "latency_ms_p50"}).has_value(); }
bool is_good(const Json& entry) { return word(entry, "status") == "ok"; }

// "12.3 G cell/s", or runs where the kernel did not tell what it works on.
std::string rate(const Json& entry) {
  if (const auto items = number(entry, {"timing", "items_per_sec"})) {
    const std::string name = text(entry, {"timing", "item_name"});
    return fmt::format("{} {}/s", format_quantity(*items), name == "-" ? "items" : name);
  }
  const auto runs = number(entry, {"timing", "throughput_ops_per_sec"});
  return runs ? fmt::format("{} runs/s", format_quantity(*runs)) : "-";
}

ReportSection environment_section(const Json& summary) {
  ReportSection section;
  section.title = "Environment";
  const Json& environment = at(summary, {"environment"});
  const auto fact = [&](const char* label, const std::string& value) {
    if (!value.empty() && value != "-") section.facts.emplace_back(label, value);
  };
  const Json& git = at(environment, {"git"});
  fact("commit", git.is_object() ? fmt::format("{}{}", word(git, "commit").substr(0, 12),
                                               at(git, {"is_changed"}) == true ? ", with changes" : "")
                                 : "the working folder is in no git repository");
  fact("system", fmt::format("{}, {}", text(environment, {"system"}), text(environment, {"kernel"})));
  fact("processor", fmt::format("{}, {} logical cores", text(environment, {"cpu_model"}), text(environment, {"cpus"})));
  for (const auto& [name, compiler] : at(environment, {"compilers"}).items())
    if (compiler.is_string()) fact(name == "host" ? "compiler" : name.c_str(), compiler.get<std::string>());
  for (const auto& [name, device] : at(environment, {"devices"}).items()) {
    const bool is_here = at(device, {"is_present"}) == true;
    if (name != "cpu")
      fact(name.c_str(), is_here
                             ? fmt::format("{} {}{}", word(device, "name"), word(device, "model"),
                                           word(device, "driver").empty() ? "" : ", driver " + word(device, "driver"))
                             : fmt::format("not here: {}", text(device, {"reason"})));
  }
  for (const auto& [name, ceilings] : at(summary, {"ceilings"}).items()) {
    std::string told;
    if (const auto bandwidth = number(ceilings, {"bandwidth", "value"}))
      told = fmt::format("{:.3g} GB/s", *bandwidth / 1e9);
    for (const auto& [precision, ceiling] : at(ceilings, {"compute"}).items())
      if (const auto value = number(ceiling, {"value"}))
        told += fmt::format("{}{} {:.3g} Gflop/s", told.empty() ? "" : ", ", precision, *value / 1e9);
    fact(fmt::format("{} at best", name).c_str(), told);
  }
  return section;
}

ReportSection leaderboard(const Json& cases, std::size_t most) {
  ReportSection section;
  section.title = "Performance Leaderboard";
  ReportTable table;
  table.columns = {{"#"}, {"case", true}, {"p50"}, {"p90"}, {"p99"}, {"rate"}, {"of best"}};
  std::size_t rank = 0;
  for (const Json& entry : cases) {
    if (!is_good(entry) || !has_samples(entry)) continue;
    if (++rank > most) continue;
    table.rows.push_back({std::to_string(rank), word(entry, "key"), milliseconds(entry, "latency_ms_p50"),
                          milliseconds(entry, "latency_ms_p90"), milliseconds(entry, "latency_ms_p99"), rate(entry),
                          percent(number(entry, {"roofline", "of_ceiling"}))});
  }
  if (rank > most) table.after = fmt::format("{} more are in summary.md.", rank - most);
  if (rank == 0)
    section.remarks.emplace_back("None: no case was measured.");
  else
    section.tables.push_back(std::move(table));
  return section;
}

// What is not on the leaderboard, and why.
void add_missing(const Json& cases, std::size_t most, ReportSection& section) {
  ReportTable table;
  table.columns = {{"case", true}, {"status"}, {"why", true}};
  std::size_t count = 0;
  for (const Json& entry : cases) {
    if (is_good(entry)) continue;
    if (++count > most) continue;
    std::string why = text(entry, {"error", "what"});
    if (const std::string signal = text(entry, {"error", "signal"}); signal != "-") why = signal + ", " + why;
    if (has_samples(entry) && word(entry, "status") != "inaccurate")
      why += fmt::format("; {} samples before that, p50 {}", text(entry, {"timing", "iterations"}),
                         milliseconds(entry, "latency_ms_p50"));
    table.rows.push_back({word(entry, "key"), word(entry, "status"), why.substr(0, why.find('\n'))});
  }
  if (count > most) table.after = fmt::format("{} more are in summary.md.", count - most);
  if (count > 0) section.tables.push_back(std::move(table));
}

// Longer than a table has room for: what compilers say, and why.
void add_reasons(const Json& cases, ReportSection& section) {
  std::set<std::string> told;
  for (const Json& entry : cases) {
    const std::string what = text(entry, {"error", "what"}), status = word(entry, "status");
    if (is_good(entry) || status == "skipped" || what.size() < 30 || !told.insert(what).second) continue;
    section.remarks.push_back(fmt::format("{}: {}", word(entry, "key"), what.substr(0, 600)));
  }
}

ReportSection resources(const Json& cases, std::size_t most) {
  ReportSection section;
  section.title = "Resource Usage";
  ReportTable table;
  table.columns = {{"case", true}, {"peak"}, {"allocated"}, {"energy a run"}, {"power"}, {"rmse"}};
  std::map<std::string, std::size_t> reasons;
  std::size_t count = 0;
  for (const Json& entry : cases) {
    if (!has_samples(entry)) continue;
    for (const char* block : {"memory", "energy", "accuracy"})
      if (const std::string reason = text(entry, {block, "reason"}); reason != "-" && is_good(entry))
        ++reasons[fmt::format("{}: {}", block, reason)];
    if (++count > most) continue;
    table.rows.push_back({word(entry, "key"), with_digits(number(entry, {"memory", "peak_mb"}), " MB"),
                          with_digits(number(entry, {"memory", "allocated_mb"}), " MB"),
                          with_digits(number(entry, {"energy", "energy_j"}), " J"),
                          with_digits(number(entry, {"energy", "power_w"}), " W"),
                          with_digits(number(entry, {"accuracy", "rmse"}))});
  }
  if (count > most) table.after = fmt::format("{} more are in summary.md.", count - most);
  if (count == 0) {
    section.remarks.emplace_back("None: no case was measured.");
    return section;
  }
  section.tables.push_back(std::move(table));
  for (const auto& [reason, times] : reasons)
    section.remarks.push_back(fmt::format("{} ({} of {} cases)", reason, times, count));
  return section;
}

ReportSection list_section(const char* title, const Json& lines) {
  ReportSection section;
  section.title = title;
  for (const Json& line : lines)
    if (line.is_string()) section.remarks.push_back("- " + line.get<std::string>());
  if (section.remarks.empty()) section.remarks.emplace_back(kNone);
  return section;
}

Report make_report(const Json& summary, std::size_t most) {
  Report report;
  report.title = "weir bench";
  const Json &cases = at(summary, {"cases"}), &counts = at(summary, {"counts"});
  std::string told = fmt::format("{} cases", cases.size());
  for (const auto& [status, count] : counts.items())
    if (count.is_number_integer() && count.get<std::int64_t>() > 0)
      told += fmt::format(", {} {}", count.get<std::int64_t>(), status == "timed_out" ? "timed out" : status);
  report.opening.push_back(fmt::format("{}; {}", told, text(summary, {"created"})));
  if (word(summary, "status") == "interrupted")
    report.opening.emplace_back("Interrupted: this is what had been measured by then.");
  if (at(summary, {"options", "is_cold"}) == true)
    report.opening.emplace_back("Caches were emptied before every run (--cold).");
  report.sections.push_back(environment_section(summary));
  report.sections.push_back(leaderboard(cases, most));
  add_missing(cases, most, report.sections.back());
  add_reasons(cases, report.sections.back());
  report.sections.push_back(resources(cases, most));
  report.sections.push_back(list_section("Key Findings", at(summary, {"findings"})));
  report.sections.push_back(list_section("Recommendations", at(summary, {"recommendations"})));
  report.sections.push_back(regressions_section(at(summary, {"regressions"})));
  return report;
}

Report plan_report(const Json& plan) {
  Report report;
  report.title = "weir bench --list";
  ReportSection units;
  units.title = "Would run";
  ReportTable table;
  table.columns = {{"package", true}, {"backend", true}, {"precisions", true}, {"problems"}, {"samples"}, {"rounds"}};
  for (const Json& unit : at(plan, {"units"})) {
    std::string precisions;
    for (const Json& one : at(unit, {"precisions"}))
      precisions += (precisions.empty() ? "" : ",") + one.get<std::string>();
    table.rows.push_back(
        {word(unit, "package"), word(unit, "backend"), precisions.empty() ? "of the kernel" : precisions,
         std::to_string(at(unit, {"problems"}).size()), text(unit, {"iterations"}), text(unit, {"rounds"})});
  }
  if (table.rows.empty())
    units.remarks.emplace_back("Nothing.");
  else
    units.tables.push_back(std::move(table));
  report.sections.push_back(std::move(units));
  ReportSection others;
  others.title = "Would not run";
  ReportTable reasons;
  reasons.columns = {{"package", true}, {"backend", true}, {"why", true}};
  for (const Json& one : at(plan, {"skipped"}))
    reasons.rows.push_back(
        {word(one, "package"), word(one, "backend").empty() ? "all" : word(one, "backend"), word(one, "reason")});
  if (reasons.rows.empty())
    others.remarks.emplace_back("Nothing.");
  else
    others.tables.push_back(std::move(reasons));
  report.sections.push_back(std::move(others));
  return report;
}

}  // namespace

std::string bench_text(const Json& summary) { return report_text(make_report(summary, kShownInTerminal)); }
std::string bench_markdown(const Json& summary) { return report_markdown(make_report(summary, SIZE_MAX)); }

std::string bench_line(const Json& entry) {
  std::string line = fmt::format("{}: {}", word(entry, "key"), word(entry, "status"));
  if (has_samples(entry)) line += ", p50 " + milliseconds(entry, "latency_ms_p50");
  if (const std::string what = text(entry, {"error", "what"}); what != "-")
    line += ": " + what.substr(0, std::min<std::size_t>(what.find('\n'), 200));
  // Names and messages are a package's own, and terminals obey escapes.
  for (char& c : line)
    if (static_cast<unsigned char>(c) < 32 || c == 127) c = ' ';
  return line;
}

std::string bench_plan_text(const Json& plan) { return report_text(plan_report(plan)); }
std::string bench_plan_markdown(const Json& plan) { return report_markdown(plan_report(plan)); }

}  // namespace weir
