#include "lab/preempt/verdict.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "base/units.h"
#include "lab/preempt/curve.h"

namespace weir::preempt {
namespace {

constexpr double kPartOfBlock = 0.5;
constexpr double kSame = 0.2;         // smaller relative differences of two p99 do not count
constexpr double kNoisyGain = 0.1;    // interruption makes nobody faster, so larger gains are noise
constexpr double kUnseenLoss = 0.02;  // of a victim's throughput

// Two significant digits, without an exponent: 0.031, 1.5, 1900.
std::string short_number(double value) {
  if (!(std::fabs(value) >= 100)) return fmt::format("{:.2g}", value);
  const double unit = std::pow(10, std::floor(std::log10(std::fabs(value))) - 1);
  return fmt::format("{:.0f}", std::round(value / unit) * unit);
}

std::string blocks_words(const Fit& fit) {
  return fmt::format("blocks of {} to {}", format_duration(fit.shortest_ns), format_duration(fit.longest_ns));
}

std::string quantile_words(double level) { return level == 0.5 ? "the median" : level == 0.9 ? "p90" : "p99"; }

std::string slope_words(const Fit& fit) {
  return fmt::format("{} grows by {} of a block time, 95 % {} to {}, over {}", quantile_words(fit.level),
                     short_number(fit.per_block), short_number(fit.per_block_interval.low),
                     short_number(fit.per_block_interval.high), blocks_words(fit));
}

// What the urgent command waits for, as the end of a sentence.
std::string wait_words(const Curve& curve) {
  if (!curve.fit) return "";
  const Fit& fit = *curve.fit;
  switch (curve.follows) {
    case Follows::constant:
      return fmt::format("latency does not follow block time: {} is about {} over {}", quantile_words(fit.level),
                         format_duration(value_at(fit, std::sqrt(fit.shortest_ns * fit.longest_ns))),
                         blocks_words(fit));
    case Follows::block:
      return fmt::format("{}: {}",
                         reach_of(fit) < kPartOfBlock
                             ? "latency follows block time, though by less than a block"
                             : "it does not preempt a running block, latency follows block time",
                         slope_words(fit));
    case Follows::blocks:
      return fmt::format("it waits for several blocks: {}", slope_words(fit));
    case Follows::kernels:
      return fmt::format("it waits for whole kernels, about {:.1f} of {} waves: {}", reach_of(fit) / fit.waves,
                         fit.waves, slope_words(fit));
    case Follows::unknown:
      break;
  }
  return fmt::format("what latency follows is not clear: {}", slope_words(fit));
}

// Latencies over block time, for the victims with the most lengths observed.
struct Axis {
  std::vector<Length> lengths;
  int waves = 0;
  double level = 0.99;
  bool is_to_start = true;
};

double block_of(const Point& point) {
  return static_cast<double>(point.observation.block_ns > 0 ? point.observation.block_ns : point.victim.block_ns);
}

// `level` is the highest quantile to use; it is lower where a point has too few requests for it.
Axis longest_axis(const Curve& curve, double level) {
  std::map<std::pair<VictimKind, int>, std::vector<const Point*>> groups;
  for (const Point& point : curve.points) {
    // The latency of an overloaded point only shows how long it was observed.
    if (!point.failure.empty() || point.to_end.count == 0 || point.is_overloaded) continue;
    const int waves = point.victim.kind == VictimKind::persistent ? 0 : point.victim.waves;
    groups[{point.victim.kind, waves}].push_back(&point);
  }
  const std::vector<const Point*>* most = nullptr;
  Axis axis;
  for (const auto& [group, points] : groups) {
    if (most != nullptr && points.size() <= most->size()) continue;
    most = &points;
    axis.waves = group.second;
  }
  if (most == nullptr) return axis;
  const auto all = [&](const auto& has) { return std::all_of(most->begin(), most->end(), has); };
  axis.is_to_start = all([](const Point* point) { return point->to_start.count == point->to_end.count; });
  const auto of = [&](const Point* point) -> const Quantiles& {
    return axis.is_to_start ? point->to_start : point->to_end;
  };
  axis.level = level;
  for (const Point* point : *most) axis.level = std::min(axis.level, tail_level(of(point).count));
  for (const Point* point : *most)
    axis.lengths.push_back({block_of(*point), quantile_at(of(point), axis.level).value_or(0)});
  return axis;
}

// The exponent of latency over waves, if one block time was observed with several: 1 follows the kernel, 0 does not.
std::optional<double> growth_with_waves(const Curve& curve) {
  std::map<std::int64_t, std::pair<const Point*, const Point*>> ends;  // fewest and most waves, by block time
  for (const Point& point : curve.points) {
    if (point.victim.kind != VictimKind::waves || !point.failure.empty() || !point.to_end.p50_ns || point.is_overloaded)
      continue;
    auto& [fewest, most] = ends.try_emplace(point.victim.block_ns, &point, &point).first->second;
    if (point.victim.waves < fewest->victim.waves) fewest = &point;
    if (point.victim.waves > most->victim.waves) most = &point;
  }
  std::optional<double> found;
  int widest = 3;  // times as many waves: smaller ratios mean nothing
  for (const auto& [block, pair] : ends) {
    const auto& [fewest, most] = pair;
    const int factor = most->victim.waves / fewest->victim.waves;
    if (factor <= widest || *fewest->to_end.p50_ns <= 0 || *most->to_end.p50_ns <= 0) continue;
    widest = factor;
    found = std::log(*most->to_end.p50_ns / *fewest->to_end.p50_ns) /
            std::log(static_cast<double>(most->victim.waves) / fewest->victim.waves);
  }
  return found;
}

// What a mechanism does to the urgent command behind one victim.
struct Effect {
  const Point* point;
  std::optional<double> ratio;  // of this over the other; nothing where requests come faster than they pass
  bool is_better, is_worse;
};

struct Compared {
  std::vector<Effect> effects;  // by victim
  std::size_t victims = 0, better = 0, worse = 0;
  std::size_t overloaded = 0;              // with this mechanism: these victims have no ratio
  std::size_t no_longer_overloaded = 0;    // of the better ones: overloaded only with the other, also without a ratio
  double level = 0.99;                     // of the quantiles that were compared
  double least = 0, most = 0, middle = 0;  // ratios of this over the other; middle is the geometric mean
};

bool is_apart(const std::optional<Interval>& a, const std::optional<Interval>& b) {
  return a && b && (a->high < b->low || b->high < a->low);
}

// The geometric mean of the ratios of those effects that `is_wanted`; 0 where there are none.
template <class IsWanted>
double mean_ratio(const std::vector<Effect>& effects, IsWanted is_wanted) {
  double logs = 0;
  std::size_t count = 0;
  for (const Effect& effect : effects) {
    if (!effect.ratio || !is_wanted(effect)) continue;
    logs += std::log(*effect.ratio);
    ++count;
  }
  return count == 0 ? 0 : std::exp(logs / static_cast<double>(count));
}

// To end, victim by victim: p99, or p90 or medians if any has too few requests.
Compared compare(const Curve& curve, const Curve& other) {
  std::vector<std::pair<const Point*, const Point*>> pairs;
  for (const Point& mine : curve.points) {
    const auto theirs = std::find_if(other.points.begin(), other.points.end(),
                                     [&](const Point& point) { return is_same(point.victim, mine.victim); });
    if (theirs != other.points.end() && mine.to_end.p50_ns.value_or(0) > 0 && theirs->to_end.p50_ns.value_or(0) > 0)
      pairs.emplace_back(&mine, &*theirs);
  }
  Compared found;
  for (const auto& [mine, theirs] : pairs) found.level = std::min({found.level, mine->tail, theirs->tail});
  std::size_t ratios = 0;
  for (const auto& [mine, theirs] : pairs) {
    Effect effect{mine, std::nullopt, theirs->is_overloaded && !mine->is_overloaded,
                  mine->is_overloaded && !theirs->is_overloaded};
    if (mine->is_overloaded || theirs->is_overloaded) {
      ++(mine->is_overloaded ? found.overloaded : found.no_longer_overloaded);
    } else {
      const double ratio = *quantile_at(mine->to_end, found.level) / *quantile_at(theirs->to_end, found.level);
      const bool is_clear = is_apart(interval_at(mine->to_end, found.level), interval_at(theirs->to_end, found.level));
      effect = {mine, ratio, is_clear && ratio < 1 - kSame, is_clear && ratio > 1 / (1 - kSame)};
      found.least = ratios == 0 ? ratio : std::min(found.least, ratio);
      found.most = ratios == 0 ? ratio : std::max(found.most, ratio);
      ++ratios;
    }
    ++found.victims;
    found.better += effect.is_better ? 1 : 0;
    found.worse += effect.is_worse ? 1 : 0;
    found.effects.push_back(effect);
  }
  found.middle = mean_ratio(found.effects, [](const Effect&) { return true; });
  return found;
}

std::string range_words(double least, double most, std::string_view unit) {
  const std::string low = short_number(least), high = short_number(most);
  return low == high ? low + std::string(unit) : fmt::format("{} to {}{}", low, high, unit);
}

std::string effect_words(const Curve& curve, const Compared& compared) {
  const bool is_even = compared.better == 0 && compared.worse == 0, has_ratio = compared.middle > 0;
  if (is_even && !has_ratio) return "cannot be compared with none: requests come faster than they pass with both";
  // Unclear is not the same as equal: intervals also overlap if there were few requests.
  const bool is_close = compared.least >= 1 - kSame && compared.most <= 1 / (1 - kSame);
  std::string what = has_ratio ? fmt::format("{} is {} that of none", quantile_words(compared.level),
                                             range_words(compared.least, compared.most, "x"))
                               : "there is no ratio";
  if (is_even) what += is_close ? ", which is noise" : ", which may be noise";
  if (compared.no_longer_overloaded > 0)
    what += fmt::format(", and for {} victim{} requests come faster than they pass with none only",
                        compared.no_longer_overloaded, compared.no_longer_overloaded == 1 ? "" : "s");
  if (compared.overloaded > 0)
    what += fmt::format(", but for {} victim{} requests come faster than they pass", compared.overloaded,
                        compared.overloaded == 1 ? "" : "s");
  if (is_even) return fmt::format("has no {}effect here: {}", is_close ? "" : "clear ", what);
  if (compared.worse == 0) {
    const bool passes = curve.follows == Follows::block || curve.follows == Follows::constant;
    return fmt::format("{}: {}{}", passes ? "lets urgent work pass what is queued" : "helps", what,
                       compared.better == compared.victims
                           ? ""
                           : fmt::format(", clearly better for {} of {} victims", compared.better, compared.victims));
  }
  if (compared.better == 0)
    return fmt::format("makes it worse for {} of {} victims: {}", compared.worse, compared.victims, what);
  return fmt::format("is better for {} and worse for {} of {} victims: {}", compared.better, compared.worse,
                     compared.victims, what);
}

struct Loss {
  std::size_t count = 0;
  double least = 0, most = 0, middle = 0;
};
Loss losses(const Curve& curve) {
  Loss loss;
  for (const Point& point : curve.points) {
    if (!point.victim_loss) continue;
    loss.least = loss.count == 0 ? *point.victim_loss : std::min(loss.least, *point.victim_loss);
    loss.most = loss.count == 0 ? *point.victim_loss : std::max(loss.most, *point.victim_loss);
    loss.middle += *point.victim_loss;
    ++loss.count;
  }
  if (loss.count > 0) loss.middle /= static_cast<double>(loss.count);
  return loss;
}

std::string cost_words(const Curve& curve) {
  const Loss loss = losses(curve);
  if (loss.count == 0) return "what it costs the victim was not observed";
  if (loss.least < -kNoisyGain) return "what it costs the victim is lost in noise";
  if (loss.most < kUnseenLoss) return "it has no measurable cost for the victim";
  return fmt::format("the victim loses {} of its throughput",
                     range_words(100 * std::max(0.0, loss.least), 100 * loss.most, " %"));
}

bool has_figures(const Curve& curve) {
  return std::any_of(curve.points.begin(), curve.points.end(),
                     [](const Point& point) { return point.to_end.count > 0; });
}

bool is_sound(const Curve& curve) {
  return std::all_of(curve.points.begin(), curve.points.end(), [](const Point& point) {
    return point.failure.empty() && point.observation.lost_blocks.value_or(0) == 0 &&
           point.observation.repeated_blocks.value_or(0) == 0;
  });
}

// Ratios to the command alone, of the lowest tail that the points have, over the spread of alone.
std::string alone_words(const Curve& curve, bool has_drifted) {
  double least = 0, most = 0, level = 0.99;
  std::size_t count = 0;
  for (const Point& point : curve.points)
    if (point.against_alone && !point.is_overloaded) level = std::min(level, point.tail);
  for (const Point& point : curve.points) {
    // Points of one sentence have one quantile.
    if (!point.against_alone || point.is_overloaded || point.tail != level) continue;
    const Interval range = point.against_alone_interval.value_or(Interval{*point.against_alone, *point.against_alone});
    least = count == 0 ? range.low : std::min(least, range.low);
    most = count == 0 ? range.high : std::max(most, range.high);
    ++count;
  }
  return count == 0 ? ""
                    : fmt::format("{} is {} that of the command alone{}, and ", quantile_words(level),
                                  range_words(least, most, "x"), has_drifted ? ", which drifted" : "");
}

// Ranks mechanisms that have no ratio to none because none was overloaded: the geometric mean of the medians.
double own_latency_ns(const Curve& curve) {
  double logs = 0;
  std::size_t count = 0;
  for (const Point& point : curve.points) {
    if (point.is_overloaded || point.to_end.p50_ns.value_or(0) <= 0) continue;
    logs += std::log(*point.to_end.p50_ns);
    ++count;
  }
  return count == 0 ? 0 : std::exp(logs / static_cast<double>(count));
}

}  // namespace

void judge(Curve& curve, const Curve* none) {
  const std::string name(curve.mechanism->name);
  curve.fit.reset();
  curve.follows = Follows::unknown;
  if (!curve.offered) {
    curve.verdict = fmt::format("{} is not available here: {}", name, curve.offered.reason);
    return;
  }
  if (!has_figures(curve)) {
    curve.verdict = fmt::format("{} was not observed", name);
    return;
  }
  // A tail that is only noise is equally long for every block or shows nothing; the median may show more.
  for (const double level : {0.99, 0.5}) {
    const Axis axis = longest_axis(curve, level);
    std::optional<Fit> fit = fit_latency(axis.lengths);
    if (!fit) continue;
    fit->waves = axis.waves;
    fit->level = axis.level;
    fit->is_to_start = axis.is_to_start;
    const Follows follows = what_follows(*fit, growth_with_waves(curve));
    const bool adds_to_fit = follows != Follows::unknown && follows != Follows::constant &&
                             (curve.follows == Follows::unknown || curve.follows == Follows::constant);
    if (curve.fit && !adds_to_fit) continue;
    curve.fit = fit;
    curve.follows = follows;
  }
  const std::string waits = wait_words(curve);
  if (none == &curve) {
    curve.verdict = waits.empty() ? "none is what the others are compared with; too few block times to say what it "
                                    "follows"
                                  : fmt::format("none: {}", waits);
    return;
  }
  const Compared compared = none == nullptr ? Compared{} : compare(curve, *none);
  std::string text = name;
  if (compared.victims > 0) text += " " + effect_words(curve, compared);
  if (!waits.empty()) text += (compared.victims > 0 ? "; " : ": ") + waits;
  curve.verdict = fmt::format("{}{} {}", text, compared.victims > 0 || !waits.empty() ? ";" : ":", cost_words(curve));
}

namespace {

struct Choice {
  const Curve* curve;
  Compared compared;
  double ratio, loss;  // ratio: to none; where there is none, its own latency
};

// The victims for which the chosen mechanism is worse than none, each with what to use instead:
// "; but not behind persistent, 1 ms blocks (2.5x that of none): use none there".
std::string exception_words(const Choice& best, const std::vector<Choice>& observed) {
  constexpr std::size_t kMostListed = 3;
  std::map<std::string, std::vector<std::string>> by_remedy;
  for (const Effect& effect : best.compared.effects) {
    if (!effect.is_worse) continue;
    std::string remedy = "none";
    double least = 1;
    for (const Choice& other : observed)
      for (const Effect& there : other.compared.effects)
        if (there.is_better && is_same(there.point->victim, effect.point->victim) && there.ratio.value_or(0) < least) {
          least = there.ratio.value_or(0);
          remedy = std::string(other.curve->mechanism->name);
        }
    by_remedy[remedy].push_back(fmt::format(
        "{} ({})", words_for(effect.point->victim),
        effect.ratio ? short_number(*effect.ratio) + "x that of none" : "requests come faster than they pass"));
  }
  std::string text;
  for (auto& [remedy, victims] : by_remedy) {
    const std::size_t count = victims.size();
    if (count > kMostListed) {
      victims.resize(kMostListed);
      victims.push_back(fmt::format("{} more", count - kMostListed));
    }
    text += fmt::format("; but not behind {}: use {} there", fmt::join(victims, " or "), remedy);
  }
  return text;
}

}  // namespace

std::string overall_verdict(std::span<const Curve> curves, const Alone& alone) {
  const auto none = std::find_if(curves.begin(), curves.end(),
                                 [](const Curve& one) { return one.mechanism->name == "none" && has_figures(one); });
  if (none == curves.end()) return "No verdict: none, which the others are compared with, was not observed";
  std::vector<Choice> observed, choices, passing;  // by ratios to none; without any of these, by their own latency
  for (const Curve& curve : curves) {
    if (&curve == &*none || !curve.offered || !is_sound(curve) || !has_figures(curve)) continue;
    const Compared compared = compare(curve, *none);
    // What is worse for some victims is recommended for the others only, so only the others count.
    const double ratio = mean_ratio(compared.effects, [](const Effect& effect) { return !effect.is_worse; });
    observed.push_back({&curve, compared, ratio > 0 ? ratio : own_latency_ns(curve), losses(curve).middle});
    if (compared.better > compared.worse) (ratio > 0 ? choices : passing).push_back(observed.back());
  }
  const bool has_ratios = !choices.empty();
  if (!has_ratios) choices = std::move(passing);
  if (choices.empty()) {
    std::vector<std::string> helped;
    for (const Choice& one : observed)
      for (const Effect& effect : one.compared.effects)
        if (effect.is_better && helped.size() < 3)
          helped.push_back(fmt::format("{} behind {}", one.curve->mechanism->name, words_for(effect.point->victim)));
    if (helped.empty())
      return "Nothing that was observed lets urgent work pass here: it waits as long as without, or longer";
    return fmt::format("Nothing that was observed helps behind most victims; what does behind one: {}",
                       fmt::join(helped, ", "));
  }
  // Of those about as fast as the fastest, the one with the smallest loss for the victim. One that makes nobody wait
  // longer goes first, unless it gives up half of the gain.
  const auto best_of = [](std::vector<Choice> among) {
    const auto keep_within = [&](double factor, bool is_harmless) {
      const double fastest = std::ranges::min_element(among, {}, &Choice::ratio)->ratio;
      std::vector<Choice> kept;
      for (const Choice& one : among)
        if (one.ratio <= fastest * factor && !(is_harmless && one.compared.worse > 0)) kept.push_back(one);
      if (!kept.empty()) among = std::move(kept);
    };
    keep_within(2, true);
    keep_within(1 + kSame, false);
    return *std::ranges::min_element(among, {}, &Choice::loss);
  };
  const Choice best = best_of(choices);
  const std::string gain =
      has_ratios ? fmt::format("{} is {}x that of none on average{}", quantile_words(best.compared.level),
                               short_number(best.ratio), best.compared.worse > 0 ? " over the other victims" : "")
                 : "with none requests come faster than they pass";
  std::string text =
      fmt::format("Use {} here{}: {}; {}{}", best.curve->mechanism->name, best.compared.worse > 0 ? " in part" : "",
                  gain, alone_words(*best.curve, alone.has_drifted), cost_words(*best.curve));
  text += exception_words(best, observed);
  if (best.curve->mechanism->level == "Lv2") {
    std::erase_if(choices, [](const Choice& one) { return one.curve->mechanism->level == "Lv2"; });
    text += ". It needs kernels that look for it";
    if (!choices.empty()) {
      const Choice other = best_of(choices);
      text += fmt::format("; for kernels as they are use {}: {}{}{}", other.curve->mechanism->name,
                          has_ratios ? short_number(other.ratio) + "x that of none, " : "", cost_words(*other.curve),
                          exception_words(other, observed));
    }
  }
  return text;
}

}  // namespace weir::preempt
