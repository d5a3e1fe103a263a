#include "measure/statistics.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <numeric>

namespace weir {
namespace {

constexpr double kNoValue = std::numeric_limits<double>::quiet_NaN();

double two_sided_normal(double z) { return std::min(1.0, std::erfc(std::fabs(z) / std::numbers::sqrt2)); }

// Sum of t^3 - t over the groups of equal values; `sorted` is any ascending list.
double tie_term(std::span<const double> sorted) {
  double sum = 0;
  for (std::size_t i = 0; i < sorted.size();) {
    std::size_t end = i + 1;
    while (end < sorted.size() && sorted[end] == sorted[i]) ++end;
    const auto group = static_cast<double>(end - i);
    sum += group * group * group - group;
    i = end;
  }
  return sum;
}

// P(U <= u) without ties, by counting the arrangements of n and m samples with each value of U.
double exact_probability(std::size_t n, std::size_t m, double u) {
  // ways[j][v]: arrangements of the samples so far, j of them from the first list, with U = v.
  const std::size_t most = n * m;
  std::vector<std::vector<double>> ways(n + 1, std::vector<double>(most + 1, 0.0));
  ways[0][0] = 1;
  for (std::size_t taken = 0; taken < n + m; ++taken) {
    auto next = std::vector<std::vector<double>>(n + 1, std::vector<double>(most + 1, 0.0));
    for (std::size_t j = 0; j <= std::min(n, taken); ++j) {
      const std::size_t from_second = taken - j;
      if (from_second > m) continue;
      for (std::size_t v = 0; v <= most; ++v) {
        if (ways[j][v] == 0) continue;
        if (from_second < m) next[j][v] += ways[j][v];
        // A sample of the first list is larger than every sample of the second that came before it.
        if (j < n && v + from_second <= most) next[j + 1][v + from_second] += ways[j][v];
      }
    }
    ways = std::move(next);
  }
  double below = 0;
  double all = 0;
  for (std::size_t v = 0; v <= most; ++v) {
    all += ways[n][v];
    if (static_cast<double>(v) <= u) below += ways[n][v];
  }
  return below / all;
}

// Medians of `groups` equal groups of neighbours.
std::vector<double> neighbour_medians(std::span<const double> samples, std::size_t groups) {
  std::vector<double> medians;
  medians.reserve(groups);
  for (std::size_t i = 0; i < groups; ++i) {
    const std::size_t begin = i * samples.size() / groups;
    const std::size_t end = (i + 1) * samples.size() / groups;
    medians.push_back(median(samples.subspan(begin, end - begin)));
  }
  return medians;
}

}  // namespace

double mean(std::span<const double> samples) {
  if (samples.empty()) return kNoValue;
  // Deviations from the first sample keep the sum small: nanoseconds since boot would lose digits.
  double sum = 0;
  for (const double sample : samples) sum += sample - samples.front();
  return samples.front() + sum / static_cast<double>(samples.size());
}

double standard_deviation(std::span<const double> samples) {
  if (samples.size() < 2) return kNoValue;
  const double centre = mean(samples);
  double sum = 0;
  for (const double sample : samples) sum += (sample - centre) * (sample - centre);
  return std::sqrt(sum / static_cast<double>(samples.size() - 1));
}

double quantile_sorted(std::span<const double> ascending, double level) {
  if (ascending.empty()) return kNoValue;
  const double place = std::clamp(level, 0.0, 1.0) * static_cast<double>(ascending.size() - 1);
  const auto index = static_cast<std::size_t>(place);
  if (index + 1 >= ascending.size()) return ascending.back();
  return ascending[index] + (place - static_cast<double>(index)) * (ascending[index + 1] - ascending[index]);
}

double quantile(std::span<const double> samples, double level) {
  if (samples.empty()) return kNoValue;
  std::vector<double> values(samples.begin(), samples.end());
  const double place = std::clamp(level, 0.0, 1.0) * static_cast<double>(values.size() - 1);
  const auto index = static_cast<std::size_t>(place);
  const auto low = values.begin() + static_cast<std::ptrdiff_t>(index);
  std::nth_element(values.begin(), low, values.end());
  if (index + 1 >= values.size()) return *low;
  const double above = *std::min_element(low + 1, values.end());
  return *low + (place - static_cast<double>(index)) * (above - *low);
}

double median(std::span<const double> samples) { return quantile(samples, 0.5); }

std::vector<double> midranks(std::span<const double> samples) {
  std::vector<std::size_t> order(samples.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(),
            [&](std::size_t left, std::size_t right) { return samples[left] < samples[right]; });
  std::vector<double> ranks(samples.size());
  for (std::size_t i = 0; i < order.size();) {
    std::size_t end = i + 1;
    while (end < order.size() && samples[order[end]] == samples[order[i]]) ++end;
    const double shared = static_cast<double>(i + 1 + end) / 2;
    for (; i < end; ++i) ranks[order[i]] = shared;
  }
  return ranks;
}

std::optional<Summary> summarise(std::span<const double> samples, const BootstrapOptions& options) {
  if (samples.empty()) return std::nullopt;
  std::vector<double> ascending(samples.begin(), samples.end());
  std::sort(ascending.begin(), ascending.end());
  Summary summary;
  summary.count = samples.size();
  summary.mean = mean(samples);
  summary.p50 = quantile_sorted(ascending, 0.50);
  summary.p95 = quantile_sorted(ascending, 0.95);
  summary.p99 = quantile_sorted(ascending, 0.99);
  summary.min = ascending.front();
  summary.max = ascending.back();
  summary.std = standard_deviation(samples);
  if (const auto intervals = summary_intervals(samples, options)) {
    summary.mean_interval = intervals->mean;
    summary.p50_interval = intervals->p50;
    summary.p95_interval = intervals->p95;
    summary.p99_interval = intervals->p99;
  }
  return summary;
}

RankTest mann_whitney(std::span<const double> first, std::span<const double> second, double inflation) {
  RankTest test;
  if (first.empty() || second.empty()) return test;
  std::vector<double> all(first.begin(), first.end());
  all.insert(all.end(), second.begin(), second.end());
  const std::vector<double> ranks = midranks(all);
  const auto n = static_cast<double>(first.size());
  const auto m = static_cast<double>(second.size());
  const double rank_sum =
      std::accumulate(ranks.begin(), ranks.begin() + static_cast<std::ptrdiff_t>(first.size()), 0.0);
  test.u = rank_sum - n * (n + 1) / 2;

  std::sort(all.begin(), all.end());
  const double ties = tie_term(all);
  if (ties == 0 && all.size() <= 20 && inflation <= 1) {
    test.is_exact = true;
    test.p = std::min(1.0, 2 * exact_probability(first.size(), second.size(), std::min(test.u, n * m - test.u)));
    return test;
  }
  const double total = n + m;
  const double variance = n * m / 12 * (total + 1 - ties / (total * (total - 1))) * std::max(1.0, inflation);
  if (!(variance > 0)) return test;  // all samples are equal
  const double distance = std::max(0.0, std::fabs(test.u - n * m / 2) - 0.5);
  test.p = two_sided_normal(distance / std::sqrt(variance));
  return test;
}

double joint_inflation(const Dependence& first, std::size_t first_count, const Dependence& second,
                       std::size_t second_count) {
  if (first_count == 0 || second_count == 0) return 1;
  const double a = 1 / static_cast<double>(first_count);
  const double b = 1 / static_cast<double>(second_count);
  return (first.inflation * a + second.inflation * b) / (a + b);
}

std::vector<double> holm(std::span<const double> p_values) {
  std::vector<std::size_t> order(p_values.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(),
            [&](std::size_t left, std::size_t right) { return p_values[left] < p_values[right]; });
  std::vector<double> adjusted(p_values.size());
  double largest = 0;
  for (std::size_t i = 0; i < order.size(); ++i) {
    largest = std::max(largest, static_cast<double>(order.size() - i) * p_values[order[i]]);
    adjusted[order[i]] = std::min(1.0, largest);
  }
  return adjusted;
}

std::optional<double> jain_index(std::span<const double> shares) {
  double sum = 0;
  double squares = 0;
  for (const double share : shares) {
    if (!(share >= 0)) return std::nullopt;
    sum += share;
    squares += share * share;
  }
  if (!(squares > 0)) return std::nullopt;
  return sum * sum / (static_cast<double>(shares.size()) * squares);
}

std::optional<double> noise_ratio(std::span<const double> samples) {
  std::vector<double> ascending(samples.begin(), samples.end());
  std::sort(ascending.begin(), ascending.end());
  const double middle = quantile_sorted(ascending, 0.5);
  if (ascending.empty() || middle == 0) return std::nullopt;
  return quantile_sorted(ascending, 0.99) / middle;
}

std::optional<Trend> trend(std::span<const double> samples) {
  constexpr std::size_t kMax = 300;
  const double middle = median(samples);
  if (samples.size() < 10 || middle == 0) return std::nullopt;
  // Slopes between all pairs cost n^2; 300 medians preserve the answer and take about a millisecond.
  const std::vector<double> points =
      samples.size() <= kMax ? std::vector<double>(samples.begin(), samples.end()) : neighbour_medians(samples, kMax);
  const std::size_t count = points.size();
  std::vector<double> slopes;
  slopes.reserve(count * (count - 1) / 2);
  double score = 0;
  for (std::size_t i = 0; i < count; ++i) {
    for (std::size_t j = i + 1; j < count; ++j) {
      const double rise = points[j] - points[i];
      slopes.push_back(rise / static_cast<double>(j - i));
      score += rise > 0 ? 1 : rise < 0 ? -1 : 0;
    }
  }
  const double slope = median(slopes);
  Trend found;
  const auto n = static_cast<double>(count);
  found.slope = slope * n / static_cast<double>(samples.size());
  found.change = slope * (n - 1) / std::fabs(middle);

  // Mann-Kendall takes slow wandering for a trend unless its variance is widened by the residuals' correlation.
  std::vector<double> residuals(points);
  for (std::size_t i = 0; i < count; ++i) residuals[i] -= slope * static_cast<double>(i);
  std::vector<double> ascending(points);
  std::sort(ascending.begin(), ascending.end());
  // t (t - 1) (2 t + 5) summed over groups of equal values.
  double ties = 0;
  for (std::size_t i = 0; i < count;) {
    std::size_t end = i + 1;
    while (end < count && ascending[end] == ascending[i]) ++end;
    const auto group = static_cast<double>(end - i);
    ties += group * (group - 1) * (2 * group + 5);
    i = end;
  }
  const double variance = (n * (n - 1) * (2 * n + 5) - ties) / 18 * serial_dependence(residuals).inflation;
  if (variance > 0) found.p = two_sided_normal(std::max(0.0, std::fabs(score) - 1) / std::sqrt(variance));
  found.is_clear = found.p < 0.01;
  const std::size_t fifth = samples.size() / 5;
  found.end_ratio = median(samples.last(fifth)) / median(samples.first(fifth));
  return found;
}

std::string drift_text(double ratio) {
  const bool is_slower = ratio > 1;
  const double times = is_slower ? ratio : 1 / ratio;
  return fmt::format("the {} iterations took {:.{}f} times as long as the {}", is_slower ? "last" : "first", times,
                     times < 1.5 ? 2 : 1, is_slower ? "first" : "last");
}

}  // namespace weir
