// How long a command lasts on a simulated device and how much of it it takes: from the profile's table, else from its
// cost and the device's rates. Knows kernels and profiles; no time.
#pragma once

#include <map>

#include "device/device.h"
#include "device/sim/client.h"
#include "device/sim/profile.h"

namespace weir::sim {

// What a profile's table of durations goes by. Copies: by where they go from and to; host memory to itself is to_host.
Signature signature_of(const Step& step, CommandId id);
// True for kernels that end by the clock: spin, stamp, hold, toil. Their durations are in the step, not in the profile.
bool is_timed(const Command& command);
// How a kernel of the step occupies the device where no table says better.
Footprint footprint_of(const Command& command, const SimProfile& profile);

class CostModel {
 public:
  // The profile must outlive the model.
  explicit CostModel(const SimProfile& profile);
  // Probes' memory is not set yet.
  Work work_of(const Step& step, CommandId id) const;

 private:
  Work kernel(const Command& command, const Duration* known) const;
  // One block of it, which may be several units.
  std::int64_t toil_ns(const Command& command, const Work& work) const;

  const SimProfile& profile_;
  std::map<Signature, const Duration*> known_;
};

}  // namespace weir::sim
