// The numbers in a result document: one row per measured point, with its identity, its figures in base units, and its
// samples. OpenMetrics and CSV are made from these. Knows the documents' fields; judges nothing.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/json.h"

namespace weir {

// One number. `name` and `unit` are Weir's own and fixed; values from a file are in labels: {"quantile", "0.5"}.
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
  std::string group;  // "run", "bench", "overlap", "preempt", "channel", "fleet", ...
  std::vector<std::pair<std::string, std::string>> labels;  // identify the row; the same names for all rows of a group
  std::string status;                                       // of the run: complete, failed, skipped, ...
  std::string failure;                                      // why figures are missing; empty on success
  bool is_failed = false;
  std::string created;  // 2026-01-31T12:00:00Z; empty where the document has no date
  std::string version, commit;
  std::vector<Figure> figures;  // unknown values are left out
  std::vector<FigureSeries> series;
};

// Whether `figures_of` reads documents of this schema.
bool has_figures(const Json& document);

// Rows of a document of WEIR_FIGURES (figures_row.h). Rejects anything else by `name`, and a document that lacks the
// identity of its points. Values of the wrong type are skipped.
std::vector<FigureRow> figures_of(const Json& document, const std::string& name);

// Seconds since 1970 for "2026-01-31T12:00:00Z"; empty where it is not such a time.
std::optional<double> unix_seconds(const std::string& created);

// OpenMetrics 1.0 text, for Prometheus.
// Gauges only, in base units, without timestamps: node_exporter's textfile collector refuses those, so the creation
// time of a result is a separate gauge. Rows with equal labels (repeated runs) are distinguished by the label `repeat`.
std::string results_openmetrics(std::span<const FigureRow> rows);

// Tables for spreadsheets (RFC 4180).
// One line per point. Headings include the unit: latency_p50_seconds. Unknown values are empty cells. Rejects more than
// 1,000 columns.
std::string results_csv(std::span<const FigureRow> rows);

// One line per sample: the point's labels, the sample's number from 0, and a column for each series.
std::string samples_csv(std::span<const FigureRow> rows);

}  // namespace weir
