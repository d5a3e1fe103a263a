#include "lab/channels/channel_document.h"

#include "base/named_values.h"
#include "base/schemas.h"
#include "lab/channels/channel_contests.h"

namespace weir {
namespace {

Json json_of(const Mode& mode) { return WEIR_NAMED(mode.value, mode.share); }

Json json_of(const ChannelResult& result, const BenchmarkStanding& standing) {
  const ChannelSummary summary = summarise(result);
  Json json =
      WEIR_NAMED(result.id(), result.group, result.name, result.contestant, result.is_ours, result.unit, result.what);
  const bool is_failed = summary.failures > 0;
  json["status"] = !result.unavailable.empty()   ? "unavailable"
                   : is_failed                   ? "failed"
                   : result.measurements.empty() ? "not_run"
                                                 : "measured";
  json["reason"] = !result.unavailable.empty()   ? Json(result.unavailable)
                   : is_failed                   ? Json(summary.failure)
                   : result.measurements.empty() ? Json("the run ended before it")
                                                 : Json();
  json.update(WEIR_NAMED(summary.value, summary.low, summary.high));
  json["latency_ns"] = {{"p50", number_or_null(summary.p50_ns)}, {"p99", number_or_null(summary.p99_ns)}};
  json["modes"] = summary.modes ? WEIR_NAMED(json_of(summary.modes->low), json_of(summary.modes->high)) : Json();
  json.update(WEIR_NAMED(summary.sent, summary.received));
  json["facts"] = Json::object();
  for (const auto& [name, value] : summary.facts) json["facts"][name] = number_or_null(value);
  json["best"] =
      standing.best ? Json{{"contestant", *standing.best}, {"times", number_or_null(standing.times_best)}} : Json();
  json["mutex"] = standing.mutex
                      ? Json{{"contestant", *standing.mutex}, {"speedup", number_or_null(standing.times_mutex)}}
                      : Json();
  json["floor"] =
      standing.floor ? Json{{"id", *standing.floor}, {"times", number_or_null(standing.times_floor)}} : Json();
  json["target"] = result.target ? Json{{"text", result.target->text},
                                        {"limit", result.target->limit},
                                        {"is_met", or_null(standing.is_target_met)}}
                                 : Json();
  json["processes"] = Json::array();
  for (const ChannelMeasurement& measurement : result.measurements) {
    Json process = {{"process", measurement.process}};
    process.update(weir::to_json(measurement.found));
    json["processes"].push_back(std::move(process));
  }
  return json;
}

Json json_of(const ChannelComparison& comparison) {
  Json json = WEIR_NAMED(comparison.baseline, comparison.options.threshold, comparison.hypotheses);
  json["changes"] = Json::array();
  for (const ChannelChange& change : comparison.changes) {
    Json row =
        WEIR_NAMED(change.id, change.is_ours, change.verdict, text_or_null(change.reason),
                   named("baseline_processes", change.baseline.size()), named("test_processes", change.test.size()),
                   named("baseline_value", change.baseline_median), named("test_value", change.test_median),
                   change.ratio, change.slowness(), change.noise, change.p, change.adjusted_p);
    json["changes"].push_back(std::move(row));
  }
  json.update(WEIR_NAMED(comparison.baseline_only, comparison.test_only, comparison.notes));
  return json;
}

Json json_of(const CalibrationRow& row) {
  return WEIR_NAMED(text_or_null(row.group), row.benchmarks, row.plain_single, row.plain_sides, row.ours);
}

Json json_of(const ChannelCalibration& calibration) {
  Json json = WEIR_NAMED(calibration.processes, calibration.deals);
  json["plain_threshold"] = kPlainThreshold;
  json["groups"] = json_list(calibration.groups, [](const CalibrationRow& row) { return json_of(row); });
  json.update(WEIR_NAMED(json_of(calibration.all), calibration.deals_with_alarm, calibration.can_alarm,
                         calibration.drifted_faster, calibration.drifted_slower));
  return json;
}

}  // namespace

Json channel_document(const ChannelReport& report, const RunContext& context) {
  const ChannelRun& run = report.run;
  Json document =
      WEIR_NAMED(named("schema", schemas::channel), run.created, context.command_line, run.status, run.environment);
  Json& settings = document["settings"] = weir::to_json(run.settings.conditions);
  settings.update(WEIR_NAMED(report.capacity_asked, run.settings.placement, run.settings.processes));
  document["processes"] = json_list(report.processes, [](const ChannelProcess& process) {
    return WEIR_NAMED(process.process, process.seed, process.benchmarks, named("wall_ns", process.wall_s * 1e9),
                      process.ended);
  });
  document["groups"] = Json::array();
  for (const ChannelGroup& group : report.groups)
    document["groups"].push_back(WEIR_NAMED(group.name, group.summary, text_or_null(group.seed)));
  const ChannelContests contests = judge_contests(run);
  document["benchmarks"] = Json::array();
  for (std::size_t i = 0; i < run.results.size(); ++i)
    document["benchmarks"].push_back(json_of(run.results[i], contests.standings[i]));
  document["mutex_wins"] = Json::array();
  for (const MutexWin& win : contests.mutex_wins)
    document["mutex_wins"].push_back(WEIR_NAMED(win.group, win.name, win.mutex, win.channel, win.factor));
  document["factors"] = json_list(contests.factors, [](const MutexFactor& factor) {
    return WEIR_NAMED(factor.name, factor.place, factor.channel, factor.mutex, factor.wanted, factor.speedup,
                      factor.is_met);
  });
  document["criteria"] = json_list(contests.criteria, [](const ChannelCriterion& criterion) {
    return WEIR_NAMED(criterion.name, criterion.value, criterion.limit, criterion.is_met, criterion.text);
  });
  document["comparison"] = report.comparison ? json_of(*report.comparison) : Json();
  document["calibration"] = report.calibration ? json_of(*report.calibration) : Json();
  document["host_profile"] = report.host_profile;
  document["warnings"] = json_list(report.warnings, [](const Warning& warning) { return weir::to_json(warning); });
  return document;
}

}  // namespace weir
