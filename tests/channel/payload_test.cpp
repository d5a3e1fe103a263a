#include "channel/payload.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <thread>
#include <vector>

#include "channel/mpsc.h"

namespace weir {
namespace {

constexpr std::size_t kMib = std::size_t{1} << 20;

std::vector<std::byte> pattern(std::size_t bytes) {
  std::vector<std::byte> all(bytes);
  for (std::size_t i = 0; i < bytes; ++i) all[i] = static_cast<std::byte>(i * 131 >> 3);
  return all;
}
bool equal(std::span<const std::byte> a, std::span<const std::byte> b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size()) == 0;
}

TEST(Payload, copies_share_the_bytes) {
  const auto bytes = pattern(1000);
  const Payload first = Payload::copy_of(bytes);
  EXPECT_EQ(first.references(), 1U);
  const Payload second = first.clone();
  Payload third = second;
  EXPECT_EQ(first.references(), 3U);
  EXPECT_EQ(first.data(), second.data());
  EXPECT_EQ(first.data(), third.data());
  EXPECT_TRUE(equal(third.bytes(), bytes));
  EXPECT_EQ(std::bit_cast<std::uintptr_t>(first.data()) % 64, 0U);
  third.reset();
  EXPECT_EQ(first.references(), 2U);
  EXPECT_FALSE(third);
  EXPECT_EQ(third.size_bytes(), 0U);
}

TEST(Payload, can_be_written_until_it_is_shared) {
  Payload payload = Payload::allocate(16);
  ASSERT_EQ(payload.writable().size(), 16U);
  payload.writable()[3] = std::byte{7};
  {
    const Payload clone = payload.clone();
    EXPECT_TRUE(payload.writable().empty());
    EXPECT_TRUE(clone.writable().empty());
    EXPECT_EQ(clone.bytes()[3], std::byte{7});
  }
  EXPECT_EQ(payload.writable().size(), 16U);
  EXPECT_TRUE(Payload().writable().empty());
}

TEST(Payload, assignment_drops_what_was_there) {
  Payload a = Payload::allocate(8), b = Payload::allocate(8);
  const Payload keeps_a = a;
  a = b;
  EXPECT_EQ(keeps_a.references(), 1U);
  EXPECT_EQ(b.references(), 2U);
  Payload& same = a;
  a = same;
  EXPECT_EQ(b.references(), 2U);
  a = std::move(b);
  EXPECT_EQ(a.references(), 1U);
}

TEST(Payload, a_slot_goes_back_with_the_last_reference) {
  MemoryPool pool;
  Slot slot = pool.allocate(1000);
  const auto bytes = pattern(1000);
  std::memcpy(slot.data(), bytes.data(), bytes.size());
  const std::byte* const where = slot.data();
  Payload payload(std::move(slot));
  EXPECT_FALSE(slot);
  EXPECT_EQ(payload.data(), where);
  EXPECT_EQ(payload.size_bytes(), 1000U);
  Payload clone = payload.clone();
  payload.reset();
  EXPECT_TRUE(equal(clone.bytes(), bytes));
  EXPECT_EQ(pool.statistics().frees, 0U);
  clone.reset();
  EXPECT_EQ(pool.statistics().frees, 1U);
  EXPECT_EQ(pool.allocate(1000).data(), where);  // the same memory again
}

TEST(Payload, one_reference_travels_as_a_number) {
  MemoryPool pool;
  for (const bool is_pooled : {false, true}) {
    Payload payload = is_pooled ? Payload(pool.allocate(100)) : Payload::allocate(100);
    Payload sent = payload;
    const PayloadHandle handle = sent.release();
    EXPECT_FALSE(sent);
    EXPECT_EQ(payload.references(), 2U);
    EXPECT_EQ(kind_of(handle), HandleKind::payload);
    {
      const Payload received = Payload::adopt(handle);
      EXPECT_EQ(received.data(), payload.data());
      EXPECT_EQ(payload.references(), 2U);
    }
    EXPECT_EQ(payload.references(), 1U);
    drop_payload(payload.release());
  }
  EXPECT_EQ(pool.statistics().allocated_bytes, 0U);
  EXPECT_EQ(kind_of(0), HandleKind::none);
  drop_payload(0);
}

TEST(Payload, commands_own_what_they_carry) {
  MemoryPool pool;
  const auto bytes = pattern(kMib);
  Slot slot = pool.allocate(kMib);
  std::memcpy(slot.data(), bytes.data(), bytes.size());
  const Payload payload(std::move(slot));
  Mpsc<CommandRecord> channel(16);
  constexpr std::uint32_t kCommands = 3000;
  std::uint32_t right = 0;
  std::thread consumer([&] {
    CommandRecord record;
    while (channel.pop(record, Limit::within(200'000'000'000)) == Outcome::done) {
      const Payload received = Payload::adopt(record.copy.payload);
      const std::size_t at = record.id * 331 % kMib;
      right += received.size_bytes() == kMib && received.bytes()[at] == bytes[at] ? 1 : 0;
    }
  });
  std::vector<std::thread> producers;
  for (int p = 0; p < 3; ++p) {
    producers.emplace_back([&] {
      for (std::uint32_t i = 0; i < kCommands; ++i) {
        const CopyFields copy{.buffer = 1, .offset_bytes = 0, .size_bytes = kMib, .payload = payload.clone().release()};
        const CommandRecord record = make_copy(RecordKind::copy_to_device, 0, copy, i);
        if (channel.push(record, Limit::within(200'000'000'000)) != Outcome::done) drop_payload(copy.payload);
      }
    });
  }
  for (std::thread& producer : producers) producer.join();
  channel.close();
  consumer.join();
  EXPECT_EQ(right, 3 * kCommands);
  EXPECT_EQ(payload.references(), 1U);
  EXPECT_EQ(pool.statistics().allocations, 1U);
}

// Each thread drops a reference that another has cloned; whoever is last gives the bytes back, once.
TEST(Payload, many_threads_clone_and_drop) {
  MemoryPool pool;
  const auto bytes = pattern(kMib);
  constexpr int kThreads = 4, kRounds = 30;
  std::atomic<int> wrong{0};
  for (int round = 0; round < kRounds; ++round) {
    Payload payload = round % 2 == 0 ? Payload(pool.allocate(kMib)) : Payload::allocate(kMib);
    std::memcpy(payload.writable().data(), bytes.data(), bytes.size());
    std::vector<Payload> handed(kThreads, payload);
    payload.reset();
    std::vector<std::thread> threads;
    for (std::size_t t = 0; t < kThreads; ++t) {
      threads.emplace_back([&, t, own = std::move(handed[t])]() mutable {
        for (std::size_t i = 0; i < 500; ++i) {
          Payload clone = own.clone();
          const std::size_t at = (i * 2099 + t * 7) % kMib;
          if (clone.bytes()[at] != bytes[at]) wrong.fetch_add(1);
          std::swap(own, clone);
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
  }
  EXPECT_EQ(wrong.load(), 0);
  EXPECT_EQ(pool.statistics().allocated_bytes, 0U);
  EXPECT_EQ(pool.statistics().frees, static_cast<unsigned>(kRounds / 2));
}

TEST(PayloadDeathTest, use_after_the_last_drop_is_caught) {
  if (!kChecksMemory) GTEST_SKIP() << "release builds do not check";
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(
      {
        MemoryPool pool;
        const PayloadHandle handle = Payload(pool.allocate(64)).release();
        drop_payload(handle);
        drop_payload(handle);
      },
      "is used after");
  EXPECT_DEATH(
      {
        const PayloadHandle handle = Payload::allocate(64).release();
        drop_payload(handle);
        drop_payload(handle);
      },
      "heap-use-after-free|is used after");
  EXPECT_DEATH(
      {
        MemoryPool pool;
        static_cast<void>(Payload::adopt(pool.allocate(64).release()));
      },
      "is no handle of a payload");
}

}  // namespace
}  // namespace weir
