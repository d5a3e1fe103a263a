#include "lab/queues/queue_map.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <random>
#include <set>

#include "base/error.h"
#include "base/named_values.h"
#include "lab/queues/lab.h"
#include "lab/queues/stamps.h"
#include "run/passes.h"
#include "trace/analyse/queue_map.h"
#include "trace/analyse/queue_order.h"

namespace weir {
namespace {

constexpr int kMinProbed = 40;     // enough for the 32 queues that a CUDA process can have at most
constexpr int kTrials = 8;         // that compare the runtime's ids with the stuck streams
constexpr int kTracedWindows = 4;  // a traced launch takes longer than the probe's
constexpr std::size_t kMaxIntervals = 1000;
constexpr double kStretched = 0.05;  // share of marks that run for twice their time; beyond it, somebody else is there

// The queues in the device's own timeline, and whether they agree with the held streams.
struct RuntimeIds {
  std::string source;
  std::string reason;                 // why there are none
  StreamIntervals intervals;          // from an idle trial: every stream is marked twice
  int marks = 0, agreeing_marks = 0;  // of trials with holds
  int holds = 0, holds_on_own_queue = 0;
};

// By the ids, marks should be stuck exactly if they are on a held stream's queue; anything else is a disagreement.
RuntimeIds read_ids(Device& device, const QueueProbe& probe, std::uint64_t seed) {
  RuntimeIds ids;
  std::mt19937_64 random(seed);
  Lab lab(device, probe.streams, {.is_traced = true});
  const std::int64_t window_ns = kTracedWindows * probe.baseline.window_ns;
  std::vector<StreamId> streams(static_cast<std::size_t>(probe.streams));
  std::iota(streams.begin(), streams.end(), StreamId{0});
  constexpr int kIdle = 3;  // trials; the first is warm-up
  for (int i = 0; i < kIdle; ++i) {
    lab.begin();
    for (const StreamId stream : streams) lab.mark(stream, window_ns);
    lab.release();
  }
  struct Trial {
    std::vector<StreamId> held, marked;
    std::vector<std::uint8_t> is_stuck;
  };
  std::vector<Trial> trials;
  const int queues = std::min(probe.queues.value_or(1), probe.streams - 1);
  for (int i = 0; i < kTrials; ++i) {
    Trial trial;
    // Holds one, about half, all but one, and all queues in turn; if a stream keeps its queue, holding one is enough.
    const int counts[] = {1, std::max(1, queues / 2), std::max(1, queues - 1), queues};
    const int count = is_static(probe.policy) ? 1 : counts[i % 4];
    std::shuffle(streams.begin(), streams.end(), random);
    trial.held.assign(streams.begin(), streams.begin() + count);
    trial.marked.assign(streams.begin() + count, streams.end());
    const auto is_stuck = lab.stuck(trial.held, trial.marked, window_ns, window_ns);
    trial.is_stuck = is_stuck.value_or(std::vector<std::uint8_t>());
    if (!is_stuck) trial.marked.clear();
    trials.push_back(std::move(trial));
  }
  const Timeline timeline = lab.timeline();
  ids.source = timeline.source;
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::int32_t> queue_of;  // by iteration and command
  Timeline idle;
  idle.source = timeline.source;
  for (const Span& span : timeline.spans) {
    if (span.queue == kNoQueue) continue;
    queue_of[{span.iteration, span.command}] = span.queue;
    if (span.iteration > 0 && span.iteration < kIdle) idle.spans.push_back(span);
  }
  if (queue_of.empty()) {
    ids.reason = "the timeline does not name queues: " + timeline.source;
    return ids;
  }
  ids.intervals = stream_intervals(idle);
  for (std::size_t i = 0; i < trials.size(); ++i) {
    const auto iteration = static_cast<std::uint32_t>(kIdle + i);
    std::set<std::int32_t> held;
    for (const StreamId stream : trials[i].held)
      if (const auto found = queue_of.find({iteration, Lab::hold_of(stream)}); found != queue_of.end()) {
        ++ids.holds;
        ids.holds_on_own_queue += held.insert(found->second).second ? 1 : 0;
      }
    for (std::size_t k = 0; k < trials[i].marked.size(); ++k) {
      const auto found = queue_of.find({iteration, Lab::mark_of(trials[i].marked[k])});
      if (found == queue_of.end()) continue;
      ++ids.marks;
      ids.agreeing_marks += held.contains(found->second) == (trials[i].is_stuck[k] != 0) ? 1 : 0;
    }
  }
  return ids;
}

// A step whose streams delay each other wherever they share a queue.
Timeline trace_own_step(Device& device, int streams) {
  constexpr std::uint32_t kDepth = 4;
  constexpr std::int64_t kStampNs = 50'000;
  constexpr int kIterations = 3;
  const auto count = static_cast<std::uint32_t>(streams) * kDepth;
  StampStep step(0, count);
  for (std::uint32_t i = 0; i < count; ++i) step.stamp({.stream = static_cast<StreamId>(i / kDepth)}, kStampNs, i);
  StampSession session(device, std::move(step), streams, {.is_traced = true, .trace_iterations = kIterations + 1});
  for (int i = 0; i <= kIterations; ++i) {
    session.begin();
    session.submit_all();
    session.finish();
  }
  return session.timeline();
}

Timeline trace_step(Device& device, const MapRequest& request, const RunControl& control) {
  Timeline timeline;
  if (request.step.workload.empty()) {
    timeline = trace_own_step(device, request.streams);
  } else {
    const BuiltRun built = build_run(device.info(), request.step);
    timeline = run_traced_pass(device, built.step, built.placement, built.submit, TraceSchedule(3), control).timeline;
  }
  std::erase_if(timeline.spans, [](const Span& span) { return span.iteration == 0; });
  return timeline;
}

Json to_json(const StreamIntervals& found) {
  Json intervals = Json::array();
  for (const StreamInterval& one : found.intervals) {
    if (intervals.size() == kMaxIntervals) break;
    intervals.push_back(WEIR_NAMED(one.stream, one.queue, one.from_ns, one.to_ns, one.commands));
  }
  return intervals;
}

// Numbers queues in the order of first use, as the probe does. Empty if a stream used several queues.
std::vector<int> canonical(const StreamIntervals& found, int streams) {
  std::map<std::int32_t, int> label;
  std::vector<int> result;
  for (int i = 0; i < streams; ++i) {
    if (static_cast<std::size_t>(i) >= found.queues_of.size()) return {};
    const auto& queues = found.queues_of[static_cast<std::size_t>(i)];
    if (queues.size() != 1) return {};
    result.push_back(label.emplace(queues[0], static_cast<int>(label.size())).first->second);
  }
  return result;
}

struct Verdicts {
  Json agree = Json::array(), disagree = Json::array();
  void add(bool agrees, std::string text) { (agrees ? agree : disagree).push_back(std::move(text)); }
};

Json runtime_json(const RuntimeIds& ids, const QueueProbe& probe, Verdicts& verdicts) {
  std::set<std::int32_t> all;
  for (const auto& queues : ids.intervals.queues_of) all.insert(queues.begin(), queues.end());
  const std::vector<int> map = canonical(ids.intervals, probe.streams);
  if (probe.queues && !probe.is_lower_bound) {
    verdicts.add(static_cast<int>(all.size()) <= *probe.queues,
                 fmt::format("the runtime's ids name {} queues, the probe counts {}", all.size(), *probe.queues));
  }
  // The table continues after the probe's streams, so the map of these streams may differ.
  if (is_static(probe.policy) && probe.policy != MappingPolicy::fixed && !map.empty())
    verdicts.add(map == probe.queue_of_stream, "the map by the runtime's ids against the map by the probe");
  verdicts.add(ids.agreeing_marks == ids.marks,
               fmt::format("{} of {} marks beside held streams were stuck exactly if their ids say so",
                           ids.agreeing_marks, ids.marks));
  const Json queue_of_stream = map.empty() ? Json(nullptr) : Json(map);
  return WEIR_NAMED(ids.source, named("queues", all.size()), queue_of_stream,
                    named("ids_of_stream", ids.intervals.queues_of), ids.marks, ids.agreeing_marks, ids.holds,
                    ids.holds_on_own_queue);
}

Json timeline_json(const Timeline& timeline, const MapRequest& request, const QueueProbe& probe, Verdicts& verdicts) {
  const QueueOrder order = queue_order(timeline);
  const StreamIntervals intervals = stream_intervals(timeline);
  std::size_t seen = 0, apart = 0, contradicted = 0;
  for (const PairOrder& pair : order.pairs) {
    seen += pair.opportunities > 0 ? 1 : 0;
    apart += pair.is_apart() ? 1 : 0;
    const std::size_t last = std::max(pair.a, pair.b);
    if (pair.is_apart() && is_static(probe.policy) && last < probe.queue_of_stream.size() &&
        probe.queue_of_stream[pair.a] == probe.queue_of_stream[pair.b])
      ++contradicted;
  }
  if (is_static(probe.policy) && probe.policy != MappingPolicy::fixed && request.step.workload.empty())
    verdicts.add(contradicted == 0,
                 fmt::format("{} pairs of streams that share a queue by the probe start out of order in the step",
                             contradicted));
  if (probe.queues && *probe.queues == 1)
    verdicts.add(apart == 0, fmt::format("{} pairs of streams start out of order, which one queue cannot do", apart));
  Json queues = nullptr;
  if (!intervals.intervals.empty()) {
    std::set<std::int32_t> all;
    for (const auto& found : intervals.queues_of) all.insert(found.begin(), found.end());
    queues = all.size();
  }
  return {{"step", request.step.workload.empty() ? "the lab's own: 4 stamps per stream, stream by stream"
                                                 : request.step.workload},
          {"source", timeline.source},
          {"pairs", order.pairs.size()},
          {"pairs_with_opportunity", seen},
          {"pairs_apart", apart},
          {"queues", std::move(queues)},
          {"is_fixed", or_null(intervals.is_fixed)},
          {"intervals", to_json(intervals)}};
}

}  // namespace

void warn_about_others(Json& document, Device& device, const QueueProbe& probe) {
  const ProbeBaseline& base = probe.baseline;
  const Telemetry telemetry = device.telemetry();
  if (telemetry.other_processes.value_or(0) > 0)
    warn(document, "foreign_load", fmt::format("{} other processes compute on this device", *telemetry.other_processes),
         "Use the device alone, or take the verdicts with care.");
  if (base.late > 0 || base.stretched > kStretched * base.marks)
    warn(document, "foreign_load",
         fmt::format("with nothing held, {} of {} marks were late and {} ran for twice their time or longer: "
                     "somebody else is using the device",
                     base.late, base.marks, base.stretched),
         fmt::format("Verdicts were repeated {} times to make up for it. Use the device alone if you can.",
                     base.repetitions));
  // Marks on a quiet device come at equal distances, which also have a common divisor.
  if (base.granularity_ns > Lab::kMarkNs && base.stretched + base.shrunk > 0)
    warn(document, "coarse_timer",
         fmt::format("the device's clock goes in steps of {} ns, and a mark takes {}", base.granularity_ns,
                     Lab::kMarkNs),
         "Counts and maps do not need it; gaps of `weir queues switch` cannot be measured here.");
}

int probed_streams(int streams) { return std::max(streams, kMinProbed); }

Json to_json(const QueueProbe& probe) {
  const ProbeBaseline& base = probe.baseline;
  Json json =
      WEIR_NAMED(probe.policy, named("mapping", in_words(probe.policy)), named("is_static", is_static(probe.policy)),
                 probe.queues, probe.is_lower_bound, probe.reason, probe.record_blocks, probe.barrier, probe.streams,
                 named("queue_of_stream", probe.queue_of_stream.empty() ? Json(nullptr) : Json(probe.queue_of_stream)));
  json["saturation"] = Json::array();
  std::vector<QueueProbe::Saturation> curve = probe.saturation;
  std::stable_sort(curve.begin(), curve.end(), [](const auto& a, const auto& b) { return a.held < b.held; });
  for (std::size_t i = 0; i < curve.size(); ++i) {
    if (i > 0 && curve[i].held == curve[i - 1].held) {
      Json& last = json["saturation"].back();
      last["stuck"] = last["stuck"].get<int>() + curve[i].stuck;
      last["marked"] = last["marked"].get<int>() + curve[i].marked;
      continue;
    }
    json["saturation"].push_back(WEIR_NAMED(curve[i].held, curve[i].stuck, curve[i].marked));
  }
  json.update(WEIR_NAMED(probe.confidence, base.repetitions, probe.trials));
  json["spoilt_trials"] = probe.spoilt;
  json["elapsed_ns"] = probe.elapsed_ns;
  json["baseline"] = WEIR_NAMED(base.marks, base.late, base.missing, base.stretched,
                                named("latency_ns", Json{{"p50", base.median_ns}}), base.window_ns,
                                base.late_probability, base.granularity_ns);
  return json;
}

Json map_queues(Device& device, const MapRequest& request, const RunContext& context, const RunControl& control) {
  Json document = queues_document("map", device.info(), context);
  ProbeOptions options;
  options.streams = probed_streams(request.streams);
  options.confidence = request.confidence;
  options.stop = control.stop;
  options.progress = control.progress;
  if (!request.step.workload.empty()) check_request(device.info(), request.step, {});
  const QueueProbe probe = probe_queues(device, options);
  Json& map = document["map"] = Json::object();
  map.update(WEIR_NAMED(request.streams, to_json(probe)));
  if (!probe.queues) document["unavailable"]["map.probe.queues"] = probe.reason;
  if (probe.queue_of_stream.empty())
    document["unavailable"]["map.probe.queue_of_stream"] = "streams do not keep a queue, or it is not known";
  if (!probe.record_blocks)
    document["unavailable"]["map.probe.record_blocks"] =
        "the number of queues is not known, or new streams would be mapped in another way";
  if (!probe.barrier)
    document["unavailable"]["map.probe.barrier"] =
        "the number of queues is not known, no two streams share one, or trials differ";
  warn_about_others(document, device, probe);

  Verdicts verdicts;
  map["runtime"] = map["timeline"] = nullptr;
  if (control.is_stopped()) {
    document["unavailable"]["map.runtime"] = document["unavailable"]["map.timeline"] = "interrupted";
  } else {
    if (control.progress) control.progress("runtime ids", 0, 2);
    const RuntimeIds ids = read_ids(device, probe, options.seed);
    if (ids.reason.empty()) {
      map["runtime"] = runtime_json(ids, probe, verdicts);
      if (map["runtime"]["queue_of_stream"].is_null())
        document["unavailable"]["map.runtime.queue_of_stream"] = "some stream used several queues";
    } else {
      document["unavailable"]["map.runtime"] = ids.reason;
    }
    if (control.progress) control.progress("timeline of a step", 1, 2);
    const Timeline timeline = trace_step(device, request, control);
    if (timeline.spans.empty()) {
      document["unavailable"]["map.timeline"] = "there is no timeline: " + timeline.source;
    } else {
      map["timeline"] = timeline_json(timeline, request, probe, verdicts);
      if (map["timeline"]["queues"].is_null())
        document["unavailable"]["map.timeline.queues"] = "the timeline does not name queues";
      if (map["timeline"]["is_fixed"].is_null())
        document["unavailable"]["map.timeline.is_fixed"] = "the timeline does not name queues, or nothing ran twice";
    }
  }
  map["agreement"] = WEIR_NAMED(verdicts.agree, verdicts.disagree);
  for (const Json& text : verdicts.disagree)
    warn(document, "disagreement", text.get<std::string>(),
         "Repeat it with nothing else on the device; if it stays, one of the "
         "readings is wrong here.");
  return document;
}

}  // namespace weir
