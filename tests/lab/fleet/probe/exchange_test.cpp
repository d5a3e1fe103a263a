// What devices of a node and nodes of a job do together: between threads that are ranks, without a network.
#include "lab/fleet/probe/exchange.h"

#include <gtest/gtest.h>

#include <atomic>
#include <map>
#include <set>
#include <thread>

#include "base/error.h"
#include "lab/fleet/probe/links.h"
#include "lab/fleet/probe/spread.h"

namespace weir::fleet {
namespace {

std::vector<DeviceExchange::Measured> exchanged(DeviceExchange& exchange, std::size_t devices) {
  std::vector<DeviceExchange::Measured> measured(devices);
  std::vector<std::jthread> threads;
  for (std::size_t i = 0; i < devices; ++i) threads.emplace_back([&, i] { measured[i] = exchange.measure(i); });
  threads.clear();
  return measured;
}

TEST(FleetExchange, DevicesReduceAndCopyAroundARing) {
  DeviceExchange exchange({"cpu", "cpu", "cpu"}, [](const std::string& name, Communicator* communicator) {
    return open_device(name, {.hardware_queues = 1, .workers = 1, .communicator = communicator});
  });
  for (const DeviceExchange::Measured& measured : exchanged(exchange, 3)) {
    ASSERT_EQ(measured.figures.size(), 2u);
    EXPECT_EQ(measured.wrong, std::vector<std::string>());
    for (const Figure& figure : measured.figures) {
      EXPECT_EQ(figure.samples.size(), 5u) << figure.name << ": " << figure.reason;
      EXPECT_EQ(figure.to, figure.name == "copy_to_peer" ? "cpu" : "");
      for (const double sample : figure.samples) EXPECT_GT(sample, 0);
    }
  }
}

TEST(FleetExchange, WhereOneFailsAllSayWhy) {
  std::atomic<int> opened = 0;
  DeviceExchange exchange({"cpu", "cpu"}, [&](const std::string& name, Communicator* communicator) {
    if (opened++ == 0) fail("out of memory");
    return open_device(name, {.hardware_queues = 1, .workers = 1, .communicator = communicator});
  });
  for (const DeviceExchange::Measured& measured : exchanged(exchange, 2))
    for (const Figure& figure : measured.figures) {
      EXPECT_TRUE(figure.samples.empty());
      EXPECT_NE(figure.reason.find("out of memory"), std::string::npos) << figure.reason;
    }
}

TEST(FleetExchange, DevicesThatCannotMeetHaveTheReason) {
  const auto open = [](const std::string& name, Communicator*) { return open_device(name, {}); };
  DeviceExchange one({"cpu"}, open), mixed({"cpu", "sim:h200"}, open), simulated({"sim:h200", "sim:h200"}, open);
  EXPECT_EQ(one.measure(0).figures.at(0).reason, "there is one device");
  EXPECT_EQ(mixed.measure(1).figures.at(1).reason, "the devices are of different kinds");
  for (const DeviceExchange::Measured& measured : exchanged(simulated, 2))
    EXPECT_EQ(measured.figures.at(0).reason, "simulated devices of one process do not know each other");
}

TEST(FleetLinks, EachPairMeetsOnce) {
  for (std::size_t nodes = 0; nodes <= 16; ++nodes) {
    std::set<std::pair<std::size_t, std::size_t>> met;
    for (const LinkRound& round : link_rounds(nodes)) {
      std::set<std::size_t> busy;
      for (const NodePair& pair : round.pairs) {
        EXPECT_LT(pair.one, pair.other);
        EXPECT_TRUE(met.emplace(pair.one, pair.other).second);
        EXPECT_TRUE(busy.insert(pair.one).second && busy.insert(pair.other).second) << "one pair at a time";
      }
    }
    EXPECT_EQ(met.size(), nodes * (nodes - (nodes > 0 ? 1 : 0)) / 2) << nodes;
  }
}

TEST(FleetLinks, ManyNodesMeetFewOthersEach) {
  std::map<std::size_t, std::size_t> links;
  const std::vector<LinkRound> rounds = link_rounds(1000);
  EXPECT_LE(rounds.size(), 20u);
  for (const LinkRound& round : rounds)
    for (const NodePair& pair : round.pairs) {
      ++links[pair.one];
      ++links[pair.other];
    }
  ASSERT_EQ(links.size(), 1000u);
  for (const auto& [node, count] : links) EXPECT_GE(count, 9u) << node;
}

// Threads as the ranks of a job; those of `ranks` work for nodes.
std::vector<std::vector<NodeLink>> linked(int count, const std::vector<int>& ranks) {
  ThreadWorld world(count);
  std::vector<std::string> names;
  for (std::size_t i = 0; i < ranks.size(); ++i) names.push_back("node" + std::to_string(i));
  std::vector<std::vector<NodeLink>> links(static_cast<std::size_t>(count));
  std::vector<std::jthread> threads;
  for (int rank = 0; rank < count; ++rank)
    threads.emplace_back([&, rank] {
      links[static_cast<std::size_t>(rank)] = measure_links(world.rank(rank), ranks, names, {.bytes = 4096});
    });
  threads.clear();
  return links;
}

TEST(FleetLinks, EveryNodeMeasuresEveryOther) {
  for (const auto& [count, ranks] :
       {std::pair(5, std::vector{0, 1, 2, 3, 4}), {6, {0, 2, 4}}, {9, {0, 1, 2, 3, 4, 5, 6, 7, 8}}}) {
    const auto links = linked(count, ranks);
    for (std::size_t node = 0; node < ranks.size(); ++node) {
      const std::vector<NodeLink>& own = links[static_cast<std::size_t>(ranks[node])];
      std::set<std::string> others;
      for (const NodeLink& link : own) {
        EXPECT_EQ(link.reason, "");
        EXPECT_EQ(link.bytes_per_s.size(), 5u);
        others.insert(link.to);
      }
      EXPECT_EQ(others.size(), ranks.size() - 1) << count << " ranks, node " << node;
      EXPECT_FALSE(others.contains("node" + std::to_string(node)));
    }
  }
  EXPECT_TRUE(linked(2, {0, 1})[0].size() == 1 && linked(3, {0})[0].empty());
}

TEST(FleetLinks, AnUnevenJobSaysSo) {
  const auto links = linked(4, {0, 1, 3});
  ASSERT_EQ(links[1].size(), 2u);
  EXPECT_EQ(links[1][0].reason, "the nodes of the job have different numbers of processes");
  EXPECT_TRUE(links[2].empty());
}

TEST(FleetSpread, StatesWhatAnotherProbeMayShow) {
  EXPECT_FALSE(stated_range("memory", std::vector<double>{100, 101}));
  const std::vector<double> quiet = {100, 100, 100, 100, 100, 100, 100}, usual = {100, 101, 99, 100, 102, 98, 100},
                            disturbed = {100, 101, 99, 100, 102, 98, 50};
  const auto narrow = stated_range("memory", quiet), wide = stated_range("memory", usual),
             robust = stated_range("memory", disturbed);
  ASSERT_TRUE(narrow && wide && robust);
  EXPECT_LT(narrow->low, 100);  // processes differ although repetitions do not
  EXPECT_GT(narrow->high, 100);
  EXPECT_LT(wide->low, narrow->low);
  EXPECT_GT(robust->low, 90) << "one sample that something disturbed does not make the range useless";
  EXPECT_GE(stated_range("queue_switch", std::vector<double>{1, 50, 900})->low, 0);
}

}  // namespace
}  // namespace weir::fleet
