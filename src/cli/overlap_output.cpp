#include "cli/overlap_output.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>

#include "base/error.h"
#include "cli/default_output.h"
#include "report/text/documents.h"
#include "report/text/svg.h"
#include "trace/analyse/slice.h"
#include "trace/export/chrome_json.h"
#include "trace/merge.h"
#include "weir_build.h"

namespace weir::cli {
namespace {

namespace fs = std::filesystem;

// A step from the middle: the first ones may still be warming up, and a picture of all of them shows none.
std::uint32_t middle_iteration(const Timeline& timeline) {
  std::vector<std::uint32_t> iterations;
  for (const Span& span : timeline.spans) iterations.push_back(span.iteration);
  if (iterations.empty()) return 0;
  std::nth_element(iterations.begin(), iterations.begin() + static_cast<std::ptrdiff_t>(iterations.size() / 2),
                   iterations.end());
  return iterations[iterations.size() / 2];
}

std::string lines_text(const std::vector<Json>& lines) {
  std::string text;
  for (const Json& line : lines) text += line.dump() + "\n";
  return text;
}

}  // namespace

fs::path overlap_folder(const std::string& asked, const std::string& name, bool overwrites) {
  std::error_code ignored;
  if (asked.empty()) return default_output("results/overlap-" + name, "", earlier_output(overwrites));
  if (fs::exists(asked, ignored) && !fs::is_directory(asked, ignored))
    reject(fmt::format("-o {}: is no folder", asked), "`weir overlap` writes several files: name a folder.");
  if (!overwrites && fs::is_directory(asked, ignored) && !fs::is_empty(asked, ignored))
    reject(fmt::format("-o {}: the folder is not empty", asked), "Choose another, or use --force.");
  // It is made when there is something to put into it; that it can be is better known before the run.
  fs::path above = fs::absolute(asked, ignored);
  while (!fs::exists(above, ignored) && above.has_relative_path()) above = above.parent_path();
  if (!fs::is_directory(above, ignored) || ::access(above.c_str(), W_OK) != 0)
    reject(fmt::format("-o {}: cannot write into {}", asked, above.string()), "Choose another folder.");
  return asked;
}

std::vector<std::string> write_overlap(const fs::path& folder, const OverlapRun& run, bool overwrites) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) fail(fmt::format("{}: cannot make the folder: {}", folder.string(), error.message()));
  std::vector<std::string> written;
  const auto write = [&](const std::string& name, const std::string& text) {
    write_file(folder / name, text, overwrites);
    written.push_back(name);
  };
  for (std::size_t rank = 0; rank < run.iterations.size(); ++rank)
    write(fmt::format("rank_{:02}.jsonl", rank), lines_text(run.iterations[rank]));
  write("summary.json", to_text(run.summary));
  write("report.md", report_markdown(overlap_report(run.summary)));
  const bool has_timelines =
      !run.timelines.empty() && std::none_of(run.timelines.begin(), run.timelines.end(),
                                             [](const Timeline& timeline) { return timeline.spans.empty(); });
  if (!has_timelines) return written;
  for (std::size_t rank = 0; rank < run.timelines.size(); ++rank) {
    SvgOptions options;
    const std::uint32_t iteration = middle_iteration(run.timelines[rank]);
    options.title = fmt::format("{}: rank {}, step {}", run.summary["name"].get<std::string>(), rank, iteration);
    write(fmt::format("rank_{:02}.svg", rank), timeline_svg(only_iteration(run.timelines[rank], iteration), options));
  }
  ChromeExport options;
  options.process = std::nullopt;
  options.world_size = static_cast<int>(run.timelines.size());
  options.about = {{"version", WEIR_VERSION}};
  for (const char* key : {"created", "command_line", "name", "config", "parameters"})
    options.about[key] = run.summary[key];
  Timeline all = merge(run.timelines);
  for (TraceProcess& process : all.processes) process.clock = 0;  // rank 0's: a reader need not align them again
  write_chrome_json(all, options, folder / "trace.json", overwrites);
  written.emplace_back("trace.json");
  return written;
}

}  // namespace weir::cli
