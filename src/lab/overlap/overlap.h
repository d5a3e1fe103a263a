// Measures how much of a training step's communication is hidden by compute. Runs the same step overlapped, serial,
// without communication and with communication only, on all ranks; rank 0 makes one document of the results. Knows
// passes and timelines; writes no files.
#pragma once

#include <vector>

#include "lab/overlap/overlap_config.h"
#include "run/runner.h"

namespace weir {

inline constexpr const char* kOverlapIterationSchema = "weir.overlap_iteration/1";

struct OverlapRun {
  Json summary = Json::object();              // weir.overlap/2
  std::vector<std::vector<Json>> iterations;  // by rank: lines of rank_NN.jsonl
  std::vector<Timeline> timelines;            // by rank, on rank 0's clock: the overlapped pass, with descriptions
  bool is_interrupted = false;
  std::string failure;  // the output or the losses are wrong
};

// All ranks call this; only rank 0 gets results, the others only is_interrupted. `ranks` carries messages about the
// run: it is the job's communicator, or one with a single rank.
OverlapRun run_overlap(Device& device, const OverlapConfig& config, Communicator& ranks, const RunContext& context,
                       const RunControl& control);

// Adds the summary of another process to `all`, which is null before the first. Samples are appended and step times are
// summarised over all of them; everything else is the first process's. `processes` says which samples are whose.
void add_overlap_process(Json& all, const Json& summary, std::int64_t wall_ns);

// Rejects what run_overlap() would reject before it starts. `ranks` are those of the future run.
void check_overlap(const DeviceInfo& info, const OverlapConfig& config, Ranks ranks);

}  // namespace weir
