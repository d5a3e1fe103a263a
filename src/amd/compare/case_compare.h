// Compares two sides: queues, kernels, rates, gaps, backlog, and the roadmap's expectations. Claims a difference only
// if the intervals support it. Knows sides, but no files.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "amd/compare/case_side.h"
#include "measure/comparison.h"

namespace weir::amd {

// A and B are different programs, so "more" is neither slower nor faster. The other words are those of Verdict.
enum class Claim : std::uint8_t { a_more, b_more, ambiguous, not_comparable };
std::string_view name_of(Claim claim);

struct ComparedSide {
  std::size_t samples = 0;
  std::optional<double> value;
  std::optional<Interval> interval;  // 95 %, bootstrap; by the rule of three if nothing was observed
};

// From Change: reason, ratio (b / a), p and adjusted_p (Mann-Whitney, widened for correlation in time, and Holm).
struct Compared : Change {
  CaseQuantity quantity = CaseQuantity::launch_rate;
  std::string_view name, unit, statistic;  // "launch_rate", "1/s", "mean"
  ComparedSide a, b;
  Claim claim = Claim::not_comparable;
};

// A claim needs intervals that do not overlap, and p below this.
inline constexpr double kLargestP = 0.05;

// "A: ...; B: ...", or one text for both if they are equal; empty if neither has one.
std::string both_reasons(const std::string& a, const std::string& b);

std::vector<Compared> compare_quantities(const CaseSide& a, const CaseSide& b);

// Whether both sides use the same hardware queues.
struct QueueRelation {
  enum class Kind : std::uint8_t { same_input, same_process, different_processes, unknown };
  Kind kind = Kind::unknown;
  std::vector<std::string> shared;            // labels, if queues can be distinguished
  std::optional<std::size_t> only_a, only_b;  // if queues can be distinguished
  std::size_t equal_addresses = 0;            // equal ring addresses on both sides, which prove nothing by themselves
  std::optional<std::size_t> common_slots;    // hardware slots that queues of both sides were mapped to, at any time
  std::string reason;
};
std::string_view name_of(QueueRelation::Kind kind);
QueueRelation relate_queues(const CaseSide& a, const CaseSide& b);

}  // namespace weir::amd
