// Results as tables for spreadsheets (RFC 4180). Knows rows of figures; writes no file.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "report/figures/figures.h"

namespace weir {

// One line per point. Headings name the unit: latency_p50_seconds. What is not known is an empty cell. Rejects more
// than 1,000 columns.
std::string results_csv(std::span<const FigureRow> rows);

// One line per sample: what the point was, the sample's number from 0, and a column for each series.
std::string samples_csv(std::span<const FigureRow> rows);

// A text as a cell: quoted where it must be. Spreadsheets run what begins with = + - @, so an apostrophe comes before
// it, unless it is a number.
std::string csv_cell(std::string_view text);

}  // namespace weir
