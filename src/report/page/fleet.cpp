// weir.fleet/1: which devices and nodes of a fleet are slow, wrong or set differently: the map of all values, the
// findings, and what differs. Knows the document; judges nothing.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <numeric>
#include <set>

#include "base/named_values.h"
#include "base/units.h"
#include "report/page/list.h"
#include "report/page/packed_bytes.h"
#include "report/page/values.h"

namespace weir::page {
namespace {

constexpr std::size_t kMaxFigures = 64, kMaxPeerGroups = 64, kMaxNodeDevices = 64;
constexpr std::size_t kMaxMapRows = 32'768;  // devices on the map; those that are named stay
constexpr std::size_t kMaxListed = 500;      // findings and unfit nodes
constexpr std::size_t kMaxDifferences = 64, kMaxHeldValues = 16, kMaxHolders = 8, kMaxFleetNotes = 50;
constexpr std::size_t kMaxKindFindings = 4;  // of one kind in the report's verdict; the section has all

// The worst first: kind, what one is, what several are. A place is a finding of its own: all nodes there are slow.
struct KindWords {
  const char *name, *one, *several;
};
constexpr std::array kKindWords = {
    KindWords{"wrong", "device computes something wrong", "devices compute something wrong"},
    KindWords{"fault", "device counts errors", "devices count errors"},
    KindWords{"slow", "device is slow", "devices are slow"},
    KindWords{"place", "place is slow as a whole", "places are slow as a whole"},
    KindWords{"link", "link is slow", "links are slow"},
    KindWords{"changed", "device became slower", "devices became slower"},
    KindWords{"missing", "was not examined", "were not examined"},
    KindWords{"different", "setting or version differs", "settings or versions differ"},
};

const KindWords& kind_of(const Json& finding) {
  const bool is_place = !values::word(finding, {"place"}).empty();
  const std::string name = is_place ? "place" : values::word(finding, {"kind"});
  const auto* const found =
      std::find_if(kKindWords.begin(), kKindWords.end(), [&](const KindWords& kind) { return name == kind.name; });
  return found == kKindWords.end() ? kKindWords[2] : *found;
}

std::string goal_of(const Json& figure) {
  const std::string goal = values::word(figure, {"goal"});
  return goal == "lower" || goal == "higher" ? goal : "none";
}

// A device of the document that the map shows.
struct MapRow {
  const Json* json = nullptr;
  std::size_t node = 0, device = 0, group = 0;
};

// Names in the order of their first mention.
class NameNumbers {
 public:
  std::size_t number(const std::string& name) {
    const auto [found, is_new] = numbers_.try_emplace(name, names_.size());
    if (is_new) names_.push_back(name);
    return found->second;
  }
  bool has(const std::string& name) const { return numbers_.contains(name); }
  const std::vector<std::string>& all() const { return names_; }

 private:
  std::map<std::string, std::size_t> numbers_;
  std::vector<std::string> names_;
};

using DeviceName = std::pair<std::string, std::string>;  // its node's and its own

// The rows of the map, in document order; nodes and devices by number.
class FleetMap {
 public:
  explicit FleetMap(const Json& document) {
    std::set<DeviceName> named;
    for (const Json& finding : values::list(document, {"findings"}))
      named.emplace(values::word(finding, {"node"}), values::word(finding, {"device"}));
    const Json& rows = values::list(document, {"grid", "rows"});
    const std::size_t groups = std::min(values::list(document, {"groups"}).size(), kMaxPeerGroups);
    // Where there are too many, those that nothing is said of go first.
    std::size_t room = kMaxMapRows;
    std::vector<char> is_kept(rows.size(), 0);
    for (const bool is_named : {true, false})
      for (std::size_t i = 0; i < rows.size() && room > 0; ++i) {
        const DeviceName name{values::word(rows[i], {"node"}), values::word(rows[i], {"device"})};
        if (!rows[i].is_object() || is_kept[i] != 0 || named.contains(name) != is_named) continue;
        is_kept[i] = 1;
        --room;
      }
    for (std::size_t i = 0; i < rows.size(); ++i)
      if (is_kept[i] != 0) add(rows[i], groups);
    left_out_ = rows.size() - rows_.size();
  }

