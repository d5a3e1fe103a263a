#include "lab/fleet/judge/spread.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numbers>

#include "measure/student.h"

namespace weir::fleet {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr std::size_t kFew = 30;       // below, each value is compared with the others alone
constexpr std::size_t kForTail = 200;  // fewer values say nothing about their tails
constexpr double kPriorWeight = 6;     // the prior spread counts as much as so many peers
constexpr double kCautious = 12;       // degrees of freedom at most where the tails are not known
constexpr double kSmallestScale = 1e-3;
constexpr double kClearlyBad = 2.5;  // scales: what is left out when the peers' spread is measured

double median_of(std::vector<double>& values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  if (values.size() % 2 == 1) return *middle;
  return (*std::max_element(values.begin(), middle) + *middle) / 2;
}

// Qn of Rousseeuw and Croux (1993), with the factors for few values of Croux and Rousseeuw (1992).
double qn_scale(const std::vector<double>& values) {
  const std::size_t n = values.size();
  if (n < 2) return 0;
  std::vector<double> distances;
  for (std::size_t i = 0; i < n; ++i)
    for (std::size_t j = 0; j < i; ++j) distances.push_back(std::fabs(values[i] - values[j]));
  const std::size_t half = n / 2 + 1;
  const auto at = distances.begin() + static_cast<std::ptrdiff_t>(half * (half - 1) / 2 - 1);
  std::nth_element(distances.begin(), at, distances.end());
  constexpr std::array kFactors{0.399, 0.994, 0.512, 0.844, 0.611, 0.857, 0.669, 0.872};
  const double count = static_cast<double>(n);
  const double factor = n - 2 < kFactors.size() ? kFactors[n - 2]
                        : n % 2 == 1            ? count / (count + 1.4)
                                                : count / (count + 3.8);
  return factor * 2.2219 * *at;
}

// The standard deviation that this median of absolute deviations belongs to.
double mad_scale(std::vector<double> distances) { return distances.empty() ? 0 : 1.482602 * median_of(distances); }

struct Tail {
  double scale = 0, degrees = 1e9;
};

double log_density(double degrees) {
  if (degrees > 1e6) return -0.5 * std::log(2 * std::numbers::pi);
  return std::lgamma((degrees + 1) / 2) - std::lgamma(degrees / 2) - 0.5 * std::log(degrees * std::numbers::pi);
}

// The t distribution that fits the distances of values on the good side best. Nothing slow is among them, so they show
// the natural tail; the normal distribution is kept unless another is clearly likelier.
Tail fitted_tail(std::vector<double> distances, double start) {
  constexpr std::size_t kAlone = 40, kQuantiles = 400;
  constexpr double kClearlyLikelier = 2;
  std::sort(distances.begin(), distances.end());
  distances.resize(distances.size() - distances.size() / 1000 - 1);  // a few that are odd are not a tail
  // The largest stand for themselves; of the others one in the middle of each stretch stands for it.
  struct Point {
    double square, weight;
  };
  std::vector<Point> points;
  const std::size_t most = distances.size() > kAlone ? distances.size() - kAlone : 0;
  const std::size_t stretch = most / kQuantiles + 1;
  for (std::size_t from = 0; from < most; from += stretch) {
    const std::size_t count = std::min(stretch, most - from);
    points.push_back({std::pow(distances[from + count / 2], 2), static_cast<double>(count)});
  }
  for (std::size_t at = most; at < distances.size(); ++at) points.push_back({std::pow(distances[at], 2), 1});
  const double count = static_cast<double>(distances.size());
  double squares = 0;
  for (const Point& point : points) squares += point.weight * point.square;
  Tail best{std::max(std::sqrt(squares / count), kSmallestScale)};
  double highest = count * (log_density(best.degrees) - std::log(best.scale) - 0.5) + kClearlyLikelier;
  if (!(start > kSmallestScale)) return best;
  for (const double degrees : {2.0, 3.0, 4.0, 5.0, 6.0, 8.0, 11.0, 15.0, 25.0, 50.0}) {
    for (double part = 0.72; part < 1.12; part += 0.04) {
      const double scale = part * start;
      double sum = 0;
      for (const Point& point : points) sum += point.weight * std::log1p(point.square / (degrees * scale * scale));
      const double likelihood = count * (log_density(degrees) - std::log(scale)) - (degrees + 1) / 2 * sum;
      if (likelihood <= highest) continue;
      highest = likelihood;
      best = {scale, degrees};
    }
  }
  return best;
}

// The spread of the prior and of the values, each by its weight.
double moderated(double scale, double degrees, double prior) {
  return std::max(kSmallestScale,
                  std::sqrt((kPriorWeight * prior * prior + degrees * scale * scale) / (kPriorWeight + degrees)));
}

double own_noise(std::span<const double> noise, std::size_t at) {
  return at < noise.size() && std::isfinite(noise[at]) ? noise[at] : 0;
}

// `values` without NaN.
PeerSpread spread_of_many(const std::vector<double>& values, double prior) {
  PeerSpread spread;
  spread.count = values.size();
  std::vector<double> kept = values;
  std::vector<double> good, bad;
  for (int round = 0; round < 10; ++round) {
    spread.centre = median_of(kept);
    good.clear();
    bad.clear();
    for (const double each : kept) (each < spread.centre ? good : bad).push_back(std::fabs(each - spread.centre));
    std::vector<double> both = good;
    both.insert(both.end(), bad.begin(), bad.end());
    spread.robust = mad_scale(both);
    const double limit = spread.centre + kClearlyBad * std::max(spread.robust, kSmallestScale);
    const std::size_t before = kept.size();
    kept.clear();
    std::copy_if(values.begin(), values.end(), std::back_inserter(kept), [&](double each) { return each <= limit; });
    if (kept.size() == before) break;
  }
  const double count = static_cast<double>(kept.size());
  const double good_side = mad_scale(good), bad_side = mad_scale(bad);
  // Where the bad side is wider by nature, the good one's tail is too narrow for it.
  const double skew = good_side > 0 ? std::max(1.0, bad_side / good_side) : 1;
  Tail tail{spread.robust, std::min(kPriorWeight + 0.4 * count, kCautious)};
  if (values.size() >= kForTail && good.size() >= kForTail / 4) tail = fitted_tail(good, spread.robust);
  spread.scale = moderated(tail.scale * skew, 0.4 * count, prior);
  spread.degrees = std::min(tail.degrees, kPriorWeight + 0.4 * count);
  return spread;
}

// One value against few others.
PeerSpread spread_of_few(std::vector<double> others, double prior) {
  PeerSpread spread;
  spread.count = others.size();
  spread.robust = others.size() < 2 ? kNan : qn_scale(others);
  const double degrees = others.size() < 2 ? 0 : 0.7 * static_cast<double>(others.size() - 1);
  // The centre is not known exactly either.
  spread.scale = moderated(others.size() < 2 ? 0 : spread.robust, degrees, prior) *
                 std::sqrt(1 + std::numbers::pi / 2 / static_cast<double>(others.size()));
  spread.degrees = std::min(kPriorWeight + degrees, kCautious);
  spread.centre = median_of(others);
  return spread;
}

Deviation deviation_of(double value, const PeerSpread& spread, double noise, double typical_noise) {
  // Many peers have the typical noise in their spread; a device that is noisier than they are proves less. Few peers
  // may agree by chance: what a repetition may show is then the least that counts.
  const double more = std::max(0.0, noise * noise - typical_noise * typical_noise);
  const double least = spread.count < kFew ? noise : 0;
  const double scale = std::sqrt(std::max(spread.scale * spread.scale + more, least * least));
  const double t = (value - spread.centre) / scale;
  return {value - spread.centre, t < 1 ? 0.5 : student_above(t, spread.degrees)};
}

}  // namespace

