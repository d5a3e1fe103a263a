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
  std::size_t width;      // a minimum for the queue column, which takes the remaining space
  int importance;         // columns with the highest number are dropped first where there is no room
};

std::span<const ColumnType> columns();
// Rejects unknown names; the message names --sort. "kernels", "packets" and "rate" are one column.
Column column_named(std::string_view name);
std::string_view name_of(Column column);

// The text above a column. The rate's heading includes what is counted.
std::string heading(Column column, const Sample& sample);
// "-" for unknown values; ">=" before a lower bound. Printable ASCII only, whatever the names contain.
std::string cell(Column column, const Row& row);

// Row indices in sorted order. Numbers are sorted largest first and names in their order; `is_reversed` reverses both.
// Rows with unknown values come last either way; equal rows keep their order in the sample.
std::vector<std::size_t> order_of(const Sample& sample, Column column, bool is_reversed);

// The rate that the source provides: kernels if known, otherwise packets.
const SampleValue& rate_of(const Row& row);

// Replaces each character that is not printable ASCII with '?', so that a file cannot send control codes to the
// terminal.
std::string printable(std::string_view text);

}  // namespace weir::watch
