// Runs a workload over queue counts, stream counts and kernel sizes: lists the points, saves each as it ends, and finds
// the best queue count for each stream count. The caller runs a point in a process of its own.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "run/runner.h"

namespace weir {

using ParamValues = std::vector<std::pair<std::string, std::string>>;

struct QueuesPoint {
  int queues = 0;
  int streams = 0;
  Scale scale = Scale::small;
  ParamValues params;  // set by the user
};

struct QueuesSweepRequest {
  RunRequest run;  // streams, scale and params are taken from the lists below
  std::vector<int> queues, streams;
  std::vector<Scale> scales;
  std::vector<std::pair<std::string, std::vector<std::string>>> params;  // name, values
  std::string setting;           // what sets the queue count, for the document: a variable or a flag
  std::vector<std::string> sim;  // settings of the simulated device
  int repeats = 3;               // processes per point: two runs of one setting may differ more than two settings
  std::filesystem::path output;
  bool resumes = false;  // keeps the runs in the file and does the others
  bool overwrites = false;
};

// The result of one process of a point.
struct PointRun {
  Json result;          // weir.result/2; null if it failed
  std::string failure;  // why it failed
  bool is_interrupted = false;
};

struct QueuesSweepControl {
  std::function<PointRun(const QueuesPoint& point)> run;
  // Called before each process; `index` counts from 0.
  std::function<void(const QueuesPoint& point, std::size_t index, std::size_t total)> on_begin;
};

// All queue counts of one stream count and size are adjacent, so that compared points are close in time.
std::vector<QueuesPoint> points_of(const QueuesSweepRequest& request);

// Rejects what the process of any point would reject.
void check_queues_sweep(const DeviceInfo& info, const QueuesSweepRequest& request);

// Returns the document (weir.queues/2), which is also written to `output` after each process. The queue counts of a
// group take turns, in another random order in every round, so that drift affects all of them. The document includes
// points that failed, or whose process saw another queue count, and marks them.
Json run_queues_sweep(const DeviceInfo& info, const QueuesSweepRequest& request, const RunContext& context,
                      const QueuesSweepControl& control);

// A point of the document without runs.
Json empty_point(const QueuesPoint& point);
// Adds the samples of a process if it saw the requested queue count; otherwise marks the point as spoilt.
void add_run(Json& point, const std::string& setting, int repeats, const PointRun& run);
// Fills in the results of the points' samples: summaries, each point's ratio to the best of its stream count and size
// with interval and verdict, and the best of each. "Slower" requires a clear test and interval, a difference of more
// than 2 %, and that every process was slower than every process of the best point.
void judge_points(Json& sweep);

}  // namespace weir
