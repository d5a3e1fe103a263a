#include "measure/student.h"

#include <cmath>

namespace weir {
namespace {

// Continued fraction of the incomplete beta function (Lentz's method); converges fast for x < (a + 1) / (a + b + 2).
double beta_fraction(double a, double b, double x) {
  constexpr int kMaxTerms = 500;
  constexpr double kTiny = 1e-300, kClose = 1e-15;
  const auto off_zero = [](double value) { return std::fabs(value) < kTiny ? kTiny : value; };
  double c = 1, d = 1 / off_zero(1 - (a + b) * x / (a + 1)), result = d;
  for (int m = 1; m <= kMaxTerms; ++m) {
    const double even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m));
    d = 1 / off_zero(1 + even * d);
    c = off_zero(1 + even / c);
    result *= d * c;
    const double odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1));
    d = 1 / off_zero(1 + odd * d);
    c = off_zero(1 + odd / c);
    result *= d * c;
    if (std::fabs(d * c - 1) < kClose) break;
  }
  return result;
}

// Regularised: I_x(a, b).
double incomplete_beta(double a, double b, double x) {
  if (x <= 0) return 0;
  if (x >= 1) return 1;
  const double front =
      std::exp(std::lgamma(a + b) - std::lgamma(a) - std::lgamma(b) + a * std::log(x) + b * std::log1p(-x));
  return x < (a + 1) / (a + b + 2) ? front * beta_fraction(a, b, x) / a : 1 - front * beta_fraction(b, a, 1 - x) / b;
}

}  // namespace

double student_above(double t, double degrees) {
  if (std::isnan(t) || std::isnan(degrees)) return std::nan("");
  const double half = 0.5 * incomplete_beta(degrees / 2, 0.5, degrees / (degrees + t * t));
  return t >= 0 ? half : 1 - half;
}

double student_limit(double above, double degrees) {
  if (above > 0.5) return -student_limit(1 - above, degrees);
  double low = 0, high = 1;
  while (student_above(high, degrees) > above && high < 1e100) high *= 2;
  constexpr int kHalvings = 200;
  for (int i = 0; i < kHalvings && low < high; ++i) {
    const double middle = low + (high - low) / 2;
    if (middle == low || middle == high) break;
    (student_above(middle, degrees) > above ? low : high) = middle;
  }
  return low;
}

}  // namespace weir
