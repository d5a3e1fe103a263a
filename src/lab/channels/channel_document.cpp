#include "lab/channels/channel_document.h"

#include "base/json.h"
#include "lab/channels/channel_contests.h"

namespace weir {
namespace {

Json json_of(const Mode& mode) { return {{"value", mode.value}, {"share", mode.share}}; }

Json json_of(const ChannelResult& result, const Standing& standing) {
  const ChannelSummary summary = summarise(result);
  Json json = Json::object();
  json["id"] = result.id();
  json["group"] = result.group;
  json["name"] = result.name;
  json["contestant"] = result.contestant;
  json["is_ours"] = result.is_ours;
  json["unit"] = name_of(result.unit);
  json["what"] = result.what;
  const bool is_failed = summary.failures > 0;
  json["status"] = !result.unavailable.empty()   ? "unavailable"
                   : is_failed                   ? "failed"
                   : result.measurements.empty() ? "not_run"
                                                 : "measured";
  json["reason"] = !result.unavailable.empty()   ? Json(result.unavailable)
                   : is_failed                   ? Json(summary.failure)
                   : result.measurements.empty() ? Json("the run ended before it")
                                                 : Json();
  json["value"] = number_or_null(summary.value);
  json["low"] = number_or_null(summary.low);
  json["high"] = number_or_null(summary.high);
  json["p50_ns"] = number_or_null(summary.p50_ns);
  json["p99_ns"] = number_or_null(summary.p99_ns);
  json["modes"] =
      summary.modes ? Json{{"low", json_of(summary.modes->low)}, {"high", json_of(summary.modes->high)}} : Json();
  json["sent"] = summary.sent;
  json["received"] = summary.received;
  json["facts"] = Json::object();
  for (const auto& [name, value] : summary.facts) json["facts"][name] = number_or_null(value);
  json["best"] =
      standing.best ? Json{{"contestant", *standing.best}, {"times", number_or_null(standing.times_best)}} : Json();
  json["floor"] =
      standing.floor ? Json{{"id", *standing.floor}, {"times", number_or_null(standing.times_floor)}} : Json();
  json["target"] = result.target ? Json{{"text", result.target->text},
                                        {"limit", result.target->limit},
                                        {"is_met", standing.is_target_met ? Json(*standing.is_target_met) : Json()}}
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
  Json json = Json::object();
  json["baseline"] = comparison.baseline;
  json["threshold"] = comparison.options.threshold;
  json["hypotheses"] = comparison.hypotheses;
  json["changes"] = Json::array();
  for (const ChannelChange& change : comparison.changes) {
    Json row = Json::object();
    row["id"] = change.id;
    row["is_ours"] = change.is_ours;
    row["verdict"] = name_of(change.verdict);
    row["reason"] = text_or_null(change.reason);
    row["baseline_processes"] = change.baseline.size();
    row["test_processes"] = change.test.size();
    row["baseline_value"] = number_or_null(change.baseline_median);
    row["test_value"] = number_or_null(change.test_median);
    row["ratio"] = number_or_null(change.ratio);
    row["slowness"] = number_or_null(change.slowness());
    row["noise"] = number_or_null(change.noise);
    row["p"] = number_or_null(change.p);
    row["adjusted_p"] = number_or_null(change.adjusted_p);
    json["changes"].push_back(std::move(row));
  }
  json["baseline_only"] = comparison.baseline_only;
  json["test_only"] = comparison.test_only;
  json["notes"] = comparison.notes;
  return json;
}

Json json_of(const CalibrationRow& row) {
  return {{"group", text_or_null(row.group)},
          {"benchmarks", row.benchmarks},
          {"plain_single", row.plain_single},
          {"plain_sides", row.plain_sides},
          {"ours", row.ours}};
}

Json json_of(const ChannelCalibration& calibration) {
  Json json = Json::object();
  json["processes"] = calibration.processes;
  json["deals"] = calibration.deals;
  json["plain_threshold"] = kPlainThreshold;
  json["groups"] = Json::array();
  for (const CalibrationRow& row : calibration.groups) json["groups"].push_back(json_of(row));
  json["all"] = json_of(calibration.all);
  json["deals_with_alarm"] = calibration.deals_with_alarm;
  json["can_alarm"] = calibration.can_alarm;
  json["drifted_faster"] = calibration.drifted_faster;
  json["drifted_slower"] = calibration.drifted_slower;
  return json;
}

}  // namespace

Json channel_document(const ChannelReport& report, const RunContext& context) {
  const ChannelRun& run = report.run;
  Json document = Json::object();
  document["schema"] = kChannelSchema;
  document["created"] = run.created;
  document["command_line"] = context.command_line;
  document["status"] = run.status;
  document["environment"] = run.environment;
  Json& settings = document["settings"] = weir::to_json(run.settings.conditions);
  settings["capacity_asked"] = report.capacity_asked;
  settings["placement"] = run.settings.placement;
  settings["processes"] = run.settings.processes;
  document["processes"] = Json::array();
  for (const ChannelProcess& process : report.processes)
    document["processes"].push_back({{"process", process.process},
                                     {"seed", process.seed},
                                     {"benchmarks", process.benchmarks},
                                     {"wall_s", process.wall_s},
                                     {"ended", process.ended}});
  document["groups"] = Json::array();
  for (const ChannelGroup& group : report.groups)
    document["groups"].push_back(
        {{"name", group.name}, {"summary", group.summary}, {"seed", text_or_null(group.seed)}});
  const ChannelContests contests = judge_contests(run);
  document["benchmarks"] = Json::array();
  for (std::size_t i = 0; i < run.results.size(); ++i)
    document["benchmarks"].push_back(json_of(run.results[i], contests.standings[i]));
  document["mutex_wins"] = Json::array();
  for (const MutexWin& win : contests.mutex_wins)
    document["mutex_wins"].push_back({{"group", win.group},
                                      {"name", win.name},
                                      {"mutex", win.mutex},
                                      {"channel", win.channel},
                                      {"factor", win.factor}});
  document["comparison"] = report.comparison ? json_of(*report.comparison) : Json();
  document["calibration"] = report.calibration ? json_of(*report.calibration) : Json();
  document["warnings"] = Json::array();
  for (const Warning& warning : report.warnings)
    document["warnings"].push_back({{"code", warning.code}, {"message", warning.message}, {"advice", warning.advice}});
  return document;
}

}  // namespace weir
