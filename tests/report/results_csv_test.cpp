// Results as tables: RFC 4180 by a reader of our own, units in headings, cells that a spreadsheet would run.
#include <gtest/gtest.h>

#include <map>
#include <stdexcept>

#include "base/error.h"
#include "report/figures/figures.h"
#include "support/result_documents.h"

namespace weir {
namespace {

using Table = std::vector<std::map<std::string, std::string>>;

// Throws what is no RFC 4180: lines of different lengths, quotes within plain cells, line breaks but CR LF.
Table read(const std::string& text) {
  std::vector<std::vector<std::string>> lines(1, std::vector<std::string>(1));
  bool is_quoted = false, was_quoted = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    std::string& cell = lines.back().back();
    if (is_quoted) {
      if (c != '"') {
        cell += c;
      } else if (i + 1 < text.size() && text[i + 1] == '"') {
        cell += text[++i];
      } else {
        is_quoted = false;
        was_quoted = true;
      }
    } else if (c == '"') {
      if (!cell.empty() || was_quoted) throw std::runtime_error("a quote within a cell");
      is_quoted = true;
    } else if (c == ',') {
      lines.back().emplace_back();
      was_quoted = false;
    } else if (c == '\r') {
      if (text.compare(i, 2, "\r\n") != 0) throw std::runtime_error("CR alone");
      ++i;
      lines.emplace_back(1);
      was_quoted = false;
    } else if (c == '\n' || was_quoted) {
      throw std::runtime_error("LF alone, or text behind a quote");
    } else {
      cell += c;
    }
  }
  if (is_quoted || lines.back() != std::vector<std::string>(1)) throw std::runtime_error("no end");
  lines.pop_back();
  Table table;
  for (std::size_t i = 1; i < lines.size(); ++i) {
    if (lines[i].size() != lines[0].size()) throw std::runtime_error("a line of another length");
    for (std::size_t j = 0; j < lines[0].size(); ++j) {
      if (j == 0) table.emplace_back();
      if (!table.back().emplace(lines[0][j], lines[i][j]).second) throw std::runtime_error("a heading twice");
    }
  }
  return table;
}

TEST(CsvChecker, finds_what_is_wrong) {
  EXPECT_EQ(read("a,b\r\n1,\"x\"\"\r\n,\"\r\n")[0].at("b"), "x\"\r\n,");
  for (const char* bad :
       {"a,b\r\n1\r\n", "a\r\nb\"c\r\n", "a\nb\r\n", "a\r\n\"b", "a,a\r\n1,2\r\n", "a\r\nb", "a\r\n\"b\"c\r\n"})
    EXPECT_ANY_THROW(read(bad)) << bad;
}

TEST(ResultsCsv, one_line_per_point_with_units_in_headings) {
  const Table table = read(results_csv(figures_of(testing::result_document(), "r.json")));
  ASSERT_EQ(table.size(), 1U);
  EXPECT_EQ(table[0].at("kind"), "run");
  EXPECT_EQ(table[0].at("workload"), "moe");
  EXPECT_EQ(table[0].at("streams"), "8");
  EXPECT_EQ(table[0].at("latency_p50_seconds"), "0.002");
  EXPECT_EQ(table[0].at("latency_max_seconds"), "0.004");
  EXPECT_EQ(table[0].at("throughput_FLOP_per_second"), "50000000000");
  EXPECT_EQ(table[0].at("status"), "complete");
  EXPECT_EQ(table[0].at("parameters"), "experts=4,order=mixed");
  EXPECT_FALSE(table[0].contains("energy_per_iteration_joules"));
}

TEST(ResultsCsv, kinds_share_a_table_and_leave_cells_empty) {
  std::vector<FigureRow> rows = figures_of(testing::result_document(), "r.json");
  for (FigureRow& row : figures_of(testing::bench_document(), "b.json")) rows.push_back(std::move(row));
  const Table table = read(results_csv(rows));
  ASSERT_EQ(table.size(), 3U);
  EXPECT_EQ(table[0].at("kernel"), "");
  EXPECT_EQ(table[1].at("kernel"), "softmax");
  EXPECT_EQ(table[1].at("latency_p50_seconds"), "0.00125");
  EXPECT_EQ(table[1].at("problem"), "rows=8,shape=[2,3]");
  EXPECT_EQ(table[2].at("status"), "crashed");
  EXPECT_EQ(table[2].at("failure"), "signal 11");
  EXPECT_EQ(table[2].at("latency_p50_seconds"), "") << "not 0";
}

TEST(ResultsCsv, one_line_per_sample) {
  const Table table = read(samples_csv(figures_of(testing::result_document(), "r.json")));
  ASSERT_EQ(table.size(), 3U);
  EXPECT_EQ(table[2].at("sample"), "2");
  EXPECT_EQ(table[2].at("workload"), "moe");
  EXPECT_EQ(table[2].at("latency_seconds"), "0.004");
  EXPECT_EQ(table[1].at("submit_seconds"), "2e-07");
  EXPECT_EQ(table[2].at("submit_seconds"), "") << "there are but two";
  EXPECT_FALSE(table[0].contains("device_seconds"));
}

TEST(ResultsCsv, too_many_columns_are_rejected) {
  std::vector<FigureRow> rows;
  for (int i = 0; i < 1'001; ++i) {
    Json result = testing::result_document();
    result["metrics"]["throughput"]["unit"] = "u" + std::to_string(i) + "/s";
    for (FigureRow& row : figures_of(result, "r.json")) rows.push_back(std::move(row));
  }
  EXPECT_THROW(results_csv(rows), Error);
}

}  // namespace
}  // namespace weir
