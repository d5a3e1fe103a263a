#include "run/trace_compare.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <unordered_map>
#include <utility>

#include "base/error.h"
#include "base/named_values.h"
#include "base/schemas.h"
#include "measure/result.h"
#include "measure/statistics.h"
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
  std::vector<BusyTimes> iterations;  // of all devices
  std::vector<BusyTimes> whole;       // by device
  std::size_t iteration_count = 0;    // of the device that has the most
};

Times times_of(const Timeline& timeline) {
  Times times;
  const std::size_t devices = std::max<std::size_t>(1, timeline.devices.size());
  for (std::size_t device = 0; device < devices; ++device) {
    std::vector<TraceRange> ranges;
    if (!timeline.devices.empty()) ranges = iteration_ranges(timeline, timeline.devices[device].process);
    const Breakdown found = breakdown(slice(timeline, static_cast<std::uint16_t>(device)), ranges);
    if (!found.times) continue;
    times.whole.push_back(*found.times);
    std::size_t count = 0;
    for (const IterationTimes& iteration : found.iterations) {
      if (!iteration.times) continue;
      times.iterations.push_back(*iteration.times);
      ++count;
    }
    times.iteration_count = std::max(times.iteration_count, count);
  }
  return times;
}

std::vector<double> samples_of(const std::vector<BusyTimes>& times, const Category& category) {
  std::vector<double> samples;
  for (const BusyTimes& one : times) samples.push_back(one.*category.time);
  return samples;
}

void add_categories(const Times& before, const Times& after, TraceComparison& comparison) {
  // A single iteration is the whole trace: there is nothing to average.
  const bool has_iterations = before.iteration_count >= 2 && after.iteration_count >= 2;
  comparison.baseline_iterations = has_iterations ? before.iteration_count : 0;
  comparison.test_iterations = has_iterations ? after.iteration_count : 0;
  for (const Category& category : kCategories) {
    CategoryChange& change = comparison.categories.emplace_back();
    change.category = category.name;
    const std::vector<double> baseline = samples_of(has_iterations ? before.iterations : before.whole, category);
    const std::vector<double> test = samples_of(has_iterations ? after.iterations : after.whole, category);
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
  std::vector<decltype(&comparison.kernels.front().durations)> metrics;
  for (auto& change : comparison.categories)
    if (change.is_judged) metrics.push_back(&change.iterations);
  for (auto& change : comparison.kernels)
    if (change.is_judged) metrics.push_back(&change.durations);
  return metrics;
}

Json verdict_json(const MetricComparison& metric, bool is_judged) {
  return WEIR_NAMED(named("verdict", is_judged ? Json(name_of(metric.verdict)) : Json(nullptr)),
                    text_or_null(metric.reason), interval_or_null(metric.interval), metric.p, metric.adjusted_p);
}

Json side_json(const TraceSide& side, const std::optional<double>& median_ns) {
  return WEIR_NAMED(side.count, side.total_ns, median_ns);
}

Json lone_json(const std::vector<KernelChange>& changes, const TraceSide KernelChange::* side) {
  Json list = Json::array();
  for (const KernelChange& change : changes)
    list.push_back(WEIR_NAMED(change.name, to_string(change.kind), named("count", (change.*side).count),
                              named("total_ns", (change.*side).total_ns)));
  return list;
}

}  // namespace

TraceComparison compare_traces(const Timeline& baseline, const std::string& baseline_name, const Timeline& test,
                               const std::string& test_name, CompareOptions options) {
  TraceComparison comparison;
  comparison.baseline = baseline_name;
  comparison.test = test_name;
  options.bootstrap.resamples = std::min(options.bootstrap.resamples, kMaxResamples);
  comparison.options = options;
  double before_ns = 0, after_ns = 0;
  const Kernels before = kernels_of(baseline, before_ns), after = kernels_of(test, after_ns);
  for (const auto& [kernels, name] : {std::pair{&before, &baseline_name}, std::pair{&after, &test_name}})
    if (kernels->empty())
      reject(fmt::format("{}: no command of a GPU in it, so there is nothing to compare", *name),
             "Capture GPU activity as well (torch.profiler: ProfilerActivity.CUDA).");
  add_categories(times_of(baseline), times_of(test), comparison);
  add_kernels(before, before_ns, after, after_ns, comparison);
  if (comparison.kernels.empty())
    reject(fmt::format("{} and {} have no command of the same name", baseline_name, test_name),
           "Compare traces of one program on devices of one kind.");
  const auto metrics = judged(comparison);
  comparison.hypotheses = decide(std::vector<Change*>(metrics.begin(), metrics.end()), comparison.options);
  for (KernelChange& change : comparison.kernels)
    if (change.is_judged && change.durations.verdict == Verdict::ambiguous && change.durations.interval &&
        has_several_sizes(before.at(change.name).samples))
      change.durations.reason =
          "instances of this name differ several times over within one trace, as of several sizes: the median tells "
          "little";
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
  json.update(WEIR_NAMED(comparison.kernels_left_out, comparison.notes));
  return json;
}

}  // namespace weir
