// Provides the device or process that each mechanism of `weir preempt` needs, and observes it. Knows no order and no
// document.
#pragma once

#include <memory>

#include "cli/preempt_flags.h"
#include "device/device.h"
#include "lab/preempt/experiment.h"

namespace weir::cli {

class PreemptStage {
 public:
  // Opens the device as usual. Rejects one that cannot run anything.
  explicit PreemptStage(const PreemptFlags& flags);

  const DeviceInfo& info() const { return info_; }
  Capability offered(const preempt::Mechanism& mechanism) { return mechanism.offered(usual()); }

  // Throws with the reason where the observation failed.
  preempt::Observation observe(const preempt::Mechanism& mechanism, const preempt::Plan& plan,
                               const preempt::Victim& victim, const preempt::Progress& progress);
  preempt::Observation alone(const preempt::Plan& plan, const preempt::Progress& progress);
  preempt::Observation undisturbed(preempt::Plan plan, const preempt::Victim& victim,
                                   const preempt::Progress& progress);

 private:
  Device& usual();
  Device& opened_for(const preempt::Mechanism& mechanism);
  preempt::Observation observe_in_child(const preempt::Mechanism& mechanism, const preempt::Plan& plan,
                                        const preempt::Victim& victim, const preempt::Progress& progress);
  preempt::Observation observe_between(const preempt::Mechanism& mechanism, const preempt::Plan& plan,
                                       const preempt::Victim& victim, const preempt::Progress& progress);
  Json request(const char* task, const preempt::Mechanism& mechanism, const preempt::Plan& plan,
               const preempt::Victim& victim) const;

  const PreemptFlags& flags_;
  DeviceOptions options_;
  std::unique_ptr<Device> device_;                 // one at a time: a second one would hold memory and threads
  const preempt::Mechanism* opened_as_ = nullptr;  // the mechanism whose settings it has; null: the usual ones
  DeviceInfo info_;                                // last, because its initialiser asks the device
};

}  // namespace weir::cli
