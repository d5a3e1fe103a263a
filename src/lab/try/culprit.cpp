#include "lab/try/culprit.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <utility>

namespace weir::trials {
namespace {

constexpr std::size_t kMaxPairs = 20'000;
constexpr std::size_t kMaxUnited = 4;  // factors of up to so many values: unions of values are suspects too
// Shares of the weight of all values, unions of values, pairs of values, single settings.
constexpr double kShares[] = {0.4, 0.1, 0.2, 0.3};

constexpr double kNothing = -std::numeric_limits<double>::infinity();

double log_sum(double a, double b) {
  const double high = std::max(a, b);
  return high == kNothing ? kNothing : high + std::log1p(std::exp(std::min(a, b) - high));
}

double log_beta(double a, double b) {
  int sign = 0;  // lgamma() writes to a global
  return ::lgamma_r(a, &sign) + ::lgamma_r(b, &sign) - ::lgamma_r(a + b, &sign);
}

// The probability of the outcomes, over all rates from Beta(a, b).
double log_marginal(const Tally& tally, double a, double b) {
  return log_beta(a + tally.failures, b + tally.trials - tally.failures) - log_beta(a, b);
}

// With the cause: one time in five the program always fails; otherwise the rate is Beta(2, 4).
double log_with_cause(const Tally& tally) {
  return log_sum(std::log(0.8) + log_marginal(tally, 2, 4), tally.failures == tally.trials ? std::log(0.2) : kNothing);
}

// Without it: half of all programs never fail; the rate of the others is Beta(1, 9), 10 % in the mean.
double log_without(const Tally& tally) {
  return std::log(0.5) + log_sum(log_marginal(tally, 1, 9), tally.failures == 0 ? 0 : kNothing);
}

// The highest probability that any one rate for all gives the outcomes.
double log_alike(const Tally& tally) {
  if (tally.failures == 0 || tally.failures == tally.trials) return 0;
  const double rate = tally.rate();
  return tally.failures * std::log(rate) + (tally.trials - tally.failures) * std::log1p(-rate);
}

// Whether so few failures show that the rate is below this one.
bool is_cleared(const Tally& tally, double rate) {
  // The first failure of a setting brings it to attention; after that it is not dropped for a few lucky trials.
  const double kMiss = tally.failures == 0 ? 0.015 : 0.003;
  double term = std::pow(1 - rate, tally.trials), sum = 0;
  for (std::uint32_t i = 0; i <= tally.failures && sum <= kMiss; ++i) {
    sum += term;
    term *= static_cast<double>(tally.trials - i) / (i + 1) * rate / (1 - rate);
  }
  return sum <= kMiss;
}

Tally operator-(const Tally& all, const Tally& part) {
  return {all.trials - part.trials, all.failures - part.failures};
}

bool overlap(const Suspect& a, const Suspect& b) {
  for (auto i = a.settings.begin(), j = b.settings.begin(); i != a.settings.end() && j != b.settings.end();) {
    if (*i == *j) return true;
    ++(*i < *j ? i : j);
  }
  return false;
}

class SuspectList {
 public:
  explicit SuspectList(const Design& design) : design_(design) {}

  void add(std::vector<Suspect::Choice> choices, std::size_t kind) {
    Suspect suspect;
    suspect.choices = std::move(choices);
    for (std::uint32_t i = 0; i < design_.settings.size(); ++i)
      if (applies(suspect, design_.settings[i])) suspect.settings.push_back(i);
    if (suspect.settings.empty() || suspect.settings.size() == design_.settings.size()) return;
    const auto [place, is_new] = places_.try_emplace(suspect.settings, suspects_.size());
    if (is_new) {
      suspects_.push_back(std::move(suspect));
      kinds_.emplace_back();
    }
    kinds_[place->second][kind] += 1;
    counts_[kind] += 1;
  }

  std::vector<Suspect> take() {
    double total = 0;
    for (std::size_t kind = 0; kind < std::size(kShares); ++kind)
      if (counts_[kind] > 0) total += kShares[kind];
    for (std::size_t i = 0; i < suspects_.size(); ++i)
      for (std::size_t kind = 0; kind < std::size(kShares); ++kind)
        if (counts_[kind] > 0) suspects_[i].weight += kShares[kind] / total * kinds_[i][kind] / counts_[kind];
    return std::move(suspects_);
  }

 private:
  static bool applies(const Suspect& suspect, const Setting& setting) {
    return std::all_of(suspect.choices.begin(), suspect.choices.end(), [&](const Suspect::Choice& choice) {
      return std::find(choice.values.begin(), choice.values.end(), setting[choice.factor]) != choice.values.end();
    });
  }

