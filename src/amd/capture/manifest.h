// The manifest of a capture folder (`weir amd capture`): what was run, what was captured, what was not and why. Written
// by the capture, read by the join. Knows names of files, not their contents.
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

// One part of a capture: "log", "ftrace", "hqds", "mqds", "rls", "sysfs", "dmesg", "smi".
struct CapturePart {
  std::string name;
  std::vector<std::string> files;  // relative to the folder; empty if there are none
  std::string reason, hint;        // why it is missing or incomplete, and advice
};

// What ran already when the capture began: a process, or a container.
struct CaptureTarget {
  std::optional<int> pid;               // our number of it
  std::string container, container_id;  // as asked for, and its id; empty for a process
  std::string runtime;                  // docker, podman, ...; empty where it is not known
};

// A process of the captured program, with its pids in all namespaces, the host's first.
struct CapturedProcess {
  std::vector<int> pids;  // as in NSpid
  std::string name;
};

struct CaptureSnapshot {
  std::string when;           // "before", "during-01", "after"
  std::string folder;         // relative; in the form for kfd::load_snapshot
  std::int64_t taken_ns = 0;  // CLOCK_MONOTONIC
};

// Queues that the driver took off the hardware and put back meanwhile, of all processes.
struct QueueEventCounts {
  std::uint64_t evictions = 0, restores = 0;
  std::optional<std::int64_t> longest_eviction_ns;  // that was seen to end
};

struct CaptureManifest {
  std::vector<std::string> command;
  std::optional<CaptureTarget> target;        // nothing: Weir started the command
  std::string started_at, weir;               // wall time; version and commit
  std::int64_t started_ns = 0, ended_ns = 0;  // CLOCK_MONOTONIC
  std::optional<int> exit_code;               // or 128 + signal; nothing if it never ran, or ran already
  std::string kernel_release;                 // uname -r
  std::string trace_clock;                    // as tracefs reported after it was set; empty without ftrace
  std::vector<std::pair<std::string, std::string>> environment;  // variables set for the program
  std::vector<CapturedProcess> processes;
  std::vector<CapturePart> parts;
  std::vector<CaptureSnapshot> snapshots;
  std::optional<QueueEventCounts> queue_events;  // nothing: the driver did not report them
};

inline constexpr const char* kManifestFile = "manifest.json";

// `weir.amd_capture/1`.
Json to_json(const CaptureManifest& manifest);
// Parses text that came from `name`. Rejects an invalid manifest by key, and paths that leave the folder by their text.
CaptureManifest parse_manifest(std::string_view text, const std::string& name);
// Reads FOLDER/manifest.json. Rejects an invalid one by file and key; neither paths in it nor links on them may leave
// the folder.
CaptureManifest load_manifest(const std::filesystem::path& folder);

}  // namespace weir::amd
