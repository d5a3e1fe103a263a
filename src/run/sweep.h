// Runs a workload over stream counts, submit modes and parts of the device, saving each point as it ends; a killed
// sweep can be resumed.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "run/runner.h"

namespace weir {

inline constexpr const char* kSweepSchema = "weir.sweep/1";

struct SweepRequest {
  RunRequest run;  // streams and submit are taken from the lists below
  std::vector<int> streams;
  std::vector<std::string> submits;
  std::vector<int> compute_units = {0};  // that each stream is confined to; 0: none is
  std::filesystem::path output;
  bool resumes = false;  // keep the complete points that the file has, and run the others
  bool overwrites = false;
};

struct SweepControl {
  RunControl run;
  // Opens the device again with this many compute units for each stream; needed where a sweep has several. What it
  // returned before is gone then.
  std::function<Device&(int compute_units)> reopen;
  // Called before each point; `index` counts from 0.
  std::function<void(int streams, const std::string& way, std::size_t index, std::size_t total)> on_begin;
  // Called after each point with its result. `was_kept`: taken from the file.
  std::function<void(const Json& result, bool was_kept)> on_point;
  // Called once before anything runs on the device: ns per command on the null device, by point.
  std::function<void(const Json& floor)> on_floor;
};

// `device` as the first of the compute units wants it. Returns the `weir.sweep/1` document, which is also in `output`.
// Failed points are in it with status "failed". With several ranks all call it; rank 0 alone reads and writes the file.
Json run_sweep(Device& device, const SweepRequest& request, const RunContext& context, const SweepControl& control);

// Where a file that is resumed has its points.
struct ResumedFile {
  const char* schema;
  const char* member;     // that holds settings and points; null: the document itself does
  const char* list;       // of points
  const char* otherwise;  // what is said of another file
};
// Points of an earlier run that `is_usable`; none where there is no file. Rejects a file of something else, and one
// that was run with other settings than `settings`.
Json points_to_keep(const std::filesystem::path& file, const ResumedFile& as, const Json& settings,
                    bool (*is_usable)(const Json& point));

// Rejects what run_sweep() would reject of any of its points; `ranks` as there will be.
void check_sweep(const DeviceInfo& info, const SweepRequest& request, Ranks ranks);

}  // namespace weir
