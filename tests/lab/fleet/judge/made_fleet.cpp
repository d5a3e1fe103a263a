#include "lab/fleet/judge/made_fleet.h"

#include <algorithm>

#include "lab/fleet/figures.h"
#include "lab/fleet/judge/table.h"

namespace weir::fleet {
namespace {

double usual(const FigureKind& kind) {
  if (kind.unit == "ns") return 2000;
  if (kind.unit == "flop/s") return 6e14;
  if (kind.unit == "B/s") return kind.name == "memory" ? 4e12 : 5e10;
  if (kind.name == "clock") return 1755;
  if (kind.name == "max_clock") return 1980;
  if (kind.name == "memory_clock") return 3201;
  if (kind.name == "power_limit") return 700;
  if (kind.name == "power") return 640;
  if (kind.name == "temperature") return 61;
  if (kind.name == "pcie_generation") return 5;
  if (kind.name == "pcie_width") return 16;
  if (kind.name == "nvlink_links") return 18;
  if (kind.name == "hardware_queues") return 32;
  return 0;
}

// What a device, or a node, has in common over its figures: one draw for each concern.
struct Common {
  Common(MadeDraws& draws, int degrees) {
    for (double& each : by_concern) each = draws.scatter(degrees);
  }
  double by_concern[kConcerns.size()];
};

Figure measured(const FigureKind& kind, double centre, const MadeOptions& options, MadeDraws& draws) {
  Figure figure;
  figure.name = kind.name;
  for (int i = 0; i < options.samples; ++i)
    figure.samples.push_back(centre * std::exp(options.within * draws.scatter(options.sample_degrees)));
  figure.value = median_known(figure.samples);
  const double error = options.within * std::sqrt(std::numbers::pi / 2 / options.samples);
  figure.range = Interval{*figure.value * std::exp(-3 * error), *figure.value * std::exp(3 * error)};
  return figure;
}

NodeDevice made_device(std::size_t node, std::size_t at, const Common& of_node, const MadeOptions& options,
                       MadeDraws& draws) {
  NodeDevice device;
  device.name = "cuda:" + std::to_string(at);
  device.model = "NVIDIA H200";
  device.serial = std::to_string(165'000'000 + node * 64 + at);
  device.facts = {{"driver", "580.65.06"}, {"firmware", "96.00.99"}, {"ecc", "on"}, {"mig", "off"}};
  const Common of_device(draws, options.degrees);
  const double own = 1 - options.shared - options.of_node;
  for (const FigureKind& kind : figure_kinds()) {
    if (kind.goal == Goal::none) {
      device.figures.push_back({std::string(kind.name), "", usual(kind), std::nullopt, {}, ""});
      continue;
    }
    const auto concern = static_cast<std::size_t>(concern_of(kind.name));
    const double by = options.between * (std::sqrt(options.of_node) * of_node.by_concern[concern] +
                                         std::sqrt(options.shared) * of_device.by_concern[concern] +
                                         std::sqrt(std::max(own, 0.0)) * draws.scatter(options.degrees));
    device.figures.push_back(measured(kind, usual(kind) * std::exp(by), options, draws));
    if (kind.name == "copy_to_peer") device.figures.back().to = at == 0 ? "cuda:1" : "cuda:0";
  }
  return device;
}

}  // namespace

std::string made_name(std::size_t node, std::size_t device) {
  return "node" + std::to_string(node) + " cuda:" + std::to_string(device);
}

Figure* made_figure(NodeDevice& device, const std::string& name) {
  for (Figure& each : device.figures)
    if (each.name == name) return &each;
  return nullptr;
}

void make_slower(NodeDevice& device, const std::vector<std::string>& figures, double factor) {
  for (const std::string& name : figures) {
    Figure* const figure = made_figure(device, name);
    const double by = find_figure(name)->goal == Goal::lower ? 1 / factor : factor;
    *figure->value *= by;
    figure->range = Interval{figure->range->low * by, figure->range->high * by};
    for (double& sample : figure->samples) sample *= by;
  }
}

MadeFleet made_fleet(const MadeOptions& options) {
  MadeFleet fleet;
  MadeDraws draws(options.seed);
  for (std::size_t at = 0; at < options.nodes; ++at) {
    NodeReport& node = fleet.nodes.emplace_back();
    node.name = "node" + std::to_string(at);
    node.created = "2026-11-19T12:00:00Z";
    node.facts = {{"governor", "performance"}, {"CUDA_DEVICE_MAX_CONNECTIONS", "8"}};
    node.place = {{"switch", "leaf" + std::to_string(at / 16)}};
    const Common of_node(draws, options.degrees);
    for (std::size_t i = 0; i < options.devices; ++i)
      node.devices.push_back(made_device(at, i, of_node, options, draws));
  }
  std::set<std::size_t> taken;
  const auto next = [&] {
    std::size_t one = draws.below(options.nodes * options.devices);
    while (!taken.insert(one).second) one = draws.below(options.nodes * options.devices);
    return std::pair(one / options.devices, one % options.devices);
  };
  for (std::size_t i = 0; i < options.slow; ++i) {
    const auto [node, device] = next();
    NodeDevice& slow = fleet.nodes[node].devices[device];
    make_slower(slow, kGemms, 1 - options.effect);
    if (options.has_clock) made_figure(slow, "clock")->value = 1410;
    fleet.slow.insert(made_name(node, device));
  }
  for (std::size_t i = 0; i < options.wrong; ++i) {
    const auto [node, device] = next();
    fleet.nodes[node].devices[device].wrong = {"GEMM bf16: 3 of 65,536 values differ from the reference"};
    fleet.wrong.insert(made_name(node, device));
  }
  for (std::size_t i = 0; i < options.narrow; ++i) {
    const auto [node, device] = next();
    NodeDevice& narrow = fleet.nodes[node].devices[device];
    make_slower(narrow, {"copy_to_device", "copy_to_host"}, 0.5);
    made_figure(narrow, "pcie_width")->value = 8;
    fleet.narrow.insert(made_name(node, device));
  }
  return fleet;
}

}  // namespace weir::fleet
