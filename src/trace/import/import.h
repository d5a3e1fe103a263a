// From file names to timelines: unpacks, walks archives, finds out the format, reads. Knows importers only by their
// list.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "measure/timeline.h"
#include "trace/timeline_builder.h"

namespace weir {

struct ImportOptions {
  std::string format;  // an importer's name; empty: found out
  TraceLimits limits;
  std::function<void()> progress;  // may be empty; may throw to stop
};

struct ImportedFile {
  std::string name;  // of an archive's member: archive.tar.gz/member
  std::string format;
  std::uint64_t bytes = 0;  // unpacked; of a SQLite file its size
};

struct ImportedTrace {
  std::vector<ImportedFile> files;
  Timeline timeline;
};

// One trace per capture: files that are parts of one (rocprofv3's CSV) come together, an archive's members are its
// processes. Rejects what is missing, empty or no trace, naming the formats that were tried.
std::vector<ImportedTrace> import_traces(const std::vector<std::filesystem::path>& paths, const ImportOptions& options);

// The same of memory, for tests and fuzzing.
ImportedTrace import_memory(std::string_view text, const std::string& name, const ImportOptions& options);

}  // namespace weir
