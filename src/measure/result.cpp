#include "measure/result.h"

#include <cmath>

#include "base/named_values.h"
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

Json to_json(const Warning& warning) { return WEIR_NAMED(warning.code, warning.message, warning.advice); }

Json to_json(const Summary& summary) {
  Json json = WEIR_NAMED(summary.count, number_or_null(summary.mean), number_or_null(summary.p50),
                         number_or_null(summary.p95), number_or_null(summary.p99), number_or_null(summary.min),
                         number_or_null(summary.max), number_or_null(summary.std),
                         interval_or_null(summary.mean_interval), interval_or_null(summary.p50_interval),
                         interval_or_null(summary.p95_interval), interval_or_null(summary.p99_interval));
  return json;
}

Json to_json(const Result& result) {
  Json json = WEIR_NAMED(named("schema", schemas::result), result.status, text_or_null(result.failure),
                         text_or_null(result.hint), result.created,
                         named("weir", {{"version", WEIR_VERSION}, {"commit", WEIR_COMMIT}}), result.command_line);
  json["workload"] = WEIR_NAMED(named("name", result.workload), result.category,
                                named("priority", "P" + std::to_string(result.priority)), result.unit, result.scaling);
  if (!result.workload_file.empty()) {
    json["workload"]["file"] = result.workload_file;
    json["workload"]["text"] = result.workload_text;
  }
  json.update(WEIR_NAMED(result.parameters, result.precision, result.scale, result.streams, result.submit,
                         result.placement, result.sync_mode, result.iterations, result.warmup, result.seed,
                         result.device, result.environment));
  // Work is 0 if it depends on the data, on a device without data.
  json["work_per_iteration"] =
      number_or_null(result.work_per_iteration > 0 ? std::optional(result.work_per_iteration) : std::nullopt);
  json.update(WEIR_NAMED(result.commands_per_iteration, result.flop_per_iteration, result.bytes_per_iteration));

  json["samples"] = WEIR_NAMED(list_or_null(result.samples.latency_ns), list_or_null(result.samples.interval_ns),
                               list_or_null(result.samples.device_ns), list_or_null(result.samples.submit_ns));

  Json metrics = Json::object();
  metrics["latency_ns"] = result.latency_ns ? to_json(*result.latency_ns) : Json(nullptr);
  metrics["device_ns"] = result.device_ns ? to_json(*result.device_ns) : Json(nullptr);
  metrics["throughput"] = result.throughput ? WEIR_NAMED(number_or_null(result.throughput->value), result.unit,
                                                         interval_or_null(result.throughput->interval))
                                            : Json(nullptr);
  metrics.update(WEIR_NAMED(result.commands_per_s, result.host_ns_per_command, result.floor_ns_per_command));
  for (const auto& [name, value] : result.metrics.items()) metrics[name] = value;
  json["metrics"] = std::move(metrics);

  json.update(WEIR_NAMED(result.ranks, result.check));
  json["warnings"] = json_list(result.warnings, [](const Warning& warning) { return to_json(warning); });
  json["unavailable"] = result.unavailable;
  return json;
}

}  // namespace weir
