// weir.channel/2: benchmarks of host channels, targets, comparison and calibration.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/units.h"
#include "report/text/documents.h"
#include "report/text/fields.h"

namespace weir {
namespace {

using namespace fields;

// 217 ns, 14.2 M/s
std::string result_value(const std::string& unit, std::optional<double> value) {
  if (!value) return "-";
  if (unit != "per_second") return format_duration(*value);
  const std::string quantity = format_quantity(*value);
  return quantity + (quantity.find(' ') == std::string::npos ? " /s" : "/s");
}

// 225 - 242 ns, 980 ns - 1.02 us
std::string result_range(const std::string& unit, std::optional<double> low, std::optional<double> high) {
  const std::string from = result_value(unit, low), to = result_value(unit, high);
  const std::size_t suffix = from.find(' ');
  const bool is_one_unit = suffix != std::string::npos && to.ends_with(from.substr(suffix));
  return (is_one_unit ? from.substr(0, suffix) : from) + " - " + to;
}

std::string factor_text(double factor) {
  return fmt::format("{:.{}f}x", factor, factor < 9.995 ? 2 : factor < 99.95 ? 1 : 0);
}

std::string times_text(std::optional<double> times) { return times ? factor_text(*times) : ""; }

std::string benchmark_place(const Json& benchmark) {
  return text(benchmark, {"name"}) + "/" + text(benchmark, {"contestant"});
}

bool is_measured(const Json& benchmark) { return number(benchmark, {"value"}).has_value(); }

TextReport opening_of(const Json& document) {
  TextReport report;
  std::size_t measured = 0, failed = 0, unavailable = 0;
  for (const Json& benchmark : at(document, {"benchmarks"})) {
    const std::string status = text(benchmark, {"status"});
    measured += status == "measured" ? 1 : 0;
    failed += status == "failed" ? 1 : 0;
    unavailable += status == "unavailable" ? 1 : 0;
  }
  report.title = fmt::format("weir channel: {} benchmark{} measured", measured, measured == 1 ? "" : "s");
  if (failed > 0) report.title += fmt::format(", {} failed", failed);
  if (unavailable > 0) report.title += fmt::format(", {} cannot be run here", unavailable);
  const Json& settings = at(document, {"settings"});
  std::string cores;
  for (const Json& core : at(settings, {"cores"}))
    cores += fmt::format("{}{}", cores.empty() ? "" : ",", fields::text(core, {}));
  const Json& environment = at(document, {"environment"});
  report.open("{} processes in shuffled order (seed {}), {} samples of about {} ms each, channels of {} commands",
              text(settings, {"processes"}), text(settings, {"seed"}), text(settings, {"samples"}),
              fmt::format("{:g}", number(settings, {"sample_ns"}).value_or(0) / 1e6), text(settings, {"capacity"}));
  report.open("{}, {} cpus, governor {}, load {}; threads bound to {}", text(environment, {"architecture"}),
              text(environment, {"cpus"}),
              at(environment, {"governor"}).is_null() ? "unknown" : text(environment, {"governor"}),
              text(environment, {"load_average"}), cores.empty() ? "nothing" : "cores " + cores);
  if (text(document, {"status"}) != "complete") report.open("Interrupted: these are the results so far.");
  return report;
}

ReportTable benchmark_table(const std::vector<const Json*>& benchmarks) {
  const auto has = [&](auto member) {
    return std::any_of(benchmarks.begin(), benchmarks.end(), [&](const Json* one) { return member(*one); });
  };
  const bool has_p99 = has([](const Json& one) { return number(one, {"latency_ns", "p99"}).has_value(); });
  const bool has_best = has([](const Json& one) { return number(one, {"best", "times"}).has_value(); });
  const bool has_mutex = has([](const Json& one) { return number(one, {"mutex", "speedup"}).has_value(); });
  const bool has_floor = has([](const Json& one) { return number(one, {"floor", "times"}).has_value(); });
  ReportTable table{{{"benchmark", true}, {"contestant", true}, {"median"}, {"processes"}}};
  if (has_p99) table.columns.push_back({"p99"});
  if (has_best) table.columns.push_back({"best"});
  if (has_mutex) table.columns.push_back({"against mutex"});
  if (has_floor) table.columns.push_back({"floor"});
  std::string before;
  for (const Json* one : benchmarks) {
    const std::string unit = text(*one, {"unit"}), name = text(*one, {"name"});
    std::vector<std::string> row = {name == before ? "" : name, text(*one, {"contestant"}),
                                    result_value(unit, number(*one, {"value"})),
                                    result_range(unit, number(*one, {"low"}), number(*one, {"high"}))};
    if (has_p99) row.push_back(result_value("", number(*one, {"latency_ns", "p99"})));
    if (has_best) row.push_back(times_text(number(*one, {"best", "times"})));
    if (has_mutex) row.push_back(times_text(number(*one, {"mutex", "speedup"})));
    if (has_floor) row.push_back(times_text(number(*one, {"floor", "times"})));
    table.rows.push_back(std::move(row));
    before = name;
  }
  return table;
}

void add_modes(const Json& benchmark, ReportSection& section) {
  const Json& modes = at(benchmark, {"modes"});
  if (modes.is_null()) return;
  const std::string unit = text(benchmark, {"unit"});
  const auto mode = [&](const char* which) {
    return fmt::format("{} ({:.0f} % of the samples)", result_value(unit, number(modes, {which, "value"})),
                       100 * number(modes, {which, "share"}).value_or(0));
  };
  section.remark("{} has two modes: {} and {}", benchmark_place(benchmark), mode("low"), mode("high"));
}

// "cannot be run here: REASON: a, b, c", one line per reason.
void add_unavailable(const std::vector<const Json*>& benchmarks, ReportSection& section) {
  std::vector<std::pair<std::string, std::string>> reasons;
  for (const Json* one : benchmarks) {
    const std::string status = text(*one, {"status"}), reason = text(*one, {"reason"});
    if (status == "failed") section.remark("! {} failed: {}", benchmark_place(*one), reason);
    if (status != "unavailable" && status != "not_run") continue;
    auto found = std::find_if(reasons.begin(), reasons.end(), [&](const auto& known) { return known.first == reason; });
    if (found == reasons.end()) found = reasons.insert(reasons.end(), {reason, ""});
    found->second += (found->second.empty() ? "" : ", ") + benchmark_place(*one);
  }
  for (const auto& [reason, places] : reasons) section.remark("not measured ({}): {}", reason, places);
}

ReportSection section_of(const Json& document, const Json& group) {
  ReportSection section;
  const std::string name = text(group, {"name"});
  section.title = fmt::format("{}: {}", name, text(group, {"summary"}));
  std::vector<const Json*> all, measured;
  for (const Json& benchmark : at(document, {"benchmarks"})) {
    if (text(benchmark, {"group"}) != name) continue;
    all.push_back(&benchmark);
    if (is_measured(benchmark)) measured.push_back(&benchmark);
  }
  if (!measured.empty()) section.tables.push_back(benchmark_table(measured));
  for (const Json* one : measured) add_modes(*one, section);
  for (const Json& win : at(document, {"mutex_wins"}))
    if (text(win, {"group"}) == name)
      section.remark("{}: {} is {} faster than {} here", text(win, {"name"}), text(win, {"mutex"}),
                     factor_text(number(win, {"factor"}).value_or(1)), text(win, {"channel"}));
  add_unavailable(all, section);
  return section;
}

// For each benchmark with a target: the result of Weir's best channel, and how many meet the target.
void add_targets(const Json& document, TextReport& report) {
  struct Row {
    std::string target, place;
    const Json* best = nullptr;
    int met = 0, all = 0;
  };
  std::vector<Row> rows;
  for (const Json& benchmark : at(document, {"benchmarks"})) {
    const Json& target = at(benchmark, {"target"});
    if (target.is_null() || !is_measured(benchmark) || at(benchmark, {"is_ours"}) != true) continue;
    const std::string place = text(benchmark, {"group"}) + "/" + text(benchmark, {"name"});
    auto row = std::find_if(rows.begin(), rows.end(), [&](const Row& known) {
      return known.place == place && known.target == text(target, {"text"});
    });
    if (row == rows.end()) row = rows.insert(rows.end(), {text(target, {"text"}), place, &benchmark});
    const bool is_less_better = text(benchmark, {"unit"}) != "per_second";
    const double value = number(benchmark, {"value"}).value_or(0), best = number(*row->best, {"value"}).value_or(0);
    if (is_less_better ? value < best : value > best) row->best = &benchmark;
    row->met += at(target, {"is_met"}) == true ? 1 : 0;
    ++row->all;
  }
  if (rows.empty()) return;
  ReportTable& table = report.section("Targets: the best of ours, and how many of ours meet them")
                           .table({{"target", true}, {"benchmark", true}, {"best"}, {"contestant", true}, {"", true}});
  for (const Row& row : rows)
    table.rows.push_back({row.target, row.place, result_value(text(*row.best, {"unit"}), number(*row.best, {"value"})),
                          text(*row.best, {"contestant"}),
                          row.met == row.all ? "pass"
                          : row.met == 0     ? "FAIL"
                                             : fmt::format("{}/{} pass", row.met, row.all)});
}

// The document's promises: how many times as fast as a mutex, and its criteria of success.
void add_promises(const Json& document, TextReport& report) {
  const Json &factors = list(document, {"factors"}), &criteria = list(document, {"criteria"});
  const auto verdict = [](const Json& one) { return at(one, {"is_met"}) == true ? "pass" : "FAIL"; };
  if (!factors.empty()) {
    ReportTable& table =
        report.section("Against the mutex: the best of ours")
            .table({{"", true}, {"channel", true}, {"by", true}, {"times as fast"}, {"wanted"}, {"", true}});
    for (const Json& factor : factors)
      table.rows.push_back({text(factor, {"name"}), text(factor, {"channel"}), text(factor, {"mutex"}),
                            times_text(number(factor, {"speedup"})),
                            fmt::format("{:g}x", number(factor, {"wanted"}).value_or(0)), verdict(factor)});
  }
  if (criteria.empty()) return;
  ReportSection& section = report.section("Criteria");
  static const std::map<std::string, std::string> kNames = {{"beats_mutex", "channels beat the mutex"},
                                                            {"linear_throughput", "throughput is linear in batches"},
                                                            {"constant_clone", "a clone costs the same at any size"},
                                                            {"contention_resilience", "contention costs little"}};
  for (const Json& criterion : criteria) {
    const std::string name = text(criterion, {"name"});
    const auto known = kNames.find(name);
    section.remark("{}: {}: {}", verdict(criterion), known == kNames.end() ? name : known->second,
                   text(criterion, {"text"}));
  }
}

std::string change_text(std::optional<double> slowness) {
  if (!slowness) return "-";
  return fmt::format("{:+.1f} %", 100 * (*slowness - 1));
}

void add_comparison(const Json& document, TextReport& report) {
  const Json& comparison = at(document, {"comparison"});
  if (comparison.is_null()) return;
  ReportSection section;
  std::map<std::string, int> ours, controls;
  ReportTable table{{{"benchmark", true}, {"baseline"}, {"now"}, {"time"}, {"noise"}, {"verdict", true}}};
  std::map<std::string, std::string> units;
  for (const Json& benchmark : at(document, {"benchmarks"})) units[text(benchmark, {"id"})] = text(benchmark, {"unit"});
  std::map<std::string, int> reasons;
  for (const Json& change : at(comparison, {"changes"})) {
    const std::string verdict = text(change, {"verdict"}), id = text(change, {"id"});
    ++(at(change, {"is_ours"}) == true ? ours : controls)[verdict];
    if (verdict == "same") continue;
    const auto noise = number(change, {"noise"});
    table.rows.push_back({id, result_value(units[id], number(change, {"baseline_value"})),
                          result_value(units[id], number(change, {"test_value"})),
                          change_text(number(change, {"slowness"})),
                          noise ? fmt::format("{:.1f} %", 100 * (*noise - 1)) : "-",
                          verdict + (at(change, {"is_ours"}) == true ? "" : " (control)")});
    // Every benchmark has its own noise figure, which the table shows.
    if (!at(change, {"reason"}).is_null() && !text(change, {"reason"}).starts_with("two sides of identical processes"))
      ++reasons[text(change, {"reason"})];
  }
  const auto count = [](std::map<std::string, int>& counts) {
    const int alone = counts["not_comparable"];
    return fmt::format("{} slower, {} faster, {} the same, {} ambiguous{}", counts["slower"], counts["faster"],
                       counts["same"], counts["ambiguous"], alone > 0 ? fmt::format(", {} not comparable", alone) : "");
  };
  section.title = fmt::format("Against the baseline '{}'", text(comparison, {"baseline"}));
  section.fact("channels", count(ours));
  section.fact("controls", count(controls));
  if (!table.rows.empty()) {
    table.after =
        "time: how much longer it takes now; noise: what identical processes differ by. A change must exceed it, and "
        "the "
        "threshold, and be significant among all benchmarks.";
    section.tables.push_back(std::move(table));
  }
  for (const auto& [reason, times] : reasons)
    section.remark("{} ({} benchmark{})", reason, times, times == 1 ? "" : "s");
  for (const char* list : {"baseline_only", "test_only"})
    if (const std::size_t alone = at(comparison, {list}).size(); alone > 0)
      section.remark("{} benchmark{} only in {}", alone, alone == 1 ? " is" : "s are",
                     list[0] == 'b' ? "the baseline" : "this run");
  for (const Json& note : at(comparison, {"notes"}))
    if (note.is_string()) section.remark("! " + fields::text(note, {}));
  report.sections.push_back(std::move(section));
}

void add_calibration(const Json& document, TextReport& report) {
  const Json& calibration = at(document, {"calibration"});
  if (calibration.is_null()) return;
  ReportSection& section = report.section("Calibration: how often is this program called slower than itself?");
  ReportTable& table =
      section.table({{"group", true}, {"benchmarks"}, {"1 v 1, >10 %"}, {"sides, >10 %"}, {"our rule"}});
  const auto percent = [](std::optional<double> part) { return part ? fmt::format("{:.1f} %", 100 * *part) : "-"; };
  const auto add = [&](const Json& row, const std::string& name) {
    table.rows.push_back({name, text(row, {"benchmarks"}), percent(number(row, {"plain_single"})),
                          percent(number(row, {"plain_sides"})), percent(number(row, {"ours"}))});
  };
  for (const Json& row : at(calibration, {"groups"})) add(row, text(row, {"group"}));
  add(at(calibration, {"all"}), "all");
  table.after = fmt::format(
      "1 v 1: one process against one, as a single run before and after would be. sides: half of {} processes against "
      "the others, dealt in {} ways.",
      text(calibration, {"processes"}), text(calibration, {"deals"}));
  if (at(calibration, {"can_alarm"}) == false)
    section.remark(
        "! So few processes can prove nothing among so many benchmarks: our rule is silent here whatever they say. Use "
        "more --processes, or fewer groups.");
  section.remark("Our rule calls something slower in {} of the deals.",
                 percent(number(calibration, {"deals_with_alarm"})));
  section.remark("First half of the processes against the second, which shows drift: {} slower, {} faster.",
                 text(calibration, {"drifted_slower"}), text(calibration, {"drifted_faster"}));
}

}  // namespace

TextReport channel_report(const Json& document) {
  TextReport report = opening_of(document);
  for (const Json& group : at(document, {"groups"})) report.sections.push_back(section_of(document, group));
  const bool has_factors =
      std::any_of(at(document, {"benchmarks"}).begin(), at(document, {"benchmarks"}).end(),
                  [](const Json& one) { return !at(one, {"best"}).is_null() || !at(one, {"floor"}).is_null(); });
  if (has_factors && !report.sections.empty())
    report.open(
        "best: its time by that of the best that is not ours or a mutex (below 1: ahead); against mutex: how many "
        "times "
        "as fast as the mutex (above 1: ahead); floor: its time by that of bare cache lines");
  add_promises(document, report);
  add_targets(document, report);
  add_comparison(document, report);
  add_calibration(document, report);
  if (const Json& warnings = at(document, {"warnings"}); !warnings.empty()) {
    ReportSection& section = report.section("Careful");
    for (const Json& warning : warnings)
      section.remark("! {} {}", text(warning, {"message"}), text(warning, {"advice"}));
  }
  return report;
}

DocumentText text_list::channel(const Json& document) { return channel_report(document); }

}  // namespace weir
