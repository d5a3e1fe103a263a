// Which part of a timeline is drawn where it has more than the page can hold. Knows no lane.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "report/page/span_names.h"

namespace weir::page {

// Anything that is drawn, from any source.
struct Piece {
  std::int64_t started_ns = 0, ended_ns = 0;
  std::uint32_t name = kNoName;
  DrawnKind kind = DrawnKind::kernel;
};

inline std::uint64_t distance(std::int64_t a, std::int64_t b) noexcept {
  return a > b ? static_cast<std::uint64_t>(a) - static_cast<std::uint64_t>(b)
               : static_cast<std::uint64_t>(b) - static_cast<std::uint64_t>(a);
}

// Selects which pieces are drawn, by their starts.
class DrawnWindow {
 public:
  void consider(const Piece& piece) { starts_.push_back(piece.started_ns); }

  void choose(std::size_t most);

  bool is_near(const Piece& piece) const noexcept;
  bool takes(const Piece& piece) noexcept;
  // Steps that begin within the window; they take no room from commands.
  bool covers(const Piece& step) const noexcept {
    return !is_cut_ || (step.started_ns >= low_ && step.started_ns <= high_);
  }
  bool is_cut() const noexcept { return is_cut_; }
  std::size_t total() const noexcept { return total_; }
  std::string words() const;

 private:
  std::vector<std::int64_t> starts_;
  std::int64_t median_ = 0, first_ = 0, low_ = 0, high_ = 0;
  std::size_t room_ = 0, total_ = 0;
  bool is_cut_ = false;
};

}  // namespace weir::page