Deviations deviations(std::span<const double> values, std::span<const double> noise, double prior) {
  Deviations found;
  found.each.assign(values.size(), {kNan, kNan});
  std::vector<double> known, noises;
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (!std::isfinite(values[i])) continue;
    known.push_back(values[i]);
    noises.push_back(own_noise(noise, i));
  }
  found.spread.count = known.size();
  found.spread.robust = kNan;
  if (known.empty()) return found;
  const double typical_noise = median_of(noises);
  if (known.size() >= kFew) {
    found.spread = spread_of_many(known, prior);
    for (std::size_t i = 0; i < values.size(); ++i)
      if (std::isfinite(values[i]))
        found.each[i] = deviation_of(values[i], found.spread, own_noise(noise, i), typical_noise);
    return found;
  }
  std::vector<double> all = known;
  found.spread.centre = median_of(all);
  if (known.size() < 2) return found;
  found.spread.robust = qn_scale(known);
  found.spread.scale = moderated(found.spread.robust, 0.7 * static_cast<double>(known.size() - 1), prior);
  for (std::size_t i = 0, at = 0; i < values.size(); ++i) {
    if (!std::isfinite(values[i])) continue;
    std::vector<double> others = known;
    others.erase(others.begin() + static_cast<std::ptrdiff_t>(at++));
    found.each[i] = deviation_of(values[i], spread_of_few(others, prior), own_noise(noise, i), typical_noise);
  }
  return found;
}

double passing_p(std::vector<double> p_values, double level) {
  std::sort(p_values.begin(), p_values.end());
  double passing = -1;
  for (std::size_t i = 0; i < p_values.size(); ++i)
    if (p_values[i] <= level * static_cast<double>(i + 1) / static_cast<double>(p_values.size())) passing = p_values[i];
  return passing;
}

}  // namespace weir::fleet
