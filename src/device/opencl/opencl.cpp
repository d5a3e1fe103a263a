// Any device with an OpenCL driver: in-order command queues as streams. Facts and the list's entry, but no session.
#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "device/list.h"
#include "weir_build.h"

#if WEIR_HAVE_OPENCL
#include "device/opencl/platforms.h"
#include "device/opencl/session.h"

namespace weir {
namespace {

class OpenclDevice final : public Device {
 public:
  explicit OpenclDevice(std::shared_ptr<OpenclContext> context) : context_(std::move(context)) {}

  DeviceInfo info() const override {
    const OpenclFacts& facts = context_->facts();
    DeviceInfo info;
    info.name = context_->name();
    info.backend = "opencl";
    info.model = fmt::format("{} ({})", facts.model, facts.platform);
    // OpenCL 3.0 PoCL 3.1+debian  Linux, None+Asserts, RELOC, SPIR, LLVM 15.0.6, SLEEF, POCL_DEBUG
    info.driver = fmt::format("{}, driver {}", facts.platform_version.substr(0, facts.platform_version.find("  ")),
                              facts.driver_version);
    if (const OpenclBlas* const blas = OpenclBlas::open()) info.driver += ", CLBlast " + blas->version();
    info.is_gpu = facts.is_gpu;
    info.graphs = opencl_graphs(*context_);
    if (facts.offers("cl_khr_priority_hints")) {
      info.lowest_priority = -1;
      info.highest_priority = 1;
    } else {
      info.priorities = lacking("the driver does not offer priorities (cl_khr_priority_hints)");
    }
    info.kernel_clock = context_->kernel_clock();
    if (std::string reason; context_->sharing(&reason) == OpenclSharing::none)
      info.host_memory = lacking("kernels and the host cannot use memory at once, " + reason);
    info.command_ends = lacking("its session does not follow single commands");
    info.precisions = {Precision::fp32, Precision::fp16, Precision::bf16};
    info.hardware_queues.reason = "OpenCL does not tell how a driver maps command queues to hardware";
    info.copy_engines.reason = "OpenCL does not tell";
    info.multiprocessors.value = facts.compute_units;
    info.memory_bytes.value = facts.memory_bytes;
    info.calls = {.launch_kernel = "clEnqueueNDRangeKernel",
                  .launch_copy = "clEnqueueCopyBuffer",
                  .launch_host = "clEnqueueMarkerWithWaitList",
                  .launch_graph = "clEnqueueCommandBufferKHR",
                  .wait = "clFinish"};
    return info;
  }

  // Buffer objects are not addresses; without shared memory, plain host memory stands in for both places.
  std::unique_ptr<DeviceMemory> memory(Place place) override {
    auto shared = make_opencl_memory(context_);
    return shared != nullptr ? std::move(shared) : Device::memory(place);
  }

  std::unique_ptr<Session> prepare(const Step& step, const Placement& placement,
                                   const SessionOptions& options) override {
    return std::make_unique<OpenclSession>(context_, step, placement, options);
  }

 private:
  std::shared_ptr<OpenclContext> context_;
};

}  // namespace
}  // namespace weir

namespace weir::device_list {
namespace {

DeviceType::Found find() {
  const OpenclDevices& all = opencl_devices();
  DeviceType::Found found;
  found.reason = all.reason;
  found.notes = all.notes;
  for (const auto& context : all.devices) {
    found.names.push_back(context->name());
    if (context->facts().is_gpu) ++found.gpus;
    found.are_numbered = found.are_numbered && context->facts().model == all.devices.front()->facts().model;
  }
  return found;
}

std::unique_ptr<Device> open(const std::string& which, const DeviceOptions& options) {
  const auto index = static_cast<std::size_t>(device_number("opencl", which));
  const OpenclDevices& all = opencl_devices();
  const std::string name = fmt::format("opencl:{}", index);
  if (all.devices.empty()) reject_setting("device", name, all.reason, "Use --device cpu.");
  if (index >= all.devices.size())
    reject_setting("device", name,
                   fmt::format("this machine has {} to {}", all.devices.front()->name(), all.devices.back()->name()),
                   "`weir info` lists the devices.");
  if (options.compute_units > 0)
    reject_setting("compute_units", std::to_string(options.compute_units), "opencl cannot confine streams",
                   "Leave it out.");
  return std::make_unique<OpenclDevice>(all.devices[index]);
}

}  // namespace
}  // namespace weir::device_list

#else

namespace weir::device_list {
namespace {

constexpr const char* kReason = "left out of this build: " WEIR_OPENCL_REASON;

DeviceType::Found find() { return {.reason = kReason}; }

std::unique_ptr<Device> open(const std::string& which, const DeviceOptions&) {
  reject_setting("device", fmt::format("opencl:{}", device_number("opencl", which)), kReason, "Use --device cpu.");
}

}  // namespace
}  // namespace weir::device_list

#endif

namespace weir::device_list {

DeviceType opencl() { return {"opencl", "whatever has an OpenCL driver", find, open}; }

}  // namespace weir::device_list
