#include "report/text/comparison.h"

#include <fmt/format.h>

#include <sstream>
#include <vector>

#include "base/named_values.h"
#include "base/schemas.h"
#include "base/text_gate.h"
#include "base/units.h"
#include "measure/result.h"

namespace weir {
namespace {

constexpr std::size_t kTextColumns = 80;

// Breaks lines at blanks; lines after the first are indented by `indent` + 2.
std::string wrapped_words(const std::string& text, std::size_t indent) {
  std::istringstream words(for_line(text));
  std::string lines(indent, ' ');
  std::size_t column = indent;
  bool is_first = true;
  for (std::string word; words >> word; is_first = false) {
    if (!is_first && column + 1 + word.size() > kTextColumns) {
      lines += "\n" + std::string(indent + 2, ' ');
      column = indent + 2;
    } else if (!is_first) {
      lines += ' ';
      ++column;
    }
    lines += word;
    column += word.size();
  }
  return lines + "\n";
}

std::string unit_of_throughput(const PairComparison& pair) {
  for (const MetricComparison& metric : pair.metrics)
    if (metric.metric == "throughput" && !metric.unit.empty()) return metric.unit;
  return {};
}

std::string pair_text(const PairComparison& pair) {
  const std::string unit = unit_of_throughput(pair);
  std::string text = wrapped_words(unit.empty() ? pair.label : fmt::format("{} ({})", pair.label, unit), 0);
  if (!pair.failure.empty()) text += wrapped_words(fmt::format("{}: {}", name_of(pair.verdict), pair.failure), 2);
  for (const MetricComparison& metric : pair.metrics) {
    const std::string medians =
        fmt::format("{} -> {}", value_text(metric, metric.baseline_median), value_text(metric, metric.test_median));
    // "  latency    4.21 us -> 4.60 us  1.093x [1.071, 1.110]   p <0.001 slower"
    const std::string line = fmt::format("  {:<10} {:<18} {:>7} {:<16} p {:<6} {}", metric.metric, medians,
                                         metric.ratio ? format_ratio(*metric.ratio) : "-", interval_text(metric),
                                         p_text(metric), name_of(metric.verdict));
    text += line + "\n";
    if (!metric.reason.empty()) text += wrapped_words(metric.reason, 4);
  }
  for (const std::string& note : pair.notes) text += wrapped_words("note: " + note, 4);
  return text;
}

void add_lone(std::string& text, const std::string& title, const std::vector<LonePoint>& points) {
  if (points.empty()) return;
  text += "\n" + wrapped_words(title, 0);
  for (const LonePoint& point : points) text += wrapped_words(fmt::format("{}: {}", point.label, point.nearest), 2);
}

Json lone_json(const std::vector<LonePoint>& points) {
  Json list = Json::array();
  for (const LonePoint& point : points) list.push_back(WEIR_NAMED(point.label, point.origin, point.nearest));
  return list;
}

Json metric_json(const MetricComparison& metric) {
  Json json = WEIR_NAMED(text_or_null(metric.unit), metric.verdict, text_or_null(metric.reason));
  json["baseline"] = {{"count", metric.baseline_count},
                      {"p50", number_or_null(metric.baseline_median)},
                      {"processes", metric.baseline_processes}};
  json["test"] = {
      {"count", metric.test_count}, {"p50", number_or_null(metric.test_median)}, {"processes", metric.test_processes}};
  json.update(
      WEIR_NAMED(metric.ratio, interval_or_null(metric.interval), metric.p, metric.adjusted_p, metric.tail_ratio));
  return json;
}

}  // namespace

std::string verdict_line(const Comparison& comparison) {
  const auto counts = count_verdicts(comparison);
  std::string line;
  for (const Verdict verdict : kVerdicts)
    if (const auto found = counts.find(verdict); found != counts.end())
      line += fmt::format("{}{} {}", line.empty() ? "" : ", ", found->second, name_of(verdict));
  return line;
}

std::string comparison_text(const Comparison& comparison) {
  std::string text;
  for (const TestComparison& test : comparison.tests) {
    text += wrapped_words(fmt::format("{} against baseline {}", test.name, comparison.baseline), 0) + "\n";
    for (const PairComparison& pair : test.pairs) text += pair_text(pair);
    add_lone(text, fmt::format("Only in the baseline ({}):", test.baseline_only.size()), test.baseline_only);
    add_lone(text, fmt::format("Only in the test ({}):", test.test_only.size()), test.test_only);
    if (!test.notes.empty()) text += "\nNotes:\n";
    for (const std::string& note : test.notes) text += wrapped_words(note, 2);
    text += "\n";
  }
  return text + wrapped_words(method_line(comparison), 0) + verdict_line(comparison) + "\n";
}

Json comparison_json(const Comparison& comparison, bool is_strict) {
  Json json;
  json["schema"] = schemas::comparison;
  json["baseline"] = comparison.baseline;
  add_method(json, comparison.options, comparison.hypotheses, count_verdicts(comparison), is_strict);
  json["tests"] = Json::array();
  for (const TestComparison& test : comparison.tests) {
    Json entry;
    entry["file"] = test.name;
    entry["pairs"] = Json::array();
    for (const PairComparison& pair : test.pairs) {
      Json one = WEIR_NAMED(pair.label, pair.key, pair.verdict, text_or_null(pair.failure));
      one["metrics"] = Json::object();
      for (const MetricComparison& metric : pair.metrics) one["metrics"][metric.metric] = metric_json(metric);
      one["notes"] = pair.notes;
      entry["pairs"].push_back(std::move(one));
    }
    entry.update(WEIR_NAMED(lone_json(test.baseline_only), lone_json(test.test_only), test.notes));
    json["tests"].push_back(std::move(entry));
  }
  return json;
}

}  // namespace weir
