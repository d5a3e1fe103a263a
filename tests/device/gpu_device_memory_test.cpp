// Memory of a GPU outside of any session, on the fake table: everything comes from the right entry and goes back to it.
#include <gtest/gtest.h>

#include <vector>

#include "channel/memory_pool.h"
#include "channel/payload.h"
#include "device/fake_gpu.h"
#include "device/gpu/device_memory.h"
#include "device/gpu/gpu.h"
#include "submit/device_memory.h"

namespace weir {
namespace {

constexpr std::size_t kMib = std::size_t{1} << 20;

TEST(GpuDeviceMemory, goes_back_to_the_table) {
  fake_gpu::reset({});
  {
    std::unique_ptr<Device> device = open_gpu(fake_gpu::api(), {});
    const auto source = std::make_shared<DeviceMemorySource>(*device, Place::device);
    EXPECT_EQ(source->kind(), MemoryKind::device);
    EXPECT_FALSE(source->is_host_accessible());
    const auto pinned = std::make_shared<DeviceMemorySource>(*device, Place::host);
    EXPECT_EQ(pinned->kind(), MemoryKind::pinned);
    EXPECT_TRUE(pinned->is_host_accessible());
    MemoryPool pool({.limit_bytes = 8 * kMib}, source), host_pool({.limit_bytes = 8 * kMib}, pinned);
    device.reset();  // the sources keep what they need
    const Slot slot = pool.allocate(1000);
    const Payload payload(host_pool.allocate(1000));
    for (std::size_t i = 0; i < 1000; ++i) payload.writable()[i] = static_cast<std::byte>(i);
    EXPECT_FALSE(slot.is_host_accessible());
    EXPECT_TRUE(payload.is_host_accessible());
    source->memory().write(slot.data(), payload.bytes());
    std::vector<std::byte> seen(1000);
    source->memory().read(slot.data(), seen);
    EXPECT_TRUE(std::equal(seen.begin(), seen.end(), payload.bytes().begin()));
    EXPECT_NE(fake_gpu::leaks().find("buffers"), std::string::npos) << fake_gpu::leaks();
  }
  EXPECT_EQ(fake_gpu::leaks(), "");
}

TEST(GpuDeviceMemory, of_which_there_is_no_more_is_refused) {
  fake_gpu::reset({.memory_bytes = 10 * kMib});
  {
    const std::unique_ptr<Device> device = open_gpu(fake_gpu::api(), {});
    MemoryPool pool({.limit_bytes = 64 * kMib}, std::make_shared<DeviceMemorySource>(*device, Place::device));
    std::vector<Slot> slots;
    Refusal why = Refusal::none;
    while (Slot slot = pool.try_allocate(kMib, why)) slots.push_back(std::move(slot));
    EXPECT_EQ(why, Refusal::source);
    EXPECT_EQ(slots.size(), 10U);
    slots.clear();
    // Eight of one size make room for one of another.
    EXPECT_TRUE(pool.try_allocate(8 * kMib));
  }
  EXPECT_EQ(fake_gpu::leaks(), "");
}

}  // namespace
}  // namespace weir
