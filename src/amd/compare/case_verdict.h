// Which preemption strategy fits A (urgent) beside B: rules over numbers, each printed with the numbers it uses. A rule
// is not a measurement of preemption, and states that. Knows the comparison, but no files.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "amd/compare/case_compare.h"

namespace weir::amd {

// Figures from the roadmap and the driver that the rules use.
inline constexpr double kQuantumNs = 1e6;        // CP_HQD_QUANTUM as KFD sets it (0x111): 1 ms
inline constexpr double kMaxLongTime = 0.05;     // share of B's kernel time in kernels of a quantum or more
inline constexpr double kMinPauses = 0.5;        // share of A's time in which B can run
inline constexpr std::size_t kMaxSuspended = 8;  // queues in one suspend
inline constexpr std::size_t kMinKernels = 100;  // kernels needed to judge a share of their time

enum class RuleFit : std::uint8_t { fits, does_not_fit, cannot_say };
std::string_view name_of(RuleFit fit);

// A number that a rule used.
struct RuleNumber {
  std::string what, unit;
  std::optional<double> value;
  std::optional<Interval> interval;
  std::string bound;   // "at most" for a bound; empty for a value
  std::string reason;  // why there is none
};

struct StrategyVerdict {
  std::string_view strategy;  // "priority", "suspend_resume", "time_slice"
  RuleFit fit = RuleFit::cannot_say;
  std::string rule, because;
  std::vector<RuleNumber> numbers;
};

struct PreemptionVerdict {
  std::string premise;  // what is known or assumed about the owner of these queues
  bool is_premise_assumed = false;
  std::string_view strategy;  // one of the three; empty: cannot say
  std::string because;
  std::vector<StrategyVerdict> strategies;
};

PreemptionVerdict judge_preemption(const CaseSide& a, const CaseSide& b, const std::vector<Compared>& compared,
                                   const QueueRelation& relation);

// The roadmap's expectation for a case, and the observation.
struct Expectation {
  std::string_view side, expected;
  std::size_t least = 0, most = 0;
  bool wants_copies = false;
  std::string observed;
  std::string_view outcome;  // "as_expected", "other", "cannot_say"
  std::string reason;
};
std::vector<Expectation> check_expectations(const CaseSide& a, const CaseSide& b);

}  // namespace weir::amd
