// Decides whether a test run is slower, faster or the same as its baseline. Knows points and statistics; prints
// nothing.
#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "measure/bootstrap.h"
#include "run/load.h"

namespace weir {

enum class Verdict { same, faster, slower, ambiguous };
const char* name_of(Verdict verdict);

struct CompareOptions {
  double threshold = 0.05;     // a change of the median below this does not matter
  double significance = 0.05;  // for the p-values after Holm's correction
  BootstrapOptions
      bootstrap;  // its seed is used for every pair, so a pair's interval does not depend on its neighbours
};

struct MetricComparison {
  std::string metric;  // "latency" or "throughput"
  std::string unit;
  Verdict verdict = Verdict::ambiguous;
  std::string reason;  // why it is ambiguous
  std::size_t baseline_count = 0;
  std::size_t test_count = 0;
  std::optional<double> baseline_median;
  std::optional<double> test_median;
  std::optional<double> ratio;       // test / baseline, of medians
  std::optional<Interval> interval;  // bootstrap, of that ratio
  std::optional<double> p;           // Mann-Whitney, two-sided
  std::optional<double> adjusted_p;  // after Holm over all tests of the comparison
  std::optional<double> tail_ratio;  // of the slow ends (p99 of latency, p1 of throughput); told, never judged
};

// How two lists of samples differ: counts, medians, ratio, interval and p. Where there is nothing to test, `p` stays
// empty and `reason` says why. The verdict waits until Holm's correction has all p-values.
void measure_change(std::span<const double> baseline, std::span<const double> test, bool is_less_better,
                    const CompareOptions& options, MetricComparison& result);
// The verdict on what measure_change() found, with adjusted_p filled in.
void decide_change(bool is_less_better, const CompareOptions& options, MetricComparison& result);

struct PairComparison {
  std::string label;
  std::map<std::string, std::string> key;
  Verdict verdict = Verdict::ambiguous;  // of the worst metric: slower, then ambiguous, then faster, then same
  std::string failure;                   // why there is nothing to judge
  std::vector<MetricComparison> metrics;
  std::vector<std::string> notes;
};

struct LonePoint {
  std::string label;
  std::string origin;
  std::string nearest;
};

struct TestComparison {
  std::string name;
  std::vector<PairComparison> pairs;
  std::vector<LonePoint> baseline_only;
  std::vector<LonePoint> test_only;
  std::vector<std::string> notes;  // differences of device, versions and settings; files passed over
};

struct Comparison;
// Holm's correction over all p-values of a comparison, and the verdicts of metrics and pairs.
void decide_all(Comparison& comparison, bool (*is_less_better)(const MetricComparison& metric));

struct Comparison {
  std::string baseline;
  CompareOptions options;
  std::vector<TestComparison> tests;
  std::size_t hypotheses = 0;  // p-values that Holm's correction had to share 5 % among
};

// Rejects a test file none of whose points has a partner: nothing compared must not look like nothing changed.
Comparison compare_results(const ResultFile& baseline, std::span<const ResultFile> tests,
                           const CompareOptions& options = {});

std::map<Verdict, std::size_t> count_verdicts(const Comparison& comparison);

// 3 if any pair is slower; else 4 if any is ambiguous and `is_strict`; else 0.
int exit_code(const Comparison& comparison, bool is_strict);

}  // namespace weir
