#include "device/gpu/device_memory.h"

#include <bit>
#include <mutex>
#include <utility>

namespace weir {
namespace {

class GpuMemory final : public DeviceMemory {
 public:
  explicit GpuMemory(std::shared_ptr<PrimaryContext> context) : context_(std::move(context)) {
    context_->enter();
    stream_ = make_stream(context_->api(), 0);
  }
  ~GpuMemory() override { context_->bind(); }

  std::byte* allocate(std::size_t bytes) noexcept override {
    GpuPointer memory = 0;
    if (context_->bind() != 0 || context_->api().memory_allocate(&memory, bytes) != 0) return nullptr;
    return std::bit_cast<std::byte*>(memory);
  }
  void release(std::byte* memory) noexcept override {
    context_->bind();
    context_->api().memory_free(std::bit_cast<GpuPointer>(memory));  // a lost GPU refuses this: ignore it
  }
  bool is_host_accessible() const noexcept override { return false; }

  void write(std::byte* to, std::span<const std::byte> from) override {
    const GpuApi& api = context_->api();
    const std::lock_guard lock(mutex_);
    context_->enter();
    check(api, api.copy_to_device(std::bit_cast<GpuPointer>(to), from.data(), from.size(), stream_.get()),
          "copying to the device");
    check(api, api.stream_synchronize(stream_.get()), "copying to the device");
  }
  void read(const std::byte* from, std::span<std::byte> to) override {
    const GpuApi& api = context_->api();
    const std::lock_guard lock(mutex_);
    context_->enter();
    check(api, api.copy_to_host(to.data(), std::bit_cast<GpuPointer>(from), to.size(), stream_.get()),
          "copying from the device");
    check(api, api.stream_synchronize(stream_.get()), "copying from the device");
  }

 private:
  std::shared_ptr<PrimaryContext> context_;  // before the stream, which is destroyed first
  GpuStreamOwner stream_;
  std::mutex mutex_;  // one copy at a time, each waits for its own
};

class PinnedMemory final : public DeviceMemory {
 public:
  explicit PinnedMemory(std::shared_ptr<PrimaryContext> context) : context_(std::move(context)) {}

  std::byte* allocate(std::size_t bytes) noexcept override {
    void* memory = nullptr;
    if (context_->bind() != 0 || context_->api().host_allocate(&memory, bytes, kGpuHostPortable) != 0) return nullptr;
    return static_cast<std::byte*>(memory);
  }
  void release(std::byte* memory) noexcept override {
    context_->bind();
    context_->api().host_free(memory);
  }
  bool is_pinned() const noexcept override { return true; }

 private:
  std::shared_ptr<PrimaryContext> context_;
};

}  // namespace

std::unique_ptr<DeviceMemory> make_gpu_memory(std::shared_ptr<PrimaryContext> context, Place place) {
  if (place == Place::host) return std::make_unique<PinnedMemory>(std::move(context));
  return std::make_unique<GpuMemory>(std::move(context));
}

}  // namespace weir
