// The queue roadmap, judged: two captures, what they show of each target, and which points of the roadmap's checklist
// that ticks off. What a capture cannot show is said with its reason, and is never taken for a target that was met.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "amd/capture/manifest.h"
#include "amd/compare/case_load.h"
#include "amd/ftrace/summary.h"

namespace weir::amd {

// The roadmap's figures.
inline constexpr double kMostCreateNs = 1e6;  // KFD's part of creating a queue
inline constexpr double kMostMqdCalls = 2;    // allocations of an MQD per queue
inline constexpr double kBacklogLimit = 100;  // packets; below it the backlog is light

struct RoadmapTrace {
  ftrace::KfdSummary summary;
  ftrace::FtraceCounters counters;
};

// One case: a folder of `weir amd capture`, or anything that load_case() takes.
struct RoadmapCase {
  std::string name;
  std::optional<CaptureManifest> manifest;  // of a folder
  std::optional<CaseSide> side;
  std::string side_reason;              // why there is none
  std::unique_ptr<RoadmapTrace> trace;  // null: no kernel trace
  std::string trace_reason;
  std::size_t hqd_snapshots = 0, active_queues = 0;  // while it ran; the most queues that were active at once
  std::vector<double> snapshot_backlog;              // packets, of each queue in each snapshot
  std::string hqds_reason;
};

// The timeline that stands in for a log in a folder where no ROCm runtime wrote one.
inline constexpr const char* kProfileFile = "profile.json";

// Rejects a path that is no case at all; parts that are missing leave their reasons.
RoadmapCase load_roadmap_case(const std::filesystem::path& path, const CaseLoadOptions& options = {});

enum class TargetOutcome : std::uint8_t { met, missed, cannot_say };
std::string_view name_of(TargetOutcome outcome);

struct RoadmapTarget {
  std::string_view side, name, limit, unit;  // "a", "queue_creation", "< 1 ms", "ns"
  std::optional<double> p50, p99, largest;   // of what was measured
  TargetOutcome outcome = TargetOutcome::cannot_say;
  std::string because;  // what it rests on, or why nothing can be said
};

enum class CheckState : std::uint8_t { done, not_seen, cannot_be_seen };
std::string_view name_of(CheckState state);

struct RoadmapCheck {
  std::string_view phase, item;  // "1", "the kernel trace was recorded"
  CheckState state = CheckState::cannot_be_seen;
  std::string because;
};

std::vector<RoadmapTarget> judge_targets(const RoadmapCase& a, const RoadmapCase& b);
std::vector<RoadmapCheck> tick_checklist(const RoadmapCase& a, const RoadmapCase& b);

// weir.amd_roadmap/1.
Json roadmap_document(const RoadmapCase& a, const RoadmapCase& b);

}  // namespace weir::amd
