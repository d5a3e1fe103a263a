// What would make the program of a trace faster, and by how much: the replay of the trace, checked against it, then
// with one thing changed at a time. Makes the document (weir.advice/1); prints nothing.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "lab/advise/what_if.h"
#include "trace/import/import.h"

namespace weir::advise {

struct AdviceOptions {
  std::optional<std::int64_t> queues;  // as the program ran; nothing: the driver's usual number
  std::optional<double> untraced_ns;   // a step without the profiler
  std::vector<std::string> command_line;
  std::function<void(std::size_t done, std::size_t all)> progress;  // may throw to stop
};

inline constexpr double kMaxReplayError = 0.05;  // beyond it there is no advice
inline constexpr double kWorthwhile = 0.02;      // smaller gains are none

struct Prediction {
  WhatIf what;
  double step_ns = 0, low_ns = 0, high_ns = 0;
  double gain = 0;  // of the step; negative: slower
  bool is_advised = false;
};

struct Advice {
  ReplayModel model;
  bool is_amd = false;
  double traced_ns = 0;                 // a step in the trace
  double replayed_ns = 0;               // and in its replay
  double error = 0;                     // of that
  double step_ns = 0;                   // what predictions are compared with
  double host = 1, scale = 1;           // what `untraced_ns` was reached with: factors on the host's time, and on all
  std::string reason;                   // why there is no advice; empty: there may be
  std::vector<Prediction> predictions;  // as asked
  std::vector<std::size_t> advised;     // what to do first, first
  std::vector<WhatIf> unanswered;       // by this trace
  std::vector<std::string> stuck;       // titles of changes with which the replay does not come to an end

  const Prediction* first() const { return advised.empty() ? nullptr : &predictions[advised.front()]; }
};

// Reads names and operators of the timeline, which is the window that is meant.
Advice advise(const Timeline& timeline, const AdviceOptions& options);

Json advice_json(const Advice& advice, const Timeline& timeline, const std::vector<ImportedFile>& files,
                 const AdviceOptions& options);

}  // namespace weir::advise
