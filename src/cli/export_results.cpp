// weir export: figures of result documents as OpenMetrics or CSV.
#include <fmt/format.h>

#include <filesystem>
#include <iterator>

#include "base/console.h"
#include "base/error.h"
#include "cli/document_output.h"
#include "cli/list.h"
#include "report/figures/figures.h"

namespace weir::cli {
namespace {

namespace fs = std::filesystem;

constexpr const char* kHint =
    "Name files or folders that `weir run`, sweep, bench, overlap, preempt, channel or fleet wrote.";

struct ExportResultsFlags {
  std::vector<std::string> paths;
  std::string format = "openmetrics", output;
  bool has_samples = false, is_forced = false, is_quiet = false;

  void add_to(CommandSyntax syntax) {
    syntax.add("paths PATH", paths, "results: files, or folders of them (-: standard input)").required();
    syntax.add("--format NAME", format, "how to write them").one_of({"openmetrics", "csv"});
    syntax.add("--samples", has_samples, "with csv: one line per sample instead of one per point");
    syntax.add("--output,-o PATH", output, "write to this file (default: standard output)");
    syntax.add("--force,-f", is_forced, "replace the file if it exists");
    syntax.add("--quiet,-q", is_quiet, "print nothing but errors");
  }
};

void append(std::vector<FigureRow>& rows, const Json& document, const std::string& name) {
  std::vector<FigureRow> more = figures_of(document, name);
  rows.insert(rows.end(), std::make_move_iterator(more.begin()), std::make_move_iterator(more.end()));
}

// The folder's *.json files. Files other than results are skipped, because reports and settings are stored next to
// them.
void append_folder(std::vector<FigureRow>& rows, const fs::path& folder, bool is_quiet) {
  const FilesInFolder found = files_in(folder, ".json");
  const auto skip = [&](const fs::path& file, const char* why) {
    if (!is_quiet) print_err("weir: {} was skipped: {}\n", file.string(), why);
  };
  for (const fs::path& other : found.skipped) skip(other, "it is not a regular file");
  bool has_any = false;
  for (const fs::path& file : found.files) {
    const Json document = read_json(file);
    if (has_figures(document)) {
      append(rows, document, file.string());
      has_any = true;
    } else {
      skip(file, "it holds no result");
    }
  }
  if (!has_any)
    reject(fmt::format("{}: the folder holds no results ({} .json file{})", folder.string(), found.files.size(),
                       found.files.size() == 1 ? "" : "s"),
           kHint);
}

int execute_export_results(const ExportResultsFlags& flags) {
  if (flags.has_samples && flags.format != "csv")
    reject("--samples: only --format csv has samples", "OpenMetrics is for figures: Prometheus takes samples itself.");
  if (!flags.output.empty() && flags.output != "-") check_writable(flags.output, flags.is_forced);
  std::vector<FigureRow> rows;
  for (const std::string& path : flags.paths) {
    std::error_code ignored;
    if (path == "-") {
      append(rows, read_json(input_path(path)), "standard input");
    } else if (fs::is_directory(path, ignored)) {
      append_folder(rows, path, flags.is_quiet);
    } else {
      append(rows, read_json(path), path);
    }
  }
  if (rows.empty()) reject(fmt::format("{}: holds no points", flags.paths.front()), "Did the run finish a single one?");
  const std::string text = flags.format == "openmetrics" ? results_openmetrics(rows)
                           : flags.has_samples           ? samples_csv(rows)
                                                         : results_csv(rows);
  if (flags.output.empty() || flags.output == "-") {
    write_out(text);
    return 0;
  }
  write_file(flags.output, text, flags.is_forced);
  if (!flags.is_quiet) print_out("{} point{} written to {}\n", rows.size(), rows.size() == 1 ? "" : "s", flags.output);
  return 0;
}

}  // namespace

CliCommand export_results() {
  return command("export", "write results for Prometheus (OpenMetrics) or spreadsheets (CSV)", execute_export_results);
}

}  // namespace weir::cli
