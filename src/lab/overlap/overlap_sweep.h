// Communication beside compute, point by point: a GEMM of one size and a collective of one message size, each alone and
// both at once, on all ranks. Bandwidths are those of nccl-tests. Saves each point when it ends; a killed sweep can be
// resumed. Prints nothing.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "run/children.h"
#include "run/runner.h"
#include "run/variable_axis.h"

namespace weir {

struct OverlapSweepPoint {
  std::int64_t gemm_size = 0;  // rows and columns of its matrices
  CollectiveOp collective{};
  std::uint64_t message_bytes = 0;  // as asked for; rounded down to whole elements on every rank
  VariableSetting variables;

  // "gemm 1024, all_reduce of 1.00 MiB, NCCL_MAX_NCHANNELS=4"
  std::string words() const;
};

struct OverlapSweepRequest {
  RunRequest run;  // precision, iterations, warm-up, seed, checks; the points decide the rest
  std::vector<std::int64_t> gemm_sizes;
  std::vector<CollectiveOp> collectives;
  std::vector<std::uint64_t> message_bytes;
  std::vector<VariableAxis> variables;  // each combination has processes of its own
  std::filesystem::path output;         // empty: no file
  bool resumes = false, overwrites = false;
};

// The last list fastest. Rejects more than kMaxVariedPoints.
std::vector<OverlapSweepPoint> points_of(const OverlapSweepRequest& request);

// What nccl-tests multiply the algorithm's bandwidth by for that of the bus: 2 (n - 1) / n for an all-reduce, (n - 1) /
// n for an all-gather, a reduce-scatter and an all-to-all, 1 for a shift (a send and a receive). Empty for one rank,
// which sends nothing.
std::optional<double> bus_factor(CollectiveOp op, int ranks);

// The step of a point, as a workload: the GEMM on stream 0, the collective on stream 1, and nothing between them.
Workload overlap_workload(const OverlapSweepPoint& point);

// Measures one point; all ranks call it, rank 0 gets the entry of the document, the others null, or only the status
// "interrupted" where all were. Wrong output and, on a
// single rank, a failure are in the entry.
Json measure_overlap_point(Device& device, const OverlapSweepRequest& request, const OverlapSweepPoint& point,
                           const RunControl& control);

struct OverlapSweepControl {
  // Measures a point, in this process or in one of its own. Null: on rank 0 it was interrupted; on others it was not.
  std::function<Json(const OverlapSweepPoint& point)> measure;
  std::function<bool()> is_stopped;  // on all ranks the same
  std::function<void(const OverlapSweepPoint& point, std::size_t index, std::size_t total)> on_begin;
  std::function<void(const Json& point, bool was_kept)> on_point;
  std::function<std::string(std::string)> broadcast;  // rank 0's text; empty function: there is one rank
  bool is_first_rank = true;
  int ranks = 1;  // of the run; a process that starts others is none of them
};

// Returns the weir.overlap_sweep/1 document, which is also in the output file.
Json run_overlap_sweep(const DeviceInfo& info, const OverlapSweepRequest& request, const RunContext& context,
                       const OverlapSweepControl& control);

}  // namespace weir
