#include "lab/queues/queues_sweep.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "base/error.h"
#include "base/named_values.h"
#include "base/schemas.h"
#include "lab/queues/queues_document.h"
#include "measure/statistics.h"
#include "run/rounds.h"
#include "run/sweep.h"

namespace weir {
namespace {

constexpr std::size_t kMaxPoints = 10'000;

std::vector<ParamValues> combinations_of(const QueuesSweepRequest& request) {
  std::vector<ParamValues> combinations = {{}};
  for (const auto& [name, values] : request.params) {
    std::vector<ParamValues> longer;
    for (const ParamValues& before : combinations) {
      for (const std::string& value : values) {
        longer.push_back(before);
        longer.back().emplace_back(name, value);
      }
    }
    combinations = std::move(longer);
  }
  return combinations;
}

Json to_json(const ParamValues& params) { return params; }

RunRequest request_at(const QueuesSweepRequest& request, const QueuesPoint& point) {
  RunRequest run = request.run;
  run.streams = point.streams;
  run.scale = point.scale;
  run.params = point.params;
  return run;
}

// The settings that a resumed sweep must share with the file, so that its points are comparable.
Json settings_of(const DeviceInfo& info, const QueuesSweepRequest& request) {
  const RunRequest& run = request.run;
  const Workload& workload = workload_of(run);
  Json settings = WEIR_NAMED(named("workload", workload.name),
                             named("definition", run.loaded ? Json(run.loaded->source.hash) : Json(nullptr)),
                             named("device", info.name), info.model, request.sim);
  settings["compute_units"] = positive_or_null(info.stream_compute_units);
  settings["queues_set_by"] = request.setting;
  settings["precision"] = name_of(precision_of(run));
  settings.update(WEIR_NAMED(named("submit", run.submit.name), named("placement", run.placement->name), request.repeats,
                             run.iterations, run.warmup, run.seed, run.checks_output));
  return settings;
}

// A file may contain anything: checks that the members used here exist and have the right type.
bool is_run(const Json& run) {
  return run.is_object() && at_path(run, {"latency_ns", "p50"}).is_number() && run["warnings"].is_array() &&
         run.contains("throughput") && run["samples_ns"].is_array() && !run["samples_ns"].empty() &&
         std::all_of(run["samples_ns"].begin(), run["samples_ns"].end(),
                     [](const Json& sample) { return sample.is_number(); });
}

bool is_usable(const Json& point) {
  return point.is_object() && point["queues"].is_number_integer() && point["streams"].is_number_integer() &&
         (point["status"] == "complete" || point["status"] == "partial") && point["scale"].is_string() &&
         point["params"].is_object() && point["runs"].is_array() &&
         std::all_of(point["runs"].begin(), point["runs"].end(), is_run);
}

bool is_at(const Json& json, const QueuesPoint& point) {
  return json["queues"] == point.queues && json["streams"] == point.streams && json["scale"] == name_of(point.scale) &&
         json["params"] == to_json(point.params);
}

// Collects the warnings of the points' runs, each once, and the points that cannot be used.
void collect_warnings(Json& document) {
  const Json& points = document["sweep"]["points"];
  Json warnings = Json::array();
  std::map<std::string, std::size_t> count_of_code;
  for (const Json& point : points) {
    std::set<std::string> codes;
    for (const Json& run : point["runs"])
      for (const Json& code : run["warnings"])
        if (code.is_string()) codes.insert(code.get<std::string>());
    for (const std::string& code : codes) ++count_of_code[code];
    if (point["status"] == "complete" || point["status"] == "partial") continue;
    warnings.push_back(
        {{"kind", point["status"]},
         {"text", fmt::format("{} queues, {} streams, {}: {}", point["queues"].dump(), point["streams"].dump(),
                              point["scale"].get<std::string>(), point["failure"].get<std::string>())},
         {"advice", "The point is left out of every comparison."}});
  }
  // Sharing queues is what this experiment measures.
  count_of_code.erase("shared_queues");
  for (const auto& [code, count] : count_of_code)
    warnings.push_back({{"kind", code},
                        {"text", fmt::format("{} of {} points warn: {}", count, points.size(), code)},
                        {"advice", "More --iterations or --warmup, or a quieter machine, make differences clearer."}});
  document["warnings"] = std::move(warnings);
}

}  // namespace

std::vector<QueuesPoint> points_of(const QueuesSweepRequest& request) {
  std::vector<QueuesPoint> points;
  for (const Scale scale : request.scales)
    for (const ParamValues& params : combinations_of(request))
      for (const int streams : request.streams)
        for (const int queues : request.queues) points.push_back({queues, streams, scale, params});
  return points;
}

void check_queues_sweep(const DeviceInfo& info, const QueuesSweepRequest& request) {
  std::size_t count = request.queues.size() * request.streams.size() * request.scales.size();
  for (const auto& [name, values] : request.params) count = std::min(count, kMaxPoints) * values.size();
  if (count > kMaxPoints)
    reject(fmt::format("the lists of values ask for more than {} points", kMaxPoints),
           "Give shorter lists for --hw-queues, --streams, --scale or --param.");
  for (const QueuesPoint& point : points_of(request))
    if (point.queues == request.queues.front()) check_request(info, request_at(request, point), {});
}

Json empty_point(const QueuesPoint& point) {
  Json json = WEIR_NAMED(point.queues, point.streams, point.scale, to_json(point.params));
  json["status"] = "partial";
  json["runs"] = Json::array();
  for (const char* name : {"failure", "latency_ns", "throughput", "ratio", "ratio_interval", "p", "verdict"})
    json[name] = nullptr;
  return json;
}

void add_run(Json& point, const std::string& setting, int repeats, const PointRun& run) {
  const auto set_failure = [&](const char* status, const std::string& failure) {
    point.update(WEIR_NAMED(status, failure));
  };
  if (!run.failure.empty()) return set_failure("failed", run.failure);
  if (!run.result.is_object()) return set_failure("failed", "its process wrote no result");
  const Json& result = run.result;
  const Json seen_queues = result["device"].value("hardware_queues", Json());
  const Json seen_variable = result["environment"]["variables"].value(setting, Json());
  const bool is_variable = !setting.starts_with("--");
  const int queues = point["queues"].get<int>();
  if (is_variable && seen_variable != std::to_string(queues))
    return set_failure("mismatched", fmt::format("its process saw {} = {}", setting, seen_variable.dump()));
  // A device that cannot report its count is trusted if the variable was seen.
  if (seen_queues.is_null() ? !is_variable : seen_queues != queues)
    return set_failure("mismatched", fmt::format("its process saw {} hardware queues", seen_queues.dump()));
  const Json& samples = result["samples"]["latency_ns"];
  if (!samples.is_array() || samples.empty()) return set_failure("failed", "its result has no latency samples");
  Json warnings = json_list(result["warnings"], [](const Json& warning) { return warning["code"]; });
  point["runs"].push_back({{"seen", {{"hardware_queues", seen_queues}, {"variable", seen_variable}}},
                           {"latency_ns", {{"p50", result["metrics"]["latency_ns"]["p50"]}}},
                           {"throughput", result["metrics"]["throughput"]},
                           {"samples_ns", samples},
                           {"warnings", std::move(warnings)}});
  if (point["runs"].size() >= static_cast<std::size_t>(repeats)) point["status"] = "complete";
}

Json run_queues_sweep(const DeviceInfo& info, const QueuesSweepRequest& request, const RunContext& context,
                      const QueuesSweepControl& control) {
  const std::vector<QueuesPoint> points = points_of(request);
  const Json settings = settings_of(info, request);
  Json kept = Json::array();
  SavedFile file(request.output, request.overwrites || request.resumes);
  if (request.resumes)
    kept = points_to_keep(request.output, {schemas::queues, "sweep", "points", "not a sweep over queue counts"},
                          settings, is_usable);

  Json document = queues_document("sweep", info, context);
  document["unavailable"]["sweep.points.latency_ns.p95_interval"] = fmt::format(
      "where it is null: fewer than {} samples; p99_interval needs {}", min_for_quantile(0.95), min_for_quantile(0.99));
  document["unavailable"]["sweep.points.verdict"] =
      fmt::format("where it is null: the point failed, or has fewer than {} independent samples", kMinForInterval);
  Json& sweep = document["sweep"];
  sweep = Json::object();
  sweep["status"] = "interrupted";
  sweep["settings"] = settings;
  sweep["asked"] = points.size();
  // Kept from the first save on, so that another kill loses none of them, whether or not this call asks for them.
  std::vector<Json> sides(points.size());  // in the order of points_of(); null before the first process
  Json others = Json::array();
  std::size_t done = 0;
  for (const Json& point : kept) {
    const auto same =
        std::find_if(points.begin(), points.end(), [&](const auto& asked) { return is_at(point, asked); });
    if (same == points.end()) {
      others.push_back(point);
    } else {
      sides[static_cast<std::size_t>(same - points.begin())] = point;
      done += point["runs"].size();
    }
  }
  sweep["best"] = Json::array();
  const auto put_points = [&] {
    sweep["points"] = others;
    for (const Json& side : sides)
      if (!side.is_null()) sweep["points"].push_back(side);
  };
  const auto save = [&] {
    collect_warnings(document);
    file.save(to_text(document));
  };
  // The points of a group are compared, so their processes are close in time; each group has rounds of its own.
  const std::size_t group = request.queues.size(), repeats = static_cast<std::size_t>(request.repeats);
  static const std::atomic<bool> kNeverStopped{false};  // control.run() says where it was interrupted
  bool is_stopped = false;
  for (std::size_t begin = 0; begin < points.size() && !is_stopped; begin += group) {
    RoundsControl rounds;
    rounds.wants = [&](std::size_t side, std::size_t round) {
      const Json& point = sides[begin + side];
      return point.is_null() ||
             (point["runs"].size() <= round && point["status"] != "failed" && point["status"] != "mismatched");
    };
    rounds.run = [&](std::size_t side, std::size_t) {
      const QueuesPoint& asked = points[begin + side];
      if (control.on_begin) control.on_begin(asked, done++, points.size() * repeats);
      const PointRun run = control.run(asked);
      if (run.is_interrupted) return false;
      Json& point = sides[begin + side];
      if (point.is_null()) point = empty_point(asked);
      add_run(point, request.setting, request.repeats, run);
      put_points();
      save();
      return true;
    };
    const RoundsPlan plan{.sides = group, .max_rounds = repeats, .seed = request.run.seed + begin};
    is_stopped = run_rounds(plan, rounds, kNeverStopped).end == RoundsEnd::interrupted;
  }
  if (!is_stopped) sweep["status"] = "complete";
  put_points();
  judge_points(sweep);  // once: computing the intervals of all points takes longer than a short run
  save();
  return document;
}

}  // namespace weir
