#include "run/queues_sweep.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "base/error.h"
#include "base/options.h"
#include "base/units.h"
#include "measure/statistics.h"
#include "run/queues_document.h"

namespace weir {
namespace {

constexpr std::size_t kMostPoints = 10'000;
constexpr double kSmallestDifference = 0.02;
constexpr double kSignificance = 0.05;

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

Json to_json(const ParamValues& params) {
  Json json = Json::object();
  for (const auto& [name, value] : params) json[name] = value;
  return json;
}

RunRequest request_at(const QueuesSweepRequest& request, const QueuesPoint& point) {
  RunRequest run = request.run;
  run.streams = point.streams;
  run.scale = point.scale;
  run.params = point.params;
  return run;
}

// What a resumed sweep must have in common with the file, so that its points are comparable.
Json settings_of(const DeviceInfo& info, const QueuesSweepRequest& request) {
  const RunRequest& run = request.run;
  const Workload& workload = workload_of(run);
  Json settings = Json::object();
  settings["workload"] = workload.name;
  settings["definition"] = run.loaded ? Json(run.loaded->source.hash) : Json(nullptr);
  settings["device"] = info.name;
  settings["model"] = info.model;
  settings["sim"] = request.sim;
  settings["queues_set_by"] = request.setting;
  settings["precision"] = run.precision.empty() ? std::string(name_of(workload.precision)) : run.precision;
  settings["submit"] = run.submit;
  settings["placement"] = run.placement;
  settings["iterations"] = run.iterations;
  settings["warmup"] = run.warmup;
  settings["seed"] = run.seed;
  settings["checks_output"] = run.checks_output;
  return settings;
}

// A file may hold anything: what a point is used for must be there, and of the right type.
bool is_complete_point(const Json& point) {
  const auto has = [&](const char* key, Json::value_t type) {
    return point.contains(key) && point[key].type() == type;
  };
  const auto is_count = [&](const char* key) { return point.contains(key) && point[key].is_number_integer(); };
  if (!point.is_object() || !has("status", Json::value_t::string) || point["status"] != "complete") return false;
  if (!is_count("queues") || !is_count("streams") || !has("scale", Json::value_t::string) ||
      !has("params", Json::value_t::object) || !has("latency_ns", Json::value_t::object) ||
      !has("samples_ns", Json::value_t::array))
    return false;
  return std::all_of(point["samples_ns"].begin(), point["samples_ns"].end(),
                     [](const Json& sample) { return sample.is_number(); }) &&
         !point["samples_ns"].empty();
}

Json points_to_keep(const QueuesSweepRequest& request, const Json& settings) {
  std::error_code status;
  if (!request.resumes || !std::filesystem::exists(request.output, status)) return Json::array();
  const Json document = read_json(request.output);
  const auto refuse = [&](const std::string& why) {
    reject(fmt::format("--resume: {}: {}", request.output.string(), why),
           "Resume with the same flags, or choose another --output.");
  };
  const bool is_ours = document.is_object() && document.value("schema", Json()) == "weir.queues/1" &&
                       document.contains("sweep") && document["sweep"].is_object() &&
                       document["sweep"].contains("settings") && document["sweep"]["settings"].is_object() &&
                       document["sweep"].contains("points") && document["sweep"]["points"].is_array();
  if (!is_ours) refuse("not a sweep over queue counts");
  for (const auto& [name, value] : settings.items()) {
    const Json before = document["sweep"]["settings"].value(name, Json());
    if (before != value)
      refuse(fmt::format("it was run with {} = {}, now it is {}", name, before.dump(), value.dump()));
  }
  Json kept = Json::array();
  for (const Json& point : document["sweep"]["points"])
    if (is_complete_point(point)) kept.push_back(point);
  return kept;
}

bool is_at(const Json& json, const QueuesPoint& point) {
  return json["queues"] == point.queues && json["streams"] == point.streams && json["scale"] == point.scale &&
         json["params"] == to_json(point.params);
}

std::vector<double> samples_of(const Json& point) { return point["samples_ns"].get<std::vector<double>>(); }

// What the points' own runs warned of, once for all of them, and the points that cannot be used.
void collect_warnings(Json& document) {
  const Json& points = document["sweep"]["points"];
  Json warnings = Json::array();
  std::map<std::string, std::size_t> told;
  for (const Json& point : points) {
    for (const Json& code : point.value("warnings", Json::array())) ++told[code.get<std::string>()];
    if (point["status"] == "complete") continue;
    warnings.push_back(
        {{"kind", point["status"]},
         {"text", fmt::format("{} queues, {} streams, {}: {}", point["queues"].dump(), point["streams"].dump(),
                              point["scale"].get<std::string>(), point["failure"].get<std::string>())},
         {"advice", "The point is left out of every comparison."}});
  }
  // Sharing queues is what is measured here.
  told.erase("shared_queues");
  for (const auto& [code, count] : told)
    warnings.push_back({{"kind", code},
                        {"text", fmt::format("{} of {} points were {}", count, points.size(), code)},
                        {"advice", "More --iterations or --warmup, or a quieter machine, make differences clearer."}});
  document["warnings"] = std::move(warnings);
}

// Points that differ in nothing but the queue count, by index.
std::vector<std::vector<std::size_t>> groups_of(const Json& points) {
  std::vector<std::vector<std::size_t>> groups;
  const auto is_same = [&](const Json& a, const Json& b) {
    return a["streams"] == b["streams"] && a["scale"] == b["scale"] && a["params"] == b["params"];
  };
  for (std::size_t i = 0; i < points.size(); ++i) {
    const auto group = std::find_if(groups.begin(), groups.end(),
                                    [&](const auto& members) { return is_same(points[members[0]], points[i]); });
    if (group == groups.end()) {
      groups.push_back({i});
    } else {
      group->push_back(i);
    }
  }
  for (auto& group : groups)
    std::sort(group.begin(), group.end(), [&](std::size_t a, std::size_t b) {
      return points[a]["queues"].get<int>() < points[b]["queues"].get<int>();
    });
  return groups;
}

std::string counted(const std::vector<int>& queues) {
  return fmt::format("{} {}", fmt::join(queues, ", "), queues.size() == 1 && queues[0] == 1 ? "queue" : "queues");
}

std::string sentence_of(const Json& best, const std::vector<int>& same, const std::vector<int>& unknown,
                        const std::vector<std::pair<double, int>>& slower) {
  const int queues = best["queues"].get<int>();
  std::string text;
  if (slower.empty() && unknown.empty()) {
    if (same.empty()) return "only one queue count was measured";
    std::vector<int> all = same;
    all.insert(std::upper_bound(all.begin(), all.end(), queues), queues);
    return fmt::format("no difference beyond noise between {}", counted(all));
  }
  text = fmt::format("best with {} ({})", counted({queues}), format_duration(best["p50_ns"].get<double>()));
  if (!same.empty()) text += fmt::format("; no difference beyond noise to {}", counted(same));
  if (!slower.empty()) {
    const auto [ratio, worst] = *std::max_element(slower.begin(), slower.end());
    text += fmt::format("; slowest with {}: {:.2f} times as long", counted({worst}), ratio);
  }
  if (!unknown.empty()) text += fmt::format("; too few samples to judge {}", counted(unknown));
  return text;
}

}  // namespace

std::vector<QueuesPoint> points_of(const QueuesSweepRequest& request) {
  std::vector<QueuesPoint> points;
  for (const std::string& scale : request.scales)
    for (const ParamValues& params : combinations_of(request))
      for (const int streams : request.streams)
        for (const int queues : request.queues) points.push_back({queues, streams, scale, params});
  return points;
}

void check_queues_sweep(const DeviceInfo& info, const QueuesSweepRequest& request) {
  std::size_t count = request.queues.size() * request.streams.size() * request.scales.size();
  for (const auto& [name, values] : request.params) count = std::min(count, kMostPoints) * values.size();
  if (count > kMostPoints)
    reject(fmt::format("--hw-queues, --streams, --scale and --param ask for more than {} points", kMostPoints),
           "Give shorter lists.");
  for (const QueuesPoint& point : points_of(request))
    if (point.queues == request.queues.front()) check_request(info, request_at(request, point), {});
}

Json point_of_result(const QueuesPoint& point, const std::string& setting, const PointRun& run) {
  Json json = Json::object();
  json["queues"] = point.queues;
  json["streams"] = point.streams;
  json["scale"] = point.scale;
  json["params"] = to_json(point.params);
  json["status"] = "failed";
  json["failure"] = run.failure.empty() ? Json(nullptr) : Json(run.failure);
  json["seen"] = {{"hardware_queues", nullptr}, {"variable", nullptr}};
  for (const char* name : {"latency_ns", "throughput", "samples_ns", "ratio", "ratio_interval", "p", "verdict"})
    json[name] = nullptr;
  json["warnings"] = Json::array();
  if (!run.failure.empty() || !run.result.is_object()) {
    if (run.failure.empty()) json["failure"] = "its process wrote no result";
    return json;
  }
  const Json& result = run.result;
  const Json seen_queues = result["device"].value("hardware_queues", Json());
  const Json seen_variable = result["environment"]["variables"].value(setting, Json());
  json["seen"] = {{"hardware_queues", seen_queues}, {"variable", seen_variable}};
  const bool is_variable = !setting.starts_with("--");
  if (is_variable && seen_variable != std::to_string(point.queues)) {
    json["status"] = "mismatched";
    json["failure"] = fmt::format("its process saw {} = {}", setting, seen_variable.dump());
    return json;
  }
  // A device that cannot tell its count is believed where the variable was seen.
  if (seen_queues.is_null() ? !is_variable : seen_queues != point.queues) {
    json["status"] = "mismatched";
    json["failure"] = fmt::format("its process saw {} hardware queues", seen_queues.dump());
    return json;
  }
  const Json& samples = result["samples"]["latency_ns"];
  if (!samples.is_array() || samples.empty()) {
    json["failure"] = "its result has no latency samples";
    return json;
  }
  json["status"] = "complete";
  json["latency_ns"] = result["metrics"]["latency_ns"];
  json["throughput"] = result["metrics"]["throughput"];
  json["samples_ns"] = samples;
  for (const Json& warning : result["warnings"]) json["warnings"].push_back(warning["code"]);
  return json;
}

void judge_points(Json& sweep) {
  sweep["best"] = Json::array();
  Json& points = sweep["points"];  // behind the insertion above, which moves members
  // p-values of all comparisons share one significance level (Holm), whichever group they are in.
  struct Test {
    std::size_t index;
    double p;
  };
  std::vector<Test> tests;
  struct Group {
    std::vector<std::size_t> members;
    std::size_t best;
  };
  std::vector<Group> groups;
  for (std::vector<std::size_t>& members : groups_of(points)) {
    std::erase_if(members, [&](std::size_t i) { return points[i]["status"] != "complete"; });
    if (members.empty()) continue;
    std::map<std::size_t, std::vector<double>> samples;
    for (const std::size_t i : members) samples[i] = samples_of(points[i]);
    const std::size_t best = *std::min_element(members.begin(), members.end(), [&](std::size_t a, std::size_t b) {
      return median(samples[a]) < median(samples[b]);
    });
    const Dependence of_best = serial_dependence(samples[best]);
    for (const std::size_t i : members) {
      const double ratio = median(samples[i]) / median(samples[best]);
      points[i]["ratio"] = number_or_null(ratio);
      points[i]["ratio_interval"] = points[i]["p"] = points[i]["verdict"] = nullptr;
      if (i == best) {
        points[i]["verdict"] = "best";
        continue;
      }
      const auto interval = median_ratio_interval(samples[i], samples[best]);
      if (!interval) continue;
      points[i]["ratio_interval"] = {interval->low, interval->high};
      const Dependence own = serial_dependence(samples[i]);
      const double inflation = joint_inflation(own, samples[i].size(), of_best, samples[best].size());
      tests.push_back({i, mann_whitney(samples[i], samples[best], inflation).p});
    }
    groups.push_back({members, best});
  }
  std::vector<double> p_values;
  for (const Test& test : tests) p_values.push_back(test.p);
  const std::vector<double> adjusted = holm(p_values);
  for (std::size_t t = 0; t < tests.size(); ++t) {
    Json& point = points[tests[t].index];
    point["p"] = adjusted[t];
    const bool is_clear = adjusted[t] < kSignificance && point["ratio_interval"][0].get<double>() > 1 &&
                          point["ratio"].get<double>() > 1 + kSmallestDifference;
    point["verdict"] = is_clear ? "slower" : "same";
  }
  for (const Group& group : groups) {
    const Json& best = points[group.best];
    std::vector<int> same, unknown;
    std::vector<std::pair<double, int>> slower;
    for (const std::size_t i : group.members) {
      const int queues = points[i]["queues"].get<int>();
      if (points[i]["verdict"].is_null()) unknown.push_back(queues);
      if (points[i]["verdict"] == "same") same.push_back(queues);
      if (points[i]["verdict"] == "slower") slower.emplace_back(points[i]["ratio"].get<double>(), queues);
    }
    Json entry = Json::object();
    entry["streams"] = best["streams"];
    entry["scale"] = best["scale"];
    entry["params"] = best["params"];
    entry["queues"] = best["queues"];
    entry["p50_ns"] = best["latency_ns"]["p50"];
    entry["same"] = same;
    entry["is_clear"] = !slower.empty() && same.empty() && unknown.empty();
    entry["sentence"] = sentence_of(entry, same, unknown, slower);
    sweep["best"].push_back(std::move(entry));
  }
}

Json run_queues_sweep(const DeviceInfo& info, const QueuesSweepRequest& request, const RunContext& context,
                      const QueuesSweepControl& control) {
  const std::vector<QueuesPoint> points = points_of(request);
  const Json settings = settings_of(info, request);
  const Json kept = points_to_keep(request, settings);
  check_writable(request.output, request.overwrites || request.resumes);

  Json document = queues_document("sweep", info, context);
  document["unavailable"]["sweep.points.latency_ns.p95_interval"] =
      fmt::format("where it is null: fewer than {} samples; p99_interval needs {}", fewest_for_quantile(0.95),
                  fewest_for_quantile(0.99));
  document["unavailable"]["sweep.points.verdict"] =
      fmt::format("where it is null: the point failed, or has fewer than {} samples", kFewestForInterval);
  Json& sweep = document["sweep"];
  sweep = Json::object();
  sweep["status"] = "interrupted";
  sweep["settings"] = settings;
  sweep["asked"] = points.size();
  // From the first save on, so that another kill loses none of them, whether this call asks for them or not.
  sweep["points"] = kept;
  bool is_saved = false;
  const auto save = [&] {
    judge_points(sweep);
    collect_warnings(document);
    write_file(request.output, to_text(document), request.overwrites || request.resumes || is_saved);
    is_saved = true;
  };
  bool is_stopped = false;
  for (std::size_t i = 0; i < points.size(); ++i) {
    const bool was_kept =
        std::any_of(kept.begin(), kept.end(), [&](const Json& point) { return is_at(point, points[i]); });
    if (was_kept) continue;
    if (control.on_begin) control.on_begin(points[i], i, points.size());
    const PointRun run = control.run(points[i]);
    if (run.is_interrupted) {
      is_stopped = true;
      break;
    }
    sweep["points"].push_back(point_of_result(points[i], request.setting, run));
    save();
  }
  if (!is_stopped) sweep["status"] = "complete";
  save();
  return document;
}

}  // namespace weir
