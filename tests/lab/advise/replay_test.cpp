// The replay against simulations of another kind: of programs without contention by a search for the one set of times
// that satisfies all rules, of a full device by going on one tick at a time.
#include "lab/advise/replay.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>
#include <utility>

#include "lab/advise/collectives_apart.h"
#include "lab/advise/launch_order.h"
#include "random_model.h"

namespace weir::advise {
namespace {

struct Times {
  std::vector<std::int64_t> begun, returned, started, ended;
  bool operator==(const Times&) const = default;
};

// Applies the rules to times that may be too early, until nothing changes. Streams take queues in turn, in the order of
// their first launch; a queue starts its commands in the order in which it got them.
Times settled(const ReplayModel& model) {
  Times times;
  times.begun.assign(model.actions.size(), 0);
  times.returned = times.begun;
  times.started.assign(model.commands.size(), 0);
  times.ended = times.started;
  for (int round = 0; round < 10'000; ++round) {
    const Times before = times;
    std::vector<std::uint32_t> order(model.submitted.size());
    std::iota(order.begin(), order.end(), 0U);
    const auto submitted = [&](std::uint32_t index) {
      const ReplayCommand& command = model.commands[index];
      const bool is_late = command.is_after_call && command.edges == 0;
      return times.begun[command.action] + (is_late ? model.actions[command.action].call_ns : 0);
    };
    std::sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
      return std::pair(submitted(a), a) < std::pair(submitted(b), b);
    });
    std::vector<std::int64_t> queue_of(model.streams, -1), queue_free(static_cast<std::size_t>(model.queues.queues), 0);
    std::vector<std::uint32_t> last_on(model.streams, kNone);
    std::int64_t created = 0;
    for (const std::uint32_t index : order) {
      const ReplayCommand& command = model.commands[index];
      const HostAction& action = model.actions[command.action];
      std::int64_t& queue = queue_of[command.stream];
      if (queue < 0) queue = created++ % model.queues.queues;
      std::int64_t ns = times.begun[command.action] + (command.is_after_call ? action.call_ns : 0) + command.launch_ns;
      ns = std::max(ns, queue_free[static_cast<std::size_t>(queue)]);
      if (const std::uint32_t last = std::exchange(last_on[command.stream], index); last != kNone)
        ns = std::max(ns, times.ended[last] + command.stream_ns);
      for (std::uint32_t e = 0; e < command.edges; ++e)
        ns = std::max(ns, times.ended[model.edges[command.first_edge + e]] + command.edge_ns);
      times.started[index] = ns;
      times.ended[index] = ns + static_cast<std::int64_t>(command.work_ns);
      queue_free[static_cast<std::size_t>(queue)] = model.queues.barrier == 1 ? times.ended[index] : ns;
    }
    for (std::uint32_t i = 0; i < model.actions.size(); ++i) {
      const HostAction& action = model.actions[i];
      const bool is_first = i == model.thread_begin[action.thread];
      std::int64_t ns = is_first ? 0 : times.returned[i - 1];
      if (action.after == kNone)
        ns += action.own_ns;
      else
        ns = std::max(ns, times.returned[action.after] + action.after_ns);
      times.begun[i] = ns;
      times.returned[i] = ns + action.call_ns;
      for (std::uint32_t w = 0; w < action.waits; ++w)
        if (const std::int64_t end = times.ended[model.awaited[action.first_wait + w]]; end > ns)
          times.returned[i] = std::max(times.returned[i], end + action.wake_ns);
    }
    if (times == before) return times;
  }
  ADD_FAILURE() << "the rules do not settle";
  return times;
}

TEST(Replay, equals_the_times_that_satisfy_all_rules) {
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    RandomShape shape;
    shape.threads = 1 + static_cast<std::uint32_t>(seed % 3);
    shape.streams = shape.threads * (1 + static_cast<std::uint32_t>(seed % 7));
    shape.queues = 1 + static_cast<std::int64_t>(seed % 9);
    ReplayModel model = random_model(seed, shape);
    model.queues.barrier = static_cast<std::int64_t>(seed % 5 == 0);
    const Times expected = settled(model);
    const Replayed replayed = replay(model);
    ASSERT_FALSE(replayed.is_stuck) << seed;
    ASSERT_EQ(replayed.action_ns, expected.begun) << seed;
    ASSERT_EQ(replayed.started_ns, expected.started) << seed;
    ASSERT_EQ(replayed.ended_ns, expected.ended) << seed;
  }
}

TEST(Replay, other_queue_counts_are_those_of_a_model_with_them) {
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    ReplayModel model = random_model(seed, {1, 8, 60, 8});
    Change change;
    change.queues = 1 + static_cast<std::int64_t>(seed % 4);
    const Replayed changed = replay(model, change);
    model.queues.queues = change.queues;
    EXPECT_EQ(changed.ended_ns, settled(model).ended) << seed;
  }
}

