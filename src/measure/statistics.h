// Statistics of a list of samples: summary, tests, trend, fairness. Knows only numbers, not their units or meaning. The
// formulas, their references and their limits are in docs/statistics.md.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "measure/bootstrap.h"

namespace weir {

// All of these return NaN for an empty list (and `standard_deviation` for one sample): results write that as null.
double mean(std::span<const double> samples);
double standard_deviation(std::span<const double> samples);  // divides by n - 1
// Type 7 of Hyndman and Fan, the default of numpy and R: linear between the two nearest order statistics.
double quantile(std::span<const double> samples, double level);
double quantile_sorted(std::span<const double> ascending, double level);
double median(std::span<const double> samples);

// Rank of each sample, from 1; equal samples share the mean of their ranks.
std::vector<double> midranks(std::span<const double> samples);

struct Summary {
  std::size_t count = 0;
  double mean = 0;
  double p50 = 0;
  double p95 = 0;
  double p99 = 0;
  double min = 0;
  double max = 0;
  double std = 0;
  // Bootstrap 95 % intervals; nothing for fewer than kMinForInterval samples.
  std::optional<Interval> mean_interval;
  std::optional<Interval> p50_interval;
  std::optional<Interval> p95_interval;
  std::optional<Interval> p99_interval;
};
// Nothing for an empty list.
std::optional<Summary> summarise(std::span<const double> samples, const BootstrapOptions& options = {});

struct RankTest {
  double u = 0;  // pairs in which the first list's sample is larger, ties count one half
  double p = 1;  // two-sided
  bool is_exact = false;
};
// Mann-Whitney U. Exact for up to 20 samples in all without ties; otherwise normal, with tie and continuity correction.
// `inflation` is how many times larger the variance of U is than for independent samples (see joint_inflation).
RankTest mann_whitney(std::span<const double> first, std::span<const double> second, double inflation = 1);

// Variance inflation of U when both lists are correlated in time: their own inflations, weighted by 1/n.
double joint_inflation(const Dependence& first, std::size_t first_count, const Dependence& second,
                       std::size_t second_count);

// Holm's step-down correction: p-values in, adjusted p-values out, in the same order.
std::vector<double> holm(std::span<const double> p_values);

// Jain's fairness index, 1/n .. 1; nothing if there are no shares, a negative one, or all are 0.
std::optional<double> jain_index(std::span<const double> shares);

// p99 / p50: 1 means no tail; above 1.5 the tail deserves attention. Nothing if the median is 0.
std::optional<double> noise_ratio(std::span<const double> samples);

struct Trend {
  double slope = 0;       // Theil-Sen, per sample
  double change = 0;      // slope over the whole run, relative to the median: 0.04 is 4 % more at the end
  double p = 1;           // Mann-Kendall, two-sided, widened for serial correlation around the trend
  bool is_clear = false;  // p < 0.01
  double end_ratio = 1;   // median of the last fifth over that of the first
};
// Nothing for fewer than 10 samples or a median of 0. Long runs are first reduced to 300 medians of neighbours.
std::optional<Trend> trend(std::span<const double> samples);
// "the first iterations took 2.1 times as long as the last"; `ratio` is the last time over the first.
std::string drift_text(double ratio);

}  // namespace weir
