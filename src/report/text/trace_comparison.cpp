// weir.trace_comparison/2: two traces, category by category and kernel by kernel.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "base/text_gate.h"
#include "base/units.h"
#include "report/text/documents.h"
#include "report/text/fields.h"

namespace weir {
namespace {

using namespace fields;

constexpr std::size_t kRows = 30;  // rows shown for kernels without a verdict, and for those in only one trace
constexpr std::size_t kMarkdownName = 100;

std::string duration_text(const Json& json, std::initializer_list<const char*> keys) {
  const auto value = number(json, keys);
  return value ? format_duration(*value) : "-";
}

std::string row_ratio(const Json& row) {
  const auto ratio = number(row, {"ratio"});
  return ratio ? format_ratio(*ratio) : "-";
}

std::string ratio_interval(const Json& row) {
  const auto ends = interval(row, {"interval"});
  return ends ? fmt::format("[{:.3f}, {:.3f}]", ends->first, ends->second) : "-";
}

std::string p_text(const Json& row) {
  const auto p = number(row, {"adjusted_p"});
  return !p ? "-" : *p < 0.001 ? "<0.001" : fmt::format("{:.3f}", *p);
}

std::string short_count(const Json& row, std::initializer_list<const char*> keys) {
  const double count = number(row, keys).value_or(0);
  return count < 1e5 ? fmt::format("{:.0f}", count) : format_quantity(count);
}

std::string verdict_line(const Json& document) {
  std::string line;
  for (const char* verdict : {"slower", "faster", "same", "ambiguous", "not_comparable"}) {
    const double count = number(document, {"verdicts", verdict}).value_or(0);
    if (count > 0) line += fmt::format("{}{:.0f} {}", line.empty() ? "" : ", ", count, verdict);
  }
  return line.empty() ? "nothing could be judged" : line;
}

std::string method_line(const Json& document) {
  const double hypotheses = number(document, {"hypotheses"}).value_or(0);
  return fmt::format(
      "Ratios are test / baseline of medians with {:g} % intervals; p is Mann-Whitney, of {:.0f} test{} (all but that "
      "of "
      "the time per iteration or repetition after Holm); changes of these count where they are shown to exceed {:g} %. "
      "A trace is one process: what differs between processes is not in the intervals.",
      100 * number(document, {"confidence"}).value_or(0), hypotheses, hypotheses == 1 ? "" : "s",
      100 * number(document, {"threshold"}).value_or(0));
}

std::string category_title(const Json& document) {
  const auto before = number(document, {"iterations", "baseline"});
  const auto after = number(document, {"iterations", "test"});
  return before && after ? fmt::format("Time per iteration ({:.0f} against {:.0f})", *before, *after)
                         : std::string("Time of the whole trace, mean over devices");
}

std::string category_name(const Json& row) {
  std::string name = fields::text(row, {"category"});
  std::replace(name.begin(), name.end(), '_', ' ');
  return name;
}

std::string paragraph(const std::string& text, std::size_t indent) {
  return std::string(indent, ' ') + wrapped(text, indent) + "\n";
}

bool is_judged(const Json& row) { return at(row, {"verdict"}).is_string(); }

std::string amount_text(const Json& row, const char* side) {
  const auto value = number(row, {side});
  if (!value) return "-";
  const std::string unit = fields::string(row, {"unit"}, "");
  return unit == "ns"      ? format_duration(*value)
         : unit == "bytes" ? format_bytes(static_cast<std::uint64_t>(*value))
                           : fmt::format("{:.0f}", *value);
}

// "+12.1 %", or in how many times as much where a percentage would be hard to read.
std::string total_change(const Json& row) {
  const auto ratio = number(row, {"ratio"});
  if (!ratio) return "-";
  return *ratio < 3 ? fmt::format("{:+.1f} %", 100 * (*ratio - 1)) : fmt::format("{:.1f} times", *ratio);
}

std::string quantity_name(const Json& row) {
  const std::string name = fields::text(row, {"quantity"});
  return name == "span" ? "time" : name == "copied_bytes" ? "bytes copied" : name;
}

std::string pace_unit(const Json& document) {
  return is_true(document, {"pace", "is_marked"}) ? "iteration" : "repetition";
}

// What a repetition is; empty for iterations, which the program marked.
std::string repetition_text(const Json& document) {
  const std::string kernel = fields::string(document, {"pace", "kernel"}, "");
  return kernel.empty()
             ? ""
             : fmt::format("A repetition lasts from one start of {} to the next.", short_kernel_name(kernel, 60));
}

std::string totals_text(const Json& document) {
  std::string text = fmt::format("  {:<20}{:>10}{:>10}{:>10}\n", "", "baseline", "test", "change");
  for (const Json& row : list(document, {"totals"}))
    text += fmt::format("  {:<20}{:>10}{:>10}{:>10}\n", quantity_name(row), amount_text(row, "baseline"),
                        amount_text(row, "test"), total_change(row));
  const Json& pace = at(document, {"pace"});
  if (number(pace, {"ratio"}))
    text += fmt::format("  {:<20}{:>10}{:>10}{:>10} {} {}\n", "time per " + pace_unit(document),
                        duration_text(pace, {"baseline", "duration_ns", "p50"}),
                        duration_text(pace, {"test", "duration_ns", "p50"}), total_change(pace), ratio_interval(pace),
                        fields::text(pace, {"verdict"}));
  const std::string repetition = repetition_text(document);
  return repetition.empty() ? text : text + paragraph(repetition, 2);
}

// Busy, idle and the whole are among the totals, where categories are of whole traces too.
bool is_repeated(const Json& document, const Json& row) {
  if (!at(document, {"iterations"}).is_null()) return false;
  const std::string name = fields::text(row, {"category"});
  return name == "span" || name == "busy" || name == "idle";
}

std::string categories_text(const Json& document) {
  std::string text = category_title(document) + "\n";
  for (const Json& row : list(document, {"categories"})) {
    if (is_repeated(document, row)) continue;
    const std::string times =
        fmt::format("{} -> {}", duration_text(row, {"baseline_ns"}), duration_text(row, {"test_ns"}));
    std::string line =
        fmt::format("  {:<22} {:<20} {:>8} {:<16} {}", category_name(row), times, row_ratio(row),
                    is_judged(row) ? ratio_interval(row) : "", is_judged(row) ? fields::text(row, {"verdict"}) : "");
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
    if (at(row, {"reason"}).is_string()) text += paragraph(fields::text(row, {"reason"}), 4);
  }
  return text;
}

// "  gemm_128x64(...)"
// "    120 x 4.21 us -> 120 x 4.60 us  1.093x [1.071, 1.110]  p <0.001  slower"
std::string kernel_text(const Json& row) {
  std::string text = "  " + short_kernel_name(fields::text(row, {"name"}), kReportColumns - 2) + "\n";
  const std::string times =
      fmt::format("{} x {} -> {} x {}", short_count(row, {"baseline", "count"}),
                  duration_text(row, {"baseline", "duration_ns", "p50"}), short_count(row, {"test", "count"}),
                  duration_text(row, {"test", "duration_ns", "p50"}));
  if (!is_judged(row)) return text + fmt::format("    {:<34} {:>7}\n", times, row_ratio(row));
  text += fmt::format("    {:<34} {:>7} {:<14} {:>6} {}\n", times, row_ratio(row), ratio_interval(row), p_text(row),
                      fields::text(row, {"verdict"}));
  if (at(row, {"reason"}).is_string()) text += paragraph(fields::text(row, {"reason"}), 6);
  return text;
}

std::string lone_text(const Json& rows, const char* title) {
  if (rows.empty()) return {};
  std::string text = fmt::format("\n{} ({}):\n", title, rows.size());
  std::size_t shown = 0;
  for (const Json& row : rows) {
    if (++shown > kRows) break;
    text += fmt::format("  {:>8} in {:>6} x  {}\n", duration_text(row, {"total_ns"}), short_count(row, {"count"}),
                        short_kernel_name(fields::text(row, {"name"}), kReportColumns - 25));
  }
  if (rows.size() > kRows) text += fmt::format("  and {} more\n", rows.size() - kRows);
  return text;
}

std::string signed_duration(const Json& json, const char* key) {
  const double ns = number(json, {key}).value_or(0);
  return (ns < 0 ? "-" : "+") + format_duration(std::fabs(ns));
}

std::string operator_name(const Json& row) {
  return fields::text(row, {"name"}) + (at(row, {"shapes"}).is_string() ? " " + fields::text(row, {"shapes"}) : "");
}

std::string operator_change(const Json& row) {
  const std::string change = fields::text(row, {"change"});
  return change == "moved" ? "runs in other kernels" : change;
}

struct OperatorRow {
  std::string difference, name, times, change;
};

// What changed, largest difference first, then what makes the sum.
std::vector<OperatorRow> operator_rows(const Json& operators) {
  std::vector<OperatorRow> rows;
  double unchanged_ns = number(operators, {"left_out_ns"}).value_or(0);
  std::size_t unchanged = static_cast<std::size_t>(number(operators, {"left_out"}).value_or(0));
  for (const Json& row : list(operators, {"changes"})) {
    if (fields::text(row, {"change"}) == "same" || rows.size() >= kRows) {
      unchanged_ns += number(row, {"difference_ns"}).value_or(0);
      ++unchanged;
      continue;
    }
    rows.push_back({signed_duration(row, "difference_ns"), operator_name(row),
                    fmt::format("{} -> {}", duration_text(row, {"baseline", "total_ns"}),
                                duration_text(row, {"test", "total_ns"})),
                    operator_change(row)});
  }
  const Json others{{"ns", unchanged_ns}};
  if (unchanged > 0) rows.push_back({signed_duration(others, "ns"), fmt::format("({} others)", unchanged), "", ""});
  if (number(operators, {"outside_ns"}).value_or(0) != 0)
    rows.push_back({signed_duration(operators, "outside_ns"), "(commands of no operator)", "", ""});
  rows.push_back({signed_duration(operators, "rest_ns"), "(idle time, less what ran at once)", "", ""});
  rows.push_back(
      {signed_duration(operators, "difference_ns"), "in all",
       fmt::format("{} -> {}", duration_text(operators, {"baseline_ns"}), duration_text(operators, {"test_ns"})), ""});
  return rows;
}

std::string operators_title(const Json& operators) {
  return is_true(operators, {"is_per_step"}) ? "Operators by shape, per step"
                                             : "Operators by shape, of the whole trace";
}

std::string operators_text(const Json& document) {
  const Json& operators = at(document, {"operators"});
  if (!operators.is_object()) return "";
  std::string text = "\n" + operators_title(operators) + "\n";
  for (const OperatorRow& row : operator_rows(operators)) {
    text += fmt::format("  {:>10}  {}\n", row.difference, short_kernel_name(row.name, kReportColumns - 14));
    if (!row.times.empty())
      text += fmt::format("  {:>10}  {}{}{}\n", "", row.times, row.change.empty() ? "" : ", ", row.change);
  }
  return text;
}

Markdown operators_markdown(const Json& document) {
  const Json& operators = at(document, {"operators"});
  if (!operators.is_object()) return {};
  Markdown text =
      Markdown::format("\n## {}\n\n| operator | difference | times | change |\n| --- | ---: | --- | --- |\n",
                       operators_title(operators));
  for (const OperatorRow& row : operator_rows(operators))
    text += Markdown::format("| {} | {} | {} | {} |\n", short_kernel_name(row.name, 2 * kMarkdownName), row.difference,
                             row.times, row.change);
  return text;
}

}  // namespace

std::string trace_comparison_text(const Json& document) {
  std::string text = paragraph(
      fmt::format("{} against baseline {}", fields::text(document, {"test"}), fields::text(document, {"baseline"})), 0);
  text += "\n";
  for (const Json& sentence : list(document, {"summary"})) text += paragraph(fields::text(sentence, {}), 0);
  text += "\n" + totals_text(document) + "\n" + categories_text(document) + "\nKernels in both, by time\n";
  std::size_t rest = 0, shown = 0;
  for (const Json& row : list(document, {"kernels"})) {
    if (is_judged(row) || shown < kRows)
      text += kernel_text(row);
    else
      ++rest;
    ++shown;
  }
  if (rest > 0) text += fmt::format("  and {} more, each below 1 % of both traces\n", rest);
  text += lone_text(list(document, {"baseline_only"}), "Only in the baseline");
  text += lone_text(list(document, {"test_only"}), "Only in the test");
  text += operators_text(document);
  if (const double left = number(document, {"kernels_left_out"}).value_or(0); left > 0)
    text += fmt::format("{:.0f} kernels with less time are left out\n", left);
  if (!list(document, {"notes"}).empty()) text += "\nNotes:\n";
  for (const Json& note : list(document, {"notes"})) text += paragraph(fields::text(note, {}), 2);
  return text + "\n" + paragraph(method_line(document), 0) + verdict_line(document) + "\n";
}

std::string trace_comparison_markdown(const Json& document) {
  Markdown text =
      Markdown::format("# Comparison of traces: {}\n\n{} against {}\n\n{}\n", verdict_line(document),
                       fields::text(document, {"test"}), fields::text(document, {"baseline"}), method_line(document));
  for (const Json& sentence : list(document, {"summary"}))
    text += Markdown::format("\n{}\n", fields::text(sentence, {}));
  text += Markdown::literal("\n| whole traces | baseline | test | change |\n| --- | ---: | ---: | ---: |\n");
  for (const Json& row : list(document, {"totals"}))
    text += Markdown::format("| {} | {} | {} | {} |\n", quantity_name(row), amount_text(row, "baseline"),
                             amount_text(row, "test"), total_change(row));
  const auto verdict_cell = [](const Json& row) {
    const std::string verdict = is_judged(row) ? fields::text(row, {"verdict"}) : "-";
    return verdict == "slower" || verdict == "faster" ? Markdown::format("**{}**", verdict) : Markdown(verdict);
  };
  Markdown remarks;
  text += Markdown::format("\n## {}\n\n| category | baseline | test | ratio | interval | p | verdict |\n",
                           category_title(document));
  text += Markdown::literal("| --- | ---: | ---: | ---: | --- | ---: | --- |\n");
  if (const Json& pace = at(document, {"pace"}); number(pace, {"ratio"}))
    text += Markdown::format("| {} | {} | {} | {} | {} | {} | {} |\n", "time per " + pace_unit(document),
                             duration_text(pace, {"baseline", "duration_ns", "p50"}),
                             duration_text(pace, {"test", "duration_ns", "p50"}), row_ratio(pace), ratio_interval(pace),
                             p_text(pace), verdict_cell(pace));
  if (const std::string repetition = repetition_text(document); !repetition.empty())
    remarks += Markdown::format("- {}\n", repetition);
  for (const Json& row : list(document, {"categories"})) {
    if (is_repeated(document, row)) continue;
    text += Markdown::format("| {} | {} | {} | {} | {} | {} | {} |\n", category_name(row),
                             duration_text(row, {"baseline_ns"}), duration_text(row, {"test_ns"}), row_ratio(row),
                             ratio_interval(row), p_text(row), verdict_cell(row));
    if (at(row, {"reason"}).is_string())
      remarks += Markdown::format("- {}: {}\n", category_name(row), fields::text(row, {"reason"}));
  }
  text += Markdown::literal("\n## Kernels\n\n| kernel | baseline | test | ratio | interval | p | verdict |\n");
  text += Markdown::literal("| --- | ---: | ---: | ---: | --- | ---: | --- |\n");
  for (const Json& row : list(document, {"kernels"})) {
    const std::string name = short_kernel_name(fields::text(row, {"name"}), kMarkdownName);
    text += Markdown::format("| {} | {} x {} | {} x {} | {} | {} | {} | {} |\n", name,
                             short_count(row, {"baseline", "count"}),
                             duration_text(row, {"baseline", "duration_ns", "p50"}),
                             short_count(row, {"test", "count"}), duration_text(row, {"test", "duration_ns", "p50"}),
                             row_ratio(row), ratio_interval(row), p_text(row), verdict_cell(row));
    if (at(row, {"reason"}).is_string()) remarks += Markdown::format("- {}: {}\n", name, fields::text(row, {"reason"}));
  }
  text += operators_markdown(document);
  for (const auto& [key, title] : {std::pair{"baseline_only", "baseline"}, std::pair{"test_only", "test"}}) {
    if (list(document, {key}).empty()) continue;
    text += Markdown::format("\n## Only in the {}\n\n| kernel | count | total |\n| --- | ---: | ---: |\n", title);
    for (const Json& row : list(document, {key}))
      text += Markdown::format("| {} | {} | {} |\n", short_kernel_name(fields::text(row, {"name"}), kMarkdownName),
                               short_count(row, {"count"}), duration_text(row, {"total_ns"}));
  }
  for (const Json& note : list(document, {"notes"})) remarks += Markdown::format("- {}\n", fields::text(note, {}));
  return (remarks.empty() ? text : text + Markdown::literal("\n") + remarks).text();
}

DocumentText text_list::trace_comparison(const Json& document) { return trace_comparison_text(document); }

}  // namespace weir
