// Every behaviour at small size of what is built on rings and events.
#include "channel/explored_ends.h"
#include "channel/exploring_test.h"

namespace weir::explored {
namespace {

class ExploreEnds : public LargeExploringTest {};

TEST_F(ExploreEnds, EventWakesWhoeverItShould) {
  expect_whole<Waiters<Wait::park, Explored>>("one, park", {}, 1, 1, false);
  expect_whole<Waiters<Wait::spin_then_park, Explored>>("one, spin_then_park", {}, 1, 1, false);
  const Options sequential{.model = Model::sequential};
  expect_whole<Waiters<Wait::park, Explored>>("two for two, park", sequential, 2, 2, false);
  expect_whole<Waiters<Wait::park, Explored>>("all, park", {}, 2, 1, true);
  expect_whole<Waiters<Wait::spin_then_park, Quick>>("all, spin_then_park", {}, 2, 1, true);
}

TEST_F(ExploreEnds, Lanes) {
  expect_whole<RingScenario<LanesRing<Explored, Wait::spin, 2>>>("spin", {},
                                                                 Plan{.producers = 2, .pushes = 1, .capacity = 1});
  const Plan one{.pushes = 1, .capacity = 1};
  expect_whole<RingScenario<LanesRing<Quick, Wait::spin_then_park, 1>>>("spin_then_park", {}, one);
  expect_whole<RingScenario<LanesRing<Explored, Wait::park, 1>>>("park", {}, one);
  const Plan two{.producers = 2, .pushes = 1, .pops = 2, .capacity = 1, .closes_last = false};
  expect_whole<RingScenario<LanesRing<Explored, Wait::park, 2>>>("two lanes, park", {}, two);
}

TEST_F(ExploreEnds, Priority) {
  expect_whole<RingScenario<PriorityRing<Explored, Wait::spin>>>("spin", {},
                                                                 Plan{.producers = 2, .pushes = 1, .capacity = 1});
  const Plan plan{.producers = 2, .pushes = 1, .pops = 2, .capacity = 1, .closes_last = false};
  expect_whole<RingScenario<PriorityRing<Quick, Wait::spin_then_park>>>("spin_then_park", {}, plan);
  expect_whole<RingScenario<PriorityRing<Explored, Wait::park>>>("park", {}, plan);
}

TEST_F(ExploreEnds, Broadcast) {
  const std::vector<LagPolicy> blocks{LagPolicy::blocks}, misses{LagPolicy::misses};
  expect_whole<Listeners<Wait::spin, Explored>>("blocks, spin", {}, 2U, 1U, blocks);
  expect_whole<Listeners<Wait::spin, Explored>>("misses, spin", {}, 2U, 1U, misses);
  expect_whole<Listeners<Wait::spin, Explored>>("blocks, spin, two cells", {}, 3U, 2U, blocks);
  expect_whole<Listeners<Wait::spin, Explored>>("misses, spin, two cells", {}, 3U, 2U, misses);
  expect_whole<Listeners<Wait::park, Explored>>("blocks, park", {}, 1U, 1U, blocks);
  expect_whole<Listeners<Wait::spin_then_park, Quick>>("blocks, spin_then_park", {}, 1U, 1U, blocks);
  expect_whole<Listeners<Wait::park, Explored>>("misses, park", {}, 1U, 1U, misses);
}

TEST_F(ExploreEnds, BroadcastToOneWhoComesLate) {
  expect_whole<Latecomer<Wait::spin, Explored>>("blocks", {}, LagPolicy::blocks, 2U);
  expect_whole<Latecomer<Wait::spin, Explored>>("misses", {}, LagPolicy::misses, 2U);
}

TEST_F(ExploreEnds, Oneshot) {
  for (const bool drops : {false, true}) {
    expect_whole<Reply<Wait::park, Explored>>(drops ? "drop, park" : "set, park", {}, drops);
    expect_whole<Reply<Wait::spin_then_park, Quick>>(drops ? "drop, spin_then_park" : "set, spin_then_park", {}, drops);
  }
}

TEST_F(ExploreEnds, OneshotSlotsAreSharedOut) {
  expect_whole<SlotShared<Wait::park, Explored>>("park", {});
  expect_whole<SlotShared<Wait::spin_then_park, Quick>>("spin_then_park", {});
}

TEST_F(ExploreEnds, Requests) {
  expect_whole<Asking<Wait::park, Explored>>("answered, park", {}, 1, false);
  expect_whole<Asking<Wait::park, Explored>>("refused, park", {}, 0, false);
  expect_whole<Asking<Wait::park, Explored>>("refused or late, park", {}, 0, true);
  expect_whole<Asking<Wait::spin_then_park, Quick>>("answered, spin_then_park", {}, 1, false);
  expect_whole<Asking<Wait::spin_then_park, Quick>>("refused, spin_then_park", {}, 0, false);
}

class ExploreEndsLong : public LongExploringTest {};

TEST_F(ExploreEndsLong, Event) {
  expect_whole<Waiters<Wait::park, Explored>>("two for two, park", {}, 2, 2, false);
  expect_whole<Waiters<Wait::spin_then_park, Quick>>("two for two, spin_then_park", {}, 2, 2, false);
}

TEST_F(ExploreEndsLong, Broadcast) {
  const std::vector<LagPolicy> blocks{LagPolicy::blocks}, misses{LagPolicy::misses},
      both{LagPolicy::blocks, LagPolicy::misses};
  expect_whole<Listeners<Wait::spin, Explored>>("blocks, spin", {}, 3U, 1U, blocks);
  expect_whole<Listeners<Wait::spin, Explored>>("misses, spin", {}, 3U, 1U, misses);
  expect_whole<Listeners<Wait::spin, Explored>>("both, spin", {}, 2U, 1U, both);
  expect_whole<Listeners<Wait::park, Explored>>("misses, park", {}, 2U, 1U, misses);
  expect_whole<Latecomer<Wait::spin, Explored>>("comes late, blocks", {}, LagPolicy::blocks, 3U);
  expect_whole<Latecomer<Wait::spin, Explored>>("comes late, misses", {}, LagPolicy::misses, 3U);
}

}  // namespace
}  // namespace weir::explored
