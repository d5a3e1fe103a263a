// How far one clock is ahead of another over time, fitted to pairs of moments that were the same: a constant, or joined
// lines where the pairs support drift. Knows numbers only.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

namespace weir {

// One moment, read on two clocks.
struct ClockPair {
  std::int64_t ours_ns = 0, theirs_ns = 0;
};

// Distances are integers beside small doubles, because nanoseconds since 1970 as doubles are 256 ns apart.
class ClockCurve {
 public:
  struct Knot {
    double at_ns = 0, distance_ns = 0;  // since origin_ns, beyond base_ns
  };
  // Everything that makes a curve, for sending it to another process.
  struct Fit {
    std::int64_t origin_ns = 0, base_ns = 0;
    double usual_ns = 0, error_ns = 0;
    std::vector<Knot> knots;  // by time; one for a constant
  };

  ClockCurve() = default;
  explicit ClockCurve(Fit fit) : fit_(std::move(fit)) {}
  const Fit& fit() const noexcept { return fit_; }

  // `pairs` are in any order. Lines are used for 30 pairs or more, where a simpler curve would be further off than the
  // noise of the pairs explains.
  explicit ClockCurve(std::vector<ClockPair> pairs);

  // Their clock minus ours at `theirs_ns`. Outside of the pairs the first and the last line go on.
  std::int64_t distance_ns(std::int64_t theirs_ns) const noexcept;
  // The median over the pairs.
  double usual_distance_ns() const noexcept { return static_cast<double>(fit_.base_ns) + fit_.usual_ns; }
  // Nine of ten pairs are within this of the curve.
  double error_ns() const noexcept { return fit_.error_ns; }
  bool is_drifting() const noexcept { return fit_.knots.size() > 1; }
  // From the first to the last pair, in parts per million; empty for a constant.
  std::optional<double> drift_ppm() const noexcept;

 private:
  double beyond_base(double at_ns) const noexcept;
  void fit_lines(const std::vector<Knot>& pairs);

  Fit fit_;
};

}  // namespace weir
