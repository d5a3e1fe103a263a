// Cells as text, and the order of rows.
#include "lab/watch/columns.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "lab/watch/hand_made.h"

namespace weir::watch {
namespace {

using Order = std::vector<std::size_t>;

TEST(Columns, what_is_not_known_is_a_dash_and_never_0) {
  const Row row = testing::row_named("k", "l");
  for (const ColumnType& type : columns().subspan(1)) EXPECT_EQ(cell(type.column, row), "-") << type.name;
}

TEST(Columns, numbers_are_short_and_bounds_are_marked) {
  Row row = testing::row_named("k", "l");
  const auto rate = [&](SampleValue figure) {
    row.packets_per_s = std::move(figure);
    return cell(Column::rate, row);
  };
  EXPECT_EQ(rate(known(0)), "0");
  EXPECT_EQ(rate(known(0.254)), "0.25");
  EXPECT_EQ(rate(known(44.91)), "44.9");
  EXPECT_EQ(rate(known(999)), "999");
  EXPECT_EQ(rate(known(123456789)), "123 M");
  EXPECT_EQ(rate(at_least(0, "why")), ">=0");
  row.busy = known(0.004);
  EXPECT_EQ(cell(Column::busy, row), "0.4 %");
  row.busy = known(1);
  EXPECT_EQ(cell(Column::busy, row), "100 %");
}

TEST(Columns, every_cell_fits_its_column) {
  Row row = testing::row_named("k", "l");
  for (const double value : {0.0, 0.001, 1.5, 99.96, 999.6, 1234.0, 9.99e5, 1.234e9, 8.8e15}) {
    row.backlog = row.streams = row.priority = known(value);
    row.packets_per_s = at_least(value, "why");
    row.busy = known(std::min(1.0, value / 1e16));
    for (const ColumnType& type : columns().subspan(1))
      EXPECT_LE(cell(type.column, row).size(), type.width) << type.name << ' ' << value;
  }
}

TEST(Columns, kernels_are_the_rate_where_they_are_known) {
  Row row = testing::row_named("k", "l");
  row.packets_per_s = known(5);
  EXPECT_EQ(*rate_of(row).value, 5);
  row.kernels_per_s = known(3);
  EXPECT_EQ(*rate_of(row).value, 3);
}

TEST(Columns, largest_first_and_unknown_last_both_ways) {
  Sample sample;
  for (const double value : {1.0, -1.0, 3.0, 2.0}) {
    Row row = testing::row_named("k", "l");
    if (value >= 0) row.backlog = known(value);
    sample.rows.push_back(row);
  }
  EXPECT_EQ(order_of(sample, Column::backlog, false), (Order{2, 3, 0, 1}));
  EXPECT_EQ(order_of(sample, Column::backlog, true), (Order{0, 3, 2, 1}));
  EXPECT_EQ(order_of(sample, Column::queue, false), (Order{0, 1, 2, 3}));
  EXPECT_EQ(order_of(sample, Column::queue, true), (Order{3, 2, 1, 0}));
}

TEST(Columns, equal_rows_stay_in_their_order) {
  Sample sample;
  for (int i = 0; i < 5; ++i) sample.rows.push_back(testing::row_named("k", "l"));
  for (Row& row : sample.rows) row.streams = known(2);
  EXPECT_EQ(order_of(sample, Column::streams, false), (Order{0, 1, 2, 3, 4}));
  EXPECT_EQ(order_of(sample, Column::streams, true), (Order{0, 1, 2, 3, 4}));
}

TEST(Columns, names_are_checked_with_a_suggestion) {
  EXPECT_EQ(column_named("backlog"), Column::backlog);
  EXPECT_EQ(column_named("kernels"), Column::rate);
  for (const ColumnType& type : columns()) EXPECT_EQ(column_named(name_of(type.column)), type.column);
  try {
    column_named("back\x1blog");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(std::string(error.what()), "sort back?log: unknown column");
  }
}

TEST(Columns, printable_keeps_one_mark_for_a_character) {
  EXPECT_EQ(printable("a\xc3\xa4z"), "a?z");
  EXPECT_EQ(printable("\x1b[31m"), "?[31m");
  EXPECT_EQ(printable("\xe2\x82\xac"), "?");
  EXPECT_EQ(printable("\x9b"
                      "2J"),
            "2J");  // a lone C1 escape goes
}

}  // namespace
}  // namespace weir::watch
