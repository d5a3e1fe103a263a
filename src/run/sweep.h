// Runs a workload over stream counts, submit modes, parts of the device and variables of the environment, saving each
// point when it ends; a killed sweep can be resumed.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "run/processes.h"
#include "run/runner.h"
#include "run/variable_axis.h"

namespace weir {

struct SweepRequest {
  RunRequest run;  // streams and submit come from the lists below
  std::vector<int> streams;
  std::vector<SubmitChoice> submits;
  std::vector<int> compute_units = {0};  // per stream; 0: not confined
  std::vector<VariableAxis> variables;   // each combination of their values has processes of its own
  ProcessCount processes;                // for each point; one: all points in this process, one after the other
  int ranks = 1;                         // that each of several processes starts
  std::filesystem::path output;
  bool resumes = false;  // keep the file's complete points and run the others
  bool overwrites = false;

  // Whether each point has processes of its own, instead of all points this one.
  bool uses_processes() const { return !processes.is_one() || !variables.empty(); }
};

// A point of a sweep. `submit` is fitted to the streams, so that its name is as in results.
struct SweepPoint {
  int streams = 1;
  SubmitChoice submit;
  int compute_units = 0;
  VariableSetting variables;

  // "threads:4 on 16 units, NCCL_ALGO=Ring"
  std::string way() const;
};

struct SweepControl {
  RunControl run;
  // Reopens the device with this many compute units per stream; required if a sweep has several values. Invalidates the
  // device that it returned before.
  std::function<Device&(int compute_units)> reopen;
  // With processes of their own: runs a point as `weir run` in a new one, traced only where asked.
  std::function<ChildOutcome(const SweepPoint& point, bool traces)> run_process;
  // Called before each point, or each process of one; `index` counts from 0.
  std::function<void(int streams, const std::string& way, std::size_t index, std::size_t total)> on_begin;
  // Called with the result of each point, when it ended or, with several processes, when all have. `was_kept`: taken
  // from the file.
  std::function<void(const Json& result, bool was_kept)> on_point;
  // Called once before anything runs on the device: ns per command on the null device, by point.
  std::function<void(const Json& floor)> on_floor;
};

// `device` must match the first of the compute units; where points have processes there is none, so that they have it
// to themselves. Returns the `weir.sweep/1` document, which is also in `output`. Failed points have status "failed".
// With several ranks all call it; only rank 0 reads and writes the file.
Json run_sweep(const DeviceInfo& info, Device* device, const SweepRequest& request, const RunContext& context,
               const SweepControl& control);
inline Json run_sweep(Device& device, const SweepRequest& request, const RunContext& context,
                      const SweepControl& control) {
  return run_sweep(device.info(), &device, request, context, control);
}

// In the order in which they run. Rejects a stream count that the workload does not have, and too many points.
std::vector<SweepPoint> points_of(const SweepRequest& request);

// Describes where a file to resume has its points.
struct ResumedFile {
  const char* schema;
  const char* member;     // member with settings and points; null: the document itself
  const char* list;       // name of the list of points
  const char* otherwise;  // the message for any other file
};
// Points of an earlier run that `is_usable`; none if there is no file. Rejects any other kind of file, and one that was
// run with different `settings`.
Json points_to_keep(const std::filesystem::path& file, const ResumedFile& as, const Json& settings,
                    bool (*is_usable)(const Json& point));

// Rejects what run_sweep() would reject for any of its points; `ranks`: those of the later run.
void check_sweep(const DeviceInfo& info, const SweepRequest& request, Ranks ranks);

}  // namespace weir
