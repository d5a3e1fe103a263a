// How far values lie from their peers, and how unusual that is: robust against many slow ones among the peers, honest
// with few of them, and with tails as heavy as those that the peers show. Knows numbers only. docs/fleet.md has the
// method.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace weir::fleet {

// Values here are logarithms of which larger ones are worse.
struct PeerSpread {
  std::size_t count = 0;
  double centre = 0;
  double scale = 0;    // of the t distribution with these degrees of freedom
  double degrees = 0;  // few where tails are heavy, or peers are few
  double robust = 0;   // standard deviation of the middle; NaN for fewer than two values
};

struct Deviation {
  double by = 0;  // from the centre of the peers
  double p = 1;   // that a healthy one is at least as bad, one-sided
};

// Each value against all others; NaN values get NaN. `noise` is each value's own standard deviation: empty, or one for
// each. `prior` is the natural spread that is expected where few peers show none.
struct Deviations {
  PeerSpread spread;
  std::vector<Deviation> each;
};
Deviations deviations(std::span<const double> values, std::span<const double> noise, double prior);

// Which of the p-values pass the procedure of Benjamini and Hochberg: the largest one that does; negative for none.
double passing_p(std::vector<double> p_values, double level);

}  // namespace weir::fleet
