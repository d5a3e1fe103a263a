#include "report/text/sections.h"

#include <gtest/gtest.h>

#include <sstream>

namespace weir {
namespace {

TextReport sample_report() {
  TextReport report;
  report.title = "Title";
  const std::string words(30, 'w'), more(60, 'v');
  report.opening.push_back(words + " " + more);
  ReportSection section;
  section.title = "Section";
  section.facts = {{"short", "1"},
                   {"longer label", "a value that goes on and on and on until it has to be broken somewhere"}};
  ReportTable table;
  table.columns = {{"name", true}, {"count"}, {"time"}};
  table.rows = {
      {"void kernel<float, 128, 4, some::very::long::TemplateArgument<int, int>>(float const*, int, int, int)", "12",
       "3.00 us"},
      {"k|x_y\x1b[2J", "1", "1 ns"}};
  table.after = "and 3 more";
  section.tables = {table};
  section.facts.emplace_back("", "[.:=@]");
  section.remarks = {"A remark."};
  report.sections = {section};
  return report;
}

TEST(Sections, text_keeps_to_80_columns_and_aligns) {
  const std::string text = report_text(sample_report());
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 80U) << line;
  EXPECT_EQ(text.find('\x1b'), std::string::npos);
  EXPECT_NE(text.find("  short         1\n"), std::string::npos) << text;
  EXPECT_NE(text.find("      12  3.00 us\n"), std::string::npos) << text;
  EXPECT_NE(text.find("  and 3 more\n"), std::string::npos);
}

TEST(Sections, markdown_escapes_what_would_be_markup) {
  const std::string text = report_markdown(sample_report());
  EXPECT_NE(text.find("# Title\n"), std::string::npos);
  EXPECT_NE(text.find("## Section\n"), std::string::npos);
  EXPECT_NE(text.find("| --- | ---: | ---: |\n"), std::string::npos) << text;
  EXPECT_NE(text.find("k\\|x_y"), std::string::npos) << text;
  EXPECT_NE(text.find("\n  `[.:=@]`\n"), std::string::npos) << text;
  EXPECT_EQ(text.find('\x1b'), std::string::npos);
}

TEST(Sections, sparkline_shows_the_largest_of_each_cell) {
  EXPECT_EQ(sparkline({0, 0, 5, 10}, 4), "  +@");
  EXPECT_EQ(sparkline({0, 10, 0, 0}, 2), "@ ");
  EXPECT_EQ(sparkline({1, 100}, 2), ".@");  // what is there is seen
  EXPECT_EQ(sparkline({}, 5), "");
  EXPECT_EQ(sparkline({0, 0}, 2), "  ");
}

}  // namespace
}  // namespace weir