  std::optional<std::size_t> row_of(const std::string& node, const std::string& device) const {
    const auto found = places_.find({node, device});
    return found == places_.end() ? std::nullopt : std::optional(found->second);
  }
  const std::vector<MapRow>& rows() const { return rows_; }
  std::size_t left_out() const { return left_out_; }

  Json to_json() const {
    Json columns = {{"nodes", Json::array()},
                    {"devices", Json::array()},
                    {"groups", Json::array()},
                    {"serials", Json::array()},
                    {"unfit", Json::array()}};
    for (std::size_t i = 0; i < rows_.size(); ++i) {
      const MapRow& row = rows_[i];
      columns["nodes"].push_back(row.node);
      columns["devices"].push_back(row.device);
      columns["groups"].push_back(row.group);
      columns["serials"].push_back(values::word_or_null(*row.json, {"serial"}));
      if (values::at(*row.json, {"is_fit"}) == Json(false)) columns["unfit"].push_back(i);
    }
    return columns;
  }
  const std::vector<std::string>& nodes() const { return nodes_.all(); }
  const std::vector<std::string>& devices() const { return devices_.all(); }

 private:
  void add(const Json& json, std::size_t groups) {
    const std::string node = values::word(json, {"node"}, "?"), device = values::word(json, {"device"}, "?");
    if (!devices_.has(device) && devices_.all().size() == kMaxNodeDevices) return;
    if (!places_.try_emplace({node, device}, rows_.size()).second) return;
    const std::size_t group = values::count(json, {"group"});
    rows_.push_back({&json, nodes_.number(node), devices_.number(device), group < groups ? group : 0});
  }

