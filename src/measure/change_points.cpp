#include "measure/change_points.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

namespace weir {
namespace {

// The share of the significance for a single step; the rest is for two steps at once (up and back), which no single
// step explains.
constexpr double kShareOfOne = 0.8;
constexpr double kMinStandardErrors = 2.75;  // minimum size of a step, in standard errors
constexpr int kSettlings = 3;                // repeated, because moving one step moves the next
constexpr std::size_t kMinForDrift = 16;
constexpr std::size_t kWindow = 2;  // neighbours on either side that a value is compared with
constexpr double kOutlier = 5;      // limit, in median distances from the neighbours
// Series without a change that a step is compared with: half of them independent, the others with lag-1 correlations
// evenly up to the highest. Those that look as correlated as the judged series count.
constexpr int kDrawn = 3'000, kAlike = 300;
constexpr double kIndependent = 0.5, kHighestCorrelation = 0.9;
// Steps at least this clear (F) are taken out before correlation is estimated: a step looks like correlation too.
constexpr double kClearStep = 12;
// Few runs hardly show correlation: they are judged more mildly, or nothing could be found; 20 and more more strictly.
constexpr double kFewRuns = 16, kStrict = 0.8;
// Draws have the length of the series; beyond this one, up to a tenth shorter, so that lengths share them.
constexpr std::size_t kEveryLength = 40;
constexpr double kLengthScale = 1.1;

// Sums of squares about the mean of any part, in constant time.
class Sums {
 public:
  explicit Sums(std::span<const double> values) : sum_(values.size() + 1), square_(values.size() + 1) {
    // About the middle value, so that the squares do not swamp the differences.
    const double middle = values.empty() ? 0 : values[values.size() / 2];
    for (std::size_t i = 0; i < values.size(); ++i) {
      const double value = values[i] - middle;
      sum_[i + 1] = sum_[i] + value;
      square_[i + 1] = square_[i] + value * value;
    }
  }
  double about_mean(std::size_t begin, std::size_t end) const {
    const double sum = sum_[end] - sum_[begin];
    return std::max(0.0, square_[end] - square_[begin] - sum * sum / static_cast<double>(end - begin));
  }

