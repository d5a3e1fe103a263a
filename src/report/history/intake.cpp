#include "report/history/intake.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "base/error.h"
#include "base/options.h"
#include "base/schemas.h"
#include "base/upgrade.h"

namespace weir::history {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kLongestText = 200;
constexpr std::size_t kIdDigits = 12;
constexpr std::size_t kLongestLabel = 200;
constexpr std::string_view kVariable = "environment.variables.";

// Variables of the job, not of the machine: they differ from run to run. Where something is installed does not affect
// speed, unlike where the loader looks first.
bool is_of_this_run(std::string_view name) {
  constexpr std::array<std::string_view, 5> kPrefixes = {"SLURM_", "PMIX_", "OMPI_MCA_orte_", "OMPI_MCA_ess_",
                                                         "OMPI_MCA_shmem_"};
  if (std::any_of(kPrefixes.begin(), kPrefixes.end(),
                  [&](std::string_view prefix) { return name.starts_with(prefix); }))
    return true;
  return name != "LD_LIBRARY_PATH" && (name.ends_with("_PATH") || name.ends_with("_HOME") || name.ends_with("_ROOT"));
}

// The memory that kernels reserve differs between versions by some megabytes; whole GiB describe the machine.
std::string rounded_memory(const std::string& bytes) {
  const auto value = parse_integer(bytes);
  if (!value) return bytes;
  return fmt::format("{:.0f} GiB", std::round(static_cast<double>(*value) / (1024.0 * 1024 * 1024)));
}

std::string value_text(const Json& json) {
  return json.is_string() ? json.string().substr(0, kLongestText) : std::string();
}

std::string content_of(const Json& json) { return json.dump(); }

Json object_or_null(const Json& json) { return json.is_object() ? json : Json(); }

bool is_result(const Json& json) {
  const std::string schema = value_text(member(json, "schema"));
  // A newer version of a known schema is refused with its own message, not skipped.
  for (const char* known : {schemas::result, schemas::sweep, schemas::bench, schemas::channel, schemas::fleet_probe})
    if (schema.starts_with(schemas::kind_of(known))) return true;
  return schema.empty() && json.is_object() &&
         ((json.contains("throughput") && json.contains("stream_count")) ||
          (json.contains("results") && json.contains("workload")));
}

// `written` is the document with the names that its file has: digests of it recognise what an earlier Weir added.
std::vector<NewPoint> result_points(const Json& document, const Json& written, const std::string& name) {
  ResultFile file = parse_results(document, name);
  const Json& results = member(document, "results");
  // Loading yields one point per result, in order; a single result is the document itself.
  const bool is_list = results.is_array() && results.size() == file.points.size();
  std::vector<NewPoint> points;
  for (std::size_t i = 0; i < file.points.size(); ++i) {
    const Json& own = is_list ? results[i] : document;
    const Json& digested = is_list ? member(written, "results")[i] : written;
    NewPoint point;
    point.point = std::move(file.points[i]);
    point.machine = machine_of(point.point);
    point.device = object_or_null(member(own, "device"));
    point.environment = object_or_null(member(own, "environment"));
    if (point.environment.is_object()) point.environment.erase("load_average");
    point.measured = value_text(member(own, "created"));
    if (!is_time(point.measured)) point.measured.clear();
    point.weir_version = value_text(member(member(own, "weir"), "version"));
    point.weir_commit = value_text(member(member(own, "weir"), "commit"));
    point.digest = digest_of(point.point.key["workload"] + "\n" + content_of(digested));
    points.push_back(std::move(point));
  }
  return points;
}

void read_document(const Json& written, const std::string& name, Intake& into) {
  Json document = written;
  upgrade(document);
  const std::string schema = value_text(member(document, "schema"));
  std::vector<NewPoint> points = schema == schemas::bench         ? bench_points(document, written, name)
                                 : schema == schemas::channel     ? channel_points(document, name)
                                 : schema == schemas::fleet_probe ? fleet_points(document, name)
                                                                  : result_points(document, written, name);
  if (schema == schemas::fleet_probe) into.documents.push_back(fleet_document_of(document, name));
  into.points.insert(into.points.end(), std::make_move_iterator(points.begin()), std::make_move_iterator(points.end()));
}

void put_setting(NewPoint& point, const std::string& path, const Json& value) {
  if (value.is_string())
    point.point.settings[path] = value.get<std::string>();
  else if (!value.is_structured() && !value.is_null())
    point.point.settings[path] = value.dump();
}

void put_environment(NewPoint& point) {
  for (const auto& [fact, value] : point.environment.items()) put_setting(point, "environment." + fact, value);
  for (const auto& [variable, value] : member(point.environment, "variables").items())
    put_setting(point, "environment.variables." + variable, value);
}

std::string words_of(const Error& error) {
  return error.hint.empty() ? std::string(error.what()) : fmt::format("{}. {}", error.what(), error.hint);
}

void read_folder(const fs::path& path, Intake& into) {
  const FilesInFolder found = files_in(path, ".json");
  for (const fs::path& other : found.skipped)
    into.notes.push_back(fmt::format("{} was passed over: it is not a regular file", other.string()));
  std::size_t read = 0;
  for (const fs::path& candidate : found.files) {
    try {
      const Json document = read_json_as_written(candidate);
      if (is_result(document)) {
        read_document(document, candidate.string(), into);
        ++read;
        continue;
      }
      const std::string schema = value_text(member(document, "schema"));
      into.notes.push_back(fmt::format("{} was passed over: it holds no result{}", candidate.string(),
                                       schema.empty() ? "" : " (" + schema + ")"));
    } catch (const Error& error) {
      into.refused.push_back(words_of(error));
    }
  }
  if (read == 0 && into.refused.empty())
    into.refused.push_back(fmt::format("{}: the folder holds no results ({} .json file{})", path.string(),
                                       found.files.size(), found.files.size() == 1 ? "" : "s"));
}

}  // namespace

