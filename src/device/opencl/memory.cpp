#include "device/opencl/memory.h"

#if WEIR_HAVE_OPENCL
#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "base/error.h"
#include "base/units.h"
#include "device/initial_contents.h"

namespace weir {
namespace {

// Only fine-grained shared memory is a plain pointer on both sides.
class SvmMemory final : public DeviceMemory {
 public:
  explicit SvmMemory(std::shared_ptr<OpenclContext> context) : context_(std::move(context)) {}
  std::byte* allocate(std::size_t bytes) noexcept override {
    constexpr cl_svm_mem_flags kFlags = CL_MEM_READ_WRITE | CL_MEM_SVM_FINE_GRAIN_BUFFER;
    return static_cast<std::byte*>(context_->api().svm_allocate(context_->get(), kFlags, bytes, 128));
  }
  void release(std::byte* memory) noexcept override { context_->api().svm_free(context_->get(), memory); }
  bool is_pinned() const noexcept override { return true; }

 private:
  std::shared_ptr<OpenclContext> context_;
};

}  // namespace

std::unique_ptr<DeviceMemory> make_opencl_memory(std::shared_ptr<OpenclContext> context) {
  if (context->sharing() != OpenclSharing::fine_svm) return nullptr;
  return std::make_unique<SvmMemory>(std::move(context));
}

OpenclBuffers::OpenclBuffers(OpenclContext& context, const Step& step) : context_(context), step_(step) {
  const OpenclFacts& facts = context.facts();
  const std::uint64_t needed = step.size_bytes(Place::device);
  constexpr const char* kHint = "Use a smaller --scale, fewer --streams, or smaller sizes by --param.";
  if (needed > facts.memory_bytes)
    reject(fmt::format("{}: out of memory: {} needed, the device has {}", context.name(), format_bytes(needed),
                       format_bytes(facts.memory_bytes)),
           kHint);
  for (const Buffer& buffer : step.buffers()) {
    if (buffer.place == Place::host) {
      host_.emplace_back(context, context.sharing(), buffer.size_bytes());
      memory_.push_back(host_.back().buffer());
      host_address_.push_back(host_.back().data());
      continue;
    }
    if (buffer.size_bytes() > facts.largest_buffer_bytes)
      reject(fmt::format("{}: a buffer of {} is too large, the driver allows {}", context.name(),
                         format_bytes(buffer.size_bytes()), format_bytes(facts.largest_buffer_bytes)),
             kHint);
    device_.push_back(context.make_buffer(CL_MEM_READ_WRITE, buffer.size_bytes()));
    memory_.push_back(device_.back().get());
    host_address_.push_back(nullptr);
  }
}

void OpenclBuffers::initialise_on_device(const Buffer& buffer, cl_mem memory, cl_command_queue queue) {
  const OpenclApi& api = context_.api();
  const auto launch_fill = [&](const KernelShape& shape, Geometry geometry, std::uint64_t offset_bytes) {
    const OpenclKernelOwner fill = context_.make_kernel("fill", buffer.type);
    check_opencl(api.set_argument(fill.get(), 0, sizeof memory, &memory), "setting an argument");
    for (cl_uint i = 1; i < kMaxOperands; ++i)
      check_opencl(api.set_argument(fill.get(), i, sizeof(cl_mem), nullptr), "setting an argument");
    auto arguments = arguments_of<OpenclArguments>(shape);
    arguments.offsets[0] = offset_bytes;
    check_opencl(api.set_argument(fill.get(), kMaxOperands, sizeof arguments, &arguments), "setting an argument");
    const std::size_t local = context_.work_group(fill.get(), geometry.block);
    const std::size_t global = local * geometry.grid;
    check_opencl(api.enqueue_kernel(queue, fill.get(), 1, nullptr, &global, &local, 0, nullptr, nullptr),
                 "launching fill");
  };
  const auto repeat = [&](std::span<const std::byte> element) {
    check_opencl(
        api.enqueue_fill(queue, memory, element.data(), element.size(), 0, buffer.size_bytes(), 0, nullptr, nullptr),
        "filling a buffer");
  };
  weir::initialise_on_device(buffer, false, launch_fill, repeat, [&](std::span<const std::byte> bytes) {
    check_opencl(api.enqueue_write(queue, memory, CL_TRUE, 0, bytes.size(), bytes.data(), 0, nullptr, nullptr),
                 "copying to the device");
  });
}

void OpenclBuffers::initialise(cl_command_queue queue) {
  const auto buffers = step_.buffers();
  for (BufferId id = 0; id < buffers.size(); ++id) {
    if (buffers[id].place == Place::host) {
      weir::initialise(buffers[id], {host_address_[id], buffers[id].size_bytes()});
    } else {
      initialise_on_device(buffers[id], memory_[id], queue);
    }
  }
  check_opencl(context_.api().finish(queue), context_.name() + ": initialising buffers");
}

void OpenclBuffers::read(BufferId id, std::span<std::byte> bytes, cl_command_queue queue) const {
  const Buffer& buffer = step_.buffers()[id];
  if (bytes.size() != buffer.size_bytes()) fail("read: the span does not fit the buffer");
  if (buffer.place == Place::host) {
    std::memcpy(bytes.data(), host_address_[id], bytes.size());
    return;
  }
  check_opencl(
      context_.api().enqueue_read(queue, memory_[id], CL_TRUE, 0, bytes.size(), bytes.data(), 0, nullptr, nullptr),
      context_.name() + ": reading a buffer");
}

}  // namespace weir
#endif
