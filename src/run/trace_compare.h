// Compares two traces by kernel and by category, judged as `weir compare` judges results. Makes the document; prints
// nothing and reads no file.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "measure/timeline.h"
#include "run/compare.h"
#include "run/operator_compare.h"
#include "run/trace_pace.h"
#include "trace/intervals.h"

namespace weir {

inline constexpr std::size_t kMaxKernels = 200;
inline constexpr std::size_t kMaxJudged = 40;

// One side of a row.
struct TraceSide {
  std::size_t count = 0;
  double total_ns = 0;
};

struct KernelChange {
  std::string name;
  SpanKind kind = SpanKind::kernel;
  TraceSide baseline, test;
  MetricComparison durations;  // of instances; verdict and p only if `is_judged`
  bool is_judged = false;      // at least 1 % of either trace's time, and among the largest
};

// The mean over devices: of the median iteration if both traces have at least two, else of the whole trace.
struct CategoryChange {
  std::string category;  // span, busy, compute, communication, exposed_communication, copy, idle
  std::optional<double> baseline_ns, test_ns;
  std::optional<double> ratio;
  MetricComparison iterations;  // of iterations, if is_judged
  bool is_judged = false;       // never for busy and idle: faster commands leave more idle time
};

// What a whole trace holds: times are means over devices, counts are of all devices.
struct TraceTotal {
  std::string quantity;  // span, busy, idle, kernels, collectives, copies, memsets, copied_bytes, iterations
  std::string unit;      // ns, bytes, or empty for counts
  double baseline = 0, test = 0;
  std::optional<double> ratio;
};

struct TraceComparison {
  std::string baseline, test;
  CompareOptions options;
  std::vector<std::string> summary;  // whole sentences, the verdict first
  std::vector<TraceTotal> totals;    // quantities that either trace has
  TracePace pace;
  std::size_t hypotheses = 0;
  std::size_t baseline_iterations = 0, test_iterations = 0;  // 0 unless both traces have at least two
  std::vector<CategoryChange> categories;
  // Ordered by the larger total, at most kMaxKernels each.
  std::vector<KernelChange> kernels, baseline_only, test_only;
  std::size_t kernels_left_out = 0;  // beyond that limit
  OperatorComparison operators;
  std::vector<std::string> notes;
};

// Of the part of each that `window` names, as in AnalyzeOptions, but start-up is left out of both or of neither; the
// notes say what was left out. Rejects a part without device commands, and two without a common command name.
TraceComparison compare_traces(const Timeline& baseline, const std::string& baseline_name, const Timeline& test,
                               const std::string& test_name, CompareOptions options = {},
                               const std::optional<TimeInterval>& window = {});

// Counts the pace and all judged categories and kernels.
VerdictCounts count_verdicts(const TraceComparison& comparison);
inline int exit_code(const TraceComparison& comparison, bool is_strict) {
  return exit_code(count_verdicts(comparison), is_strict);
}

// Schema weir.trace_comparison/2; unknown values are null.
Json trace_comparison_json(const TraceComparison& comparison, bool is_strict);

}  // namespace weir
