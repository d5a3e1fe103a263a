#include "lab/fleet/probe/state.h"

#include <algorithm>
#include <string_view>

#include "base/file.h"
#include "measure/statistics.h"

namespace weir::fleet {
namespace {

void add_state(std::string_view name, std::optional<double> value, std::string reason, NodeDevice& device) {
  Figure figure;
  figure.name = name;
  figure.value = value;
  if (!value) figure.reason = reason.empty() ? "the device does not report it" : std::move(reason);
  device.figures.push_back(std::move(figure));
}

// One line of a file that the kernel keeps for a PCI device; empty where there is none.
std::string pci_line(const std::string& bus, const char* name) {
  const bool is_address = !bus.empty() && bus.find_first_not_of("0123456789abcdef:.") == std::string::npos;
  if (!is_address) return "";
  // CUDA writes the domain with eight digits: 00000000:c1:00.0
  const std::size_t surplus = bus.find(':') == 8 ? 4 : 0;
  std::string text = read_kernel_file("/sys/bus/pci/devices/" + bus.substr(surplus) + "/" + name, 256);
  text.resize(std::min(text.find('\n'), text.size()));
  return text;
}

std::optional<double> number_at_start(const std::string& text) {
  const std::size_t end = std::min(text.find_first_not_of("0123456789."), text.size());
  if (end == 0 || end > 12 || text[0] == '.') return std::nullopt;
  return std::stod(text.substr(0, end));
}

// "32.0 GT/s PCIe"
std::optional<double> generation_of(const std::string& speed) {
  constexpr double kSpeeds[] = {2.5, 5, 8, 16, 32, 64};
  const auto rate = number_at_start(speed);
  for (std::size_t i = 0; rate && i < std::size(kSpeeds); ++i)
    if (*rate == kSpeeds[i]) return static_cast<double>(i + 1);
  return std::nullopt;
}

std::optional<double> typical(std::span<const Telemetry> readings, std::optional<double> Telemetry::* member) {
  std::vector<double> values;
  for (const Telemetry& each : readings)
    if (each.*member) values.push_back(*(each.*member));
  if (values.empty()) return std::nullopt;
  return median(values);
}

}  // namespace

void add_board(const DeviceInfo& info, const DeviceBoard& board, NodeDevice& device) {
  device.model = info.model;
  device.serial = board.serial.empty() ? board.uuid : board.serial;
  device.bus = board.bus;
  device.facts = board.facts;
  if (!info.driver.empty()) device.facts["driver"] = info.driver;
  if (const std::string node = pci_line(board.bus, "numa_node"); !node.empty()) device.facts["numa_node"] = node;

  const auto queues = info.hardware_queues;
  add_state("hardware_queues", queues.value ? std::optional<double>(*queues.value) : std::nullopt, queues.reason,
            device);
  add_state("power_limit", board.power_limit_w, "", device);
  add_state("memory_clock", board.memory_clock_mhz, "", device);
  const auto width = board.pcie_width ? board.pcie_width : number_at_start(pci_line(board.bus, "current_link_width"));
  add_state("pcie_generation",
            board.pcie_generation ? board.pcie_generation : generation_of(pci_line(board.bus, "current_link_speed")),
            "", device);
  add_state("pcie_width", width, "", device);
  add_state("nvlink_links", board.nvlink_links, "", device);
  add_state("pcie_replays", board.pcie_replays, "", device);
  add_state("nvlink_errors", board.nvlink_errors, "", device);
  add_state("ecc_corrected", board.ecc_corrected, "", device);
  add_state("ecc_uncorrected", board.ecc_uncorrected, "", device);
  add_state("retired_pages", board.retired_pages, "", device);
  add_state("remapped_rows", board.remapped_rows, "", device);
}

void add_telemetry(const Telemetry& before, std::span<const Telemetry> under_load, NodeDevice& device) {
  const char* const reason = under_load.empty() ? "there was no load to read it under" : "";
  add_state("clock", typical(under_load, &Telemetry::clock_mhz), reason, device);
  add_state("max_clock", before.max_clock_mhz, "", device);
  add_state("power", typical(under_load, &Telemetry::power_w), reason, device);
  add_state("temperature", typical(under_load, &Telemetry::temperature_c), reason, device);
  add_state("other_processes", before.other_processes ? std::optional<double>(*before.other_processes) : std::nullopt,
            "", device);
  for (const Telemetry& each : under_load)
    for (const std::string& words : each.throttle)
      if (std::find(device.throttle.begin(), device.throttle.end(), words) == device.throttle.end())
        device.throttle.push_back(words);
}

}  // namespace weir::fleet