// Kernels of one stream each, all there from the beginning: one tick after the other, the first in line take what is
// left of the device.
std::vector<double> ticked(const ReplayModel& model, double tick) {
  std::vector<double> left, ended(model.commands.size(), -1);
  for (const ReplayCommand& command : model.commands) left.push_back(command.work_ns);
  double now = 0;
  for (std::size_t open = left.size(); open > 0; now += tick) {
    double room = 1;
    for (std::size_t i = 0; i < left.size(); ++i) {
      const ReplayCommand& command = model.commands[i];
      if (ended[i] >= 0 || static_cast<double>(command.arrival_ns) > now) continue;
      const double given = std::min(room, command.fill);
      room -= given;
      left[i] -= tick * given / command.fill;
      if (left[i] > 0) continue;
      ended[i] = now + tick;
      --open;
    }
  }
  return ended;
}

TEST(Replay, a_full_device_serves_kernels_in_their_order) {
  constexpr double kTick = 10;
  std::mt19937_64 random(7);
  for (int trial = 0; trial < 20; ++trial) {
    ReplayModel model;
    model.devices = 1;
    model.queues.queues = 64;
    const std::uint32_t count = 2 + static_cast<std::uint32_t>(random() % 12);
    model.streams = count;
    model.urgency.assign(count, 0);
    model.thread_begin = {0};
    for (std::uint32_t i = 0; i < count; ++i) {
      ReplayCommand command;
      command.stream = static_cast<std::uint16_t>(i);
      command.arrival_ns = static_cast<std::int64_t>(i) * 5'000;
      command.work_ns = static_cast<double>(20'000 + random() % 200'000);
      command.fill = 0.1 * static_cast<double>(1 + random() % 10);
      model.commands.push_back(command);
    }
    const std::vector<double> expected = ticked(model, kTick);
    const Replayed replayed = replay(model);
    for (std::uint32_t i = 0; i < count; ++i)
      EXPECT_NEAR(static_cast<double>(replayed.ended_ns[i]), expected[i], kTick * (count + 1)) << trial << ' ' << i;
  }
}

ReplayModel two_kernels(bool gives_way) {
  ReplayModel model;
  model.devices = 1;
  model.streams = 2;
  model.urgency = {0, 0};
  model.thread_begin = {0};
  for (std::uint16_t i = 0; i < 2; ++i) {
    ReplayCommand command;
    command.stream = i;
    command.arrival_ns = i * 1'000;
    command.work_ns = 10'000;
    command.gives_way = gives_way;
    model.commands.push_back(command);
  }
  return model;
}

TEST(Replay, an_urgent_kernel_goes_before_one_that_gives_way) {
  Change change;
  change.urgency = {0, 1};
  EXPECT_EQ(replay(two_kernels(true)).ended_ns, (std::vector<std::int64_t>{10'000, 20'000}));
  EXPECT_EQ(replay(two_kernels(true), change).ended_ns, (std::vector<std::int64_t>{20'000, 11'000}));
  EXPECT_EQ(replay(two_kernels(false), change).ended_ns, (std::vector<std::int64_t>{10'000, 20'000}));
}

TEST(Replay, a_collective_begins_with_its_last_rank) {
  ReplayModel model = two_kernels(false);
  model.devices = 2;
  model.commands[1].device = 1;
  model.commands[1].arrival_ns = 50'000;
  model.meetings.push_back({{0, 1}});
  for (ReplayCommand& command : model.commands) command.meeting = 0;
  model.commands[1].work_ns = 12'000;
  EXPECT_EQ(replay(model).ended_ns, (std::vector<std::int64_t>{60'000, 62'000}));
  Change change;
  change.work = {0.5, 0.5};
  EXPECT_EQ(replay(model, change).ended_ns, (std::vector<std::int64_t>{55'000, 56'000}));
}

TEST(Replay, ranks_that_wait_for_each_other_in_turn_are_stuck) {
  ReplayModel model = two_kernels(false);
  for (int i = 0; i < 2; ++i) model.commands.push_back(model.commands[static_cast<std::size_t>(i)]);
  model.devices = 2;
  for (std::size_t i = 0; i < 4; ++i) {
    model.commands[i].device = static_cast<std::uint16_t>(i % 2);
    model.commands[i].stream = static_cast<std::uint16_t>(i % 2);
  }
  model.meetings = {{{0, 3}}, {{1, 2}}};  // the first of each device is the second of the other
  for (std::uint32_t m = 0; m < 2; ++m)
    for (const std::uint32_t one : model.meetings[m].commands) model.commands[one].meeting = m;
  EXPECT_TRUE(replay(model).is_stuck);
}

