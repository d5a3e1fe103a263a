#include "run/known_spread.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "base/error.h"
#include "base/named_values.h"
#include "base/schemas.h"
#include "measure/statistics.h"

namespace weir {
namespace {

// What makes spreads incomparable. Versions of drivers are not among it: a calibration need not be repeated for each.
constexpr std::array kMachineFacts{"device.model", "environment.architecture", "environment.cpus",
                                   "environment.cpu_model"};

std::map<std::string, std::string> machine_facts(const ResultPoint& point) {
  std::map<std::string, std::string> facts{{"device.name", point.device}};
  for (const char* name : kMachineFacts)
    if (const auto found = point.settings.find(name); found != point.settings.end()) facts.insert(*found);
  return facts;
}

bool is_same_kind(const CalibratedStep& step, const ResultPoint& baseline, const ResultPoint& test) {
  const bool is_known = step.is_host_bound && baseline.is_host_bound && baseline.is_host_bound == test.is_host_bound;
  return !is_known || step.is_host_bound == baseline.is_host_bound;
}

Spread calibrated_spread(const CalibratedStep& step, bool is_same_step) {
  const auto workload = step.key.find("workload");
  return {step.deviation, static_cast<double>(step.processes - 1),
          fmt::format("weir calibrate of {}: {} processes of {}{}", step.measured.substr(0, 10), step.processes,
                      workload == step.key.end() ? "a step" : workload->second,
                      is_same_step ? "" : ", a step of the same kind")};
}

[[noreturn]] void reject_calibration(const std::filesystem::path& path, const std::string& what) {
  reject(fmt::format("{}: {}", path.string(), what), "Remove the file and run `weir calibrate` again.");
}

double calibrated_number(const Json& item, const char* name, const std::filesystem::path& path) {
  const Json& value = at_path(item, {name});
  if (!value.is_number() || !(value.get<double>() >= 0) || !std::isfinite(value.get<double>()))
    reject_calibration(path, fmt::format("{} is not a number of 0 or more", name));
  return value.get<double>();
}

std::map<std::string, std::string> calibrated_texts(const Json& item, const char* name,
                                                    const std::filesystem::path& path) {
  std::map<std::string, std::string> texts;
  const Json& object = at_path(item, {name});
  if (!object.is_object()) reject_calibration(path, fmt::format("{} is not an object", name));
  for (const auto& [key, value] : object.items())
    if (value.is_string()) texts[key] = value.get<std::string>();
  return texts;
}

}  // namespace

std::optional<CalibratedStep> calibrated_step(const ResultPoint& point, const std::string& measured) {
  std::vector<double> logs;
  std::vector<double> medians;
  for (const auto& samples : by_process(point.latency.samples, point.latency.processes))
    medians.push_back(median(samples));
  for (const double value : medians)
    if (value > 0) logs.push_back(std::log(value));
  if (logs.size() < kFewestForSpread || logs.size() < medians.size()) return std::nullopt;
  double squares = 0;
  for (const double value : logs) squares += (value - mean(logs)) * (value - mean(logs));
  return CalibratedStep{measured,       machine_facts(point),
                        point.key,      point.is_host_bound,
                        logs.size(),    std::sqrt(squares / static_cast<double>(logs.size() - 1)),
                        median(medians)};
}

void remember(const CalibratedStep& step, std::vector<CalibratedStep>& steps) {
  std::erase_if(steps, [&](const CalibratedStep& old) { return old.machine == step.machine && old.key == step.key; });
  steps.push_back(step);
}

std::optional<Spread> find_spread(std::span<const CalibratedStep> steps, const ResultPoint& baseline,
                                  const ResultPoint& test) {
  const auto machine = machine_facts(baseline);
  if (baseline.device.empty() || machine != machine_facts(test)) return std::nullopt;
  const CalibratedStep* widest = nullptr;
  for (const CalibratedStep& step : steps) {
    if (step.machine != machine) continue;
    if (step.key == baseline.key && step.key == test.key) return calibrated_spread(step, true);
    if (is_same_kind(step, baseline, test) && (widest == nullptr || step.deviation > widest->deviation)) widest = &step;
  }
  if (widest == nullptr) return std::nullopt;
  return calibrated_spread(*widest, false);
}

std::optional<Spread> spread_of_runs(std::span<const double> medians, const std::string& source) {
  std::vector<double> logs;
  for (const double value : medians)
    if (value > 0) logs.push_back(std::log(value));
  if (logs.size() < kFewestForSpread) return std::nullopt;
  double squares = 0;
  for (std::size_t i = 1; i < logs.size(); ++i) squares += (logs[i] - logs[i - 1]) * (logs[i] - logs[i - 1]);
  const auto differences = static_cast<double>(logs.size() - 1);
  // Neighbouring differences share a run, so they are worth two thirds of independent ones.
  return Spread{std::sqrt(squares / (2 * differences)), differences * 2 / 3, source};
}

Json calibration_json(std::span<const CalibratedStep> steps) {
  Json json = WEIR_NAMED(named("schema", schemas::calibration));
  json["steps"] = Json::array();
  for (const CalibratedStep& step : steps)
    json["steps"].push_back(WEIR_NAMED(step.measured, step.machine, step.key, step.is_host_bound, step.processes,
                                       step.deviation, step.latency_ns));
  return json;
}

std::vector<CalibratedStep> load_calibration(const std::filesystem::path& path) {
  std::error_code ignored;
  if (!std::filesystem::exists(path, ignored)) return {};
  const Json json = read_json(path);
  const Json& steps = at_path(json, {"steps"});
  if (at_path(json, {"schema"}) != schemas::calibration || !steps.is_array())
    reject_calibration(path, fmt::format("not a document of `weir calibrate` ({})", schemas::calibration));
  std::vector<CalibratedStep> found;
  for (const Json& item : steps) {
    CalibratedStep& step = found.emplace_back();
    if (const Json& measured = at_path(item, {"measured"}); measured.is_string())
      step.measured = measured.get<std::string>();
    step.machine = calibrated_texts(item, "machine", path);
    step.key = calibrated_texts(item, "key", path);
    if (const Json& kind = at_path(item, {"is_host_bound"}); kind.is_boolean()) step.is_host_bound = kind.get<bool>();
    const double processes = calibrated_number(item, "processes", path);
    if (processes < 2 || processes > 1e6) reject_calibration(path, "processes is out of range");
    step.processes = static_cast<std::size_t>(processes);
    step.deviation = calibrated_number(item, "deviation", path);
    step.latency_ns = calibrated_number(item, "latency_ns", path);
  }
  return found;
}

}  // namespace weir
