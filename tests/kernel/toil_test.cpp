// The CPU body of toil by itself, on threads that stop and go on: every unit once, and what is wrong is counted.
#include "kernel/toil.h"

#include <gtest/gtest.h>

#include <atomic>
#include <random>
#include <thread>
#include <vector>

#include "kernel/kernel.h"

namespace weir {
namespace {

class Toil {
 public:
  Toil(std::int64_t units, std::int64_t blocks, std::int64_t style, std::int64_t amount = 0, std::int64_t words = 0)
      : memory_(static_cast<std::size_t>(2 * words) + 1, 0), done(static_cast<std::size_t>(units), 0) {
    call_.shape = {.type = ElementType::i32, .dims = {amount, units, blocks, style | words << kToilSizeShift}};
    call_.operands = {&flag, record, state, done.data(), memory_.data()};
  }
  // All blocks of one launch, each on its own thread.
  void launch(std::int64_t job, std::int64_t epoch) {
    record[kToilJob] = job;
    record[kToilEpoch] = epoch;
    const Kernel& toil = kernel(kernel_named("toil"));
    std::vector<std::jthread> threads;
    for (std::uint32_t block = 0; block < toil.blocks(call_.shape); ++block)
      threads.emplace_back([&, block] { toil.run_block(call_, block); });
  }
  std::vector<std::uint64_t>& memory() { return memory_; }

 private:
  KernelCall call_;
  alignas(64) std::vector<std::uint64_t> memory_;

 public:
  std::vector<std::int32_t> done;
  std::int32_t flag = 0;
  std::int64_t record[kToilRecordWords] = {};
  std::int32_t state[kToilStateElements] = {};
};

TEST(Toil, does_every_unit_of_every_job_once) {
  Toil toil(37, 4, 0);
  for (int job = 0; job < 40; ++job) {
    toil.launch(job, 0);
    EXPECT_EQ(toil.record[kToilTaken], 37);
    EXPECT_EQ(toil.record[kToilLaunches], job + 1);
    EXPECT_LE(toil.record[kToilStarted], toil.record[kToilEnded]);
  }
  EXPECT_EQ(toil.done, std::vector<std::int32_t>(37, 40));
  EXPECT_EQ(toil.state[kToilLost], 0);
  EXPECT_EQ(toil.state[kToilRepeated], 0);
}

TEST(Toil, a_block_per_unit_counts_launches) {
  Toil toil(5, 0, 0);
  for (int i = 0; i < 3; ++i) toil.launch(0, 0);
  EXPECT_EQ(toil.done, std::vector<std::int32_t>(5, 3));
  EXPECT_EQ(toil.record[kToilTaken], 5);
  EXPECT_EQ(toil.record[kToilLaunches], 3);
}

// Jobs that are queued behind one another and told to end anywhere: told or not, each goes on where it stopped.
TEST(Toil, goes_on_where_it_stopped) {
  constexpr std::int64_t kUnits = 200;
  std::mt19937 random(3);
  Toil toil(kUnits, 3, kToilStoppable, 1'000);
  std::int64_t job = 0;
  for (std::int32_t epoch = 0; job < 60; ++epoch) {
    std::jthread teller([&, wait = random() % 100] {
      for (unsigned i = 0; i < wait; ++i) std::this_thread::yield();
      std::atomic_ref(toil.flag).store(epoch + 1, std::memory_order_release);
    });
    // Two in flight, as the host queues them: what follows an interrupted one was told as well.
    for (std::int64_t ahead = job; ahead < job + 2; ++ahead) {
      toil.launch(ahead, epoch);
      if (toil.record[kToilTaken] == kUnits) continue;
      toil.launch(ahead + 1, epoch);
      EXPECT_EQ(toil.record[kToilTaken], 0);
      job = ahead - 2;
      break;
    }
    job += 2;
  }
  toil.launch(job, toil.flag);  // nobody tells this one to end
  EXPECT_EQ(toil.state[kToilLost], 0);
  EXPECT_EQ(toil.state[kToilRepeated], 0);
  for (const std::int32_t done : toil.done) EXPECT_EQ(done, job + 1);
}

TEST(Toil, takes_nothing_when_told_before) {
  Toil toil(10, 2, kToilStoppable);
  toil.flag = 5;
  toil.launch(0, 4);
  EXPECT_EQ(toil.record[kToilTaken], 0);
  EXPECT_EQ(toil.done, std::vector<std::int32_t>(10, 0));
  toil.launch(0, 5);
  EXPECT_EQ(toil.record[kToilTaken], 10);
  EXPECT_EQ(toil.done, std::vector<std::int32_t>(10, 1));
}

TEST(Toil, counts_what_is_lost_or_repeated) {
  Toil toil(10, 2, 0);
  toil.launch(0, 0);
  toil.done[3] = 0;  // as if it had been lost
  toil.done[7] = 2;  // as if job 1 had done it already
  toil.launch(1, 0);
  EXPECT_EQ(toil.state[kToilLost], 1);
  EXPECT_EQ(toil.state[kToilRepeated], 1);
}

TEST(Toil, reads_all_memory_it_should) {
  Toil toil(4, 0, kToilStreams, 8, 32);
  toil.launch(0, 0);
  EXPECT_EQ(toil.state[kToilNotZero], 0);
  toil.memory()[2 * 8 + 1] = 1;  // the first word of unit 1, its second half
  toil.launch(0, 0);
  EXPECT_EQ(toil.state[kToilNotZero], 1);
  toil.memory()[2 * 31] = 1;  // the last word of unit 3
  toil.launch(0, 0);
  EXPECT_EQ(toil.state[kToilNotZero], 3);
}

}  // namespace
}  // namespace weir
