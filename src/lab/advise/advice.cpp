#include "lab/advise/advice.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "base/named_values.h"
#include "base/schemas.h"
#include "base/units.h"
#include "device/sim/profile.h"
#include "lab/advise/step_times.h"

namespace weir::advise {
namespace {

// Bisection: a slower host never makes a step shorter.
constexpr int kHalvings = 20;
constexpr double kSlowestHost = 1;  // a profiler makes nothing faster
constexpr double kNotDelayed = 1.005;
constexpr std::array<std::int64_t, 2> kGraphGaps = {300, 1'000};
constexpr double kFastestHost = 0.25;  // profilers that record shapes and stacks make hosts up to four times slower
constexpr double kLeastError = 0.01;   // no prediction is said to be better than this

bool is_of_amd(const Timeline& timeline) {
  for (const HostCall& call : timeline.calls)
    if (call.name < timeline.names.size()) {
      const std::string& name = timeline.names[call.name];
      if (name.starts_with("hip") || name.starts_with("hsa")) return true;
      if (name.starts_with("cuda") || name.starts_with("cu")) return false;
    }
  return std::any_of(timeline.devices.begin(), timeline.devices.end(),
                     [](const TraceDevice& device) { return device.model.starts_with("AMD"); });
}

class Adviser {
 public:
  Adviser(const Timeline& timeline, const AdviceOptions& options) : options_(options) {
    made_.is_amd = is_of_amd(timeline);
    sim::SimProfile queues = sim::profile_named(made_.is_amd ? "mi300x" : "h200");
    queues.queues = options.queues.value_or(queue_variable(made_.is_amd).usual);
    made_.model = replay_model(timeline, queues);
    made_.traced_ns = observed_step_ns(made_.model, timeline);
    questions_ = what_ifs(made_.model, timeline, made_.is_amd);
  }

  Advice take() {
    const Replayed same = replay(made_.model);
    made_.replayed_ns = step_ns(made_.model, same);
    made_.error = made_.traced_ns > 0 ? made_.replayed_ns / made_.traced_ns - 1 : 0;
    made_.reason = reason_against(same);
    if (!made_.reason.empty()) return std::move(made_);
    calibrate();
    made_.step_ns = step_with({});
    for (std::size_t i = 0; i < questions_.size(); ++i) {
      if (options_.progress) options_.progress(i, questions_.size());
      predict(std::move(questions_[i]));
    }
    choose();
    return std::move(made_);
  }

 private:
  std::string reason_against(const Replayed& same) const {
    if (same.is_stuck) return "the trace's dependencies contradict each other: its replay does not come to an end";
    if (made_.model.uncalled == made_.model.commands.size())
      return "the trace has no calls of the host, so it does not show what commands waited for";
    if (std::abs(made_.error) > kMaxReplayError)
      return fmt::format(
          "its replay takes {} where the trace took {} ({:+.1f} %): {} started late for reasons that the "
          "trace does not show, by {} in all",
          format_duration(made_.replayed_ns), format_duration(made_.traced_ns), 100 * made_.error,
          counted(made_.model.late_commands, "command"), format_duration(made_.model.late_ns));
    return {};
  }

  // Negative where the replay does not come to an end.
  double step_with(Change change) const {
    change.host *= made_.host;
    const Replayed replayed = replay(made_.model, change);
    return replayed.is_stuck ? -1 : made_.scale * step_ns(made_.model, replayed);
  }

  // A profiler makes the host slower, so the host is made as fast as it is without one; what remains is on the device.
  void calibrate() {
    if (!options_.untraced_ns) return;
    // Where not even a host that takes no time is fast enough, the device is the limit: then the slowest host that does
    // not delay it.
    made_.host = 0;
    const double wanted = std::max(*options_.untraced_ns, step_with({}) * kNotDelayed);
    double low = 0, high = kSlowestHost;
    for (int i = 0; i < kHalvings; ++i) {
      made_.host = (low + high) / 2;
      (step_with({}) < wanted ? low : high) = made_.host;
    }
    const double reached = step_with({});
    const double host = std::exchange(made_.host, std::min(made_.host, kFastestHost));
    is_host_open_ = std::abs(step_with({}) / reached - 1) < kLeastError;
    made_.host = host;
    if (reached > 0) made_.scale = *options_.untraced_ns / reached;
  }

  void predict(WhatIf&& what) {
    if (!what.reason.empty()) return made_.unanswered.push_back(std::move(what));
    Prediction made;
    made.step_ns = step_with(what.change);
    if (made.step_ns < 0) {
      made_.stuck.push_back(what.title);
      return;
    }
    made.low_ns = made.high_ns = made.step_ns;
    const auto may_be = [&](const Change& change) {
      const double ns = step_with(change);
      if (ns < 0) return;
      made.low_ns = std::min(made.low_ns, ns);
      made.high_ns = std::max(made.high_ns, ns);
    };
    Change change = what.change;
    if (!made_.model.slowdowns.empty())
      for (const double beyond : {0.0, 1.0}) {
        change.beyond = beyond;
        may_be(change);
      }
    change = what.change;
    if (!change.graph.empty())
      for (const std::int64_t gap_ns : kGraphGaps) {
        change.graph_gap_ns = gap_ns;
        may_be(change);
      }
    if (is_host_open_) {
      const double host = std::exchange(made_.host, std::min(made_.host, kFastestHost));
      may_be(what.change);
      made_.host = host;
    }
    const double error = std::max(kLeastError, std::abs(made_.error));
    made.low_ns *= 1 - error;
    made.high_ns *= 1 + error;
    made.gain = made_.step_ns > 0 ? 1 - made.step_ns / made_.step_ns : 0;
    made.what = std::move(what);
    made_.predictions.push_back(std::move(made));
  }

  // Of queue counts only the smallest that is nearly as good as the best. Then by gain over effort.
  void choose() {
    constexpr double kNearly = 0.01;
    double best = 0;
    for (const Prediction& one : made_.predictions)
      if (one.what.kind == "queues") best = std::max(best, one.gain);
    bool has_queues = false;
    for (std::size_t i = 0; i < made_.predictions.size(); ++i) {
      Prediction& one = made_.predictions[i];
      if (one.what.effort == Effort::none || one.gain < kWorthwhile) continue;
      if (one.what.kind == "queues") {
        if (has_queues || one.gain < best - kNearly) continue;
        has_queues = true;
      }
      one.is_advised = true;
      made_.advised.push_back(i);
    }
    const auto worth = [&](std::size_t i) {
      constexpr std::array kCost = {1.0, 2.0, 4.0, 1.0};
      const Prediction& one = made_.predictions[i];
      return one.gain / kCost[static_cast<std::size_t>(one.what.effort)];
    };
    std::stable_sort(made_.advised.begin(), made_.advised.end(),
                     [&](std::size_t a, std::size_t b) { return worth(a) > worth(b); });
  }

  const AdviceOptions& options_;
  bool is_host_open_ = false;  // a much faster host would make no difference to the step as it is
  Advice made_;
  std::vector<WhatIf> questions_;
};

}  // namespace

Advice advise(const Timeline& timeline, const AdviceOptions& options) { return Adviser(timeline, options).take(); }

Json advice_json(const Advice& advice, const Timeline& timeline, const std::vector<ImportedFile>& files,
                 const AdviceOptions& options) {
  const ReplayModel& model = advice.model;
  Json json = {{"schema", schemas::advice}, {"command_line", options.command_line}};
  json["files"] =
      json_list(files, [](const ImportedFile& file) -> Json { return {{"name", file.name}, {"format", file.format}}; });
  json["trace"] = WEIR_NAMED(named("commands", model.commands.size()), named("host_calls", model.actions.size()),
                             named("streams", model.streams), named("steps", model.steps),
                             named("step_ns", advice.traced_ns), named("span_ns", model.observed_ns),
                             named("queues", model.queues.queues), named("are_waits_known", timeline.has_dependencies));
  json["replay"] = WEIR_NAMED(named("step_ns", advice.replayed_ns), named("error", advice.error),
                              named("late_commands", model.late_commands), named("late_ns", model.late_ns),
                              named("inferred_waits", model.inferred_edges), named("without_call", model.uncalled));
  json["untraced"] = options.untraced_ns ? WEIR_NAMED(named("step_ns", *options.untraced_ns),
                                                      named("host_factor", advice.host), named("scale", advice.scale))
                                         : Json();
  json["reason"] = advice.reason.empty() ? Json() : Json(advice.reason);
  json["step_ns"] = advice.reason.empty() ? Json(advice.step_ns) : Json();
  json["predictions"] = json_list(advice.predictions, [](const Prediction& one) -> Json {
    Json row = {{"kind", one.what.kind},
                {"title", one.what.title},
                {"setting", one.what.setting.empty() ? Json() : Json(one.what.setting)},
                {"effort", to_string(one.what.effort)}};
    row.update(WEIR_NAMED(one.step_ns, one.low_ns, one.high_ns, one.gain, one.is_advised));
    row["share"] = one.what.share > 0 ? Json(one.what.share) : Json();
    return row;
  });
  json["unanswered"] = json_list(advice.unanswered, [](const WhatIf& one) -> Json {
    return {{"kind", one.kind}, {"title", one.title}, {"reason", one.reason}};
  });
  json["stuck"] = json_list(advice.stuck, [](const std::string& title) { return Json(title); });
  json["advised"] = json_list(advice.advised, [](std::size_t index) { return Json(index); });
  json["proof"] = Json();
  return json;
}

}  // namespace weir::advise