std::string digest_of(std::string_view text) {
  __extension__ using Wide = unsigned __int128;
  Wide hash = Wide{0x6c62272e07bb0142U} << 64 | 0x62b821756295c58dU;
  const Wide prime = Wide{1} << 88 | 0x13b;
  for (const char c : text) {
    hash ^= static_cast<unsigned char>(c);
    hash *= prime;
  }
  return fmt::format("{:016x}{:016x}", static_cast<std::uint64_t>(hash >> 64), static_cast<std::uint64_t>(hash));
}

Machine machine_from(std::map<std::string, std::string> facts, const std::string& label) {
  Machine machine;
  std::string all;
  for (const auto& [name, value] : facts) all += fmt::format("{}:{}={}:{}\n", name.size(), name, value.size(), value);
  machine.id = digest_of(all).substr(0, kIdDigits);
  machine.label = label.empty() ? "unknown device" : label.substr(0, kLongestLabel);
  machine.facts = std::move(facts);
  return machine;
}

Machine machine_of(const ResultPoint& point) {
  Machine machine;
  if (!point.device.empty()) machine.facts["device.name"] = point.device;
  constexpr std::array<std::string_view, 6> kFacts = {"environment.architecture", "environment.cpus",
                                                      "environment.cpu_model",    "environment.governor",
                                                      "environment.build_type",   "environment.scheduler.policy"};
  for (const auto& [name, value] : point.settings) {
    if (name.starts_with("device.") || std::find(kFacts.begin(), kFacts.end(), name) != kFacts.end())
      machine.facts[name] = value;
    else if (name == "environment.memory_bytes")
      machine.facts["environment.memory"] = rounded_memory(value);
    else if (name.starts_with(kVariable) && !is_of_this_run(std::string_view(name).substr(kVariable.size())))
      machine.facts[name] = value;
    else if (name.starts_with("environment.rocm_info.") || name.starts_with("environment.driver_info."))
      machine.facts[name] = value;  // AORTA's names for driver facts
  }
  const auto model = point.settings.find("device.model");
  std::string label = model == point.settings.end() ? "" : model->second;
  if (!point.device.empty()) label += (label.empty() ? "" : ", ") + point.device;
  return machine_from(std::move(machine.facts), label);
}

bool is_time(std::string_view text) {
  constexpr std::string_view kShape = "0000-00-00T00:00:00Z";
  return std::equal(text.begin(), text.end(), kShape.begin(), kShape.end(),
                    [](char c, char shape) { return shape == '0' ? c >= '0' && c <= '9' : c == shape; });
}

Intake read_intake(std::span<const fs::path> paths) {
  Intake intake;
  for (const fs::path& path : paths) {
    std::error_code status;
    try {
      if (fs::is_directory(path, status))
        read_folder(path, intake);
      else
        read_document(read_json_as_written(path), path.string(), intake);
    } catch (const Error& error) {
      intake.refused.push_back(words_of(error));
    }
  }
  return intake;
}

