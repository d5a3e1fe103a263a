#include "lab/try/race.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "measure/statistics.h"
#include "measure/student.h"

namespace weir::trials {
namespace {

constexpr std::size_t kMinToLeave = 4;

// Logarithms of a setting's values, as times: more is slower.
struct Pace {
  std::size_t count = 0;
  double mean = 0, squares = 0;  // squares: sum of squared deviations
};

Pace pace_of(const std::vector<double>& values, bool is_less_better) {
  Pace pace;
  pace.count = values.size();
  const double sign = is_less_better ? 1 : -1;
  for (const double value : values) pace.mean += sign * std::log(value) / static_cast<double>(pace.count);
  for (const double value : values) pace.squares += std::pow(sign * std::log(value) - pace.mean, 2);
  return pace;
}

std::vector<Pace> paces_of(const Values& values, const RaceOptions& options) {
  std::vector<Pace> paces;
  for (const auto& of_setting : values) paces.push_back(pace_of(of_setting, options.is_less_better));
  return paces;
}

// The spread between processes: of all settings, or of a setting's own where that is larger.
struct PooledVariance {
  double degrees = 0, squares = 0;

  explicit PooledVariance(const std::vector<Pace>& paces) {
    for (const Pace& pace : paces) {
      if (pace.count > 1) degrees += static_cast<double>(pace.count - 1);
      squares += pace.squares;
    }
  }

