#include "device/list.h"

#include <fmt/format.h>

#include <array>

#include "base/error.h"
#include "base/options.h"
#include "rank/communicator.h"

namespace weir {

std::span<const DeviceType> device_types() {
  // GPUs first: "auto" takes the first GPU that is found.
  static const std::array kTypes = {
      device_list::cuda(),
      device_list::cpu(),
      device_list::null(),
  };
  return kTypes;
}

namespace {

// The device that a rank takes where the user names none: its own, as far as there are any.
int default_index(const DeviceType& type, const DeviceOptions& options) {
  if (options.communicator == nullptr) return 0;
  const auto count = static_cast<int>(type.find().names.size());
  return count < 2 ? 0 : options.communicator->local_ranks().rank % count;
}

}  // namespace

std::unique_ptr<Device> open_device(const std::string& name, const DeviceOptions& options) {
  if (name == "auto") {
    for (const DeviceType& type : device_types()) {
      if (type.name == "cpu" || !type.find().names.empty()) return type.open(default_index(type, options), options);
    }
  }
  const std::size_t colon = name.find(':');
  const std::string kind = name.substr(0, colon);
  std::vector<std::string> kinds = {"auto"};
  for (const DeviceType& type : device_types()) {
    kinds.push_back(type.name);
    if (type.name != kind) continue;
    std::int64_t index = colon == std::string::npos ? default_index(type, options) : 0;
    if (colon != std::string::npos) {
      const auto number = parse_integer(name.substr(colon + 1));
      if (!number || *number < 0 || *number > 1023)
        reject(fmt::format("--device {}: '{}' is not a device number", name, name.substr(colon + 1)),
               fmt::format("Write it as {}:0.", kind));
      index = *number;
    }
    return type.open(static_cast<int>(index), options);
  }
  reject(fmt::format("--device {}: there is no such device", name), suggestion(kind, kinds));
}

}  // namespace weir
