// The questions that a trace can answer: what is changed, in words and for the replay. Each looks at the model for what
// it concerns; none runs it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lab/advise/replay.h"

namespace weir::advise {

// What it takes to do it. The order is that of effort.
enum class Effort : std::uint8_t { variable, line, code, none };
inline const char* to_string(Effort effort) noexcept {
  constexpr const char* kNames[] = {"variable", "line", "code", "none"};
  return kNames[static_cast<std::size_t>(effort)];
}

struct WhatIf {
  std::string kind;     // "queues", "wait", "priority", "graphs", "order", "data", "prefetch", "buckets", "overlap",
                        // "host", "communication", "copies", "work", "kernel"
  std::string title;    // "8 hardware queues"
  std::string setting;  // what to type, or what to change; empty where nobody can simply do it
  Effort effort = Effort::none;  // none: it says what the limit is, not what to do
  Change change;
  std::int64_t value = 0;  // of queues: the count
  double share = 0;        // of the step that it concerns, where that is meant
  std::string reason;      // why the trace cannot answer it; empty: it can
};

inline constexpr double kLeastShare = 0.02;  // of the whole time: less is not worth a question

// How the program's driver calls it, and what is usual.
struct QueueVariable {
  const char* name;
  std::int64_t usual, most;
};
QueueVariable queue_variable(bool is_amd) noexcept;

std::vector<WhatIf> what_ifs(const ReplayModel& model, const Timeline& timeline, bool is_amd);

}  // namespace weir::advise
