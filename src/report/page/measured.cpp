#include "report/page/measured.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "base/options.h"
#include "base/schemas.h"
#include "measure/statistics.h"
#include "report/page/values.h"
#include "report/text/fields.h"
#include "run/scaling_curves.h"
#include "run/variable_axis.h"

namespace weir::page {
namespace {

using namespace fields;

constexpr std::size_t kMaxMeasuredPoints = 10'000;  // of a file

// Times and rates are never below 0; other values in a file are ignored.
Json number_at(const Json& json, values::Keys keys) { return number_or_null(values::amount(json, keys, 1e300)); }

// "environment.rocm_info.version": "6.2" -> {"rocm_info.version": "6.2"}
Json settings_below(const ResultPoint& point, std::string_view prefix) {
  Json json = Json::object();
  for (const auto& [name, value] : point.settings)
    if (name.starts_with(prefix)) json.append(name.substr(prefix.size()), value);
  return json;
}

void take_weir(Page& page, const Json& result, Measured& to) {
  to.environment = page.environment(at(result, {"device"}), at(result, {"environment"}));
  const Json& metrics = at(result, {"metrics"});
  to.throughput = number_at(metrics, {"throughput", "value"});
  to.throughput_interval = values::interval(metrics, {"throughput", "interval"});
  const char* const time = text(result, {"sync_mode"}) == "end_only" ? "device_ns" : "latency_ns";
  to.latency_ns["p50"] = number_at(metrics, {time, "p50"});
  to.latency_ns["p50_interval"] = values::interval(metrics, {time, "p50_interval"});
  to.latency_ns["p99"] = number_at(metrics, {time, "p99"});
  to.host_ns_per_command = number_at(metrics, {"host_ns_per_command"});
  to.floor_ns_per_command = number_at(metrics, {"floor_ns_per_command"});
  to.status = text(result, {"status"});
  to.scaling = text(result, {"workload", "scaling"});
  to.unit = text(result, {"workload", "unit"});
  to.document = Json::object();
  for (const auto& [name, value] : result.items())
    if (name != "samples") to.document.append(name, value);
}

void take_aorta(Page& page, const Json& result, Measured& to) {
  Json device = settings_below(to.point, "device.");
  if (!to.point.device.empty()) device["name"] = to.point.device;
  to.environment = page.environment(device, settings_below(to.point, "environment."));
  to.throughput = number_at(result, {"throughput"});
  to.unit = to.point.throughput.unit;
  to.status = "complete";
  if (!to.point.latency.samples.empty()) {
    to.latency_ns["p50"] = number_or_null(quantile(to.point.latency.samples, 0.5));
    to.latency_ns["p99"] = number_or_null(quantile(to.point.latency.samples, 0.99));
  }
}

}  // namespace

std::string Measured::name(const char* key) const {
  const auto found = point.key.find(key);
  return found == point.key.end() ? std::string() : found->second;
}

bool is_aorta(const Json& document) {
  if (!document.is_object() || document.contains("schema")) return false;
  return (document.contains("throughput") && document.contains("stream_count")) ||
         (document.contains("results") && document.contains("workload"));
}

Measured measured_of(Page& page, std::size_t source, const std::string& path, const Json& result, ResultPoint point) {
  Measured measured;
  measured.source = source;
  measured.path = path;
  measured.point = std::move(point);
  measured.streams = static_cast<int>(parse_integer(measured.name("streams")).value_or(0));
  if (measured.point.is_key_complete) {
    take_weir(page, result, measured);
  } else {
    take_aorta(page, result, measured);
  }
  const std::string submit = measured.name("submit");
  const auto units = parse_integer(measured.name("compute_units")).value_or(0);
  measured.curve = submit.empty() ? "as measured" : curve_of(submit, static_cast<int>(units), variable_words(result));
  // A failed point has no numbers, even if the file contains some.
  if (!measured.point.failure.empty())
    for (Json* number :
         {&measured.throughput, &measured.throughput_interval, &measured.latency_ns["p50"],
          &measured.latency_ns["p50_interval"], &measured.latency_ns["p99"], &measured.host_ns_per_command})
      *number = nullptr;
  return measured;
}

std::vector<Measured> read_measured(Page& page, std::size_t source, const std::string& path, const Json& document) {
  std::vector<Measured> all;
  const Json& results = at(document, {"results"});
  const bool is_aorta_sweep = is_aorta(document) && !document.contains("stream_count");
  const bool is_list = is_aorta_sweep || at(document, {"schema"}) == Json(schemas::sweep);
  if (is_list && !results.is_array()) {
    page.refuse(path, "it is a sweep, but its results are not a list. Was it written by hand? Measure it again.");
    return all;
  }
  const auto read = [&](const Json& result, const std::string& name) {
    try {
      // An AORTA sweep names the workload once for all results; each result is read as a sweep of one.
      const Json alone =
          is_aorta_sweep ? Json{{"workload", at(document, {"workload"})}, {"results", Json::array({result})}} : Json();
      ResultFile file = parse_results(is_aorta_sweep ? alone : result, name);
      for (ResultPoint& point : file.points) {
        all.push_back(measured_of(page, source, path, result, std::move(point)));
        all.back().is_of_sweep = is_list;
      }
    } catch (const Error& error) {
      page.refuse(name, error.hint.empty() ? error.what() : fmt::format("{}. {}", error.what(), error.hint));
    } catch (const JsonError& error) {
      page.refuse(name, fmt::format("not a result: {}", error.what()));
    }
  };
  if (!is_list) {
    read(document, path);
    return all;
  }
  const std::size_t most = std::min(results.size(), kMaxMeasuredPoints);
  if (results.size() > most)
    page.refuse(fmt::format("{}: results[{}] and beyond", path, most),
                fmt::format("{} points are more than a page can show", results.size()));
  for (std::size_t i = 0; i < most; ++i) read(results[i], fmt::format("{}: results[{}]", path, i));
  return all;
}

}  // namespace weir::page
