#include "lab/conformance/conformance_document.h"

#include <utility>

#include "base/clock.h"
#include "base/named_values.h"
#include "base/schemas.h"

namespace weir {
namespace {

using conformance::CaseOutcome;
using conformance::CaseResult;
using conformance::ConformanceResults;

constexpr const char* kKeys[] = {"passed", "skipped", "failed", "not_run"};  // by status

const char* key_of(const CaseResult& result) { return kKeys[static_cast<int>(result.outcome.status)]; }

Json count_of(std::span<const CaseResult> results) {
  Json counts = Json::object();
  counts["cases"] = results.size();
  for (const char* key : kKeys) counts[key] = 0;
  double seconds = 0;
  for (const CaseResult& result : results) {
    Json& count = counts[key_of(result)];
    count = count.get<int>() + 1;
    seconds += result.seconds;
  }
  counts["duration_ns"] = seconds * 1e9;
  return counts;
}

Json groups_of(std::span<const CaseResult> results) {
  Json groups = Json::array();
  for (std::size_t begin = 0, end = 0; begin < results.size(); begin = end) {
    while (end < results.size() && results[end].which->group == results[begin].which->group) ++end;
    Json group = {{"name", results[begin].which->group}};
    group.update(count_of(results.subspan(begin, end - begin)));
    groups.push_back(std::move(group));
  }
  return groups;
}

Json capabilities_of(const DeviceInfo& info) {
  Json all = Json::object();
  const auto add = [&](const char* name, const Capability& capability) {
    all[name] = {{"is_offered", capability.is_offered},
                 {"reason", capability.is_offered ? Json() : Json(capability.reason)}};
  };
  add("graphs", info.graphs);
  add("priorities", info.priorities);
  add("host_functions", info.host_functions);
  add("host_memory", info.host_memory);
  add("kernel_clock", info.kernel_clock);
  add("compute_units", info.compute_units);
  return all;
}

Json to_json(const ConformanceResults& report) {
  Json device = Json::object();
  device["device"] = weir::to_json(report.info);
  device["capabilities"] = capabilities_of(report.info);
  device.update(WEIR_NAMED(report.has_passed(), report.is_interrupted, text_or_null(report.lost)));
  device["counts"] = count_of(report.results);
  device["groups"] = groups_of(report.results);
  Json cases = Json::array();
  for (const CaseResult& result : report.results)
    cases.push_back(WEIR_NAMED(result.which->group, result.which->name, named("outcome", key_of(result)),
                               text_or_null(result.outcome.text), named("duration_ns", result.seconds * 1e9)));
  device["cases"] = std::move(cases);
  return device;
}

}  // namespace

Json conformance_document(const ConformanceRun& run, const RunContext& context) {
  Json document =
      WEIR_NAMED(named("schema", schemas::conformance), named("created", wall_time()), context.command_line,
                 context.environment, named("status", run.is_interrupted ? "interrupted" : "complete"), run.filters);
  document["devices"] = json_list(run.reports, [](const ConformanceResults& report) { return to_json(report); });
  document["not_opened"] = Json::array();
  for (const auto& [device, reason] : run.not_opened) document["not_opened"].push_back(WEIR_NAMED(device, reason));
  return document;
}

}  // namespace weir
