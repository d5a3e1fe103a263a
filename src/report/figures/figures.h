// What a result document says in numbers: one row per measured point, with what identifies it, its figures in base
// units, and its samples. What OpenMetrics and CSV are made of. Knows the documents' fields; judges nothing.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/json.h"

namespace weir {

// One number. `name` and `unit` are ours and fixed; what comes from a file is in labels: {"quantile", "0.5"}.
struct Figure {
  std::string name;  // "latency"
  std::string unit;  // "seconds", "bytes", "joules", "ratio", ...; empty for counts
  const char* help;
  std::vector<std::pair<std::string, std::string>> labels;
  double value = 0;  // finite
};

// Samples by iteration; lists of a row may differ in length.
struct FigureSeries {
  std::string name, unit;
  std::vector<double> values;
};

struct FigureRow {
  std::string group;                                        // "run", "bench", "overlap", "preempt", "channel"
  std::vector<std::pair<std::string, std::string>> labels;  // what it was; the same names for all rows of a group
  std::string status;                                       // of the run: complete, failed, skipped, ...
  std::string failure;                                      // why there is nothing better; empty where all is well
  bool is_failed = false;
  std::string created;  // 2026-01-31T12:00:00Z; empty where the document does not say
  std::string version, commit;
  std::vector<Figure> figures;  // what is not known is not there
  std::vector<FigureSeries> series;
};

// Whether `figures_of` reads documents of this schema.
bool has_figures(const Json& document);

// Rows of a weir.result/1, weir.sweep/1, weir.bench/1, weir.overlap/1, weir.preempt/1 or weir.channel/1. Rejects
// anything else by `name`, and a document that lacks what identifies its points. Values of other types than they should
// have are passed over.
std::vector<FigureRow> figures_of(const Json& document, const std::string& name);

// Seconds since 1970 of "2026-01-31T12:00:00Z"; nothing where it is no such time.
std::optional<double> unix_seconds(const std::string& created);

// OpenMetrics 1.0 text, for Prometheus.
// Gauges only, in base units, without timestamps: node_exporter's textfile collector refuses those, so when a result
// was made is a gauge of its own. Rows with equal labels (repeated runs) are told apart by the label `repeat`.
std::string results_openmetrics(std::span<const FigureRow> rows);

// Tables for spreadsheets (RFC 4180).
// One line per point. Headings name the unit: latency_p50_seconds. What is not known is an empty cell. Rejects more
// than 1,000 columns.
std::string results_csv(std::span<const FigureRow> rows);

// One line per sample: what the point was, the sample's number from 0, and a column for each series.
std::string samples_csv(std::span<const FigureRow> rows);

// A text as a cell: quoted where it must be. Spreadsheets run what begins with = + - @, so an apostrophe comes before
// it, unless it is a number.
std::string csv_cell(std::string_view text);

}  // namespace weir
