// All results of the analyses of a timeline, as one document (weir.analysis/2; docs/schema/weir.analysis.2.json). Reads
// no file and prints nothing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/json.h"
#include "measure/timeline.h"
#include "trace/analyse/exposed_causes.h"
#include "trace/analyse/peaks.h"
#include "trace/import/import.h"
#include "trace/intervals.h"

namespace weir {

struct Hop;
struct MemoryHeld;
struct ModelUse;
struct RankCollectives;

struct AnalyzeOptions {
  std::size_t top = 15;  // length of the lists of kernels and other names
  std::vector<std::string> command_line;
  // The part to analyse, counted from the first start (not negative); empty: all but the program's start-up, where that
  // is clear.
  std::optional<TimeInterval> window;
  std::optional<DevicePeaks> peaks;  // measured, and better than the table where they say something
};

inline constexpr TimeInterval kWholeTrace{INT64_MIN, INT64_MAX};  // as AnalyzeOptions::window

// Several processes with commands are ranks: their clocks are aligned first, which may shift times in `timeline`.
Json analyze_timeline(Timeline& timeline, const std::vector<ImportedFile>& files, const AnalyzeOptions& options);

// The window (as AnalyzeOptions::window) as times of the timeline; empty where it is all of it.
std::optional<TimeInterval> window_in(const Timeline& timeline, const std::optional<TimeInterval>& window);

// The part of the timeline that this document of it is about.
Timeline analysed_part(const Timeline& timeline, const Json& document);

// The part of the document about one device. Its times count from `origin_ns`; `arrivals` are those of the other ranks,
// indexed by the spans of the device's slice.
Json analyze_device(const Timeline& whole, std::uint16_t device, std::int64_t origin_ns,
                    std::span<const LastArrival> arrivals, const AnalyzeOptions& options);

// Phases of several ranks. `devices` are those of the document, `numbers` theirs in the timeline.
Json rank_phases_json(const Timeline& timeline, const Json& devices, const std::vector<std::uint16_t>& numbers,
                      const RankCollectives& collectives);
// What a device worked for, of which there is some; `top` is the length of lists.
Json model_json(const ModelUse& found, const std::vector<std::string>& names, std::size_t top);
// The memory of a device; `steps` are those of memory_held().
Json memory_json(const MemoryHeld& found, const Timeline& whole, std::span<const TraceRange> steps,
                 std::int64_t origin_ns);
// Operators of a device's slice against its peaks; null with the reason.
Json efficiency_json(const Timeline& part, const Timeline& whole, const TraceDevice& device,
                     const AnalyzeOptions& options, std::string& reason);

// The peaks of a GPU from the summary of `weir bench`; rejects documents without.
DevicePeaks peaks_measured(const Json& summary, const std::string& file);

// The duration of a hop: {"mean", "p50", "p95", "p99"}, null where no command has it.
Json hop_duration_json(const Hop& hop);

// The hops of a command's way, per class of commands, as in the document.
Json waterfall_json(const Timeline& timeline);

}  // namespace weir
