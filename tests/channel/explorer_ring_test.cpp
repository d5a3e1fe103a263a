// Every behaviour of the ring channels at small size: nothing lost, doubled, torn or overtaken, nobody left asleep.
#include "channel/explored_ring.h"
#include "channel/exploring_test.h"
#include "channel/mpmc.h"
#include "channel/mpsc.h"
#include "channel/spsc.h"

namespace weir::explored {
namespace {

template <class Sync, Wait kWait>
using Single = Spsc<Item, kWait, Sync>;
template <class Sync, Wait kWait>
using Many = Mpsc<Item, kWait, Sync>;
template <class Sync, Wait kWait>
using All = Mpmc<Item, kWait, Sync>;

class Explore : public LargeExploringTest {};

template <template <class, Wait> class Channel>
void expect_whole_however_it_waits(const Plan& plan) {
  expect_whole<RingScenario<Channel<Explored, Wait::spin>>>("spin", {}, plan);
  expect_whole<RingScenario<Channel<Explored, Wait::spin_then_park>>>("spin_then_park", {}, plan);
  expect_whole<RingScenario<Channel<Explored, Wait::park>>>("park", {}, plan);
}
template <class Channel>
void expect_ring(const char* name, const Plan& plan) {
  expect_whole<RingScenario<Channel>>(name, {}, plan);
}
// Larger than what can be explored with all that memory may do.
template <class Channel>
void expect_sequential(const char* name, const Plan& plan) {
  expect_whole<RingScenario<Channel>>(name, {.model = Model::sequential}, plan);
}

TEST_F(Explore, SpscClosedByItsProducer) {
  expect_whole_however_it_waits<Single>({.pushes = 2, .capacity = 1});
  expect_whole_however_it_waits<Single>({.pushes = 2, .capacity = 2});
  expect_ring<Single<Explored, Wait::spin>>("spin", {.pushes = 4, .capacity = 2});
}

TEST_F(Explore, SpscClosedByItsConsumer) {
  for (const std::size_t capacity : {1U, 2U}) {
    expect_whole_however_it_waits<Single>(
        {.pushes = 2, .capacity = capacity, .closes_last = false, .consumer_closes = true});
  }
}

TEST_F(Explore, SpscClosedByAThirdThread) {
  Plan plan{.pushes = 1, .capacity = 1, .closes_last = false, .has_closer = true};
  expect_ring<Single<Quick, Wait::spin_then_park>>("spin_then_park", plan);
  expect_ring<Single<Explored, Wait::park>>("park", plan);
  plan.pushes = 3;
  expect_ring<Single<Explored, Wait::spin>>("spin", plan);
}

TEST_F(Explore, SpscBatches) {
  expect_whole_however_it_waits<Single>({.pushes = 2, .capacity = 1, .batch = 2});
  expect_ring<Single<Explored, Wait::spin>>("spin", {.pushes = 4, .capacity = 2, .batch = 3});
}

TEST_F(Explore, SpscDeadlines) {
  const Plan plan{.pushes = 2, .pops = 2, .capacity = 1, .closes_last = false, .has_deadline = true};
  expect_ring<Single<Quick, Wait::spin_then_park>>("spin_then_park", plan);
  expect_ring<Single<Explored, Wait::park>>("park", plan);
}

TEST_F(Explore, Mpsc) {
  Plan plan{.producers = 2, .pushes = 1, .capacity = 1};
  expect_ring<Many<Explored, Wait::spin>>("spin", plan);
  expect_sequential<Many<Explored, Wait::park>>("park", plan);
  plan = {.producers = 2, .pushes = 1, .pops = 2, .capacity = 2, .closes_last = false};
  expect_ring<Many<Quick, Wait::spin_then_park>>("spin_then_park", plan);
  expect_ring<Many<Explored, Wait::park>>("park", plan);
  plan = {.pushes = 2, .capacity = 1};
  expect_ring<Many<Quick, Wait::spin_then_park>>("spin_then_park", plan);
  expect_ring<Many<Explored, Wait::park>>("park", plan);
}

TEST_F(Explore, MpscClosedWhileProducersPush) {
  const Plan plan{.producers = 2, .pushes = 1, .capacity = 1, .closes_last = false, .has_closer = true};
  expect_ring<Many<Explored, Wait::spin>>("spin", plan);
  const Plan one{.producers = 1, .pushes = 1, .capacity = 1, .closes_last = false, .has_closer = true};
  expect_ring<Many<Quick, Wait::spin_then_park>>("spin_then_park", one);
  expect_ring<Many<Explored, Wait::park>>("park", one);
}

TEST_F(Explore, MpscBatches) {
  const Plan plan{.producers = 2, .pushes = 2, .pops = 4, .capacity = 2, .batch = 2, .closes_last = false};
  expect_ring<Many<Explored, Wait::spin>>("spin", plan);
}

TEST_F(Explore, Mpmc) {
  Plan plan{.producers = 2, .consumers = 2, .pushes = 1, .pops = 1, .capacity = 2};
  expect_ring<All<Explored, Wait::spin>>("spin", plan);
  plan = {.producers = 2, .consumers = 1, .pushes = 1, .pops = 2, .capacity = 2, .closes_last = false};
  expect_ring<All<Quick, Wait::spin_then_park>>("spin_then_park", plan);
  expect_ring<All<Explored, Wait::park>>("park", plan);
  plan = {.pushes = 2, .capacity = 2};
  expect_ring<All<Explored, Wait::park>>("park", plan);
}

TEST_F(Explore, MpmcSleepersAreAllWoken) {
  Plan plan{.producers = 1, .consumers = 2, .pushes = 2, .pops = 1, .capacity = 2, .closes_last = false};
  expect_sequential<All<Explored, Wait::park>>("two for two", plan);
  plan = {.producers = 1, .consumers = 2, .pushes = 1, .pops = 1, .capacity = 2};
  expect_sequential<All<Explored, Wait::park>>("one for two, and closed", plan);
}

TEST_F(Explore, MpmcBatches) {
  const Plan plan{.producers = 2, .pushes = 2, .pops = 4, .capacity = 2, .batch = 2, .closes_last = false};
  expect_ring<All<Explored, Wait::spin>>("spin", plan);
}

class ExploreLong : public LongExploringTest {};

TEST_F(ExploreLong, Spsc) {
  expect_whole_however_it_waits<Single>({.pushes = 3, .capacity = 1});
  expect_whole_however_it_waits<Single>({.pushes = 3, .capacity = 2});
  expect_whole_however_it_waits<Single>({.pushes = 3, .capacity = 2, .batch = 2});
  expect_whole_however_it_waits<Single>({.pushes = 2, .capacity = 1, .closes_last = false, .has_closer = true});
}

TEST_F(ExploreLong, Mpsc) {
  expect_ring<Many<Explored, Wait::spin>>("spin", {.producers = 2, .pushes = 2, .capacity = 1});
  expect_ring<Many<Explored, Wait::spin>>("spin", {.producers = 2, .pushes = 2, .capacity = 2});
  const Plan plan{.producers = 2, .pushes = 1, .pops = 2, .capacity = 1, .closes_last = false};
  expect_ring<Many<Explored, Wait::park>>("park", plan);
  expect_ring<Many<Quick, Wait::spin_then_park>>("spin_then_park", plan);
}

TEST_F(ExploreLong, MpmcSleepersAreAllWoken) {
  const Plan plan{.consumers = 2, .pushes = 2, .pops = 1, .capacity = 2, .closes_last = false};
  expect_ring<All<Explored, Wait::park>>("two for two", plan);
}

TEST_F(ExploreLong, Mpmc) {
  Plan plan{.producers = 2, .consumers = 2, .pushes = 1, .capacity = 2};
  expect_ring<All<Explored, Wait::spin>>("spin", plan);
  plan = {.producers = 2, .consumers = 2, .pushes = 1, .pops = 1, .capacity = 2, .closes_last = false};
  expect_sequential<All<Explored, Wait::park>>("park", plan);
}

}  // namespace
}  // namespace weir::explored
