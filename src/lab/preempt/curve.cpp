#include "lab/preempt/curve.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "base/units.h"
#include "lab/preempt/verdict.h"
#include "measure/statistics.h"

namespace weir::preempt {
namespace {

constexpr double kMaxDrift = 0.2;
constexpr double kBlockOff = 0.25;   // the most by which a victim's blocks may differ from the requested length
constexpr double kClockShare = 0.2;  // the largest share of a latency that may be clock error
constexpr double kMaxSpread = 0.1;   // of the throughput of an undisturbed victim
constexpr int kResamples = 1000;

template <class From, class To>
std::vector<double> differences(std::span<const Request> requests, From from, To to) {
  std::vector<double> latencies;
  latencies.reserve(requests.size());
  for (const Request& request : requests)
    if (request.*to != kNoTime) latencies.push_back(static_cast<double>(request.*to - request.*from));
  return latencies;
}

std::vector<double> to_start_of(const Observation& seen) {
  return differences(seen.requests, &Request::due_ns, &Request::started_ns);
}
std::vector<double> to_end_of(const Observation& seen) {
  return differences(seen.requests, &Request::due_ns, &Request::ended_ns);
}

// Detects a queue that only grows: the medians of the last three quarters, each above the previous one by at least a
// fraction of the time between them. The first quarter does not count, because every queue fills at first.
bool grows_until_the_end(std::span<const Request> requests) {
  constexpr std::size_t kMin = 40;
  constexpr double kPart = 0.05;  // 5 % more requests arrived than were served
  std::vector<double> due, latency;
  for (const Request& request : requests) {
    if (request.ended_ns == kNoTime) continue;
    due.push_back(static_cast<double>(request.due_ns));
    latency.push_back(static_cast<double>(request.ended_ns - request.due_ns));
  }
  if (due.size() < kMin) return false;
  const std::size_t quarter = due.size() / 4;
  const auto middle = [&](const std::vector<double>& values, std::size_t which) {
    return median(std::span(values).subspan(which * quarter, quarter));
  };
  for (const std::size_t which : {2U, 3U})
    if (middle(latency, which) - middle(latency, which - 1) < kPart * (middle(due, which) - middle(due, which - 1)))
      return false;
  return true;
}

// Finished blocks per ns. A trial sets the size of memory blocks, so the amount that they read counts instead: by
// number alone, kernels that read more slowly would seem to lose nothing, and fewer compute units always something.
std::optional<double> throughput(const Victim& victim, const Observation& seen) {
  const bool is_sized = victim.kind == VictimKind::memory;
  if (seen.victim_wall_ns <= 0 || seen.victim_blocks == 0 || (is_sized && seen.block_words <= 0)) return std::nullopt;
  return static_cast<double>(seen.victim_blocks) / static_cast<double>(seen.victim_wall_ns) *
         (is_sized ? static_cast<double>(seen.block_words) : 1);
}

std::optional<double> ratio(std::optional<double> above, std::optional<double> below) {
  if (!above || !below || *below <= 0) return std::nullopt;
  return *above / *below;
}

// An undisturbed victim, over all its observations.
struct FullSpeed {
  std::optional<double> mean;
  double spread = 0;  // fastest over slowest, minus 1
};
FullSpeed full_speed(std::span<const Undisturbed> all, const Victim& victim) {
  std::vector<double> found;
  for (const Undisturbed& one : all)
    if (is_same(one.victim, victim))
      if (const auto speed = throughput(victim, one.observation)) found.push_back(*speed);
  if (found.empty()) return {};
  const auto [slowest, fastest] = std::minmax_element(found.begin(), found.end());
  return {mean(found), *fastest / *slowest - 1};
}

std::string place(const Curve& curve, const Point& point) {
  return fmt::format("{}, {}", curve.mechanism->name, words_for(point.victim));
}

// What is wrong with the victim's work; empty if nothing is.
std::string wrong_work(const Curve& curve, const Point& point) {
  const auto lost = point.observation.lost_blocks.value_or(0);
  const auto repeated = point.observation.repeated_blocks.value_or(0);
  if (lost == 0 && repeated == 0) return "";
  return fmt::format("{}: {} of the victim's blocks were lost and {} repeated in {} preemptions", place(curve, point),
                     lost, repeated, point.observation.preemptions);
}

// Collects warnings, each kind once: the worst observation, and how many more there are.
class CurveWarnings {
 public:
  void add(const char* kind, double how_much, const std::string& words) {
    Warning& warning = by_kind_[kind];
    if (warning.count++ > 0 && how_much <= warning.most) return;
    warning.most = how_much;
    warning.words = words;
  }
  void add_to(std::vector<std::string>& warnings) const {
    for (const auto& [kind, warning] : by_kind_)
      warnings.push_back(warning.count == 1
                             ? warning.words
                             : fmt::format("{} (and {} more like this)", warning.words, warning.count - 1));
  }

