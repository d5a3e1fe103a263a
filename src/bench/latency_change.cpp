#include "bench/latency_change.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "measure/statistics.h"
#include "measure/student.h"

namespace weir::bench {
namespace {

constexpr double kRoundQuantile = 0.25;
// A yardstick that moved by less is no reason to doubt anything: its own noise is of that order.
constexpr double kMachineMatters = 0.02;

struct Side {
  double mean = 0, squares = 0;  // of logarithms; squares about the mean
  std::size_t rounds = 0;
};

std::optional<Side> side_of(const std::vector<std::vector<double>>& rounds) {
  std::vector<double> logs;
  for (const std::vector<double>& samples : rounds)
    if (!samples.empty()) logs.push_back(std::log(round_time(samples)));
  if (logs.empty()) return std::nullopt;
  Side side;
  side.rounds = logs.size();
  side.mean = mean(logs);
  for (const double value : logs) side.squares += (value - side.mean) * (value - side.mean);
  return side;
}

LatencyVerdict verdict_of(double log_ratio, const LatencyChange& change, double threshold, double certainty,
                          double p_share) {
  const double limit = std::log1p(threshold), doubt = 1 - certainty, t = log_ratio / change.error;
  if (log_ratio > limit && p_share * student_above(t, change.degrees) < doubt) return LatencyVerdict::slower;
  if (log_ratio < -limit && p_share * student_above(-t, change.degrees) < doubt) return LatencyVerdict::faster;
  const double reach = student_limit(doubt, change.degrees) * change.error;
  return std::fabs(log_ratio) + reach <= limit ? LatencyVerdict::same : LatencyVerdict::ambiguous;
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

double LatencyChange::p_slower() const { return student_above(log_ratio / error, degrees); }
double LatencyChange::p_faster() const { return student_above(-log_ratio / error, degrees); }

Interval LatencyChange::ratio_interval(double certainty) const {
  const double reach = student_limit(1 - certainty, degrees) * error;
  return {std::exp(log_ratio - reach), std::exp(log_ratio + reach)};
}

std::optional<LatencyChange> latency_change(const RunTimes& before, const RunTimes& after) {
  const std::optional<Side> old = side_of(before.rounds), now = side_of(after.rounds);
  if (!old || !now) return std::nullopt;
  LatencyChange change;
  change.log_ratio = now->mean - old->mean;
  const double seen = static_cast<double>(old->rounds + now->rounds - 2);
  const double squares = old->squares + now->squares;
  if (seen > 0) {
    change.seen_luck = std::sqrt(squares / seen);
    change.degrees = seen + kSupposedDegrees;
    change.luck = std::sqrt((squares + kSupposedDegrees * kSupposedLuck * kSupposedLuck) / change.degrees);
  } else {
    change.degrees = kSupposedDegrees;
    change.luck = kUnseenLuck;
  }
  change.error = change.luck * std::sqrt(1 / static_cast<double>(old->rounds) + 1 / static_cast<double>(now->rounds));
  const std::optional<Side> machine_then = side_of(before.yardstick), machine_now = side_of(after.yardstick);
  if (machine_then && machine_now) change.log_machine = machine_now->mean - machine_then->mean;
  return change;
}

LatencyJudgement judge_latency(const LatencyChange& change, double threshold, double certainty, double p_share) {
  const double machine = change.log_machine.value_or(0);
  const LatencyVerdict plain = verdict_of(change.log_ratio, change, threshold, certainty, p_share);
  const std::string range = range_text(change.ratio_interval(certainty));
  LatencyJudgement judgement{plain, range};
  const bool has_moved = std::fabs(machine) > kMachineMatters;
  if (has_moved) {
    // A kernel may follow the machine in full or not at all; a verdict has to hold either way. That it would count as
    // faster on a slower machine is no reason for doubt: it is not slower.
    const LatencyVerdict scaled = verdict_of(change.log_ratio - machine, change, threshold, certainty, p_share);
    const bool is_harmless = plain == LatencyVerdict::same && scaled == LatencyVerdict::faster;
    const std::string moved = fmt::format("the machine itself was {} (yardstick)", change_text(machine));
    if (scaled != plain && !is_harmless) {
      judgement.verdict = LatencyVerdict::ambiguous;
      judgement.reason = fmt::format("{}, but {}", range, moved);
      return judgement;
    }
    judgement.reason += "; " + moved;
  }
  if (plain == LatencyVerdict::ambiguous)
    judgement.reason += change.seen_luck
                            ? fmt::format("; processes differ by {:.1f} % among themselves, more of them tell more",
                                          100 * *change.seen_luck)
                            : std::string("; one process on each side says little, take more rounds");
  return judgement;
}

}  // namespace weir::bench
