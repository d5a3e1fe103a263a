#include "trace/analyse/rank_phases.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <tuple>

#include "trace/device_spans.h"
#include "trace/intervals.h"

namespace weir {
namespace {

constexpr double kAlike = 0.02;       // a phase that is not longer by this share has no reason
constexpr double kUniform = 0.8;      // share of the time that a slower clock must slow down
constexpr std::size_t kMinNames = 5;  // of commands, to speak of a clock

std::size_t number_of(RankPhase phase) noexcept { return static_cast<std::size_t>(phase); }

const Operation* operation_of_span(const Timeline& timeline, const Span& span) {
  if (span.call >= timeline.calls.size()) return nullptr;
  const std::uint32_t operation = timeline.calls[span.call].operation;
  return operation < timeline.operations.size() ? &timeline.operations[operation] : nullptr;
}

RankPhase phase_of_span(const Span& span, const Operation* operation) {
  if (span.kind == SpanKind::collective) return RankPhase::communication;
  switch (operation == nullptr ? Phase::unknown : operation->phase) {
    case Phase::forward:
      return RankPhase::forward;
    case Phase::backward:
      return RankPhase::backward;
    case Phase::optimizer:
      return RankPhase::optimizer;
    case Phase::unknown:
      break;
  }
  return RankPhase::other;
}

CommandKey key_of(const Span& span, const Operation* operation) {
  return {operation == nullptr ? kNoName : operation->name, operation == nullptr ? kNoName : operation->shapes,
          span.name, span.kind};
}

// The time between the first start and the last end of a device is what compute and copies take, what collectives take
// beside which nothing else runs, and gaps, which belong to the phase of what follows. `order` is by start.
RankUse use_of_rank(const Timeline& timeline, const std::vector<std::uint32_t>& order) {
  RankUse use;
  PhaseUse& communication = use[number_of(RankPhase::communication)];
  std::vector<TimeInterval> collectives, others;
  std::int64_t last_ns = INT64_MIN;
  for (const std::uint32_t index : order) {
    const Span& span = timeline.spans[index];
    (span.kind == SpanKind::collective ? collectives : others).push_back({span.started_ns, span.ended_ns});
    last_ns = std::max(last_ns, span.ended_ns);
  }
  const IntervalCover communicates(unite_all(std::move(collectives))), computes(unite_all(std::move(others)));
  std::int64_t until_ns = order.empty() ? 0 : timeline.spans[order.front()].started_ns;
  for (const std::uint32_t index : order) {
    const Span& span = timeline.spans[index];
    const Operation* const operation = operation_of_span(timeline, span);
    PhaseUse& phase = use[number_of(phase_of_span(span, operation))];
    CommandSum& sum = phase.commands[key_of(span, operation)];
    ++sum.count;
    const double length_ns = length_between(span.started_ns, span.ended_ns);
    if (span.kind == SpanKind::collective) {
      sum.ns += length_ns - computes.within({span.started_ns, span.ended_ns});
      continue;
    }
    if (span.started_ns > until_ns) {
      const double covered_ns = communicates.within({until_ns, span.started_ns});
      const std::int64_t late_ns =
          span.submitted_ns == kNoTime ? until_ns : std::clamp(span.submitted_ns, until_ns, span.started_ns);
      const double late = length_between(until_ns, late_ns) - communicates.within({until_ns, late_ns});
      communication.busy_ns += covered_ns;
      phase.late_host_ns += late;
      phase.waiting_ns += length_between(until_ns, span.started_ns) - covered_ns - late;
    }
    // Where two run at once, the one that began first counts.
    const double added_ns = length_between(std::max(span.started_ns, until_ns), span.ended_ns);
    sum.ns += added_ns;
    phase.busy_ns += added_ns;
    until_ns = std::max(until_ns, span.ended_ns);
  }
  if (last_ns > until_ns) {
    const double covered_ns = communicates.within({until_ns, last_ns});
    communication.busy_ns += covered_ns;
    communication.waiting_ns += length_between(until_ns, last_ns) - covered_ns;
  }
  return use;
}

PhaseUse divided(PhaseUse use, double by) {
  use.busy_ns /= by;
  use.late_host_ns /= by;
  use.waiting_ns /= by;
  for (auto& [key, sum] : use.commands) {
    sum.count /= by;
    sum.ns /= by;
  }
  return use;
}

double steps_of(const RankPhases& found, std::size_t rank) {
  return found.are_steps ? static_cast<double>(found.ranks[rank].steps) : 1;
}

// Of the commands that both ranks have: how much longer they take, and whether nearly all of them do.
bool is_clock(const PhaseUse& slow, const PhaseUse& median, std::optional<double>* ratio) {
  struct Pair {
    double expected_ns, ratio;
  };
  std::vector<Pair> pairs;
  double expected_ns = 0, real_ns = 0;
  for (const auto& [key, sum] : slow.commands) {
    const auto same = median.commands.find(key);
    if (same == median.commands.end() || same->second.ns <= 0 || sum.ns <= 0) continue;
    const double expected = sum.count * same->second.ns / same->second.count;
    pairs.push_back({expected, sum.ns / expected});
    expected_ns += expected;
    real_ns += sum.ns;
  }
  if (expected_ns <= 0) return false;
  *ratio = real_ns / expected_ns;
  const double more = **ratio - 1;
  double alike_ns = 0;
  for (const Pair& pair : pairs)
    if (pair.ratio > 1 + 0.5 * more && pair.ratio < 1 + 1.5 * more) alike_ns += pair.expected_ns;
  return more >= kAlike && pairs.size() >= kMinNames && alike_ns >= kUniform * expected_ns;
}

void compare(const PhaseUse& slow, const PhaseUse& median, SlowestRank& to) {
  to.late_host_ns = slow.late_host_ns - median.late_host_ns;
  to.waiting_ns += slow.waiting_ns - median.waiting_ns;
  for (const auto& [key, sum] : slow.commands) {
    const auto same = median.commands.find(key);
    const CommandSum before = same == median.commands.end() ? CommandSum{} : same->second;
    to.more_work_ns += before.count > 0 ? (sum.count - before.count) * before.ns / before.count : sum.ns;
    if (const double more_ns = sum.ns - before.ns; more_ns > 0 && (!to.most || more_ns > to.most->more_ns))
      to.most = {std::get<0>(key), std::get<1>(key), std::get<2>(key), std::get<3>(key), more_ns};
  }
  for (const auto& [key, sum] : median.commands)
    if (!slow.commands.contains(key)) to.more_work_ns -= sum.ns;
  // What a collective waits for others is neither.
  if (to.phase == RankPhase::communication && to.ns > to.median_ns)
    to.more_work_ns *= 1 - to.waiting_ns / (to.ns - to.median_ns);
  to.longer_ns = to.ns - to.median_ns - to.late_host_ns - to.waiting_ns - to.more_work_ns;
  if (to.ns - to.median_ns <= kAlike * to.median_ns) return;
  const bool is_clock_slower = is_clock(slow, median, &to.ratio);
  const std::pair<double, SlowReason> parts[] = {
      {to.longer_ns, is_clock_slower ? SlowReason::slower_clock : SlowReason::longer_kernels},
      {to.more_work_ns, SlowReason::more_work},
      {to.late_host_ns, SlowReason::late_host},
      {to.waiting_ns, SlowReason::waiting}};
  to.reason = std::max_element(std::begin(parts), std::end(parts), [](const auto& a, const auto& b) {
                return a.first < b.first;
              })->second;
}

}  // namespace

const char* to_string(RankPhase phase) noexcept {
  constexpr std::array<const char*, kRankPhases> kNames = {"forward", "backward",      "optimizer",
                                                           "other",   "communication", "data_loading"};
  return kNames[number_of(phase)];
}

const char* to_string(SlowReason reason) noexcept {
  constexpr const char* kNames[] = {"alike",     "longer_kernels", "slower_clock", "more_work",
                                    "late_host", "waiting",        "loading"};
  return kNames[static_cast<std::size_t>(reason)];
}

std::vector<RankUse> rank_uses(const Timeline& timeline, std::span<const std::uint16_t> devices) {
  std::vector<std::size_t> place(timeline.devices.size(), SIZE_MAX);
  for (std::size_t i = 0; i < devices.size(); ++i) place[devices[i]] = i;
  std::vector<std::vector<std::uint32_t>> orders(devices.size());
  for (const std::uint32_t index : device_work_by_start(timeline)) {
    const std::uint16_t stream = timeline.spans[index].stream;
    if (stream >= timeline.streams.size()) continue;
    if (const std::size_t rank = place[timeline.streams[stream].device]; rank != SIZE_MAX)
      orders[rank].push_back(index);
  }
  std::vector<RankUse> uses;
  for (const std::vector<std::uint32_t>& order : orders) uses.push_back(use_of_rank(timeline, order));
  return uses;
}

RankPhases slowest_ranks(std::vector<RankOfPhases> ranks, std::span<const RankUse> uses) {
  RankPhases found;
  found.are_steps = std::all_of(ranks.begin(), ranks.end(), [](const RankOfPhases& rank) { return rank.steps > 0; });
  found.ranks = std::move(ranks);
  for (std::size_t i = 0; i < found.ranks.size(); ++i) {
    RankOfPhases& rank = found.ranks[i];
    const double steps = steps_of(found, i);
    for (std::size_t phase = 0; phase < kRankPhases; ++phase) {
      const PhaseUse& use = uses[i][phase];
      rank.ns[phase] = use.busy_ns / steps + use.late_host_ns / steps + use.waiting_ns / steps;
    }
    for (std::optional<double>* host : {&rank.loading_ns, &rank.waiting_ns})
      if (*host) **host /= steps;
    rank.ns[number_of(RankPhase::data_loading)] = rank.loading_ns.value_or(0);
  }
  for (std::size_t phase = 0; phase < kRankPhases; ++phase) {
    std::vector<std::size_t> order(found.ranks.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::stable_sort(order.begin(), order.end(),
                     [&](std::size_t a, std::size_t b) { return found.ranks[a].ns[phase] < found.ranks[b].ns[phase]; });
    SlowestRank one;
    one.phase = static_cast<RankPhase>(phase);
    one.slowest = order.back();
    one.median = order[(order.size() - 1) / 2];
    one.ns = found.ranks[one.slowest].ns[phase];
    one.median_ns = found.ranks[one.median].ns[phase];
    if (one.ns > 0) found.phases.push_back(one);
  }
  return found;
}

void explain_slowest(RankPhases& found, std::span<const RankUse> uses) {
  for (SlowestRank& one : found.phases) {
    if (one.phase == RankPhase::data_loading) {
      if (one.ns - one.median_ns > kAlike * one.median_ns) one.reason = SlowReason::loading;
      continue;
    }
    const auto &slow = found.ranks[one.slowest].waiting_ns, &median = found.ranks[one.median].waiting_ns;
    // A collective lasts as long as it waits for others, but not more than is exposed of it.
    if (one.phase == RankPhase::communication && slow && median)
      one.waiting_ns = std::clamp(*slow - *median, 0.0, one.ns - one.median_ns);
    const std::size_t phase = number_of(one.phase);
    compare(divided(uses[one.slowest][phase], steps_of(found, one.slowest)),
            divided(uses[one.median][phase], steps_of(found, one.median)), one);
  }
}

}  // namespace weir
