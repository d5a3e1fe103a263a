// weir.fleet_probe/1: the devices of one node beside each other, figure by figure, with the range that a repetition may
// show. Knows the document; judges nothing: `weir fleet report` does.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "base/named_values.h"
#include "base/units.h"
#include "lab/fleet/figures.h"
#include "report/page/list.h"
#include "report/page/values.h"

namespace weir::page {
namespace {

constexpr std::size_t kMaxProbeDevices = 64, kMaxProbeFigures = 64, kMaxProbeFacts = 64, kMaxProbeTexts = 16;
constexpr std::size_t kMaxOfOneFigure = 256;  // values of a device: a copy to each of the others

Json fact_pairs(const Json& facts) {
  Json pairs = Json::array();
  for (const auto& [name, value] : facts.items())
    if (value.is_string() && pairs.size() < kMaxProbeFacts) pairs.push_back({name, value});
  return pairs;
}

Json probe_texts(const Json& list) {
  Json kept = Json::array();
  for (const Json& text : list)
    if (text.is_string() && kept.size() < kMaxProbeTexts) kept.push_back(text);
  return kept;
}

Json device_item(const Json& device) {
  return {{"name", values::word(device, {"name"}, "?")},
          {"model", values::word(device, {"model"}, "?")},
          {"serial", values::word_or_null(device, {"serial"})},
          {"bus", values::word_or_null(device, {"bus"})},
          {"facts", fact_pairs(values::object(device, {"facts"}))},
          {"throttle", probe_texts(values::list(device, {"throttle"}))},
          {"wrong", probe_texts(values::list(device, {"wrong"}))},
          {"failure", values::word_or_null(device, {"failure"})}};
}

Json value_item(std::size_t device, const Json& figure) {
  return {{"device", device},
          {"to", values::word_or_null(figure, {"to"})},
          {"value", values::number(figure, {"value"})},
          {"range", values::interval(figure, {"range"})},
          {"reason", values::word_or_null(figure, {"reason"})}};
}

// A row per figure, in the order of the first mention: what each device has of it.
Json figure_items(const Json& devices) {
  Json figures = Json::array();
  std::map<std::string, std::size_t> places;
  for (std::size_t d = 0; d < std::min(devices.size(), kMaxProbeDevices); ++d) {
    std::map<std::string, std::size_t> counts;
    for (const Json& figure : values::list(devices[d], {"figures"})) {
      const std::string name = values::word(figure, {"name"});
      if (name.empty() || (places.size() == kMaxProbeFigures && !places.contains(name))) continue;
      const auto [place, is_new] = places.try_emplace(name, places.size());
      if (is_new) {
        const fleet::FigureKind* const kind = fleet::find_figure(name);
        figures.push_back(
            {{"name", name},
             {"unit", kind != nullptr ? std::string(kind->unit) : values::word(figure, {"unit"}, "count")},
             {"words", kind != nullptr ? std::string(kind->words) : name},
             {"goal", name_of(kind != nullptr ? kind->goal : fleet::Goal::none)},
             {"values", Json::array()}});
      }
      if (++counts[name] <= kMaxOfOneFigure) figures[place->second]["values"].push_back(value_item(d, figure));
    }
  }
  return figures;
}

void find_in_probe(Page& page, const std::string& node, const Json& document, const std::string& anchor) {
  if (const std::string failure = values::word(document, {"failure"}); !failure.empty())
    page.find({Tone::bad, 1, values::ended(fmt::format("{} has no devices to show: {}", node, failure)), "", anchor});
  for (const Json& device : fields::first(values::list(document, {"devices"}), kMaxProbeDevices)) {
    const std::string name = fmt::format("{} {}", node, values::word(device, {"name"}, "?"));
    for (const Json& wrong : probe_texts(values::list(device, {"wrong"})))
      page.find({Tone::bad, 1, values::ended(fmt::format("{} computes wrongly: {}", name, wrong.string())),
                 "Take it out of service: its results cannot be trusted.", anchor});
    if (const std::string failure = values::word(device, {"failure"}); !failure.empty())
      page.find(
          {Tone::bad, 0.9, values::ended(fmt::format("{} could not be examined: {}", name, failure)), "", anchor});
    if (const Json throttle = probe_texts(values::list(device, {"throttle"})); !throttle.empty())
      page.find({Tone::warning, 0.5,
                 fmt::format("{} lowered its clock under load: {}.", name, fields::joined(throttle)), "", anchor});
  }
}

}  // namespace

void section_list::fleet_probe(Page& page, std::size_t source, const Json& document) {
  const std::string node = values::word(document, {"name"}, "a node without a name");
  const Json& devices = values::list(document, {"devices"});
  Json item = page.item("fleet_nodes", fmt::format("{}: {}", node, counted(devices.size(), "device")), source,
                        page.environment_of(source));
  item["node"] = node;
  item["duration_ns"] = values::duration(document, {"duration_ns"});
  item["failure"] = values::word_or_null(document, {"failure"});
  item["facts"] = fact_pairs(values::object(document, {"facts"}));
  item["place"] = fact_pairs(values::object(document, {"place"}));
  item["devices"] = Json::array();
  for (const Json& device : fields::first(devices, kMaxProbeDevices)) item["devices"].push_back(device_item(device));
  item["figures"] = figure_items(devices);
  if (devices.size() > kMaxProbeDevices)
    item["notes"].push_back(fmt::format("The first {} of {} devices are shown.", kMaxProbeDevices, devices.size()));
  find_in_probe(page, node, document, page.add("fleet_nodes", std::move(item)));
}

}  // namespace weir::page
