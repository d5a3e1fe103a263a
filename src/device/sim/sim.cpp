#include "device/sim/sim.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.h"
#include "base/units.h"
#include "device/list.h"
#include "device/sim/session.h"

namespace weir {
namespace {

using namespace sim;

class SimDevice final : public Device {
 public:
  explicit SimDevice(const SimProfile& profile) : shared_(std::make_shared<Shared>(profile)) {}

  DeviceInfo info() const override {
    const SimProfile& profile = shared_->profile;
    constexpr const char* kSource = "the profile's";
    DeviceInfo info;
    info.name = "sim:" + profile.name;
    info.backend = "sim";
    info.model = profile.model;
    std::vector<std::string> changed;
    for (const auto& [key, value] : profile.overrides) changed.push_back(fmt::format("{}={}", key, value));
    // Part of the model, because a device with other settings is another device.
    if (!changed.empty()) info.model += fmt::format(" with {}", fmt::join(changed, " "));
    info.is_gpu = true;
    info.computes = false;
    info.is_virtual = true;
    info.precisions = profile.precisions;
    info.lowest_priority = 0;
    info.highest_priority = static_cast<int>(profile.priority_levels) - 1;
    info.hardware_queues = {static_cast<int>(profile.queues), kSource};
    info.max_hardware_queues = kMaxStreams;
    info.multiprocessors = {static_cast<int>(profile.multiprocessors), kSource};
    info.copy_engines = {static_cast<int>(profile.copy_engines.to_device + profile.copy_engines.to_host), kSource};
    info.memory_bytes = {static_cast<std::uint64_t>(profile.memory_bytes), kSource};
    return info;
  }

  std::unique_ptr<Session> prepare(const Step& step, const Placement& placement,
                                   const SessionOptions& options) override {
    const SimProfile& profile = shared_->profile;
    const std::uint64_t needed = step.size_bytes(Place::device);
    if (needed > static_cast<std::uint64_t>(profile.memory_bytes))
      reject(fmt::format("device 'sim:{}': the step needs {} of memory and there are {}", profile.name,
                         format_bytes(needed), format_bytes(static_cast<std::uint64_t>(profile.memory_bytes))),
             "Use a smaller --scale, smaller sizes or fewer streams; or --sim memory_bytes=N.");
    const std::size_t streams = shared_->machine.open_streams() + static_cast<std::size_t>(placement.stream_count);
    if (streams > static_cast<std::size_t>(profile.max_streams))
      reject(fmt::format("device 'sim:{}' cannot have {} streams, its limit is {}", profile.name, streams,
                         profile.max_streams),
             "Use fewer streams, or --sim max_streams=N.");
    return std::make_unique<SimSession>(shared_, step, placement, options);
  }

 private:
  std::shared_ptr<Shared> shared_;  // may outlive the device
};

}  // namespace

std::unique_ptr<Device> open_sim(SimProfile profile) {
  check(profile);
  return std::make_unique<SimDevice>(profile);
}

namespace device_list {

DeviceType sim() {
  return {.name = "sim",
          .summary = "a GPU in virtual time, made from a profile (docs/sim.md)",
          .find =
              [] {
                DeviceType::Found found;
                for (const std::string& name : weir::sim::profile_names()) found.names.push_back("sim:" + name);
                found.are_numbered = false;
                return found;
              },
          .open =
              [](const std::string& which, const DeviceOptions& options) {
                SimProfile profile = weir::sim::profile_named(which.empty() ? "h200" : which);
                if (options.hardware_queues != 0) apply(profile, "queues", std::to_string(options.hardware_queues));
                for (const auto& [key, value] : options.sim) apply(profile, key, value);
                return open_sim(std::move(profile));
              }};
}

}  // namespace device_list
}  // namespace weir
