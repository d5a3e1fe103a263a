// A workload over queue counts, stream counts and kernel sizes: which points there are, saving each as it ends, and
// which queue count is best for which stream count. How a point is run (a process of its own) is the caller's.
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
  std::string scale;
  ParamValues params;  // those that the user gave
};

struct QueuesSweepRequest {
  RunRequest run;  // streams, scale and params are taken from the lists below
  std::vector<int> queues, streams;
  std::vector<std::string> scales;
  std::vector<std::pair<std::string, std::vector<std::string>>> params;  // name, values
  std::string setting;           // what sets the queue count: a variable's name, or "--hw-queues"
  std::vector<std::string> sim;  // settings of the simulated device
  int repeats = 3;               // processes for each point: two of one setting may differ more than two settings
  std::filesystem::path output;
  bool resumes = false;  // keep the runs that the file has, and do the others
  bool overwrites = false;
};

// What one process of a point said.
struct PointRun {
  Json result;          // weir.result/1; null where it failed
  std::string failure;  // why
  bool is_interrupted = false;
};

struct QueuesSweepControl {
  std::function<PointRun(const QueuesPoint& point)> run;
  // Called before each process; `index` counts from 0.
  std::function<void(const QueuesPoint& point, std::size_t index, std::size_t total)> on_begin;
};

// All queue counts of one stream count and size follow each other: what is compared is close in time.
std::vector<QueuesPoint> points_of(const QueuesSweepRequest& request);

// Rejects what the process of any point would reject.
void check_queues_sweep(const DeviceInfo& info, const QueuesSweepRequest& request);

// Returns the document (weir.queues/1), which is also in `output`, rewritten after each process. The queue counts of a
// group take turns, so that drift meets all of them. Points that failed, or whose process saw another queue count, are
// in it and say so.
Json run_queues_sweep(const DeviceInfo& info, const QueuesSweepRequest& request, const RunContext& context,
                      const QueuesSweepControl& control);

// A point of the document without any run.
Json empty_point(const QueuesPoint& point);
// Adds what a process said: its samples, if it saw the queue count that it was to have; otherwise the point is spoilt.
void add_run(Json& point, const std::string& setting, int repeats, const PointRun& run);
// Fills in what follows from the points' samples: summaries, each one's ratio to the best of its stream count and size
// with interval and verdict, and the best of each. Slower is only what is clear by test and interval, is more than 2 %,
// and in no process was as fast as the best in any.
void judge_points(Json& sweep);

}  // namespace weir