  double variance() const { return degrees > 0 ? squares / degrees : std::numeric_limits<double>::infinity(); }
  double variance_of(const Pace& pace) const {
    return pace.count < 2 ? variance() : std::max(variance(), pace.squares / static_cast<double>(pace.count - 1));
  }
};

bool is_clearly_slower(const Pace& slow, const Pace& fast, const PooledVariance& spread, double threshold,
                       double level) {
  const double difference = slow.mean - fast.mean;
  if (std::min(slow.count, fast.count) < kMinToLeave || difference <= std::log1p(threshold)) return false;
  const double error = std::sqrt(spread.variance_of(slow) / static_cast<double>(slow.count) +
                                 spread.variance_of(fast) / static_cast<double>(fast.count));
  return error == 0 || student_above(difference / error, spread.degrees) < level;
}

}  // namespace

std::vector<bool> wanted_by_race(const Values& values, const RaceOptions& options) {
  const std::size_t settings = values.size();
  const std::vector<Pace> paces = paces_of(values, options);
  const PooledVariance spread(paces);
  std::vector<bool> is_wanted(settings);
  for (std::size_t i = 0; i < settings; ++i) is_wanted[i] = values[i].size() < options.trials;
  // The best of those that could leave others behind; a lucky first value is none.
  std::size_t best = settings;
  for (std::size_t i = 0; i < settings; ++i)
    if (paces[i].count >= kMinToLeave && (best == settings || paces[i].mean < paces[best].mean)) best = i;
  if (best == settings) return is_wanted;

  // A setting that looks slower than the baseline leaves only with as many trials as prove that.
  const double others = static_cast<double>(settings - 1);
  const auto is_proven = [&](std::size_t i) {
    return mann_whitney(values[i], values[0]).p * others < options.compare.significance;
  };
  const auto looks_slower = [&](std::size_t i) {
    return paces[0].count > 0 && paces[i].mean > paces[0].mean + std::log1p(options.compare.threshold);
  };
  // Stricter than the verdict, because it is asked after every round.
  const double level = 0.02 * options.compare.significance / others;
  bool is_decided = true;  // nothing but the best and the baseline is left
  for (std::size_t i = 1; i < settings; ++i) {
    if (is_wanted[i] && is_clearly_slower(paces[i], paces[best], spread, options.compare.threshold, level) &&
        (!looks_slower(i) || is_proven(i)))
      is_wanted[i] = false;
    if (i != best && is_wanted[i]) is_decided = false;
  }
  if (!is_decided) return is_wanted;
  // Two are left at most. If they are clearly apart, more trials would not change the answer.
  if (best != 0 && is_proven(best) &&
      is_clearly_slower(paces[0], paces[best], spread, options.compare.threshold, level))
    is_wanted.assign(settings, false);
  if (settings == 2 && best == 0 && !is_wanted[1] && values[1].size() < options.trials)
    is_wanted.assign(settings, false);
  return is_wanted;
}

std::vector<Change> compare_to_baseline(const Values& values, const RaceOptions& options) {
  std::vector<Change> changes(values.size());
  std::vector<Change*> judged;
  for (std::size_t i = 0; i < values.size(); ++i) {
    changes[i].is_less_better = options.is_less_better;
    if (i == 0) {
      changes[i].test_count = values[i].size();
      if (!values[i].empty()) changes[i].test_median = median(values[i]);
      continue;
    }
    measure_processes(values[0], values[i], options.compare, changes[i]);
    judged.push_back(&changes[i]);
  }
  decide(judged, options.compare);
  return changes;
}

std::vector<Effect> effects_of(const Design& design, const Values& values, const RaceOptions& options) {
  std::vector<Effect> effects;
  if (std::count_if(design.factors.begin(), design.factors.end(),
                    [](const Factor& factor) { return factor.values.size() > 1; }) < 2)
    return effects;
  const std::vector<Pace> paces = paces_of(values, options);
  const PooledVariance spread(paces);
  std::map<Setting, std::size_t> places;
  for (std::size_t i = 0; i < design.settings.size(); ++i) places.emplace(design.settings[i], i);
  for (std::size_t factor = 0; factor < design.factors.size(); ++factor) {
    for (std::uint32_t value = 1; value < design.factors[factor].values.size(); ++value) {
      Effect effect{factor, value, 0, {}};
      effect.change.is_less_better = options.is_less_better;
      double weights = 0, sum = 0;
      std::vector<double> differences;
      for (std::size_t i = 0; i < design.settings.size(); ++i) {
        if (design.settings[i][factor] != value) continue;
        Setting other = design.settings[i];
        other[factor] = 0;
        const auto place = places.find(other);
        if (place == places.end() || values[i].empty() || values[place->second].empty()) continue;
        const Pace &with = paces[i], &without = paces[place->second];
        const double weight = 1 / (1 / static_cast<double>(with.count) + 1 / static_cast<double>(without.count));
        differences.push_back(with.mean - without.mean);
        sum += weight * differences.back();
        weights += weight;
        effect.change.test_count += with.count;
        effect.change.baseline_count += without.count;
      }
      effect.pairs = differences.size();
      Change& change = effect.change;
      if (effect.pairs == 0 || spread.degrees < 2) {
        change.verdict = Verdict::not_comparable;
        change.reason = "too few trials of settings that differ in nothing else";
        effects.push_back(std::move(effect));
        continue;
      }
      const double mean_difference = sum / weights;
      double error = std::sqrt(spread.variance() / weights), degrees = spread.degrees;
      // Where the effect depends on the other factors, the settings differ by more than their processes do.
      if (effect.pairs > 2) {
        const double between = standard_deviation(differences) / std::sqrt(static_cast<double>(effect.pairs));
        if (between > error) {
          error = between;
          degrees = static_cast<double>(effect.pairs - 1);
        }
      }
      const double reach = student_limit(0.025, degrees) * error;
      const double sign = options.is_less_better ? 1 : -1;
      change.ratio = std::exp(sign * mean_difference);
      change.interval = Interval{std::exp(sign * mean_difference - reach), std::exp(sign * mean_difference + reach)};
      change.p = error == 0 ? (mean_difference == 0 ? 1.0 : 0.0)
                            : 2 * student_above(std::fabs(mean_difference) / error, degrees);
      effects.push_back(std::move(effect));
    }
  }
  std::vector<Change*> judged;
  for (Effect& effect : effects) judged.push_back(&effect.change);
  decide(judged, options.compare);
  for (Effect& effect : effects)
    if (effect.change.verdict == Verdict::ambiguous) effect.change.reason = "too noisy to tell; more trials may";
  return effects;
}

}  // namespace weir::trials
