// The manifest of a capture folder (`weir amd capture`): what was run, what was captured, what could not be and why.
// Written by the capture, read by the join. Knows names of files; never what is in them.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/json.h"

namespace weir::amd {

// One part of a capture: "log", "ftrace", "hqds", "mqds", "rls", "sysfs", "dmesg".
struct CapturePart {
  std::string name;
  std::vector<std::string> files;  // relative to the folder; empty where there is none
  std::string reason, hint;        // why it is missing, or less than asked for, and what would help
};

// A process of the captured program: the same one by its numbers in all namespaces, the host's first.
struct CapturedProcess {
  std::vector<int> pids;  // as NSpid has them
  std::string name;
};

struct CaptureSnapshot {
  std::string when;           // "before", "during-01", "after"
  std::string folder;         // relative; as kfd::load_snapshot wants it
  std::int64_t taken_ns = 0;  // CLOCK_MONOTONIC
};

struct CaptureManifest {
  std::vector<std::string> command;
  std::string started_at, weir;               // wall time; version and commit
  std::int64_t started_ns = 0, ended_ns = 0;  // CLOCK_MONOTONIC
  std::optional<int> exit_code;               // or 128 + signal; nothing where it never ran
  std::string kernel_release;                 // uname -r
  std::string trace_clock;                    // as tracefs said after it was set; empty without ftrace
  std::vector<std::pair<std::string, std::string>> environment;  // what was set for the program
  std::vector<CapturedProcess> processes;
  std::vector<CapturePart> parts;
  std::vector<CaptureSnapshot> snapshots;
};

inline constexpr const char* kCaptureSchema = "weir.amd_capture/1";
inline constexpr const char* kManifestFile = "manifest.json";

// `weir.amd_capture/1`.
Json to_json(const CaptureManifest& manifest);
// Text that came from `name`. Rejects what is no manifest, by key, and paths that leave the folder by their words.
CaptureManifest parse_manifest(std::string_view text, const std::string& name);
// Reads FOLDER/manifest.json. Rejects what is not one, by file and key; paths in it may not leave the
// folder, nor links that they lead over.
CaptureManifest load_manifest(const std::filesystem::path& folder);

}  // namespace weir::amd
