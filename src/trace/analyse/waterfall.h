// Where commands spend their time between the host that asks for them and the host that knows they ended: every hop of
// the way, by class of command. Reads timelines only.
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

// From one stage to the next that is known for the class. Figures are of the commands that have both times, in order.
struct Hop {
  Stage from = Stage::enqueued, to = Stage::enqueued;
  std::size_t count = 0;
  std::size_t negative = 0;                                              // left out: the clocks disagree
  double worst_negative_ns = 0;                                          // by how much at most; 0 where none is
  std::size_t unknown = 0;                                               // left out: one of the times is missing
  double mean_ns = 0, p50_ns = 0, p95_ns = 0, p99_ns = 0, total_ns = 0;  // 0 where count is
  double share = 0;  // of the sum of the means of all hops of the class
};

struct MissingStage {
  Stage stage = Stage::enqueued;
  std::string reason;
};

struct ClassWaterfall {
  SpanKind kind = SpanKind::kernel;
  std::size_t commands = 0;
  std::vector<Hop> hops;              // in the order of the way
  std::vector<MissingStage> missing;  // stages that are no end of a hop, in the order of the way
  double way_ns = 0;                  // sum of the hops' means
  // Indices into hops; nothing where no hop took any time.
  std::optional<std::size_t> dominating;         // of all
  std::optional<std::size_t> dominating_to_end;  // of those up to `ended`: the host may look long after
  std::string words;                             // of `dominating`; why there is none
  std::string words_to_end;                      // of `dominating_to_end`, with shares of the way up to there
};

struct Waterfall {
  std::vector<ClassWaterfall> classes;  // those with commands, by kind
  std::string reason;                   // why there are none
};

Waterfall waterfall(const Timeline& timeline);

}  // namespace weir
