#include "lab/queues/probe_control.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>

#include "lab/queues/stamps.h"
#include "measure/statistics.h"

namespace weir {
namespace {

constexpr std::int64_t kShortestWindowNs = 200'000, kLongestWindowNs = 15'000'000;
constexpr int kBaselineMarks = 200, kBaselineRounds = 12;
constexpr std::int64_t kBaselinePauseNs = 2'000'000;
constexpr int kMinRepetitions = 3, kMaxRepetitions = 12;
constexpr std::size_t kControlMarks = 8;
constexpr int kMaxReleases = 60;

std::vector<StreamId> shuffled_streams(int count, std::mt19937_64& random) {
  std::vector<StreamId> streams(static_cast<std::size_t>(count));
  std::iota(streams.begin(), streams.end(), StreamId{0});
  std::shuffle(streams.begin(), streams.end(), random);
  return streams;
}

// Holds some streams, and releases one of them when another is stuck. Nothing if the trial is spoilt.
std::optional<bool> is_still_stuck(Lab& lab, int held, const ProbeBaseline& baseline, std::mt19937_64& random) {
  const std::vector<StreamId> streams = shuffled_streams(lab.streams(), random);
  const std::int64_t grace_ns = kProbeGrace * baseline.window_ns;
  lab.begin();
  for (int i = 0; i < held; ++i) lab.hold(streams[static_cast<std::size_t>(i)], false);
  const std::vector<StreamId> marked = {streams[static_cast<std::size_t>(held)]};
  std::vector<std::uint8_t> is_stuck = {1};
  std::optional<bool> verdict;
  if (lab.settle(baseline.window_ns) || lab.settle(grace_ns)) {
    is_stuck[0] = lab.mark(marked[0], baseline.window_ns) == kNoTime;
    lab.look_again(marked, is_stuck, grace_ns);
    if (is_stuck[0] != 0) {
      lab.let_go(streams[random() % static_cast<std::uint64_t>(held)]);
      lab.look_again(marked, is_stuck, baseline.window_ns + grace_ns);
      if (lab.is_holding()) verdict = is_stuck[0] != 0;
    }
  }
  lab.release();
  return verdict;
}

}  // namespace

ProbeBaseline measure_baseline(Lab& lab, double confidence, const std::function<void(int done, int total)>& progress) {
  ProbeBaseline base;
  std::vector<double> times, first;
  std::int64_t granularity = 0;
  std::vector<StreamId> all_streams(static_cast<std::size_t>(lab.streams()));
  std::iota(all_streams.begin(), all_streams.end(), StreamId{0});
  const auto round = [&](std::int64_t window_ns, bool counts) {
    lab.begin();
    std::vector<std::uint8_t> is_late;
    for (const StreamId stream : all_streams) {
      const std::int64_t took = lab.mark(stream, window_ns);
      is_late.push_back(took == kNoTime);
      (counts ? times : first).push_back(static_cast<double>(took == kNoTime ? window_ns : took));
    }
    const auto late = static_cast<int>(std::count(is_late.begin(), is_late.end(), 1));
    lab.look_again(all_streams, is_late, kProbeGrace * window_ns);
    std::int64_t last_ns = 0;
    for (const StreamId stream : all_streams) {
      if (!counts || is_late[stream] != 0) continue;
      const Moment moment = lab.moment_of_mark(stream);
      base.stretched += moment.ended_ns - moment.started_ns > 2 * Lab::kMarkNs;
      base.shrunk += moment.ended_ns - moment.started_ns < Lab::kMarkNs / 2;
      // Times between marks are arbitrary; a coarse clock shows them as multiples of its step.
      if (last_ns != 0) granularity = std::gcd(granularity, moment.started_ns - last_ns);
      last_ns = moment.started_ns;
    }
    lab.release();
    if (!counts) return;
    base.marks += lab.streams();
    base.late += late;
    base.missing += static_cast<int>(std::count(is_late.begin(), is_late.end(), 1));
  };
  round(kLongestWindowNs, false);  // loads code
  first.clear();
  for (int i = 0; i < 2; ++i) round(kLongestWindowNs, false);
  const double slowest = *std::max_element(first.begin(), first.end());
  base.window_ns = std::clamp(static_cast<std::int64_t>(4 * slowest), kShortestWindowNs, kLongestWindowNs);
  // Spread over some time, because other users of the device may be active only now and then.
  for (int i = 0; i < kBaselineRounds || base.marks < kBaselineMarks; ++i) {
    progress(i, kBaselineRounds);
    round(base.window_ns, true);
    lab.pause(kBaselinePauseNs);
  }
  base.median_ns = median(times);
  base.granularity_ns = granularity;
  base.late_probability = std::min(1.0, (base.missing + 3.0) / base.marks);
  base.repetitions = kMinRepetitions;
  while (base.repetitions < kMaxRepetitions &&
         lab.streams() * std::pow(base.late_probability, base.repetitions) > 1 - confidence)
    ++base.repetitions;
  return base;
}

ProbeControl find_what_stops(Lab& lab, int held, const ProbeBaseline& baseline, double confidence,
                             std::mt19937_64& random) {
  ProbeControl control;
  const double late = baseline.late_probability;
  const double once = std::pow(late, baseline.repetitions);
  // Held kernels with nothing behind them block no queue. One trial may be chance: one answer has to lead the other by
  // as many trials as a verdict needs.
  int lead = 0;
  while (std::abs(lead) < baseline.repetitions && control.trials < 4 * baseline.repetitions) {
    std::vector<StreamId> streams = shuffled_streams(lab.streams(), random);
    const auto first_marked = streams.begin() + held;
    std::vector<StreamId> marked(first_marked, streams.end());
    if (marked.size() > kControlMarks) marked.resize(kControlMarks);
    streams.erase(first_marked, streams.end());
    ++control.trials;
    const auto is_stuck =
        lab.stuck(streams, marked, baseline.window_ns, kProbeGrace * baseline.window_ns, /*is_blocking=*/false);
    if (!is_stuck) {
      ++control.spoilt;
      continue;
    }
    lead += std::find(is_stuck->begin(), is_stuck->end(), 0) != is_stuck->end() ? 1 : -1;
  }
  control.error_probability = once;
  if (lead >= baseline.repetitions) {
    control.stopped_by = StoppedBy::queues;
    return control;
  }
  if (lead > -baseline.repetitions || held < 2) return control;
  // They stop everybody all the same. If one of them ends, there is room for whoever waits; if queues wait for the end
  // of their command, only the one queue goes on, which is the marked stream's in one of `held` cases. Trials go on
  // until the odds are as high as the confidence asks for.
  const double wanted = std::log(2 / (1 - confidence));
  const double same_queue = 1.0 / held;
  double odds = 0;  // logarithm; positive: room
  for (int i = 0; i < kMaxReleases && std::abs(odds) < wanted; ++i) {
    ++control.trials;
    const auto is_stuck = is_still_stuck(lab, held, baseline, random);
    if (!is_stuck) {
      ++control.spoilt;
      continue;
    }
    odds += *is_stuck ? std::log(late / (1 - same_queue)) : std::log((1 - late) / same_queue);
  }
  if (std::abs(odds) < wanted) return control;
  control.stopped_by = odds > 0 ? StoppedBy::room : StoppedBy::barrier;
  control.error_probability = once + std::exp(-std::abs(odds));
  return control;
}

ProbeControl find_what_stops_all(Device& device, int streams, const ProbeBaseline& baseline) {
  constexpr std::uint64_t kElements = 1 << 20;
  constexpr int kMaxCopies = 256;
  ProbeControl control;
  const int marks = std::min(streams - 1, static_cast<int>(kControlMarks));
  const auto run = [&](int copies) {
    StampStep step(0, static_cast<std::uint32_t>(marks) + 2);
    const BufferId from = step.builder().host(ElementType::f32, kElements, Init::constant);
    const BufferId to = step.builder().constant(ElementType::f32, kElements, 0);
    step.stamp({}, 0, 0);
    for (int i = 0; i < copies; ++i) step.builder().copy({}, {from}, {to});
    step.stamp({}, 0, 1);
    for (int i = 0; i < marks; ++i)
      step.stamp({.stream = static_cast<StreamId>(i + 1)}, Lab::kMarkNs, static_cast<std::uint32_t>(i) + 2);
    StampSession session(device, std::move(step), marks + 1);
    session.begin();
    session.submit_all();
    session.finish();
    return session.moments(0, static_cast<std::uint32_t>(marks) + 2);
  };
  // So many copies that the host has submitted the marks long before they end.
  const std::int64_t wanted_ns = 2 * baseline.window_ns + 4 * baseline.granularity_ns;
  constexpr int kFew = 4;
  run(kFew);  // warm-up
  const std::vector<Moment> few = run(kFew);
  const std::int64_t each_ns = std::max<std::int64_t>(1, (few[1].started_ns - few[0].ended_ns) / kFew);
  const int copies = static_cast<int>(std::clamp<std::int64_t>(wanted_ns / each_ns + 1, kFew, kMaxCopies));
  int passed = 0;
  for (; control.trials < baseline.repetitions; ++control.trials) {
    const std::vector<Moment> moments = run(copies);
    passed += std::any_of(moments.begin() + 2, moments.end(),
                          [&](const Moment& mark) { return mark.started_ns < moments[1].started_ns; })
                  ? 1
                  : 0;
  }
  if (passed != 0 && passed != control.trials) return control;
  control.stopped_by = passed != 0 ? StoppedBy::room : StoppedBy::barrier;
  control.error_probability = std::pow(baseline.late_probability, baseline.repetitions);
  return control;
}

}  // namespace weir
