// A timeline as an item of a report: a lane for every stream, hardware queue and host thread. Knows no file and no
// analysis.
#pragma once

#include <cstddef>
#include <string>

#include "base/json.h"
#include "measure/timeline.h"

namespace weir::page {

struct DrawnTimeline {
  std::size_t spans = 0;  // commands and host calls; one that is on both a stream and a queue counts once
  Json fields;            // of Timeline in web/src/document.ts, besides those that every item has
  std::vector<std::string> notes;
};

// Draws at most `most` commands and calls. If there are more, it draws those in the middle of the trace: the beginning
// is warm-up, and only a stretch without holes is readable.
DrawnTimeline draw_timeline(const Timeline& timeline, std::size_t most);

}  // namespace weir::page
