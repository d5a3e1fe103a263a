#include "lab/kernels/latency_change.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "measure/statistics.h"
#include "measure/student.h"

namespace weir::bench {
namespace {

constexpr double kRoundQuantile = 0.25;
// A fraction of the threshold: a yardstick that moved by less explains less than half of a relevant slowdown, and its
// own noise (it is a few runs of one millisecond) is of that order.
constexpr double kMachineMatters = 0.5;

// The logarithm of each round's time.
std::vector<double> log_times(const std::vector<std::vector<double>>& rounds) {
  std::vector<double> logs;
  for (const std::vector<double>& samples : rounds)
    if (!samples.empty()) logs.push_back(std::log(round_time(samples)));
  return logs;
}

double squares_about_mean(const std::vector<double>& values) {
  const double middle = mean(values);
  double squares = 0;
  for (const double value : values) squares += (value - middle) * (value - middle);
  return squares;
}

// The verdict after subtracting the machine's own change.
Verdict verdict_of(LatencyChange change, double machine, double threshold, double certainty, double p_share) {
  change.log_ratio -= machine;
  change.log_means -= machine;
  Change judged;
  judged.ratio = std::exp(change.log_ratio);
  judged.interval = change.ratio_interval(certainty);
  judged.adjusted_p = p_share * std::min(change.p_slower(), change.p_faster());
  return weir::verdict_of(judged, {threshold, 1 - certainty, {}});
}

// "12.3 % slower", "4.0 % faster"
std::string change_text(double log_ratio) {
  return log_ratio >= 0 ? fmt::format("{:.1f} % slower", 100 * std::expm1(log_ratio))
                        : fmt::format("{:.1f} % faster", -100 * std::expm1(log_ratio));
}

// "between 2.0 % and 14.0 % slower", "between 3.0 % faster and 5.0 % slower"
std::string range_text(const Interval& interval) {
  const auto part = [](double ratio) { return fmt::format("{:.1f} %", 100 * std::fabs(ratio - 1)); };
  if (interval.low >= 1) return fmt::format("between {} and {} slower", part(interval.low), part(interval.high));
  if (interval.high <= 1) return fmt::format("between {} and {} faster", part(interval.high), part(interval.low));
  return fmt::format("between {} faster and {} slower", part(interval.low), part(interval.high));
}

}  // namespace

double round_time(const std::vector<double>& samples) { return quantile(samples, kRoundQuantile); }

double LatencyChange::p_slower() const { return student_above(std::min(log_ratio, log_means) / error, degrees); }
double LatencyChange::p_faster() const { return student_above(-std::max(log_ratio, log_means) / error, degrees); }

Interval LatencyChange::ratio_interval(double certainty) const {
  const double reach = student_limit(1 - certainty, degrees) * error;
  return {std::exp(std::min(log_ratio, log_means) - reach), std::exp(std::max(log_ratio, log_means) + reach)};
}

std::optional<LatencyChange> latency_change(const RunTimes& before, const RunTimes& after) {
  const std::vector<double> old = log_times(before.rounds), now = log_times(after.rounds);
  if (old.empty() || now.empty()) return std::nullopt;
  LatencyChange change;
  change.log_ratio = typical_difference(old, now);
  change.log_means = mean(now) - mean(old);
  const double seen = static_cast<double>(old.size() + now.size() - 2);
  const double squares = squares_about_mean(old) + squares_about_mean(now);
  change.degrees = kAssumedDegrees;
  change.spread = kUnknownSpread;
  if (seen > 0) {
    change.seen_spread = std::sqrt(squares / seen);
    change.spread = *change.seen_spread;
    change.degrees = seen;
  }
  // If processes differ by more than supposed, only the observed spread counts: a smaller supposed one would make them
  // look more alike than they are.
  if (seen > 0 && *change.seen_spread < kAssumedSpread) {
    change.degrees = seen + kAssumedDegrees;
    change.spread = std::sqrt((squares + kAssumedDegrees * kAssumedSpread * kAssumedSpread) / change.degrees);
  }
  change.error = change.spread * std::sqrt(1 / static_cast<double>(old.size()) + 1 / static_cast<double>(now.size()));
  const std::vector<double> machine_then = log_times(before.yardstick), machine_now = log_times(after.yardstick);
  if (!machine_then.empty() && !machine_now.empty()) change.log_machine = typical_difference(machine_then, machine_now);
  return change;
}

LatencyJudgement judge_latency(const LatencyChange& change, double threshold, double certainty, double p_share) {
  const double machine = change.log_machine.value_or(0);
  const Verdict plain = verdict_of(change, 0, threshold, certainty, p_share);
  const std::string range = range_text(change.ratio_interval(certainty));
  LatencyJudgement judgement{plain, range};
  const bool has_moved = std::fabs(machine) > kMachineMatters * std::log1p(threshold);
  if (has_moved) {
    // A kernel may follow the machine's speed fully or not at all; a verdict has to hold either way. If it would count
    // as faster on a slower machine, that is no reason for doubt: it is not slower.
    const Verdict scaled = verdict_of(change, machine, threshold, certainty, p_share);
    const bool is_harmless = plain == Verdict::same && scaled == Verdict::faster;
    const std::string moved = fmt::format("the machine itself was {} (yardstick)", change_text(machine));
    if (scaled != plain && !is_harmless) {
      judgement.verdict = Verdict::ambiguous;
      judgement.reason = fmt::format("{}, but {}", range, moved);
      return judgement;
    }
    judgement.reason += "; " + moved;
  }
  if (plain == Verdict::ambiguous)
    judgement.reason += change.seen_spread
                            ? fmt::format("; processes differ by {:.1f} % among themselves; run more of them",
                                          100 * *change.seen_spread)
                            : std::string("; one process on each side says little, take more rounds");
  return judgement;
}

}  // namespace weir::bench
