#include "device/gpu/memory.h"

#include <bit>
#include <cstring>

#include "base/units.h"
#include "device/initial_contents.h"

namespace weir {
namespace {

constexpr std::uint64_t kGranularity = 512;  // of device allocations: the driver rounds small ones up to this

std::uint64_t rounded(std::uint64_t bytes) { return (bytes + kGranularity - 1) / kGranularity * kGranularity; }

[[noreturn]] void reject_size(const PrimaryContext& context, std::uint64_t buffers, std::uint64_t workspace,
                              std::uint64_t free, std::uint64_t total) {
  const std::string extra = workspace == 0 ? "" : fmt::format(", {} of it gemm workspace", format_bytes(workspace));
  reject(fmt::format("{}: out of memory: {} needed{}, {} of {} free", context.device_name(),
                     format_bytes(buffers + workspace), extra, format_bytes(free), format_bytes(total)),
         "Use a smaller --scale, fewer --streams, or smaller sizes by --param.");
}

}  // namespace

GpuBuffers::GpuBuffers(PrimaryContext& context, const Step& step, std::size_t workspace_bytes)
    : context_(context), step_(step) {
  const GpuApi& api = context.api();
  std::uint64_t needed = 0;
  for (const Buffer& buffer : step.buffers())
    if (buffer.place == Place::device) needed += rounded(buffer.size_bytes());
  std::size_t free = 0, total = 0;
  check(api, api.memory_info(&free, &total), "asking for free memory");
  if (needed + workspace_bytes > free) reject_size(context, needed, workspace_bytes, free, total);

  for (const Buffer& buffer : step.buffers()) {
    if (buffer.place == Place::host) {
      void* memory = nullptr;
      const int result = api.host_allocate(&memory, buffer.size_bytes(), kGpuHostPortable);
      if (result != 0)
        fail(fmt::format("{}: cannot allocate {} of pinned host memory ({} needed in all): {}", context.device_name(),
                         format_bytes(buffer.size_bytes()), format_bytes(step.size_bytes(Place::host)),
                         api.describe(result)),
             "Pinned memory may be limited (ulimit -l). Use a smaller --scale or smaller sizes by --param.");
      host_.emplace_back(memory, GpuClose<void*, &GpuApi::host_free>{&api});
      addresses_.push_back(static_cast<std::byte*>(memory));
      continue;
    }
    GpuPointer memory = 0;
    // Free memory is fragmented: the sum would fit, but no single hole does.
    if (api.memory_allocate(&memory, buffer.size_bytes()) != 0)
      reject_size(context, needed, workspace_bytes, free, total);
    device_.emplace_back(memory, GpuClose<GpuPointer, &GpuApi::memory_free>{&api});
    addresses_.push_back(std::bit_cast<std::byte*>(memory));
  }
}

void GpuBuffers::initialise_on_device(const Buffer& buffer, std::byte* address, GpuStream stream) {
  const GpuApi& api = context_.api();
  const auto pointer = std::bit_cast<GpuPointer>(address);
  const auto launch_fill = [&](const KernelShape& shape, Geometry geometry, std::uint64_t offset_bytes) {
    auto arguments = arguments_of<KernelArguments>(shape);
    arguments.operands[0] = address + offset_bytes;
    void* parameters[] = {&arguments};
    check(api,
          api.launch(context_.function(fmt::format("weir_fill_{}", name_of(buffer.type))), geometry.grid, 1, 1,
                     geometry.block, 1, 1, 0, stream, parameters, nullptr),
          "launching fill");
  };
  const auto repeat = [&](std::span<const std::byte> element) {
    unsigned value = 0;
    unsigned short short_value = 0;
    if (element.size() == sizeof value) {
      std::memcpy(&value, element.data(), sizeof value);
      check(api, api.set_32(pointer, value, buffer.count, stream), "filling a buffer");
    } else {
      std::memcpy(&short_value, element.data(), sizeof short_value);
      check(api, api.set_16(pointer, short_value, buffer.count, stream), "filling a buffer");
    }
  };
  weir::initialise_on_device(buffer, true, launch_fill, repeat, [&](std::span<const std::byte> bytes) {
    check(api, api.copy_to_device(pointer, bytes.data(), bytes.size(), stream), "copying to the device");
    check(api, api.stream_synchronize(stream), "copying to the device");
  });
}

void GpuBuffers::initialise(GpuStream stream) {
  const auto buffers = step_.buffers();
  for (BufferId id = 0; id < buffers.size(); ++id) {
    if (buffers[id].place == Place::host) {
      weir::initialise(buffers[id], {addresses_[id], buffers[id].size_bytes()});
    } else {
      initialise_on_device(buffers[id], addresses_[id], stream);
    }
  }
  check(context_.api(), context_.api().stream_synchronize(stream), "initialising buffers");
}

void GpuBuffers::read(BufferId id, std::span<std::byte> bytes, GpuStream stream) const {
  const Buffer& buffer = step_.buffers()[id];
  if (bytes.size() != buffer.size_bytes()) fail("read: the span does not fit the buffer");
  if (buffer.place == Place::host) {
    std::memcpy(bytes.data(), addresses_[id], bytes.size());
    return;
  }
  const GpuApi& api = context_.api();
  check(api, api.copy_to_host(bytes.data(), std::bit_cast<GpuPointer>(addresses_[id]), bytes.size(), stream),
        "reading a buffer");
  check(api, api.stream_synchronize(stream), "reading a buffer");
}

}  // namespace weir
