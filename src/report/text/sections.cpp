#include "report/text/sections.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <numeric>

#include "base/plain_text.h"
#include "base/text_gate.h"

namespace weir {
namespace {

constexpr std::size_t kIndent = 2;
constexpr std::size_t kBetween = 2;  // blanks between columns
constexpr std::size_t kMinText = 12;

std::vector<std::size_t> widths_of(const ReportTable& table) {
  std::vector<std::size_t> widths;
  for (const auto& column : table.columns) widths.push_back(column.heading.size());
  for (const auto& row : table.rows)
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  std::size_t used =
      kIndent + kBetween * (widths.size() - 1) + std::accumulate(widths.begin(), widths.end(), std::size_t{0});
  // Text columns are shortened, the widest first.
  while (used > report_columns()) {
    std::size_t widest = widths.size();
    for (std::size_t i = 0; i < widths.size(); ++i)
      if (table.columns[i].is_text && widths[i] > kMinText && (widest == widths.size() || widths[i] > widths[widest]))
        widest = i;
    if (widest == widths.size()) break;
    --widths[widest];
    --used;
  }
  return widths;
}

std::string table_text(const ReportTable& table) {
  const std::vector<std::size_t> widths = widths_of(table);
  const auto line = [&](const auto& cell_of) {
    std::string text(kIndent, ' ');
    for (std::size_t i = 0; i < widths.size(); ++i) {
      const bool is_text = table.columns[i].is_text;
      std::string cell = cell_of(i);
      if (cell.size() > widths[i]) cell = short_kernel_name(cell, widths[i]);
      text += fmt::format(fmt::runtime(is_text ? "{:<{}}" : "{:>{}}"), cell, widths[i]);
      if (i + 1 < widths.size()) text += std::string(kBetween, ' ');
    }
    text.erase(text.find_last_not_of(' ') + 1);
    return text + "\n";
  };
  std::string text = line([&](std::size_t i) { return for_line(table.columns[i].heading); });
  for (const auto& row : table.rows)
    text += line([&](std::size_t i) { return i < row.size() ? for_line(row[i]) : ""; });
  if (!table.after.empty()) text += std::string(kIndent, ' ') + wrapped(for_line(table.after), kIndent) + "\n";
  return text;
}

Markdown table_markdown(const ReportTable& table) {
  Markdown text = Markdown::literal("|"), rule = text;
  for (const auto& column : table.columns) {
    text += Markdown::format(" {} |", column.heading);
    rule += column.is_text ? Markdown::literal(" --- |") : Markdown::literal(" ---: |");
  }
  text += Markdown::format("\n{}\n", rule);
  for (const auto& row : table.rows) {
    text += Markdown::literal("|");
    for (const std::string& cell : row) text += Markdown::format(" {} |", cell);
    text += Markdown::literal("\n");
  }
  if (!table.after.empty()) text += Markdown::format("\n{}\n", table.after);
  return text;
}

// The name without everything nested in `depth` or more angle brackets.
std::string without_arguments(std::string_view name, int depth) {
  std::string kept;
  int open = 0;
  for (std::size_t i = 0; i < name.size(); ++i) {
    // operator->, operator<< and the like are rare in kernel names; an arrow is not a bracket.
    const bool is_arrow = name[i] == '>' && i > 0 && name[i - 1] == '-';
    if (name[i] == '<' && ++open == depth) kept += "<..";
    if (open < depth) kept += name[i];
    if (name[i] == '>' && !is_arrow && open > 0 && open-- == depth) kept += '>';
  }
  return kept;
}

bool is_word(char letter) { return std::isalnum(static_cast<unsigned char>(letter)) != 0 || letter == '_'; }

// Without namespaces and, in arguments, casts: "a::f<at::native::Add<(int)4> >" -> "f<Add<4> >".
std::string without_qualifiers(std::string_view name) {
  std::string kept;
  int open = 0;
  for (std::size_t i = 0; i < name.size(); ++i) {
    open += name[i] == '<' ? 1 : name[i] == '>' && open > 0 ? -1 : 0;
    if (name.substr(i).starts_with("::")) {
      while (!kept.empty() && is_word(kept.back())) kept.pop_back();
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

// The argument that distinguishes a kernel from the others of its template: what it computes (a functor, the function
// around a lambda), otherwise the first that is not a number or a plain type. web/src/text.ts has the same rule.
std::string_view telling_argument(std::string_view name) {
  constexpr std::array<std::string_view, 18> kPlain = {"void", "bool",     "char",   "short",  "int",      "long",
                                                       "half", "unsigned", "signed", "float",  "double",   "const",
                                                       "true", "false",    "Half",   "lambda", "operator", "BFloat16"};
  std::string_view first;
  for (std::size_t i = std::min(name.find('<'), name.size()); i < name.size(); ++i) {
    if (!is_word(name[i])) continue;
    std::size_t end = i;
    while (end < name.size() && is_word(name[end])) ++end;
    const std::string_view word = name.substr(i, end - i);
    i = end - 1;
    if (std::isdigit(static_cast<unsigned char>(word[0])) != 0 || std::ranges::find(kPlain, word) != kPlain.end())
      continue;
    for (const std::string_view part : {"unctor", "_kernel"})
      if (word.find(part) != std::string_view::npos) return word;
    if (first.empty()) first = word;
  }
  return first;
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

std::size_t columns_now = kReportColumns;  // written before there are threads

bool is_continuation(char letter) { return (static_cast<unsigned char>(letter) & 0xC0) == 0x80; }

}  // namespace

std::string short_kernel_name(std::string_view name, std::size_t columns) {
  if (name.size() <= columns) return std::string(name);
  std::string text(without_parameters(name));
  constexpr std::string_view kUnnamed = "(anonymous namespace)::";
  if (const std::size_t at = text.find(kUnnamed); text.size() > columns && at != std::string::npos)
    text.erase(at, kUnnamed.size());
  if (text.size() > columns) text = without_qualifiers(text);
  const bool is_template = text.find('>') != std::string::npos;  // "round trip < 25 us" is none
  const std::string argument(is_template ? telling_argument(text) : std::string_view());
  for (int depth = 4; depth >= 2 && text.size() > columns; --depth) text = without_arguments(text, depth);
  if (text.size() <= columns && text.find(argument) != std::string::npos) return text;
  if (columns < 8) return text.substr(0, columns);
  const std::string function = is_template ? text.substr(0, text.find('<')) : text;
  if (function != text) text = function + "<" + (argument.empty() ? ".." : argument) + ">";
  if (text.size() <= columns) return text;
  // What a kernel computes says more than the rest of its function's name.
  if (!argument.empty() && argument.size() + 10 <= columns)
    return std::string(whole_characters(function, columns - argument.size() - 4)) + "..<" + argument + ">";
  // Beginning and end distinguish kernels: the function comes first, its last arguments (types, sizes) at the end.
  std::size_t head = (columns - 2) * 3 / 5, tail = text.size() - (columns - 2 - head);
  while (head > 0 && is_continuation(text[head])) --head;
  while (tail < text.size() && is_continuation(text[tail])) ++tail;
  return text.substr(0, head) + ".." + text.substr(tail);
}

std::size_t report_columns() noexcept { return columns_now; }
void set_report_columns(std::size_t columns) noexcept {
  columns_now = std::clamp<std::size_t>(columns, 40, kReportColumns);
}

std::string wrapped(std::string_view text, std::size_t column, std::size_t columns) {
  std::string out;
  std::size_t at = column;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find(' ', begin), text.size());
    if (at != column && at + 1 + end - begin > columns) {
      out.erase(out.find_last_not_of(' ') + 1);
      out += "\n" + std::string(column, ' ');
      at = column;
    } else if (at != column) {
      out += ' ';
      ++at;
    }
    out += text.substr(begin, end - begin);
    at += end - begin;
    begin = end + 1;
  }
  return out;
}

std::string report_text(const TextReport& report) {
  std::string text = for_line(report.title) + "\n";
  for (const std::string& line : report.opening)
    text += std::string(kIndent, ' ') + wrapped(for_line(line), kIndent) + "\n";
  for (const ReportSection& section : report.sections) {
    text += "\n" + wrapped(for_line(section.title), kIndent) + "\n";
    std::size_t label = 0;
    for (const auto& fact : section.facts) label = std::max(label, fact.first.size());
    for (const auto& [name, value] : section.facts)
      text += fmt::format("  {:<{}}  {}\n", for_line(name), label, wrapped(for_line(value), label + 2 * kIndent));
    for (const ReportTable& table : section.tables) {
      if (!section.facts.empty() || &table != &section.tables.front()) text += "\n";
      text += table_text(table);
    }
    for (const std::string& remark : section.remarks)
      text += std::string(kIndent, ' ') + wrapped(for_line(remark), kIndent) + "\n";
  }
  return text;
}

std::string report_markdown(const TextReport& report) {
  Markdown text = Markdown::format("# {}\n", report.title);
  for (const std::string& line : report.opening) text += Markdown::format("\n{}\n", line);
  for (const ReportSection& section : report.sections) {
    text += Markdown::format("\n## {}\n\n", section.title);
    for (const auto& [name, value] : section.facts) {
      // A fact without a label continues the one before: a picture made of characters.
      text += name.empty() ? Markdown::format("  `{}`\n", Markdown::embed(MarkdownCode(value)))
                           : Markdown::format("- {}: {}\n", name, value);
    }
    for (const ReportTable& table : section.tables) {
      if (!section.facts.empty() || &table != &section.tables.front()) text += Markdown::literal("\n");
      text += table_markdown(table);
    }
    for (const std::string& remark : section.remarks) text += Markdown::format("\n{}\n", remark);
  }
  return text.text();
}

std::string sparkline(const std::vector<double>& values, std::size_t cells) {
  if (values.empty() || cells == 0) return "";
  static constexpr std::string_view kLevels = " .:-=+*#%@";
  std::string line;
  const double largest = std::max(*std::max_element(values.begin(), values.end()), 1e-300);
  for (std::size_t i = 0; i < cells; ++i) {
    const std::size_t from = i * values.size() / cells;
    const std::size_t to = std::max(from + 1, (i + 1) * values.size() / cells);
    double most = 0;
    for (std::size_t j = from; j < std::min(to, values.size()); ++j) most = std::max(most, values[j]);
    const double level = most / largest * static_cast<double>(kLevels.size() - 1);
    line += kLevels[most > 0 ? std::max<std::size_t>(1, static_cast<std::size_t>(level + 0.5)) : 0];
  }
  return line;
}

}  // namespace weir
