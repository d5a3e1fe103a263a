// A trace in a report: read by the importers, analysed as `weir analyze` does, drawn as a timeline. Knows no flag and
// writes no file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "report/page/page.h"

namespace weir::page {

struct TraceOptions {
  std::size_t max_spans = 2'000'000;                    // commands and host calls drawn from it
  std::uint64_t memory_bytes = std::uint64_t{4} << 30;  // for its timeline; larger ones are rejected
  std::string format;                                   // an importer's name; empty: detected
  std::vector<std::string> collectives;                 // patterns for kernels that communicate
  std::function<void()> progress;                       // may be empty; may throw to stop
};

// Whether the beginning of the file looks like a trace of any importer. Never throws; false where it cannot be opened.
bool is_trace(const std::filesystem::path& file);

// Registers the file as a source and adds its timeline, waterfalls, queue maps, overlap and findings. Rejects files
// that are not a trace. Returns the number of spans drawn, so that several traces can share one limit.
std::size_t add_trace(Page& page, const std::filesystem::path& file, const TraceOptions& options);

}  // namespace weir::page
