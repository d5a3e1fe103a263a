// Traces in a report: read by the importers, put together where they are ranks of one job, analysed as `weir analyze`
// does, drawn as one timeline. Knows no flag and writes no file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "measure/timeline.h"
#include "report/page/page.h"
#include "trace/import/import.h"
#include "trace/intervals.h"

namespace weir::page {

struct TraceOptions {
  std::size_t max_spans = 2'000'000;                    // commands and host calls drawn from it
  std::uint64_t memory_bytes = std::uint64_t{4} << 30;  // for its timeline; larger ones are rejected
  std::string format;                                   // an importer's name; empty: detected
  std::vector<std::string> collectives;                 // patterns for kernels that communicate
  std::optional<TimeInterval> window;                   // as in AnalyzeOptions
  std::function<void()> progress;                       // may be empty; may throw to stop
};

// Whether the beginning of the file looks like a trace of any importer. Never throws; false where it cannot be opened.
bool is_trace(const std::filesystem::path& file);

// The traces of one job: one file for each rank, or one file for all.
struct TraceJob {
  std::vector<std::filesystem::path> paths;
  std::vector<ImportedFile> files;
  std::vector<Timeline> parts;
  std::set<int> ranks;

  // False, and nothing changes, where the trace has a rank that the job has already: it is another run. The rule is
  // that of `weir analyze` for two files.
  bool join(const std::filesystem::path& path, ImportedTrace& trace);
  std::string name() const;  // "rank0.json", "rank0.json and 7 more ranks"
};

// Rejects files that are not a trace.
ImportedTrace read_trace(const std::filesystem::path& file, const TraceOptions& options);

// A job as one timeline, to compare others with.
struct BaselineTrace {
  std::string name;
  Timeline timeline;
};
BaselineTrace baseline_trace(TraceJob job);

// Registers the files as sources and adds their timeline, waterfalls, queue maps, overlap and findings; first of all
// the comparison with the baseline, unless that is null. Returns the number of spans drawn, so that several jobs can
// share one limit.
std::size_t add_trace(Page& page, TraceJob job, const BaselineTrace* baseline, const TraceOptions& options);

}  // namespace weir::page
