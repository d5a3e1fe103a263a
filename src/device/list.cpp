#include "device/list.h"

#include <fmt/format.h>

#include <array>

#include "base/error.h"
#include "base/options.h"

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

std::unique_ptr<Device> open_device(const std::string& name, const DeviceOptions& options) {
  if (name == "auto") {
    for (const DeviceType& type : device_types()) {
      if (type.name == "cpu" || !type.find().names.empty()) return type.open(0, options);
    }
  }
  const std::size_t colon = name.find(':');
  const std::string kind = name.substr(0, colon);
  std::vector<std::string> kinds = {"auto"};
  for (const DeviceType& type : device_types()) {
    kinds.push_back(type.name);
    if (type.name != kind) continue;
    std::int64_t index = 0;
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
