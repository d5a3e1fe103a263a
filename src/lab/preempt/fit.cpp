#include "lab/preempt/fit.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "measure/student.h"

namespace weir::preempt {
namespace {

constexpr double kConstantShare = 0.5;  // fraction of the constant part below which blocks do not matter
constexpr double kMaybeShare = 2;       // upper limit of that fraction if the line is uncertain
// p99 includes requests that came while another one waited: a slope of two may still be one block each.
constexpr double kAboutOneBlock = 1.5, kTwoInARow = 2.5;

double square(double value) { return value * value; }

// The sum of squares of log(latency) - log(scale * (1 + rate * x)) with the best scale, and that scale.
struct Line {
  double sum = 0, scale = 0;
};
Line line_at(std::span<const Length> lengths, double rate) {
  double mean = 0;
  const auto off = [&](const Length& one) {
    return std::log(one.latency_ns) - (std::isinf(rate) ? std::log(one.block_ns) : std::log1p(rate * one.block_ns));
  };
  for (const Length& one : lengths) mean += off(one) / static_cast<double>(lengths.size());
  Line line{0, std::exp(mean)};
  for (const Length& one : lengths) line.sum += square(off(one) - mean);
  return line;
}

// The rate with the smallest sum: searches a grid that is wider than the lengths, then thirds around its best.
double best_rate(std::span<const Length> lengths, double shortest, double longest) {
  double best = 0, least = line_at(lengths, 0).sum;
  const double low = std::log(1e-4 / longest), high = std::log(1e4 / shortest);
  constexpr int kSteps = 240;
  const double step = (high - low) / kSteps;
  double at = low;
  for (int i = 0; i <= kSteps; ++i) {
    const double here = low + step * i;
    if (const double sum = line_at(lengths, std::exp(here)).sum; sum < least) {
      least = sum;
      at = here;
      best = std::exp(here);
    }
  }
  if (best > 0) {
    double left = at - step, right = at + step;
    for (int i = 0; i < 80; ++i) {
      const double third = (right - left) / 3;
      if (line_at(lengths, std::exp(left + third)).sum < line_at(lengths, std::exp(right - third)).sum)
        right -= third;
      else
        left += third;
    }
    if (const double refined = std::exp((left + right) / 2); line_at(lengths, refined).sum <= least) best = refined;
  }
  if (line_at(lengths, std::numeric_limits<double>::infinity()).sum <= least)
    best = std::numeric_limits<double>::infinity();
  return best;
}

}  // namespace

std::string_view name_of(Follows follows) {
  constexpr std::string_view kNames[] = {"unknown", "constant", "block", "blocks", "kernels"};
  return kNames[static_cast<std::size_t>(follows)];
}

std::optional<Fit> fit_latency(std::span<const Length> lengths) {
  std::vector<double> blocks;
  for (const Length& one : lengths) {
    if (!(one.block_ns > 0) || !(one.latency_ns > 0)) return std::nullopt;
    blocks.push_back(one.block_ns);
  }
  std::sort(blocks.begin(), blocks.end());
  if (static_cast<std::size_t>(std::unique(blocks.begin(), blocks.end()) - blocks.begin()) < 3) return std::nullopt;
  Fit fit;
  fit.lengths = lengths.size();
  const auto by_block = [](const Length& a, const Length& b) { return a.block_ns < b.block_ns; };
  fit.shortest_ns = std::min_element(lengths.begin(), lengths.end(), by_block)->block_ns;
  fit.longest_ns = std::max_element(lengths.begin(), lengths.end(), by_block)->block_ns;
  const double rate = best_rate(lengths, fit.shortest_ns, fit.longest_ns);
  const Line line = line_at(lengths, rate);
  fit.constant_ns = std::isinf(rate) ? 0 : line.scale;
  fit.per_block = std::isinf(rate) ? line.scale : line.scale * rate;
  // Linearised around the optimum: residuals are logarithms, so their derivatives are 1/f and x/f.
  double aa = 0, ab = 0, bb = 0;
  for (const Length& one : lengths) {
    const double value = value_at(fit, one.block_ns);
    aa += square(1 / value);
    ab += one.block_ns / square(value);
    bb += square(one.block_ns / value);
  }
  const auto freedom = static_cast<double>(lengths.size() - 2);
  const double determinant = aa * bb - ab * ab;
  const double error = determinant > 0 ? std::sqrt(line.sum / freedom * aa / determinant) : 0;
  const double reach = student_limit(0.025, freedom) * error;
  fit.per_block_interval = {std::max(0.0, fit.per_block - reach), fit.per_block + reach};
  return fit;
}

Follows what_follows(const Fit& fit, std::optional<double> growth) {
  if (fit.per_block * fit.longest_ns < kConstantShare * fit.constant_ns)
    return fit.per_block_interval.high * fit.longest_ns < kMaybeShare * fit.constant_ns ? Follows::constant
                                                                                        : Follows::unknown;
  if (fit.per_block_interval.low <= 0) return Follows::unknown;
  const bool grows = growth.has_value() && *growth >= 0.5, stays = growth.has_value() && *growth < 0.3;
  // Kernels of one or two waves are too similar to a block to be distinguished by the slope alone.
  if (fit.waves > 0 && !stays && (grows || fit.waves > 2) && reach_of(fit) >= 0.5 * fit.waves) return Follows::kernels;
  const bool may_be_one = fit.per_block_interval.low <= kAboutOneBlock && reach_of(fit) <= kTwoInARow;
  return may_be_one ? Follows::block : Follows::blocks;
}

}  // namespace weir::preempt
