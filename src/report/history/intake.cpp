#include "report/history/intake.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"

namespace weir::history {
namespace {

namespace fs = std::filesystem;

constexpr const char* kBench = "weir.bench/1";
constexpr std::size_t kLongestText = 200;

const Json& member(const Json& json, const char* name) {
  static const Json kNothing;
  if (!json.is_object()) return kNothing;
  const auto found = json.find(name);
  return found == json.end() ? kNothing : *found;
}

std::string text_of(const Json& json) {
  return json.is_string() ? json.string().substr(0, kLongestText) : std::string();
}

std::string content_of(const Json& json) { return json.dump(); }

Json object_or_null(const Json& json) { return json.is_object() ? json : Json(); }

bool is_result(const Json& json) {
  const std::string schema = text_of(member(json, "schema"));
  if (schema == kBench || schema == "weir.result/1" || schema == "weir.sweep/1") return true;
  // A newer version of what we read is refused with its own words, not passed over.
  if (schema.starts_with("weir.result/") || schema.starts_with("weir.sweep/") || schema.starts_with("weir.bench/"))
    return true;
  return schema.empty() && json.is_object() &&
         ((json.contains("throughput") && json.contains("stream_count")) ||
          (json.contains("results") && json.contains("workload")));
}

std::vector<NewPoint> result_points(const Json& document, const std::string& name) {
  ResultFile file = parse_results(document, name);
  const Json& results = member(document, "results");
  // Loading gives one point for each result, in order; a single result is the document itself.
  const bool is_list = results.is_array() && results.size() == file.points.size();
  std::vector<NewPoint> points;
  for (std::size_t i = 0; i < file.points.size(); ++i) {
    const Json& own = is_list ? results[i] : document;
    NewPoint point;
    point.point = std::move(file.points[i]);
    point.machine = machine_of(point.point);
    point.device = object_or_null(member(own, "device"));
    point.environment = object_or_null(member(own, "environment"));
    if (point.environment.is_object()) point.environment.erase("load_average");
    point.measured = text_of(member(own, "created"));
    if (!is_time(point.measured)) point.measured.clear();
    point.weir_version = text_of(member(member(own, "weir"), "version"));
    point.weir_commit = text_of(member(member(own, "weir"), "commit"));
    point.digest = digest_of(point.point.key["workload"] + "\n" + content_of(own));
    points.push_back(std::move(point));
  }
  return points;
}

void read_document(const Json& document, const std::string& name, Intake& into) {
  std::vector<NewPoint> points =
      text_of(member(document, "schema")) == kBench ? bench_points(document, name) : result_points(document, name);
  into.points.insert(into.points.end(), std::make_move_iterator(points.begin()), std::make_move_iterator(points.end()));
}

std::string words_of(const Error& error) {
  return error.hint.empty() ? std::string(error.what()) : fmt::format("{}. {}", error.what(), error.hint);
}

void read_folder(const fs::path& path, Intake& into) {
  std::vector<fs::path> candidates;
  std::error_code status, ignored;
  for (fs::directory_iterator entry(path, status); !status && entry != fs::directory_iterator();
       entry.increment(status))
    if (entry->path().extension() == ".json" && !entry->is_directory(ignored)) candidates.push_back(entry->path());
  if (status) {
    into.refused.push_back(fmt::format("{}: {}", path.string(), status.message()));
    return;
  }
  std::sort(candidates.begin(), candidates.end());
  std::size_t read = 0;
  for (const fs::path& candidate : candidates) {
    try {
      const Json document = read_json(candidate);
      if (is_result(document)) {
        read_document(document, candidate.string(), into);
        ++read;
        continue;
      }
      const std::string schema = text_of(member(document, "schema"));
      into.notes.push_back(fmt::format("{} was passed over: it holds no result{}", candidate.string(),
                                       schema.empty() ? "" : " (" + schema + ")"));
    } catch (const Error& error) {
      into.refused.push_back(words_of(error));
    }
  }
  if (read == 0 && into.refused.empty())
    into.refused.push_back(fmt::format("{}: the folder holds no results ({} .json file{})", path.string(),
                                       candidates.size(), candidates.size() == 1 ? "" : "s"));
}

}  // namespace

bool is_time(std::string_view text) {
  constexpr std::string_view kShape = "0000-00-00T00:00:00Z";
  return std::equal(text.begin(), text.end(), kShape.begin(), kShape.end(),
                    [](char c, char shape) { return shape == '0' ? c >= '0' && c <= '9' : c == shape; });
}

Intake read_intake(std::span<const fs::path> paths) {
  Intake intake;
  for (const fs::path& path : paths) {
    std::error_code status;
    if (fs::is_directory(path, status)) {
      read_folder(path, intake);
      continue;
    }
    try {
      read_document(read_json(path), path.string(), intake);
    } catch (const Error& error) {
      intake.refused.push_back(words_of(error));
    }
  }
  return intake;
}

// {"schema": "weir.bench/1", "environment": {..., "devices": {"cpu": {...}}}, "cases": [{"kernel_name", "backend",
// ...}]}
std::vector<NewPoint> bench_points(const Json& document, const std::string& name) {
  const Json& cases = member(document, "cases");
  if (!cases.is_array())
    reject(fmt::format("{}: 'cases' must be a list", name), "Is it the summary.json of 'weir bench'?");
  const Json& all = member(document, "environment");
  Json environment = object_or_null(all);
  if (environment.is_object())
    for (const char* fact : {"schema", "load_average", "devices", "compilers", "git", "weir"}) environment.erase(fact);
  std::vector<NewPoint> points;
  for (const Json& one : cases) {
    const std::string kernel = text_of(member(one, "kernel_name")), backend = text_of(member(one, "backend"));
    const std::string status = text_of(member(one, "status"));
    // What was left out on purpose has neither numbers nor a failure.
    if (kernel.empty() || backend.empty() || status == "skipped") continue;
    NewPoint point;
    point.point.origin = fmt::format("{}: cases[{}]", name, &one - &cases[0]);
    auto& key = point.point.key;
    key = {{"workload", kernel}, {"backend", backend}};
    for (const char* fact : {"precision", "how"})
      if (const std::string text = text_of(member(one, fact)); !text.empty()) key[fact] = text;
    if (const Json& threads = member(one, "threads"); threads.is_number()) key["threads"] = threads.dump();
    if (const Json& cold = member(member(one, "timing"), "is_cold"); cold.is_boolean()) key["is_cold"] = cold.dump();
    if (const Json& problem = member(one, "problem_size"); problem.is_object())
      for (const auto& [size, value] : problem.items())
        key["param." + size] = content_of(value).substr(0, kLongestText);

    // The device as its case has it, and what is known of the backend beside that.
    point.device = object_or_null(member(member(all, "devices"), backend.c_str()));
    for (const char* fact : {"is_present", "reason", "precisions"})
      if (point.device.is_object()) point.device.erase(fact);
    if (const Json& device = member(one, "device"); device.is_object()) {
      if (point.device.is_null()) point.device = Json::object();
      point.device.update(device);
    }
    point.environment = environment;
    point.point.device = text_of(member(point.device, "name"));
    const auto put = [&](const std::string& path, const Json& value) {
      if (value.is_string())
        point.point.settings[path] = value.get<std::string>();
      else if (!value.is_structured() && !value.is_null())
        point.point.settings[path] = value.dump();
    };
    if (point.device.is_object())
      for (const auto& [fact, value] : point.device.items())
        if (fact != "name") put("device." + fact, value);
    if (environment.is_object())
      for (const auto& [fact, value] : environment.items()) put("environment." + fact, value);
    if (const Json& variables = member(environment, "variables"); variables.is_object())
      for (const auto& [variable, value] : variables.items()) put("environment.variables." + variable, value);

    if (status != "ok") {
      const Json& error = member(one, "error");
      const std::string what = text_of(error.is_string() ? error : member(error, "what"));
      point.point.failure = what.empty() ? fmt::format("the case {}", status.empty() ? "failed" : status) : what;
    }
    point.point.latency.unit = "ns";
    point.point.throughput.reason = "cases of weir bench are judged by their latency";
    for (const Json& sample : member(member(one, "timing"), "samples_ms"))
      if (sample.is_number() && sample.get<double>() > 0)
        point.point.latency.samples.push_back(sample.get<double>() * 1e6);
    if (point.point.latency.samples.empty()) point.point.latency.reason = "the case has no samples";
    point.machine = machine_of(point.point);
    point.measured = text_of(member(document, "created"));
    if (!is_time(point.measured)) point.measured.clear();
    point.weir_version = text_of(member(all, "weir"));
    point.digest = digest_of(point.measured + "\n" + content_of(one));
    points.push_back(std::move(point));
  }
  if (points.empty()) reject(fmt::format("{}: holds no case that was measured", name), "Look at its 'skipped'.");
  return points;
}

}  // namespace weir::history
