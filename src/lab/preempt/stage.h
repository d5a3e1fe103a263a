// Provides the device or process that each mechanism of `weir preempt` needs, and observes it. Knows no order and no
// document.
#pragma once

#include <atomic>
#include <memory>
#include <string>

#include "base/json.h"
#include "device/device.h"
#include "lab/preempt/experiment.h"

namespace weir::preempt {

class Stage {
 public:
  // Opens the device as usual. Rejects one that cannot run anything. `stop` ends observations in other processes.
  Stage(std::string device, DeviceOptions options, const std::atomic<bool>& stop);

  const DeviceInfo& info() const { return info_; }
  Capability offered(const Mechanism& mechanism) { return mechanism.offered(usual()); }

  // Throws with the reason where the observation failed.
  Observation observe(const Mechanism& mechanism, const ExperimentPlan& plan, const Victim& victim,
                      const Progress& progress);
  Observation alone(const ExperimentPlan& plan, const Progress& progress);
  Observation undisturbed(ExperimentPlan plan, const Victim& victim, const Progress& progress);

 private:
  Device& usual();
  Device& opened_for(const Mechanism& mechanism);
  Observation observe_in_child(const Mechanism& mechanism, const ExperimentPlan& plan, const Victim& victim,
                               const Progress& progress);
  Observation observe_between(const Mechanism& mechanism, const ExperimentPlan& plan, const Victim& victim,
                              const Progress& progress);
  Json request(const char* task, const Mechanism& mechanism, const ExperimentPlan& plan, const Victim& victim) const;

  const std::string name_;  // of the device, as the user gave it
  const DeviceOptions options_;
  const std::atomic<bool>& stop_;
  std::unique_ptr<Device> device_;        // one at a time: a second one would hold memory and threads
  const Mechanism* opened_as_ = nullptr;  // the mechanism whose settings it has; null: the usual ones
  DeviceInfo info_;                       // last, because its initialiser asks the device
};

// The child's side: runs the request in a file in a separate process, because a driver reads some settings only once,
// or because the victim must be another process. Requests, and reports as lines of JSON:
//   {"task": "observe", "mechanism", "device", "sim", "hardware_queues", "plan", "victim"}
//     {"event": "progress", "done", "of"}              now and then
//     {"event": "observed", "observation": {...}}
//   {"task": "victim", ...}                            until `stop` is set
//     {"event": "running"}                             the victim keeps the device busy from here on
//     {"event": "observed", "observation": {...}}
// `options` has what children share with their parent. Rejects a file that is not a request.
void run_preempt_child(const std::string& file, DeviceOptions options, const std::atomic<bool>& stop);

}  // namespace weir::preempt
