// Rank 0's part of an analysis of many traces: what follows from all of them together, step by step, and the document.
// Holds outlines and summaries, never a trace.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "run/analyze.h"
#include "trace/analyse/rank_phases.h"
#include "trace/clock_alignment.h"
#include "trace/rank_collectives.h"

namespace weir {

// Takes what TraceAnalysis says, by trace, and returns the answers, by trace.
class WholeAnalysis {
 public:
  WholeAnalysis(const AnalyzeOptions& options, std::size_t traces) : options_(options), traces_(traces) {}

  std::vector<std::string> agree(const std::vector<std::string>& facts, const std::vector<std::string>& outlines);
  std::vector<std::string> start(const std::vector<std::string>& times);
  std::vector<std::string> window(const std::vector<std::string>& are_steady);
  std::vector<std::string> submission(const std::vector<std::string>& first_submitted);
  // Rejects a window without commands.
  std::vector<std::string> order(const std::vector<std::string>& counts, const std::vector<std::string>& outlines);
  std::vector<std::string> ask_phases(std::vector<std::string> devices);
  Json document(const std::vector<std::string>& commands);

 private:
  // A device of the document: the trace that has it, and its number there.
  struct Place {
    std::size_t trace = 0;
    std::uint16_t device = 0;
  };

  Place place_of(std::uint16_t device) const;
  Timeline merged(const std::vector<std::string>& outlines);
  void choose_devices();
  std::vector<std::string> same_for_all(const Json& json) const;
  Json window_json(std::size_t commands) const;

  const AnalyzeOptions& options_;
  std::size_t traces_;
  std::vector<std::size_t> first_process_, first_device_;  // by trace, in `whole_` and `part_`
  // The outline of all, with what it says of the source; the same in the window, on one clock.
  Timeline whole_, part_;
  Json files_ = Json::array();
  std::size_t commands_ = 0, calls_ = 0, dependencies_ = 0;
  std::optional<ClockAlignment> alignment_;
  std::int64_t origin_ns_ = 0, last_ns_ = INT64_MIN;
  std::optional<std::int64_t> steady_ns_;
  std::optional<TimeInterval> window_;
  Json window_words_;
  RankCollectives collectives_;
  std::size_t found_devices_ = 0;       // with commands
  std::vector<std::uint16_t> devices_;  // of the document
  Json device_documents_ = Json::array();
  std::size_t overlapping_ = 0;
  std::vector<RankUse> uses_;
  RankPhases phases_;
};

}  // namespace weir
