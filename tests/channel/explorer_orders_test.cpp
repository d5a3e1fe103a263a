// Every acquire, release and fence of the channels is taken away, one place and one thread at a time: the explorer must
// find what goes wrong then. So it can see what it looks for, and no order is there for nothing.
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "channel/explored_ends.h"
#include "channel/explored_ring.h"
#include "channel/exploring_test.h"
#include "channel/mpmc.h"
#include "channel/mpsc.h"
#include "channel/spsc.h"

namespace weir::explored {
namespace {

class Orders : public LargeExploringTest {};

using Program = std::function<Report(const Options&)>;

template <class Channel>
Program ring(const Plan& plan) {
  return [plan](const Options& options) { return explore_program<RingScenario<Channel>>(options, plan); };
}

std::string name_of(const Site& site) {
  return std::string(site.file.substr(site.file.rfind('/') + 1)) + " " + std::string(site.what) + ", thread " +
         std::to_string(site.thread);
}

// The places whose weakening no program noticed.
std::set<std::string> unneeded(const std::vector<Program>& programs) {
  std::map<Site, std::vector<const Program*>> users;
  for (const Program& program : programs) {
    std::set<Site> sites;
    const Report report = program({.sites = &sites});
    EXPECT_TRUE(report.is_complete && report.failure.empty()) << report.text();
    for (const Site& site : sites) users[site].push_back(&program);
  }
  std::set<std::string> result;
  for (const auto& [site, candidates] : users) {
    // The test's own count of producers is not the channel's.
    if (site.file.find("explored_ring.h") != std::string::npos) continue;
    bool is_needed = false;
    for (const Program* program : candidates) is_needed = is_needed || !(*program)({.weakened = &site}).failure.empty();
    if (!is_needed) result.insert(name_of(site));
  }
  return result;
}

TEST_F(Orders, Spsc) {
  const Plan closer{.pushes = 1, .capacity = 1, .closes_last = false, .has_closer = true};
  const Plan consumer{.pushes = 2, .capacity = 1, .closes_last = false, .consumer_closes = true};
  const Plan open{.pushes = 2, .pops = 2, .capacity = 1, .closes_last = false};
  EXPECT_EQ(
      unneeded({ring<Spsc<Item, Wait::spin, Explored>>({.pushes = 2, .capacity = 1}),
                ring<Spsc<Item, Wait::spin, Explored>>(closer), ring<Spsc<Item, Wait::spin, Explored>>(consumer),
                ring<Spsc<Item, Wait::park, Explored>>(consumer),
                ring<Spsc<Item, Wait::spin_then_park, Quick>>(consumer), ring<Spsc<Item, Wait::park, Explored>>(open),
                ring<Spsc<Item, Wait::spin_then_park, Quick>>(open), ring<Spsc<Item, Wait::park, Explored>>(closer),
                ring<Spsc<Item, Wait::spin_then_park, Quick>>(closer)}),
      std::set<std::string>{});
}

TEST_F(Orders, Mpsc) {
  const Plan open{.producers = 2, .pushes = 1, .pops = 2, .capacity = 1, .closes_last = false};
  const Plan more{.producers = 2, .pushes = 1, .more_pushes = 1, .pops = 3, .capacity = 1, .closes_last = false};
  const Plan one{.pushes = 2, .pops = 2, .capacity = 1, .closes_last = false};
  EXPECT_EQ(unneeded({ring<Mpsc<Item, Wait::spin, Explored>>({.producers = 2, .pushes = 1, .capacity = 1}),
                      ring<Mpsc<Item, Wait::spin, Explored>>(open), ring<Mpsc<Item, Wait::spin, Explored>>(more),
                      ring<Mpsc<Item, Wait::park, Explored>>(one), ring<Mpsc<Item, Wait::spin_then_park, Quick>>(one)}),
            std::set<std::string>{});
}

TEST_F(Orders, Mpmc) {
  const Plan open{.consumers = 2, .pushes = 3, .pops = 1, .capacity = 2, .closes_last = false};
  const Plan two{.producers = 2, .pushes = 1, .more_pushes = 1, .pops = 3, .capacity = 2, .closes_last = false};
  const Plan one{.pushes = 3, .pops = 3, .capacity = 2, .closes_last = false};
  EXPECT_EQ(unneeded({ring<Mpmc<Item, Wait::spin, Explored>>(one), ring<Mpmc<Item, Wait::spin, Explored>>(open),
                      ring<Mpmc<Item, Wait::spin, Explored>>(two), ring<Mpmc<Item, Wait::park, Explored>>(one),
                      ring<Mpmc<Item, Wait::spin_then_park, Quick>>(one)}),
            std::set<std::string>{});
}

TEST_F(Orders, Priority) {
  // The urgent level comes, has nothing until its bit is taken away, and comes again.
  const Plan plan{.producers = 2, .pushes = 1, .more_pushes = 1, .pops = 3, .capacity = 1, .closes_last = false};
  const Plan more{.producers = 2, .pushes = 2, .pops = 4, .capacity = 2, .closes_last = false};
  const std::set<std::string> expected = {
      "priority.h light_fence, thread 1",  // the last level's bit is never taken away
      // The mask is a hint: contents are ordered by stamps, and sleepers by the event's fences.
      "priority.h release, thread 0", "priority.h release, thread 1", "priority.h acquire, thread 2",
      // Here each level has one producer only.
      "mpsc.h release, thread 0", "mpsc.h acquire_fence, thread 0", "mpsc.h acquire_fence, thread 1",
      "single_consumer.h acquire, thread 0"};
  EXPECT_EQ(unneeded({ring<PriorityRing<Explored, Wait::spin>>(plan), ring<PriorityRing<Explored, Wait::spin>>(more)}),
            expected);
}

}  // namespace
}  // namespace weir::explored
