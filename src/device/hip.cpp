// AMD GPUs: fills the table from ROCm's own libraries, opened at run time. Nothing here runs a command.
#include "device/hip.h"

#include <fmt/format.h>

#include "base/error.h"
#include "device/gpu.h"
#include "device/list.h"
#include "weir_build.h"

namespace weir {

const GpuApi* hip_api(std::string* reason) {
  if (reason != nullptr) *reason = "left out of this build: " WEIR_HIP_REASON;
  return nullptr;
}

}  // namespace weir

namespace weir::device_list {
namespace {

DeviceType::Found find() {
  DeviceType::Found none;
  const GpuApi* const api = hip_api(&none.reason);
  return api == nullptr ? none : find_gpus(*api);
}

std::unique_ptr<Device> open(const std::string& which, const DeviceOptions& options) {
  const int index = device_number("hip", which);
  std::string reason;
  const GpuApi* const api = hip_api(&reason);
  if (api == nullptr) reject(fmt::format("--device hip:{}: {}", index, reason), "Use --device cpu.");
  return open_gpu(*api, {.index = index, .communicator = options.communicator});
}

}  // namespace

DeviceType hip() { return {"hip", "AMD GPUs", find, open}; }

}  // namespace weir::device_list
