#include "report/page/drawn_window.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/units.h"

namespace weir::page {
namespace {

// A page's numbers are exact up to 2^53 ns, which is 104 days; nothing that belongs together is further apart.
constexpr std::uint64_t kFarthest = std::uint64_t{1} << 52;

}  // namespace

void DrawnWindow::choose(std::size_t most) {
  if (starts_.empty()) return;
  const auto nth = [&](std::size_t n) {
    std::nth_element(starts_.begin(), starts_.begin() + static_cast<std::ptrdiff_t>(n), starts_.end());
    return starts_[n];
  };
  median_ = nth(starts_.size() / 2);
  // A start far from the median is invalid; without those the rest fits.
  std::erase_if(starts_, [&](std::int64_t start) { return distance(start, median_) > kFarthest; });
  first_ = *std::min_element(starts_.begin(), starts_.end());
  total_ = starts_.size();
  if (total_ > most) {
    is_cut_ = true;
    const std::size_t before = (total_ - most) / 2;
    low_ = nth(before);
    high_ = nth(before + most);
    const auto within = static_cast<std::size_t>(std::count_if(
        starts_.begin(), starts_.end(), [&](std::int64_t start) { return start >= low_ && start < high_; }));
    // Many pieces may start at the same time; only as many of them are drawn as there is room for.
    room_ = within < most ? most - within : 0;
  }
  starts_.clear();
  starts_.shrink_to_fit();
}

bool DrawnWindow::is_near(const Piece& piece) const noexcept {
  return distance(piece.started_ns, median_) <= kFarthest && distance(piece.ended_ns, median_) <= kFarthest;
}

bool DrawnWindow::takes(const Piece& piece) noexcept {
  if (!is_cut_) return true;
  if (piece.started_ns >= low_ && piece.started_ns < high_) return true;
  if (piece.started_ns != high_ || room_ == 0) return false;
  --room_;
  return true;
}

std::string DrawnWindow::words() const {
  return fmt::format("{} to {} after its first", format_duration(static_cast<double>(low_ - first_)),
                     format_duration(static_cast<double>(high_ - first_)));
}

}  // namespace weir::page
