// A timeline as one standalone SVG picture: per device what ran, one lane per stream and one per hardware queue.
// Knows timelines; no analysis and no file.
#pragma once

#include <cstddef>
#include <string>

#include "measure/timeline.h"

namespace weir {

struct SvgOptions {
  std::string title;
  double width = 1280;     // of the whole picture, in pixels
  std::size_t lanes = 48;  // of streams per device, the busiest; and as many of queues
  std::size_t devices = 16;
  std::size_t arrows = 200;  // of dependencies; beyond that none are drawn, and the picture says so
};

// However long the timeline is, the picture stays small: what falls into one pixel is drawn once.
std::string timeline_svg(const Timeline& timeline, const SvgOptions& options);

}  // namespace weir
