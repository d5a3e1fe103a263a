// Memory of devices that have none of their own: the host's, behind the same pool.
#include "submit/device_memory.h"

#include <gtest/gtest.h>

#include <array>
#include <string>

#include "channel/memory_pool.h"

namespace weir {
namespace {

class DeviceMemoryOf : public testing::TestWithParam<std::string> {};

TEST_P(DeviceMemoryOf, is_the_hosts) {
  std::unique_ptr<Device> device = open_device(GetParam(), {});
  for (const Place place : {Place::device, Place::host}) {
    const auto source = std::make_shared<DeviceMemorySource>(*device, place);
    EXPECT_EQ(source->kind(), MemoryKind::host);
    EXPECT_TRUE(source->is_host_accessible());
    MemoryPool pool({.limit_bytes = std::size_t{8} << 20}, source);
    for (int round = 0; round < 3; ++round) {
      const Slot slot = pool.allocate(std::size_t{1} << 20);
      slot.bytes()[12345] = std::byte{7};
      std::array<std::byte, 2> seen{};
      source->memory().read(slot.data() + 12345, std::span(seen).first(1));
      EXPECT_EQ(seen[0], std::byte{7});
      const std::array<std::byte, 2> wanted{std::byte{1}, std::byte{2}};
      source->memory().write(slot.data(), wanted);
      EXPECT_EQ(slot.bytes()[1], std::byte{2});
    }
    EXPECT_EQ(pool.statistics().source_calls, 1U);
  }
}

TEST_P(DeviceMemoryOf, outlives_the_device) {
  std::unique_ptr<Device> device = open_device(GetParam(), {});
  MemoryPool pool({}, std::make_shared<DeviceMemorySource>(*device, Place::device));
  const Slot slot = pool.allocate(1000);
  device.reset();
  slot.bytes()[0] = std::byte{1};
  EXPECT_TRUE(pool.try_allocate(1000));
}

INSTANTIATE_TEST_SUITE_P(Devices, DeviceMemoryOf, testing::Values("cpu", "null", "sim"));

}  // namespace
}  // namespace weir
