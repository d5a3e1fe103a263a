// One device of a probe: its meters, its state, and its part of the report as far as it got. Knows no other device.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "lab/fleet/probe/exchange.h"
#include "lab/fleet/probe/meter.h"
#include "lab/fleet/probe/probe.h"

namespace weir::fleet {

// Used by one thread at a time. Nothing throws: failures are part of the report.
class DeviceProbe {
 public:
  DeviceProbe(std::string name, const ProbeOptions& options);

  void open() noexcept;
  // A sample of each figure that is bound by the host, or by the device. Warming up keeps none.
  void sample(bool is_load, bool is_warm_up) noexcept;
  void check() noexcept;
  // What the devices measured together.
  void add(DeviceExchange::Measured measured);
  // With what is known so far.
  NodeDevice report() const;
  bool can_go_on() const { return device_ != nullptr && device_report_.failure.empty(); }

 private:
  void take_sample(Meter& meter, bool is_warm_up);
  void give_up(std::size_t meter, const std::exception& error);
  template <class Work>
  void guarded(const char* doing, Work&& work) noexcept;

  ProbeOptions options_;
  NodeDevice device_report_;
  std::unique_ptr<Device> device_;
  DeviceInfo info_;
  Telemetry idle_;
  std::vector<Telemetry> under_load_;
  Meters meters_;          // after the device: their sessions end before it
  std::string loaded_by_;  // the figure under whose load the state is read
};

}  // namespace weir::fleet
