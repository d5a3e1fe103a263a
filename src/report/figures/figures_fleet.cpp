// Figures of fleets: what a node measured (weir.fleet_probe), and what was said of all of them (weir.fleet). The two
// share no metric, so that a node and whoever compares may both export to one Prometheus.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>

#include "base/error.h"
#include "report/figures/figures_row.h"
#include "report/text/fields.h"

namespace weir::figures {
namespace {

using namespace fields;

constexpr std::size_t kMostHolders = 20;  // values of one setting; more are no setting
constexpr std::size_t kMostDifferences = 50;

// One metric per unit; the label `figure` says what was measured.
struct FigureUnit {
  std::string_view unit;  // as in documents
  const char *name, *low, *high;
  const char* base_unit;
  double scale;
};
constexpr std::array kUnits = {
    FigureUnit{"ns", "time", "time_low", "time_high", "seconds", kFromNs},
    FigureUnit{"B/s", "bytes_per_second", "bytes_low_per_second", "bytes_high_per_second", "", 1},
    FigureUnit{"flop/s", "flop_per_second", "flop_low_per_second", "flop_high_per_second", "", 1},
    FigureUnit{"MHz", "clock", "clock_low", "clock_high", "hertz", 1e6},
    FigureUnit{"W", "power", "power_low", "power_high", "watts", 1},
    FigureUnit{"C", "temperature", "temperature_low", "temperature_high", "celsius", 1},
    FigureUnit{"lanes", "reading", "reading_low", "reading_high", "", 1},
    FigureUnit{"count", "reading", "reading_low", "reading_high", "", 1},
};

constexpr std::array kKinds = {"wrong", "slow", "fault", "different", "link", "missing", "changed"};

FigureRow begun_fleet(const Json& document, const char* group) {
  FigureRow row;
  row.group = group;
  row.created = label(at(document, {"created"}));
  row.status = "complete";
  return row;
}

void fail(FigureRow& row, std::string why) {
  row.is_failed = true;
  row.status = "failed";
  row.failure = std::move(why);
}

void add_figure(FigureRow& row, const Json& figure) {
  const std::string unit = label(at(figure, {"unit"}));
  const auto* const known =
      std::find_if(kUnits.begin(), kUnits.end(), [&](const FigureUnit& each) { return each.unit == unit; });
  if (known == kUnits.end() || !at(figure, {"name"}).is_string()) return;
  Labels labels = {{"figure", label(at(figure, {"name"}))}};
  if (const Json& to = at(figure, {"to"}); to.is_string()) labels.emplace_back("to", label(to));
  add(row, known->name, known->base_unit, "Median of what was measured of a device, by figure.",
      number(figure, {"value"}), known->scale, labels);
  if (const auto ends = interval(figure, {"range"})) {
    add(row, known->low, known->base_unit, "Least that a repetition may show.", ends->first, known->scale, labels);
    add(row, known->high, known->base_unit, "Most that a repetition may show.", ends->second, known->scale, labels);
  }
  std::string series = labels[0].second;
  if (labels.size() > 1) series += "_" + labels[1].second;
  const std::string rate = *known->base_unit == '\0' ? known->name : known->base_unit;
  add_series(row, series.c_str(), rate.c_str(), at(figure, {"samples"}), known->scale);
}

FigureRow probe_device_row(const Json& document, const Json& device) {
  FigureRow row = begun_fleet(document, "fleet_probe_device");
  row.labels = {{"node", label(at(document, {"name"}))},
                {"device", label(at(device, {"name"}))},
                {"serial", label(at(device, {"serial"}))},
                {"model", label(at(device, {"model"}))}};
  const Json& wrong = list(device, {"wrong"});
  if (at(device, {"failure"}).is_string()) {
    fail(row, label(at(device, {"failure"})));
  } else if (!wrong.empty()) {
    fail(row, label(wrong.front()));
  }
  add(row, "wrong_outputs", "", "Outputs of the device that were not right.", static_cast<double>(wrong.size()));
  for (const Json& reason : list(device, {"throttle"}))
    add(row, "throttled", "", "1 for each reason for a lower clock that was active under load.", 1, 1,
        {{"reason", label(reason)}});
  for (const Json& figure : list(device, {"figures"})) add_figure(row, figure);
  return row;
}

FigureRow fleet_row(const Json& document) {
  FigureRow row = begun_fleet(document, "fleet");
  add(row, "nodes", "", "Nodes that were compared.", number(document, {"nodes"}));
  add(row, "devices", "", "Devices that were compared.", number(document, {"devices"}));
  const Json& findings = list(document, {"findings"});
  for (const char* kind : kKinds)
    add(row, "findings", "", "What is wrong with devices, nodes and links, by kind.",
        static_cast<double>(std::count_if(findings.begin(), findings.end(),
                                          [&](const Json& each) { return at(each, {"kind"}) == kind; })),
        1, {{"kind", kind}});
  for (const Json& difference : first(list(document, {"differences"}), kMostDifferences))
    for (const Json& value : first(list(difference, {"values"}), kMostHolders))
      add(row, "holders", "", "Nodes or devices by the value of a setting that is not the same everywhere.",
          number(value, {"count"}), 1,
          {{"setting", label(at(difference, {"name"}))}, {"value", label(at(value, {"value"}))}});
  return row;
}

// Figure -> median, of each group.
std::vector<std::map<std::string, double>> typical_of(const Json& document) {
  std::vector<std::map<std::string, double>> typical;
  for (const Json& group : list(document, {"groups"})) {
    auto& medians = typical.emplace_back();
    for (const Json& figure : list(group, {"figures"}))
      if (const auto median = number(figure, {"p50"}); median && *median > 0)
        medians[label(at(figure, {"name"}))] = *median;
  }
  return typical;
}

using DeviceKinds = std::map<std::pair<std::string, std::string>, std::map<std::string, double>>;

FigureRow fleet_device_row(const Json& document, const Json& place, const Json& models,
                           const std::vector<std::map<std::string, double>>& typical, const DeviceKinds& kinds) {
  FigureRow row = begun_fleet(document, "fleet_device");
  const auto group = number(place, {"group"});
  const bool is_known = group && *group >= 0 && *group < static_cast<double>(typical.size());
  const auto index = is_known ? static_cast<std::size_t>(*group) : 0;
  row.labels = {{"node", label(at(place, {"node"}))},
                {"device", label(at(place, {"device"}))},
                {"serial", label(at(place, {"serial"}))},
                {"model", is_known ? label(at(models[index], {"model"})) : ""}};
  add(row, "fit", "", "1 where nothing is wrong with the device, 0 where its node should not get jobs.",
      is_true(place, {"is_fit"}) ? 1 : 0);
  if (const auto found = kinds.find({row.labels[0].second, row.labels[1].second}); found != kinds.end())
    for (const auto& [kind, count] : found->second)
      add(row, "findings", "", "What is wrong with the device, by kind; absent: nothing.", count, 1, {{"kind", kind}});
  if (!is_known) return row;
  const Json& figures = list(document, {"grid", "figures"});
  const Json& values = list(place, {"values"});
  for (std::size_t i = 0; i < figures.size() && i < values.size(); ++i) {
    const Json& goal = at(figures[i], {"goal"});
    if ((goal != "lower" && goal != "higher") || !values[i].is_number()) continue;
    const std::string name = label(at(figures[i], {"name"}));
    const auto median = typical[index].find(name);
    if (median == typical[index].end()) continue;
    add(row, "relative", "ratio", "A figure over the median of its peers; the label goal says which end is good.",
        values[i].get<double>() / median->second, 1, {{"figure", name}, {"goal", label(goal)}});
  }
  return row;
}

}  // namespace

std::vector<FigureRow> of_fleet_probe(const Json& document, const std::string& name) {
  if (!at(document, {"name"}).is_string())
    reject(fmt::format("{}: does not name its node", name), "Name files that weir wrote, unchanged.");
  std::vector<FigureRow> rows;
  FigureRow& node = rows.emplace_back(begun_fleet(document, "fleet_probe"));
  node.labels = {{"node", label(at(document, {"name"}))}};
  if (at(document, {"failure"}).is_string()) fail(node, label(at(document, {"failure"})));
  add(node, "devices", "", "Devices of the node that were examined.",
      static_cast<double>(list(document, {"devices"}).size()));
  add(node, "duration", "seconds", "What the probe took.", number(document, {"duration_ns"}), kFromNs);
  for (const Json& device : list(document, {"devices"})) rows.push_back(probe_device_row(document, device));
  return rows;
}

std::vector<FigureRow> of_fleet(const Json& document, const std::string& name) {
  for (const char* key : {"findings", "verdicts"})
    if (!at(document, {key}).is_array())
      reject(fmt::format("{}: '{}' is not a list", name, key), "Name files that weir wrote, unchanged.");
  std::vector<FigureRow> rows;
  rows.push_back(fleet_row(document));
  std::map<std::string, std::map<std::string, double>> of_node;
  DeviceKinds of_device;
  for (const Json& finding : list(document, {"findings"}))
    for (const char* kind : kKinds) {
      if (at(finding, {"kind"}) != kind) continue;
      const std::string node = label(at(finding, {"node"}));
      ++of_node[node][kind];
      if (at(finding, {"device"}).is_string()) ++of_device[{node, label(at(finding, {"device"}))}][kind];
    }
  for (const Json& verdict : list(document, {"verdicts"})) {
    FigureRow& row = rows.emplace_back(begun_fleet(document, "fleet_node"));
    row.labels = {{"node", label(at(verdict, {"name"}))}};
    add(row, "fit", "", "1 where the node may get jobs, 0 where it should not.", is_true(verdict, {"is_fit"}) ? 1 : 0);
    for (const auto& [kind, count] : of_node[row.labels[0].second])
      add(row, "findings", "", "What is wrong with the node, its devices and links, by kind; absent: nothing.", count,
          1, {{"kind", kind}});
  }
  const auto typical = typical_of(document);
  const Json& groups = list(document, {"groups"});
  for (const Json& place : list(document, {"grid", "rows"}))
    rows.push_back(fleet_device_row(document, place, groups, typical, of_device));
  return rows;
}

}  // namespace weir::figures
