#include "run/load.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>

#include "base/error.h"
#include "base/options.h"
#include "base/schemas.h"
#include "measure/statistics.h"

namespace weir {
namespace {

namespace fs = std::filesystem;

constexpr const char* kExpected =
    "Results are written by `weir run WORKLOAD -o FILE` (weir.result/2) and `weir sweep WORKLOAD -o FILE` "
    "(weir.sweep/1); those of AORTA are read too.";
// Deeper than any result; flattening stops there, so that hostile nesting cannot exhaust the stack.
constexpr int kDeepest = 6;
constexpr std::size_t kMaxSettings = 2'000;
constexpr double kMostSamples = 1e9;
// If submitting takes a larger part of an iteration, the host decides how long it takes.
constexpr double kHostBoundShare = 0.5;
constexpr double kLongestDurationNs = 1e18;  // 31 years: longer ones are broken numbers, and could overflow later

// A value and its path, so that every error message can name the place.
struct JsonPlace {
  const Json* json;
  std::string path;

  // A member, or a place without a value (also for null members and for anything that is not an object).
  JsonPlace operator[](const char* name) const {
    const std::string inner = path.empty() || path.back() == ' ' ? path + name : path + "." + name;
    if (json == nullptr || !json->is_object()) return {nullptr, inner};
    const auto found = json->find(name);
    if (found == json->end() || found->is_null()) return {nullptr, inner};
    return {&*found, inner};
  }
  explicit operator bool() const { return json != nullptr; }
};

[[noreturn]] void reject_value(const JsonPlace& place, const std::string& expected) {
  const std::string found = place ? fmt::format("found {}", place.json->type_name()) : std::string("it is missing");
  reject(fmt::format("{}: expected {}, {}", place.path, expected, found), kExpected);
}

JsonPlace object_at(const JsonPlace& place) {
  if (!place || !place.json->is_object()) reject_value(place, "an object");
  return place;
}

std::string text_at(const JsonPlace& place) {
  if (!place || !place.json->is_string()) reject_value(place, "a text");
  return place.json->get<std::string>();
}

std::string text_or(const JsonPlace& place, const std::string& otherwise) { return place ? text_at(place) : otherwise; }

// Numbers that are equal print the same: 4096 and 4096.0 are one parameter value.
std::string number_text(const Json& json) {
  if (json.is_number_integer())
    return json.is_number_unsigned() ? fmt::to_string(json.get<std::uint64_t>())
                                     : fmt::to_string(json.get<std::int64_t>());
  const double value = json.get<double>();
  return value == std::floor(value) && std::fabs(value) < 1e15 ? fmt::format("{:.0f}", value)
                                                               : fmt::format("{}", value);
}

std::optional<std::string> scalar_text(const Json& json) {
  if (json.is_string()) return json.get<std::string>();
  if (json.is_boolean()) return json.get<bool>() ? "true" : "false";
  if (json.is_number()) return number_text(json);
  if (json.is_null()) return "null";
  return std::nullopt;
}

// A scalar, or a list of scalars as "a,b,c".
std::string value_text(const JsonPlace& place) {
  if (const auto text = scalar_text(*place.json)) return *text;
  if (!place.json->is_array()) reject_value(place, "a number, a text, true or false");
  std::string joined;
  for (const Json& item : *place.json) {
    const auto text = scalar_text(item);
    if (!text) reject_value(place, "a list of numbers or texts");
    joined += (joined.empty() ? "" : ",") + *text;
  }
  return joined;
}

double number_at(const JsonPlace& place) {
  if (!place || !place.json->is_number()) reject_value(place, "a number");
  const double value = place.json->get<double>();
  if (!std::isfinite(value)) reject_value(place, "a finite number");
  return value;
}

int streams_at(const JsonPlace& place) {
  const double value = number_at(place);
  if (!(value >= 1 && value <= 1e6) || value != std::floor(value))
    reject(fmt::format("{}: expected a stream count, found {}", place.path, number_text(*place.json)), kExpected);
  return static_cast<int>(value);
}

// Durations. A missing list is an empty one.
std::vector<double> durations_at(const JsonPlace& place, double scale) {
  std::vector<double> values;
  if (!place) return values;
  if (!place.json->is_array()) reject_value(place, "a list of durations");
  values.reserve(place.json->size());
  for (const Json& item : *place.json) {
    const double value = item.is_number() ? item.get<double>() : -1;
    if (!item.is_number() || !(value >= 0 && value * scale <= kLongestDurationNs)) {
      const std::string found = item.is_number() ? number_text(item) : std::string(item.type_name());
      reject(fmt::format("{}[{}]: expected a duration, found {}", place.path, values.size(), found), kExpected);
    }
    values.push_back(value * scale);
  }
  return values;
}

void flatten(const Json& json, const std::string& path, int depth, std::map<std::string, std::string>& into) {
  if (into.size() >= kMaxSettings) return;
  if (json.is_object()) {
    if (depth >= kDeepest) return;
    for (const auto& [name, value] : json.items())
      flatten(value, path.empty() ? name : fmt::format("{}.{}", path, name), depth + 1, into);
  } else if (const auto text = scalar_text(json); text && !json.is_null()) {
    into.emplace(path, *text);
  }
}

// "unavailable": {"metrics.latency_ns": "sync mode none"}: the reason for an entry whose name contains `metric`.
std::string recorded_reason(const JsonPlace& result, std::string_view metric) {
  const JsonPlace unavailable = result["unavailable"];
  if (!unavailable || !unavailable.json->is_object()) return {};
  for (const auto& [name, reason] : unavailable.json->items())
    if (name.find(metric) != std::string::npos && reason.is_string()) return reason.get<std::string>();
  return {};
}

// Fills in work / time; if a rate is not finite, the series stays empty with a reason.
void set_rates(SampleSeries& series, double work, const std::vector<double>& times) {
  for (const double time : times) series.samples.push_back(work / time);
  if (std::all_of(series.samples.begin(), series.samples.end(), [](double rate) { return std::isfinite(rate); }))
    return;
  series.samples.clear();
  series.reason = "the throughput is out of range";
}

SampleSeries weir_throughput(const JsonPlace& result, const std::vector<double>& intervals_ns) {
  SampleSeries series;
  series.unit = text_or(result["workload"]["unit"], "");
  const JsonPlace work = result["work_per_iteration"];
  const double amount = work ? number_at(work) : 0;
  const bool has_total = static_cast<bool>(result["metrics"]["throughput"]["value"]);
  const std::string recorded = recorded_reason(result, "throughput");
  if (!recorded.empty() && intervals_ns.empty()) {
    series.reason = recorded;
  } else if (intervals_ns.empty()) {
    series.reason = has_total ? "only one total throughput, no time per iteration (samples.interval_ns)"
                              : "no time per iteration (samples.interval_ns)";
  } else if (amount <= 0) {
    series.reason = "the work per iteration is not known (work_per_iteration)";
  } else if (std::find(intervals_ns.begin(), intervals_ns.end(), 0.0) != intervals_ns.end()) {
    series.reason = "some iterations took 0 ns: the clock is too coarse for this workload";
  } else {
    set_rates(series, amount * 1e9, intervals_ns);
  }
  return series;
}

// "processes": [{"samples": 60, "seed": 1, "wall_ns": 812000000}, ...]: samples are listed process by process.
std::vector<std::size_t> process_sizes(const JsonPlace& result) {
  const JsonPlace processes = result["processes"];
  std::vector<std::size_t> sizes;
  if (!processes) return sizes;
  if (!processes.json->is_array()) reject_value(processes, "a list of processes");
  for (const Json& item : *processes.json) {
    const JsonPlace place{&item, fmt::format("{}[{}].samples", processes.path, sizes.size())};
    const double count = number_at({&at_path(item, {"samples"}), place.path});
    if (!(count >= 0 && count <= kMostSamples) || count != std::floor(count))
      reject_value(place, "a number of samples");
    sizes.push_back(static_cast<std::size_t>(count));
  }
  return sizes;
}

// Some metrics have fewer values than iterations, but as many of each process.
void divide(SampleSeries& series, const std::vector<std::size_t>& sizes, const JsonPlace& result) {
  const std::size_t count = series.samples.size();
  if (sizes.size() < 2 || count == 0) return;
  if (std::accumulate(sizes.begin(), sizes.end(), std::size_t{0}) == count)
    series.processes = sizes;
  else if (count % sizes.size() == 0 &&
           std::all_of(sizes.begin(), sizes.end(), [&](std::size_t each) { return each == sizes[0]; }))
    series.processes.assign(sizes.size(), count / sizes.size());
  else
    reject(fmt::format("{}processes: the sizes of {} processes do not add up to {} samples", result.path, sizes.size(),
                       count),
           kExpected);
}

std::vector<std::string> command_of(const JsonPlace& result) {
  std::vector<std::string> command;
  const JsonPlace line = result["command_line"];
  if (!line || !line.json->is_array()) return command;
  for (const Json& word : *line.json) {
    if (!word.is_string()) return {};
    command.push_back(command.empty() ? "weir" : word.get<std::string>());
  }
  return command;
}

std::string weir_failure(const JsonPlace& result, const std::string& status) {
  const JsonPlace check = result["check"];
  const std::string detail = text_or(result["failure"], text_or(check["reason"], ""));
  const std::string colon = detail.empty() ? "" : ": " + detail;
  if (status == "failed") return "the run failed" + colon;
  if (check && text_or(check["status"], "") == "failed") return "its output is wrong" + colon;
  return {};
}

// {"schema": "weir.result/2", "status": "complete", "workload": {"name": ...}, "streams": 8, "samples": {...}, ...}
ResultPoint weir_point(const JsonPlace& result, const std::string& origin) {
  ResultPoint point;
  point.origin = origin;
  const std::string status = text_at(result["status"]);
  if (status != "complete" && status != "interrupted" && status != "failed")
    reject(fmt::format("{}: status '{}' is none of complete, interrupted, failed", result.path, status), kExpected);
  point.key["workload"] = text_at(object_at(result["workload"])["name"]);
  point.key["streams"] = fmt::to_string(streams_at(result["streams"]));
  for (const char* name : {"submit", "placement", "sync_mode", "precision"})
    if (const JsonPlace value = result[name]) point.key[name] = text_at(value);
  // Older files, from before ranks existed, have one.
  const JsonPlace ranks = result["ranks"]["count"];
  point.key["ranks"] = ranks ? value_text(ranks) : "1";
  // As requested, not as rounded by the driver: two requests that got the same units are still two points.
  for (const char* name : {"compute_units", "compute_units_asked"})
    if (const JsonPlace units = result["device"][name]) point.key["compute_units"] = value_text(units);
  // What tells the points of a sweep with --env apart.
  if (const JsonPlace variables = result["set_variables"])
    for (const auto& [name, value] : object_at(variables).json->items())
      point.key[kVariable + name] =
          value.is_null() ? "unset" : value_text({&value, fmt::format("{}.{}", variables.path, name)});
  if (const JsonPlace parameters = result["parameters"]) {
    const Json& object = *object_at(parameters).json;
    for (const auto& [name, value] : object.items())
      point.key["param." + name] = value_text({&value, fmt::format("{}.{}", parameters.path, name)});
  }

  point.device = text_or(result["device"]["name"], "");
  if (const JsonPlace device = result["device"]) flatten(*object_at(device).json, "device", 0, point.settings);
  if (const JsonPlace environment = result["environment"])
    flatten(*object_at(environment).json, "environment", 0, point.settings);
  point.settings.erase("device.name");
  point.settings.erase("device.compute_units");
  point.settings.erase("device.compute_units_asked");
  for (const auto& [name, value] : point.key)
    if (name.starts_with(kVariable))
      point.settings.erase("environment.variables." + name.substr(std::string_view(kVariable).size()));
  point.settings["weir.version"] = text_or(result["weir"]["version"], "unknown");

  point.failure = weir_failure(result, status);
  const JsonPlace samples = result["samples"];
  if (!samples && point.failure.empty()) reject_value(samples, "an object");
  if (samples) object_at(samples);
  point.latency.unit = "ns";
  point.latency.samples = durations_at(samples["latency_ns"], 1);
  // Pipelined iterations have no latency; their time on the device is what can be judged.
  const auto sync_mode = point.key.find("sync_mode");
  if (sync_mode != point.key.end() && sync_mode->second == "end_only") {
    if (point.latency.samples.empty()) point.latency.samples = durations_at(samples["device_ns"], 1);
    if (!point.latency.samples.empty())
      point.notes.push_back("sync mode end_only: latency is the time of an iteration on the device (device_ns)");
  }
  const std::string recorded = recorded_reason(result, "latency");
  if (point.latency.samples.empty()) point.latency.reason = recorded.empty() ? "no latency samples" : recorded;
  point.latency.is_expected_missing = sync_mode != point.key.end() && sync_mode->second == "none";
  point.throughput = weir_throughput(result, durations_at(samples["interval_ns"], 1));
  const std::vector<std::size_t> sizes = process_sizes(result);
  divide(point.latency, sizes, result);
  divide(point.throughput, sizes, result);
  if (const std::vector<double> submit = durations_at(samples["submit_ns"], 1);
      !submit.empty() && !point.latency.samples.empty())
    point.is_host_bound = median(submit) > kHostBoundShare * median(point.latency.samples);
  point.command = command_of(result);
  if (status == "interrupted")
    point.notes.push_back(fmt::format("{} was interrupted: judged on {} iterations", origin,
                                      std::max(point.latency.samples.size(), point.throughput.samples.size())));
  return point;
}

// {"throughput": 12.5, "throughput_unit": "ops/sec", "latency_ms": {"p50": ...}, "iteration_times_ms": [...],
//  "stream_count": 4, "workload_name": "moe", "metadata": {"config": {"sync_mode": ...}, ...}}
ResultPoint aorta_point(const JsonPlace& result, const std::string& sweep_workload, const std::string& origin) {
  ResultPoint point;
  point.origin = origin;
  point.is_key_complete = false;
  std::string workload = text_or(result["workload_name"], "");
  if (workload.empty()) workload = sweep_workload;
  if (workload.empty()) reject_value({nullptr, result.path + ".workload_name"}, "a text");
  point.key["workload"] = workload;
  point.key["streams"] = fmt::to_string(streams_at(result["stream_count"]));
  const JsonPlace metadata = result["metadata"];
  const std::string sync_mode = text_or(metadata["config"]["sync_mode"], "");
  if (!sync_mode.empty()) point.key["sync_mode"] = sync_mode;
  point.device = text_or(metadata["config"]["device"], "");
  if (const JsonPlace model = metadata["device_info"]["name"]) point.settings["device.model"] = text_at(model);
  for (const char* name : {"rocm_info", "driver_info"})
    if (const JsonPlace info = metadata[name])
      flatten(*info.json, std::string("environment.") + name, 0, point.settings);
  point.settings["tool"] = "AORTA";

  const double total = number_at(result["throughput"]);
  std::vector<double> times_ns = durations_at(result["iteration_times_ms"], 1e6);
  point.latency.unit = "ns";
  point.throughput.unit = text_or(result["throughput_unit"], "");
  const bool is_waited = sync_mode.empty() || sync_mode == "per_iteration";
  point.latency.is_expected_missing = !is_waited;
  if (times_ns.empty()) {
    point.latency.reason = "AORTA file without iteration_times_ms: a median alone cannot be tested";
    point.throughput.reason = "AORTA file without iteration_times_ms: one total throughput cannot be tested";
    return point;
  }
  const double shortest = *std::min_element(times_ns.begin(), times_ns.end());
  if (total <= 0 || shortest <= 0) {
    point.throughput.reason = total <= 0 ? "AORTA reports no throughput" : "an iteration took 0 ms";
  } else {
    // AORTA's total is work over the sum of iteration times, so each iteration did total * mean time.
    double sum = 0;
    for (const double time : times_ns) sum += time;
    const double work = total * (sum / static_cast<double>(times_ns.size()));
    set_rates(point.throughput, work, times_ns);
    point.notes.emplace_back(
        "AORTA gives one throughput per run: its values per iteration are derived from "
        "iteration_times_ms, scaled to that number");
  }
  if (is_waited)
    point.latency.samples = std::move(times_ns);
  else
    point.latency.reason = fmt::format("AORTA with sync mode {} reports enqueue time as latency", sync_mode);
  return point;
}

enum class Format { weir_result, weir_sweep, aorta_result, aorta_sweep, other };

struct Sniffed {
  Format format = Format::other;
  std::string found;  // what it is instead, for the message
  std::string takers = kExpected;
};

// "weir.result/2" -> the format; a later version or another kind of file is `other`, with a description.
Sniffed sniff_schema(const std::string& schema) {
  if (schema == schemas::result) return {Format::weir_result};
  if (schema == schemas::sweep) return {Format::weir_sweep};
  const std::string_view known = schemas::current(schema);
  if ((known == schemas::result || known == schemas::sweep) && schemas::is_newer(schema))
    return {Format::other,
            fmt::format("'{}', written by a newer Weir: this one reads version {}", schema, schemas::version_of(known)),
            "Use that version, or write it again with this one: `weir run WORKLOAD -o FILE`."};
  if (!schema.starts_with("weir.")) return {Format::other, fmt::format("schema '{}'", schema)};
  return {Format::other, fmt::format("schema '{}', which is not a result", schema), schemas::takers_of(schema)};
}

Sniffed sniff(const Json& json) {
  if (!json.is_object()) return {Format::other, std::string(json.type_name()) + " instead of an object"};
  const JsonPlace root{&json, ""};
  if (const JsonPlace schema = root["schema"]) {
    if (!schema.json->is_string()) return {Format::other, "a schema that is not a text"};
    return sniff_schema(schema.json->get<std::string>());
  }
  if (root["throughput"] && root["stream_count"]) return {Format::aorta_result};
  if (root["results"] && root["workload"]) return {Format::aorta_sweep};
  if (root["traceEvents"])
    return {Format::other, "a trace", "`weir analyze FILE` reads it, `weir compare A B` compares two traces."};
  std::string names;
  std::size_t count = 0;
  for (const auto& [name, value] : json.items())
    if (++count <= 5) names += (names.empty() ? "" : ", ") + name.substr(0, 40);
  return {Format::other, names.empty()
                             ? "an empty object"
                             : fmt::format("an object without schema (it has {}{})", names, count > 5 ? ", ..." : "")};
}

void append_points(const Json& json, Format format, const std::string& name, ResultFile& file) {
  const JsonPlace root{&json, name + ": "};
  if (format == Format::weir_result) {
    file.points.push_back(weir_point(root, name));
  } else if (format == Format::aorta_result) {
    file.points.push_back(aorta_point(root, "", name));
  } else {
    const JsonPlace results = root["results"];
    if (!results || !results.json->is_array()) reject_value(results, "a list of results");
    const std::string workload = format == Format::aorta_sweep ? text_at(root["workload"]) : std::string();
    std::size_t index = 0;
    for (const Json& item : *results.json) {
      const std::string inner = fmt::format("results[{}]", index++);
      const JsonPlace place{&item, fmt::format("{}: {}", name, inner)};
      object_at(place);
      if (format == Format::weir_sweep && sniff(item).format != Format::weir_result)
        reject(fmt::format("{}: expected {}, found {}", place.path, schemas::result, sniff(item).found), kExpected);
      const std::string origin = fmt::format("{}: {}", name, inner);
      file.points.push_back(format == Format::weir_sweep ? weir_point(place, origin)
                                                         : aorta_point(place, workload, origin));
    }
  }
}

}  // namespace

ResultFile parse_results(const Json& json, const std::string& name) {
  ResultFile file{name, {}, {}};
  const Sniffed sniffed = sniff(json);
  if (sniffed.format == Format::other) reject(fmt::format("{}: found {}", name, sniffed.found), sniffed.takers);
  append_points(json, sniffed.format, name, file);
  if (file.points.empty()) reject(fmt::format("{}: holds no results", name), "Did the sweep finish a single point?");
  return file;
}

ResultFile load_results(const fs::path& path) {
  std::error_code status;
  if (!fs::is_directory(path, status)) return parse_results(read_json(path), path.string());

  const FilesInFolder found = files_in(path, ".json");
  ResultFile folder{path.string(), {}, {}};
  for (const fs::path& other : found.skipped)
    folder.notes.push_back(fmt::format("{} was passed over: it is not a regular file", other.string()));
  for (const fs::path& candidate : found.files) {
    const Json json = read_json(candidate);
    const Sniffed sniffed = sniff(json);
    if (sniffed.format == Format::other)
      folder.notes.push_back(fmt::format("{} was passed over: it holds {}", candidate.string(), sniffed.found));
    else
      append_points(json, sniffed.format, candidate.string(), folder);
  }
  if (folder.points.empty())
    reject(fmt::format("{}: the folder holds no results ({} .json file{})", path.string(), found.files.size(),
                       found.files.size() == 1 ? "" : "s"),
           kExpected);
  return folder;
}

}  // namespace weir
