#include "lab/overlap/overlap_summary.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include "base/clock.h"
#include "base/named_values.h"
#include "base/schemas.h"
#include "measure/statistics.h"
#include "run/ranks.h"
#include "trace/kinds.h"
#include "trace/rank_skew.h"
#include "weir_build.h"

namespace weir {
namespace {

using Numbers = std::vector<double>;

// Losses of two ways to run one step may differ only by rounding in sums.
double loss_tolerance(const std::string& precision) { return precision == "fp32" || precision == "tf32" ? 1e-4 : 2e-2; }

Json times_json(const OverlapTimes& found) {
  Json kinds = Json::object();
  for (std::size_t i = 0; i < found.collective_ns.size(); ++i)
    if (found.collective_ns[i] > 0) kinds[to_string(static_cast<CollectiveKind>(i))] = found.collective_ns[i];
  Json json = WEIR_NAMED(found.iteration, found.times.span_ns, found.times.busy_ns, found.times.idle_ns,
                         found.times.compute_ns, found.times.communication_ns, named("collectives", std::move(kinds)));
  json.update(
      WEIR_NAMED(found.times.copy_ns, found.exposed_ns(), found.hidden_ns(), found.efficiency(), found.compute_sum_ns));
  return json;
}

Json list_json(const std::vector<OverlapTimes>& all) { return json_list(all, times_json); }

Json trained_json(const RankOverlap::Trained& trained) {
  return WEIR_NAMED(trained.latency_ns, trained.submit_ns, trained.losses);
}

Numbers column(const Json& list, const char* field) {
  Numbers numbers;
  for (const Json& each : list)
    if (each[field].is_number()) numbers.push_back(each[field].get<double>());
  return numbers;
}

Json mean_or_null(const Numbers& numbers) { return numbers.empty() ? Json(nullptr) : number_or_null(mean(numbers)); }
Json median_or_null(const Numbers& numbers) {
  return numbers.empty() ? Json(nullptr) : number_or_null(median(numbers));
}

double sum(const Numbers& numbers) { return std::accumulate(numbers.begin(), numbers.end(), 0.0); }

// A step ends when its last rank ends: takes the largest time of all ranks, step by step.
Numbers slowest(const std::vector<Json>& members, const char* way) {
  Numbers largest;
  for (const Json& member : members) {
    const Numbers own = member[way]["latency_ns"].get<Numbers>();
    if (largest.empty()) largest = own;
    largest.resize(std::min(largest.size(), own.size()));
    for (std::size_t i = 0; i < largest.size(); ++i) largest[i] = std::max(largest[i], own[i]);
  }
  return largest;
}

// Means over a pass's iterations; parts still add up to their totals.
Json pass_json(const Json& list) {
  if (list.empty()) return nullptr;
  Json json = Json::object();
  for (const char* field : {"span_ns", "busy_ns", "idle_ns", "compute_ns", "communication_ns", "copy_ns", "exposed_ns",
                            "hidden_ns", "efficiency", "compute_sum_ns"})
    json[field] = mean_or_null(column(list, field));
  // The ratio of the totals, as in `weir analyze`, not a mean of ratios.
  if (json["communication_ns"].is_number() && json["communication_ns"].get<double>() > 0)
    json["efficiency"] = json["hidden_ns"].get<double>() / json["communication_ns"].get<double>();
  json["collectives"] = Json::object();
  for (const Json& each : list)
    for (const auto& [kind, ns] : each["collectives"].items()) json["collectives"][kind] = 0;
  for (auto& [kind, ns] : json["collectives"].items()) {
    Numbers values;
    for (const Json& each : list) values.push_back(each["collectives"].value(kind, 0.0));
    ns = mean(values);
  }
  return json;
}

// How much longer compute takes beside communication than alone, by the durations of the same commands.
std::optional<double> inflation_of(const Json& member) {
  const Numbers beside = column(member["times"], "compute_sum_ns"), alone = column(member["alone"], "compute_sum_ns");
  if (beside.empty() || alone.empty() || median(alone) <= 0) return std::nullopt;
  return median(beside) / median(alone);
}

// `causes` is of the same rank.
OverlapBound bound_of(const Json& member, const RankCauses& causes) {
  const Numbers compute = column(member["alone"], "busy_ns"),
                communication = column(member["talk"], "communication_ns"),
                overlapped = column(member["times"], "communication_ns");
  if (compute.empty() || communication.empty()) return {};
  const double dependency_ns =
      causes.found.of(ExposedCause::dependency).total_ns / std::max<double>(1, static_cast<double>(causes.iterations));
  return overlap_bound(median(compute), median(communication), overlapped.empty() ? 0 : mean(overlapped),
                       dependency_ns);
}

Json member_json(const Json& member, const RankCauses& causes) {
  Json json = Json::object();
  for (const char* name : {"rank", "host", "device", "clock_offset_ns", "clock_error_ns", "memory"})
    json[name] = member[name];
  const OverlapBound bound = bound_of(member, causes);
  json["overlapped"] = pass_json(member["times"]);
  json["serial"] = pass_json(member["serial_times"]);
  json["compute_alone"] = pass_json(member["alone"]);
  json["communication_alone"] = pass_json(member["talk"]);
  json["inflation"] = number_or_null(inflation_of(member));
  json.update(WEIR_NAMED(bound.least_exposed_ns, bound.best_efficiency));
  json["step_ns"] = {{"p50", median_or_null(member["overlapped"]["latency_ns"].get<Numbers>())}};
  return json;
}

std::optional<double> efficiency_of(const std::vector<Json>& members, const char* list) {
  double communication = 0, hidden = 0;
  for (const Json& member : members) {
    communication += sum(column(member[list], "communication_ns"));
    hidden += sum(column(member[list], "hidden_ns"));
  }
  return communication > 0 ? std::optional(hidden / communication) : std::nullopt;
}

// The mean over ranks and iterations.
std::optional<double> mean_of(const std::vector<Json>& members, const char* list, const char* field) {
  Numbers means;
  for (const Json& member : members)
    if (const Numbers values = column(member[list], field); !values.empty()) means.push_back(mean(values));
  return means.empty() ? std::nullopt : std::optional(mean(means));
}

// The mean over ranks for each traced iteration. Comparisons test these values.
Numbers by_iteration(const std::vector<Json>& members, const char* field) {
  std::map<std::uint32_t, Numbers> found;
  for (const Json& member : members)
    for (const Json& each : member["times"])
      if (each[field].is_number()) found[each["iteration"].get<std::uint32_t>()].push_back(each[field].get<double>());
  Numbers means;
  for (const auto& [iteration, values] : found)
    if (values.size() == members.size()) means.push_back(mean(values));
  return means;
}

Json overlap_json(const std::vector<Json>& members, const std::vector<RankCauses>& causes) {
  Json json = Json::object();
  for (const char* field :
       {"span_ns", "busy_ns", "idle_ns", "compute_ns", "communication_ns", "copy_ns", "exposed_ns", "hidden_ns"})
    json[field] = number_or_null(mean_of(members, "times", field));
  json["efficiency"] = number_or_null(efficiency_of(members, "times"));
  json["serial_efficiency"] = number_or_null(efficiency_of(members, "serial_times"));
  json["compute_alone_ns"] = number_or_null(mean_of(members, "alone", "busy_ns"));
  json["communication_alone_ns"] = number_or_null(mean_of(members, "talk", "communication_ns"));
  Numbers least, best, inflation;
  for (std::size_t rank = 0; rank < members.size(); ++rank) {
    const OverlapBound bound = bound_of(members[rank], causes[rank]);
    if (bound.least_exposed_ns) least.push_back(*bound.least_exposed_ns);
    if (bound.best_efficiency) best.push_back(*bound.best_efficiency);
    if (const auto own = inflation_of(members[rank])) inflation.push_back(*own);
  }
  json["least_exposed_ns"] = least.empty() ? Json(nullptr) : Json(mean(least));
  json["best_efficiency"] = best.empty() ? Json(nullptr) : Json(mean(best));
  json["inflation"] = inflation.empty() ? Json(nullptr) : Json(mean(inflation));
  json["collectives"] = Json::object();
  for (const Json& member : members)
    for (const Json& each : member["times"])
      for (const auto& [kind, ns] : each["collectives"].items()) json["collectives"][kind] = 0;
  for (auto& [kind, ns] : json["collectives"].items()) {
    Numbers values;
    for (const Json& member : members)
      for (const Json& each : member["times"]) values.push_back(each["collectives"].value(kind, 0.0));
    ns = mean(values);
  }
  json["samples"] = {{"exposed_ns", by_iteration(members, "exposed_ns")},
                     {"efficiency", by_iteration(members, "efficiency")},
                     {"communication_ns", by_iteration(members, "communication_ns")},
                     {"compute_ns", by_iteration(members, "compute_ns")}};
  return json;
}

Json skew_json(const std::vector<Json>& members, const std::vector<Timeline>& timelines) {
  std::vector<std::vector<Arrival>> arrivals(timelines.size());
  double error_ns = 0;
  for (std::size_t rank = 0; rank < timelines.size(); ++rank) {
    error_ns = std::max(error_ns, timelines[rank].clock_error_ns);
    for (const Span& span : timelines[rank].spans)
      if (span.kind == SpanKind::collective && span.started_ns != kNoTime)
        arrivals[rank].push_back({span.command, span.iteration, span.started_ns});
  }
  const auto skew = rank_skew(arrivals, error_ns);
  Json json = {{"skew", nullptr}, {"stragglers", Json::array()}};
  if (skew) {
    json["skew"] = to_json(*skew, error_ns);
    json["skew"]["behind_ns"] = skew->behind_ns;
  }
  Numbers medians;
  for (const Json& member : members)
    if (const Numbers own = member["overlapped"]["latency_ns"].get<Numbers>(); !own.empty())
      medians.push_back(median(own));
  if (medians.size() != members.size()) medians.clear();
  for (const Straggler& straggler : find_stragglers(skew, medians)) json["stragglers"].push_back(to_json(straggler));
  return json;
}

// Describes a loss on which the two ways to run the step, or two ranks, disagree: a race. Empty if all agree.
std::string loss_failure(const std::vector<Json>& members, const std::string& precision) {
  const double tolerance = loss_tolerance(precision);
  const Numbers first = members[0]["overlapped"]["losses"].get<Numbers>();
  for (const Json& member : members)
    for (const char* way : {"overlapped", "serial"}) {
      const Numbers losses = member[way]["losses"].get<Numbers>();
      for (std::size_t i = 0; i < std::min(first.size(), losses.size()); ++i)
        if (!(std::fabs(losses[i] - first[i]) <= tolerance * std::max(1e-6, std::fabs(first[i]))))
          return fmt::format("step {}: the loss of rank {} ({}) is {:.7g}, that of rank 0 (overlapped) is {:.7g}", i,
                             member["rank"].get<int>(), way, losses[i], first[i]);
    }
  return {};
}

std::vector<Json> lines_of(const Json& member, int warmup) {
  std::vector<Json> lines;
  const auto add = [&](const char* pass, std::size_t iteration) -> Json& {
    return lines.emplace_back(
        Json{{"schema", kOverlapIterationSchema}, {"rank", member["rank"]}, {"pass", pass}, {"iteration", iteration}});
  };
  for (const char* way : {"overlapped", "serial"}) {
    const Json& trained = member[way];
    for (std::size_t i = 0; i < trained["latency_ns"].size(); ++i) {
      Json& line = add(way, i);
      line["step_ns"] = trained["latency_ns"][i];
      line["submit_ns"] = trained["submit_ns"][i];
      const std::size_t at = i + static_cast<std::size_t>(warmup);
      line["loss"] = at < trained["losses"].size() ? trained["losses"][at] : Json(nullptr);
    }
  }
  const auto inflation = column(member["alone"], "compute_sum_ns");
  for (const Json& times : member["times"]) {
    const auto iteration = times["iteration"].get<std::size_t>();
    Json& line = add("traced", iteration);
    for (const auto& [key, value] : times.items())
      if (key != "iteration") line[key] = value;
    line["inflation"] = inflation.empty() || median(inflation) <= 0
                            ? Json(nullptr)
                            : number_or_null(times["compute_sum_ns"].get<double>() / median(inflation));
    line["loss"] = iteration < member["traced_losses"].size() ? member["traced_losses"][iteration] : Json(nullptr);
  }
  return lines;
}

}  // namespace

OverlapBound overlap_bound(double compute_alone_ns, double communication_alone_ns, double communication_ns,
                           double dependency_ns) {
  if (communication_alone_ns <= 0) return {};
  double share = std::max(0.0, 1 - compute_alone_ns / communication_alone_ns);
  // Relative to the pass it was seen in: there, communication includes its waits for other ranks.
  if (communication_ns > 0) share = std::max(share, std::min(1.0, dependency_ns / communication_ns));
  return {share * communication_alone_ns, 1 - share};
}

std::vector<OverlapTimes> times_of(const Timeline& timeline) { return overlap_times(timeline).iterations; }

Json step_json(const Numbers& samples) {
  const auto summary = summarise(samples);
  if (!summary) return nullptr;
  Json json = to_json(*summary);
  json["samples_ns"] = samples;
  return json;
}

Json to_json(const RankOverlap& rank) {
  Json json = WEIR_NAMED(rank.rank, rank.host, rank.device, named("clock_offset_ns", rank.clock.offset_ns),
                         named("clock_error_ns", rank.clock.error_ns), rank.collectives, trained_json(rank.overlapped),
                         trained_json(rank.serial), list_json(rank.times), list_json(rank.serial_times),
                         named("alone", list_json(rank.alone_times)), named("talk", list_json(rank.talk_times)),
                         rank.traced_losses, named("check", rank.check.to_json()));
  json["memory"] = WEIR_NAMED(rank.memory.allocated_bytes, rank.memory.reserved_bytes, rank.memory.peak_bytes);
  json["is_interrupted"] = rank.is_interrupted;
  return json;
}

void summarise_overlap(OverlapRun& run, const std::vector<Json>& members, std::vector<Timeline> timelines,
                       const BuiltRun& built, const DeviceInfo& info, const OverlapConfig& config, Communicator& ranks,
                       const RunContext& context) {
  Json& summary = run.summary;
  summary["schema"] = schemas::overlap;
  summary["created"] = wall_time();
  summary["weir"] = {{"version", WEIR_VERSION}, {"commit", WEIR_COMMIT}};
  summary.update(WEIR_NAMED(context.command_line, config.name));
  summary["status"] = run.is_interrupted ? "interrupted" : "complete";
  summary["failure"] = nullptr;
  Json values = Json::object();
  for (const OverlapKey& key : overlap_keys())
    if (const std::string value = config.value(key.name); !value.empty()) values[std::string(key.name)] = value;
  summary["config"] = std::move(values);
  summary["scale"] = name_of(built.scale);
  Json& params = summary["parameters"] = Json::object();
  for (const auto& [name, value] : built.params.values())
    std::visit([&, key = name](const auto& held) { params[key] = held; }, value);
  summary["device"] = to_json(info);
  summary["environment"] = context.environment;
  summary["streams"] = built.placement.stream_count;
  summary["placement"] = built.placement.name;
  summary["commands_per_step"] = built.step.commands().size();
  summary["flop_per_step"] = built.step.cost().flop;
  summary["ranks"] = {
      {"count", members.size()}, {"library", ranks.library()}, {"collectives", members[0]["collectives"]}};
  summary["step_ns"] = {{"overlapped", step_json(slowest(members, "overlapped"))},
                        {"serial", step_json(slowest(members, "serial"))}};
  std::vector<const Timeline*> views;
  for (const Timeline& timeline : timelines) views.push_back(&timeline);
  std::vector<RankCauses> causes = causes_by_rank(views);
  summary["causes"] = causes_json(views, causes);
  causes.resize(members.size());  // a run that was stopped early has no timelines
  summary["overlap"] = overlap_json(members, causes);
  const Json skew = skew_json(members, timelines);
  summary["skew"] = skew["skew"];
  summary["stragglers"] = skew["stragglers"];
  summary["per_rank"] = Json::array();
  for (std::size_t rank = 0; rank < members.size(); ++rank)
    summary["per_rank"].push_back(member_json(members[rank], causes[rank]));
  const Numbers losses = members[0]["overlapped"]["losses"].get<Numbers>();
  summary["losses"] = losses.empty() ? Json(nullptr) : Json(losses);
  std::uint64_t memory = 0;
  for (const Json& member : members)
    if (const Json& bytes = member["memory"]["allocated_bytes"]; bytes.is_number())
      memory = std::max(memory, bytes.get<std::uint64_t>());
  summary["memory_bytes"] = positive_or_null(memory);

  Json check = members[0]["check"];
  for (const Json& member : members)
    if (member["check"]["status"] == "failed" && check["status"] != "failed") check = member["check"];
  summary["check"] = check;
  if (check["status"] == "failed") {
    run.failure = fmt::format("the output is wrong: {}", check["reason"].get<std::string>());
  } else if (const std::string failure = loss_failure(members, std::string(name_of(built.params.precision)));
             !failure.empty()) {
    run.failure = failure + ": a race";
  }
  if (!run.failure.empty()) {
    summary["status"] = "failed";
    summary["failure"] = run.failure;
  }
  Json notes = Json::array();
  for (const std::string& note : config.notes) notes.push_back(note);
  for (const std::string& note : config.idle_keys()) notes.push_back(note);
  if (!timelines.empty())
    for (const std::string& note : timelines[0].notes) notes.push_back(note);
  summary["notes"] = std::move(notes);
  Json unavailable = Json::object();
  if (losses.empty())
    unavailable["losses"] =
        info.computes ? "interrupted before the first step" : fmt::format("device '{}' computes nothing", info.name);
  if (summary["step_ns"]["overlapped"].is_null())
    unavailable["step_ns.overlapped"] = "interrupted before the first step";
  if (members.size() < 2) unavailable["skew"] = "one rank waits for nobody";
  if (summary["step_ns"]["serial"].is_null()) unavailable["step_ns.serial"] = "interrupted before the serial pass";
  if (members[0]["times"].empty()) {
    unavailable["overlap"] = "interrupted before the traced pass";
    if (!unavailable.contains("skew")) unavailable["skew"] = "interrupted before the traced pass";
  }
  summary["unavailable"] = std::move(unavailable);
  for (const Json& member : members)
    run.iterations.push_back(lines_of(member, static_cast<int>(config.integer("run.warmup"))));
  run.timelines = std::move(timelines);
}

}  // namespace weir
