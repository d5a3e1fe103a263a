#include "device/gpu/gpu.h"

#include <algorithm>

#include "device/gpu/context.h"
#include "device/gpu/device_memory.h"
#include "device/gpu/session.h"

namespace weir {
namespace {

constexpr const char* kNoGpuHint =
    "In a container, add the GPU (docker run --gpus all; AMD: --device /dev/kfd --device /dev/dri). Without a GPU use "
    "--device cpu, or a simulated one: --device sim:h200.";

class GpuDevice final : public Device {
 public:
  GpuDevice(const GpuApi& api, const GpuOptions& options)
      : context_(std::make_shared<PrimaryContext>(api, options.index)), options_(options) {
    context_->enter();
    check(api, api.facts(options.index, &facts_), "asking what the device is");
    check(api, api.priority_range(&least_, &greatest_), "asking for priorities");
    if (options.compute_units > 0) units_ = confined_units(*context_, facts_, options.compute_units);
  }

  DeviceInfo info() const override {
    const GpuApi& api = context_->api();
    DeviceInfo info;
    info.name = context_->device_name();
    info.backend = api.backend;
    info.model = facts_.model;
    info.driver = versions();
    info.is_gpu = true;
    if (api.capture_begin == nullptr) info.graphs = lacking("the driver cannot capture them");
    if (api.launch_host == nullptr) info.host_functions = lacking("the driver cannot call the host from a stream");
    info.priorities = options_.priorities;
    if (info.priorities && least_ == greatest_) info.priorities = lacking("the driver has one level");
    if (info.priorities && units_ > 0 && api.divide == nullptr)
      info.priorities = lacking("streams on a part of the device have no priority");
    info.compute_units = can_confine(api);
    info.stream_compute_units = units_;
    info.asked_compute_units = options_.compute_units;
    if (api.stream_write == nullptr)
      info.command_ends = lacking("the driver has no writes in stream order, which say what has ended");
    info.precisions = {Precision::fp32};
    if (facts_.has_tf32) info.precisions.push_back(Precision::tf32);
    if (facts_.has_fp16) info.precisions.push_back(Precision::fp16);
    if (facts_.has_bf16) info.precisions.push_back(Precision::bf16);
    if (facts_.has_fp8_e4m3) info.precisions.push_back(Precision::fp8_e4m3);
    info.lowest_priority = -least_;
    info.highest_priority = -greatest_;
    if (options_.hardware_queues > 0) info.hardware_queues.value = options_.hardware_queues;
    info.hardware_queues.reason = api.queues_reason;
    info.queue_variable = api.queue_variable;
    info.max_hardware_queues = api.max_hardware_queues;
    info.calls = api.calls;
    info.multiprocessors.value = facts_.multiprocessors;
    if (facts_.copy_engines > 0) info.copy_engines.value = facts_.copy_engines;
    if (facts_.copy_engines == 0) info.copy_engines.reason = "the driver does not say";
    info.memory_bytes.value = facts_.memory_bytes;
    return info;
  }

  Telemetry telemetry() override {
    const GpuManagement* management = found_board();
    return management == nullptr ? Telemetry{} : management->read(board_);
  }

  DeviceBoard board() override {
    const GpuManagement* management = found_board();
    DeviceBoard board = management == nullptr ? DeviceBoard{} : management->read_board(board_);
    board.bus = facts_.bus_id;
    for (char& letter : board.bus)
      if (letter >= 'A' && letter <= 'F') letter = static_cast<char>(letter - 'A' + 'a');
    return board;
  }

  std::unique_ptr<DeviceMemory> memory(Place place) override { return make_gpu_memory(context_, place); }

  std::unique_ptr<Session> prepare(const Step& step, const Placement& placement,
                                   const SessionOptions& options) override {
    return std::make_unique<GpuSession>(context_, facts_, step, placement, options,
                                        GpuConfinement{options_.compute_units, options_.rest_stream},
                                        options_.communicator, options_.stages_collectives);
  }

 private:
  // Null where no library knows the board.
  const GpuManagement* found_board() {
    const GpuManagement* management = context_->api().management(nullptr);
    if (management != nullptr && board_ == nullptr) board_ = management->find(facts_.bus_id.c_str());
    return board_ == nullptr ? nullptr : management;
  }

  // 580.65.06, CUDA 13.0
  std::string versions() const {
    const GpuApi& api = context_->api();
    int version = 0;
    std::string text = api.driver_version(&version) == 0 ? api.format_version(version) : "";
    const GpuManagement* management = api.management(nullptr);
    if (management == nullptr || management->driver_version.empty()) return text;
    return management->driver_version + (text.empty() ? "" : ", " + text);
  }

  std::shared_ptr<PrimaryContext> context_;
  GpuFacts facts_;
  GpuOptions options_;
  int least_ = 0, greatest_ = 0;
  int units_ = 0;  // that streams are confined to
  void* board_ = nullptr;
};

}  // namespace

DeviceType::Found find_gpus(const GpuApi& api) {
  int count = 0;
  if (const int result = api.device_count(&count); result != 0) return {{}, "no device: " + api.describe(result)};
  if (count == 0) return {{}, fmt::format("no device: the {} driver is there but sees none", api.vendor_name)};
  DeviceType::Found found;
  found.gpus = static_cast<std::size_t>(count);
  for (int i = 0; i < count; ++i) found.names.push_back(fmt::format("{}:{}", api.backend, i));
  return found;
}

std::unique_ptr<Device> open_gpu(const GpuApi& api, const GpuOptions& options) {
  const int index = options.index;
  const DeviceType::Found found = find_gpus(api);
  const std::string name = fmt::format("{}:{}", api.backend, index);
  if (found.names.empty()) reject_setting("device", name, found.reason, kNoGpuHint);
  if (index < 0 || static_cast<std::size_t>(index) >= found.names.size())
    reject_setting("device", name, fmt::format("this machine has {} to {}", found.names.front(), found.names.back()),
                   "`weir info` lists the devices.");
  return std::make_unique<GpuDevice>(api, options);
}

DeviceType::Found find_gpus(GpuOpener opener) {
  DeviceType::Found none;
  const GpuApi* const api = opener(&none.reason);
  return api == nullptr ? none : find_gpus(*api);
}

std::unique_ptr<Device> open_gpu(GpuOpener opener, const std::string& backend, const std::string& which,
                                 const DeviceOptions& options, const Capability& priorities) {
  const int index = device_number(backend, which);
  std::string reason;
  const GpuApi* const api = opener(&reason);
  if (api == nullptr) reject_setting("device", fmt::format("{}:{}", backend, index), reason, kNoGpuHint);
  // The driver reads the variable once and limits it like this.
  const int queues = options.number(api->queue_variable);
  return open_gpu(*api, {.index = index,
                         .hardware_queues = queues == 0 ? api->default_hardware_queues
                                                        : std::clamp(queues, 1, api->max_hardware_queues),
                         .compute_units = options.compute_units,
                         .rest_stream = options.rest_stream,
                         .priorities = priorities,
                         .communicator = options.communicator,
                         .stages_collectives = options.stages_collectives});
}

}  // namespace weir
