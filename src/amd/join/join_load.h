// Reads the parts of a capture for the join: a folder with its manifest, or files that are named one by one. A part
// that is missing or broken is named with its reason, and the rest is read. Knows files; matches nothing.
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
  std::filesystem::path folder;  // of the capture; empty where files were named one by one
  std::vector<std::string> command;
  std::vector<std::filesystem::path> logs, traces;
  std::vector<SnapshotFolder> snapshots;
  std::string trace_clock;
  std::vector<CapturedProcess> processes;
  std::vector<std::pair<int, int>> given;
  std::vector<JoinPart> missing;  // what the manifest says is not there
};

// What the manifest of `folder` names. Rejects a folder without one, and says how to go on.
CaptureFiles files_of_capture(const std::filesystem::path& folder);

struct LoadedCapture {
  JoinInput input;  // looks into `summaries`
  std::deque<LogSummary> summaries;
  std::vector<std::size_t> first_logged;            // of each log that was read: its first place in input.logged
  std::vector<std::filesystem::path> logs, traces;  // that were read
  JoinAbout about;
};

// Rejects where nothing at all could be read, naming every part. `stop`: ends it early; may be null.
LoadedCapture load_capture(const CaptureFiles& files, const std::atomic<bool>* stop);

}  // namespace weir::amd
