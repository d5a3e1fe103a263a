#include "report/text/trace_comparison.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <utility>
#include <vector>

#include "base/units.h"
#include "report/text/fields.h"
#include "report/text/wrap.h"

namespace weir {
namespace {

constexpr std::size_t kRows = 30;  // kernels without a verdict, and of one trace only, that text shows
constexpr std::size_t kMarkdownName = 100;

std::string duration_text(const Json& json, std::initializer_list<const char*> keys) {
  const auto value = fields::number(json, keys);
  return value ? format_duration(*value) : "-";
}

std::string ratio_text(const Json& row) {
  const auto ratio = fields::number(row, {"ratio"});
  return ratio ? format_ratio(*ratio) : "-";
}

std::string interval_text(const Json& row) {
  const Json& interval = fields::at(row, {"interval"});
  if (!interval.is_array() || interval.size() != 2 || !interval[0].is_number() || !interval[1].is_number()) return "-";
  return fmt::format("[{:.3f}, {:.3f}]", interval[0].get<double>(), interval[1].get<double>());
}

std::string p_text(const Json& row) {
  const auto p = fields::number(row, {"adjusted_p"});
  return !p ? "-" : *p < 0.001 ? "<0.001" : fmt::format("{:.3f}", *p);
}

std::string count_text(const Json& row, std::initializer_list<const char*> keys) {
  const double count = fields::number(row, keys).value_or(0);
  return count < 1e5 ? fmt::format("{:.0f}", count) : format_quantity(count);
}

// Names come from files: control characters would reach the terminal, line ends would break tables.
std::string plain(std::string_view text) {
  std::string safe(text);
  for (char& letter : safe)
    if (static_cast<unsigned char>(letter) < 0x20 || letter == 0x7f) letter = ' ';
  return safe;
}

// Cells of a Markdown table must not end early, and names from files must not become markup.
std::string cell(std::string_view text) {
  std::string safe;
  for (const char letter : plain(text)) {
    if (letter == '|' || letter == '<' || letter == '`' || letter == '*' || letter == '\\' || letter == '_')
      safe += '\\';
    safe += letter;
  }
  return safe;
}

const Json& list(const Json& document, const char* key) {
  static const Json kEmpty = Json::array();
  const Json& found = fields::at(document, {key});
  return found.is_array() ? found : kEmpty;
}

std::string verdict_line(const Json& document) {
  std::string line;
  for (const char* verdict : {"slower", "faster", "same", "ambiguous"}) {
    const double count = fields::number(document, {"verdicts", verdict}).value_or(0);
    if (count > 0) line += fmt::format("{}{:.0f} {}", line.empty() ? "" : ", ", count, verdict);
  }
  return line.empty() ? "nothing could be judged" : line;
}

std::string method_line(const Json& document) {
  const double hypotheses = fields::number(document, {"hypotheses"}).value_or(0);
  return fmt::format(
      "Ratios are test / baseline of medians with {:g} % intervals; p is Mann-Whitney after Holm over {:.0f} test{}; "
      "changes below {:g} % do not count.",
      100 * fields::number(document, {"confidence"}).value_or(0), hypotheses, hypotheses == 1 ? "" : "s",
      100 * fields::number(document, {"threshold"}).value_or(0));
}

std::string category_title(const Json& document) {
  const auto before = fields::number(document, {"iterations", "baseline"});
  const auto after = fields::number(document, {"iterations", "test"});
  return before && after ? fmt::format("Time per iteration ({:.0f} against {:.0f})", *before, *after)
                         : std::string("Time of the whole trace, mean over devices");
}

std::string category_name(const Json& row) {
  std::string name = fields::text(row, {"category"});
  std::replace(name.begin(), name.end(), '_', ' ');
  return plain(name);
}

std::string paragraph(const std::string& text, std::size_t indent) {
  return std::string(indent, ' ') + wrapped(plain(text), indent) + "\n";
}

bool is_judged(const Json& row) { return fields::at(row, {"verdict"}).is_string(); }

std::string categories_text(const Json& document) {
  std::string text = category_title(document) + "\n";
  for (const Json& row : list(document, "categories")) {
    const std::string times =
        fmt::format("{} -> {}", duration_text(row, {"baseline_ns"}), duration_text(row, {"test_ns"}));
    std::string line =
        fmt::format("  {:<22} {:<20} {:>8} {:<16} {}", category_name(row), times, ratio_text(row),
                    is_judged(row) ? interval_text(row) : "", is_judged(row) ? fields::text(row, {"verdict"}) : "");
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
    if (fields::at(row, {"reason"}).is_string()) text += paragraph(fields::text(row, {"reason"}), 4);
  }
  return text;
}

// "  gemm_128x64(...)"
// "    120 x 4.21 us -> 120 x 4.60 us  1.093x [1.071, 1.110]  p <0.001  slower"
std::string kernel_text(const Json& row) {
  std::string text = "  " + short_kernel_name(plain(fields::text(row, {"name"})), kReportColumns - 2) + "\n";
  const std::string times = fmt::format("{} x {} -> {} x {}", count_text(row, {"baseline", "count"}),
                                        duration_text(row, {"baseline", "median_ns"}),
                                        count_text(row, {"test", "count"}), duration_text(row, {"test", "median_ns"}));
  if (!is_judged(row)) return text + fmt::format("    {:<34} {:>7}\n", times, ratio_text(row));
  text += fmt::format("    {:<34} {:>7} {:<14} {:>6} {}\n", times, ratio_text(row), interval_text(row), p_text(row),
                      fields::text(row, {"verdict"}));
  if (fields::at(row, {"reason"}).is_string()) text += paragraph(fields::text(row, {"reason"}), 6);
  return text;
}

std::string lone_text(const Json& rows, const char* title) {
  if (rows.empty()) return {};
  std::string text = fmt::format("\n{} ({}):\n", title, rows.size());
  std::size_t shown = 0;
  for (const Json& row : rows) {
    if (++shown > kRows) break;
    text += fmt::format("  {:>8} in {:>6} x  {}\n", duration_text(row, {"total_ns"}), count_text(row, {"count"}),
                        short_kernel_name(plain(fields::text(row, {"name"})), kReportColumns - 25));
  }
  if (rows.size() > kRows) text += fmt::format("  and {} more\n", rows.size() - kRows);
  return text;
}

// What is left of a name once everything within `depth` or more angle brackets is cut.
std::string without_arguments(std::string_view name, int depth) {
  std::string kept;
  int open = 0;
  for (std::size_t i = 0; i < name.size(); ++i) {
    // operator->, operator<< and the like are rare in names of kernels; an arrow is no bracket.
    const bool is_arrow = name[i] == '>' && i > 0 && name[i - 1] == '-';
    if (name[i] == '<' && ++open == depth) kept += "<..";
    if (open < depth) kept += name[i];
    if (name[i] == '>' && !is_arrow && open > 0 && open-- == depth) kept += '>';
  }
  return kept;
}

// Within angle brackets, without namespaces and casts: "f<at::native::Add<(int)4> >" -> "f<Add<4> >".
std::string without_qualifiers(std::string_view name) {
  std::string kept;
  int open = 0;
  for (std::size_t i = 0; i < name.size(); ++i) {
    open += name[i] == '<' ? 1 : name[i] == '>' && open > 0 ? -1 : 0;
    if (open > 0 && name.substr(i).starts_with("::")) {
      while (!kept.empty() && (std::isalnum(static_cast<unsigned char>(kept.back())) != 0 || kept.back() == '_'))
        kept.pop_back();
      ++i;
      continue;
    }
    bool is_cast = false;
    for (const std::string_view cast : {"(int)", "(bool)", "(unsigned int)", "(unsigned long)", "(long)"}) {
      if (open == 0 || !name.substr(i).starts_with(cast) || i == 0 || (name[i - 1] != '<' && name[i - 1] != ' '))
        continue;
      i += cast.size() - 1;
      is_cast = true;
      break;
    }
    if (!is_cast) kept += name[i];
  }
  return kept;
}

// Without return type and parameters: "void f<T>(int, float*)" -> "f<T>".
std::string_view without_parameters(std::string_view name) {
  if (name.starts_with("void ")) name.remove_prefix(5);
  int angles = 0;
  for (std::size_t i = 0; i < name.size(); ++i) {
    angles += name[i] == '<' ? 1 : name[i] == '>' ? -1 : 0;
    if (name[i] != '(' || angles != 0 || i == 0 || name.substr(i).starts_with("(anonymous")) continue;
    return name.substr(0, i);
  }
  return name;
}

bool is_continuation(char letter) { return (static_cast<unsigned char>(letter) & 0xC0) == 0x80; }

}  // namespace

std::string short_kernel_name(std::string_view name, std::size_t columns) {
  if (name.size() <= columns) return std::string(name);
  std::string text(without_parameters(name));
  if (text.size() > columns) text = without_qualifiers(text);
  for (int depth = 4; depth >= 2 && text.size() > columns; --depth) text = without_arguments(text, depth);
  if (text.size() <= columns) return text;
  if (columns < 8) return text.substr(0, columns);
  // Beginning and end tell kernels apart: the function first, its last arguments (types, sizes) behind.
  std::size_t head = (columns - 2) * 3 / 5, tail = text.size() - (columns - 2 - head);
  while (head > 0 && is_continuation(text[head])) --head;
  while (tail < text.size() && is_continuation(text[tail])) ++tail;
  return text.substr(0, head) + ".." + text.substr(tail);
}

std::string trace_comparison_text(const Json& document) {
  std::string text = paragraph(
      fmt::format("{} against baseline {}", fields::text(document, {"test"}), fields::text(document, {"baseline"})), 0);
  text += "\n" + categories_text(document) + "\nKernels in both, by time\n";
  std::size_t rest = 0, shown = 0;
  for (const Json& row : list(document, "kernels")) {
    if (is_judged(row) || shown < kRows)
      text += kernel_text(row);
    else
      ++rest;
    ++shown;
  }
  if (rest > 0) text += fmt::format("  and {} more, each below 1 % of both traces\n", rest);
  text += lone_text(list(document, "baseline_only"), "Only in the baseline");
  text += lone_text(list(document, "test_only"), "Only in the test");
  if (const double left = fields::number(document, {"kernels_left_out"}).value_or(0); left > 0)
    text += fmt::format("{:.0f} kernels with less time are left out\n", left);
  if (!list(document, "notes").empty()) text += "\nNotes:\n";
  for (const Json& note : list(document, "notes")) text += paragraph(fields::text(note, {}), 2);
  return text + "\n" + paragraph(method_line(document), 0) + verdict_line(document) + "\n";
}

std::string trace_comparison_markdown(const Json& document) {
  std::string text = fmt::format("# Comparison of traces: {}\n\n{} against {}\n\n{}\n", verdict_line(document),
                                 cell(fields::text(document, {"test"})), cell(fields::text(document, {"baseline"})),
                                 method_line(document));
  const auto verdict_cell = [](const Json& row) {
    const std::string verdict = is_judged(row) ? fields::text(row, {"verdict"}) : "-";
    return verdict == "slower" || verdict == "faster" ? fmt::format("**{}**", verdict) : verdict;
  };
  std::string remarks;
  text += fmt::format("\n## {}\n\n| category | baseline | test | ratio | interval | p | verdict |\n",
                      category_title(document));
  text += "| --- | ---: | ---: | ---: | --- | ---: | --- |\n";
  for (const Json& row : list(document, "categories")) {
    text += fmt::format("| {} | {} | {} | {} | {} | {} | {} |\n", category_name(row),
                        duration_text(row, {"baseline_ns"}), duration_text(row, {"test_ns"}), ratio_text(row),
                        interval_text(row), cell(p_text(row)), verdict_cell(row));
    if (fields::at(row, {"reason"}).is_string())
      remarks += fmt::format("- {}: {}\n", category_name(row), cell(fields::text(row, {"reason"})));
  }
  text += "\n## Kernels\n\n| kernel | baseline | test | ratio | interval | p | verdict |\n";
  text += "| --- | ---: | ---: | ---: | --- | ---: | --- |\n";
  for (const Json& row : list(document, "kernels")) {
    const std::string name = cell(short_kernel_name(plain(fields::text(row, {"name"})), kMarkdownName));
    text += fmt::format("| {} | {} x {} | {} x {} | {} | {} | {} | {} |\n", name,
                        count_text(row, {"baseline", "count"}), duration_text(row, {"baseline", "median_ns"}),
                        count_text(row, {"test", "count"}), duration_text(row, {"test", "median_ns"}), ratio_text(row),
                        interval_text(row), cell(p_text(row)), verdict_cell(row));
    if (fields::at(row, {"reason"}).is_string())
      remarks += fmt::format("- {}: {}\n", name, cell(fields::text(row, {"reason"})));
  }
  for (const auto& [key, title] : {std::pair{"baseline_only", "baseline"}, std::pair{"test_only", "test"}}) {
    if (list(document, key).empty()) continue;
    text += fmt::format("\n## Only in the {}\n\n| kernel | count | total |\n| --- | ---: | ---: |\n", title);
    for (const Json& row : list(document, key))
      text +=
          fmt::format("| {} | {} | {} |\n", cell(short_kernel_name(plain(fields::text(row, {"name"})), kMarkdownName)),
                      count_text(row, {"count"}), duration_text(row, {"total_ns"}));
  }
  for (const Json& note : list(document, "notes")) remarks += fmt::format("- {}\n", cell(fields::text(note, {})));
  return remarks.empty() ? text : text + "\n" + remarks;
}

}  // namespace weir
