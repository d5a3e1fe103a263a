#include "lab/watch/columns.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
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

// Short enough for a column, whatever the number: 0.25, 12.5, 317, 4.21 k.
std::string short_number(double value) {
  if (std::abs(value) >= 1000) return format_quantity(value);
  if (value == std::round(value) || std::abs(value) >= 100) return fmt::format("{:.0f}", value);
  return fmt::format("{:.{}f}", value, std::abs(value) < 10 ? 2 : 1);
}

std::string figure_text(const Figure& figure) {
  if (!figure.value) return "-";
  return fmt::format("{}{}", figure.is_at_least ? ">=" : "", short_number(*figure.value));
}

std::optional<double> sort_value(Column column, const Row& row) {
  switch (column) {
    case Column::queue:
      return std::nullopt;
    case Column::active:
      if (!row.is_active) return std::nullopt;
      return *row.is_active ? 1 : 0;
    case Column::backlog:
      return row.backlog.value;
    case Column::priority:
      return row.priority.value;
    case Column::streams:
      return row.streams.value;
    case Column::rate:
      return rate_of(row).value;
    case Column::busy:
      return row.busy.value;
  }
  return std::nullopt;
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
  reject(fmt::format("--sort {}: there is no such column", printable(name)), suggestion(name, names));
}

std::string_view name_of(Column column) { return kColumns[static_cast<std::size_t>(column)].name; }

std::string heading(Column column, const Sample& sample) {
  switch (column) {
    case Column::queue:
      return "QUEUE";
    case Column::active:
      return "ACTIVE";
    case Column::backlog:
      return "BACKLOG";
    case Column::priority:
      return "PRIORITY";
    case Column::streams:
      return "STREAMS";
    case Column::rate:
      return sample.unit == Unit::packets ? "PACKETS/S" : "KERNELS/S";
    case Column::busy:
      return "BUSY";
  }
  return {};
}

std::string cell(Column column, const Row& row) {
  switch (column) {
    case Column::queue:
      return printable(row.label);
    case Column::active:
      // The last preemption is over where it is active again.
      if (row.is_preempted == true && row.is_active == false) return "saved";
      if (!row.is_active) return "-";
      return *row.is_active ? "yes" : "no";
    case Column::backlog:
      return figure_text(row.backlog);
    case Column::priority:
      return row.priority.value && !row.priority_text.empty() ? printable(row.priority_text)
                                                              : figure_text(row.priority);
    case Column::streams:
      return figure_text(row.streams);
    case Column::rate:
      return figure_text(rate_of(row));
    case Column::busy:
      if (!row.busy.value) return "-";
      return fmt::format("{:.{}f} %", 100 * *row.busy.value, *row.busy.value > 0 && *row.busy.value < 0.0995 ? 1 : 0);
  }
  return {};
}

std::vector<std::size_t> order_of(const Sample& sample, Column column, bool is_reversed) {
  std::vector<std::size_t> order(sample.rows.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  // Names as the source ordered them: "queue 10" does not belong between 1 and 2.
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

const Figure& rate_of(const Row& row) { return row.kernels_per_s.value ? row.kernels_per_s : row.packets_per_s; }

std::string printable(std::string_view text) {
  std::string clean;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte >= 0x80 && byte < 0xc0) continue;  // goes on with a character that is one '?' already
    clean += byte >= 0x20 && byte < 0x7f ? c : '?';
  }
  return clean;
}

}  // namespace weir::watch
