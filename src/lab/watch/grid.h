// A picture of a text screen: cells that a terminal, a file or a test can show. Knows no terminal; draws outside of
// itself nothing, whatever its size.
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

  // Writes what fits from (x, y) to the right; characters that are not printable ASCII become '?'.
  void put(int x, int y, std::string_view text, Style style = Style::plain);
  // The style of a whole line, whatever it holds.
  void paint(int y, Style style);
  // A line without blanks at its end.
  std::string line(int y) const;
  // All lines, without empty ones at the end.
  std::string text() const;

 private:
  std::size_t index(int x, int y) const {
    return static_cast<std::size_t>(y) * static_cast<std::size_t>(width_) + static_cast<std::size_t>(x);
  }

  int width_, height_;
  std::vector<Cell> cells_;
};

// Breaks at blanks into lines of at most `width`, in the middle of longer words.
std::vector<std::string> broken(std::string_view text, int width);

}  // namespace weir::watch
