// Turns file names into timelines: decompresses, walks archives, detects the format, reads. Knows importers only
// through their list.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "measure/timeline.h"
#include "trace/timeline_builder.h"

namespace weir {

struct ImportOptions {
  std::string format;  // an importer's name; empty: detected
  TraceLimits limits;
  std::vector<std::string>
      collectives;                 // patterns for kernels that communicate, besides the known names (trace/kinds.h)
  bool has_operations = false;     // read operators of frameworks too, where the format has them
  std::function<void()> progress;  // may be empty; may throw to stop
};

struct ImportedFile {
  std::string name;  // for an archive's member: archive.tar.gz/member
  std::string format;
  std::uint64_t bytes = 0;  // decompressed; for a SQLite file its size
};

struct ImportedTrace {
  std::vector<ImportedFile> files;
  Timeline timeline;
};

// Whether a file that begins like this (kSniffBytes, unpacked) is a trace or an archive, which may hold some.
bool looks_like_trace(std::string_view start);

// Returns one trace per capture: files that are parts of one (rocprofv3's CSV) are combined, and an archive's members
// are its processes. Rejects files that are missing, empty or not a trace, and names the formats that were tried.
std::vector<ImportedTrace> import_traces(const std::vector<std::filesystem::path>& paths, const ImportOptions& options);

// Files that are one capture, in the order given.
struct CaptureFiles {
  std::vector<std::filesystem::path> paths;
  std::uint64_t bytes = 0;  // as they lie on disk
};

// What import_traces() makes one trace each of, in its order; it reads only the beginnings. Rejects files that are
// missing.
std::vector<CaptureFiles> captures_of(const std::vector<std::filesystem::path>& paths, const ImportOptions& options);

// One trace from memory, for tests and fuzzing.
ImportedTrace import_memory(std::string_view text, const std::string& name, const ImportOptions& options);

}  // namespace weir
