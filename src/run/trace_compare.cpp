#include "run/trace_compare.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <span>
#include <unordered_map>
#include <utility>

#include "base/error.h"
#include "base/named_values.h"
#include "base/schemas.h"
#include "base/units.h"
#include "measure/result.h"
#include "measure/statistics.h"
#include "run/analyze.h"
#include "trace/analyse/breakdown.h"
#include "trace/analyse/slice.h"
#include "trace/device_spans.h"
#include "trace/intervals.h"
#include "trace/timeline_builder.h"

namespace weir {
namespace {

// A kernel with a smaller share of both traces is listed but not judged: it cannot make the whole slower.
constexpr double kSmallestShare = 0.01;
// Enough samples and resamples for the interval of a median: 40 kernels of 2,000 instances are then judged in about a
// second.
constexpr std::size_t kMaxSamples = 2000;
constexpr int kMaxResamples = 1000;

// If instances of one name differ by more than this factor, they have several sizes.
constexpr double kSeveralSizes = 3;

// From this share of idle time on, in percent, the host may be what limits a trace.
constexpr double kHostsShare = 10;

struct Category {
  const char* name;
  double BusyTimes::* time;
  bool is_judged;
};
constexpr std::array kCategories{Category{"span", &BusyTimes::span_ns, true},
                                 Category{"compute", &BusyTimes::compute_ns, true},
                                 Category{"communication", &BusyTimes::communication_ns, true},
                                 Category{"exposed_communication", &BusyTimes::exposed_communication_ns, true},
                                 Category{"copy", &BusyTimes::copy_ns, true},
                                 Category{"busy", &BusyTimes::busy_ns, false},
                                 Category{"idle", &BusyTimes::idle_ns, false}};

struct Durations {
  SpanKind kind = SpanKind::kernel;
  std::vector<double> samples;  // in order of start
  double total_ns = 0;
};

using Kernels = std::map<std::string, Durations>;

Kernels kernels_of(const Timeline& timeline, double& total_ns) {
  std::unordered_map<std::uint64_t, Durations> by_name;
  for (const std::uint32_t i : device_work_by_start(timeline)) {
    const Span& span = timeline.spans[i];
    Durations& durations = by_name[std::uint64_t{span.name} << 8 | static_cast<std::uint64_t>(span.kind)];
    durations.kind = span.kind;
    durations.samples.push_back(static_cast<double>(distance_ns(span.started_ns, span.ended_ns)));
    durations.total_ns += durations.samples.back();
    total_ns += durations.samples.back();
  }
  Kernels kernels;
  for (auto& [key, durations] : by_name) {
    const auto name = static_cast<std::size_t>(key >> 8);
    std::string text = name < timeline.names.size() ? timeline.names[name]
                                                    : fmt::format("({} without a name)", to_string(durations.kind));
    // One name may have two kinds, for instance if a trace labels some copies as kernels.
    if (kernels.contains(text)) text += fmt::format(" ({})", to_string(durations.kind));
    kernels[std::move(text)] = std::move(durations);
  }
  return kernels;
}

// Keeps evenly spaced samples, so that slow changes remain visible.
std::vector<double> thinned(const std::vector<double>& samples) {
  if (samples.size() <= kMaxSamples) return samples;
  std::vector<double> kept;
  for (std::size_t i = 0; i < kMaxSamples; ++i) kept.push_back(samples[i * samples.size() / kMaxSamples]);
  return kept;
}

struct Times {
  // By number, of all devices. Devices of one job wait for each other, so an iteration is one sample: their mean.
  std::map<std::uint32_t, std::vector<BusyTimes>> iterations;
  std::vector<BusyTimes> whole;  // by device
  std::array<double, kSpanKinds> commands{};
  double copied_bytes = 0;
  std::size_t iteration_count = 0;  // of the device that has the most
};

Times times_of(const Timeline& timeline) {
  Times times;
  const std::size_t devices = std::max<std::size_t>(1, timeline.devices.size());
  for (std::size_t device = 0; device < devices; ++device) {
    std::vector<TraceRange> ranges;
    if (!timeline.devices.empty()) ranges = iteration_ranges(timeline, timeline.devices[device].process);
    const Breakdown found = breakdown(slice(timeline, static_cast<std::uint16_t>(device)), ranges);
    for (std::size_t kind = 0; kind < kSpanKinds; ++kind)
      times.commands[kind] += static_cast<double>(found.kinds[kind].commands);
    if (!found.times) continue;
    times.whole.push_back(*found.times);
    std::size_t count = 0;
    for (const IterationTimes& iteration : found.iterations) {
      if (!iteration.times) continue;
      times.iterations[iteration.number].push_back(*iteration.times);
      ++count;
    }
    times.iteration_count = std::max(times.iteration_count, count);
  }
  for (const Span& span : timeline.spans)
    if (is_device_work(span) && (span.kind == SpanKind::copy || span.kind == SpanKind::memset))
      times.copied_bytes += static_cast<double>(span.bytes);
  return times;
}

std::vector<double> samples_of(const std::vector<BusyTimes>& times, const Category& category) {
  std::vector<double> samples;
  for (const BusyTimes& one : times) samples.push_back(one.*category.time);
  return samples;
}

std::vector<double> iteration_samples(const Times& times, const Category& category) {
  std::vector<double> samples;
  for (const auto& [number, devices] : times.iterations) samples.push_back(mean(samples_of(devices, category)));
  return samples;
}

void add_totals(const Times& before, const Times& after, TraceComparison& comparison) {
  const auto add = [&](const char* quantity, const char* unit, double baseline, double test) {
    if (baseline <= 0 && test <= 0) return;
    comparison.totals.push_back(
        {quantity, unit, baseline, test, baseline > 0 ? std::optional(test / baseline) : std::nullopt});
  };
  for (const Category& category : kCategories)
    if (std::string_view(category.name) == "span" || !category.is_judged)
      add(category.name, "ns", mean(samples_of(before.whole, category)), mean(samples_of(after.whole, category)));
  for (const auto& [quantity, kind] : {std::pair{"kernels", SpanKind::kernel},
                                       {"collectives", SpanKind::collective},
                                       {"copies", SpanKind::copy},
                                       {"memsets", SpanKind::memset}})
    add(quantity, "", before.commands[static_cast<std::size_t>(kind)], after.commands[static_cast<std::size_t>(kind)]);
  add("copied_bytes", "bytes", before.copied_bytes, after.copied_bytes);
  add("iterations", "", static_cast<double>(before.iteration_count), static_cast<double>(after.iteration_count));
}

void add_categories(const Times& before, const Times& after, TraceComparison& comparison) {
  // A single iteration is the whole trace: there is nothing to average.
  const bool has_iterations = before.iteration_count >= 2 && after.iteration_count >= 2;
  comparison.baseline_iterations = has_iterations ? before.iteration_count : 0;
  comparison.test_iterations = has_iterations ? after.iteration_count : 0;
  for (const Category& category : kCategories) {
    CategoryChange& change = comparison.categories.emplace_back();
    change.category = category.name;
    const std::vector<double> baseline =
        has_iterations ? iteration_samples(before, category) : samples_of(before.whole, category);
    const std::vector<double> test =
        has_iterations ? iteration_samples(after, category) : samples_of(after.whole, category);
    change.baseline_ns = has_iterations ? median(baseline) : mean(baseline);
    change.test_ns = has_iterations ? median(test) : mean(test);
    if (*change.baseline_ns > 0) change.ratio = *change.test_ns / *change.baseline_ns;
    if (!has_iterations || !category.is_judged || *change.baseline_ns <= 0 || *change.test_ns <= 0) continue;
    change.is_judged = true;
    change.iterations.metric = category.name;
    change.iterations.unit = "ns";
    measure_samples(baseline, test, comparison.options, change.iterations);
  }
  if (!has_iterations)
    comparison.notes.push_back(
        fmt::format("{} marked iterations, so categories are of whole traces and carry no verdict",
                    before.iteration_count < 2 && after.iteration_count < 2 ? "neither trace has"
                    : before.iteration_count < 2                            ? "the baseline has no"
                                                                            : "the test has no"));
}

double larger_total(const KernelChange& change) { return std::max(change.baseline.total_ns, change.test.total_ns); }

void keep_largest(std::vector<KernelChange>& changes, std::size_t& left_out) {
  std::stable_sort(changes.begin(), changes.end(),
                   [](const KernelChange& a, const KernelChange& b) { return larger_total(a) > larger_total(b); });
  if (changes.size() <= kMaxKernels) return;
  left_out += changes.size() - kMaxKernels;
  changes.resize(kMaxKernels);
}

void add_kernels(const Kernels& before, double before_ns, const Kernels& after, double after_ns,
                 TraceComparison& comparison) {
  const auto side_of = [](const Durations& durations) {
    return TraceSide{durations.samples.size(), durations.total_ns};
  };
  for (const auto& [name, durations] : before) {
    KernelChange change;
    change.name = name;
    change.kind = durations.kind;
    change.baseline = side_of(durations);
    const auto other = after.find(name);
    if (other != after.end()) change.test = side_of(other->second);
    (other != after.end() ? comparison.kernels : comparison.baseline_only).push_back(std::move(change));
  }
  for (const auto& [name, durations] : after) {
    if (before.contains(name)) continue;
    KernelChange& change = comparison.test_only.emplace_back();
    change.name = name;
    change.kind = durations.kind;
    change.test = side_of(durations);
  }
  for (std::vector<KernelChange>* list : {&comparison.kernels, &comparison.baseline_only, &comparison.test_only})
    keep_largest(*list, comparison.kernels_left_out);
  bool is_thinned = false;
  std::size_t judged = 0;
  for (KernelChange& change : comparison.kernels) {
    const std::vector<double>& baseline = before.at(change.name).samples;
    const std::vector<double>& test = after.at(change.name).samples;
    MetricComparison& durations = change.durations;
    durations.metric = "duration";
    durations.unit = "ns";
    const bool is_large =
        change.baseline.total_ns >= kSmallestShare * before_ns || change.test.total_ns >= kSmallestShare * after_ns;
    if (is_large && judged < kMaxJudged) {
      ++judged;
      change.is_judged = true;
      is_thinned |= std::max(baseline.size(), test.size()) > kMaxSamples;
      measure_samples(thinned(baseline), thinned(test), comparison.options, durations);
    }
    durations.baseline_count = baseline.size();
    durations.test_count = test.size();
    durations.baseline_median = median(baseline);
    durations.test_median = median(test);
    if (*durations.baseline_median > 0) durations.ratio = *durations.test_median / *durations.baseline_median;
  }
  if (is_thinned)
    comparison.notes.push_back(
        fmt::format("kernels with more than {} instances are judged by that many of them, evenly spread", kMaxSamples));
}

bool has_several_sizes(const std::vector<double>& samples) {
  return quantile(samples, 0.9) > kSeveralSizes * quantile(samples, 0.1);
}

// Everything that has a verdict.
template <class Comparison>
auto judged(Comparison& comparison) {
  std::vector<decltype(&comparison.kernels.front().durations)> metrics{&comparison.pace.times};
  for (auto& change : comparison.categories)
    if (change.is_judged) metrics.push_back(&change.iterations);
  for (auto& change : comparison.kernels)
    if (change.is_judged) metrics.push_back(&change.durations);
  return metrics;
}

// One entry was chosen before it was measured: the pace. It has half of the significance to itself, and the others
// share the other half, so together they accuse identical code no more often than one comparison does.
void judge(TraceComparison& comparison) {
  TracePace& pace = comparison.pace;
  const auto metrics = judged(comparison);
  CompareOptions half = comparison.options;
  half.significance /= 2;
  Change* const first = &pace.times;
  comparison.hypotheses = decide(std::span(&first, 1), half);
  comparison.hypotheses += decide(std::vector<Change*>(metrics.begin() + 1, metrics.end()), half);
  Change& times = pace.times;
  const auto doubt = [&](Verdict verdict, std::string reason) {
    times.verdict = verdict;
    times.reason = std::move(reason);
  };
  if (!pace.is_marked && pace.other_work > kOtherWork)
    return doubt(Verdict::not_comparable,
                 fmt::format("the traces did different work: {:.0f} % of the device time from one start of {} to the "
                             "next is of commands that only one of them has; mark iterations to compare them",
                             100 * pace.other_work, pace.kernel));
  if (!pace.mean_ratio || !times.ratio) return;
  const double limit = 1 + comparison.options.threshold;
  const bool disagrees = times.verdict == Verdict::same     ? *pace.mean_ratio > limit || *pace.mean_ratio < 1 / limit
                         : times.verdict == Verdict::slower ? *pace.mean_ratio < 1
                         : times.verdict == Verdict::faster ? *pace.mean_ratio > 1
                                                            : false;
  if (disagrees)
    doubt(Verdict::ambiguous, fmt::format("the median is {} of the baseline's but the mean {}: a few long pauses "
                                          "decide, and they are too few to judge",
                                          format_ratio(*times.ratio), format_ratio(*pace.mean_ratio)));
}

double total_of(const TraceComparison& comparison, std::string_view quantity, double TraceTotal::* side) {
  for (const TraceTotal& each : comparison.totals)
    if (each.quantity == quantity) return each.*side;
  return 0;
}

// The verdict on the pace, then what is certain: how much work was done, in which time, and how much of it was idle.
void add_summary(TraceComparison& comparison) {
  const TracePace& pace = comparison.pace;
  const Change& times = pace.times;
  const std::string unit = pace.is_marked ? "an iteration" : "a repetition";
  std::string first =
      fmt::format("{}: ", times.verdict == Verdict::not_comparable ? "not comparable" : name_of(times.verdict));
  if (times.ratio && times.verdict != Verdict::not_comparable)
    first += times.interval ? fmt::format("{} took {} as long ({:g} % interval {:.2f} to {:.2f})", unit,
                                          format_ratio(*times.ratio), 100 * comparison.options.bootstrap.confidence,
                                          times.interval->low, times.interval->high)
                            : fmt::format("{} took {} as long", unit, format_ratio(*times.ratio));
  const bool has_ratio = !first.ends_with(": ");
  if (!has_ratio) first += times.reason;
  comparison.summary.push_back(first + ".");

  const auto before = [&](const char* quantity) { return total_of(comparison, quantity, &TraceTotal::baseline); };
  const auto after = [&](const char* quantity) { return total_of(comparison, quantity, &TraceTotal::test); };
  const auto idle_share = [&](auto&& side) { return side("span") > 0 ? 100 * side("idle") / side("span") : 0; };
  const auto change = [](double ratio) {
    return std::fabs(ratio - 1) < 0.0005 ? std::string("unchanged") : fmt::format("{:+.1f} %", 100 * (ratio - 1));
  };
  std::string facts;
  for (const char* quantity : {"kernels", "span"})
    if (before(quantity) > 0)
      facts +=
          fmt::format("{}{} {}", facts.empty() ? "" : ", ", quantity == std::string_view("span") ? "time" : quantity,
                      change(after(quantity) / before(quantity)));
  comparison.summary.push_back(
      fmt::format("The test against the baseline: {}; the device was idle for {:.1f} % of the "
                  "time, {:.1f} % before.",
                  facts, idle_share(after), idle_share(before)));
  if (has_ratio && !times.reason.empty())
    comparison.summary.push_back(fmt::format("Why {}: {}.", name_of(times.verdict), times.reason));
  if (pace.is_marked && pace.other_work > kOtherWork)
    comparison.summary.push_back(
        fmt::format("An iteration is not the same work in both: {:.0f} commands before, {:.0f} now; {:.0f} % of its "
                    "device time is of commands that only one trace has.",
                    pace.baseline_commands, pace.test_commands, 100 * pace.other_work));
  const bool is_changed = times.verdict == Verdict::slower || times.verdict == Verdict::faster;
  if (is_changed && std::max(idle_share(before), idle_share(after)) > kHostsShare)
    comparison.notes.push_back(
        "the device waits in these traces; where it waits for the host, two processes of identical code often differ "
        "by 10 % and sometimes by 40 %: trace another run of each before you blame the code");
}

Json verdict_json(const MetricComparison& metric, bool is_judged) {
  return WEIR_NAMED(named("verdict", is_judged ? Json(name_of(metric.verdict)) : Json(nullptr)),
                    text_or_null(metric.reason), interval_or_null(metric.interval), metric.p, metric.adjusted_p);
}

Json pace_json(const TracePace& pace) {
  const Change& times = pace.times;
  Json json = WEIR_NAMED(pace.is_marked, text_or_null(pace.kernel));
  json["baseline"] = {{"count", times.baseline_count},
                      {"commands", pace.baseline_commands},
                      {"duration_ns", {{"p50", number_or_null(times.baseline_median)}}}};
  json["test"] = {{"count", times.test_count},
                  {"commands", pace.test_commands},
                  {"duration_ns", {{"p50", number_or_null(times.test_median)}}}};
  json.update(WEIR_NAMED(times.ratio, pace.mean_ratio, pace.other_work));
  json.update(verdict_json(pace.times, true));
  return json;
}

Json side_json(const TraceSide& side, const std::optional<double>& median_ns) {
  return WEIR_NAMED(side.count, side.total_ns, named("duration_ns", Json{{"p50", number_or_null(median_ns)}}));
}

Json lone_json(const std::vector<KernelChange>& changes, const TraceSide KernelChange::* side) {
  Json list = Json::array();
  for (const KernelChange& change : changes)
    list.push_back(WEIR_NAMED(change.name, to_string(change.kind), named("count", (change.*side).count),
                              named("total_ns", (change.*side).total_ns)));
  return list;
}

struct ComparedParts {
  std::optional<TimeInterval> baseline, test;  // empty: all of it
};

// Start-up is left out where both traces show one: a pause in only one of them is what a comparison has to find.
ComparedParts parts_of(const Timeline& baseline, const Timeline& test, const std::optional<TimeInterval>& window,
                       TraceComparison& comparison) {
  ComparedParts parts{window_in(baseline, window), window_in(test, window)};
  if (window) {
    if (parts.baseline) comparison.notes.emplace_back("only the part of each trace that --window names");
    return parts;
  }
  if (!parts.baseline != !parts.test) {
    comparison.notes.push_back(fmt::format(
        "{} seems to begin with a start-up and {} does not, so both are compared whole (--window 1.5s..3s "
        "compares a part)",
        parts.test ? comparison.test : comparison.baseline, parts.test ? comparison.baseline : comparison.test));
    return {};
  }
  if (!parts.test) return parts;
  const auto start_up = [](const Timeline& whole, const TimeInterval& part) {
    std::int64_t first = INT64_MAX;
    for (const Span& span : whole.spans)
      if (span.started_ns != kNoTime) first = std::min(first, span.started_ns);
    return format_duration(static_cast<double>(distance_ns(first, part.from_ns)));
  };
  comparison.notes.push_back(fmt::format(
      "without the programs' start-up, which took {} in {} and {} in {} (--window all includes it)",
      start_up(baseline, *parts.baseline), comparison.baseline, start_up(test, *parts.test), comparison.test));
  return parts;
}

}  // namespace

TraceComparison compare_traces(const Timeline& whole_baseline, const std::string& baseline_name,
                               const Timeline& whole_test, const std::string& test_name, CompareOptions options,
                               const std::optional<TimeInterval>& window) {
  TraceComparison comparison;
  comparison.baseline = baseline_name;
  comparison.test = test_name;
  const ComparedParts parts = parts_of(whole_baseline, whole_test, window, comparison);
  const Timeline baseline_part = parts.baseline ? within(whole_baseline, *parts.baseline) : Timeline{};
  const Timeline test_part = parts.test ? within(whole_test, *parts.test) : Timeline{};
  const Timeline& baseline = parts.baseline ? baseline_part : whole_baseline;
  const Timeline& test = parts.test ? test_part : whole_test;
  options.bootstrap.resamples = std::min(options.bootstrap.resamples, kMaxResamples);
  comparison.options = options;
  double before_ns = 0, after_ns = 0;
  const Kernels before = kernels_of(baseline, before_ns), after = kernels_of(test, after_ns);
  for (const auto& [kernels, name] : {std::pair{&before, &baseline_name}, std::pair{&after, &test_name}})
    if (kernels->empty())
      reject(fmt::format("{}: no command of a GPU in it, so there is nothing to compare", *name),
             "Capture GPU activity as well (torch.profiler: ProfilerActivity.CUDA).");
  const Times baseline_times = times_of(baseline), test_times = times_of(test);
  add_totals(baseline_times, test_times, comparison);
  add_categories(baseline_times, test_times, comparison);
  add_kernels(before, before_ns, after, after_ns, comparison);
  if (comparison.kernels.empty())
    reject(fmt::format("{} and {} have no command of the same name", baseline_name, test_name),
           "Compare traces of one program on devices of one kind.");
  comparison.pace = measure_pace(baseline, test, comparison.options);
  judge(comparison);
  for (KernelChange& change : comparison.kernels)
    if (change.is_judged && change.durations.verdict == Verdict::ambiguous && change.durations.interval &&
        has_several_sizes(before.at(change.name).samples))
      change.durations.reason =
          "instances of this name differ several times over within one trace, as of several sizes: the median tells "
          "little";
  add_summary(comparison);
  comparison.operators = compare_operators(baseline, test, comparison.options.threshold);
  return comparison;
}

VerdictCounts count_verdicts(const TraceComparison& comparison) {
  VerdictCounts counts;
  for (const MetricComparison* metric : judged(comparison)) ++counts[metric->verdict];
  return counts;
}

Json trace_comparison_json(const TraceComparison& comparison, bool is_strict) {
  Json json = WEIR_NAMED(named("schema", schemas::trace_comparison), comparison.baseline, comparison.test);
  add_method(json, comparison.options, comparison.hypotheses, count_verdicts(comparison), is_strict);
  json["summary"] = comparison.summary;
  json["totals"] = Json::array();
  for (const TraceTotal& each : comparison.totals)
    json["totals"].push_back(WEIR_NAMED(each.quantity, text_or_null(each.unit), each.baseline, each.test, each.ratio));
  json["pace"] = pace_json(comparison.pace);
  const bool has_iterations = comparison.baseline_iterations > 0;
  json["iterations"] = has_iterations
                           ? Json{{"baseline", comparison.baseline_iterations}, {"test", comparison.test_iterations}}
                           : Json(nullptr);
  json["categories"] = Json::array();
  for (const CategoryChange& change : comparison.categories) {
    Json one = WEIR_NAMED(change.category, change.baseline_ns, change.test_ns, change.ratio);
    one.update(verdict_json(change.iterations, change.is_judged));
    json["categories"].push_back(std::move(one));
  }
  json["kernels"] = Json::array();
  for (const KernelChange& change : comparison.kernels) {
    Json one = WEIR_NAMED(change.name, to_string(change.kind),
                          named("baseline", side_json(change.baseline, change.durations.baseline_median)),
                          named("test", side_json(change.test, change.durations.test_median)), change.durations.ratio);
    one.update(verdict_json(change.durations, change.is_judged));
    json["kernels"].push_back(std::move(one));
  }
  json["baseline_only"] = lone_json(comparison.baseline_only, &KernelChange::baseline);
  json["test_only"] = lone_json(comparison.test_only, &KernelChange::test);
  json["operators"] = operator_comparison_json(comparison.operators);
  json["operators_reason"] = text_or_null(comparison.operators.reason);
  json.update(WEIR_NAMED(comparison.kernels_left_out, comparison.notes));
  return json;
}

}  // namespace weir
