#include "lab/watch/grid.h"

#include <algorithm>

#include "lab/watch/columns.h"

namespace weir::watch {
namespace {

constexpr int kMaxCells = 10'000;  // in each direction: a terminal may claim any size

}  // namespace

Grid::Grid(int width, int height)
    : width_(std::clamp(width, 0, kMaxCells)),
      height_(std::clamp(height, 0, kMaxCells)),
      cells_(static_cast<std::size_t>(width_) * static_cast<std::size_t>(height_)) {}

void Grid::put(int x, int y, std::string_view text, Style style) {
  if (y < 0 || y >= height_ || x < 0) return;
  // Looks only at as much text as could fit: names may be long.
  const auto room = static_cast<std::size_t>(std::max(0, width_ - x));
  const std::string clean = printable(text.substr(0, std::min(text.size(), 4 * room)));
  for (std::size_t i = 0; i < std::min(room, clean.size()); ++i)
    cells_[index(x + static_cast<int>(i), y)] = {clean[i], style};
}

void Grid::paint(int y, Style style) {
  if (y < 0 || y >= height_) return;
  for (int x = 0; x < width_; ++x) cells_[index(x, y)].style = style;
}

std::string Grid::line(int y) const {
  std::string line;
  for (int x = 0; x < width_; ++x) line += at(x, y).text;
  line.erase(line.find_last_not_of(' ') + 1);
  return line;
}

std::string Grid::text() const {
  std::string text;
  int last = height_ - 1;
  while (last >= 0 && line(last).empty()) --last;
  for (int y = 0; y <= last; ++y) text += line(y) + "\n";
  return text;
}

std::vector<std::string> broken(std::string_view text, int width) {
  const auto most = static_cast<std::size_t>(std::max(width, 1));
  std::vector<std::string> lines;
  std::string rest = printable(text);
  while (rest.size() > most) {
    std::size_t end = rest.rfind(' ', most);
    if (end == std::string::npos || end == 0) end = most;
    lines.push_back(rest.substr(0, end));
    const std::size_t next = rest.find_first_not_of(' ', end);
    rest.erase(0, next == std::string::npos ? rest.size() : next);
  }
  if (!rest.empty()) lines.push_back(rest);
  return lines;
}

}  // namespace weir::watch
