// Device memory and pinned memory of a real GPU behind the memory pool. Skipped where there is none.
#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <thread>
#include <vector>

#include "base/error.h"
#include "channel/memory_pool.h"
#include "channel/mpsc.h"
#include "channel/payload.h"
#include "device/gpu/cuda.h"
#include "device/gpu/gpu.h"
#include "submit/device_memory.h"
#include "support/cuda_test.h"

namespace weir {
namespace {

constexpr std::size_t kMib = std::size_t{1} << 20;

std::vector<std::byte> pattern(std::size_t bytes, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<std::byte> all(bytes);
  for (std::byte& byte : all) byte = static_cast<std::byte>(random());
  return all;
}

class DeviceMemoryOfGpu : public CudaTest {
 protected:
  std::shared_ptr<DeviceMemorySource> source(Place place) {
    return std::make_shared<DeviceMemorySource>(device(), place);
  }
};

TEST_F(DeviceMemoryOfGpu, slots_hold_what_is_copied_into_them) {
  const auto memory = source(Place::device);
  EXPECT_EQ(memory->kind(), MemoryKind::device);
  EXPECT_FALSE(memory->is_host_accessible());
  MemoryPool pool({.limit_bytes = 256 * kMib}, memory);
  std::vector<Slot> slots;
  const std::size_t sizes[] = {1, 300, 4096, 100'000, kMib, 5 * kMib};
  for (std::uint64_t i = 0; i < 60; ++i) {
    slots.push_back(pool.allocate(sizes[i % 6]));
    memory->memory().write(slots.back().data(), pattern(slots.back().size_bytes(), i));
  }
  for (std::uint64_t i = 0; i < slots.size(); ++i) {
    std::vector<std::byte> seen(slots[i].size_bytes());
    memory->memory().read(slots[i].data(), seen);
    EXPECT_EQ(seen, pattern(seen.size(), i)) << i;
  }
}

TEST_F(DeviceMemoryOfGpu, memory_is_used_again_by_many_threads) {
  MemoryPool pool({.limit_bytes = 256 * kMib}, source(Place::device));
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      std::mt19937 random(t);
      std::vector<Slot> mine(16);
      for (int i = 0; i < 20'000; ++i) mine[random() % mine.size()] = pool.allocate(random() % kMib);
    });
  }
  for (std::thread& thread : threads) thread.join();
  const PoolStatistics now = pool.statistics();
  EXPECT_EQ(now.allocations, 80'000U);
  EXPECT_EQ(now.frees, 80'000U);
  EXPECT_EQ(now.allocated_bytes, 0U);
  EXPECT_LT(now.source_calls, 2'000U);
  EXPECT_LE(now.peak_source_bytes, 256 * kMib);
}

TEST_F(DeviceMemoryOfGpu, pinned_memory_is_the_hosts_and_the_devices) {
  const auto pinned = source(Place::host), device = source(Place::device);
  EXPECT_EQ(pinned->kind(), MemoryKind::pinned);
  EXPECT_TRUE(pinned->is_host_accessible());
  MemoryPool host_pool({.limit_bytes = 64 * kMib}, pinned), device_pool({.limit_bytes = 64 * kMib}, device);
  Mpsc<CommandRecord> channel(16);
  constexpr std::uint32_t kCommands = 200;
  int right = 0;
  // A command carries a pinned slot; whoever receives it copies the bytes to the device, and back to see.
  std::thread consumer([&] {
    CommandRecord record;
    while (channel.pop(record, Limit::within(60'000'000'000)) == Outcome::done) {
      const Payload payload = Payload::adopt(record.copy.payload);
      const Slot there = device_pool.allocate(payload.size_bytes());
      device->memory().write(there.data(), payload.bytes());
      std::vector<std::byte> seen(payload.size_bytes());
      device->memory().read(there.data(), seen);
      right += seen == pattern(seen.size(), record.id) ? 1 : 0;
    }
  });
  for (std::uint32_t i = 0; i < kCommands; ++i) {
    Payload payload(host_pool.allocate(100'000));
    const auto bytes = pattern(payload.size_bytes(), i);
    std::memcpy(payload.writable().data(), bytes.data(), bytes.size());
    const CopyFields copy{.buffer = 0, .offset_bytes = 0, .size_bytes = bytes.size(), .payload = payload.release()};
    const CommandRecord record = make_copy(RecordKind::copy_to_device, 0, copy, i);
    if (channel.push(record, Limit::within(60'000'000'000)) != Outcome::done) drop_payload(copy.payload);
  }
  channel.close();
  consumer.join();
  EXPECT_EQ(right, static_cast<int>(kCommands));
}

TEST_F(DeviceMemoryOfGpu, more_than_there_is_is_an_error_that_says_so) {
  const std::size_t most = device().info().memory_bytes.value.value();
  MemoryPool pool({.limit_bytes = 4 * most, .largest_bytes = std::size_t{1} << 30}, source(Place::device));
  std::vector<Slot> slots;
  Refusal why = Refusal::none;
  while (slots.size() < most / kMib) {
    Slot slot = pool.try_allocate(std::size_t{1} << 30, why);
    if (!slot) break;
    slots.push_back(std::move(slot));
  }
  EXPECT_EQ(why, Refusal::source);
  EXPECT_THROW(pool.allocate(std::size_t{1} << 30), Error);
  slots.pop_back();
  EXPECT_TRUE(pool.try_allocate(std::size_t{1} << 30)) << "what was freed is there again";
}

TEST_F(DeviceMemoryOfGpu, outlives_the_device) {
  MemoryPool pool({.limit_bytes = 16 * kMib}, source(Place::device));
  {
    const Slot slot = pool.allocate(kMib);
  }
  close_device();
  const Slot slot = pool.allocate(4 * kMib);
  EXPECT_TRUE(slot);
}

}  // namespace
}  // namespace weir