 private:
  std::vector<double> sum_, square_;
};

struct Fit {
  double rest = std::numeric_limits<double>::infinity();  // sum of squares that the steps do not explain
  std::size_t first = 0, second = 0;
};

Fit best_one(const Sums& sums, std::size_t count) {
  Fit best;
  for (std::size_t k = kMinPerLevel; k + kMinPerLevel <= count; ++k)
    if (const double rest = sums.about_mean(0, k) + sums.about_mean(k, count); rest < best.rest) best = {rest, k, 0};
  return best;
}

Fit best_two(const Sums& sums, std::size_t count) {
  Fit best;
  for (std::size_t j = kMinPerLevel; j + 2 * kMinPerLevel <= count; ++j) {
    const double left = sums.about_mean(0, j);
    for (std::size_t k = j + kMinPerLevel; k + kMinPerLevel <= count; ++k)
      if (const double rest = left + sums.about_mean(j, k) + sums.about_mean(k, count); rest < best.rest)
        best = {rest, j, k};
  }
  return best;
}

// F of the best fit: what each step explains, relative to the residual per degree of freedom.
double f_statistic(double all, const Fit& fit, std::size_t count, int steps) {
  const double freedom = static_cast<double>(count) - steps - 1;
  if (freedom <= 0 || all <= 0 || !std::isfinite(fit.rest)) return 0;
  // A residual this small relative to the total is rounding.
  return std::max(0.0, all - fit.rest) / steps / std::max(fit.rest / freedom, all * 1e-9);
}

void shuffle(std::vector<double>& values, SplitMix& random) {
  for (std::size_t k = values.size() - 1; k > 0; --k)
    std::swap(values[k], values[random.below(static_cast<std::uint32_t>(k + 1))]);
}

double share_as_clear(const std::vector<double>& ascending, double value) {
  const auto from = std::lower_bound(ascending.begin(), ascending.end(), value);
  return (static_cast<double>(ascending.end() - from) + 1) / (static_cast<double>(ascending.size()) + 1);
}

// Values far from their neighbours are pulled in to the edge of the noise. A median of five keeps steps in place.
std::vector<double> without_outliers(std::span<const double> values) {
  std::vector<double> centres(values.size()), distances(values.size());
  for (std::size_t i = 0; i < values.size(); ++i) {
    const std::size_t begin = i < kWindow ? 0 : i - kWindow, end = std::min(values.size(), i + kWindow + 1);
    centres[i] = median(values.subspan(begin, end - begin));
    distances[i] = std::fabs(values[i] - centres[i]);
  }
  const double limit = kOutlier * median(distances);
  for (std::size_t i = 0; i < values.size(); ++i)
    centres[i] = std::clamp(values[i], centres[i] - limit, centres[i] + limit);
  return centres;
}

double normal(SplitMix& random) {
  const double radius = std::sqrt(-2 * std::log(1 - random.fraction()));
  return radius * std::cos(2 * std::numbers::pi * random.fraction());
}

// F of the best step, or of the best two.
double clearness(std::span<const double> values, int steps) {
  const Sums sums(values);
  const std::size_t count = values.size();
  const Fit fit = steps == 1 ? best_one(sums, count) : best_two(sums, count);
  return f_statistic(sums.about_mean(0, count), fit, count, steps);
}

// Appends what is left of the values once their clear steps are taken out.
void append_rest(std::span<const double> values, std::vector<double>& rest) {
  const Sums sums(values);
  const std::size_t count = values.size();
  const Fit fit = best_one(sums, count);
  if (count >= 2 * kMinPerLevel && f_statistic(sums.about_mean(0, count), fit, count, 1) > kClearStep) {
    append_rest(values.first(fit.first), rest);
    append_rest(values.subspan(fit.first), rest);
    return;
  }
  const double level = mean(values);
  for (const double value : values) rest.push_back(value - level);
}

double lag1_beside_steps(std::span<const double> values) {
  std::vector<double> rest;
  append_rest(values, rest);
  double squares = 0, products = 0;
  for (std::size_t i = 0; i < rest.size(); ++i) {
    squares += rest[i] * rest[i];
    if (i > 0) products += rest[i] * rest[i - 1];
  }
  return squares > 0 ? products / squares : 0;
}

double mildness(std::size_t count) { return std::max(kStrict, kFewRuns / static_cast<double>(count)); }

// Whether a straight line through both levels fits better than the step between them. Too few values cannot decide this
// and count as a step.
bool is_rather_drift(std::span<const double> kept, const Sums& sums, double rest_of_step) {
  if (kept.size() < kMinForDrift) return false;
  const auto count = static_cast<double>(kept.size());
  double along = 0;
  for (std::size_t i = 0; i < kept.size(); ++i)
    along += (static_cast<double>(i) - (count - 1) / 2) * (kept[i] - kept[0]);
  const double spread = count * (count * count - 1) / 12;
  return sums.about_mean(0, kept.size()) - along * along / spread < rest_of_step;
}

// A split was found among several steps and by ranks, which ignore distances. Moves it to the best place by value
// between its neighbouring steps alone.
void settle(std::span<const double> values, std::vector<ChangePoint>& changes) {
  for (std::size_t i = 0; i < changes.size(); ++i) {
    const std::size_t begin = i == 0 ? 0 : changes[i - 1].index;
    const std::size_t end = i + 1 == changes.size() ? values.size() : changes[i + 1].index;
    changes[i].index = begin + best_one(Sums(values.subspan(begin, end - begin)), end - begin).first;
  }
}

}  // namespace

std::vector<ChangeDetector::Drawn> ChangeDetector::drawn(std::size_t count, int steps) const {
  SplitMix random(options_.seed * 0x9e3779b97f4a7c15U + count);
  std::vector<Drawn> all;
  std::vector<double> values(count);
  for (int i = 0; i < kDrawn; ++i) {
    const double place = (i + 0.5) / kDrawn;
    const double correlation =
        std::max(0.0, (place - kIndependent) / (1 - kIndependent)) * kHighestCorrelation;  // AR(1), variance 1
    double now = normal(random);
    for (double& value : values) {
      value = now;
      now = correlation * now + std::sqrt(1 - correlation * correlation) * normal(random);
    }
    const std::vector<double> trimmed = without_outliers(values);
    all.push_back({lag1_beside_steps(trimmed), clearness(trimmed, steps)});
  }
  std::ranges::sort(all, {}, &Drawn::lag1);
  return all;
}

// The posterior predictive p value of "no step, runs correlated by an unknown amount": the lag-1 correlation of a short
// series says little about the true one, and a plug-in estimate would be too low whenever a step is found by chance.
double ChangeDetector::share_by_correlation(std::span<const double> part, int steps) {
  std::size_t count = part.size();
  if (count > kEveryLength) {
    auto length = static_cast<double>(kEveryLength);
    while (length * kLengthScale <= static_cast<double>(count)) length *= kLengthScale;
    count = static_cast<std::size_t>(length);
  }
  std::vector<Drawn>& all = drawn_[{count, steps}];
  if (all.empty()) all = drawn(count, steps);
  const std::vector<double> trimmed = without_outliers(part);
  const double clear = clearness(trimmed, steps);
  const auto place = std::ranges::lower_bound(all, lag1_beside_steps(trimmed), {}, &Drawn::lag1) - all.begin();
  const auto begin = all.begin() + std::clamp<std::ptrdiff_t>(place - kAlike / 2, 0, kDrawn - kAlike);
  const auto as_clear =
      std::count_if(begin, begin + kAlike, [&](const Drawn& one) { return one.clear >= clear * (1 - 1e-9); });
  return (static_cast<double>(as_clear) + 1) / (kAlike + 1);
}

std::vector<double> ChangeDetector::shuffled(std::vector<double> ranks) const {
  const std::size_t count = ranks.size();
  std::vector<double> chance;
  SplitMix random(options_.seed * 0x9e3779b97f4a7c15U + count);
  for (int i = 0; i < options_.permutations; ++i) {
    shuffle(ranks, random);
    const Sums sums(ranks);
    chance.push_back(f_statistic(sums.about_mean(0, count), best_one(sums, count), count, 1));
  }
  std::sort(chance.begin(), chance.end());
  return chance;
}

// By value: up and back leaves the outer levels equal, so by ranks a short level would be lost in the noise. Stops as
// soon as chance has matched the fit too often.
ChangeDetector::Judged ChangeDetector::judge_two(std::span<const double> part) {
  const std::size_t count = part.size();
  if (count < 3 * kMinPerLevel) return {};
  const double limit = options_.significance * (1 - kShareOfOne);
  std::vector<double> values(part.begin(), part.end());
  const Sums own(values);
  const double all = own.about_mean(0, count);
  const Fit fit = best_two(own, count);
  const double clear =
      f_statistic(all, fit, count, 2) * (1 - 1e-9);  // the same values in the same order must count as equally clear
  SplitMix random(options_.seed * 0x9e3779b97f4a7c15U + count);
  const double draws = options_.permutations + 1.0;
  double as_clear = 1;
  for (int i = 0; i < options_.permutations && as_clear / draws <= limit; ++i) {
    shuffle(values, random);
    const Sums sums(values);
    if (f_statistic(all, best_two(sums, count), count, 2) >= clear) ++as_clear;
  }
  if (as_clear / draws > limit) return {};
  const double p_correlated = share_by_correlation(part, 2);
  if (p_correlated > limit * std::max(1.0, mildness(count))) return {};  // as strict as so few draws can be
  return {{fit.first, fit.second}, std::max(as_clear / draws, p_correlated)};
}

ChangeDetector::Judged ChangeDetector::judge_part(std::span<const double> part) {
  const std::size_t count = part.size();
  if (count < 2 * kMinPerLevel) return {};
  const std::vector<double> ranks = midranks(part);
  const Sums sums(ranks);
  const double all = sums.about_mean(0, count);
  if (all <= 0) return {};
  std::vector<double> sorted = ranks;
  std::sort(sorted.begin(), sorted.end());
  const bool has_ties = std::adjacent_find(sorted.begin(), sorted.end()) != sorted.end();
  std::vector<double> own;
  if (has_ties) {
    own = shuffled(sorted);
  } else if (!chances_.contains(count)) {
    chances_[count] = shuffled(sorted);
  }
  const std::vector<double>& chance = has_ties ? own : chances_[count];
  const Fit one = best_one(sums, count);
  const double limit = options_.significance * kShareOfOne;
  const double p_one = share_as_clear(chance, f_statistic(all, one, count, 1));
  if (p_one <= limit)
    if (const double p_correlated = share_by_correlation(part, 1); p_correlated <= limit * mildness(count))
      return {{one.first}, std::max(p_one, p_correlated)};
  return judge_two(part);
}

void ChangeDetector::split(std::span<const double> part, std::size_t offset, std::vector<ChangePoint>& found) {
  // Each split leaves parts of at least kMinPerLevel, so the depth is at most kLongestSeries / kMinPerLevel.
  const Judged judged = judge_part(part);
  std::size_t begin = 0;
  for (std::size_t i = 0; i <= judged.splits.size() && !judged.splits.empty(); ++i) {
    const std::size_t end = i < judged.splits.size() ? judged.splits[i] : part.size();
    split(part.subspan(begin, end - begin), offset + begin, found);
    if (i < judged.splits.size()) found.push_back({offset + end, 0, 0, 1, judged.p});
    begin = end;
  }
}

ChangeReport ChangeDetector::judge(std::span<const double> values, std::span<const double> noise) {
  ChangeReport report;
  const std::size_t skipped = values.size() > kLongestSeries ? values.size() - kLongestSeries : 0;
  values = values.subspan(skipped);
  if (noise.size() == values.size() + skipped) noise = noise.subspan(skipped);
  if (values.size() < 2 * kMinPerLevel) {
    report.reason = fmt::format("{} value{}: a change needs {} on either side", values.size(),
                                values.size() == 1 ? "" : "s", kMinPerLevel);
    return report;
  }
  // Changes are relative: a median twice as long is as far away as one half as long.
  std::vector<double> logs;
  for (const double value : values) {
    if (!(value > 0) || !std::isfinite(value)) {
      report.reason = "there are values that are not above 0";
      return report;
    }
    logs.push_back(std::log(value));
  }
  std::vector<double> known;
  for (const double error : noise)
    if (std::isfinite(error) && error >= 0) known.push_back(error * error);
  const double known_variance = known.empty() ? 0 : median(known);
  std::vector<ChangePoint> found;
  split(logs, 0, found);
  const std::vector<double> trimmed = without_outliers(logs);

  // Removes the least convincing step first: its two levels become one, and its neighbours are judged again.
  for (;;) {
    for (int i = 0; i < kSettlings; ++i) settle(trimmed, found);
    std::optional<std::size_t> worst;
    double least = std::numeric_limits<double>::infinity();
    for (std::size_t i = 0; i < found.size(); ++i) {
      const std::size_t begin = i == 0 ? 0 : found[i - 1].index, step = found[i].index;
      const std::size_t end = i + 1 == found.size() ? logs.size() : found[i + 1].index;
      ChangePoint& change = found[i];
      change.before = median(values.subspan(begin, step - begin));
      change.after = median(values.subspan(step, end - step));
      change.ratio = change.after / change.before;
      const double size = std::fabs(std::log(change.ratio));
      const auto kept = std::span<const double>(trimmed).subspan(begin, end - begin);
      const Sums sums(kept);
      const double rest = sums.about_mean(0, step - begin) + sums.about_mean(step - begin, kept.size());
      const double each = std::max(known_variance, rest / static_cast<double>(kept.size() - 2));
      const double error = std::sqrt(each / static_cast<double>(step - begin) + each / static_cast<double>(end - step));
      // Small steps that are found at all tend to look too large, so they must clearly exceed the threshold.
      const bool is_small = size < std::max(std::log1p(options_.threshold) + error, kMinStandardErrors * error);
      const bool is_drift = is_rather_drift(kept, sums, rest);
      if ((is_small || is_drift) && size < least) {
        least = size;
        worst = i;
      }
    }
    if (!worst) break;
    found.erase(found.begin() + static_cast<std::ptrdiff_t>(*worst));
  }
  for (ChangePoint& change : found) change.index += skipped;
  report.changes = std::move(found);
  if (report.changes.empty())
    if (const auto slow = trend(values); slow && slow->is_clear && std::fabs(slow->change) >= options_.threshold)
      report.drift = slow;
  return report;
}

}  // namespace weir
