// How long a command takes on a simulated device and how much of the device it occupies: from the profile's table, else
// from its cost and the device's rates. Knows kernels and profiles; keeps no time.
#pragma once

#include <map>

#include "device/device.h"
#include "device/sim/client.h"
#include "device/sim/profile.h"

namespace weir::sim {

// The key into a profile's table of durations. Copies go by direction; a copy within host memory is to_host.
Signature signature_of(const Step& step, CommandId id);
// True for kernels that end by the clock: spin, stamp, hold, toil. The step, not the profile, sets their durations.
bool is_timed(const Command& command);
// How a kernel of the step occupies the device, unless a table has better numbers.
Footprint footprint_of(const Command& command, const SimProfile& profile);

class CostModel {
 public:
  // The profile must outlive the model.
  explicit CostModel(const SimProfile& profile);
  // The memory of probes is not set yet.
  Work work_of(const Step& step, CommandId id) const;

 private:
  Work kernel(const Command& command, const Duration* known) const;
  // The time of one block, which may cover several units.
  std::int64_t toil_ns(const Command& command, const Work& work) const;

  const SimProfile& profile_;
  std::map<Signature, const Duration*> known_;
};

}  // namespace weir::sim
