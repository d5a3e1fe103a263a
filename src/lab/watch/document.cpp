#include "lab/watch/document.h"

#include "base/named_values.h"
#include "base/schemas.h"

namespace weir::watch {
namespace {

// Adds a figure as a member; if it is missing or a bound, adds the reason under its name in `unavailable` or
// `at_least`.
void add(Json& json, const char* name, const SampleValue& figure) {
  json[name] = number_or_null(figure.value);
  if (!figure.value) {
    json["unavailable"][name] = figure.reason;
  } else if (figure.is_at_least) {
    json["at_least"][name] = figure.reason;
  }
}

Json row_json(const Row& row) {
  Json json = WEIR_NAMED(row.key, row.label, row.device, row.kind, row.pid, named("active", row.is_active),
                         named("mapped", row.is_mapped), named("preempted", row.is_preempted),
                         named("unavailable", Json::object()), named("at_least", Json::object()));
  if (!row.is_active) json["unavailable"]["active"] = row.active_reason;
  add(json, "backlog", row.backlog);
  add(json, "most_backlog", row.most_backlog);
  add(json, "priority", row.priority);
  json["priority_text"] = text_or_null(row.priority_text);
  add(json, "streams", row.streams);
  add(json, "kernels_per_s", row.kernels_per_s);
  add(json, "commands_per_s", row.commands_per_s);
  add(json, "packets_per_s", row.packets_per_s);
  add(json, "busy", row.busy);
  return json;
}

Json process_json(const ProcessUse& use) {
  Json json = WEIR_NAMED(use.pid, text_or_null(use.name), use.device, named("unavailable", Json::object()));
  add(json, "memory_bytes", use.memory_bytes);
  add(json, "compute_units", use.compute_units);
  add(json, "busy", use.busy);
  add(json, "evictions", use.evictions);
  add(json, "evicted_ns", use.evicted_ns);
  return json;
}

}  // namespace

Json watch_document(const Sample& sample, std::int64_t interval_ns, const std::string& created) {
  Json json = WEIR_NAMED(named("schema", schemas::watch), created, sample.source, text_or_null(sample.device),
                         text_or_null(sample.model), text_or_null(sample.workload), named("sample", sample.number),
                         time_or_null(sample.taken_ns), interval_ns, sample.window_ns,
                         named("clock", sample.is_virtual ? "virtual" : "host"),
                         named("backlog_unit", sample.unit == Unit::packets ? "packets" : "commands"));
  Json facts = Json::array();
  for (const Fact& fact : sample.facts)
    facts.push_back(WEIR_NAMED(fact.name, fact.unit, text_or_null(fact.device), named("meaning", fact.help),
                               fact.figure.value, text_or_null(fact.figure.reason)));
  json["facts"] = std::move(facts);
  json["processes"] = json_list(sample.processes, process_json);
  Json queues = json_list(sample.rows, row_json);
  json["queues"] = std::move(queues);
  Json missing = Json::array();
  for (const Missing& part : sample.missing)
    missing.push_back(WEIR_NAMED(part.part, part.path, part.reason, part.hint));
  json.update(WEIR_NAMED(std::move(missing), sample.notes));
  return json;
}

}  // namespace weir::watch
