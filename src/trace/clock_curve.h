// How far one clock is ahead of another over time, fitted to pairs of moments that were the same: a constant, or joined
// lines where the pairs support drift. Knows numbers only.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace weir {

// One moment, read on two clocks.
struct ClockPair {
  std::int64_t ours_ns = 0, theirs_ns = 0;
};

// Distances are integers beside small doubles, because nanoseconds since 1970 as doubles are 256 ns apart.
class ClockCurve {
 public:
  ClockCurve() = default;

  // `pairs` are in any order. Lines are used for 30 pairs or more, where a simpler curve would be further off than the
  // noise of the pairs explains.
  explicit ClockCurve(std::vector<ClockPair> pairs);

  // Their clock minus ours at `theirs_ns`. Outside of the pairs the first and the last line go on.
  std::int64_t distance_ns(std::int64_t theirs_ns) const noexcept;
  // The median over the pairs.
  double usual_distance_ns() const noexcept { return static_cast<double>(base_ns_) + usual_ns_; }
  // Nine of ten pairs are within this of the curve.
  double error_ns() const noexcept { return error_ns_; }
  bool is_drifting() const noexcept { return knots_.size() > 1; }
  // From the first to the last pair, in parts per million; empty for a constant.
  std::optional<double> drift_ppm() const noexcept;

 private:
  struct Knot {
    double at_ns = 0, distance_ns = 0;  // since origin_ns_, beyond base_ns_
  };
  double beyond_base(double at_ns) const noexcept;
  void fit_lines(const std::vector<Knot>& pairs);

  std::int64_t origin_ns_ = 0, base_ns_ = 0;
  double usual_ns_ = 0, error_ns_ = 0;
  std::vector<Knot> knots_;  // by time; one for a constant
};

}  // namespace weir
