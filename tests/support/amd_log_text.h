// Writes the log that ROCm's runtime would have written of a described scene, as its versions print it. Knows no
// reader.
#pragma once

#include <string>

#include "support/amd_scene.h"

namespace weir::testing {

struct LogTextOptions {
  int rocm = 70;                   // 50, 60, 63 (a stray d, no 0x), 70, 72 (packets at level 5, another copy line)
  int level = 4;                   // 3: neither pid nor packets
  bool has_colours = true;         // around calls
  bool has_calls = true;           // a mask without API has none
  bool has_places = true;          // a mask without LOCATION has neither file nor line
  bool is_glued = false;           // every seventh record stands behind a program's output
  bool has_long_messages = false;  // messages over several lines in between
  bool has_carriage_returns = false;
  bool has_noise = false;  // Arg lines, waits, foreign lines
};

// In the order of time. Each stream has a thread of its own; queues that the log does not show are left out.
std::string amd_log_text(const Scene& scene, const LogTextOptions& options);

// One process, `streams` streams one after another on `queues` queues, `rounds` launches on each stream: what the order
// of lines alone can tell.
Scene sequential_scene(int streams, int queues, int rounds);

}  // namespace weir::testing
