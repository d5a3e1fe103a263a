// An image of a text screen: cells that a terminal, a file or a test can show. Knows no terminal; ignores drawing
// outside its bounds.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace weir::watch {

enum class Style : std::uint8_t { plain, bold, reverse, sorted, dim };

struct Cell {
  char text = ' ';  // printable ASCII
  Style style = Style::plain;
};

class Grid {
 public:
  Grid(int width, int height);

  int width() const { return width_; }
  int height() const { return height_; }
  const Cell& at(int x, int y) const { return cells_[index(x, y)]; }

  // Writes `text` from (x, y) to the right, as far as it fits; characters that are not printable ASCII become '?'.
  void put(int x, int y, std::string_view text, Style style = Style::plain);
  // Sets the style of a whole line, whatever it contains.
  void paint(int y, Style style);
  // A line without trailing blanks.
  std::string line(int y) const;
  // All lines, without trailing empty ones.
  std::string text() const;

 private:
  std::size_t index(int x, int y) const {
    return static_cast<std::size_t>(y) * static_cast<std::size_t>(width_) + static_cast<std::size_t>(x);
  }

  int width_, height_;
  std::vector<Cell> cells_;
};

// Breaks text at blanks into lines of at most `width`; longer words are split.
std::vector<std::string> broken(std::string_view text, int width);

}  // namespace weir::watch
