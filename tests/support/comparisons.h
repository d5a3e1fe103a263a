// Comparisons made by hand, for tests of what tells them.
#pragma once

#include <string>
#include <vector>

#include "run/compare.h"
#include "support/result_documents.h"

namespace weir::testing {

// One metric, latency, of this ratio and verdict.
inline PairComparison pair_with(const std::string& label, Verdict verdict, double ratio) {
  MetricComparison latency;
  latency.metric = "latency";
  latency.unit = "ns";
  latency.verdict = verdict;
  latency.baseline_count = latency.test_count = 100;
  latency.baseline_median = 1e6;
  latency.test_median = 1e6 * ratio;
  latency.ratio = ratio;
  latency.interval = Interval{ratio * 0.99, ratio * 1.01};
  latency.p = latency.adjusted_p = 0.5;
  if (verdict == Verdict::ambiguous) latency.reason = "too noisy";
  PairComparison pair;
  pair.label = label;
  pair.verdict = verdict;
  pair.metrics = {latency};
  return pair;
}

inline PairComparison failed_pair(const std::string& label) {
  PairComparison pair;
  pair.label = label;
  pair.verdict = Verdict::slower;
  pair.failure = "test: the run failed: out of memory";
  return pair;
}

inline Comparison comparison_of(std::vector<PairComparison> pairs) {
  TestComparison test;
  test.name = "b.json";
  test.pairs = std::move(pairs);
  return {"a.json", {}, {test}, 1};
}

}  // namespace weir::testing
