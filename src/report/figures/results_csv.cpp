// Results as tables for spreadsheets (RFC 4180). Knows rows of figures; writes no file.
#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>

#include "base/error.h"
#include "base/text_gate.h"
#include "report/figures/figures.h"

namespace weir {
namespace {

constexpr std::size_t kMaxColumns = 1'000;

// "0.5" -> "p50", "0.999" -> "p999": the usual names.
std::string quantile_word(const std::string& quantile) {
  if (quantile == "0") return "min";
  if (quantile == "1") return "max";
  std::string digits = quantile.substr(quantile.find('.') + 1);
  if (digits.size() == 1) digits += '0';
  return "p" + digits;
}

// latency, {quantile 0.5}, seconds -> latency_p50_seconds; throughput_per_second, {work FLOP} -> FLOP comes before
// "per".
std::string heading(const Figure& figure) {
  std::string name = figure.name, rate;
  if (name.ends_with("_per_second")) {
    rate = "_per_second";
    name.resize(name.size() - rate.size());
  }
  for (const auto& [key, value] : figure.labels)
    if (!value.empty()) name += "_" + (key == "quantile" ? quantile_word(value) : value);
  if (!figure.unit.empty()) name += "_" + figure.unit;
  return name + rate;
}

// Columns in order of first appearance.
class Columns {
 public:
  std::size_t of(const std::string& name) {
    const auto [found, is_new] = index_.emplace(name, names_.size());
    if (is_new) names_.push_back(name);
    if (names_.size() > kMaxColumns)
      reject(fmt::format("the table would have more than {} columns", kMaxColumns),
             "Export fewer files at a time, of one kind.");
    return found->second;
  }
  const std::vector<std::string>& names() const { return names_; }

 private:
  std::map<std::string, std::size_t> index_;
  std::vector<std::string> names_;
};

// Cells by column; missing ones are empty.
using Line = std::map<std::size_t, std::string>;

std::string cells(const Line& line, std::size_t columns) {
  std::string text;
  std::size_t column = 0;
  for (const auto& [at, cell] : line) {
    text.append(at - column, ',');
    column = at;
    text += cell;
  }
  text.append(columns - 1 - column, ',');
  return text;
}

std::string table(const Columns& columns, const std::vector<Line>& lines) {
  std::string text;
  for (std::size_t i = 0; i < columns.names().size(); ++i) text += (i == 0 ? "" : ",") + for_csv(columns.names()[i]);
  text += "\r\n";
  for (const Line& line : lines) text += cells(line, columns.names().size()) + "\r\n";
  return text;
}

void put_identity(const FigureRow& row, Columns& columns, Line& line) {
  line[columns.of("kind")] = for_csv(row.group);
  for (const auto& [name, value] : row.labels)
    if (!value.empty()) line[columns.of(name)] = for_csv(value);
}

// Labels come first: rows of different kinds have different labels, and figures should not come between them.
void name_labels(std::span<const FigureRow> rows, Columns& columns) {
  columns.of("kind");
  for (const FigureRow& row : rows)
    for (const auto& [name, value] : row.labels) columns.of(name);
}

}  // namespace

std::string results_csv(std::span<const FigureRow> rows) {
  Columns columns;
  name_labels(rows, columns);
  for (const char* name : {"status", "failure", "created", "weir_version", "weir_commit"}) columns.of(name);
  std::vector<Line> lines;
  for (const FigureRow& row : rows) {
    Line& line = lines.emplace_back();
    put_identity(row, columns, line);
    line[columns.of("status")] = for_csv(row.status);
    line[columns.of("failure")] = for_csv(row.failure);
    line[columns.of("created")] = for_csv(row.created);
    line[columns.of("weir_version")] = for_csv(row.version);
    line[columns.of("weir_commit")] = for_csv(row.commit);
    for (const Figure& figure : row.figures) line[columns.of(heading(figure))] = fmt::format("{}", figure.value);
  }
  return table(columns, lines);
}

std::string samples_csv(std::span<const FigureRow> rows) {
  Columns columns;
  name_labels(rows, columns);
  columns.of("point");
  const std::size_t before = columns.of("sample") + 1;
  const auto column_of = [&](const FigureSeries& series) {
    return columns.of(fmt::format("{}_{}", series.name, series.unit));
  };
  for (const FigureRow& row : rows)
    for (const FigureSeries& series : row.series) column_of(series);
  std::string text = table(columns, {});
  // There may be millions of lines, so the common part of a point's lines is built once.
  for (std::size_t r = 0; r < rows.size(); ++r) {
    Line identity;
    put_identity(rows[r], columns, identity);
    identity[columns.of("point")] = fmt::to_string(r);
    const std::string opening = cells(identity, before - 1);
    std::vector<const FigureSeries*> by_column(columns.names().size() - before, nullptr);
    std::size_t count = 0;
    for (const FigureSeries& series : rows[r].series) {
      by_column[column_of(series) - before] = &series;
      count = std::max(count, series.values.size());
    }
    for (std::size_t i = 0; i < count; ++i) {
      fmt::format_to(std::back_inserter(text), "{},{}", opening, i);
      for (const FigureSeries* series : by_column) {
        text += ',';
        if (series != nullptr && i < series->values.size())
          fmt::format_to(std::back_inserter(text), "{}", series->values[i]);
      }
      text += "\r\n";
    }
  }
  return text;
}

}  // namespace weir
