#include "measure/scaling.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>

namespace weir {
namespace {

using Parameters = std::array<double, 3>;  // gamma, alpha, beta

struct Rule {
  Scaling scaling;
  const char* meaning;
};
constexpr std::array kRules{
    Rule{Scaling::grows,
         "weak scaling: work grows with the streams; 1 means that an iteration takes as long as at the first count"},
    Rule{Scaling::divided, "strong scaling: the same work is divided; efficiency is speedup over the ideal speedup"},
    Rule{Scaling::requests,
         "requests are spread over the streams; 1 means that each stream serves as many as at the first count"}};

std::vector<ScalingPoint> cleaned(std::span<const ScalingPoint> points) {
  std::map<int, std::pair<double, int>> by_streams;
  for (const ScalingPoint& point : points) {
    if (point.streams < 1 || !std::isfinite(point.throughput) || point.throughput <= 0) continue;
    auto& [sum, count] = by_streams[point.streams];
    sum += point.throughput;
    ++count;
  }
  std::vector<ScalingPoint> clean;
  for (const auto& [streams, sum] : by_streams) clean.push_back({streams, sum.first / sum.second});
  return clean;
}

double load_of(double n, const Parameters& p) { return 1 + p[1] * (n - 1) + p[2] * n * (n - 1); }

double squared_error(std::span<const ScalingPoint> points, const Parameters& p) {
  double sum = 0;
  for (const ScalingPoint& point : points) {
    const double n = point.streams;
    const double miss = point.throughput - p[0] * n / load_of(n, p);
    sum += miss * miss;
  }
  return sum;
}

// Solves the 3x3 system by elimination with pivoting; false if it is singular.
bool solve(std::array<std::array<double, 4>, 3> a, Parameters& x) {
  for (std::size_t column = 0; column < 3; ++column) {
    std::size_t pivot = column;
    for (std::size_t row = column + 1; row < 3; ++row)
      if (std::fabs(a[row][column]) > std::fabs(a[pivot][column])) pivot = row;
    if (!(std::fabs(a[pivot][column]) > 1e-300)) return false;
    std::swap(a[pivot], a[column]);
    for (std::size_t row = 0; row < 3; ++row) {
      if (row == column) continue;
      const double factor = a[row][column] / a[column][column];
      for (std::size_t k = column; k < 4; ++k) a[row][k] -= factor * a[column][k];
    }
  }
  for (std::size_t i = 0; i < 3; ++i) x[i] = a[i][3] / a[i][i];
  return true;
}

// Levenberg-Marquardt; alpha and beta are held at 0 while the descent would make them negative.
Parameters descend(std::span<const ScalingPoint> points, Parameters p) {
  double error = squared_error(points, p);
  double damping = 1e-3;
  for (int round = 0; round < 500 && damping < 1e12; ++round) {
    std::array<std::array<double, 4>, 3> normal{};
    for (const ScalingPoint& point : points) {
      const double n = point.streams;
      const double load = load_of(n, p);
      const double predicted = p[0] * n / load;
      const Parameters slope{n / load, -predicted * (n - 1) / load, -predicted * n * (n - 1) / load};
      const double miss = point.throughput - predicted;
      for (std::size_t i = 0; i < 3; ++i) {
        for (std::size_t k = 0; k < 3; ++k) normal[i][k] += slope[i] * slope[k];
        normal[i][3] += slope[i] * miss;
      }
    }
    for (std::size_t i = 0; i < 3; ++i) {
      if (i > 0 && p[i] <= 0 && normal[i][3] <= 0) {
        normal[i] = {};
        for (auto& row : normal) row[i] = 0;
        normal[i][i] = 1;
      } else {
        normal[i][i] += damping * normal[i][i] + 1e-30;
      }
    }
    Parameters step{};
    if (!solve(normal, step)) break;
    Parameters next{p[0] + step[0], std::max(0.0, p[1] + step[1]), std::max(0.0, p[2] + step[2])};
    const double next_error = next[0] > 0 ? squared_error(points, next) : error;
    if (next[0] > 0 && next_error < error) {
      const bool is_settled = error - next_error <= 1e-15 * error;
      p = next;
      error = next_error;
      damping = std::max(1e-12, damping / 5);
      if (is_settled) break;
    } else {
      damping *= 4;
    }
  }
  return p;
}

}  // namespace

std::optional<Scaling> scaling_named(std::string_view name) {
  for (const Rule& rule : kRules)
    if (name == name_of(rule.scaling)) return rule.scaling;
  return std::nullopt;
}

std::optional<UslFit> fit_usl(std::span<const ScalingPoint> all_points) {
  std::vector<ScalingPoint> points = cleaned(all_points);
  if (points.size() < kMinForUsl) return std::nullopt;
  // Throughputs range from 1 to 1e15, so they are normalized first.
  double scale = 0;
  for (const ScalingPoint& point : points) scale = std::max(scale, point.throughput);
  for (ScalingPoint& point : points) point.throughput /= scale;

  const double first = points.front().throughput / points.front().streams;
  // The error surface has a long curved valley between alpha and beta, so several starts are tried and the best wins.
  constexpr std::array<std::array<double, 2>, 6> kStarts{
      {{0, 0}, {0.01, 1e-4}, {0.1, 1e-3}, {0.5, 1e-2}, {1, 0}, {0, 0.05}}};
  Parameters best{first, 0, 0};
  double least = std::numeric_limits<double>::infinity();
  for (const auto& [alpha, beta] : kStarts) {
    const Parameters found = descend(points, {first, alpha, beta});
    const double error = squared_error(points, found);
    if (error < least) {
      least = error;
      best = found;
    }
  }

  UslFit fit{best[0] * scale, best[1], best[2], {}, {}, {}, false};
  double mean = 0;
  for (const ScalingPoint& point : points) mean += point.throughput / static_cast<double>(points.size());
  double spread = 0;
  for (const ScalingPoint& point : points) spread += (point.throughput - mean) * (point.throughput - mean);
  if (spread > 1e-24) fit.r_squared = 1 - least / spread;
  // With a smaller beta the peak would lie beyond a million streams, so the fit reports none.
  if (fit.beta > 1e-12) {
    const double peak = std::max(1.0, std::sqrt(std::max(0.0, 1 - fit.alpha) / fit.beta));
    fit.peak_streams = peak;
    fit.peak_throughput = fit.gamma * peak / load_of(peak, best);
    fit.is_peak_measured = peak >= points.front().streams && peak <= points.back().streams;
  }
  return fit;
}

ScalingAnalysis analyse_scaling(Scaling scaling, std::span<const ScalingPoint> all_points) {
  ScalingAnalysis analysis;
  analysis.scaling = scaling;
  for (const Rule& entry : kRules)
    if (entry.scaling == scaling) analysis.meaning = entry.meaning;
  const std::vector<ScalingPoint> points = cleaned(all_points);
  if (points.empty()) {
    analysis.knee_reason = "no point has a throughput";
    analysis.usl_reason = analysis.knee_reason;
    return analysis;
  }

  const ScalingPoint& origin = points.front();
  const double origin_per_stream = origin.throughput / origin.streams;
  const ScalingPoint* best = &origin;
  for (std::size_t i = 0; i < points.size(); ++i) {
    const ScalingPoint& point = points[i];
    ScalingRow row;
    row.streams = point.streams;
    row.throughput = point.throughput;
    row.per_stream = point.throughput / point.streams;
    row.speedup = point.throughput / origin.throughput;
    // In terms of throughput both rules have the same formula: X counts work, so a divided workload's shorter
    // iterations and a growing workload's larger ones both show as X(N).
    row.efficiency = row.per_stream / origin_per_stream;
    if (i > 0)
      row.marginal =
          (point.throughput - points[i - 1].throughput) / (point.streams - points[i - 1].streams) / origin_per_stream;
    analysis.rows.push_back(row);
    if (point.throughput > best->throughput) best = &point;
  }
  analysis.best_streams = best->streams;

  if (points.size() < 3) {
    analysis.knee_reason =
        fmt::format("{} stream count{}; a knee needs at least 3", points.size(), points.size() == 1 ? "" : "s");
  } else {
    const auto knee = std::find_if(points.begin(), points.end(), [&](const ScalingPoint& point) {
      return point.throughput >= kKneeLevel * best->throughput;
    });
    if (knee->streams == points.back().streams)
      analysis.knee_reason =
          fmt::format("throughput still rises at {} streams, the largest count measured", knee->streams);
    else
      analysis.knee = knee->streams;
  }

  analysis.usl = fit_usl(points);
  if (!analysis.usl)
    analysis.usl_reason = fmt::format("{} stream count{}; three parameters need at least {}", points.size(),
                                      points.size() == 1 ? "" : "s", kMinForUsl);
  return analysis;
}

}  // namespace weir