// {"schema": "weir.bench/2", "environment": {..., "devices": {"cpu": {...}}}, "cases": [{"kernel_name", "backend",
// ...}]}
std::vector<NewPoint> bench_points(const Json& document, const Json& written, const std::string& name) {
  const Json& cases = member(document, "cases");
  if (!cases.is_array())
    reject(fmt::format("{}: 'cases' must be a list", name), "Is it the summary.json of 'weir bench'?");
  const Json& all = member(document, "environment");
  Json environment = object_or_null(all);
  if (environment.is_object())
    for (const char* fact : {"schema", "load_average", "devices", "compilers", "git", "weir"}) environment.erase(fact);
  std::vector<NewPoint> points;
  for (const Json& one : cases) {
    const std::string kernel = value_text(member(one, "kernel_name")), backend = value_text(member(one, "backend"));
    const std::string status = value_text(member(one, "status"));
    // Cases that were skipped on purpose have neither numbers nor a failure.
    if (kernel.empty() || backend.empty() || status == "skipped") continue;
    NewPoint point;
    point.point.origin = fmt::format("{}: cases[{}]", name, &one - &cases[0]);
    auto& key = point.point.key;
    key = {{"workload", kernel}, {"backend", backend}};
    for (const char* fact : {"precision", "how"})
      if (const std::string text = value_text(member(one, fact)); !text.empty()) key[fact] = text;
    if (const Json& threads = member(one, "threads"); threads.is_number()) key["threads"] = threads.dump();
    if (const Json& cold = member(member(one, "timing"), "is_cold"); cold.is_boolean()) key["is_cold"] = cold.dump();
    for (const auto& [size, value] : member(one, "problem_size").items())
      key["param." + size] = content_of(value).substr(0, kLongestText);

    // The device as its case describes it, plus what is known about the backend.
    point.device = object_or_null(member(member(all, "devices"), backend));
    for (const char* fact : {"is_present", "reason", "precisions"})
      if (point.device.is_object()) point.device.erase(fact);
    if (const Json& device = member(one, "device"); device.is_object()) {
      if (point.device.is_null()) point.device = Json::object();
      point.device.update(device);
    }
    point.environment = environment;
    point.point.device = value_text(member(point.device, "name"));
    for (const auto& [fact, value] : point.device.items())
      if (fact != "name") put_setting(point, "device." + fact, value);
    put_environment(point);

    if (status != "ok") {
      const Json& error = member(one, "error");
      const std::string what = value_text(error.is_string() ? error : member(error, "what"));
      point.point.failure = what.empty() ? fmt::format("the case {}", status.empty() ? "failed" : status) : what;
    }
    point.point.latency.unit = "ns";
    point.point.throughput.reason = "cases of weir bench are judged by their latency";
    for (const Json& sample : member(member(one, "timing"), "samples_ns"))
      if (sample.is_number() && sample.get<double>() > 0) point.point.latency.samples.push_back(sample.get<double>());
    if (point.point.latency.samples.empty()) point.point.latency.reason = "the case has no samples";
    point.machine = machine_of(point.point);
    point.measured = value_text(member(document, "created"));
    if (!is_time(point.measured)) point.measured.clear();
    point.weir_version = value_text(member(all, "weir"));
    point.digest = digest_of(point.measured + "\n" + content_of(member(written, "cases")[&one - &cases[0]]));
    points.push_back(std::move(point));
  }
  if (points.empty()) reject(fmt::format("{}: holds no case that was measured", name), "Look at its 'skipped'.");
  return points;
}

// {"schema": "weir.channel/2", "settings": {"capacity": 128, ...}, "benchmarks": [{"group": "send_latency", "name":
// "small", "contestant": "spsc", "unit": "ns_per_operation", "processes": [{"samples": [...]}]}]}
std::vector<NewPoint> channel_points(const Json& document, const std::string& name) {
  const Json& benchmarks = member(document, "benchmarks");
  if (!benchmarks.is_array())
    reject(fmt::format("{}: 'benchmarks' must be a list", name), "Is it a document of 'weir channel'?");
  Json environment = object_or_null(member(document, "environment"));
  if (environment.is_object()) environment.erase("load_average");
  const std::string measured = value_text(member(document, "created"));
  std::vector<NewPoint> points;
  for (const Json& one : benchmarks) {
    const std::string group = value_text(member(one, "group")), contestant = value_text(member(one, "contestant"));
    const std::string status = value_text(member(one, "status"));
    if (group.empty() || contestant.empty() || (status != "measured" && status != "failed")) continue;
    NewPoint point;
    point.point.origin = fmt::format("{}: benchmarks[{}]", name, &one - &benchmarks[0]);
    point.point.key = {{"workload", group + "/" + value_text(member(one, "name"))}, {"channel", contestant}};
    for (const char* setting : {"capacity", "placement", "device"})
      if (const Json& value = member(member(document, "settings"), setting); value.is_string() || value.is_number())
        point.point.key[setting] = value.is_string() ? value_text(value) : value.dump();
    point.point.device = "cpu";
    point.environment = environment;
    put_environment(point);
    if (status == "failed") {
      const std::string why = value_text(member(one, "reason"));
      point.point.failure = why.empty() ? "the benchmark failed" : why;
    }
    const bool is_rate = value_text(member(one, "unit")) == "per_second";
    SampleSeries& series = is_rate ? point.point.throughput : point.point.latency;
    (is_rate ? point.point.latency : point.point.throughput).reason = "the benchmark measures the other";
    point.point.latency.unit = "ns";
    point.point.throughput.unit = "commands/s";
    for (const Json& process : member(one, "processes")) {
      std::size_t count = 0;
      for (const Json& sample : member(process, "samples")) {
        if (!sample.is_number() || !(sample.get<double>() > 0)) continue;
        series.samples.push_back(sample.get<double>());
        ++count;
      }
      if (count > 0) series.processes.push_back(count);
    }
    if (series.samples.empty()) series.reason = "the benchmark has no samples";
    point.machine = machine_of(point.point);
    point.measured = is_time(measured) ? measured : "";
    point.digest = digest_of(measured + "\n" + content_of(one));
    points.push_back(std::move(point));
  }
  if (points.empty()) reject(fmt::format("{}: holds no benchmark that was measured", name));
  return points;
}

}  // namespace weir::history
