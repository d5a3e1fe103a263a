#include "cli/trace_flags.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>

#include "base/error.h"
#include "cli/flag_values.h"
#include "cli/process.h"
#include "report/text/documents.h"
#include "run/analyze.h"
#include "run/trace_compare.h"
#include "trace/import/list.h"

namespace weir::cli {
namespace {

std::string format_help() {
  std::string names;
  for (const Importer& importer : importers()) names += (names.empty() ? "" : ", ") + std::string(importer.name);
  return "format of traces, if their beginning does not show it: " + names;
}

std::uint64_t memory_of(const std::string& text) {
  if (!text.empty()) return size_of("--memory", text, 1 << 20, std::uint64_t{1} << 50);
  // Half of the machine's memory: the analyses need about as much again as the timeline.
  const auto pages = static_cast<std::uint64_t>(std::max(0L, ::sysconf(_SC_PHYS_PAGES)));
  const auto size = static_cast<std::uint64_t>(std::max(0L, ::sysconf(_SC_PAGE_SIZE)));
  return std::max(pages * size / 2, std::uint64_t{256} << 20);
}

}  // namespace

void TraceFlags::add_to(CommandSyntax syntax) {
  syntax.add("--input-format NAME", input_format, format_help());
  syntax.add("--collective PATTERN", collectives,
             "kernels of traces whose name has this in it communicate; * stands for any text, repeatable");
  syntax.add("--window PART", window, kWindowHelp);
  syntax.add("--memory SIZE", memory, "most memory of a process for timelines, e.g. 4G (default: half of the machine's)");
}

ImportOptions TraceFlags::import_options() const {
  ImportOptions import;
  import.format = input_format;
  import.has_operations = has_operations;
  import.collectives = patterns_of("--collective", collectives);
  import.limits.memory_bytes = memory_of(memory);
  import.progress = [&stop = catch_interrupts()] {
    if (stop.load(std::memory_order_relaxed)) throw Interrupted{};
  };
  return import;
}

std::optional<TimeInterval> window_named(const std::string& text) {
  if (text == "steady") return std::nullopt;
  if (text == "all") return kWholeTrace;
  constexpr std::int64_t kWeek = std::int64_t{7} * 24 * 3600 * 1'000'000'000;
  const std::size_t dots = text.find("..");
  if (dots == std::string::npos)
    reject(fmt::format("--window {}: not a part of a trace", text), "Write 1.5s..3s, steady or all.");
  const std::string begin = text.substr(0, dots), end = text.substr(dots + 2);
  const TimeInterval part{begin.empty() || begin == "0" ? 0 : duration_of("--window", begin, 0, kWeek),
                          end.empty() ? kWeek : duration_of("--window", end, 0, kWeek)};
  if (part.from_ns >= part.to_ns) reject(fmt::format("--window {}: it ends before it begins", text), "Write 1.5s..3s.");
  return part;
}

std::string title_of(const std::vector<ImportedFile>& files) {
  return files.size() == 1 ? files[0].name : fmt::format("{} and {} more", files[0].name, files.size() - 1);
}

int print_trace_comparison(const ImportedTrace& baseline, const ImportedTrace& test,
                           const std::optional<TimeInterval>& window, const CompareOptions& options, bool is_strict,
                           const DocumentOutput& output) {
  const TraceComparison comparison =
      compare_traces(baseline.timeline, title_of(baseline.files), test.timeline, title_of(test.files), options, window);
  const Json document = trace_comparison_json(comparison, is_strict);
  output.print(
      document, [&] { return trace_comparison_text(document); }, [&] { return trace_comparison_markdown(document); });
  return exit_code(comparison, is_strict);
}

}  // namespace weir::cli
