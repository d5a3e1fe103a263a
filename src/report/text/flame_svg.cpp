// A flame graph of counted stacks. Knows stacks; measures nothing.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/plain_text.h"
#include "report/text/svg.h"

namespace weir {
namespace {

constexpr double kWidth = 1200, kFlameMargin = 10, kRow = 17, kFlameTop = 48;
constexpr double kNarrowest = 0.4;  // pixels
constexpr double kLetter = 7;       // approximate width of one letter, in pixels
constexpr std::size_t kMaxFrames = 20'000;
constexpr std::size_t kMaxFlameRows = 260;

struct Frame {
  std::uint64_t count = 0;
  std::map<std::string_view, std::size_t> inner;  // indices into the list of frames
};

// Warm colours, as usual for flame graphs; equal names get equal colours.
std::string colour_of(std::string_view name) {
  std::uint32_t hash = 2166136261U;
  for (const char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 16777619U;
  return fmt::format("hsl({},{}%,{}%)", 8 + hash % 44, 70 + hash / 64 % 20, 62 + hash / 4096 % 12);
}

}  // namespace

std::string flame_svg(const std::vector<FoldedStack>& stacks, const std::string& title) {
  std::vector<Frame> frames(1);
  for (const FoldedStack& stack : stacks) {
    std::size_t here = 0;
    frames[0].count += stack.count;
    std::string_view rest = stack.frames;
    for (std::size_t row = 0; row < kMaxFlameRows; ++row) {
      const std::size_t end = rest.find(';');
      const std::string_view name = rest.substr(0, end);
      const auto [place, is_new] = frames[here].inner.emplace(name, frames.size());
      const std::size_t next = place->second;
      if (is_new) frames.emplace_back();
      frames[next].count += stack.count;
      here = next;
      if (end == std::string_view::npos) break;
      rest.remove_prefix(end + 1);
    }
  }
  struct Box {
    std::size_t frame, row;
    double x;
    std::string_view name;
  };
  const double all = std::max<double>(1, static_cast<double>(frames[0].count));
  const auto width_of = [&](std::size_t frame) {
    return (kWidth - 2 * kFlameMargin) * static_cast<double>(frames[frame].count) / all;
  };
  // Rows from the outermost inwards; a list instead of recursion.
  std::vector<Box> boxes{{0, 0, kFlameMargin, "all"}};
  std::size_t rows = 1;
  for (std::size_t i = 0; i < boxes.size() && boxes.size() < kMaxFrames; ++i) {
    double x = boxes[i].x;
    const std::size_t row = boxes[i].row + 1;
    for (const auto& [name, inner] : frames[boxes[i].frame].inner) {
      if (width_of(inner) >= kNarrowest) {
        boxes.push_back({inner, row, x, name});
        rows = std::max(rows, row + 1);
      }
      x += width_of(inner);
    }
  }
  const double height = kFlameTop + kRow * static_cast<double>(rows) + kFlameMargin;
  Markup svg = Markup::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0:.0f} {1:.0f}\" width=\"{0:.0f}\" height=\"{1:.0f}\" "
      "font-family=\"monospace\" font-size=\"11\" role=\"img\">\n"
      "<style>rect{{stroke:#fff;stroke-width:.5}}g:hover rect{{stroke:#000;stroke-width:1}}text{{fill:#111}}</style>\n"
      "<rect width=\"100%\" height=\"100%\" fill=\"#fff\" stroke=\"none\"/>\n"
      "<text x=\"{2}\" y=\"22\" font-size=\"15\">{3}</text>\n"
      "<text x=\"{2}\" y=\"38\">{4} samples; a frame is as wide as it was seen often, callers above what they "
      "call</text>\n",
      kWidth, height, kFlameMargin, title, frames[0].count);
  for (const Box& box : boxes) {
    const double width = width_of(box.frame), y = kFlameTop + kRow * static_cast<double>(box.row);
    svg += Markup::format(
        "<g><title>{}: {} samples, {:.2f} %</title><rect x=\"{:.2f}\" y=\"{:.0f}\" width=\"{:.2f}\" "
        "height=\"{:.0f}\" fill=\"{}\"/>",
        box.name, frames[box.frame].count, 100 * static_cast<double>(frames[box.frame].count) / all, box.x, y, width,
        kRow - 1, colour_of(box.name));
    if (const auto letters = static_cast<std::size_t>(std::max(0.0, width - 4) / kLetter); letters >= 3) {
      const std::string_view shown = box.name.size() <= letters ? box.name : whole_characters(box.name, letters - 2);
      svg += Markup::format("<text x=\"{:.2f}\" y=\"{:.0f}\">{}{}</text>", box.x + 2, y + 12, shown,
                            shown.size() < box.name.size() ? ".." : "");
    }
    svg += Markup::format("</g>\n");
  }
  return (svg + Markup::format("</svg>\n")).text();
}

}  // namespace weir
