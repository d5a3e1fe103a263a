// The board of a device: what it is, how it is set, and what errors it has counted. Read seldom, while Telemetry is
// read often. Knows no vendor.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

namespace weir {

// What the board does not report is empty.
struct DeviceBoard {
  std::string serial, uuid;
  std::string bus;  // PCI address, as the kernel writes it: 0000:c1:00.0
  // Versions and settings, by name: "driver", "vbios", "persistence": "on", "mig": "off", "power_limit": "700 W", ...
  std::map<std::string, std::string> facts;

  std::optional<double> power_limit_w, memory_clock_mhz;
  std::optional<double> pcie_generation, pcie_width;  // as they are now: idle links of some boards slow down
  std::optional<double> nvlink_links;                 // that are up
  std::optional<double> pcie_replays, nvlink_errors, ecc_corrected, ecc_uncorrected;  // since the driver was loaded
  std::optional<double> retired_pages, remapped_rows;                                 // over the board's life
};

}  // namespace weir
