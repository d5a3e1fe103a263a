// A report as sections of facts and tables, as text for a terminal or as Markdown. Knows no document.
#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace weir {

struct ReportTable {
  struct Column {
    std::string heading;
    bool is_text = false;  // left-aligned; shortened where the table is too wide
  };
  std::vector<Column> columns;
  std::vector<std::vector<std::string>> rows = {};
  std::string after = {};  // a line below the table: what was left out
};

struct ReportSection {
  std::string title;
  std::vector<std::pair<std::string, std::string>> facts = {};  // label and value
  std::vector<ReportTable> tables = {};
  std::vector<std::string> remarks = {};

  void fact(std::string label, std::string value) { facts.emplace_back(std::move(label), std::move(value)); }
  template <class First, class... Rest>
  void fact(std::string label, fmt::format_string<First, Rest...> format, First&& first, Rest&&... rest) {
    fact(std::move(label), fmt::format(format, std::forward<First>(first), std::forward<Rest>(rest)...));
  }
  void remark(std::string text) { remarks.push_back(std::move(text)); }
  template <class First, class... Rest>
  void remark(fmt::format_string<First, Rest...> format, First&& first, Rest&&... rest) {
    remark(fmt::format(format, std::forward<First>(first), std::forward<Rest>(rest)...));
  }
  // Adds an empty table; the reference is valid until the next one is added.
  ReportTable& table(std::vector<ReportTable::Column> columns) { return tables.emplace_back(std::move(columns)); }
  void add_unless_empty(ReportTable table) {
    if (!table.rows.empty()) tables.push_back(std::move(table));
  }
};

struct TextReport {
  std::string title;
  std::vector<std::string> opening = {};
  std::vector<ReportSection> sections = {};

  void open(std::string line) { opening.push_back(std::move(line)); }
  template <class First, class... Rest>
  void open(fmt::format_string<First, Rest...> format, First&& first, Rest&&... rest) {
    open(fmt::format(format, std::forward<First>(first), std::forward<Rest>(rest)...));
  }
  // Adds an empty section; the reference is valid until the next one is added.
  ReportSection& section(std::string heading) { return sections.emplace_back(std::move(heading)); }
  // Adds a section with one table, unless that has no rows.
  void add_unless_empty(std::string heading, ReportTable table, std::vector<std::string> remarks = {}) {
    if (!table.rows.empty()) sections.push_back({std::move(heading), {}, {std::move(table)}, std::move(remarks)});
  }
};

inline constexpr std::size_t kReportColumns = 80;
// How wide texts are: kReportColumns, or what main() set for a narrower terminal, at least 40.
std::size_t report_columns() noexcept;
void set_report_columns(std::size_t columns) noexcept;

std::string report_text(const TextReport& report);
std::string report_markdown(const TextReport& report);

// Breaks lines at blanks; every line begins at `column`, and the first is assumed to be there already.
std::string wrapped(std::string_view text, std::size_t column, std::size_t columns = report_columns());

// A kernel name in at most `columns`: parameters and namespaces are removed first, then template arguments but for the
// one that says what the kernel computes, then the middle.
std::string short_kernel_name(std::string_view name, std::size_t columns);

// A row of cells that shows values between 0 and the largest: " .:-=+*#%@".
std::string sparkline(const std::vector<double>& values, std::size_t cells);

}  // namespace weir
