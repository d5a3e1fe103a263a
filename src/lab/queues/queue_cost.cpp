#include "lab/queues/queue_cost.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/named_values.h"
#include "base/units.h"
#include "lab/queues/queue_map.h"
#include "trace/analyse/head_of_line.h"

namespace weir {
namespace {

constexpr double kWorthIt = 0.03;  // smaller changes are not advised: the prediction is not more accurate
constexpr int kUnlimited = 128;    // more queues than any step has streams
constexpr double kTrusted = 0.1;   // the most by which the fitted step may differ from the measured one

Json to_json(const HeadOfLine& found, const Step& step) {
  Json blockers = Json::array();
  for (const HeadOfLine::Blocker& blocker : found.blockers) {
    const Command& command = step.commands()[blocker.command];
    const bool is_kernel = command.kind == CommandKind::kernel || command.kind == CommandKind::host;
    blockers.push_back(WEIR_NAMED(blocker.command,
                                  named("name", is_kernel ? std::string(kernel(command.kernel).name) : "copy"),
                                  blocker.stream, blocker.caused_ns));
  }
  return WEIR_NAMED(found.waited_ns, found.longest_ns, found.commands, named("of_commands", found.total),
                    std::move(blockers));
}

Json head_of_line_json(const Timeline& timeline, const Step& step, std::string* reason) {
  Timeline kept = timeline;
  std::erase_if(kept.spans, [](const Span& span) { return span.iteration == 0; });  // warm-up
  const HeadOfLine found = head_of_line(kept, [&](std::uint32_t id) { return step.predecessors(id); });
  *reason = found.reason;
  return found.reason.empty() ? to_json(found, step) : Json(nullptr);
}

// What experiments found out about the device, for the document.
void add_rules(const DeviceRules& rules, Json& calibration, Json& document) {
  Json& learned = calibration["learned"] = Json::object();
  const auto add = [&](const char* name, const auto& known) {
    learned[name] = or_null(known.value);
    if (!known.value) document["unavailable"][fmt::format("cost.calibration.learned.{}", name)] = known.reason;
  };
  add("barrier", rules.barrier);
  add("queue_depth", rules.queue_depth);
  add("resident_kernels", rules.resident_kernels);
  add("slots_per_multiprocessor", rules.slots);
  add("packet_ns", rules.packet_ns);
  add("event_gap_ns", rules.event_gap_ns);
  add("copy_queues", rules.copy_queues);
  add("host_in_queue", rules.host_in_queue);
  add("host_threads", rules.host_functions);
}

std::string setting_of(const DeviceInfo& info, int queues) {
  return fmt::format("{} {}", info.queue_variable.empty() ? "use" : "set", info.queue_setting(queues));
}

std::string percent(double change) { return fmt::format("{:+.0f} %", 100 * change); }

std::string times(int queues) { return queues == 1 ? "1 hardware queue" : fmt::format("{} hardware queues", queues); }

// Describes the difference to the advised count, or else to the best of the others.
std::optional<std::string> explain(const QueueCost& cost, double now_ns, double unlimited_ns) {
  const QueueCost::Prediction* other = nullptr;
  for (const QueueCost::Prediction& prediction : cost.predictions) {
    if (!prediction.step_ns || prediction.queues == cost.queues_now) continue;
    if (cost.advised && prediction.queues != *cost.advised) continue;
    if (other == nullptr || *prediction.step_ns <= *other->step_ns) other = &prediction;
  }
  if (other == nullptr) return std::nullopt;
  const std::string both = fmt::format("With {} a step takes {}, with {} it would take {}", times(cost.queues_now),
                                       format_duration(now_ns), times(other->queues), format_duration(*other->step_ns));
  const double difference = now_ns - *other->step_ns;
  const bool has_more = other->queues > cost.queues_now;
  if (std::abs(difference) >= kWorthIt * now_ns && (difference > 0) != has_more)
    return fmt::format(
        "{}. The difference, {}, is not blocking: with more queues in use each hop between them costs more.", both,
        format_duration(std::abs(difference)));
  if (difference >= kWorthIt * now_ns)
    return fmt::format(
        "{}. The difference, {}, is head-of-line blocking: ready commands waited only because an unrelated command sat "
        "in front of them in the same hardware queue.",
        both, format_duration(difference));
  if (difference <= -kWorthIt * now_ns)
    return fmt::format(
        "{}. The difference, {}, would be head-of-line blocking: ready commands would wait only because an unrelated "
        "command sat in front of them in the same hardware queue.",
        both, format_duration(-difference));
  if (now_ns - unlimited_ns >= kWorthIt * now_ns) return both + ": that makes no difference.";
  return both + ": hardly any ready command waits behind an unrelated one.";
}

}  // namespace

QueueCost price_queues(Device& device, const CostRequest& request, const RunContext& context,
                       const RunControl& control) {
  const DeviceInfo info = device.info();
  QueueCost cost;
  cost.document = queues_document("cost", info, context);
  const BuiltRun built = build_run(info, request.run);
  const StepRun run{built, request.run.iterations, request.run.warmup, request.measured};

  const QueueProbe& probe = request.probe;
  warn_about_others(cost.document, device, probe);
  if (!probe.queues || probe.is_lower_bound) {
    // Use the count that the device reports if the probe cannot determine it.
    if (!info.hardware_queues.value) fail("how many hardware queues there are is not known: " + probe.reason);
    warn(cost.document, "queues", "the probe did not count the queues: " + probe.reason,
         "The number is what the device says of itself.");
  }
  if (probe.policy == MappingPolicy::one_queue || probe.policy == MappingPolicy::unshared ||
      probe.policy == MappingPolicy::unknown || probe.policy == MappingPolicy::fixed)
    warn(cost.document, "mapping",
         fmt::format("how streams get queues does not show here ({}); other counts are predicted as if a stream "
                     "{}",
                     in_words(probe.policy),
                     probe.policy == MappingPolicy::fixed ? "got the next one in turn"
                                                          : "took a free one whenever it becomes busy"),
         "Repeat it with another number of queues, or --verify the predictions.");
  QueueProbe used = probe;
  if (!probe.queues || probe.is_lower_bound) used.queues = *info.hardware_queues.value;
  cost.queues_now = *used.queues;

  const Calibration calibration = calibrate(device, run, used, control);
  cost.profile = calibration.profile;
  if (probe.barrier == true && calibration.profile.barrier == 0)
    warn(cost.document, "barrier",
         "each queue waits for the end of its command before the next one starts (barrier bits), and the simulated "
         "device does not: with fewer queues than now the step takes longer than predicted",
         "Take predictions for fewer queues as lower bounds, and --verify-all them.");
  const auto predict = [&](int queues, bool is_traced) {
    sim::SimProfile profile = calibration.profile;
    // Where copies have as many queues as kernels, one setting decides about both.
    if (profile.engine_queues > 1 && profile.engine_queues == profile.queues) profile.engine_queues = queues;
    profile.queues = queues;
    return simulate(profile, run, is_traced);
  };
  Simulated now = predict(cost.queues_now, true);
  Simulated unlimited = predict(kUnlimited, false);
  // The share that no setting explains is assumed to be the same for every step.
  const double unexplained = calibration.measured.step_ns / now.step_ns;
  now.step_ns *= unexplained;
  unlimited.step_ns *= unexplained;

  Json json = WEIR_NAMED(named("workload", workload_of(request.run).name), built.streams, built.scale,
                         named("submit", request.run.submit.name), named("queues", cost.queues_now));
  json["mapping"] = {{"policy", name_of(probe.policy)}, {"words", in_words(probe.policy)}};
  json["measured"] =
      WEIR_NAMED(calibration.measured.step_ns, named("interval_ns", calibration.measured.interval),
                 calibration.measured.submit_ns, calibration.measured.process_ns, request.run.iterations);
  if (calibration.measured.interval.is_null())
    cost.document["unavailable"]["cost.measured.interval_ns"] =
        "several processes, or too few iterations: their medians are in process_ns";
  const double residual = calibration.simulated_ns / calibration.measured.step_ns - 1;
  json["calibration"] = WEIR_NAMED(calibration.timeline, named("durations", calibration.profile.durations.size()),
                                   named("unfitted_ns", calibration.first_ns), calibration.simulated_ns, residual,
                                   calibration.host_factor, calibration.contention, calibration.profile.room);
  add_rules(calibration.rules, json["calibration"], cost.document);
  std::string refusal;
  if (std::abs(residual) > kTrusted) {
    refusal = fmt::format("the simulated step takes {} where the measured one takes {}: it is not like this device",
                          format_duration(calibration.simulated_ns), format_duration(calibration.measured.step_ns));
    warn(cost.document, "calibration", refusal,
         fmt::format("Nothing is predicted. Measure the counts: `weir queues sweep {}`.",
                     workload_of(request.run).name));
    for (const char* key : {"cost.predictions.step_ns", "cost.predictions.change", "cost.head_of_line.step_ns",
                            "cost.head_of_line.unlimited_step_ns"})
      cost.document["unavailable"][key] = refusal;
  }

  json["predictions"] = Json::array();
  for (const int queues : request.queues) {
    Json entry = {{"queues", queues}, {"step_ns", nullptr}, {"change", nullptr}};
    cost.predictions.push_back({queues, std::nullopt});
    if (refusal.empty()) {
      const double step_ns = queues == cost.queues_now ? now.step_ns : unexplained * predict(queues, false).step_ns;
      cost.predictions.back().step_ns = step_ns;
      entry["step_ns"] = step_ns;
      entry["change"] = step_ns / now.step_ns - 1;
    }
    json["predictions"].push_back(std::move(entry));
  }

  std::string reason;
  Json blocked = head_of_line_json(now.timeline, built.step, &reason);
  if (blocked.is_null()) cost.document["unavailable"]["cost.head_of_line.simulated"] = reason;
  const auto unless_refused = [&](double ns) { return refusal.empty() ? Json(ns) : Json(nullptr); };
  json["head_of_line"] = {{"step_ns", unless_refused(std::max(0.0, now.step_ns - unlimited.step_ns))},
                          {"unlimited_step_ns", unless_refused(unlimited.step_ns)},
                          {"simulated", std::move(blocked)}};

  const auto best = std::min_element(cost.predictions.begin(), cost.predictions.end(),
                                     [](const auto& a, const auto& b) { return a.step_ns < b.step_ns; });
  std::string sentence = fmt::format("leave it at {}: no other count is predicted to be more than {:.0f} % faster",
                                     times(cost.queues_now), 100 * kWorthIt);
  if (!refusal.empty()) {
    sentence = "no advice: " + refusal;
  } else if (best != cost.predictions.end()) {
    // Fewer queues are as good if the difference is within the accuracy of the prediction.
    auto enough = best;
    for (auto it = cost.predictions.begin(); it != cost.predictions.end(); ++it)
      if (*it->step_ns <= *best->step_ns * 1.005 && it->queues < enough->queues) enough = it;
    const double change = *enough->step_ns / now.step_ns - 1;
    if (change < -kWorthIt) {
      cost.advised = enough->queues;
      sentence = fmt::format("{}: predicted {}", setting_of(info, enough->queues), percent(change));
    }
  }
  json["advice"] = {{"queues", or_null(cost.advised)}, {"sentence", sentence}};
  if (!cost.advised)
    cost.document["unavailable"]["cost.advice.queues"] = refusal.empty() ? "no change is worth it" : refusal;

  if (const auto explanation = explain(cost, now.step_ns, unlimited.step_ns)) {
    json["explanation"] = *explanation;
  } else {
    json["explanation"] = nullptr;
    cost.document["unavailable"]["cost.explanation"] =
        refusal.empty() ? "no other queue counts to compare with" : refusal;
  }
  json["verification"] = nullptr;
  cost.document["unavailable"]["cost.verification"] = "not asked for (--verify)";
  cost.document["cost"] = std::move(json);
  return cost;
}

}  // namespace weir
