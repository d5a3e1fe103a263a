// weir.preempt/2: how long urgent work waits, mechanism by mechanism.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "base/units.h"
#include "report/text/documents.h"
#include "report/text/fields.h"

namespace weir {
namespace {

using namespace fields;

std::string times(const Json& json, std::initializer_list<const char*> keys) {
  const auto value = number(json, keys);
  if (!value) return "-";
  return *value < 99.5 ? fmt::format("{:.1f}x", *value) : fmt::format("{:.0f}x", *value);
}

std::string rounded_percent(const Json& json, std::initializer_list<const char*> keys) {
  const auto value = number(json, keys);
  // Rounded first, so that a loss of -0.01 % is not printed as "-0.0 %".
  return value ? fmt::format("{:.1f} %", std::round(*value * 1000) / 10 + 0.0) : "-";
}

std::string victim_words(const Json& victim) {
  const std::string kind = text(victim, {"kind"}), block = duration(victim, {"block_ns"});
  if (kind == "persistent") return fmt::format("one persistent kernel, blocks of {}", block);
  const std::string waves = text(victim, {"waves"});
  return fmt::format("{}kernels of {} wave{}, blocks of {}", kind == "memory" ? "memory-bound " : "", waves,
                     waves == "1" ? "" : "s", block);
}

// What the reader must know before any number.
std::vector<std::string> preempt_opening(const Json& document) {
  std::vector<std::string> lines;
  for (const Json& failure : at(document, {"failures"})) lines.push_back("FAILED: " + text(failure, {}));
  if (text(document, {"status"}) == "ended_early") lines.push_back("Ended early: these are the results so far.");
  for (const Json& warning : at(document, {"warnings"})) lines.push_back("Careful: " + text(warning, {}) + ".");
  lines.push_back(text(document, {"verdict"}) + ".");
  return lines;
}

ReportSection method(const Json& document) {
  ReportSection section{"How"};
  section.fact("device", "{} ({})", text(document, {"device", "name"}), text(document, {"device", "model"}));
  section.fact("urgent command", "sent at random times to a busy device, timed from when it was due");
  const Json& alone = at(document, {"alone"});
  section.fact("alone", "p50 {}, p99 {}, p99.9 {} to its end; {} requests in {} repeats, medians differ by {}",
               duration(alone, {"to_end_ns", "p50"}), duration(alone, {"to_end_ns", "p99"}),
               duration(alone, {"to_end_ns", "p999"}), text(alone, {"to_end_ns", "count"}),
               at(alone, {"repeats"}).size(), rounded_percent(alone, {"drift"}));
  return section;
}

ReportSection mechanisms(const Json& document) {
  ReportSection section{"Mechanisms"};
  for (const Json& mechanism : at(document, {"mechanisms"})) {
    const std::string level = text(mechanism, {"level"});
    // Verdicts are whole sentences; the name is already printed next to them.
    const std::string name = text(mechanism, {"name"});
    std::string verdict = text(mechanism, {"verdict"});
    for (const char* end : {": ", " "})
      if (verdict.starts_with(name + end)) verdict.erase(0, name.size() + std::string_view(end).size());
    section.fact(name + (level == "-" ? "" : " " + level), verdict + ".");
  }
  return section;
}

struct Row {
  const Json* mechanism;
  const Json* point;
};

double tail_of(const Json& point) { return number(point, {"tail_quantile"}).value_or(0.99); }

// A p99 of few requests rests on two of them: then p90 is the last that is shown.
double highest_tail(const std::vector<Row>& rows) {
  double tail = 0;
  for (const Row& row : rows) tail = std::max(tail, tail_of(*row.point));
  return tail;
}

void add_quantiles(std::vector<std::string>& cells, const Json& latency, bool is_with_p99, double tail) {
  for (const char* key : {"p50", "p90"}) cells.push_back(duration(latency, {key}));
  if (!is_with_p99) return;
  for (const char* key : {"p99", "p999"}) cells.push_back(tail >= 0.99 ? duration(latency, {key}) : "-");
}

ReportTable start_table(const std::vector<Row>& rows) {
  const bool is_with_p99 = highest_tail(rows) >= 0.99;
  ReportTable table{{{"to first block", true}, {"p50"}, {"p90"}}};
  if (is_with_p99) table.columns.insert(table.columns.end(), {{"p99"}, {"p99.9"}, {"p99 in blocks"}});
  for (const auto& [mechanism, point] : rows) {
    std::vector<std::string> cells = {text(*mechanism, {"name"})};
    add_quantiles(cells, at(*point, {"to_start_ns"}), is_with_p99, tail_of(*point));
    const auto blocks = number(*point, {"start_p99_in_blocks"});
    if (is_with_p99) cells.push_back(blocks && tail_of(*point) >= 0.99 ? fmt::format("{:.2f}", *blocks) : "-");
    table.rows.push_back(std::move(cells));
  }
  return table;
}

// "2.1x (1.9-3.0)": the ratio, and what it would be with the slowest and the fastest repeat of the command alone.
std::string against_alone(const Json& point) {
  const Json& interval = at(point, {"against_alone_interval"});
  if (!interval.is_array() || interval.size() != 2) return times(point, {"against_alone"});
  const auto end = [&](std::size_t i) {
    const double value = interval[i].get<double>();
    return fmt::format("{:.{}f}", value, value < 10 ? 1 : 0);
  };
  return fmt::format("{} ({}-{})", times(point, {"against_alone"}), end(0), end(1));
}

ReportTable end_table(const std::vector<Row>& rows) {
  const double tail = highest_tail(rows);
  const bool is_with_p99 = tail >= 0.99;
  ReportTable table{{{"to end", true}, {"p50"}, {"p90"}}};
  if (is_with_p99) table.columns.insert(table.columns.end(), {{"p99"}, {"p99.9"}});
  table.columns.insert(table.columns.end(), {{fmt::format("p{:.0f}/alone", 100 * tail)}, {"victim -"}});
  for (const auto& [mechanism, point] : rows) {
    std::vector<std::string> cells = {text(*mechanism, {"name"})};
    add_quantiles(cells, at(*point, {"to_end_ns"}), is_with_p99, tail_of(*point));
    cells.push_back(tail_of(*point) == tail ? against_alone(*point) : "-");
    cells.push_back(rounded_percent(*point, {"victim_loss"}));
    table.rows.push_back(std::move(cells));
  }
  return table;
}

// One section per victim, in the order of the plan: the mechanisms for a victim are listed below each other.
std::vector<ReportSection> victims(const Json& document) {
  std::vector<ReportSection> sections;
  for (const Json& victim : at(document, {"plan", "victims"})) {
    std::vector<Row> rows;
    for (const Json& mechanism : at(document, {"mechanisms"}))
      for (const Json& point : at(mechanism, {"points"}))
        if (at(point, {"victim"}) == victim && at(point, {"failure"}).is_null()) rows.push_back({&mechanism, &point});
    if (rows.empty()) continue;
    ReportSection section{fmt::format("Behind {}: {} requests, every {}", victim_words(victim),
                                      text(*rows.front().point, {"requests"}),
                                      duration(*rows.front().point, {"interval_ns"}))};
    const bool has_starts = std::any_of(rows.begin(), rows.end(), [](const Row& row) {
      return number(*row.point, {"to_start_ns", "count"}).value_or(0) > 0;
    });
    if (has_starts)
      section.tables.push_back(start_table(rows));
    else
      section.remark("To first block: - (" + text(*rows.front().point, {"unavailable", "to_start_ns"}) + ").");
    section.tables.push_back(end_table(rows));
    std::string overloaded;
    for (const auto& [mechanism, point] : rows)
      if (at(*point, {"is_overloaded"}) == Json(true))
        overloaded += (overloaded.empty() ? "" : ", ") + text(*mechanism, {"name"});
    if (!overloaded.empty())
      section.remark(
          "Requests came faster than they passed, so these figures say how long it was observed: " + overloaded + ".");
    sections.push_back(std::move(section));
  }
  return sections;
}

ReportSection work(const Json& document) {
  ReportSection section{"The victim's work"};
  for (const Json& mechanism : at(document, {"mechanisms"})) {
    double lost = 0, repeated = 0, preemptions = 0, blocks = 0;
    std::size_t counted = 0, points = 0;
    for (const Json& point : at(mechanism, {"points"})) {
      if (!at(point, {"failure"}).is_null()) continue;
      ++points;
      preemptions += number(point, {"observation", "preemptions"}).value_or(0);
      const auto gone = number(point, {"observation", "lost_blocks"});
      const auto again = number(point, {"observation", "repeated_blocks"});
      if (!gone || !again) continue;
      ++counted;
      lost += *gone;
      repeated += *again;
      blocks += number(point, {"observation", "victim_blocks"}).value_or(0);
    }
    if (points == 0) continue;
    section.fact(text(mechanism, {"name"}),
                 counted == 0 ? "blocks cannot be counted one by one"
                              : fmt::format("{:.0f} blocks lost, {:.0f} repeated of {:.0f}; {:.0f} preemptions", lost,
                                            repeated, blocks, preemptions));
  }
  return section;
}

void add_published(TextReport& report, const Json& published) {
  ReportSection& section =
      report.section(fmt::format("Published: {} on {}", text(published, {"source"}), text(published, {"device"})));
  ReportTable& table = section.table({{"level", true}, {"kernel"}, {"mean"}, {"p50"}, {"p90"}, {"p99"}});
  for (const Json& level : at(published, {"levels"}))
    for (const Json& point : at(level, {"points"}))
      table.rows.push_back({text(level, {"level"}), duration(point, {"kernel_ns"}),
                            duration(point, {"latency_ns", "mean"}), duration(point, {"latency_ns", "p50"}),
                            duration(point, {"latency_ns", "p90"}), duration(point, {"latency_ns", "p99"})});
  section.remark("Licence: {}, {}. Another machine and another way to measure: a scale to hold beside, not a contest.",
                 text(published, {"licence"}), text(published, {"url"}));
}

}  // namespace

TextReport preempt_report(const Json& document, bool has_published) {
  TextReport report{"weir preempt on " + text(document, {"device", "name"}), preempt_opening(document)};
  report.sections = {method(document), mechanisms(document)};
  for (ReportSection& section : victims(document)) report.sections.push_back(std::move(section));
  if (ReportSection section = work(document); !section.facts.empty()) report.sections.push_back(std::move(section));
  report.section("Reading it")
      .remark(
          "\"-\": not observed, or too few requests: p99 needs 400, p99.9 needs 1000 and then rests on one or few of "
          "them. p99/alone (p90/alone below 400 requests): against the same command alone, and over the spread of its "
          "repeats. victim -: throughput that the victim lost against nobody in its way; below 0 is noise.");
  if (has_published) add_published(report, at(document, {"published"}));
  return report;
}

}  // namespace weir
