// The columns of the view: headings, cells as text, and the order of rows by any of them. Knows samples; no terminal.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lab/watch/sample.h"

namespace weir::watch {

enum class Column : std::uint8_t { queue, active, backlog, priority, streams, rate, busy };

struct ColumnType {
  Column column;
  std::string_view name;  // as --sort takes it
  std::size_t width;      // the queue's is the least; it takes what is left
  int importance;         // where there is no room for all, the highest go first
};

std::span<const ColumnType> columns();
// Rejects a name that there is not, in the name of --sort. "kernels", "packets" and "rate" are one column.
Column column_named(std::string_view name);
std::string_view name_of(Column column);

// What stands above a column; the rate's heading says of what.
std::string heading(Column column, const Sample& sample);
// "-" where nothing is known; ">=" before a bound. Printable ASCII only, whatever the names hold.
std::string cell(Column column, const Row& row);

// Indices of rows. Numbers come largest first and names in their order, all the other way round where `is_reversed`;
// rows whose value is not known come last both ways, and equal ones by their place in the sample.
std::vector<std::size_t> order_of(const Sample& sample, Column column, bool is_reversed);

// The rate that a source has: kernels where it knows them, else packets.
const Figure& rate_of(const Row& row);

// Each character that is not printable ASCII becomes '?': a terminal must not obey what a file says.
std::string printable(std::string_view text);

}  // namespace weir::watch