 private:
  struct Warning {
    std::size_t count = 0;
    double most = 0;
    std::string words;
  };
  std::map<std::string, Warning> by_kind_;
};

void add_warnings(const Curve& curve, const Point& point, CurveWarnings& curve_warnings) {
  const Observation& seen = point.observation;
  const auto unended = seen.requests.size() - point.to_end.count;
  if (unended > 0)
    curve_warnings.add("unended", static_cast<double>(unended),
                       fmt::format("{}: {} of {} requests did not end and are in no figure", place(curve, point),
                                   unended, seen.requests.size()));
  if (point.is_overloaded)
    curve_warnings.add(
        "overloaded", *point.to_end.p50_ns,
        fmt::format("{}: requests came faster than they passed, latency grew until the end and says how long "
                    "that was",
                    place(curve, point)));
  const auto error = static_cast<double>(seen.clock_error_ns);
  if (point.to_start.p50_ns && error > kClockShare * *point.to_start.p50_ns)
    curve_warnings.add(
        "clock", error / std::max(1.0, *point.to_start.p50_ns),
        fmt::format("{}: moments of the device are known to {} only, the median latency is {}", place(curve, point),
                    format_duration(error), format_duration(*point.to_start.p50_ns)));
  const auto asked = static_cast<double>(point.victim.block_ns);
  const double off = seen.block_ns > 0 ? std::fabs(static_cast<double>(seen.block_ns) / asked - 1) : 0;
  if (off > kBlockOff)
    curve_warnings.add("blocks", off,
                       fmt::format("{}: its blocks took {} instead of {}", place(curve, point),
                                   format_duration(static_cast<double>(seen.block_ns)), format_duration(asked)));
}

}  // namespace

std::string words_for(const Victim& victim) {
  const std::string block = format_duration(static_cast<double>(victim.block_ns));
  if (victim.kind == VictimKind::persistent) return fmt::format("persistent, {} blocks", block);
  return fmt::format("{}{} wave{} of {} blocks", victim.kind == VictimKind::memory ? "memory, " : "", victim.waves,
                     victim.waves == 1 ? "" : "s", block);
}

bool is_same(const Victim& a, const Victim& b) {
  return a.kind == b.kind && a.block_ns == b.block_ns && (a.waves == b.waves || a.kind == VictimKind::persistent);
}

std::optional<double> quantile_at(const Quantiles& quantiles, double level) {
  return level == 0.5 ? quantiles.p50_ns : level == 0.9 ? quantiles.p90_ns : quantiles.p99_ns;
}

std::optional<Interval> interval_at(const Quantiles& quantiles, double level) {
  return level == 0.5   ? quantiles.p50_interval_ns
         : level == 0.9 ? quantiles.p90_interval_ns
                        : quantiles.p99_interval_ns;
}

Quantiles quantiles_of(std::span<const double> latencies_ns, std::uint64_t seed) {
  Quantiles found;
  found.count = latencies_ns.size();
  if (latencies_ns.empty()) return found;
  std::vector<double> sorted(latencies_ns.begin(), latencies_ns.end());
  std::sort(sorted.begin(), sorted.end());
  const auto at = [&](double level) -> std::optional<double> {
    if (sorted.size() < min_requests(level)) return std::nullopt;
    return quantile_sorted(sorted, level);
  };
  found.mean_ns = mean(sorted);
  found.p50_ns = quantile_sorted(sorted, 0.5);
  found.p90_ns = at(0.9);
  found.p99_ns = at(0.99);
  found.p999_ns = at(0.999);
  found.max_ns = sorted.back();
  // In order of arrival: requests behind one kernel wait together, and the intervals have to account for that.
  BootstrapOptions options;
  options.resamples = kResamples;
  options.seed = seed;
  if (const auto intervals = summary_intervals(latencies_ns, options)) {
    found.p50_interval_ns = intervals->p50;
    found.p99_interval_ns = intervals->p99;
  }
  if (tail_level(found.count) >= 0.9)
    found.p90_interval_ns =
        bootstrap_interval(latencies_ns, [](std::span<const double> drawn) { return quantile(drawn, 0.9); }, options);
  return found;
}

Point point_of(const Victim& victim, Observation observation, const ExperimentPlan& plan) {
  const std::uint64_t seed = plan.seed;
  Point point;
  point.victim = victim;
  point.requests = plan.requests;
  point.interval_ns = plan.interval_ns;
  point.late = quantiles_of(differences(observation.requests, &Request::due_ns, &Request::submitted_ns), seed);
  point.to_start = quantiles_of(to_start_of(observation), seed);
  point.to_end = quantiles_of(to_end_of(observation), seed);
  point.tail = tail_level(point.to_end.count);
  point.is_overloaded = grows_until_the_end(observation.requests);
  point.observation = std::move(observation);
  return point;
}

Alone alone_of(std::vector<Observation> repeats, std::uint64_t seed) {
  Alone alone;
  std::vector<double> starts, ends;
  std::vector<std::vector<double>> by_repeat;
  for (const Observation& seen : repeats) {
    const auto start = to_start_of(seen), end = to_end_of(seen);
    starts.insert(starts.end(), start.begin(), start.end());
    ends.insert(ends.end(), end.begin(), end.end());
    if (end.empty()) continue;
    alone.medians_ns.push_back(median(end));
    by_repeat.push_back(end);
  }
  alone.to_start = quantiles_of(starts, seed);
  alone.to_end = quantiles_of(ends, seed);
  alone.repeats = std::move(repeats);
  if (alone.medians_ns.size() < 2) return alone;
  const auto [least, most] = std::minmax_element(alone.medians_ns.begin(), alone.medians_ns.end());
  if (*least <= 0) return alone;
  alone.drift = *most / *least - 1;
  BootstrapOptions options;
  options.resamples = kResamples;
  options.seed = seed;
  const auto interval =
      median_ratio_interval(by_repeat[static_cast<std::size_t>(most - alone.medians_ns.begin())],
                            by_repeat[static_cast<std::size_t>(least - alone.medians_ns.begin())], options);
  alone.has_drifted = *alone.drift > kMaxDrift && interval && interval->low > 1;
  return alone;
}

std::optional<Interval> spread_of(const Alone& alone, double level) {
  std::vector<double> found;
  for (const Observation& repeat : alone.repeats)
    if (const std::vector<double> ends = to_end_of(repeat); ends.size() >= min_requests(level))
      found.push_back(quantile(ends, level));
  if (found.size() < 2) return interval_at(alone.to_end, level);
  const auto [least, most] = std::minmax_element(found.begin(), found.end());
  return Interval{*least, *most};
}

Findings conclude(const ExperimentPlan& plan, Alone alone, std::vector<Undisturbed> undisturbed,
                  std::vector<Curve> curves) {
  Findings findings;
  findings.plan = plan;
  findings.alone = std::move(alone);
  findings.undisturbed = std::move(undisturbed);
  findings.curves = std::move(curves);
  std::vector<std::string> unobserved;
  for (Curve& curve : findings.curves)
    for (Point& point : curve.points) {
      if (!point.failure.empty()) {
        unobserved.push_back(fmt::format("{}: {}", place(curve, point), point.failure));
        continue;
      }
      point.against_alone =
          ratio(quantile_at(point.to_end, point.tail), quantile_at(findings.alone.to_end, point.tail));
      if (const auto spread = spread_of(findings.alone, point.tail); point.against_alone && spread && spread->low > 0) {
        const double own_ns = *quantile_at(point.to_end, point.tail);
        point.against_alone_interval = Interval{own_ns / spread->high, own_ns / spread->low};
      }
      const FullSpeed full = full_speed(findings.undisturbed, point.victim);
      if (const auto left = ratio(throughput(point.victim, point.observation), full.mean))
        point.victim_loss = 1 - *left;
      if (std::string wrong = wrong_work(curve, point); !wrong.empty()) findings.failures.push_back(std::move(wrong));
    }
  for (const Undisturbed& one : findings.undisturbed)
    if (!one.failure.empty())
      unobserved.push_back(fmt::format("{} without an intruder: {}", words_for(one.victim), one.failure));
  findings.failures.insert(findings.failures.end(), unobserved.begin(), unobserved.end());
  CurveWarnings curve_warnings;
  for (const Curve& curve : findings.curves)
    for (const Point& point : curve.points)
      if (point.failure.empty()) add_warnings(curve, point, curve_warnings);
  for (const Victim& victim : plan.victims)
    if (const FullSpeed full = full_speed(findings.undisturbed, victim); full.spread > kMaxSpread)
      curve_warnings.add(
          "speed", full.spread,
          fmt::format("{}: its own throughput differed by {:.0f} % from one time to the next, losses are "
                      "doubtful",
                      words_for(victim), 100 * full.spread));
  curve_warnings.add_to(findings.warnings);
  if (findings.alone.has_drifted)
    findings.warnings.insert(
        findings.warnings.begin(),
        fmt::format(
            "the intruder alone drifted: its median differs by {:.0f} % between repeats ({} to {}); numbers "
            "against alone are doubtful",
            100 * *findings.alone.drift,
            format_duration(*std::min_element(findings.alone.medians_ns.begin(), findings.alone.medians_ns.end())),
            format_duration(*std::max_element(findings.alone.medians_ns.begin(), findings.alone.medians_ns.end()))));
  const auto none = std::find_if(findings.curves.begin(), findings.curves.end(), [](const Curve& curve) {
    return curve.mechanism->name == "none" && !curve.points.empty();
  });
  for (Curve& curve : findings.curves) judge(curve, none == findings.curves.end() ? nullptr : &*none);
  findings.verdict = overall_verdict(findings.curves, findings.alone);
  return findings;
}

}  // namespace weir::preempt
