// Every behaviour of the ring channels at small size: nothing lost, doubled, torn or overtaken, nobody left asleep.
#include <gtest/gtest.h>

#include <cstdlib>
#include <iostream>

#include "channel/explored_ring.h"
#include "channel/mpmc.h"
#include "channel/mpsc.h"
#include "channel/spsc.h"

namespace weir::explored {
namespace {

using Quick = ExploredWith<0>;  // spin_then_park that does not spin: only its fences differ from park

template <class Sync, Wait kWait>
using Single = Spsc<Item, kWait, Sync>;
template <class Sync, Wait kWait>
using Many = Mpsc<Item, kWait, Sync>;
template <class Sync, Wait kWait>
using All = Mpmc<Item, kWait, Sync>;

class Explore : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!kCanExplore) GTEST_SKIP() << "ThreadSanitizer cannot follow fibers; other builds run this";
  }
};

template <class Channel>
void expect_whole(const char* name, const Plan& plan) {
  Options options;
  if (getenv("SC")) options.model = Model::sequential;
  const Report report = explore_ring<Channel>(plan, options);
  std::cout << "  " << name << ": " << report.executions << " executions, " << report.states << " states\n";
  EXPECT_TRUE(report.is_complete && report.failure.empty()) << name << ": " << report.text();
}

[[maybe_unused]] bool runs_long() { return std::getenv("WEIR_LONG_TESTS") != nullptr; }

TEST_F(Explore, Probe) {
  const auto get = [](const char* n, int d) { return getenv(n) ? atoi(getenv(n)) : d; };
  const std::string w = std::getenv("P");
  Plan plan{.producers = get("PR", 1),
            .consumers = get("CO", 1),
            .pushes = (unsigned)get("PUSH", 1),
            .pops = (unsigned)get("POP", 0),
            .capacity = (unsigned)get("CAP", 1),
            .batch = (unsigned)get("BATCH", 0),
            .closes_last = get("LAST", 1) != 0,
            .consumer_closes = get("CC", 0) != 0,
            .has_closer = get("CL", 0) != 0,
            .has_deadline = get("DL", 0) != 0};
  if (w == "1s") expect_whole<Single<Explored, Wait::spin>>("spin", plan);
  if (w == "1b") expect_whole<Single<Explored, Wait::spin_then_park>>("spin_then_park", plan);
  if (w == "1q") expect_whole<Single<Quick, Wait::spin_then_park>>("quick", plan);
  if (w == "1p") expect_whole<Single<Explored, Wait::park>>("park", plan);
  if (w == "ms") expect_whole<Many<Explored, Wait::spin>>("spin", plan);
  if (w == "mq") expect_whole<Many<Quick, Wait::spin_then_park>>("quick", plan);
  if (w == "mp") expect_whole<Many<Explored, Wait::park>>("park", plan);
  if (w == "as") expect_whole<All<Explored, Wait::spin>>("spin", plan);
  if (w == "aq") expect_whole<All<Quick, Wait::spin_then_park>>("quick", plan);
  if (w == "ap") expect_whole<All<Explored, Wait::park>>("park", plan);
}

TEST_F(Explore, SpscClosedByItsProducer) {
  for (const std::size_t capacity : {1U, 2U}) {
    const Plan plan{.pushes = 3, .capacity = capacity};
    expect_whole<Single<Explored, Wait::spin>>("spin", plan);
    expect_whole<Single<Explored, Wait::spin_then_park>>("spin_then_park", plan);
    expect_whole<Single<Explored, Wait::park>>("park", plan);
  }
}

TEST_F(Explore, SpscClosedByItsConsumer) {
  for (const std::size_t capacity : {1U, 2U}) {
    const Plan plan{.pushes = 2, .capacity = capacity, .closes_last = false, .consumer_closes = true};
    expect_whole<Single<Explored, Wait::spin>>("spin", plan);
    expect_whole<Single<Explored, Wait::spin_then_park>>("spin_then_park", plan);
    expect_whole<Single<Explored, Wait::park>>("park", plan);
  }
}

TEST_F(Explore, SpscClosedByAThirdThread) {
  const Plan plan{.pushes = 2, .capacity = 1, .closes_last = false, .has_closer = true};
  expect_whole<Single<Explored, Wait::spin>>("spin", plan);
  expect_whole<Single<Quick, Wait::spin_then_park>>("spin_then_park", plan);
  expect_whole<Single<Explored, Wait::park>>("park", plan);
}

TEST_F(Explore, SpscBatches) {
  const Plan plan{.pushes = 4, .capacity = 2, .batch = 3};
  expect_whole<Single<Explored, Wait::spin_then_park>>("spin_then_park", plan);
  expect_whole<Single<Explored, Wait::park>>("park", plan);
}

TEST_F(Explore, SpscDeadlines) {
  const Plan plan{.pushes = 2, .pops = 3, .capacity = 1, .has_deadline = true};
  expect_whole<Single<Explored, Wait::spin_then_park>>("spin_then_park", plan);
  expect_whole<Single<Explored, Wait::park>>("park", plan);
}

TEST_F(Explore, Mpsc) {
  for (const std::size_t capacity : {1U, 2U}) {
    const Plan plan{.producers = 2, .pushes = 1, .capacity = capacity};
    expect_whole<Many<Explored, Wait::spin>>("spin", plan);
    expect_whole<Many<Quick, Wait::spin_then_park>>("spin_then_park", plan);
    expect_whole<Many<Explored, Wait::park>>("park", plan);
  }
}

TEST_F(Explore, Mpmc) {
  const Plan plan{.producers = 2, .consumers = 2, .pushes = 1, .pops = 1, .capacity = 2};
  expect_whole<All<Explored, Wait::park>>("park", plan);
}

}  // namespace
}  // namespace weir::explored