  struct Kinds {
    double counts[std::size(kShares)] = {};
    double& operator[](std::size_t kind) { return counts[kind]; }
  };
  const Design& design_;
  std::vector<Suspect> suspects_;
  std::vector<Kinds> kinds_;
  Kinds counts_;
  std::map<std::vector<std::uint32_t>, std::size_t> places_;
};

void add_pairs(const Design& design, SuspectList& list) {
  const auto& factors = design.factors;
  for (std::size_t a = 0; a < factors.size(); ++a)
    for (std::size_t b = a + 1; b < factors.size(); ++b)
      for (std::uint32_t i = 0; i < factors[a].values.size(); ++i)
        for (std::uint32_t j = 0; j < factors[b].values.size(); ++j) list.add({{a, {i}}, {b, {j}}}, 2);
}

std::size_t pairs_in(const Design& design) {
  std::size_t pairs = 0, before = 0;
  for (const Factor& factor : design.factors) {
    pairs += before * factor.values.size();
    before += factor.values.size();
  }
  return pairs;
}

}  // namespace

std::vector<Suspect> suspects_of(const Design& design) {
  SuspectList list(design);
  for (std::size_t factor = 0; factor < design.factors.size(); ++factor) {
    const std::uint32_t count = static_cast<std::uint32_t>(design.factors[factor].values.size());
    for (std::uint32_t value = 0; value < count; ++value) list.add({{factor, {value}}}, 0);
    for (std::uint32_t mask = 1; count > 2 && count <= kMaxUnited && mask < (1U << count) - 1; ++mask) {
      Suspect::Choice choice{factor, {}};
      for (std::uint32_t value = 0; value < count; ++value)
        if ((mask >> value & 1U) != 0) choice.values.push_back(value);
      if (choice.values.size() > 1) list.add({choice}, 1);
    }
  }
  if (pairs_in(design) <= kMaxPairs) add_pairs(design, list);
  if (design.factors.size() > 2 && !design.is_sample()) {
    for (const Setting& setting : design.settings) {
      std::vector<Suspect::Choice> choices;
      for (std::size_t factor = 0; factor < setting.size(); ++factor)
        if (design.factors[factor].values.size() > 1) choices.push_back({factor, {setting[factor]}});
      list.add(std::move(choices), 3);
    }
  }
  return list.take();
}

std::string words_for(const Design& design, const Suspect& suspect) {
  std::string words;
  for (const Suspect::Choice& choice : suspect.choices) {
    const Factor& factor = design.factors[choice.factor];
    words += words.empty() ? "" : " with ";
    for (std::size_t i = 0; i < choice.values.size(); ++i) {
      const auto& value = factor.values[choice.values[i]];
      words += i == 0 ? words_for(factor, choice.values[i]) : " or " + value.value_or("unset");
    }
  }
  return words;
}

struct FailureSearch::Weighed {
  std::size_t suspect = 0;
  Tally inside;
  double log_likelihood = 0;  // with its weight
};

FailureSearch::FailureSearch(const Design& design, SearchOptions options)
    : suspects_(suspects_of(design)), settings_(design.settings.size()), options_(options) {}

std::vector<FailureSearch::Weighed> FailureSearch::weigh(const std::vector<Tally>& tallies,
                                                         const std::vector<bool>& is_out, Tally& all) const {
  all = {};
  for (std::size_t i = 0; i < settings_; ++i) {
    if (is_out[i]) continue;
    all.trials += tallies[i].trials;
    all.failures += tallies[i].failures;
  }
  std::vector<Weighed> weighed;
  for (std::size_t i = 0; i < suspects_.size(); ++i) {
    Weighed one{i, {}, 0};
    bool is_left = false;  // whether any of its settings was not explained by another culprit
    for (const std::uint32_t setting : suspects_[i].settings) {
      if (is_out[setting]) continue;
      is_left = true;
      one.inside.trials += tallies[setting].trials;
      one.inside.failures += tallies[setting].failures;
    }
    if (!is_left) continue;
    one.log_likelihood = std::log(suspects_[i].weight) + log_with_cause(one.inside) + log_without(all - one.inside);
    weighed.push_back(one);
  }
  return weighed;
}

Judgement FailureSearch::judge(const std::vector<Tally>& tallies) const {
  constexpr double kRivals = 100;   // a culprit is this much likelier than any other explanation of its failures
  constexpr double kPlausible = 3;  // suspects less likely than the best by this factor have to wait
  Judgement judgement;
  judgement.is_wanted.assign(settings_, false);
  std::vector<bool> is_out(settings_, false);
  double limit = -std::log(options_.significance);
  for (;;) {
    Tally all;
    std::vector<Weighed> weighed = weigh(tallies, is_out, all);
    if (weighed.empty()) return judgement;
    const Weighed best = *std::max_element(weighed.begin(), weighed.end(), [](const Weighed& a, const Weighed& b) {
      return a.log_likelihood < b.log_likelihood;
    });
    const double evidence = best.log_likelihood - log_alike(all);
    if (judgement.culprits.empty()) judgement.evidence = evidence;
    const Tally outside = all - best.inside;
    const bool is_alone = std::none_of(weighed.begin(), weighed.end(), [&](const Weighed& other) {
      return other.suspect != best.suspect && other.log_likelihood > best.log_likelihood - std::log(kRivals) &&
             overlap(suspects_[other.suspect], suspects_[best.suspect]);
    });
    if (evidence >= limit && is_alone && best.inside.rate() > outside.rate()) {
      judgement.culprits.push_back({best.suspect, best.inside, outside, evidence});
      for (const std::uint32_t setting : suspects_[best.suspect].settings) is_out[setting] = true;
      limit += std::log(2.0);
      continue;
    }
    if (!judgement.culprits.empty()) return judgement;
    // Only what is not cleared competes for trials.
    std::erase_if(weighed, [&](const Weighed& one) { return is_cleared(one.inside, options_.rate); });
    double most = kNothing;
    for (const Weighed& one : weighed) most = std::max(most, one.log_likelihood);
    for (const Weighed& one : weighed) {
      if (one.log_likelihood < most - std::log(kPlausible)) continue;
      for (const std::uint32_t setting : suspects_[one.suspect].settings) judgement.is_wanted[setting] = true;
      // A failure rate says nothing without one to compare with.
      if (2 * one.inside.trials > (all - one.inside).trials) judgement.is_wanted.assign(settings_, true);
    }
    return judgement;
  }
}

}  // namespace weir::trials
