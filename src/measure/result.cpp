#include "measure/result.h"

#include <cmath>

#include "base/schemas.h"
#include "weir_build.h"

namespace weir {
namespace {

Json list_or_null(const std::optional<std::vector<double>>& list) {
  if (!list) return nullptr;
  Json json = Json::array();
  // Times are whole nanoseconds; integers keep a file with many samples small and exact.
  for (const double value : *list) json.push_back(static_cast<std::int64_t>(std::llround(value)));
  return json;
}

}  // namespace

Error Result::error() const {
  Error error(fault, failure, hint);
  error.setting = setting;
  return error;
}

Json interval_or_null(const std::optional<Interval>& interval) {
  if (!interval) return nullptr;
  return Json::array({number_or_null(interval->low), number_or_null(interval->high)});
}

Json to_json(const Summary& summary) {
  Json json = Json::object();
  json["count"] = summary.count;
  json["mean"] = number_or_null(summary.mean);
  json["p50"] = number_or_null(summary.p50);
  json["p95"] = number_or_null(summary.p95);
  json["p99"] = number_or_null(summary.p99);
  json["min"] = number_or_null(summary.min);
  json["max"] = number_or_null(summary.max);
  json["std"] = number_or_null(summary.std);
  json["mean_interval"] = interval_or_null(summary.mean_interval);
  json["p50_interval"] = interval_or_null(summary.p50_interval);
  json["p95_interval"] = interval_or_null(summary.p95_interval);
  json["p99_interval"] = interval_or_null(summary.p99_interval);
  return json;
}

Json to_json(const Result& result) {
  Json json = Json::object();
  json["schema"] = schemas::result;
  json["status"] = result.status;
  json["failure"] = result.failure.empty() ? Json(nullptr) : Json(result.failure);
  json["hint"] = result.hint.empty() ? Json(nullptr) : Json(result.hint);
  json["created"] = result.created;
  json["weir"] = {{"version", WEIR_VERSION}, {"commit", WEIR_COMMIT}};
  json["command_line"] = result.command_line;
  json["workload"] = {{"name", result.workload},
                      {"category", result.category},
                      {"priority", "P" + std::to_string(result.priority)},
                      {"unit", result.unit},
                      {"scaling", result.scaling}};
  if (!result.workload_file.empty()) {
    json["workload"]["file"] = result.workload_file;
    json["workload"]["text"] = result.workload_text;
  }
  json["parameters"] = result.parameters;
  json["precision"] = result.precision;
  json["scale"] = result.scale;
  json["streams"] = result.streams;
  json["submit"] = result.submit;
  json["placement"] = result.placement;
  json["sync_mode"] = result.sync_mode;
  json["iterations"] = result.iterations;
  json["warmup"] = result.warmup;
  json["seed"] = result.seed;
  json["device"] = result.device;
  json["environment"] = result.environment;
  // Work is 0 if it depends on the data, on a device without data.
  json["work_per_iteration"] =
      number_or_null(result.work_per_iteration > 0 ? std::optional(result.work_per_iteration) : std::nullopt);
  json["commands_per_iteration"] = result.commands_per_iteration;
  json["flop_per_iteration"] = result.flop_per_iteration;
  json["bytes_per_iteration"] = result.bytes_per_iteration;

  json["samples"] = {{"latency_ns", list_or_null(result.samples.latency_ns)},
                     {"interval_ns", list_or_null(result.samples.interval_ns)},
                     {"device_ns", list_or_null(result.samples.device_ns)},
                     {"submit_ns", list_or_null(result.samples.submit_ns)}};

  Json metrics = Json::object();
  metrics["latency_ns"] = result.latency_ns ? to_json(*result.latency_ns) : Json(nullptr);
  metrics["device_ns"] = result.device_ns ? to_json(*result.device_ns) : Json(nullptr);
  metrics["throughput"] = result.throughput ? Json{{"value", number_or_null(result.throughput->value)},
                                                   {"unit", result.unit},
                                                   {"interval", interval_or_null(result.throughput->interval)}}
                                            : Json(nullptr);
  metrics["commands_per_second"] = number_or_null(result.commands_per_second);
  metrics["host_ns_per_command"] = number_or_null(result.host_ns_per_command);
  metrics["floor_ns_per_command"] = number_or_null(result.floor_ns_per_command);
  for (const auto& [name, value] : result.metrics.items()) metrics[name] = value;
  json["metrics"] = std::move(metrics);

  json["ranks"] = result.ranks;
  json["check"] = result.check;
  json["warnings"] = Json::array();
  for (const Warning& warning : result.warnings)
    json["warnings"].push_back({{"code", warning.code}, {"message", warning.message}, {"advice", warning.advice}});
  json["unavailable"] = Json::object();
  for (const auto& [metric, reason] : result.unavailable) json["unavailable"][metric] = reason;
  return json;
}

}  // namespace weir
