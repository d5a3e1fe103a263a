#include "lab/channels/channel_baseline.h"

#include <fmt/format.h>

#include <set>

#include "base/error.h"
#include "base/schemas.h"

namespace weir {
namespace {

constexpr std::size_t kMaxBenchmarks = 100'000;
constexpr std::size_t kMaxProcesses = 1000;
constexpr std::size_t kLongestName = 200;

const Json& baseline_member(const Json& json, const char* name, const std::string& where) {
  const auto found = json.find(name);
  if (found == json.end()) reject(fmt::format("{}: '{}' is missing", where, name), "Save the baseline again.");
  return *found;
}

std::string baseline_text(const Json& json, const char* name, const std::string& where) {
  const Json& value = baseline_member(json, name, where);
  if (!value.is_string()) reject(fmt::format("{}: '{}' must be a text", where, name));
  return value.get<std::string>();
}

std::string short_text_of(const Json& json, const char* name, const std::string& where) {
  std::string text = baseline_text(json, name, where);
  if (text.empty()) reject(fmt::format("{}: '{}' is empty", where, name));
  if (text.size() > kLongestName)
    reject(fmt::format("{}: '{}' has {} letters, which is too long for a name", where, name, text.size()));
  return text;
}

ChannelResult result_of(const Json& json, const std::string& where) {
  if (!json.is_object()) reject(fmt::format("{}: an object is needed here", where));
  ChannelResult result;
  result.group = short_text_of(json, "group", where);
  result.name = short_text_of(json, "name", where);
  result.contestant = short_text_of(json, "contestant", where);
  const Json& is_ours = baseline_member(json, "is_ours", where);
  if (!is_ours.is_boolean()) reject(fmt::format("{}: 'is_ours' must be true or false", where));
  result.is_ours = is_ours.get<bool>();
  const std::string unit = baseline_text(json, "unit", where);
  const auto known = unit_named(unit);
  if (!known) reject(fmt::format("{}: unknown unit '{}'", where, unit));
  result.unit = *known;
  const Json& status = baseline_member(json, "status", where);
  if (status == "unavailable") result.unavailable = baseline_text(json, "reason", where);
  const Json& processes = baseline_member(json, "processes", where);
  if (!processes.is_array() || processes.size() > kMaxProcesses)
    reject(fmt::format("{}: 'processes' must be a list of at most {}", where, kMaxProcesses));
  for (const Json& process : processes) {
    ChannelMeasurement& measurement = result.measurements.emplace_back();
    const std::string place = fmt::format("{}.processes[{}]", where, result.measurements.size() - 1);
    measurement.found = measurement_from(process, place);
    const Json& index = baseline_member(process, "process", place);
    if (!index.is_number_unsigned() || index.get<std::uint64_t>() >= kMaxProcesses)
      reject(fmt::format("{}: 'process' must be a number below {}", place, kMaxProcesses));
    measurement.process = index.get<int>();
  }
  return result;
}

}  // namespace

ChannelRun parse_channel_run(const Json& json, const std::string& name) {
  if (!json.is_object()) reject(fmt::format("{}: is not a document of weir channel", name));
  const auto schema = json.find("schema");
  if (schema == json.end() || !schema->is_string())
    reject(fmt::format("{}: is not a document of weir channel: it has no schema", name));
  if (*schema != schemas::channel)
    reject(fmt::format("{}: is '{}', not '{}'", name, schema->get<std::string>(), schemas::channel),
           "Baselines are written by weir channel --save-baseline.");
  ChannelRun run;
  run.created = baseline_text(json, "created", name);
  run.status = baseline_text(json, "status", name);
  const Json& settings = baseline_member(json, "settings", name);
  const std::string in_settings = name + ": settings";
  run.settings.conditions = conditions_from(settings, in_settings);
  run.settings.placement = baseline_text(settings, "placement", in_settings);
  const Json& processes = baseline_member(settings, "processes", in_settings);
  if (!processes.is_number_unsigned() || processes.get<std::uint64_t>() > kMaxProcesses)
    reject(fmt::format("{}: settings: 'processes' must be a number up to {}", name, kMaxProcesses));
  run.settings.processes = processes.get<int>();
  run.environment = baseline_member(json, "environment", name);
  if (!run.environment.is_object()) reject(fmt::format("{}: 'environment' must be an object", name));
  const Json& benchmarks = baseline_member(json, "benchmarks", name);
  if (!benchmarks.is_array() || benchmarks.size() > kMaxBenchmarks)
    reject(fmt::format("{}: 'benchmarks' must be a list of at most {}", name, kMaxBenchmarks));
  std::set<std::string> seen;
  for (const Json& benchmark : benchmarks) {
    const std::string where = fmt::format("{}: benchmarks[{}]", name, run.results.size());
    run.results.push_back(result_of(benchmark, where));
    if (!seen.insert(run.results.back().id()).second)
      reject(fmt::format("{}: {} is there twice", where, run.results.back().id()));
  }
  return run;
}

ChannelRun load_channel_run(const std::filesystem::path& file) {
  return parse_channel_run(read_json(file), file.string());
}

std::filesystem::path baseline_file(const std::filesystem::path& folder, const std::string& flag,
                                    const std::string& name) {
  const bool is_plain =
      !name.empty() && name.size() <= 100 && name.front() != '.' && name.front() != '-' &&
      name.find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-") == std::string::npos;
  if (!is_plain)
    reject(fmt::format("{} '{}': a baseline's name has letters, digits, '.', '_' and '-' only", flag, name),
           "It becomes a file's name; it must begin with a letter, a digit or '_'.");
  return folder / (name + ".json");
}

}  // namespace weir
