#include "amd/compare/case_compare.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <set>

#include "amd/compare/case_samples.h"
#include "measure/statistics.h"

namespace weir::amd {
namespace {

struct Facts {
  CaseQuantity quantity;
  std::string_view name, unit;
  bool is_median;
};
constexpr std::array<Facts, kCaseQuantities> kFacts{{
    {CaseQuantity::launch_rate, "launch_rate", "1/s", false},
    {CaseQuantity::gap, "gap_ns", "ns", true},
    {CaseQuantity::backlog, "backlog", "packets", false},
    {CaseQuantity::barrier_rate, "barrier_rate", "1/s", false},
    {CaseQuantity::copy_rate, "copy_rate", "1/s", false},
    {CaseQuantity::copied_bytes_rate, "copied_bytes_rate", "B/s", false},
    {CaseQuantity::kernel_duration, "kernel_duration_ns", "ns", true},
    {CaseQuantity::pause_share, "pause_share", "1", false},
}};
// With 4,000 samples and 1,000 resamples, the eight quantities of two sides take about a second.
constexpr int kResamples = 1000;

ComparedSide summary(const std::vector<double>& values, bool is_median) {
  ComparedSide side;
  side.samples = values.size();
  if (values.empty()) return side;
  side.value = is_median ? median(values) : mean(values);
  BootstrapOptions options;
  options.resamples = kResamples;
  side.interval = bootstrap_interval(values, is_median ? &median : &mean, options);
  return side;
}

// An event that was never observed may still occur at up to 3 / time, at 95 % (the rule of three), if events are
// independent. Resampling zeros gives only zeros, which would claim that it cannot occur.
std::optional<double> max_unseen(const CaseSide& side, const CaseSide& other, CaseQuantity quantity) {
  if (side.observed_ns <= 0) return {};
  const double max_per_s = 3e9 / side.observed_ns;
  switch (quantity) {
    case CaseQuantity::launch_rate:
    case CaseQuantity::barrier_rate:
    case CaseQuantity::copy_rate:
      return max_per_s;
    case CaseQuantity::copied_bytes_rate:  // assumes copies as large as the other side's
      if (!other.copied_bytes || other.copies.value_or(0) == 0) return {};
      return max_per_s * static_cast<double>(*other.copied_bytes) / static_cast<double>(*other.copies);
    case CaseQuantity::pause_share:  // assumes pauses of the minimum length
      return std::min(1.0, max_per_s * 1e-9 * static_cast<double>(kPauseNs));
    default:
      return {};  // samples that are not counted by time
  }
}

void widen_zero(const CaseSide& side, const CaseSide& other, CaseQuantity quantity, ComparedSide& compared) {
  if (!compared.interval || compared.interval->high > 0) return;
  compared.interval->high = max_unseen(side, other, quantity).value_or(compared.interval->high);
}

// Why two numbers do not measure the same thing; empty if they do.
std::string mismatch(const CaseSide& a, const CaseSide& b, CaseQuantity quantity) {
  const auto differ = [](const std::string& first, const std::string& second, std::string_view what) {
    return first == second ? std::string() : fmt::format("{} is {} in A and {} in B", what, first, second);
  };
  switch (quantity) {
    case CaseQuantity::gap:
      return differ(a.launch_time, b.launch_time, "the moment of a launch");
    case CaseQuantity::pause_share:
      return differ(a.pause_time, b.pause_time, "a pause");
    case CaseQuantity::backlog:
      return (a.source == CaseSource::timeline) == (b.source == CaseSource::timeline)
                 ? ""
                 : "packets of a ring on one side, launches that had not started on the other";
    default:
      return {};
  }
}

Compared compare_one(const CaseSide& a, const CaseSide& b, const Facts& facts) {
  Compared row;
  row.quantity = facts.quantity;
  row.name = facts.name;
  row.unit = facts.unit;
  row.statistic = facts.is_median ? "median" : "mean";
  const CaseSamples &first = a.of(facts.quantity), &second = b.of(facts.quantity);
  row.a = summary(first.values, facts.is_median);
  row.b = summary(second.values, facts.is_median);
  widen_zero(a, b, facts.quantity, row.a);
  widen_zero(b, a, facts.quantity, row.b);
  if (first.values.empty() || second.values.empty()) {
    row.reason = both_reasons(first.values.empty() ? first.reason : "", second.values.empty() ? second.reason : "");
    return row;
  }
  if (row.reason = mismatch(a, b, facts.quantity); !row.reason.empty()) return row;
  if (*row.a.value > 0 && *row.b.value > 0) row.ratio = *row.b.value / *row.a.value;
  if (!row.a.interval || !row.b.interval) {
    row.reason =
        fmt::format("{} and {} samples: fewer than {} have no interval", row.a.samples, row.b.samples, kMinForInterval);
    return row;
  }
  const double inflation = joint_inflation(serial_dependence(first.values), first.values.size(),
                                           serial_dependence(second.values), second.values.size());
  row.p = mann_whitney(first.values, second.values, inflation).p;
  return row;
}

void judge(Compared& row) {
  if (!row.adjusted_p) return;
  const bool is_apart = row.a.interval->high < row.b.interval->low || row.b.interval->high < row.a.interval->low;
  row.claim = !is_apart || *row.adjusted_p >= kLargestP ? Claim::ambiguous
              : *row.a.value > *row.b.value             ? Claim::a_more
                                                        : Claim::b_more;
}

bool is_same_creation(const CaseQueue& a, const CaseQueue& b) {
  return a.ring && b.ring && *a.ring == *b.ring && a.pid && b.pid && *a.pid == *b.pid && a.created_ns != INT64_MIN &&
         a.created_ns == b.created_ns;
}

}  // namespace

std::string both_reasons(const std::string& a, const std::string& b) {
  if (a == b && !a.empty()) return "A and B: " + a;
  return fmt::format("{}{}{}", a.empty() ? "" : "A: " + a, a.empty() || b.empty() ? "" : "; ",
                     b.empty() ? "" : "B: " + b);
}

std::string_view name_of(Claim claim) {
  constexpr std::string_view kNames[] = {"a_more", "b_more", "ambiguous", "not_comparable"};
  return kNames[static_cast<std::size_t>(claim)];
}

std::string_view name_of(QueueRelation::Kind kind) {
  constexpr std::string_view kNames[] = {"same_input", "same_process", "different_processes", "unknown"};
  return kNames[static_cast<std::size_t>(kind)];
}

std::vector<Compared> compare_quantities(const CaseSide& a, const CaseSide& b) {
  std::vector<Compared> rows;
  std::vector<Change*> changes;
  for (const Facts& facts : kFacts) rows.push_back(compare_one(a, b, facts));
  for (Compared& row : rows) changes.push_back(&row);
  adjust(changes);
  for (Compared& row : rows) judge(row);
  return rows;
}

QueueRelation relate_queues(const CaseSide& a, const CaseSide& b) {
  using Kind = QueueRelation::Kind;
  QueueRelation relation;
  if (!a.slots.empty() && !b.slots.empty()) {
    std::vector<CaseSlot> common;
    std::set_intersection(a.slots.begin(), a.slots.end(), b.slots.begin(), b.slots.end(), std::back_inserter(common));
    relation.common_slots = common.size();
  }
  if (!a.identity.empty() && a.identity == b.identity) {
    relation.kind = Kind::same_input;
    for (const CaseQueue& queue : a.queues) relation.shared.push_back(queue.label);
    relation.only_a = relation.only_b = 0;
    relation.reason = "A and B are the same input";
    return relation;
  }
  std::set<std::uint64_t> rings;
  for (const CaseQueue& queue : a.queues)
    if (queue.ring) rings.insert(*queue.ring);
  for (const CaseQueue& queue : b.queues) relation.equal_addresses += queue.ring && rings.contains(*queue.ring) ? 1 : 0;
  if (a.source == CaseSource::timeline || b.source == CaseSource::timeline) {
    relation.reason = "names of queues are each timeline's own: equal ones need not be the same queue";
    return relation;
  }
  // Both logs show the creation of one queue: same process, ring and microsecond.
  std::size_t shared_b = 0;
  for (const CaseQueue& queue : b.queues)
    shared_b += std::any_of(a.queues.begin(), a.queues.end(),
                            [&](const CaseQueue& other) { return is_same_creation(queue, other); })
                    ? 1
                    : 0;
  if (shared_b > 0) {
    relation.kind = Kind::same_process;
    for (const CaseQueue& queue : a.queues)
      if (std::any_of(b.queues.begin(), b.queues.end(),
                      [&](const CaseQueue& other) { return is_same_creation(queue, other); }))
        relation.shared.push_back(queue.label);
    relation.only_a = a.queues.size() - relation.shared.size();
    relation.only_b = b.queues.size() - shared_b;
    relation.reason = "both logs show the creation of the same queue: process, ring and time are equal";
    return relation;
  }
  std::vector<int> common;
  std::set_intersection(a.pids.begin(), a.pids.end(), b.pids.begin(), b.pids.end(), std::back_inserter(common));
  if (a.has_unknown_process || b.has_unknown_process || a.pids.empty() || b.pids.empty()) {
    relation.reason = "lines without a pid (level 3): nothing says whose queues these are";
  } else if (!common.empty()) {
    relation.reason = fmt::format(
        "both have a process {}, but no queue whose creation both show: it may be one process, or two of that "
        "number",
        common.front());
  } else {
    relation.kind = Kind::different_processes;
    relation.only_a = a.queues.size();
    relation.only_b = b.queues.size();
    relation.reason = "different processes, and a hardware queue belongs to one process";
  }
  return relation;
}

}  // namespace weir::amd
