#include "amd/compare/case_verdict.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/units.h"
#include "measure/statistics.h"

namespace weir::amd {
namespace {

const Compared* find(const std::vector<Compared>& compared, CaseQuantity quantity) {
  for (const Compared& row : compared)
    if (row.quantity == quantity) return &row;
  return nullptr;
}

// The share of kernel time in kernels of a quantum or more: the probability of meeting one.
double long_share(std::span<const double> durations) {
  double all = 0, of_long = 0;
  for (const double duration : durations) {
    all += duration;
    if (duration >= kQuantumNs) of_long += duration;
  }
  return all > 0 ? of_long / all : 0;
}

RuleNumber kernel_time_number(const CaseSide& b) {
  RuleNumber number{"B: share of its kernel time in kernels of 1 ms or more", "1", {}, {}, {}, {}};
  const CaseSamples& samples = b.of(CaseQuantity::kernel_duration);
  if (samples.values.empty()) {
    number.reason = samples.reason;
    return number;
  }
  const double seen = long_share(samples.values);
  if (seen == 0 && b.longest_kernel_ns >= kQuantumNs) {
    number.reason = fmt::format("the longest took {}, but such are too rare to be among the samples",
                                format_duration(b.longest_kernel_ns));
    return number;
  }
  number.value = seen;
  if (samples.values.size() < kMinKernels) {
    number.reason =
        fmt::format("{} kernels are too few for an interval; {} are needed", samples.values.size(), kMinKernels);
    return number;
  }
  if (seen == 0) {
    // None was seen; by the rule of three, up to three may exist, each a quantum long.
    number.interval = Interval{0, 3 * kQuantumNs / (b.kernel_time_ns + 3 * kQuantumNs)};
    return number;
  }
  BootstrapOptions options;
  options.resamples = 1000;
  number.interval = bootstrap_interval(samples.values, &long_share, options);
  return number;
}

StrategyVerdict judge_priority(const CaseSide& b) {
  StrategyVerdict verdict;
  verdict.strategy = "priority";
  verdict.rule = fmt::format(
      "A queue of higher priority gets in where a kernel of B ends. That is soon enough if at most {:.0f} % of B's "
      "kernel "
      "time is in kernels of a quantum (1 ms) or more.",
      100 * kMaxLongTime);
  verdict.numbers.push_back(kernel_time_number(b));
  const RuleNumber& number = verdict.numbers.back();
  if (!number.interval) {
    verdict.because = number.reason;
  } else if (number.interval->high <= kMaxLongTime) {
    verdict.fit = RuleFit::fits;
    verdict.because = "B's kernels are short: A waits for one of them, not for many";
  } else if (number.interval->low > kMaxLongTime) {
    verdict.fit = RuleFit::does_not_fit;
    verdict.because = "B's kernels are long: without stopping one in the middle, A waits for its end";
  } else {
    verdict.because = fmt::format("the interval holds the limit of {:.0f} %", 100 * kMaxLongTime);
  }
  return verdict;
}

RuleNumber pause_number(const CaseSide& a, const std::vector<Compared>& compared) {
  RuleNumber number{"A: share of its time in pauses (" + a.pause_time + ")", "1", {}, {}, {}, {}};
  const Compared* const row = find(compared, CaseQuantity::pause_share);
  if (row == nullptr || !row->a.value) {
    number.reason = a.of(CaseQuantity::pause_share).reason;
    return number;
  }
  number.value = row->a.value;
  number.interval = row->a.interval;
  if (a.is_pause_bound) number.bound = "at most";
  if (!number.interval) number.reason = fmt::format("{} stretches of time are too few for an interval", row->a.samples);
  return number;
}

RuleNumber queue_number(const CaseSide& side, const char* letter) {
  RuleNumber number{fmt::format("{}: compute queues", letter), "queues", {}, {}, {}, {}};
  if (!side.queues_reason.empty()) {
    number.reason = side.queues_reason;
  } else {
    number.value = static_cast<double>(side.count(CaseQueue::Kind::compute));
  }
  return number;
}

// Whether A leaves at least kMinPauses of its time to others. An upper bound can only rule it out.
RuleFit leaves_pauses(const RuleNumber& pauses) {
  if (!pauses.interval) return RuleFit::cannot_say;
  if (pauses.interval->high < kMinPauses) return RuleFit::does_not_fit;
  if (pauses.bound.empty() && pauses.interval->low >= kMinPauses) return RuleFit::fits;
  return RuleFit::cannot_say;
}

std::string pause_reason(const RuleNumber& pauses) {
  if (!pauses.interval) return pauses.reason;
  return pauses.bound.empty() ? fmt::format("the interval of A's pauses holds the limit of {:.0f} %", 100 * kMinPauses)
                              : "A's pauses are a bound from above: the device may have been busy in them";
}

StrategyVerdict judge_suspend(const RuleNumber& pauses, const CaseSide& b) {
  StrategyVerdict verdict;
  verdict.strategy = "suspend_resume";
  verdict.rule = fmt::format(
      "Suspending stops B in the middle of a kernel, by one call for at most {} queues, and it stays stopped while A "
      "works: A has to leave at least {:.0f} % of the time to B.",
      kMaxSuspended, 100 * kMinPauses);
  verdict.numbers = {queue_number(b, "B"), pauses};
  const RuleNumber& queues = verdict.numbers[0];
  const RuleFit fit = leaves_pauses(pauses);
  if (queues.value && *queues.value > static_cast<double>(kMaxSuspended)) {
    verdict.fit = RuleFit::does_not_fit;
    verdict.because = fmt::format("B has {:.0f} compute queues", *queues.value);
  } else if (fit == RuleFit::does_not_fit) {
    verdict.fit = RuleFit::does_not_fit;
    verdict.because = "A pauses too little: B would be stopped for most of the time";
  } else if (!queues.value) {
    verdict.because = queues.reason;
  } else if (fit == RuleFit::cannot_say) {
    verdict.because = pause_reason(pauses);
  } else {
    verdict.fit = RuleFit::fits;
    verdict.because = "A pauses long and often enough for B to be resumed in between, and B has few queues to stop";
  }
  return verdict;
}

StrategyVerdict judge_slice(const RuleNumber& pauses) {
  StrategyVerdict verdict;
  verdict.strategy = "time_slice";
  verdict.rule = fmt::format(
      "Quanta of 1 ms interrupt kernels of either side. They fit two that both want the device all the time: A pauses "
      "less than {:.0f} % of it. A then waits up to a quantum at a time.",
      100 * kMinPauses);
  verdict.numbers = {pauses};
  switch (leaves_pauses(pauses)) {
    case RuleFit::does_not_fit:
      verdict.fit = RuleFit::fits;
      verdict.because = "A pauses too little for B to wait until it does";
      break;
    case RuleFit::fits:
      verdict.fit = RuleFit::does_not_fit;
      verdict.because = "A pauses: it need not share its own time";
      break;
    case RuleFit::cannot_say:
      verdict.because = pause_reason(pauses);
  }
  return verdict;
}

void add_premise(const QueueRelation& relation, PreemptionVerdict& verdict) {
  switch (relation.kind) {
    case QueueRelation::Kind::different_processes:
      verdict.premise = "A and B have queues of their own: " + relation.reason + ".";
      return;
    case QueueRelation::Kind::same_process:
      verdict.premise = relation.shared.empty()
                            ? "A and B are one process with queues of their own."
                            : fmt::format("A and B are one process and share {} hardware queue{}.",
                                          relation.shared.size(), relation.shared.size() == 1 ? "" : "s");
      return;
    default:
      verdict.is_premise_assumed = true;
      verdict.premise = fmt::format(
          "Assumed, not seen: A and B run at once as two processes, so that no queue is "
          "shared ({}).",
          relation.reason);
  }
}

// Ordered by cost: priority costs least, suspending stops B completely while A works, slicing takes time from both.
void choose(PreemptionVerdict& verdict) {
  const auto fit = [&](std::size_t i) { return verdict.strategies[i].fit; };
  if (fit(0) == RuleFit::fits) {
    verdict.strategy = "priority";
  } else if (fit(0) == RuleFit::does_not_fit && fit(1) == RuleFit::fits) {
    verdict.strategy = "suspend_resume";
  } else if (fit(0) == RuleFit::does_not_fit && fit(1) == RuleFit::does_not_fit && fit(2) == RuleFit::fits) {
    verdict.strategy = "time_slice";
  }
  if (!verdict.strategy.empty()) {
    for (const StrategyVerdict& each : verdict.strategies)
      if (each.strategy == verdict.strategy) verdict.because = each.because;
    return;
  }
  const auto open = std::find_if(verdict.strategies.begin(), verdict.strategies.end(),
                                 [](const StrategyVerdict& each) { return each.fit == RuleFit::cannot_say; });
  verdict.because = open == verdict.strategies.end() ? "no rule fits" : open->because;
}

}  // namespace

std::string_view name_of(RuleFit fit) {
  constexpr std::string_view kNames[] = {"fits", "does_not_fit", "cannot_say"};
  return kNames[static_cast<std::size_t>(fit)];
}

PreemptionVerdict judge_preemption(const CaseSide& a, const CaseSide& b, const std::vector<Compared>& compared,
                                   const QueueRelation& relation) {
  PreemptionVerdict verdict;
  add_premise(relation, verdict);
  const RuleNumber pauses = pause_number(a, compared);
  verdict.strategies = {judge_priority(b), judge_suspend(pauses, b), judge_slice(pauses)};
  if (relation.kind == QueueRelation::Kind::same_process && !relation.shared.empty()) {
    for (StrategyVerdict& each : verdict.strategies) {
      each.fit = RuleFit::does_not_fit;
      each.because = "A and B share a queue, which runs its packets in order: they cannot be distinguished in it";
    }
    verdict.because =
        "None, as long as they share a queue. Give A's streams another priority, so that the runtime takes queues of "
        "another pool for them, or raise GPU_MAX_HW_QUEUES.";
    return verdict;
  }
  choose(verdict);
  return verdict;
}

std::vector<Expectation> check_expectations(const CaseSide& a, const CaseSide& b) {
  std::vector<Expectation> found = {{"A", "2-3 queues, compute and DMA", 2, 3, true, {}, {}, {}},
                                    {"B", "1-2 queues, compute", 1, 2, false, {}, {}, {}}};
  for (Expectation& row : found) {
    const CaseSide& side = row.side == "A" ? a : b;
    row.outcome = "cannot_say";
    if (!side.queues_reason.empty()) {
      row.reason = side.queues_reason;
      row.observed = "not known";
      continue;
    }
    const std::uint64_t compute = side.count(CaseQueue::Kind::compute), copy = side.count(CaseQueue::Kind::copy);
    const bool are_copies_known = side.copy_queues_reason.empty();
    row.observed = fmt::format("{} compute, {}", compute,
                               are_copies_known ? fmt::format("{} of copy engines", copy) : "copy queues not known");
    if (side.copy_engines && !are_copies_known)
      row.observed += fmt::format("; copies by {} engine{}", *side.copy_engines, *side.copy_engines == 1 ? "" : "s");
    if (compute + copy > row.most) {
      row.outcome = "other";  // more is not fewer, whatever else was seen
    } else if (!are_copies_known) {
      row.reason = side.copy_queues_reason;
    } else {
      const bool are_kinds_right = row.wants_copies ? compute > 0 && copy > 0 : compute > 0 && copy == 0;
      row.outcome = compute + copy >= row.least && are_kinds_right ? "as_expected" : "other";
    }
  }
  return found;
}

}  // namespace weir::amd
