#include "device/list.h"

#include <fmt/format.h>
#include <time.h>

#include <algorithm>
#include <array>
#include <new>

#include "base/error.h"
#include "base/options.h"
#include "base/relax.h"
#include "device/rank/communicator.h"

namespace weir {

std::span<const DeviceType> device_types() {
  using namespace device_list;
  static const std::array kTypes = {WEIR_DEVICES};
  return kTypes;
}

namespace {

// The device of a rank if the user names none: its own, or a shared one if there are fewer devices than ranks.
std::string default_device(const DeviceType& type, const DeviceOptions& options) {
  if (options.communicator == nullptr) return "";
  const DeviceType::Found found = type.find();
  const auto count = static_cast<int>(found.names.size());
  return count < 2 || !found.are_numbered ? "" : std::to_string(options.communicator->local_ranks().rank % count);
}

}  // namespace

int device_number(const std::string& type, const std::string& which) {
  if (which.empty()) return 0;
  const auto number = parse_integer(which);
  if (!number || *number < 0 || *number > 1023)
    reject_setting("device", fmt::format("{}:{}", type, which), fmt::format("'{}' is not a device number", which),
                   fmt::format("Write it as {}:0.", type));
  return static_cast<int>(*number);
}

int DeviceOptions::number(const char* name) const {
  if (variable == nullptr) return 0;
  const std::optional<std::string> text = variable(name);
  return text ? static_cast<int>(std::clamp<std::int64_t>(parse_integer(*text).value_or(0), 0, 1 << 20)) : 0;
}

void Session::pause(std::int64_t ns) noexcept {
  const timespec time{ns / 1'000'000'000, ns % 1'000'000'000};
  nanosleep(&time, nullptr);
}

void Session::relax(int spins) noexcept { weir::relax(spins); }

std::span<std::byte> Session::host_memory(BufferId) { fail("this device has no memory that the host shares"); }

namespace {

class HostMemory final : public DeviceMemory {
 public:
  std::byte* allocate(std::size_t bytes) noexcept override {
    return static_cast<std::byte*>(::operator new(bytes, kAlignment, std::nothrow));
  }
  void release(std::byte* memory) noexcept override { ::operator delete(memory, kAlignment); }

 private:
  static constexpr std::align_val_t kAlignment{128};
};

}  // namespace

std::unique_ptr<DeviceMemory> Device::memory(Place) { return std::make_unique<HostMemory>(); }

std::string device_suggestion(const std::string& kind) {
  if (kind == "gpu")
    return "Use auto for the first GPU, cuda:0 for NVIDIA's or hip:0 for AMD's; `weir info` shows those of this "
           "machine.";
  if (kind == "nvidia" || kind == "amd" || kind == "rocm")
    return fmt::format("Write --device {}:0; `weir info` shows all devices.", kind == "nvidia" ? "cuda" : "hip");
  std::vector<std::string> kinds = {"auto"};
  for (const DeviceType& type : device_types()) kinds.push_back(type.name);
  return suggestion(kind, kinds);
}

std::unique_ptr<Device> open_device(const std::string& name, const DeviceOptions& options) {
  if (name == "auto") {
    for (const DeviceType& type : device_types()) {
      if (type.name == "cpu" || type.find().gpus > 0) return type.open(default_device(type, options), options);
    }
  }
  const std::size_t colon = name.find(':');
  const std::string kind = name.substr(0, colon);
  for (const DeviceType& type : device_types())
    if (type.name == kind)
      return type.open(colon == std::string::npos ? default_device(type, options) : name.substr(colon + 1), options);
  reject_setting("device", name, "there is no such device", device_suggestion(kind));
}

std::unique_ptr<Device> open_able(const std::string& name, const DeviceOptions& options) {
  auto device = open_device(name, options);
  if (!options.sim.empty() && device->info().backend != "sim")
    reject_setting("sim", options.sim[0].first + "=...",
                   fmt::format("device '{}' is not simulated", device->info().name),
                   "Leave it out, or use a simulated device: --device sim:h200.");
  if (options.compute_units == 0) return device;
  if (const DeviceInfo info = device->info(); !info.compute_units)
    reject_setting("compute_units", std::to_string(options.compute_units),
                   fmt::format("device '{}': {}", info.name, info.compute_units.reason), "Leave it out.");
  return device;
}

}  // namespace weir
