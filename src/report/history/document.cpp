#include "report/history/document.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "base/named_values.h"
#include "base/options.h"
#include "base/schemas.h"
#include "base/text_gate.h"

namespace weir::history {
namespace {

Json interval_json(const Measure& measure) {
  if (!measure.low || !measure.high) return nullptr;
  return Json::array({number_or_null(measure.low), number_or_null(measure.high)});
}

Json measure_json(const Measure& measure) {
  return WEIR_NAMED(text_or_null(measure.unit), named("p50", measure.median), named("interval", interval_json(measure)),
                    measure.count, named("reason", measure.median ? Json() : Json(measure.reason)));
}

Json machine_json(const Machine& machine) { return WEIR_NAMED(machine.id, machine.label, machine.facts); }

Json entry_json(const Entry& entry) {
  return WEIR_NAMED(entry.id, entry.added, text_or_null(entry.tag), text_or_null(entry.commit),
                    text_or_null(entry.commit_basis),
                    named("weir", {{"version", entry.weir_version}, {"commit", entry.weir_commit}}), entry.points,
                    entry.failed, entry.machines, entry.workloads);
}

Json document_of(const char* kind, const Store& store) {
  return {{"schema", schemas::history}, {"kind", kind}, {"file", store.name()}};
}

Json change_json(const Series& series, const ChangePoint& change) {
  const Point& before = series.points[change.index - 1];
  const Point& after = series.points[change.index];
  return {{"index", change.index},
          {"ratio", change.ratio},
          {"p", change.p},
          {"verdict", series.is_worse(change) ? "slower" : "faster"},
          {"before", {{"p50", change.before}}},
          {"after", {{"p50", change.after}}},
          {"last_before", WEIR_NAMED(before.at, text_or_null(before.commit), before.entry)},
          {"first_after", WEIR_NAMED(after.at, text_or_null(after.commit), after.entry)}};
}

// What may explain a change: facts that do not separate machines, where they changed at the same point.
Json explanations(Store& store, const Series& series, const ChangePoint& change) {
  Json found = Json::array();
  const Point& before = series.points[change.index - 1];
  const Point& after = series.points[change.index];
  if (before.weir_version != after.weir_version)
    found.push_back({{"fact", "weir"}, {"before", before.weir_version}, {"after", after.weir_version}});
  if (before.conditions == after.conditions) return found;
  const auto was = store.conditions(before.conditions), is = store.conditions(after.conditions);
  const auto compare = [&](const Json& old_facts, const Json& new_facts, const std::string& fact) {
    const Json &one = member(old_facts, fact), &two = member(new_facts, fact);
    if (one != two && one.is_string() && two.is_string())
      found.push_back({{"fact", fact}, {"before", one}, {"after", two}});
  };
  // Of a fleet's device nearly everything may change while it stays the same device.
  if (before.workload().starts_with("fleet/")) {
    for (const auto& [fact, value] : was.first.items()) compare(was.first, is.first, std::string(fact));
    for (const auto& [fact, value] : was.second.items()) compare(was.second, is.second, std::string(fact));
  } else {
    for (const char* fact : {"system", "kernel", "compiler"}) compare(was.second, is.second, fact);
  }
  return found;
}

Json series_json(Store& store, const Series& series) {
  Json points = Json::array(), failed = Json::array(), changes = Json::array();
  for (const Point& point : series.points) {
    const Measure& measure = series.measure(point);
    points.push_back(WEIR_NAMED(point.at, text_or_null(point.commit), text_or_null(point.tag), point.entry,
                                named("p50", measure.median), named("interval", interval_json(measure)),
                                measure.count));
  }
  for (const Point& point : series.failed)
    failed.push_back(WEIR_NAMED(point.at, text_or_null(point.commit), text_or_null(point.tag), point.entry,
                                named("reason", point.failure)));
  for (const ChangePoint& change : series.judged.changes) {
    Json json = change_json(series, change);
    json["explanations"] = explanations(store, series, change);
    changes.push_back(std::move(json));
  }
  const auto& drift = series.judged.drift;
  return WEIR_NAMED(series.title, named("machine", series.machine.id), named("workload", series.key.at("workload")),
                    series.key, series.metric, text_or_null(series.unit), series.is_less_better, std::move(points),
                    std::move(failed), std::move(changes), named("changes_reason", text_or_null(series.judged.reason)),
                    named("drift", drift ? WEIR_NAMED(drift->change, drift->p) : Json()), series.notes);
}

// With several machines: how each differs from the first, so that the user sees why there are several.
Json differences(const Machine& first, const Machine& other) {
  Json found = Json::array();
  const auto value = [](const Machine& machine, const std::string& fact) {
    const auto at = machine.facts.find(fact);
    return at == machine.facts.end() ? Json() : Json(at->second);
  };
  for (const auto& [fact, was] : first.facts)
    if (const Json is = value(other, fact); is != Json(was))
      found.push_back({{"fact", fact}, {"first", was}, {"this", is}});
  for (const auto& [fact, is] : other.facts)
    if (!first.facts.contains(fact)) found.push_back({{"fact", fact}, {"first", nullptr}, {"this", is}});
  return found;
}

Json gate_json(const std::vector<Series>& all, std::size_t within) {
  Json failures = Json::array();
  std::size_t unjudged = 0;
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (const ChangePoint* const change = all[i].late_regression(within))
      failures.push_back({{"series", i}, {"reason", "regressed"}, {"ratio", change->ratio}});
    else if (all[i].has_failed_last())
      failures.push_back({{"series", i}, {"reason", "the newest run failed"}, {"ratio", nullptr}});
    else if (!all[i].judged.reason.empty())
      ++unjudged;
  }
  const bool is_held = failures.empty();
  return WEIR_NAMED(within, is_held, std::move(failures), unjudged);
}

[[noreturn]] void reject_empty(Store& store, const HistorySelection& selection) {
  const std::vector<std::string> names = store.workloads();
  std::string all;
  for (const std::string& name : names)
    if (all.size() < 300) all += (all.empty() ? "" : ", ") + name;
  if (std::find(names.begin(), names.end(), selection.workload) == names.end())
    reject(fmt::format("{}: has no workload '{}'", store.name(), selection.workload),
           all.empty() ? "The history is empty." : fmt::format("It has: {}.", all));
  reject(fmt::format("{}: nothing of '{}' fits the selection", store.name(), selection.workload),
         "Leave out --streams, --param, --key or --machine to see what there is.");
}

}  // namespace

