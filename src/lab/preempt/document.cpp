#include "lab/preempt/document.h"

#include <fmt/format.h>

#include <utility>

#include "base/clock.h"
#include "base/error.h"
#include "base/named_values.h"
#include "base/schemas.h"
#include "lab/preempt/published.h"
#include "measure/result.h"

namespace weir::preempt {
namespace {

// Which quantiles lack requests; null if there are enough for all.
Json shortage(const Quantiles& quantiles) {
  constexpr std::pair<const char*, double> kLevels[] = {{"p90", 0.9}, {"p99", 0.99}, {"p99.9", 0.999}};
  std::string text;
  for (const auto& [name, level] : kLevels)
    if (quantiles.count < min_requests(level))
      text += fmt::format("{}{} needs {} requests", text.empty() ? "" : ", ", name, min_requests(level));
  if (text.empty()) return nullptr;
  return fmt::format("{}; there are {}", text, quantiles.count);
}

Json quantiles_json(const Quantiles& quantiles) {
  return WEIR_NAMED(quantiles.count, named("mean", quantiles.mean_ns), named("p50", quantiles.p50_ns),
                    named("p90", quantiles.p90_ns), named("p99", quantiles.p99_ns), named("p999", quantiles.p999_ns),
                    named("max", quantiles.max_ns), named("p50_interval", interval_or_null(quantiles.p50_interval_ns)),
                    named("p90_interval", interval_or_null(quantiles.p90_interval_ns)),
                    named("p99_interval", interval_or_null(quantiles.p99_interval_ns)),
                    named("too_few", shortage(quantiles)));
}

Json requests_json(std::span<const Request> requests) {
  Json due_ns = Json::array(), submitted_ns = Json::array(), started_ns = Json::array(), ended_ns = Json::array();
  for (const Request& request : requests) {
    due_ns.push_back(request.due_ns);
    submitted_ns.push_back(request.submitted_ns);
    started_ns.push_back(time_or_null(request.started_ns));
    ended_ns.push_back(time_or_null(request.ended_ns));
  }
  return WEIR_NAMED(std::move(due_ns), std::move(submitted_ns), std::move(started_ns), std::move(ended_ns));
}

Json fit_json(const std::optional<Fit>& fit) {
  if (!fit) return nullptr;
  return WEIR_NAMED(named("latency", fit->is_to_start ? "to_start" : "to_end"), named("quantile", fit->level),
                    fit->constant_ns, fit->per_block, interval_or_null(fit->per_block_interval), fit->lengths,
                    named("shortest_block_ns", fit->shortest_ns), named("longest_block_ns", fit->longest_ns),
                    positive_or_null(fit->waves));
}

std::optional<double> in_blocks(const Point& point) {
  if (!point.to_start.p99_ns || point.observation.block_ns <= 0) return std::nullopt;
  return *point.to_start.p99_ns / static_cast<double>(point.observation.block_ns);
}

Json point_json(const Point& point, const Alone& alone) {
  const std::optional<double> start_p99 = in_blocks(point);
  Json json =
      WEIR_NAMED(to_json(point.victim), text_or_null(point.failure), point.requests, point.interval_ns,
                 point.is_overloaded, named("late_ns", quantiles_json(point.late)),
                 named("to_start_ns", quantiles_json(point.to_start)), named("to_end_ns", quantiles_json(point.to_end)),
                 named("start_in_blocks", Json{{"p99", number_or_null(start_p99)}}), named("tail_quantile", point.tail),
                 point.against_alone, interval_or_null(point.against_alone_interval), point.victim_loss,
                 to_json(point.observation));
  Json why = Json::object();  // reasons for null values
  const auto explain = [&](const char* name, bool is_missing, const char* reason) {
    if (is_missing) why[name] = point.failure.empty() ? reason : "the observation failed";
  };
  explain("to_start_ns", point.to_start.count == 0, "the device does not report when a command starts");
  explain("start_in_blocks", !start_p99,
          point.observation.block_ns <= 0 ? "blocks were not measured" : "too few requests started");
  explain("against_alone", !point.against_alone,
          quantile_at(alone.to_end, point.tail) ? "too few requests" : "too few requests of the intruder alone");
  explain("victim_loss", !point.victim_loss,
          point.observation.victim_blocks == 0 ? "no block of the victim ended while it was observed"
                                               : "the victim was not observed without an intruder");
  explain("lost_blocks", !point.observation.lost_blocks || !point.observation.repeated_blocks,
          "the victim's blocks cannot be counted one by one here");
  json["unavailable"] = std::move(why);
  return json;
}

Json curve_json(const Curve& curve, const Alone& alone) {
  Json json = WEIR_NAMED(curve.mechanism->name, text_or_null(curve.mechanism->level), curve.mechanism->summary,
                         curve.offered.is_offered,
                         named("reason", curve.offered ? Json(nullptr) : Json(curve.offered.reason)), curve.verdict);
  json["follows"] = curve.follows == Follows::unknown ? Json(nullptr) : Json(name_of(curve.follows));
  json["fit"] = fit_json(curve.fit);
  json["points"] = json_list(curve.points, [&](const Point& point) { return point_json(point, alone); });
  return json;
}

Json alone_json(const Alone& alone) {
  Json json = WEIR_NAMED(named("to_start_ns", quantiles_json(alone.to_start)),
                         named("to_end_ns", quantiles_json(alone.to_end)), alone.drift, alone.has_drifted);
  json["to_end_ns"]["p50_by_repeat"] = alone.medians_ns;
  json["repeats"] = json_list(alone.repeats, [](const Observation& repeat) { return requests_json(repeat.requests); });
  return json;
}

Json undisturbed_json(const Undisturbed& one) {
  const Observation& seen = one.observation;
  return WEIR_NAMED(to_json(one.victim), text_or_null(one.failure), seen.victim_blocks, seen.victim_wall_ns,
                    positive_or_null(seen.block_ns), positive_or_null(seen.block_words));
}

Json published_json() {
  const Published& all = published();
  Json json = WEIR_NAMED(all.source, all.url, all.device, all.licence);
  json["levels"] = json_list(all.curves, [](const PublishedCurve& curve) {
    Json points = json_list(curve.points, [](const PublishedPoint& point) {
      const Json latency_ns = {{"mean", point.mean_us * 1e3},
                               {"p50", point.p50_us * 1e3},
                               {"p90", point.p90_us * 1e3},
                               {"p99", point.p99_us * 1e3}};
      return WEIR_NAMED(named("kernel_ns", point.kernel_us * 1e3), latency_ns);
    });
    return WEIR_NAMED(curve.level, curve.summary, std::move(points));
  });
  return json;
}

// Reads what another Weir process wrote; rejects any other shape instead of trusting it.
template <class Read>
auto read_as(const char* what, const std::string& file, Read read) {
  try {
    return read();
  } catch (const JsonError&) {
    reject(fmt::format("{}: holds no {}", file, what));
  }
}

}  // namespace

Json to_json(const Victim& victim) {
  const Json waves = victim.kind == VictimKind::persistent ? Json(nullptr) : Json(victim.waves);
  return WEIR_NAMED(victim.kind, waves, victim.block_ns);
}

Victim victim_from(const Json& json, const std::string& file) {
  return read_as("victim", file, [&] {
    Victim victim;
    const auto name = json.at("kind").get<std::string>();
    const auto kind = victim_kind_named(name);
    if (!kind) reject(fmt::format("{}: unknown victim '{}'", file, name));
    victim.kind = *kind;
    if (!json.at("waves").is_null()) victim.waves = json.at("waves").get<int>();
    victim.block_ns = json.at("block_ns").get<std::int64_t>();
    return victim;
  });
}

Json to_json(const ExperimentPlan& plan) {
  Json json = WEIR_NAMED(plan.requests, plan.interval_ns, plan.intruder_ns, plan.alone_repeats, plan.in_flight,
                         plan.queued_ahead, plan.undisturbed_ns, plan.seed);
  json["victims"] = json_list(plan.victims, [](const Victim& victim) { return to_json(victim); });
  return json;
}

ExperimentPlan plan_from(const Json& json, const std::string& file) {
  return read_as("plan", file, [&] {
    ExperimentPlan plan;
    json.at("requests").get_to(plan.requests);
    json.at("interval_ns").get_to(plan.interval_ns);
    json.at("intruder_ns").get_to(plan.intruder_ns);
    json.at("alone_repeats").get_to(plan.alone_repeats);
    json.at("in_flight").get_to(plan.in_flight);
    json.at("queued_ahead").get_to(plan.queued_ahead);
    json.at("undisturbed_ns").get_to(plan.undisturbed_ns);
    json.at("seed").get_to(plan.seed);
    for (const Json& victim : json.at("victims")) plan.victims.push_back(victim_from(victim, file));
    return plan;
  });
}

Json to_json(const Observation& seen) {
  return WEIR_NAMED(seen.clock_error_ns, seen.victim_wall_ns, seen.victim_blocks, seen.lost_blocks,
                    seen.repeated_blocks, seen.preemptions, positive_or_null(seen.block_ns),
                    positive_or_null(seen.block_words), positive_or_null(seen.blocks_at_once), seen.suspend_ns,
                    seen.resume_ns, requests_json(seen.requests));
}

Observation observation_from(const Json& json, const std::string& file) {
  return read_as("observation", file, [&] {
    Observation seen;
    json.at("clock_error_ns").get_to(seen.clock_error_ns);
    json.at("victim_wall_ns").get_to(seen.victim_wall_ns);
    json.at("victim_blocks").get_to(seen.victim_blocks);
    json.at("preemptions").get_to(seen.preemptions);
    if (!json.at("block_ns").is_null()) json.at("block_ns").get_to(seen.block_ns);
    if (!json.at("block_words").is_null()) json.at("block_words").get_to(seen.block_words);
    if (!json.at("blocks_at_once").is_null()) json.at("blocks_at_once").get_to(seen.blocks_at_once);
    json.at("suspend_ns").get_to(seen.suspend_ns);
    json.at("resume_ns").get_to(seen.resume_ns);
    if (!json.at("lost_blocks").is_null()) seen.lost_blocks = json.at("lost_blocks").get<std::uint64_t>();
    if (!json.at("repeated_blocks").is_null()) seen.repeated_blocks = json.at("repeated_blocks").get<std::uint64_t>();
    const Json& requests = json.at("requests");
    const Json &due = requests.at("due_ns"), &submitted = requests.at("submitted_ns");
    const Json &started = requests.at("started_ns"), &ended = requests.at("ended_ns");
    const auto time = [](const Json& value) { return value.is_null() ? kNoTime : value.get<std::int64_t>(); };
    for (std::size_t i = 0; i < due.size(); ++i)
      seen.requests.push_back({time(due.at(i)), time(submitted.at(i)), time(started.at(i)), time(ended.at(i))});
    return seen;
  });
}

Json preempt_document(const Findings& findings, const Circumstances& circumstances) {
  Json document = WEIR_NAMED(named("schema", schemas::preempt), named("created", wall_time()),
                             circumstances.command_line, circumstances.device, circumstances.environment,
                             named("status", findings.is_complete ? "complete" : "ended_early"), findings.failures,
                             findings.verdict, findings.warnings, to_json(findings.plan), alone_json(findings.alone),
                             named("undisturbed", json_list(findings.undisturbed, undisturbed_json)));
  document["mechanisms"] = Json::array();
  for (const Curve& curve : findings.curves) document["mechanisms"].push_back(curve_json(curve, findings.alone));
  document["published"] = published_json();
  return document;
}

}  // namespace weir::preempt
