#include "cli/export_flags.h"

#include <iterator>

#include "report/figures/figures.h"

namespace weir::cli {

void ExportFlags::add_to(CommandSyntax syntax) {
  syntax.add("--openmetrics PATH", openmetrics, "write the figures for Prometheus to this file");
  syntax.add("--csv PATH", csv, "write the figures as a table for spreadsheets to this file");
}

void ExportFlags::check(bool is_forced) const {
  for (const std::string* path : {&openmetrics, &csv})
    if (!path->empty()) check_writable(*path, is_forced);
}

void ExportFlags::write(std::span<const Json> documents, bool is_forced) const {
  if (!is_asked()) return;
  std::vector<FigureRow> rows;
  for (const Json& document : documents) {
    std::vector<FigureRow> more = figures_of(document, "the result");
    rows.insert(rows.end(), std::make_move_iterator(more.begin()), std::make_move_iterator(more.end()));
  }
  if (!openmetrics.empty()) write_file(openmetrics, results_openmetrics(rows), is_forced);
  if (!csv.empty()) write_file(csv, results_csv(rows), is_forced);
}

}  // namespace weir::cli
