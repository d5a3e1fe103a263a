// Where commands spend their time between the host's request and the host's knowledge that they ended: every hop of the
// way, by class of command. Reads timelines only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "measure/timeline.h"

namespace weir {

enum class Stage : std::uint8_t { enqueued, submitted, accepted, launched, started, ended, seen };
inline constexpr std::size_t kStages = 7;

const char* to_string(Stage stage) noexcept;
std::int64_t time_of(const Span& span, Stage stage) noexcept;

// From one stage to the next that is known for the class. Figures are for the commands that have both times, in order.
struct Hop {
  Stage from = Stage::enqueued, to = Stage::enqueued;
  std::size_t count = 0;
  std::size_t negative = 0;      // left out: the clocks disagree
  double worst_negative_ns = 0;  // the largest such disagreement; 0 where there is none
  std::size_t unknown = 0;       // left out: one of the times is missing
  double mean_ns = 0, p50_ns = 0, p95_ns = 0, p99_ns = 0, total_ns = 0;  // 0 where count is
  // Of the sum of the means of the hops on the way. Empty for a hop that is not on it: `ended` to `seen`, where the
  // host did not wait for most of these commands but looked later.
  std::optional<double> share;
};

struct MissingStage {
  Stage stage = Stage::enqueued;
  std::string reason;
};

struct ClassWaterfall {
  SpanKind kind = SpanKind::kernel;
  std::size_t commands = 0;
  std::vector<Hop> hops;              // in the order of the way
  std::vector<MissingStage> missing;  // stages at which no hop begins or ends, in the order of the way
  std::size_t waited_for = 0;         // commands for which the host waited; `ended` to `seen` is on their way only
  double way_ns = 0;                  // sum of the means of the hops on the way
  // Indices into hops; empty where no hop took any time.
  std::optional<std::size_t> dominating;         // of the hops on the way
  std::optional<std::size_t> dominating_to_end;  // of the hops up to `ended`: the host may look much later
  std::string words;                             // describes `dominating`, or why there is none
  std::string words_to_end;                      // describes `dominating_to_end`, with shares of the way up to there
};

struct Waterfall {
  std::vector<ClassWaterfall> classes;  // those with commands, by kind
  std::string reason;                   // why there are none
};

Waterfall waterfall(const Timeline& timeline);

}  // namespace weir
