#include "run/sweep.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "base/clock.h"
#include "base/error.h"
#include "base/named_values.h"
#include "base/schemas.h"
#include "run/metrics.h"
#include "run/scaling_curves.h"
#include "weir_build.h"

namespace weir {
namespace {

using Point = SweepPoint;

// The settings that a resumed sweep must share with the file, so that its points are comparable.
constexpr const char* kSeveralProcesses = "several_processes";

Json settings_of(const DeviceInfo& info, const SweepRequest& request, int ranks) {
  const RunRequest& run = request.run;
  const Scale scale = scale_of(run, info);
  const Params params(workload_of(run).params, scale, run.params);
  Json settings = WEIR_NAMED(named("workload", workload_of(run).name), named("device", info.name), info.model, scale,
                             named("precision", precision_of(run)), named("placement", run.placement->name));
  settings["sync_mode"] = name_of(run.sync);
  settings.update(WEIR_NAMED(run.iterations, run.warmup, run.seed));
  settings["hardware_queues"] = json_of(info.hardware_queues.value);
  settings.update(WEIR_NAMED(run.checks_output, run.traces, ranks));
  settings[kSeveralProcesses] = request.uses_processes();
  settings["parameters"] = Json::object();
  for (const auto& [name, value] : params.values()) settings["parameters"][name] = to_string(value);
  if (run.loaded) settings["parameters"]["definition"] = run.loaded->source.hash;
  return settings;
}

// A file may hold anything: everything that is used of a point must exist and have the right type.
bool is_point(const Json& result) {
  const auto is_text = [](const Json& json, const char* key) { return json.contains(key) && json[key].is_string(); };
  const auto is_named = [&](const char* key) {
    return result.contains(key) && result[key].is_object() && is_text(result[key], "name");
  };
  return result.is_object() && is_text(result, "status") && is_text(result, "submit") && result.contains("streams") &&
         result["streams"].is_number_integer() && result.contains("metrics") && result["metrics"].is_object() &&
         is_named("workload") && is_named("device") && is_text(result["device"], "model");
}

// Whether processes can be added to a point of a file, or it has as many as it needs.
bool has_processes(const Json& result) {
  const auto is_process = [](const Json& process) {
    return process.is_object() && process["samples"].is_number_integer() && process["samples"] > 0;
  };
  const Json& processes = at_path(result, {"processes"});
  return is_point(result) && result["status"] != "failed" && processes.is_array() && !processes.empty() &&
         std::all_of(processes.begin(), processes.end(), is_process) && at_path(result, {"samples"}).is_object() &&
         at_path(result, {"unavailable"}).is_object() && at_path(result, {"warnings"}).is_array();
}

// Whether points are of several processes; `otherwise` where no point tells.
Json several_processes_in(const Json& points, const Json& otherwise) {
  for (const Json& point : points)
    if (is_point(point) && point["status"] != "failed") return at_path(point, {"processes"}).is_array();
  return otherwise;
}

bool is_at(const Json& result, const Point& point) {
  return result["streams"] == point.streams && result["submit"] == point.submit.name &&
         compute_units_asked(result) == point.compute_units && variable_words(result) == words_for(point.variables);
}

Json floors_of(const DeviceInfo& info, const SweepRequest& request, const std::vector<Point>& points, Ranks ranks) {
  const Workload& workload = workload_of(request.run);
  Params params(workload.params, scale_of(request.run, info), request.run.params);
  params.seed = request.run.seed;
  params.ranks = ranks;
  Json floors = Json::array();
  for (const Point& point : points) {
    // The host's cost is the same for each part of the device, and is measured in this process's environment.
    if (point.compute_units != points.front().compute_units || point.variables != points.front().variables) break;
    if (info.is_virtual) {
      floors.push_back({{"streams", point.streams}, {"submit", point.submit.name}, {"ns_per_command", nullptr}});
      continue;
    }
    const Step step = workload.build(params, point.streams);
    const Placement placement = request.run.placement->place(step);
    floors.push_back({{"streams", point.streams},
                      {"submit", point.submit.name},
                      {"ns_per_command", floor_ns_per_command(step, placement, point.submit)}});
  }
  return floors;
}

// A point whose process was killed or crashed, and left no document.
Json failed_point(const DeviceInfo& info, RunRequest run, const Point& point, const RunContext& context, Ranks ranks,
                  const ChildOutcome& outcome) {
  run.streams = point.streams;
  run.submit = point.submit;
  Result failed = describe_run(info, run, build_run(info, run, ranks), context);
  failed.status = "failed";
  failed.failure = outcome.message;
  failed.hint = outcome.hint;
  Json json = to_json(failed);
  if (point.compute_units > 0) json["device"]["compute_units"] = point.compute_units;
  return json;
}

// All points in rounds of processes, saved after each; fills the document's results, and its status.
void run_point_processes(const DeviceInfo& info, const SweepRequest& request, const std::vector<Point>& points,
                         const RunContext& context, const SweepControl& control, Json& document,
                         const std::function<void()>& save) {
  Json others = Json::array();  // points of the file that this call does not ask for
  std::vector<Json> sides(points.size());
  for (const Json& kept : document["results"]) {
    const auto same =
        std::find_if(points.begin(), points.end(), [&](const Point& point) { return is_at(kept, point); });
    if (same == points.end())
      others.push_back(kept);
    else
      sides[static_cast<std::size_t>(same - points.begin())] = kept;
  }
  std::vector<std::size_t> before;
  for (const Json& side : sides) before.push_back(process_count(side));
  const auto put_results = [&] {
    document["results"] = others;
    for (const Json& side : sides)
      if (!side.is_null()) document["results"].push_back(side);
    save();
  };
  ProcessesControl processes;
  processes.run = [&](std::size_t side, std::size_t round) {
    const Point& point = points[side];
    if (control.on_begin)
      control.on_begin(point.streams, point.way(), round * points.size() + side,
                       request.processes.most * points.size());
    ChildOutcome outcome = control.run_process(point, round == 0);
    const bool has_failed = outcome.end == ChildEnd::failed || outcome.end == ChildEnd::timed_out;
    if (has_failed && !outcome.document.is_object())
      outcome.document = failed_point(info, request.run, point, context, {0, request.ranks}, outcome);
    if (outcome.document.is_object()) {
      outcome.document["command_line"] = context.command_line;
      if (!point.variables.empty()) outcome.document["set_variables"] = to_json(point.variables);
    }
    return outcome;
  };
  processes.ended = [&](std::size_t) { put_results(); };
  const RoundsOutcome outcome =
      run_in_processes(request.processes, request.run.seed, sides, processes, *control.run.stop);
  for (std::size_t i = 0; i < sides.size(); ++i)
    if (!sides[i].is_null() && control.on_point) control.on_point(sides[i], process_count(sides[i]) == before[i]);
  if (outcome.end != RoundsEnd::interrupted) document["status"] = "complete";
  put_results();
}

}  // namespace

std::vector<SweepPoint> points_of(const SweepRequest& request) {
  const Workload& workload = workload_of(request.run);
  std::vector<Point> ways;
  for (const SubmitChoice& submit : request.submits) {
    for (const int streams : request.streams) {
      if (streams < workload.streams.min || streams > workload.streams.max)
        reject_setting(
            "streams", std::to_string(streams),
            fmt::format("{} runs on {} to {} streams", workload.name, workload.streams.min, workload.streams.max));
      Point point{streams, submit.fitted_to(streams), 0, {}};
      // On one stream, threads and threads:1 are the same point.
      const bool is_known = std::any_of(ways.begin(), ways.end(), [&](const Point& other) {
        return other.streams == point.streams && other.submit.name == point.submit.name;
      });
      if (!is_known) ways.push_back(std::move(point));
    }
  }
  // The outermost loops, because each value opens a device, or has a process of its own.
  std::vector<Point> points;
  for (const VariableSetting& variables :
       variable_settings(request.variables, ways.size() * request.compute_units.size()))
    for (const int units : request.compute_units)
      for (const Point& way : ways) points.push_back({way.streams, way.submit, units, variables});
  return points;
}

std::string SweepPoint::way() const { return way_of(submit.name, compute_units, words_for(variables)); }

Json points_to_keep(const std::filesystem::path& file, const ResumedFile& as, const Json& settings,
                    bool (*is_usable)(const Json& point)) {
  Json kept = Json::array();
  std::error_code status;
  if (!std::filesystem::exists(file, status)) return kept;
  const auto refuse = [&](const std::string& why) {
    reject_setting("resume", "", fmt::format("{}: {}", file.string(), why),
                   "Resume with the same flags, or choose another --output.");
  };
  const auto in = [](const Json& json, const char* name) -> const Json& {
    static const Json kNothing;
    return json.is_object() && json.contains(name) ? json[name] : kNothing;
  };
  const Json document = read_json(file);
  const Json& sweep = as.member == nullptr ? document : in(document, as.member);
  const Json &points = in(sweep, as.list), &before = in(sweep, "settings");
  if (in(document, "schema") != as.schema || !points.is_array() || !before.is_object()) refuse(as.otherwise);
  for (const auto& [name, value] : settings.items()) {
    // Older files, from before ranks existed, had one; their points say whether they are of several processes.
    const Json then = before.value(name, name == "ranks"             ? Json(1)
                                         : name == kSeveralProcesses ? several_processes_in(points, value)
                                                                     : Json());
    if (then != value) refuse(fmt::format("it was run with {} = {}, now it is {}", name, then.dump(), value.dump()));
  }
  for (const Json& point : points)
    if (is_usable(point)) kept.push_back(point);
  return kept;
}

void check_sweep(const DeviceInfo& info, const SweepRequest& request, Ranks ranks) {
  for (const Point& point : points_of(request)) {
    RunRequest run = request.run;
    run.streams = point.streams;
    run.submit = point.submit;
    check_request(info, run, ranks);
  }
}

Json run_sweep(const DeviceInfo& info, Device* device, const SweepRequest& request, const RunContext& context,
               const SweepControl& control) {
  const Workload& workload = workload_of(request.run);
  const std::vector<Point> points = points_of(request);
  const Ranks ranks = control.run.has_ranks() ? control.run.communicator->ranks() : Ranks{0, 1};
  const Json settings = settings_of(info, request, std::max(ranks.count, request.ranks));
  // Only rank 0 reads and writes the file; the others need to know only which points are left.
  Json kept = Json::array();
  // Before anything is read from it: two sweeps on one file would each replace the other's points.
  std::optional<SavedFile> file;
  if (ranks.rank == 0) file.emplace(request.output, request.overwrites || request.resumes);
  if (request.resumes && ranks.rank == 0)
    // Failed points are run again, and interrupted ones, less the processes that they have.
    kept = points_to_keep(
        request.output, {schemas::sweep, nullptr, "results", "not a sweep of this program"}, settings,
        request.uses_processes() ? has_processes : [](const Json& result) {
          return is_point(result) && result["status"] == "complete";
        });
  if (ranks.count > 1) kept = Json::parse(broadcast_text(*control.run.communicator, kept.dump()));

  Json document = Json::object();
  document["schema"] = schemas::sweep;
  document["status"] = "interrupted";
  document["created"] = wall_time();
  document["weir"] = {{"version", WEIR_VERSION}, {"commit", WEIR_COMMIT}};
  document["command_line"] = context.command_line;
  document["workload"] = workload.name;
  document["settings"] = settings;
  document["floor"] = floors_of(info, request, points, ranks);
  // Saved from the start, so that another kill loses none of them, including points that this call does not request.
  document["results"] = kept;
  document["scaling"] = Json::object();
  if (control.on_floor) control.on_floor(document["floor"]);

  const auto save = [&] {
    if (!file) return;
    document["scaling"] = scaling_of(document["results"], std::string(name_of(workload.scaling)));
    file->save(to_text(document));
  };
  if (request.uses_processes()) {
    run_point_processes(info, request, points, context, control, document, save);
    return document;
  }
  Device* opened = device;
  int units = points.front().compute_units;
  for (std::size_t i = 0; i < points.size(); ++i) {
    if (control.run.agree_to_stop()) break;
    const Point& point = points[i];
    if (control.on_begin) control.on_begin(point.streams, point.way(), i, points.size());
    const auto same = std::find_if(kept.begin(), kept.end(), [&](const Json& result) { return is_at(result, point); });
    const bool was_kept = same != kept.end();
    if (!was_kept) {
      if (point.compute_units != units) opened = &control.reopen(units = point.compute_units);
      RunRequest run = request.run;
      run.streams = point.streams;
      run.submit = point.submit;
      document["results"].push_back(to_json(run_workload(*opened, run, context, control.run)));
    }
    if (control.on_point) control.on_point(was_kept ? *same : document["results"].back(), was_kept);
    if (!was_kept) save();
  }
  if (!control.run.agree_to_stop()) document["status"] = "complete";
  save();
  return document;
}

}  // namespace weir
