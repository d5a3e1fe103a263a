// Pictures as standalone SVG files, without scripts or external resources; and the functions that draw them.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "base/text_gate.h"
#include "measure/folded_stacks.h"
#include "measure/timeline.h"

namespace weir {

// A flame graph of counted stacks; names appear on hovering. Frames too narrow to see are left out; `title` is the line
// above.
std::string flame_svg(const std::vector<FoldedStack>& stacks, const std::string& title);

// weir.preempt/2: latency over the duration of the victim's blocks, one curve per mechanism, next to published curves.
std::string preempt_svg(const Json& document);

// One of the races of weir.race/1: the commands around the pair in their streams, and the wait that is missing.
std::string race_svg(const Json& race);

struct SvgOptions {
  std::string title;
  double width = 1280;     // of the whole picture, in pixels
  std::size_t lanes = 48;  // streams per device, the busiest; and the same number of queues
  std::size_t devices = 16;
  std::size_t arrows = 200;  // for dependencies; if there are more, none are drawn, and the picture says so
};

// What ran on each device, one lane per stream and one per hardware queue. The picture stays small for timelines of any
// length: everything within one pixel is drawn once.
std::string timeline_svg(const Timeline& timeline, const SvgOptions& options);

// Elements with a class of the picture's style.
Markup svg_label(double x, double y, std::string_view style, std::string_view words, std::string_view anchor = "start");
Markup svg_box(double x, double y, double width, double height, std::string_view style);
// The whole file: `body` on a background of the class "b".
std::string svg_picture(double width, double height, const Markup& style, const Markup& body);

}  // namespace weir
