// Points of a node's probe: one per judged figure and device. Knows the document through lab/fleet; judges nothing.
#include <fmt/format.h>

#include <cmath>

#include "base/clock.h"
#include "lab/fleet/figures.h"
#include "lab/fleet/node.h"
#include "report/history/intake.h"

namespace weir::history {
namespace {

constexpr std::size_t kLongestName = 200;

Machine machine_of_device(const fleet::NodeReport& node, const fleet::NodeDevice& device) {
  const std::string serial = device.serial.substr(0, kLongestName);
  if (!serial.empty())
    return machine_from({{"serial", serial}, {"model", device.model}}, fmt::format("{} {}", device.model, serial));
  return machine_from({{"host", node.name}, {"device", device.name}, {"model", device.model}},
                      fmt::format("{}, {} {}", device.model, node.name, device.name));
}

// What may explain a change of a device: where it was, with which versions and settings.
Json device_of(const fleet::NodeReport& node, const fleet::NodeDevice& device) {
  Json json = {{"name", device.name}, {"model", device.model}, {"host", node.name}};
  if (!device.serial.empty()) json["serial"] = device.serial;
  if (!device.bus.empty()) json["bus"] = device.bus;
  for (const auto& [name, value] : device.facts) json[name] = value;
  return json;
}

Json environment_of(const fleet::NodeReport& node) {
  Json json = Json::object();
  for (const char* fact : {"system", "kernel", "architecture", "cpu_model", "compiler"})
    if (const Json& value = member(node.environment, fact); value.is_string()) json[fact] = value;
  for (const auto& [name, value] : node.facts) json[name] = value;
  return json;
}

void put_samples(const fleet::Figure& figure, const fleet::FigureKind& kind, ResultPoint& point) {
  const bool is_time = kind.goal == fleet::Goal::lower;
  SampleSeries& series = is_time ? point.latency : point.throughput;
  SampleSeries& other = is_time ? point.throughput : point.latency;
  series.unit = kind.unit;
  other.reason = "the figure is the other";
  for (const double sample : figure.samples)
    if (std::isfinite(sample) && sample > 0) series.samples.push_back(sample);
  if (series.samples.empty() && *figure.value > 0) series.samples.push_back(*figure.value);
  if (series.samples.empty()) series.reason = "the figure has no samples";
}

}  // namespace

std::vector<NewPoint> fleet_points(const Json& document, const std::string& name) {
  const fleet::NodeReport node = fleet::read_node(document, name);
  const Json environment = environment_of(node);
  std::vector<NewPoint> points;
  for (const fleet::NodeDevice& device : node.devices) {
    const Machine machine = machine_of_device(node, device);
    const Json conditions = device_of(node, device);
    for (const fleet::Figure& figure : device.figures) {
      const fleet::FigureKind* const kind = fleet::find_figure(figure.name);
      // A state explains other figures and has no series of its own: the whole document has it.
      if (kind == nullptr || kind->goal == fleet::Goal::none || !figure.value || !std::isfinite(*figure.value))
        continue;
      NewPoint point;
      point.point.origin = fmt::format("{}: {} {}", name, device.name, figure.name);
      point.point.key = {{"workload", "fleet/" + figure.name}};
      if (!figure.to.empty()) point.point.key["to"] = figure.to.substr(0, kLongestName);
      point.point.device = device.name;
      put_samples(figure, *kind, point.point);
      point.machine = machine;
      point.device = conditions;
      point.environment = environment;
      point.measured = is_time(node.created) ? node.created : "";
      point.digest =
          digest_of(fmt::format("fleet\n{}\n{}\n{}\n{}\n{}\n{}\n{}\n{}", node.created, node.name, device.name,
                                machine.id, figure.name, figure.to, *figure.value, Json(figure.samples).dump()));
      points.push_back(std::move(point));
    }
  }
  return points;
}

NewDocument fleet_document_of(const Json& document, const std::string& name) {
  const fleet::NodeReport node = fleet::read_node(document, name);
  NewDocument kept;
  kept.kind = "fleet_probe";
  kept.subject = node.name.substr(0, kLongestName);
  kept.measured = is_time(node.created) ? node.created : wall_time();
  kept.text = document.dump();
  kept.digest = digest_of(kept.text);
  return kept;
}

}  // namespace weir::history
