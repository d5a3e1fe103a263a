#include "run/scaling_curves.h"

#include <fmt/format.h>

#include <map>
#include <vector>

#include "base/named_values.h"
#include "measure/scaling.h"
#include "run/variable_axis.h"

namespace weir {

std::string way_of(const std::string& submit, int compute_units, const std::string& variables) {
  std::string way = compute_units == 0 ? submit : fmt::format("{} on {} units", submit, compute_units);
  return variables.empty() ? way : fmt::format("{}, {}", way, variables);
}

std::string submit_family(std::string_view name) {
  // The limit on commands in flight does not follow the stream count, so each limit is a separate curve.
  if (name.starts_with("scheduled:")) return std::string(name);
  const std::size_t first = name.find(':');
  if (name.substr(0, first) != "channel" || first == std::string_view::npos) return std::string(name.substr(0, first));
  return std::string(name.substr(0, name.find(':', first + 1)));
}

std::string curve_of(const std::string& submit, int compute_units, const std::string& variables) {
  return way_of(submit_family(submit), compute_units, variables);
}

int compute_units_asked(const Json& result) {
  const Json given = result["device"].value("compute_units", Json());
  const Json units = result["device"].value("compute_units_asked", given);
  return units.is_number_integer() ? units.get<int>() : 0;
}

Json scaling_of(const Json& results, const std::string& scaling) {
  std::map<std::string, std::vector<ScalingPoint>> by_way;
  for (const Json& result : results) {
    if (result["status"] == "failed") continue;
    const Json throughput = result["metrics"].value("throughput", Json());
    // threads:1, threads:2, ... are one curve: these counts follow the stream count up to their limit.
    const std::string submit = result["submit"].get<std::string>();
    if (throughput.is_object() && throughput.contains("value") && throughput["value"].is_number())
      by_way[curve_of(submit, compute_units_asked(result), variable_words(result))].push_back(
          {result["streams"].get<int>(), throughput["value"].get<double>()});
  }
  Json analyses = Json::object();
  for (const auto& [way, points] : by_way) {
    const ScalingAnalysis analysis = analyse_scaling(scaling_named(scaling).value_or(Scaling::grows), points);
    Json json = Json::object();
    json["meaning"] = analysis.meaning;
    json["rows"] = json_list(analysis.rows, [](const ScalingRow& row) {
      return WEIR_NAMED(row.streams, row.throughput, row.per_stream, row.speedup, row.efficiency, row.marginal);
    });
    json.update(WEIR_NAMED(analysis.best_streams, analysis.knee));
    json["knee_reason"] = analysis.knee ? Json(nullptr) : Json(analysis.knee_reason);
    json["usl"] = nullptr;
    json["usl_reason"] = analysis.usl ? Json(nullptr) : Json(analysis.usl_reason);
    if (analysis.usl)
      json["usl"] =
          WEIR_NAMED(analysis.usl->gamma, analysis.usl->alpha, analysis.usl->beta, analysis.usl->r_squared,
                     analysis.usl->peak_streams, analysis.usl->peak_throughput, analysis.usl->is_peak_measured);
    analyses[way] = std::move(json);
  }
  return analyses;
}

}  // namespace weir
