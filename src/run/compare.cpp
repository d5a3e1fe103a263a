#include "run/compare.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>

#include "base/error.h"
#include "base/named_values.h"
#include "base/plain_text.h"
#include "base/units.h"
#include "measure/modes.h"
#include "measure/statistics.h"
#include "run/pairing.h"

namespace weir {
namespace {

constexpr std::size_t kMaxNotes = 12;

struct Metric {
  const char* name;
  const SampleSeries ResultPoint::* series;
  bool is_less_better;
};
constexpr std::array kMetrics{Metric{"latency", &ResultPoint::latency, true},
                              Metric{"throughput", &ResultPoint::throughput, false}};

// "samples/sec" and "samples/s" are one unit.
std::string plain_unit(std::string unit) {
  if (unit.ends_with("/sec")) unit.resize(unit.size() - 2);
  return unit;
}

bool mentions(std::string_view text, std::initializer_list<std::string_view> words) {
  return std::any_of(words.begin(), words.end(),
                     [&](std::string_view word) { return text.find(word) != std::string_view::npos; });
}

// Settings that affect speed; not those that change with every run (free memory, temperature, paths).
bool can_explain(const std::string& name) {
  std::string lower;
  for (const char letter : name) lower += static_cast<char>(std::tolower(static_cast<unsigned char>(letter)));
  if (mentions(lower, {"free", "used", "temperature", "time", "uuid", "path", "home", "host"})) return false;
  return mentions(lower, {"model", "backend", "driver", "version", "queue", "governor", "toolkit", "connections",
                          "cuda", "hip", "gpu_", "hsa_", "rocm", "rocr", "nccl", "rccl", "tool", "worker"});
}

void note_settings(const ResultPoint& baseline, const ResultPoint& test, std::map<std::string, std::size_t>& notes) {
  const auto value_in = [](const ResultPoint& point, const std::string& name) {
    const auto found = point.settings.find(name);
    return found == point.settings.end() ? std::string("(not set)") : found->second;
  };
  const auto compare = [&](const std::string& name) {
    if (!can_explain(name)) return;
    const std::string left = value_in(baseline, name);
    const std::string right = value_in(test, name);
    if (left != right) ++notes[fmt::format("{} differs: {} vs {}", name, left, right)];
  };
  // Another tool records other settings: compare only those that both have.
  if (baseline.is_key_complete != test.is_key_complete) {
    ++notes["Weir and AORTA build workloads of one name differently: ratios between them compare two programs"];
    for (const auto& [name, value] : baseline.settings)
      if (test.settings.contains(name)) compare(name);
    return;
  }
  for (const auto& [name, value] : baseline.settings) compare(name);
  for (const auto& [name, value] : test.settings)
    if (!baseline.settings.contains(name)) compare(name);
  if (!baseline.device.empty() && !test.device.empty() && baseline.device != test.device)
    ++notes[fmt::format("device differs: {} vs {}", baseline.device, test.device)];
}

void measure(const Metric& metric, const SampleSeries& baseline, const SampleSeries& test,
             const std::optional<Spread>& spread, const CompareOptions& options, MetricComparison& result) {
  result.metric = metric.name;
  result.unit = test.unit.empty() ? baseline.unit : test.unit;
  result.is_less_better = metric.is_less_better;
  const bool is_comparable =
      baseline.unit.empty() || test.unit.empty() || plain_unit(baseline.unit) == plain_unit(test.unit);
  if (is_comparable && !baseline.samples.empty() && !test.samples.empty())
    return measure_sides(by_process(baseline.samples, baseline.processes), by_process(test.samples, test.processes),
                         spread, options, result);
  result.verdict = Verdict::not_comparable;
  result.baseline_count = baseline.samples.size();
  result.test_count = test.samples.size();
  if (!baseline.samples.empty()) result.baseline_median = median(baseline.samples);
  if (!test.samples.empty()) result.test_median = median(test.samples);
  if (baseline.samples.empty() || test.samples.empty()) {
    const bool is_baseline = baseline.samples.empty();
    result.reason =
        fmt::format("{}: {}", is_baseline ? "baseline" : "test", is_baseline ? baseline.reason : test.reason);
  } else {
    result.reason = fmt::format("units differ: {} vs {}", baseline.unit, test.unit);
  }
}

// Samples of a process that gather around two values have no typical one.
void note_modes(const char* side, const SampleSeries& series, const CompareOptions& options,
                std::vector<std::string>& notes) {
  const std::vector<ProcessSamples> processes = by_process(series.samples, series.processes);
  std::optional<Modes> first;
  std::size_t count = 0;
  for (const ProcessSamples& process : processes) {
    const auto modes = two_modes(process, 1 + options.threshold);
    if (!modes) continue;
    ++count;
    if (!first) first = modes;
  }
  if (!first) return;
  notes.push_back(fmt::format(
      "{}: samples{} gather around two values, {} and {} ({:.0f} and {:.0f} %): a median may move between them without "
      "a cause",
      side, processes.size() == 1 ? "" : fmt::format(" of {} of {} processes", count, processes.size()),
      series.unit == "ns" ? format_duration(first->low.value) : format_quantity(first->low.value),
      series.unit == "ns" ? format_duration(first->high.value) : format_quantity(first->high.value),
      100 * first->low.share, 100 * first->high.share));
}

// Notes about effects that a median does not show.
void add_warnings(const Metric& metric, const SampleSeries& baseline, const SampleSeries& test,
                  const MetricComparison& result, const CompareOptions& options, std::vector<std::string>& notes) {
  for (const auto& [side, series] : {std::pair{"baseline", &baseline}, std::pair{"test", &test}}) {
    note_modes(side, *series, options, notes);
    if (series->processes.size() > 1) continue;  // levels of processes are no drift
    const auto drift = trend(series->samples);
    if (drift && drift->is_clear && std::fabs(drift->change) > options.threshold / 2)
      notes.push_back(fmt::format("{}: {} (warm-up too short, or clocks?)", side,
                                  drift_text(metric.is_less_better ? drift->end_ratio : 1 / drift->end_ratio)));
  }
  if (!result.tail_ratio || result.verdict == Verdict::slower) return;
  const double tail = metric.is_less_better ? *result.tail_ratio : 1 / *result.tail_ratio;
  if (metric.is_less_better && std::min(result.baseline_count, result.test_count) >= 40 &&
      tail > 1 + 5 * options.threshold)
    notes.push_back(fmt::format("the tail grew: p99 latency is {:.2f} times the baseline's (not judged)", tail));
}

Verdict worst_of(const std::vector<MetricComparison>& metrics) {
  const auto has = [&](Verdict verdict) {
    return std::any_of(metrics.begin(), metrics.end(), [&](const auto& metric) { return metric.verdict == verdict; });
  };
  for (const Verdict verdict : {Verdict::slower, Verdict::ambiguous, Verdict::not_comparable, Verdict::faster})
    if (has(verdict)) return verdict;
  return Verdict::same;
}

// Virtual time is the same in every process.
bool is_virtual(const ResultPoint& point) {
  const auto backend = point.settings.find("device.backend");
  return point.device.starts_with("sim:") || (backend != point.settings.end() && backend->second == "sim");
}

bool has_one_process(const ResultPoint& point) {
  return std::max(point.latency.processes.size(), point.throughput.processes.size()) < 2;
}

// Says what one process per side cannot know, and what was taken instead.
void explain_single(const ResultPoint& baseline, const ResultPoint& test, const std::optional<Spread>& spread,
                    const CompareOptions& options, PairComparison& pair) {
  if (spread && spread->deviation == 0) return;
  const bool is_baseline = has_one_process(baseline), is_test = has_one_process(test);
  const char* const where = is_baseline && is_test ? "on each side" : (is_baseline ? "in the baseline" : "in the test");
  const auto by_spread = std::find_if(pair.metrics.begin(), pair.metrics.end(),
                                      [](const MetricComparison& metric) { return metric.p && !metric.rank_p; });
  if (spread && by_spread != pair.metrics.end()) {
    const std::string processes =
        is_baseline || is_test
            ? fmt::format("one process {}", where)
            : fmt::format("{} against {} processes", by_spread->test_processes, by_spread->baseline_processes);
    pair.notes.push_back(fmt::format("{}: judged with a spread of {:.2g} % between processes ({})", processes,
                                     100 * std::expm1(spread->deviation), spread->source));
  }
  if (spread || (!is_baseline && !is_test)) return;
  bool is_open = false;
  for (MetricComparison& metric : pair.metrics) {
    if (metric.p || metric.verdict == Verdict::not_comparable) continue;
    if (metric.ratio && metric.reason.starts_with("one process")) {
      is_open = true;
      metric.reason = fmt::format("one process {}, and how much identical processes differ here is not known", where);
    }
  }
  if (is_open && !(baseline.is_key_complete && test.is_key_complete))
    pair.notes.push_back(
        fmt::format("to settle it, compare folders of {} runs each", fewest_processes(options.significance)));
  else if (is_open)
    pair.notes.push_back(fmt::format("to settle it, run {} as: {}",
                                     is_baseline && is_test ? "both sides"
                                     : is_baseline          ? "the baseline"
                                                            : "the test",
                                     settling_command(is_test ? test : baseline, options.significance)));
}

PairComparison compare_pair(const ResultPoint& baseline, const ResultPoint& test, const CompareOptions& options,
                            const FindSpread& find_spread) {
  PairComparison pair;
  pair.key = baseline.key;
  for (const auto& [name, value] : test.key) pair.key.emplace(name, value);
  pair.notes = baseline.notes;
  for (const std::string& note : test.notes)
    if (std::find(pair.notes.begin(), pair.notes.end(), note) == pair.notes.end()) pair.notes.push_back(note);
  if (settle_failure(baseline.failure, test.failure, pair)) return pair;
  std::optional<Spread> spread;
  if (is_virtual(baseline) && is_virtual(test))
    spread = Spread{0, 0, "virtual time"};
  else if (find_spread)
    spread = find_spread(baseline, test);
  for (const Metric& metric : kMetrics) {
    const SampleSeries& before = baseline.*metric.series;
    const SampleSeries& after = test.*metric.series;
    if (before.samples.empty() && after.samples.empty() && before.is_expected_missing && after.is_expected_missing) {
      pair.notes.push_back(fmt::format("{} is not judged: {}", metric.name, after.reason));
      continue;
    }
    measure(metric, before, after, spread, options, pair.metrics.emplace_back());
  }
  explain_single(baseline, test, spread, options, pair);
  if (pair.metrics.empty()) {
    pair.verdict = Verdict::not_comparable;
    pair.failure = "neither side has samples of any metric";
  }
  return pair;
}

LonePoint lone(const ResultPoint& point, const std::set<std::string>& fields, const std::string& nearest) {
  return {label_of(point, fields), point.origin, nearest};
}

}  // namespace

Comparison compare_results(const ResultFile& baseline, std::span<const ResultFile> tests, const CompareOptions& options,
                           const FindSpread& find_spread) {
  Comparison comparison{baseline.name, options, {}, 0};
  const std::vector<ResultPoint> before = pool_repeats(baseline.points);
  std::vector<std::vector<ResultPoint>> after;
  std::vector<ResultPoint> all = before;
  for (const ResultFile& test : tests) {
    after.push_back(pool_repeats(test.points));
    all.insert(all.end(), after.back().begin(), after.back().end());
  }
  const std::set<std::string> fields = varying_fields(all);
  std::vector<Pairing> pairings;

  for (std::size_t t = 0; t < tests.size(); ++t) {
    const Pairing& pairing = pairings.emplace_back(pair_points(before, after[t]));
    TestComparison& result = comparison.tests.emplace_back();
    result.name = tests[t].name;
    if (pairing.pairs.empty())
      reject(fmt::format("{}: no result has a partner in {}", tests[t].name, baseline.name),
             fmt::format("{}: {}. Compare runs of the same workload with the same flags: weir run WORKLOAD -o FILE",
                         label_of(after[t].front(), fields), pairing.test_only.front().nearest));
    std::map<std::string, std::size_t> differing;
    for (const auto& [i, j] : pairing.pairs) {
      result.pairs.push_back(compare_pair(before[i], after[t][j], options, find_spread));
      result.pairs.back().label = label_of(before[i], fields);
      note_settings(before[i], after[t][j], differing);
    }
    for (const Unpaired& point : pairing.baseline_only)
      result.baseline_only.push_back(lone(before[point.index], fields, point.nearest));
    for (const Unpaired& point : pairing.test_only)
      result.test_only.push_back(lone(after[t][point.index], fields, point.nearest));
    result.notes = baseline.notes;
    result.notes.insert(result.notes.end(), tests[t].notes.begin(), tests[t].notes.end());
    for (const auto& [note, times] : differing) {
      if (result.notes.size() >= kMaxNotes) {
        result.notes.emplace_back("more settings differ; see the result files");
        break;
      }
      result.notes.push_back(times == result.pairs.size() ? note : fmt::format("{} ({} pairs)", note, times));
    }
  }

  decide_all(comparison, MetricsAre::one_measurement);
  for (std::size_t t = 0; t < comparison.tests.size(); ++t) {
    for (std::size_t k = 0; k < comparison.tests[t].pairs.size(); ++k) {
      PairComparison& pair = comparison.tests[t].pairs[k];
      const auto& [i, j] = pairings[t].pairs[k];
      // Latency and throughput drift together: one warning is enough.
      const auto judged = std::find_if(pair.metrics.begin(), pair.metrics.end(),
                                       [](const MetricComparison& metric) { return metric.ratio.has_value(); });
      if (judged == pair.metrics.end()) continue;
      const Metric& metric = kMetrics[judged->metric == kMetrics[0].name ? 0 : 1];
      add_warnings(metric, before[i].*metric.series, after[t][j].*metric.series, *judged, options, pair.notes);
    }
  }
  return comparison;
}

void decide_all(Comparison& comparison, MetricsAre metrics) {
  std::map<std::string, std::vector<Change*>> families;
  for (TestComparison& test : comparison.tests)
    for (PairComparison& pair : test.pairs)
      for (MetricComparison& metric : pair.metrics)
        families[metrics == MetricsAre::several ? "" : metric.metric].push_back(&metric);
  comparison.hypotheses = 0;
  for (const auto& [name, changes] : families)
    comparison.hypotheses = std::max(comparison.hypotheses, decide(changes, comparison.options));
  for (TestComparison& test : comparison.tests)
    for (PairComparison& pair : test.pairs)
      if (pair.failure.empty()) pair.verdict = worst_of(pair.metrics);
}

std::string settling_command(const ResultPoint& point, double significance) {
  // What says where results go, or how many processes there are.
  constexpr std::array<std::string_view, 7> kWithValue{"-o",       "--output",       "--processes", "--until",
                                                       "--budget", "--host-profile", "--dot"};
  constexpr std::array<std::string_view, 4> kAlone{"--force", "--quiet", "-q", "--resume"};
  const auto is_among = [](const auto& flags, std::string_view word) {
    return std::find(flags.begin(), flags.end(), word) != flags.end();
  };
  std::vector<std::string> words;
  if (point.command.size() > 2 && (point.command[1] == "run" || point.command[1] == "sweep")) {
    for (std::size_t i = 0; i < point.command.size(); ++i) {
      const std::string& word = point.command[i];
      if (is_among(kWithValue, word))
        ++i;
      else if (!is_among(kAlone, word) && !is_among(kWithValue, std::string_view(word).substr(0, word.find('='))))
        words.push_back(word);
    }
  } else {
    words = {"weir", "run", point.key.at("workload"), "--streams", point.key.at("streams")};
    if (!point.device.empty()) words.insert(words.end(), {"--device", point.device});
    if (const auto submit = point.key.find("submit"); submit != point.key.end())
      words.insert(words.end(), {"--submit", submit->second});
  }
  words.insert(words.end(), {"--processes", fmt::to_string(fewest_processes(significance))});
  if (words[1] == "run") words.insert(words.end(), {"-o", "FILE"});
  std::string command;
  for (const std::string& word : words) command += fmt::format("{}{}", command.empty() ? "" : " ", shell_word(word));
  return command;
}

bool settle_failure(const std::string& baseline_failure, const std::string& test_failure, PairComparison& pair) {
  if (!test_failure.empty()) {
    pair.verdict = Verdict::slower;
    pair.failure = fmt::format("test: {}{}", test_failure, baseline_failure.empty() ? "" : " (so did the baseline)");
  } else if (!baseline_failure.empty()) {
    pair.verdict = Verdict::not_comparable;
    pair.failure = fmt::format("baseline: {}", baseline_failure);
  }
  return !pair.failure.empty();
}

void add_method(Json& document, const CompareOptions& options, std::size_t hypotheses, const VerdictCounts& counts,
                bool is_strict) {
  document.update(WEIR_NAMED(options.threshold, options.significance, options.bootstrap.confidence, hypotheses));
  for (const Verdict verdict : kVerdicts) {
    const auto found = counts.find(verdict);
    document["verdicts"][name_of(verdict)] = found == counts.end() ? 0 : found->second;
  }
  document["exit_code"] = exit_code(counts, is_strict);
}

VerdictCounts count_verdicts(const Comparison& comparison) {
  VerdictCounts counts;
  for (const TestComparison& test : comparison.tests)
    for (const PairComparison& pair : test.pairs) ++counts[pair.verdict];
  return counts;
}

}  // namespace weir
