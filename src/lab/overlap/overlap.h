// Measures how much of a training step's communication its compute hides: the same step overlapped, serial, without
// communication and without anything else, on all ranks, and one document of what rank 0 makes of it. Knows passes and
// timelines; writes no files.
#pragma once

#include <vector>

#include "lab/overlap/overlap_config.h"
#include "run/runner.h"

namespace weir {

inline constexpr const char* kOverlapSchema = "weir.overlap/1";
inline constexpr const char* kOverlapIterationSchema = "weir.overlap_iteration/1";

struct OverlapRun {
  Json summary = Json::object();              // weir.overlap/1
  std::vector<std::vector<Json>> iterations;  // by rank: lines of rank_NN.jsonl
  std::vector<Timeline> timelines;            // by rank, on rank 0's clock: the overlapped pass, described
  bool is_interrupted = false;
  std::string failure;  // the output or the losses are wrong
};

// All ranks call it; only at rank 0 there is something in what it returns, but for is_interrupted. `ranks` carries what
// is said about the run: the job's communicator, or one of a single rank.
OverlapRun run_overlap(Device& device, const OverlapConfig& config, Communicator& ranks, const RunContext& context,
                       const RunControl& control);

// Rejects what run_overlap() would reject before it starts; `ranks` as there will be.
void check_overlap(const DeviceInfo& info, const OverlapConfig& config, Ranks ranks);

}  // namespace weir