  std::vector<MapRow> rows_;
  std::map<DeviceName, std::size_t> places_;
  NameNumbers nodes_, devices_;
  std::size_t left_out_ = 0;
};

std::optional<double> value_of(const MapRow& row, std::size_t figure) {
  const Json& list = values::list(*row.json, {"values"});
  if (figure >= list.size() || !list.is_array() || !list[figure].is_number()) return std::nullopt;
  return values::finite(list[figure], {});
}

// Figures with their values, packed. A state that is the same everywhere makes no picture; it is listed in one line.
void add_figures(Json& item, const Json& document, const FleetMap& map) {
  item["figures"] = Json::array();
  item["constants"] = Json::array();
  const Json& figures = values::list(document, {"grid", "figures"});
  for (std::size_t i = 0; i < std::min(figures.size(), kMaxFigures); ++i) {
    const std::string name = values::word(figures[i], {"name"}, "?"), goal = goal_of(figures[i]);
    Json figure = {{"name", name},
                   {"unit", values::word(figures[i], {"unit"}, "count")},
                   {"words", values::word(figures[i], {"words"}, name)}};
    std::set<double> distinct;
    std::size_t count = 0;
    PackedBytes packed;
    packed.reserve(4 * map.rows().size());
    for (const MapRow& row : map.rows()) {
      const auto value = value_of(row, i);
      packed.add_float(value);
      if (!value) continue;
      ++count;
      if (distinct.size() < 2) distinct.insert(*value);
    }
    if (count == 0 || (goal == "none" && distinct.size() == 1)) {
      figure["value"] = count == 0 ? Json(nullptr) : Json(*distinct.begin());
      figure["count"] = count;
      item["constants"].push_back(std::move(figure));
    } else {
      figure["goal"] = goal;
      figure["packed"] = packed.finish();
      item["figures"].push_back(std::move(figure));
    }
  }
}

Json group_item(const Json& group) {
  Json figures = Json::array();
  for (const Json& figure : fields::first(values::list(group, {"figures"}), kMaxFigures))
    figures.push_back({{"name", values::word(figure, {"name"}, "?")},
                       {"unit", values::word(figure, {"unit"}, "count")},
                       {"count", values::count(figure, {"count"})},
                       {"p50", values::number(figure, {"p50"})},
                       {"min", values::number(figure, {"min"})},
                       {"max", values::number(figure, {"max"})},
                       {"spread", values::number(figure, {"spread"})}});
  return {{"model", values::word(group, {"model"}, "?")},
          {"settings", values::word_or_null(group, {"settings"})},
          {"devices", values::count(group, {"devices"})},
          {"figures", std::move(figures)}};
}

Json finding_item(const Json& finding, const FleetMap& map) {
  const std::string node = values::word(finding, {"node"}, "?"), device = values::word(finding, {"device"});
  const auto row = map.row_of(node, device);
  return {{"kind", kind_of(finding).name},
          {"row", row ? Json(*row) : Json(nullptr)},
          {"node", node},
          {"device", text_or_null(device)},
          {"place", values::word_or_null(finding, {"place"})},
          {"serial", values::word_or_null(finding, {"serial"})},
          {"figure", values::word_or_null(finding, {"figure"})},
          {"to", values::word_or_null(finding, {"to"})},
          {"value", values::number(finding, {"value"})},
          {"typical", values::number(finding, {"typical"})},
          {"effect", values::number(finding, {"effect"})},
          {"p", number_or_null(values::amount(finding, {"p"}))},
          {"peers", values::count(finding, {"peers"})},
          {"cause", values::word_or_null(finding, {"cause"})},
          {"sentence", values::word(finding, {"sentence"}, node)},
          {"is_unfit", values::is_true(finding, {"is_unfit"})}};
}

Json difference_item(const Json& difference) {
  Json list = Json::array();
  const Json& all = values::list(difference, {"values"});
  for (const Json& value : fields::first(all, kMaxHeldValues)) {
    Json first = Json::array();
    for (const Json& name : fields::first(values::list(value, {"first"}), kMaxHolders))
      if (name.is_string()) first.push_back(name);
    list.push_back({{"value", values::word(value, {"value"})},
                    {"count", values::count(value, {"count"})},
                    {"first", std::move(first)}});
  }
  return {{"name", values::word(difference, {"name"}, "?")},
          {"is_of_device", values::is_true(difference, {"is_of_device"})},
          {"left_out", all.size() - list.size()},
          {"values", std::move(list)}};
}

Json fleet_items(const Json& list, std::size_t most, Json (*item)(const Json&)) {
  Json items = Json::array();
  for (const Json& each : fields::first(list, most))
    if (each.is_object()) items.push_back(item(each));
  return items;
}

// "3 devices compute something wrong, 10 devices are slow": what is said of each, counted once. Settings come last and
// only where nothing else was found.
std::string kinds_in_words(const Json& document) {
  std::map<std::string, std::set<std::string>> named;
  for (const Json& finding : values::list(document, {"findings"})) {
    if (!finding.is_object()) continue;
    const KindWords& kind = kind_of(finding);
    std::string name = values::word(finding, {"node"}) + '\n' + values::word(finding, {"device"}) + '\n' +
                       values::word(finding, {"place"});
    if (std::string_view(kind.name) == "link") name += '\n' + values::word(finding, {"to"});
    if (std::string_view(kind.name) == "different") name = values::word(finding, {"sentence"});
    named[kind.name].insert(std::move(name));
  }
  std::string words;
  for (const KindWords& kind : kKindWords) {
    const std::size_t count = named[kind.name].size();
    if (count > 0 && (words.empty() || std::string_view(kind.name) != "different"))
      words += fmt::format("{}{} {}", words.empty() ? "" : ", ", count, count == 1 ? kind.one : kind.several);
  }
  return words;
}

std::size_t unfit_count(const Json& document) {
  const Json& all = values::list(document, {"verdicts"});
  return static_cast<std::size_t>(std::count_if(
      all.begin(), all.end(), [](const Json& each) { return values::at(each, {"is_fit"}) == Json(false); }));
}

// First how many nodes are unfit, then the worst of each kind in the document's words.
void find_outliers(Page& page, const Json& document, const std::string& anchor) {
  const std::size_t unfit = unfit_count(document), nodes = values::count(document, {"nodes"});
  const std::string kinds = kinds_in_words(document);
  const Tone tone = unfit > 0 ? Tone::bad : kinds.empty() ? Tone::good : Tone::warning;
  const std::string verdict =
      unfit > 0    ? fmt::format("{} of {} {} unfit", unfit, counted(nodes, "node"), unfit == 1 ? "is" : "are")
      : nodes == 1 ? std::string("The node is fit")
                   : fmt::format("All {} nodes are fit", nodes);
  Finding first{tone, 1, fmt::format("{}{}{}.", verdict, kinds.empty() ? "" : ": ", kinds), "", anchor};
  first.leads = first.sums_up = true;
  page.find(std::move(first));

  std::map<std::string, std::size_t> seen;
  for (const Json& finding : values::list(document, {"findings"})) {
    const KindWords& kind = kind_of(finding);
    const std::string sentence = values::ended(values::word(finding, {"sentence"}));
    if (sentence.empty() || ++seen[kind.name] > kMaxKindFindings) continue;
    const auto place = static_cast<double>(&kind - kKindWords.data());
    // One link for each kind: all lead to the same section.
    page.find({values::is_true(finding, {"is_unfit"}) ? Tone::bad : Tone::warning, 0.9 - place / 10, sentence, "",
               seen[kind.name] == 1 ? anchor : std::string()});
  }
  for (const KindWords& kind : kKindWords)
    if (seen[kind.name] > kMaxKindFindings)
      page.find({Tone::neutral, 0,
                 fmt::format("{} more findings of the kind \"{}\" are in the list.", seen[kind.name] - kMaxKindFindings,
                             kind.name),
                 "", anchor});
}

void add_notes(Json& item, const Json& document, const FleetMap& map) {
  const Json& all = values::list(document, {"notes"});
  for (const Json& note : fields::first(all, kMaxFleetNotes))
    if (note.is_string()) item["notes"].push_back(note);
  if (all.size() > kMaxFleetNotes)
    item["notes"].push_back(fmt::format("{} more notes are in the document.", all.size() - kMaxFleetNotes));
  if (map.left_out() > 0)
    item["notes"].push_back(fmt::format("The map has {} of {} devices: all that a finding names, then the first.",
                                        map.rows().size(), map.rows().size() + map.left_out()));
}

}  // namespace

void section_list::fleet(Page& page, std::size_t source, const Json& document) {
  const FleetMap map(document);
  const std::size_t nodes = values::count(document, {"nodes"}), devices = values::count(document, {"devices"});
  Json item = page.item("fleets", fmt::format("{}, {}", counted(nodes, "node"), counted(devices, "device")), source,
                        page.environment_of(source));
  item["nodes"] = nodes;
  item["devices"] = devices;
  item["unfit"] = unfit_count(document);
  item["significance"] = number_or_null(values::amount(document, {"significance"}, 1));
  item["threshold"] = number_or_null(values::amount(document, {"threshold"}, 1));
  item["groups"] = fleet_items(values::list(document, {"groups"}), kMaxPeerGroups, group_item);
  item["node_names"] = map.nodes();
  item["device_names"] = map.devices();
  item["rows"] = map.to_json();
  add_figures(item, document, map);

  const Json& findings = values::list(document, {"findings"});
  item["findings"] = Json::array();
  for (const Json& finding : fields::first(findings, kMaxListed))
    if (finding.is_object()) item["findings"].push_back(finding_item(finding, map));
  item["findings_left_out"] = findings.size() - item["findings"].size();
  item["differences"] = fleet_items(values::list(document, {"differences"}), kMaxDifferences, difference_item);
  item["unfit_nodes"] = Json::array();
  for (const Json& verdict : values::list(document, {"verdicts"}))
    if (values::at(verdict, {"is_fit"}) == Json(false) && item["unfit_nodes"].size() < kMaxListed)
      item["unfit_nodes"].push_back(
          {{"name", values::word(verdict, {"name"}, "?")}, {"reason", values::word_or_null(verdict, {"reason"})}});
  add_notes(item, document, map);
  find_outliers(page, document, page.add("fleets", std::move(item)));
}

}  // namespace weir::page
