#include "channel/memory_pool.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <atomic>
#include <cstring>
#include <random>
#include <thread>
#include <vector>

#include "base/error.h"
#include "channel/mpsc.h"
#include "channel/payload.h"

namespace weir {
namespace {

constexpr std::size_t kKib = 1024, kMib = kKib * kKib;

// Host memory that counts who comes, and has only so much.
class CountingSource final : public MemorySource {
 public:
  explicit CountingSource(std::size_t most = SIZE_MAX) : max_(most) {}
  MemoryKind kind() const noexcept override { return MemoryKind::host; }
  bool is_host_accessible() const noexcept override { return true; }
  std::byte* allocate(std::size_t bytes) noexcept override {
    if (held_ + bytes > max_) return nullptr;
    held_ += bytes;
    ++calls_;
    return host_.allocate(bytes);
  }
  void release(std::byte* memory, std::size_t bytes) noexcept override {
    held_ -= bytes;
    host_.release(memory, bytes);
  }
  std::size_t held() const { return held_; }
  int calls() const { return calls_; }

 private:
  HostMemorySource host_;
  std::size_t max_;
  std::atomic<std::size_t> held_{0};
  std::atomic<int> calls_{0};
};

// Whoever touches it dies.
class UntouchableSource final : public MemorySource {
 public:
  MemoryKind kind() const noexcept override { return MemoryKind::device; }
  bool is_host_accessible() const noexcept override { return false; }
  std::byte* allocate(std::size_t bytes) noexcept override {
    void* const memory = mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return memory == MAP_FAILED ? nullptr : static_cast<std::byte*>(memory);
  }
  void release(std::byte* memory, std::size_t bytes) noexcept override { munmap(memory, bytes); }
};

void fill(std::span<std::byte> bytes, std::uint64_t value) {
  for (std::size_t i = 0; i + sizeof value <= bytes.size(); i += sizeof value)
    std::memcpy(bytes.data() + i, &value, sizeof value);
}
bool holds(std::span<const std::byte> bytes, std::uint64_t value) {
  for (std::size_t i = 0; i + sizeof value <= bytes.size(); i += sizeof value)
    if (std::memcmp(bytes.data() + i, &value, sizeof value) != 0) return false;
  return true;
}

TEST(SlotBins, every_size_fits_and_wastes_little) {
  std::uint32_t last = 0;
  for (std::size_t bytes = 0; bytes < 70'000; ++bytes) {
    const std::uint32_t bin = slot_bins::bin_of(bytes);
    ASSERT_GE(slot_bins::bytes_of(bin), bytes);
    ASSERT_TRUE(bin == last || bin == last + 1) << bytes;
    ASSERT_TRUE(bin == 0 || slot_bins::bytes_of(bin - 1) < bytes) << bytes;
    ASSERT_EQ(slot_bins::bytes_of(bin) % 64, 0U);
    ASSERT_TRUE(bytes <= slot_bins::kSmallest || slot_bins::bytes_of(bin) <= bytes + bytes / 4) << bytes;
    last = bin;
  }
  for (std::uint32_t bin = 0; bin < slot_bins::kCount; ++bin)
    EXPECT_EQ(slot_bins::bin_of(slot_bins::bytes_of(bin)), bin);
}

TEST(MemoryPool, slots_are_aligned_apart_and_of_their_size) {
  MemoryPool pool;
  std::vector<Slot> slots;
  for (std::size_t i = 0; i < 300; ++i) {
    slots.push_back(pool.allocate(i * 37));
    EXPECT_EQ(slots.back().size_bytes(), i * 37);
    EXPECT_GE(slots.back().capacity_bytes(), i * 37);
    EXPECT_EQ(std::bit_cast<std::uintptr_t>(slots.back().data()) % 64, 0U);
    fill(slots.back().bytes(), i);
  }
  for (std::size_t i = 0; i < slots.size(); ++i) EXPECT_TRUE(holds(slots[i].bytes(), i)) << i;
}

TEST(MemoryPool, a_slot_moves) {
  MemoryPool pool;
  Slot a = pool.allocate(100), b = pool.allocate(200);
  std::byte* const first = a.data();
  b = std::move(a);
  EXPECT_EQ(b.data(), first);
  EXPECT_EQ(b.size_bytes(), 100U);
  EXPECT_EQ(pool.statistics().frees, 1U);
  Slot c(std::move(b));
  EXPECT_EQ(c.data(), first);
  c = Slot();
  EXPECT_EQ(pool.statistics().allocated_bytes, 0U);
}

TEST(MemoryPool, statistics_are_exact) {
  const auto source = std::make_shared<CountingSource>();
  MemoryPool pool({.limit_bytes = 64 * kMib, .chunk_bytes = 64 * kKib}, source);
  EXPECT_EQ(pool.statistics().source_calls, 0U);
  std::vector<Slot> slots;
  for (int i = 0; i < 100; ++i) slots.push_back(pool.allocate(1000));
  PoolStatistics now = pool.statistics();
  EXPECT_EQ(now.allocations, 100U);
  EXPECT_EQ(now.frees, 0U);
  EXPECT_EQ(now.allocated_bytes, 100 * kKib);
  EXPECT_EQ(now.source_calls, 2U);  // of 64 slots each
  EXPECT_EQ(now.recycled, 98U);
  EXPECT_EQ(now.source_bytes, 128 * kKib);
  EXPECT_EQ(now.source_bytes, source->held());
  ASSERT_EQ(now.cached_bytes.size(), 1U);
  EXPECT_EQ(now.peak_bytes, 100 * kKib + now.cached_bytes[0]);
  const std::size_t peak = now.peak_bytes;
  slots.resize(40);
  now = pool.statistics();
  EXPECT_EQ(now.frees, 60U);
  EXPECT_EQ(now.allocated_bytes, 40 * kKib);
  EXPECT_EQ(now.peak_bytes, peak);
  // At most two magazines of this size.
  EXPECT_LE(now.cached_bytes[0], 2 * Magazine::kMax * kKib);
  slots.clear();
  now = pool.statistics();
  EXPECT_EQ(now.allocated_bytes, 0U);
  EXPECT_EQ(now.frees, 100U);
  EXPECT_EQ(now.refused, 0U);
  EXPECT_EQ(now.peak_source_bytes, 128 * kKib);
}

TEST(MemoryPool, memory_is_used_again) {
  const auto source = std::make_shared<CountingSource>();
  MemoryPool pool({.limit_bytes = 256 * kMib}, source);
  const auto use = [&](int rounds) {
    for (int round = 0; round < rounds; ++round) {
      std::vector<Slot> slots;
      for (int i = 0; i < 50; ++i) slots.push_back(pool.allocate(i % 2 == 0 ? kKib : kMib));
    }
  };
  use(2);
  const int calls = source->calls();
  use(1000);
  EXPECT_EQ(source->calls(), calls);
  EXPECT_EQ(pool.statistics().recycled, 1002U * 50U - static_cast<unsigned>(calls));
}

TEST(MemoryPool, what_one_thread_frees_another_gets) {
  const auto source = std::make_shared<CountingSource>();
  MemoryPool pool({.limit_bytes = 256 * kMib}, source);
  Mpsc<CommandRecord> channel(64);
  constexpr int kCommands = 20'000;
  int right = 0;
  std::thread consumer([&] {
    CommandRecord record;
    while (channel.pop(record, Limit::within(200'000'000'000)) == Outcome::done) {
      EXPECT_EQ(kind_of(record.copy.payload), HandleKind::slot);
      const Slot slot = Slot::adopt(record.copy.payload, record.copy.size_bytes);
      right += holds(slot.bytes(), record.id) ? 1 : 0;
    }
  });
  std::vector<std::thread> producers;
  for (std::uint32_t p = 0; p < 2; ++p) {
    producers.emplace_back([&, p] {
      for (std::uint32_t i = 0; i < kCommands / 2; ++i) {
        Slot slot = pool.allocate(i % 2 == 0 ? 512 : 2000);
        fill(slot.bytes(), p * kCommands + i);
        const std::size_t size = slot.size_bytes();
        const CopyFields copy{.buffer = 0, .offset_bytes = 0, .size_bytes = size, .payload = slot.release()};
        const CommandRecord record = make_copy(RecordKind::copy_to_device, 0, copy, p * kCommands + i);
        if (channel.push(record, Limit::within(200'000'000'000)) != Outcome::done) drop_payload(copy.payload);
      }
    });
  }
  for (std::thread& producer : producers) producer.join();
  channel.close();
  consumer.join();
  EXPECT_EQ(right, kCommands);
  const PoolStatistics now = pool.statistics();
  EXPECT_EQ(now.allocations, static_cast<unsigned>(kCommands));
  EXPECT_EQ(now.frees, static_cast<unsigned>(kCommands));
  EXPECT_EQ(now.allocated_bytes, 0U);
  // The channel, two magazines of two sizes for each thread, and a chunk of each.
  EXPECT_LE(now.source_bytes, 4 * kMib);
}

// Threads allocate, check, swap with each other and free in random order; nobody sees what another has written.
TEST(MemoryPool, random_use_by_several_threads) {
  const auto source = std::make_shared<CountingSource>();
  MemoryPool pool({.limit_bytes = 8 * kMib, .chunk_bytes = 32 * kKib}, source);
  constexpr int kThreads = 4, kSteps = 20'000;
  struct Passed {
    Slot slot;
    std::uint64_t value = 0;
  };
  std::vector<Passed> market(64);
  std::mutex mutex;
  std::atomic<int> wrong{0}, refused{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      std::mt19937_64 random(static_cast<unsigned>(t) + 1);
      std::vector<Passed> mine(40);
      for (int step = 0; step < kSteps; ++step) {
        Passed& here = mine[random() % mine.size()];
        if (here.slot && !holds(here.slot.bytes(), here.value)) wrong.fetch_add(1);
        switch (random() % 4) {
          case 0:
          case 1: {
            const std::size_t most = random() % 16 == 0 ? 100'000 : 3'000;
            here.slot.reset();
            here.slot = pool.try_allocate(random() % most);
            here.value = random();
            if (!here.slot) {
              refused.fetch_add(1);
            } else {
              fill(here.slot.bytes(), here.value);
            }
            break;
          }
          case 2:
            here.slot.reset();
            break;
          default: {
            const std::lock_guard lock(mutex);
            std::swap(here, market[random() % market.size()]);
          }
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong.load(), 0);
  EXPECT_LE(source->held(), 8 * kMib);
  PoolStatistics now = pool.statistics();
  EXPECT_EQ(now.refused, static_cast<unsigned>(refused.load()));
  EXPECT_TRUE(now.cached_bytes.empty()) << "threads that ended keep nothing";
  std::size_t left = 0;
  for (const Passed& passed : market) left += passed.slot.capacity_bytes();
  EXPECT_EQ(now.allocated_bytes, left);
  market.clear();
  EXPECT_EQ(pool.statistics().allocated_bytes, 0U);
}

TEST(MemoryPool, refuses_at_its_limit_and_says_why) {
  MemoryPool pool({.limit_bytes = 16 * kMib});
  std::vector<Slot> slots;
  for (int i = 0; i < 16; ++i) slots.push_back(pool.allocate(kMib));
  Refusal why = Refusal::none;
  EXPECT_FALSE(pool.try_allocate(kMib, why));
  EXPECT_EQ(why, Refusal::exhausted);
  try {
    const Slot slot = pool.allocate(kMib);
    FAIL() << "was not refused";
  } catch (const Error& error) {
    const std::string text = error.what();
    EXPECT_NE(text.find("1.00 MiB (1048576 bytes)"), std::string::npos) << text;
    EXPECT_NE(text.find("16.0 MiB of 16.0 MiB are in use"), std::string::npos) << text;
    EXPECT_FALSE(error.hint.empty());
    EXPECT_EQ(error.fault, Fault::run);
  }
  EXPECT_EQ(pool.statistics().refused, 2U);
  EXPECT_EQ(pool.statistics().drained, 0U) << "it is plain that all are in use";
  slots.pop_back();
  EXPECT_TRUE(pool.try_allocate(kMib));
}

TEST(MemoryPool, grows_where_that_is_its_policy) {
  const auto source = std::make_shared<CountingSource>(64 * kMib);
  MemoryPool pool({.limit_bytes = 4 * kMib, .when_exhausted = Exhaustion::grow}, source);
  std::vector<Slot> slots;
  for (int i = 0; i < 64; ++i) slots.push_back(pool.allocate(kMib));
  EXPECT_EQ(pool.statistics().source_bytes, 64 * kMib);
  Refusal why = Refusal::none;
  EXPECT_FALSE(pool.try_allocate(kMib, why));
  EXPECT_EQ(why, Refusal::source);
  EXPECT_THROW(pool.allocate(kMib), Error);
}

TEST(MemoryPool, too_large_is_an_error_that_names_the_sizes) {
  MemoryPool pool({.limit_bytes = 8 * kMib, .largest_bytes = 2 * kMib});
  EXPECT_EQ(pool.largest_bytes(), 2 * kMib);
  Refusal why = Refusal::none;
  EXPECT_FALSE(pool.try_allocate(2 * kMib + 1, why));
  EXPECT_EQ(why, Refusal::too_large);
  EXPECT_FALSE(pool.try_allocate(SIZE_MAX, why));
  EXPECT_TRUE(pool.try_allocate(2 * kMib, why));
  try {
    const Slot slot = pool.allocate(3 * kMib);
    FAIL() << "was not refused";
  } catch (const Error& error) {
    const std::string text = error.what();
    EXPECT_NE(text.find("3.00 MiB (3145728 bytes)"), std::string::npos) << text;
    EXPECT_NE(text.find("2.00 MiB"), std::string::npos) << text;
    EXPECT_NE(text.find("8.00 MiB"), std::string::npos) << text;
    EXPECT_EQ(error.fault, Fault::input);
  }
  // No slot can be larger than the pool.
  EXPECT_EQ(MemoryPool({.limit_bytes = kMib}).largest_bytes(), kMib);
  EXPECT_THROW(MemoryPool({.limit_bytes = 100}), Error);
  EXPECT_THROW(MemoryPool({.largest_bytes = 0}), Error);
}

// Every slot is free, but in the cache of a thread that sleeps.
TEST(MemoryPool, takes_what_other_threads_have_cached) {
  MemoryPool pool({.limit_bytes = 64 * kKib});
  std::vector<Slot> slots;
  for (int i = 0; i < 64; ++i) slots.push_back(pool.allocate(kKib));
  std::atomic<int> stage{0};
  std::thread other([&] {
    slots.clear();
    stage.store(1);
    stage.notify_one();
    stage.wait(1);
    // Goes on as if nothing had happened.
    for (int i = 0; i < 100; ++i) EXPECT_TRUE(pool.try_allocate(kKib));
  });
  stage.wait(0);
  for (int i = 0; i < 64; ++i) {
    slots.push_back(pool.try_allocate(kKib));
    EXPECT_TRUE(slots.back()) << i;
  }
  EXPECT_FALSE(pool.try_allocate(kKib));
  EXPECT_GE(pool.statistics().drained, 1U);
  slots.resize(32);
  stage.store(2);
  stage.notify_one();
  other.join();
}

TEST(MemoryPool, memory_goes_from_one_size_to_another) {
  const auto source = std::make_shared<CountingSource>();
  MemoryPool pool({.limit_bytes = 4 * kMib}, source);
  for (const std::size_t size : {kKib, 100 * kKib, 4 * kMib, 5 * kKib, kKib, kMib, 100 * kKib}) {
    std::vector<Slot> slots;
    while (Slot slot = pool.try_allocate(size)) {
      fill(slot.bytes(), size);
      slots.push_back(std::move(slot));
    }
    ASSERT_FALSE(slots.empty()) << size;
    EXPECT_GE(slots.size() * slots.front().capacity_bytes() * 10, 9 * 4 * kMib) << size;
    for (const Slot& slot : slots) EXPECT_TRUE(holds(slot.bytes(), size));
  }
  EXPECT_LE(source->held(), 4 * kMib);
}

TEST(MemoryPool, an_empty_source_is_an_error_that_says_so) {
  MemoryPool pool({.limit_bytes = 64 * kMib}, std::make_shared<CountingSource>(2 * kMib));
  std::vector<Slot> slots;
  for (int i = 0; i < 2; ++i) slots.push_back(pool.allocate(kMib));
  try {
    const Slot slot = pool.allocate(kMib);
    FAIL() << "was not refused";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("no host memory is left"), std::string::npos) << error.what();
  }
  // And what the source has is found again, in another size too.
  slots.clear();
  EXPECT_TRUE(pool.try_allocate(1500 * kKib));
}

TEST(MemoryPool, slots_of_threads_that_end_come_back) {
  MemoryPool pool({.limit_bytes = 64 * kKib});
  for (int i = 0; i < 50; ++i) {
    std::thread([&] {
      std::vector<Slot> slots;
      for (int k = 0; k < 64; ++k) slots.push_back(pool.allocate(kKib));
    }).join();
  }
  EXPECT_EQ(pool.statistics().allocations, 50U * 64U);
  EXPECT_EQ(pool.statistics().frees, 50U * 64U);
  EXPECT_EQ(pool.statistics().allocated_bytes, 0U);
  EXPECT_EQ(pool.statistics().drained, 0U);
}

TEST(MemoryPool, may_go_before_the_threads_that_used_it) {
  auto first = std::make_unique<MemoryPool>();
  std::atomic<int> stage{0};
  std::thread thread([&] {
    {
      const Slot slot = first->allocate(kKib);
    }
    stage.store(1);
    stage.notify_one();
    stage.wait(1);
    // A pool that may have the address of the first.
    MemoryPool second;
    for (int i = 0; i < 100; ++i) {
      const Slot slot = second.allocate(kKib);
      fill(slot.bytes(), 1);
    }
    EXPECT_EQ(second.statistics().allocations, 100U);
  });
  stage.wait(0);
  first.reset();
  stage.store(2);
  stage.notify_one();
  thread.join();
}

TEST(MemoryPool, one_thread_uses_many_pools) {
  std::vector<std::unique_ptr<MemoryPool>> pools;
  for (int i = 0; i < 40; ++i) pools.push_back(std::make_unique<MemoryPool>(PoolOptions{.limit_bytes = kMib}));
  std::vector<Slot> slots;
  for (int round = 0; round < 20; ++round)
    for (const auto& pool : pools) slots.push_back(pool->allocate(kKib));
  for (const auto& pool : pools) EXPECT_EQ(pool->statistics().allocated_bytes, 20 * kKib);
  slots.clear();
  for (const auto& pool : pools) EXPECT_EQ(pool->statistics().allocated_bytes, 0U);
}

// Destructors of thread_local objects may free slots after the thread's caches have gone.
TEST(MemoryPool, serves_threads_that_are_ending) {
  static MemoryPool* pool = nullptr;
  MemoryPool mine({.limit_bytes = kMib});
  pool = &mine;
  struct Late {
    Slot slot;
    ~Late() {
      slot.reset();
      for (int i = 0; i < 200; ++i) EXPECT_TRUE(pool->try_allocate(kKib));
    }
  };
  std::thread([] {
    static thread_local Late late;  // made before the caches, so it goes after them
    late.slot = pool->allocate(kKib);
  }).join();
  EXPECT_EQ(mine.statistics().allocated_bytes, 0U);
  EXPECT_EQ(mine.statistics().allocations, 201U);
  EXPECT_EQ(mine.statistics().frees, 201U);
}

TEST(MemoryPool, never_touches_what_the_host_must_not) {
  MemoryPool pool({.limit_bytes = 16 * kMib}, std::make_shared<UntouchableSource>());
  EXPECT_EQ(pool.kind(), MemoryKind::device);
  std::vector<std::thread> threads;
  for (int t = 0; t < 2; ++t) {
    threads.emplace_back([&] {
      for (int round = 0; round < 200; ++round) {
        std::vector<Slot> slots;
        while (slots.size() < 100) {
          slots.push_back(pool.try_allocate(slots.size() * 1000));
          if (!slots.back()) break;
          EXPECT_FALSE(slots.back().is_host_accessible());
        }
        const Payload payload(std::move(slots.front()));
        EXPECT_FALSE(payload.is_host_accessible());
        const Payload clone = payload.clone();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(pool.statistics().allocated_bytes, 0U);
}

// Many threads that want nearly all there is, so that caches are emptied all the time.
TEST(MemoryPool, is_right_under_pressure) {
  MemoryPool pool({.limit_bytes = 32 * kKib});
  constexpr int kThreads = 3;
  std::atomic<int> wrong{0};
  std::atomic<std::uint64_t> got{0};
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      std::mt19937 random(t);
      std::vector<Slot> mine;
      for (int step = 0; step < 3000; ++step) {
        if (Slot slot = pool.try_allocate(kKib); slot) {
          fill(slot.bytes(), t);
          mine.push_back(std::move(slot));
          got.fetch_add(1);
        }
        if (mine.size() == 10 || random() % 3 == 0) {
          for (const Slot& slot : mine) wrong.fetch_add(holds(slot.bytes(), t) ? 0 : 1);
          mine.clear();
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong.load(), 0);
  const PoolStatistics now = pool.statistics();
  EXPECT_EQ(now.allocations, got.load());
  EXPECT_EQ(now.frees, got.load());
  EXPECT_LE(now.peak_source_bytes, 32 * kKib);
  // With 32 slots and at most 10 in the hands of each, nobody may be refused.
  EXPECT_EQ(now.refused, 0U) << now.drained;
}

#define SKIP_UNLESS_CHECKED() \
  if (!kChecksMemory) GTEST_SKIP() << "release builds do not check: the record of a slot would travel between cores"

TEST(MemoryPoolDeathTest, freeing_twice_is_caught) {
  SKIP_UNLESS_CHECKED();
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(
      {
        MemoryPool pool;
        const PayloadHandle handle = pool.allocate(kKib).release();
        Slot first = Slot::adopt(handle, kKib);
        Slot second = Slot::adopt(handle, kKib);
        first.reset();
        second.reset();
      },
      "slot of 1024 bytes at .* is freed twice");
}

TEST(MemoryPoolDeathTest, use_after_release_is_caught) {
  SKIP_UNLESS_CHECKED();
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(
      {
        MemoryPool pool;
        const PayloadHandle handle = pool.allocate(kKib).release();
        drop_payload(handle);
        Slot again = Slot::adopt(handle, kKib);
      },
      "is used after it was released");
  EXPECT_DEATH(
      {
        MemoryPool pool;
        const PayloadHandle handle = pool.allocate(kKib).release();
        Slot one = Slot::adopt(handle, kKib);
        Slot other = Slot::adopt(handle, kKib);
        one.reset();
        const Slot next = pool.allocate(kKib);  // the same slot, in other hands
        static_cast<void>(other.data());
      },
      "is used after it was released");
  // A pointer that was kept: at the access under AddressSanitizer, otherwise when the slot is used again.
  EXPECT_DEATH(
      {
        MemoryPool pool;
        Slot slot = pool.allocate(kKib);
        volatile std::byte* const kept = slot.data();
        slot.reset();
        kept[8] = std::byte{1};
        slot = pool.allocate(kKib);
      },
      kHasAsan ? "use-after-poison" : "was written to after it was released");
}

TEST(MemoryPoolDeathTest, writing_behind_a_slot_is_caught) {
  if (!kHasAsan) GTEST_SKIP() << "only AddressSanitizer sees every access";
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(
      {
        MemoryPool pool;
        const Slot slot = pool.allocate(1000);
        volatile std::byte* const data = slot.data();
        data[1000] = std::byte{1};
      },
      "use-after-poison");
}

TEST(MemoryPoolDeathTest, a_pool_that_goes_too_early_is_caught) {
  SKIP_UNLESS_CHECKED();
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(
      {
        MemoryPool pool;
        static_cast<void>(pool.allocate(kKib).release());
      },
      "goes while 1.00 KiB of its slots are in use");
}

TEST(MemoryPoolDeathTest, a_handle_of_something_else_is_caught) {
  SKIP_UNLESS_CHECKED();
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(static_cast<void>(Slot::adopt(Payload::allocate(10).release(), 10)), "is no handle of a pool's slot");
}

}  // namespace
}  // namespace weir
