// States of a device in a node's report: what its board says, and what was read of it under load. Measures nothing.
#pragma once

#include <span>
#include <vector>

#include "device/device.h"
#include "lab/fleet/node.h"

namespace weir::fleet {

// Serial number, bus, versions, settings, and the figures that the board counts.
void add_board(const DeviceInfo& info, const DeviceBoard& board, NodeDevice& device);
// Clock, power, temperature and reasons for a lower clock: `before` is of the idle device, for other processes.
void add_telemetry(const Telemetry& before, std::span<const Telemetry> under_load, NodeDevice& device);

}  // namespace weir::fleet
