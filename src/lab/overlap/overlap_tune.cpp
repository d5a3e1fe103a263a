#include "lab/overlap/overlap_tune.h"

#include <algorithm>
#include <set>

#include "base/named_values.h"
#include "base/schemas.h"
#include "measure/bootstrap.h"

namespace weir {
namespace {

constexpr double kAsGood = 1.02;  // exposed times within this ratio count as equal: the difference is noise
constexpr std::size_t kMaxCombinations = 100'000;

using Choice = std::vector<std::size_t>;  // index of the value, by axis

bool is_better(const TuneTrial& a, const TuneTrial& b) {
  if (!b.is_usable()) return a.is_usable();
  if (!a.is_usable()) return false;
  const double left = a.exposed_ns.value_or(0), right = b.exposed_ns.value_or(0);
  if (left * kAsGood < right) return true;
  if (right * kAsGood < left) return false;
  return *a.step_ns < *b.step_ns;
}

class Search {
 public:
  Search(const std::vector<TuneAxis>& axes, const TuneControl& control) : axes_(axes), control_(control) {
    result_.combinations = 1;
    for (const TuneAxis& axis : axes)
      result_.combinations = std::min(kMaxCombinations, result_.combinations * axis.values.size());
  }

  TuneResult run() {
    Choice current(axes_.size(), 0);
    if (const auto first = tried(current)) {
      best_ = *first;
      descend(current);
    }
    explore();
    result_.best = result_.trials.empty() || !result_.trials[best_].is_usable() ? std::nullopt : std::optional(best_);
    mark_front(result_.trials);
    return std::move(result_);
  }

 private:
  void descend(Choice& current) {
    for (bool has_improved = true; has_improved && !is_over_;) {
      has_improved = false;
      for (std::size_t axis = 0; axis < axes_.size() && !is_over_; ++axis)
        for (std::size_t value = 0; value < axes_[axis].values.size() && !is_over_; ++value) {
          Choice other = current;
          other[axis] = value;
          if (seen_.contains(other)) continue;
          const auto trial = tried(other);
          if (!trial || !is_better(result_.trials[*trial], result_.trials[best_])) continue;
          best_ = *trial;
          current = other;
          has_improved = true;
        }
    }
    result_.is_complete = !is_over_;
  }

  void explore() {
    SplitMix random(1);
    for (std::size_t misses = 0; !is_over_ && seen_.size() < result_.combinations && misses < 1000;) {
      Choice choice;
      for (const TuneAxis& axis : axes_) choice.push_back(random.below(static_cast<std::uint32_t>(axis.values.size())));
      if (seen_.contains(choice)) {
        ++misses;
        continue;
      }
      misses = 0;
      const auto trial = tried(choice);
      if (trial && is_better(result_.trials[*trial], result_.trials[best_])) best_ = *trial;
    }
  }

  // Returns the trial's index, or nothing if the time is up or the search was stopped.
  std::optional<std::size_t> tried(const Choice& choice) {
    const double begun = control_.elapsed_seconds();
    if (!result_.trials.empty() && begun + longest_ > control_.budget_seconds) is_over_ = true;
    if (is_over_) return std::nullopt;
    seen_.insert(choice);
    TuneTrial trial;
    for (std::size_t axis = 0; axis < axes_.size(); ++axis) trial.values.push_back(axes_[axis].values[choice[axis]]);
    if (!control_.run(trial)) {
      is_over_ = true;
      result_.is_interrupted = true;
      return std::nullopt;
    }
    trial.seconds = control_.elapsed_seconds() - begun;
    longest_ = std::max(longest_, trial.seconds);
    result_.trials.push_back(std::move(trial));
    return result_.trials.size() - 1;
  }

  const std::vector<TuneAxis>& axes_;
  const TuneControl& control_;
  TuneResult result_;
  std::set<Choice> seen_;
  std::size_t best_ = 0;
  double longest_ = 0;
  bool is_over_ = false;
};

}  // namespace

TuneResult tune_overlap(const std::vector<TuneAxis>& axes, const TuneControl& control) {
  return Search(axes, control).run();
}

void mark_front(std::vector<TuneTrial>& trials) {
  for (TuneTrial& trial : trials) {
    if (!trial.is_usable() || !trial.memory_bytes) continue;
    trial.is_on_front = std::none_of(trials.begin(), trials.end(), [&](const TuneTrial& other) {
      if (!other.is_usable() || !other.memory_bytes) return false;
      const bool is_no_worse = *other.step_ns <= *trial.step_ns && *other.memory_bytes <= *trial.memory_bytes;
      return is_no_worse && (*other.step_ns < *trial.step_ns || *other.memory_bytes < *trial.memory_bytes);
    });
  }
}

Json tune_json(const std::vector<TuneAxis>& axes, const TuneResult& result) {
  Json json = {{"schema", schemas::overlap_tune},
               {"status", result.is_interrupted ? "interrupted" : "complete"},
               {"combinations", result.combinations},
               {"is_exhausted", result.is_complete},
               {"axes", Json::array()},
               {"trials", Json::array()}};
  for (const TuneAxis& axis : axes) json["axes"].push_back(WEIR_NAMED(axis.key, axis.values));
  for (const TuneTrial& trial : result.trials) {
    Json settings = Json::object();
    for (std::size_t i = 0; i < axes.size(); ++i) settings[axes[i].key] = trial.values[i];
    json["trials"].push_back(WEIR_NAMED(settings, trial.exposed_ns, trial.step_ns, trial.efficiency, trial.memory_bytes,
                                        text_or_null(trial.failure), named("duration_ns", trial.seconds * 1e9),
                                        trial.is_on_front));
  }
  json["best"] = or_null(result.best);
  return json;
}

}  // namespace weir
