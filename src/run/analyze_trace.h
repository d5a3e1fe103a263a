// One trace of an analysis of many: what it says of itself, and what it learns about the others, step by step. Each
// trace goes through the same steps wherever it is held, so results do not depend on that. Sends nothing.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "run/analyze.h"
#include "trace/analyse/rank_phases.h"

namespace weir {

class TraceAnalysis {
 public:
  // Changes `trace`; `is_one_of_several` is whether other traces are analysed with it. The trace must outlive this.
  TraceAnalysis(ImportedTrace& trace, const AnalyzeOptions& options, bool is_one_of_several, bool keeps_trace);

  // {"files", "commands", "calls"}
  Json facts() const;
  // trace/outline.h, as timeline_bytes().
  std::string outline_bytes() const;
  // {"has_exact_gaps", "has_dependencies", "has_operations", "clock_error_ns", "ranks", "alignment"}: the last two by
  // process; takes the times onto the common clock.
  void agree(const Json& common);
  // {"first_ns", "last_ns", "steady_ns"}: the last by device, null where the window was asked for.
  Json times() const;
  // {"origin_ns", "steady_ns"}: the document's, and when the steady part may begin. Returns whether it does so here.
  Json is_steady(const Json& start);
  // {"window"}: null, or from and to. Returns the first submission of what is in it, null without a window.
  Json first_submitted(const Json& part);
  // {"submitted_ns"}: the first of all traces. From here on the trace is the part of it in the window.
  void cut(const Json& part);
  // {"commands", "dependencies"}
  Json counts() const;
  // {"needs_phases", "devices": [{"device", "arrivals"}]}. Returns for each {"device", "process", "overlapping",
  // "document", "phase_ns"}.
  Json analyze(const Json& order);
  // [[device, phase]]. Returns {"names", "uses": [{"device", "phase", "commands"}]}.
  Json commands(const Json& wanted) const;

 private:
  const Timeline& current() const noexcept { return is_cut_ ? part_ : trace_.timeline; }

  ImportedTrace& trace_;
  const AnalyzeOptions& options_;
  bool keeps_trace_, is_cut_ = false;
  Timeline part_;
  std::int64_t origin_ns_ = 0;
  std::optional<TimeInterval> window_;
  std::vector<std::uint16_t> devices_;  // that were analysed
  std::vector<RankUse> uses_;           // of them
};

// A clock as it travels; null for one that stays as it is.
Json moved_clock_json(const RankClock& clock);
// Phase and sums of a rank's use as they travel: [busy, late host, waiting] by phase.
Json phase_times_json(const RankUse& use);
RankUse phase_times_of(const Json& json);
// Commands of a phase as they travel: [operator, shapes, name, kind, count, ns], names as numbers or null.
std::map<CommandKey, CommandSum> phase_commands_of(const Json& commands, std::span<const std::uint32_t> name_of);

}  // namespace weir