Json added_document(const Store& store, const Added& added, const AddOptions& options, const Intake& intake) {
  Json json = document_of("add", store);
  json.update(WEIR_NAMED(added.entry, text_or_null(options.commit), text_or_null(options.commit_basis),
                         text_or_null(options.tag), added.points, added.failed, added.known, added.known_entries,
                         added.documents));
  std::map<std::string, std::string> labels;
  for (const NewPoint& point : intake.points) labels[point.machine.id] = point.machine.label;
  json["machines"] = Json::array();
  for (const auto& [id, label] : labels) json["machines"].push_back(WEIR_NAMED(id, label));
  json["notes"] = intake.notes;
  return json;
}

Json list_document(Store& store, const EntryFilter& filter) {
  Json json = document_of("list", store);
  json["size_bytes"] = store.size_bytes();
  json["machines"] = json_list(store.machines(), machine_json);
  json["entries"] = json_list(store.entries(filter), entry_json);
  return json;
}

Json show_document(Store& store, std::int64_t id) {
  EntryFilter wanted;
  wanted.id = id;
  const std::vector<Entry> entries = store.entries(wanted);
  if (entries.empty()) reject(fmt::format("{}: has no entry {}", store.name(), id), "`weir history list` shows them.");
  Json json = document_of("show", store);
  json["entry"] = entry_json(entries[0]);
  json["machines"] = Json::array();
  for (const Machine& machine : store.machines())
    if (std::find(entries[0].machines.begin(), entries[0].machines.end(), machine.id) != entries[0].machines.end())
      json["machines"].push_back(machine_json(machine));
  json["points"] = Json::array();
  PointFilter filter;
  filter.entry = id;
  for (const Point& point : store.points(filter))
    json["points"].push_back(WEIR_NAMED(
        point.workload(), point.key, point.machine, text_or_null(point.measured),
        named("weir", {{"version", text_or_null(point.weir_version)}, {"commit", text_or_null(point.weir_commit)}}),
        point.origin, text_or_null(point.failure), measure_json(point.latency), measure_json(point.throughput)));
  return json;
}

Json trend_document(Store& store, const TrendOptions& options) {
  const std::vector<Series> all = make_series(store, options.selection, options.changes);
  if (all.empty()) reject_empty(store, options.selection);
  Json json = document_of("trend", store);
  json["selection"] = WEIR_NAMED(options.selection.workload, text_or_null(options.selection.metric),
                                 text_or_null(options.selection.machine), options.selection.key);
  json["method"] = WEIR_NAMED(options.changes.threshold, options.changes.significance, options.changes.permutations,
                              options.changes.seed, named("fewest_per_level", kMinPerLevel));
  json["machines"] = Json::array();
  std::vector<const Machine*> machines;
  for (const Series& series : all)
    if (std::none_of(machines.begin(), machines.end(),
                     [&](const Machine* one) { return one->id == series.machine.id; }))
      machines.push_back(&series.machine);
  for (const Machine* const machine : machines) {
    Json each = machine_json(*machine);
    each["differs_from_first"] = differences(*machines.front(), *machine);
    json["machines"].push_back(std::move(each));
  }
  json["series"] = json_list(all, [&](const Series& series) { return series_json(store, series); });
  json["gate"] = options.is_gate ? gate_json(all, options.within) : Json();
  return json;
}

int gate_code(const Json& trend) {
  const Json& gate = trend.at("gate");
  return gate.is_object() && !gate.at("is_held").get<bool>() ? 3 : 0;
}

std::string points_csv(Store& store, const PointFilter& filter) {
  std::string csv =
      "entry,at,commit,tag,machine,machine_label,workload,key,failure,latency_ns,latency_low_ns,latency_high_ns,"
      "latency_count,throughput,throughput_unit,throughput_low,throughput_high,throughput_count,weir_version\n";
  std::map<std::string, std::string> labels;
  for (const Machine& machine : store.machines()) labels[machine.id] = machine.label;
  for (const Point& point : store.points(filter)) {
    std::string key;
    for (const auto& [name, value] : point.key)
      if (name != "workload") key += fmt::format("{}{}={}", key.empty() ? "" : " ", name, value);
    csv += CsvLine(point.entry, point.at, point.commit, point.tag, point.machine, labels[point.machine],
                   point.workload(), key, point.failure, point.latency.median, point.latency.low, point.latency.high,
                   point.latency.count, point.throughput.median, point.throughput.unit, point.throughput.low,
                   point.throughput.high, point.throughput.count, point.weir_version)
               .text() +
           "\n";
  }
  return csv;
}

}  // namespace weir::history
