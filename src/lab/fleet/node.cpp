#include "lab/fleet/node.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "base/named_values.h"
#include "base/schemas.h"
#include "lab/fleet/figures.h"
#include "measure/result.h"

namespace weir::fleet {
namespace {

std::string text_at(const Json& json, std::string_view name) {
  const Json& value = member(json, name);
  return value.is_string() ? value.string() : std::string();
}

std::optional<double> number_in(const Json& value) {
  return value.is_number() ? std::optional(value.get<double>()) : std::nullopt;
}

std::vector<double> numbers_at(const Json& json, std::string_view name) {
  std::vector<double> numbers;
  if (const Json& list = member(json, name); list.is_array())
    for (const Json& each : list)
      if (const auto number = number_in(each)) numbers.push_back(*number);
  return numbers;
}

std::vector<std::string> texts_at(const Json& json, std::string_view name) {
  std::vector<std::string> texts;
  if (const Json& list = member(json, name); list.is_array())
    for (const Json& each : list)
      if (each.is_string()) texts.push_back(each.string());
  return texts;
}

std::map<std::string, std::string> facts_at(const Json& json, std::string_view name) {
  std::map<std::string, std::string> facts;
  if (const Json& object = member(json, name); object.is_object())
    for (const auto& [key, value] : object.items())
      if (value.is_string()) facts[key] = value.string();
  return facts;
}

template <class Each>
void for_each_at(const Json& json, std::string_view name, Each each) {
  if (const Json& list = member(json, name); list.is_array())
    for (const Json& one : list)
      if (one.is_object()) each(one);
}

Json figure_json(const Figure& figure) {
  const FigureKind* const kind = find_figure(figure.name);
  return {{"name", figure.name},
          {"to", text_or_null(figure.to)},
          {"unit", kind == nullptr ? Json() : Json(kind->unit)},
          {"value", number_or_null(figure.value)},
          {"range", interval_or_null(figure.range)},
          {"samples", figure.samples},
          {"reason", text_or_null(figure.reason)}};
}

Json device_json(const NodeDevice& device) {
  return {{"name", device.name},
          {"model", device.model},
          {"serial", text_or_null(device.serial)},
          {"bus", text_or_null(device.bus)},
          {"facts", Json(device.facts)},
          {"figures", json_list(device.figures, figure_json)},
          {"throttle", device.throttle},
          {"wrong", device.wrong},
          {"failure", text_or_null(device.failure)}};
}

Figure read_figure(const Json& json) {
  Figure figure;
  figure.name = text_at(json, "name");
  figure.to = text_at(json, "to");
  figure.value = number_in(member(json, "value"));
  if (const std::vector<double> range = numbers_at(json, "range"); range.size() == 2)
    figure.range = Interval{range[0], range[1]};
  figure.samples = numbers_at(json, "samples");
  figure.reason = text_at(json, "reason");
  return figure;
}

NodeDevice read_device(const Json& json) {
  NodeDevice device;
  device.name = text_at(json, "name");
  device.model = text_at(json, "model");
  device.serial = text_at(json, "serial");
  device.bus = text_at(json, "bus");
  device.facts = facts_at(json, "facts");
  for_each_at(json, "figures", [&](const Json& one) { device.figures.push_back(read_figure(one)); });
  device.throttle = texts_at(json, "throttle");
  device.wrong = texts_at(json, "wrong");
  device.failure = text_at(json, "failure");
  return device;
}

}  // namespace

const Figure* NodeDevice::figure(std::string_view figure_name) const {
  const auto found =
      std::find_if(figures.begin(), figures.end(), [&](const Figure& each) { return each.name == figure_name; });
  return found == figures.end() ? nullptr : &*found;
}

Json to_json(const NodeReport& node) {
  return {{"schema", schemas::fleet_probe},
          {"created", node.created},
          {"command_line", node.command_line},
          {"environment", node.environment},
          {"name", node.name},
          {"facts", Json(node.facts)},
          {"place", Json(node.place)},
          {"duration_ns", node.duration_ns},
          {"failure", text_or_null(node.failure)},
          {"devices", json_list(node.devices, device_json)},
          {"links", json_list(node.links, [](const NodeLink& link) -> Json {
             return {{"to", link.to}, {"bytes_per_s", link.bytes_per_s}, {"reason", text_or_null(link.reason)}};
           })}};
}

NodeReport read_node(const Json& document, const std::string& file) {
  if (text_at(document, "schema") != schemas::fleet_probe)
    reject(fmt::format("{}: is not a document of `weir fleet probe`", file), "`weir fleet probe -o FILE` writes one.");
  NodeReport node;
  node.name = text_at(document, "name");
  if (node.name.empty()) reject(fmt::format("{}: does not name its node", file));
  node.created = text_at(document, "created");
  node.command_line = texts_at(document, "command_line");
  node.environment = member(document, "environment");
  node.facts = facts_at(document, "facts");
  node.place = facts_at(document, "place");
  node.failure = text_at(document, "failure");
  node.duration_ns = number_in(member(document, "duration_ns")).value_or(0);
  for_each_at(document, "devices", [&](const Json& one) { node.devices.push_back(read_device(one)); });
  for_each_at(document, "links", [&](const Json& one) {
    node.links.push_back({text_at(one, "to"), numbers_at(one, "bytes_per_s"), text_at(one, "reason")});
  });
  return node;
}

}  // namespace weir::fleet
