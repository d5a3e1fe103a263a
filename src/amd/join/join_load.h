// Reads the parts of a capture for the join: a folder with its manifest, or individually named files. Reports a missing
// or broken part with its reason, and reads the rest. Knows files; matches nothing.
#pragma once

#include <atomic>
#include <deque>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "amd/join/join.h"
#include "amd/join/join_document.h"

namespace weir::amd {

struct SnapshotFolder {
  std::string when;
  std::filesystem::path folder;
  std::int64_t taken_ns = INT64_MIN;
};

struct CaptureFiles {
  std::filesystem::path folder;  // of the capture; empty if files were named individually
  std::vector<std::string> command;
  std::vector<std::filesystem::path> logs, traces;
  std::vector<SnapshotFolder> snapshots;
  std::string trace_clock;
  std::vector<CapturedProcess> processes;
  std::vector<std::pair<int, int>> given;
  std::vector<JoinPart> missing;  // parts that are absent according to the manifest
};

// The files that the manifest of `folder` names. Rejects a folder without a manifest, with advice.
CaptureFiles files_of_capture(const std::filesystem::path& folder);

struct LoadedCapture {
  JoinInput input;  // points into `summaries`
  std::deque<LogSummary> summaries;
  std::vector<std::size_t> first_logged;            // for each log that was read, its first index in input.logged
  std::vector<std::filesystem::path> logs, traces;  // that were read
  JoinAbout about;
};

// Rejects a capture of which nothing could be read, naming every part. `stop`: ends it early; may be null.
LoadedCapture load_capture(const CaptureFiles& files, const std::atomic<bool>* stop);

}  // namespace weir::amd
