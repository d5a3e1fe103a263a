// Pictures as standalone SVG files, without a script and without anything from outside; and what they are drawn with.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "measure/folded_stacks.h"
#include "measure/timeline.h"

namespace weir {

// A flame graph of counted stacks; names show on hovering. Frames too narrow to see are left out; `title` is the line
// above.
std::string flame_svg(const std::vector<FoldedStack>& stacks, const std::string& title);

// weir.preempt/1: latency over the length of the victim's blocks, a curve per mechanism, published curves beside.
std::string preempt_svg(const Json& document);

struct SvgOptions {
  std::string title;
  double width = 1280;     // of the whole picture, in pixels
  std::size_t lanes = 48;  // of streams per device, the busiest; and as many of queues
  std::size_t devices = 16;
  std::size_t arrows = 200;  // of dependencies; beyond that none are drawn, and the picture says so
};

// Per device what ran, one lane per stream and one per hardware queue. However long the timeline is, the picture stays
// small: what falls into one pixel is drawn once.
std::string timeline_svg(const Timeline& timeline, const SvgOptions& options);

// As character data or as an attribute's value. Names come from files: control characters are no XML, and bytes may be
// no UTF-8, so what is not printable ASCII becomes '?'.
std::string svg_escaped(std::string_view text);

// Elements with a class of the picture's style.
std::string svg_label(double x, double y, std::string_view style, std::string_view words,
                      std::string_view anchor = "start");
std::string svg_box(double x, double y, double width, double height, std::string_view style);
// The whole file: `body` on a background of the class "b".
std::string svg_picture(double width, double height, std::string_view style, std::string_view body);

}  // namespace weir
