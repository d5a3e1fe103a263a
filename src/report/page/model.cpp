#include "report/page/model.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "base/named_values.h"
#include "report/page/values.h"
#include "report/text/analysis_sections.h"
#include "report/text/module_tree.h"

namespace weir::page {
namespace {

constexpr std::size_t kMaxModules = 400, kMaxOperators = 40, kMaxSteps = 200, kMaxPhases = 16, kMaxCollectives = 32;

Json share_of(double ns, double all_ns) { return all_ns > 0 ? Json(std::min(1.0, ns / all_ns)) : Json(nullptr); }

double ns_of(const Json& json, const char* key = "total_ns") { return values::amount(json, {key}).value_or(0); }

Json use_of(const Json& work, double all_ns) {
  return {{"commands", values::count(work, {"commands"})},
          {"total_ns", ns_of(work)},
          {"share", share_of(ns_of(work), all_ns)}};
}

Json phases_of(const Json& model, double all_ns) {
  Json phases = Json::array();
  for (const Json& each : values::list(model, {"phases"})) {
    if (phases.size() == kMaxPhases) break;
    if (values::count(each, {"commands"}) == 0) continue;
    Json phase = {{"phase", values::word(each, {"phase"}, "unknown")}};
    phase.update(use_of(each, all_ns));
    phases.push_back(std::move(phase));
  }
  return phases;
}

Json steps_of(const Json& model) {
  Json steps = Json::array();
  for (const Json& each : values::list(model, {"steps", "list"})) {
    if (steps.size() == kMaxSteps) break;
    Json step = {{"name", values::word(each, {"name"}, "without a name")}};
    for (const char* key : {"total_ns", "forward_ns", "backward_ns", "optimizer_ns", "other_ns"})
      step[key] = ns_of(each, key);
    steps.push_back(std::move(step));
  }
  return steps;
}

// Why there are no figures for an operator, unless its own entry says so.
std::string efficiency_reason(const Json& device) {
  const std::string reason = values::word(device, {"unavailable", "efficiency"});
  if (!reason.empty()) return reason;
  if (!values::at(device, {"efficiency"}).is_object()) return "the document does not have the efficiency of operators";
  return "the document has no figures of this operator: it communicates, or others could save more";
}

// Operators by shapes; those whose efficiency is known have it beside them.
Json operators_of(const Json& device, double all_ns) {
  using Key = std::pair<std::string, std::string>;
  const auto key_of = [](const Json& each) {
    return Key(values::word(each, {"name"}), values::word(each, {"shapes"}));
  };
  std::map<Key, const Json*> judged;
  for (const Json& each : values::list(device, {"efficiency", "top"})) judged.try_emplace(key_of(each), &each);
  const std::string reason = efficiency_reason(device);
  Json operators = Json::array();
  for (const Json& each : values::list(device, {"model", "shapes", "top"})) {
    if (operators.size() == kMaxOperators) break;
    const auto found = judged.find(key_of(each));
    static const Json kNone;
    const Json& own = found != judged.end() ? *found->second : kNone;
    const auto flop_per_s = values::amount(own, {"flop_per_s"}), bytes_per_s = values::amount(own, {"bytes_per_s"});
    const auto of_peak = values::amount(own, {"share"}, 1e3);
    Json one = {{"name", values::word_or_null(each, {"name"})},
                {"call", values::word_or_null(each, {"call"})},
                {"shapes", values::word_or_null(each, {"shapes"})},
                {"calls", number_or_null(values::amount(each, {"calls"}))},
                {"total_ns", ns_of(each)},
                {"share", share_of(ns_of(each), all_ns)},
                {"flop_per_s", number_or_null(flop_per_s)},
                {"bytes_per_s", number_or_null(bytes_per_s)},
                {"share_of_peak", number_or_null(of_peak)},
                {"bound", values::word_or_null(own, {"bound"})},
                {"saved_ns", values::duration(own, {"saved_ns"})}};
    one["reason"] = own.is_null() ? Json(reason) : values::word_or_null(own, {"reason"});
    operators.push_back(std::move(one));
  }
  return operators;
}

// Those with most time, each kind by size, as the terminal has them.
Json collectives_of(const Json& classes) {
  Json found = Json::array();
  for (const Json& each : classes) {
    if (found.size() == kMaxCollectives) break;
    found.push_back({{"collective", values::word(each, {"kind"}, "unknown")},
                     {"from_bytes", number_or_null(values::amount(each, {"from_bytes"}))},
                     {"ranks", number_or_null(values::amount(each, {"ranks"}))},
                     {"count", values::count(each, {"count"})},
                     {"total_ns", ns_of(each)},
                     {"duration_ns", {{"p50", values::duration(each, {"duration_ns", "p50"})}}}});
    for (const char* key : {"algorithm_bytes_per_s", "bus_bytes_per_s", "best_bus_bytes_per_s"})
      found.back()[key] = number_or_null(values::amount(each, {key}));
  }
  std::stable_sort(found.begin(), found.end(), [](const Json& a, const Json& b) {
    const auto order = [](const Json& each) {
      return std::pair(values::word(each, {"collective"}), ns_of(each, "from_bytes"));
    };
    return order(a) < order(b);
  });
  return found;
}

Json memory_of(const Json& device) {
  const Json& memory = values::at(device, {"memory"});
  if (!memory.is_object()) return nullptr;
  Json found = {{"allocations", values::count(memory, {"allocations"})},
                {"frees", values::count(memory, {"frees"})},
                {"allocated_bytes", number_or_null(values::amount(memory, {"allocated_bytes"}))}};
  for (const char* which : {"allocated", "reserved"}) {
    const Json& peak = values::at(memory, {which});
    found[which] = {{"bytes", number_or_null(values::amount(peak, {"bytes"}))},
                    {"at_ns", values::number(peak, {"at_ns"})},
                    {"words", text_or_null(analysis::peak_words(peak))}};
  }
  const Json& steps = values::at(memory, {"steps"});
  found["steps"] = Json::array();
  for (const Json& each : values::list(steps, {"list"})) {
    if (found["steps"].size() == kMaxSteps) break;
    found["steps"].push_back({{"name", values::word(each, {"name"}, "without a name")},
                              {"peak_bytes", number_or_null(values::amount(each, {"peak_bytes"}))},
                              {"end_bytes", number_or_null(values::amount(each, {"end_bytes"}))}});
  }
  found["growth"] = text_or_null(analysis::growth_sentence(steps));
  return found;
}

}  // namespace

std::string add_model(Page& page, std::size_t source, const std::string& title, const Json& device) {
  const Json& model = values::at(device, {"model"});
  const Json& classes = values::list(device, {"collectives", "classes"});
  Json memory = memory_of(device);
  if (!model.is_object() && classes.empty() && memory.is_null()) return {};
  const double all_ns = ns_of(model);
  Json item = page.item("models", title, source, page.environment_of(source));
  item["commands"] = values::count(model, {"commands"});
  item["total_ns"] = all_ns;
  item["phases"] = phases_of(model, all_ns);
  item["steps"] = steps_of(model);

  const Json& modules = values::at(model, {"modules"});
  const analysis::ModuleRows found = analysis::module_rows(modules, all_ns, kMaxModules);
  item["modules"] = json_list(found.rows, [&](const analysis::ModuleRow& row) -> Json {
    return {{"name", row.words()},
            {"parent", or_null(row.parent)},
            {"commands", row.commands},
            {"total_ns", row.total_ns},
            {"own_ns", row.own_ns},
            {"backward_ns", row.backward_ns},
            {"share", share_of(row.total_ns, all_ns)}};
  });
  item["modules_left_out"] = found.left_out;
  item["modules_left_out_ns"] = found.left_out_ns + ns_of(modules, "rest_ns");
  item["without_module"] = use_of(values::at(modules, {"without"}), all_ns);
  item["modules_reason"] =
      modules.is_object() ? Json(nullptr)
                          : Json(values::word(device, {"unavailable", "model.modules"}, "the source names no modules"));

  const Json& shapes = values::at(model, {"shapes"});
  item["operators"] = operators_of(device, all_ns);
  double shown_ns = 0;
  for (const Json& each : item["operators"]) shown_ns += each["total_ns"].get<double>();
  double outside_ns = 0;
  for (const char* which : {"outside", "without_call"}) outside_ns += ns_of(values::at(shapes, {which}));
  const std::size_t listed = item["operators"].size();
  item["operators_left_out"] = std::max<std::uint64_t>(values::count(shapes, {"count"}), listed) - listed;
  item["operators_left_out_ns"] = std::max(0.0, all_ns - shown_ns - outside_ns);
  item["outside_ns"] = outside_ns;

  const Json& peaks = values::at(device, {"efficiency", "peaks"});
  item["peaks"] = peaks.is_object() ? Json(fmt::format("{} ({})", values::word(peaks, {"model"}, "the device"),
                                                       values::word(peaks, {"source"}, "no source")))
                                    : Json(nullptr);
  item["saved_ns"] = values::duration(device, {"efficiency", "saved_ns"});
  item["efficiency_reason"] =
      peaks.is_object() ? Json(nullptr)
                        : Json(values::word(device, {"efficiency", "peaks_reason"}, efficiency_reason(device)));

  item["collectives"] = collectives_of(classes);
  item["collectives_left_out"] = classes.size() - item["collectives"].size();
  item["bandwidth_reason"] = values::word_or_null(device, {"unavailable", "collectives.bandwidth"});
  item["memory"] = std::move(memory);
  return page.add("models", std::move(item));
}

}  // namespace weir::page
