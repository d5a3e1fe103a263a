#include "lab/watch/columns.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <numeric>
#include <optional>

#include "base/error.h"
#include "base/options.h"
#include "base/units.h"

namespace weir::watch {
namespace {

constexpr std::array<ColumnType, 7> kColumns = {{{Column::queue, "queue", 8, 7},
                                                 {Column::active, "active", 6, 4},
                                                 {Column::backlog, "backlog", 9, 6},
                                                 {Column::priority, "priority", 9, 2},
                                                 {Column::streams, "streams", 7, 1},
                                                 {Column::rate, "rate", 11, 5},
                                                 {Column::busy, "busy", 6, 3}}};

// Formats any number short enough for a column: 0.25, 12.5, 317, 4.21 k.
std::string short_number(double value) {
  if (std::abs(value) >= 1000) return format_quantity(value);
  if (value == std::round(value) || std::abs(value) >= 100) return fmt::format("{:.0f}", value);
  return fmt::format("{:.{}f}", value, std::abs(value) < 10 ? 2 : 1);
}

std::string figure_text(const SampleValue& figure) {
  if (!figure.value) return "-";
  return fmt::format("{}{}", figure.is_at_least ? ">=" : "", short_number(*figure.value));
}

// The figure that a column shows, for columns that show figures.
const SampleValue& figure_of(Column column, const Row& row) {
  static const SampleValue kNone;
  switch (column) {
    case Column::backlog:
      return row.backlog;
    case Column::priority:
      return row.priority;
    case Column::streams:
      return row.streams;
    case Column::rate:
      return rate_of(row);
    case Column::busy:
      return row.busy;
    case Column::queue:
    case Column::active:
      break;
  }
  return kNone;
}

std::optional<double> sort_value(Column column, const Row& row) {
  if (column == Column::active && row.is_active) return *row.is_active ? 1 : 0;
  return figure_of(column, row).value;
}

}  // namespace

std::span<const ColumnType> columns() { return kColumns; }

Column column_named(std::string_view name) {
  if (name == "kernels" || name == "packets") return Column::rate;
  std::vector<std::string> names;
  for (const ColumnType& type : kColumns) {
    if (type.name == name) return type.column;
    names.emplace_back(type.name);
  }
  reject_setting("sort", printable(name), "unknown column", suggestion(name, names));
}

std::string_view name_of(Column column) { return kColumns[static_cast<std::size_t>(column)].name; }

std::string heading(Column column, const Sample& sample) {
  if (column == Column::rate) return sample.unit == Unit::packets ? "PACKETS/S" : "KERNELS/S";
  std::string heading(name_of(column));
  std::transform(heading.begin(), heading.end(), heading.begin(), [](unsigned char c) { return std::toupper(c); });
  return heading;
}

std::string cell(Column column, const Row& row) {
  if (column == Column::queue) return printable(row.label);
  if (column == Column::active) {
    // If the queue is active again, its last preemption is over.
    if (row.is_preempted == true && row.is_active == false) return "saved";
    return !row.is_active ? "-" : *row.is_active ? "yes" : "no";
  }
  const SampleValue& figure = figure_of(column, row);
  if (column == Column::priority && figure.value && !row.priority_text.empty()) return printable(row.priority_text);
  if (column == Column::busy && figure.value)
    return fmt::format("{:.{}f} %", 100 * *figure.value, *figure.value > 0 && *figure.value < 0.0995 ? 1 : 0);
  return figure_text(figure);
}

std::vector<std::size_t> order_of(const Sample& sample, Column column, bool is_reversed) {
  std::vector<std::size_t> order(sample.rows.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  // Keeps the source's order of names: "queue 10" does not belong between 1 and 2.
  if (column == Column::queue) {
    if (is_reversed) std::reverse(order.begin(), order.end());
    return order;
  }
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    const auto left = sort_value(column, sample.rows[a]), right = sort_value(column, sample.rows[b]);
    if (!left || !right) return left.has_value() && !right.has_value();
    return is_reversed ? *left < *right : *left > *right;
  });
  return order;
}

const SampleValue& rate_of(const Row& row) { return row.kernels_per_s.value ? row.kernels_per_s : row.packets_per_s; }

std::string printable(std::string_view text) {
  std::string clean;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte >= 0x80 && byte < 0xc0) continue;  // continuation byte of a character that is already one '?'
    clean += byte >= 0x20 && byte < 0x7f ? c : '?';
  }
  return clean;
}

}  // namespace weir::watch