TEST(LaunchOrder, keeps_what_must_come_first_and_never_takes_longer_chains_last) {
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    const ReplayModel model = random_model(seed, {1, 6, 80, 2});
    Change change;
    change.next = order_by_longest_chain(model);
    if (change.next.empty()) continue;
    std::vector<std::uint32_t> place(model.actions.size(), kNone);
    std::uint32_t count = 0;
    for (std::uint32_t at = 0; at != kNone; at = change.next[at]) place[at] = count++;
    ASSERT_EQ(count, model.actions.size()) << seed;
    std::vector<std::uint32_t> last_on(model.streams, kNone);
    for (const std::uint32_t index : model.submitted) {
      const ReplayCommand& command = model.commands[index];
      if (const std::uint32_t last = std::exchange(last_on[command.stream], command.action); last != kNone) {
        EXPECT_LT(place[last], place[command.action]) << seed;
      }
      for (std::uint32_t e = 0; e < command.edges; ++e)
        EXPECT_LT(place[model.commands[model.edges[command.first_edge + e]].action], place[command.action]) << seed;
    }
    for (std::uint32_t i = 0; i < model.actions.size(); ++i)
      if (model.actions[i].waits != 0) {
        EXPECT_EQ(place[i], i) << seed;
      }
    EXPECT_FALSE(replay(model, change).is_stuck) << seed;
  }
}

TEST(CollectivesApart, waits_by_events_and_of_the_host_cover_all_that_they_covered) {
  std::size_t moved = 0, earlier = 0;
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    ReplayModel model = random_model(seed, {2, 6, 60, 4});
    for (ReplayCommand& command : model.commands) command.is_in_graph = seed % 7 == 0;
    std::mt19937_64 random(seed);
    std::vector<bool> is_collective(model.commands.size());
    for (std::size_t i = 0; i < is_collective.size(); ++i) is_collective[i] = random() % 3 == 0;
    const CollectivesApart apart = collectives_apart(model, is_collective);
    ASSERT_EQ(apart.moved + apart.kept,
              static_cast<std::size_t>(std::count(is_collective.begin(), is_collective.end(), true)));
    ASSERT_EQ(apart.model == nullptr, apart.moved == 0);
    if (apart.model == nullptr) continue;
    moved += apart.moved;
    Change change;
    change.instead = apart.model;
    const Replayed found = replay(model, change);
    ASSERT_FALSE(found.is_stuck) << seed;
    // All up to `last` on its stream have ended.
    const auto has_ended = [&](std::uint32_t last, std::int64_t ns) {
      for (std::uint32_t i = 0; i <= last; ++i)
        if (model.commands[i].stream == model.commands[last].stream && found.ended_ns[i] > ns) return false;
      return true;
    };
    std::vector<std::uint32_t> before(model.streams, kNone), collective(model.streams, kNone);
    for (std::uint32_t i = 0; i < model.commands.size(); ++i) {
      const ReplayCommand& command = model.commands[i];
      for (std::uint32_t e = 0; e < command.edges; ++e)
        ASSERT_TRUE(has_ended(model.edges[command.first_edge + e], found.started_ns[i])) << seed;
      const std::uint32_t last = std::exchange(before[command.stream], i);
      if (is_collective[i]) {
        ASSERT_TRUE(last == kNone || has_ended(last, found.started_ns[i])) << seed;
        collective[command.stream] = i;
      } else if (const std::uint32_t one = collective[command.stream]; one != kNone) {
        earlier += found.started_ns[i] < found.ended_ns[one] ? 1 : 0;
      }
    }
    for (const HostAction& action : model.actions)
      if (action.waits != 0) {
        const auto index = static_cast<std::size_t>(&action - model.actions.data());
        if (index + 1 == model.thread_begin[action.thread + 1]) continue;
        ASSERT_TRUE(has_ended(model.awaited[action.first_wait], found.action_ns[index + 1])) << seed;
      }
  }
  EXPECT_GT(moved, 300U);
  EXPECT_GT(earlier, 100U);
}

// Two streams that share a queue: launched one after the other, the second chain waits for the first.
TEST(LaunchOrder, in_turns_is_faster_where_streams_share_a_queue) {
  ReplayModel model;
  model.devices = 1;
  model.streams = 2;
  model.urgency = {0, 0};
  model.queues.queues = 1;
  model.thread_begin = {0};
  for (int i = 0; i < 9; ++i) {
    HostAction action;
    action.call_ns = 100;
    action.first_command = static_cast<std::uint32_t>(model.submitted.size());
    if (i > 0) {
      ReplayCommand command;
      command.action = static_cast<std::uint32_t>(i);
      command.stream = static_cast<std::uint16_t>((i - 1) / 4);
      command.work_ns = 10'000;
      command.fill = 0.01;
      model.submitted.push_back(static_cast<std::uint32_t>(model.commands.size()));
      model.commands.push_back(command);
      action.commands = 1;
    }
    model.actions.push_back(action);
  }
  model.thread_begin.push_back(9);
  Change change;
  change.next = order_by_longest_chain(model);
  ASSERT_FALSE(change.next.empty());
  EXPECT_GE(replay(model).finish_ns, 70'000);
  EXPECT_LE(replay(model, change).finish_ns, 42'000);
}

}  // namespace
}  // namespace weir::advise
