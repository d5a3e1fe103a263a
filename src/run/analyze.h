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

class Communicator;
struct Hop;
struct MemoryHeld;
struct ModelUse;
struct RankCollectives;
struct RankOfPhases;
struct RankPhases;

struct AnalyzeOptions {
  std::size_t top = 15;  // length of the lists of kernels and other names
  std::vector<std::string> command_line;
  // The part to analyse, counted from the first start (not negative); empty: all but the program's start-up, where that
  // is clear.
  std::optional<TimeInterval> window;
  std::optional<DevicePeaks> peaks;  // measured, and better than the table where they say something
};

inline constexpr TimeInterval kWholeTrace{INT64_MIN, INT64_MAX};  // as AnalyzeOptions::window

// The traces that one process of a job has read.
struct TraceShare {
  std::size_t total = 0;             // traces of all processes
  std::vector<std::size_t> numbers;  // of these among all, from 0
  std::vector<ImportedTrace> traces;
  bool keeps_traces = false;  // for the caller, aligned; otherwise they are given up as soon as they are not needed
};

// The document, on rank 0; null elsewhere. All ranks call it with the same options. Timelines stay where they are; the
// document does not depend on how the traces are shared among the ranks. Several processes with commands are ranks:
// their clocks are aligned first, which shifts times.
Json analyze_traces(Communicator& ranks, TraceShare& share, const AnalyzeOptions& options);

// The same for one timeline, which it aligns, and nobody else.
Json analyze_timeline(Timeline& timeline, const std::vector<ImportedFile>& files, const AnalyzeOptions& options);

// The window (as AnalyzeOptions::window) as times of the timeline; empty where it is all of it.
std::optional<TimeInterval> window_in(const Timeline& timeline, const std::optional<TimeInterval>& window);

// The same where the first start is known, and from where on the timeline is steady.
std::optional<TimeInterval> window_from(std::int64_t origin_ns, const std::optional<TimeInterval>& window,
                                        std::optional<std::int64_t> steady_ns);

// The part of the timeline that this document of it is about.
Timeline analysed_part(const Timeline& timeline, const Json& document);

// The part of the document about one device. Its times count from `origin_ns`; `arrivals` are those of the other ranks,
// indexed by the spans of the device's slice.
Json analyze_device(const Timeline& whole, std::uint16_t device, std::int64_t origin_ns,
                    std::span<const LastArrival> arrivals, const AnalyzeOptions& options);

// What is known of the phases of ranks before their commands are looked at. `devices` are those of the document,
// `numbers` theirs in the timeline.
std::vector<RankOfPhases> ranks_of_phases(const Json& devices, const std::vector<std::uint16_t>& numbers,
                                          const RankCollectives& collectives);
// `names` are those of the commands in `found`.
Json rank_phases_json(const RankPhases& found, const Timeline& timeline, const std::vector<std::string>& names);
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
