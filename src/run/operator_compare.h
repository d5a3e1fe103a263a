// Two traces compared by operator and shapes: what is new, gone, slower, or runs in other kernels. All differences add
// up, in whole nanoseconds, to that of a step. Prints nothing and reads no file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/json.h"
#include "measure/timeline.h"

namespace weir {

inline constexpr std::size_t kMaxOperatorChanges = 200;

enum class OperatorFate : std::uint8_t { fresh, gone, moved, slower, faster, same };

// Per step and device where both traces mark steps, else per device.
struct OperatorSide {
  double commands = 0;
  std::int64_t ns = 0;  // sum of the durations of its commands
  std::string kernel;   // that most of it went to; empty where there is none
};

struct OperatorChange {
  std::string name, shapes;  // "(cudaGraphLaunch)" where no operator made the calls; shapes may be unknown
  OperatorSide baseline, test;
  OperatorFate fate = OperatorFate::same;
  std::int64_t difference_ns() const noexcept { return test.ns - baseline.ns; }
};

struct OperatorComparison {
  std::string reason;  // why there is none; then nothing else is filled in
  bool is_per_step = false;
  std::int64_t baseline_ns = 0, test_ns = 0;  // how long a step took, or the device's first start to its last end
  std::vector<OperatorChange> changes;        // largest difference first, at most kMaxOperatorChanges
  std::size_t left_out = 0;                   // beyond that
  std::int64_t left_out_ns = 0;               // the sum of their differences
  std::int64_t outside_ns = 0;                // the difference of commands of no operator
  std::int64_t rest_ns = 0;                   // of idle time, less what ran at once
};

// Of traces whose operators were read. A change by less than `threshold` (0.05: 5 %) is none.
OperatorComparison compare_operators(const Timeline& baseline, const Timeline& test, double threshold);

const char* to_string(OperatorFate fate) noexcept;

// As in weir.trace_comparison; null where there is none.
Json operator_comparison_json(const OperatorComparison& comparison);

}  // namespace weir
