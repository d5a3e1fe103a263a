#include "lab/channels/loops/device_step.h"

#include <numeric>

namespace weir::channel_bench {
namespace {

Step step_of(int kernels) {
  StepBuilder builder(1);
  const BufferId word = builder.output(ElementType::f32, 1);
  for (int i = 0; i < kernels; ++i)
    builder.launch("fill", {.stream = 0}, {.dims = {1, 0}, .scalars = {1.0F}}, {{word}});
  return std::move(builder).seal(1);
}

const DeviceType* type_of(const std::string& device) {
  for (const DeviceType& type : device_types())
    if (type.name == device.substr(0, device.find(':'))) return &type;
  return nullptr;
}

}  // namespace

DeviceStep::DeviceStep(const std::string& device, int kernels)
    : device_(open_device(device, {})),
      step_(step_of(kernels)),
      placement_{"serial", 1, std::vector<StreamId>(step_.commands().size(), 0)},
      commands_(step_.commands().size()) {
  std::iota(commands_.begin(), commands_.end(), CommandId{0});
  SessionOptions options;
  options.marks_iterations = false;
  session_ = device_->prepare(step_, placement_, options);
}

void DeviceStep::run() {
  session_->begin_iteration();
  session_->submit(commands_);
  session_->finish();
}

std::string why_not_on(const std::string& device) {
  const DeviceType* const type = type_of(device);
  if (type == nullptr) return {};  // "auto" always finds a device
  if (type->name == "sim") return "it lives in virtual time, in which the threads of this machine take none";
  const DeviceType::Found found = type->find();
  return found.names.empty() ? found.reason : std::string();
}

std::vector<std::string> devices_like(const std::string& device) {
  const DeviceType* const type = type_of(device);
  return type == nullptr ? std::vector<std::string>() : type->find().names;
}

}  // namespace weir::channel_bench
