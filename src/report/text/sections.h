// A report as sections of facts and tables, told as text for a terminal or as Markdown. Knows no document.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace weir {

struct ReportTable {
  struct Column {
    std::string heading;
    bool is_text = false;  // to the left; a table's text gives way where there is no room
  };
  std::vector<Column> columns;
  std::vector<std::vector<std::string>> rows;
  std::string after;  // a line below: what was left out
};

struct ReportSection {
  std::string title;
  std::vector<std::pair<std::string, std::string>> facts;  // label and value
  std::vector<ReportTable> tables;
  std::vector<std::string> remarks;
};

struct Report {
  std::string title;
  std::vector<std::string> opening;
  std::vector<ReportSection> sections;
};

// At most 80 columns.
std::string report_text(const Report& report);
std::string report_markdown(const Report& report);

// A row of cells that shows values between 0 and the largest: " .:-=+*#%@".
std::string sparkline(const std::vector<double>& values, std::size_t cells);

}  // namespace weir
