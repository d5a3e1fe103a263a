// Pairs the points of a test run with those of its baseline, and judges each pair. Knows points; prints nothing.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "measure/comparison.h"
#include "run/load.h"

namespace weir {

struct MetricComparison : Change {
  std::string metric;  // "latency" or "throughput"
  std::string unit;
};

struct PairComparison {
  std::string label;
  std::map<std::string, std::string> key;
  Verdict verdict = Verdict::ambiguous;  // of the worst metric, see decide_all()
  std::string failure;                   // why the pair cannot be judged
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
  std::vector<std::string> notes;  // differences of device, versions and settings; skipped files
};

struct Comparison {
  std::string baseline;
  CompareOptions options;
  std::vector<TestComparison> tests;
  std::size_t hypotheses = 0;  // in Holm's correction, which share the significance
};

// Decides a pair in which a side failed, and returns true then. A failed test counts as slower; with only a failed
// baseline the pair is not comparable.
bool settle_failure(const std::string& baseline_failure, const std::string& test_failure, PairComparison& pair);

// How processes of identical code differ for such a pair, as far as it is known.
using FindSpread = std::function<std::optional<Spread>(const ResultPoint& baseline, const ResultPoint& test)>;

// The command that runs a point again in enough processes for a verdict.
std::string settling_command(const ResultPoint& point, double significance);

// Rejects a test file without any matching point: "nothing compared" must not look like "nothing changed".
Comparison compare_results(const ResultFile& baseline, std::span<const ResultFile> tests,
                           const CompareOptions& options = {}, const FindSpread& find_spread = {});

// Applies Holm's correction to all p-values of a comparison and sets the verdicts of metrics and pairs. A pair gets its
// worst metric's: slower, then ambiguous, not comparable, faster, same. Metrics that state one measurement in two units
// are one hypothesis: each is corrected for the number of pairs only.
enum class MetricsAre : std::uint8_t { one_measurement, several };
void decide_all(Comparison& comparison, MetricsAre metrics = MetricsAre::several);

VerdictCounts count_verdicts(const Comparison& comparison);  // of pairs
// Adds what all comparison documents share: threshold, significance, confidence, hypotheses, verdicts, exit_code.
void add_method(Json& document, const CompareOptions& options, std::size_t hypotheses, const VerdictCounts& counts,
                bool is_strict);
inline int exit_code(const Comparison& comparison, bool is_strict) {
  return exit_code(count_verdicts(comparison), is_strict);
}

}  // namespace weir
