// What holds for whatever clients do: random loads from seeds on a simulated device, every launch and instant looked
// at.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <map>

#include "submit/sched/shared_device.h"

namespace weir::testing {
namespace {

using scheduler::kNever;
using scheduler::Policy;
using scheduler::Settings;

constexpr std::int64_t kUs = 1'000, kMs = 1'000'000;
constexpr Settings kNoAgeing{.slice_ns = 2 * kMs, .ageing_ns = 0};
constexpr int kSeeds = 25;

std::int64_t random_between(std::mt19937_64& random, std::int64_t least, std::int64_t most) {
  return std::uniform_int_distribution<std::int64_t>(least, most)(random);
}

// Two to six clients of all kinds: endless ones, bursts, short requests with and without pauses.
std::vector<Demand> random_demands(std::mt19937_64& random) {
  std::vector<Demand> demands(static_cast<std::size_t>(random_between(random, 2, 6)));
  for (Demand& demand : demands) {
    demand.terms = {.priority = static_cast<int>(random_between(random, -10, 10)),
                    .weight = static_cast<double>(random_between(random, 1, 16)) / 4,
                    .deadline_ns = random_between(random, 0, 2) * random_between(random, 1, 20) * kMs};
    demand.min_idle_ns = random_between(random, 0, 1) * 10 * kUs;
    demand.max_idle_ns = random_between(random, 1, 4) * random_between(random, 1, 2000) * kUs;
    demand.max_kernels = random_between(random, 0, 3) == 0 ? kEndless : static_cast<int>(random_between(random, 1, 40));
    demand.min_kernels = demand.max_kernels == kEndless ? kEndless : 1;
    demand.min_kernel_ns = random_between(random, 1, 20) * kUs;
    demand.max_kernel_ns = demand.min_kernel_ns * random_between(random, 1, 10);
  }
  return demands;
}

SharedDevice random_device(const Policy& policy, const Settings& settings, int seed, std::int64_t hears_within_ns = 0) {
  std::mt19937_64 random(static_cast<std::uint64_t>(seed));
  std::vector<Demand> demands = random_demands(random);
  return SharedDevice({.policy = &policy,
                       .settings = settings,
                       .in_flight = static_cast<int>(random_between(random, 1, 4)),
                       .hears_within_ns = hears_within_ns,
                       .seed = static_cast<std::uint64_t>(seed)},
                      std::move(demands));
}

class EveryPolicy : public ::testing::TestWithParam<Policy> {};
INSTANTIATE_TEST_SUITE_P(Properties, EveryPolicy, ::testing::ValuesIn(scheduler::policies()),
                         [](const auto& each) { return std::string(each.param.name); });

TEST_P(EveryPolicy, the_device_never_idles_while_somebody_has_work) {
  // Also where the conductor hears of things late: masks alone have to keep the device busy.
  for (const std::int64_t hears_within_ns : {std::int64_t{0}, 100 * kUs, 5 * kMs}) {
    for (int seed = 1; seed <= kSeeds; ++seed) {
      SharedDevice device = random_device(GetParam(), seed % 2 == 0 ? kNoAgeing : Settings{}, seed, hears_within_ns);
      std::int64_t wasted = 0;
      device.on_instant = [&] { wasted += device.wastes_time() ? 1 : 0; };
      device.run_until(200 * kMs);
      EXPECT_EQ(wasted, 0) << "seed " << seed;
      EXPECT_FALSE(device.requests().empty());
    }
  }
}

TEST_P(EveryPolicy, accounts_add_up_to_the_time_in_which_somebody_was_active) {
  for (int seed = 1; seed <= kSeeds; ++seed) {
    SharedDevice device = random_device(GetParam(), Settings{}, seed);
    std::int64_t last_ns = 0, active_ns = 0;
    bool was_active = false;
    device.on_instant = [&] {
      if (was_active) active_ns += device.now_ns() - last_ns;
      last_ns = device.now_ns();
      was_active = device.active() != 0;
      double used_ns = 0;
      for (int client = 0; client < device.clients(); ++client) used_ns += device.conductor().client(client).used_ns;
      // Time since the conductor's last event is in no account yet.
      ASSERT_LE(used_ns, static_cast<double>(active_ns) + 1);
    };
    device.run_until(100 * kMs);
    double used_ns = 0;
    scheduler::Conductor conductor = device.conductor();
    conductor.advance(last_ns);
    for (int client = 0; client < device.clients(); ++client) used_ns += conductor.client(client).used_ns;
    EXPECT_NEAR(used_ns, static_cast<double>(active_ns), 1) << "seed " << seed;
  }
}

TEST_P(EveryPolicy, nobody_is_kept_waiting_longer_than_ageing_and_a_slice_per_client) {
  // The bound is on being first for a slice, all together; being first at all comes no later.
  const Settings settings{.slice_ns = 2 * kMs, .ageing_ns = 20 * kMs};
  std::int64_t longest_ns = 0;
  for (int seed = 1; seed <= kSeeds; ++seed) {
    SharedDevice device = random_device(GetParam(), settings, seed);
    const std::int64_t max_ns = settings.ageing_ns + device.clients() * settings.slice_ns;
    std::array<std::int64_t, 64> counts_from_ns{}, first_for_ns{}, request_ns{}, waits_from_ns{};
    std::uint64_t was_first = 0, was_active = 0;
    std::int64_t last_ns = 0;
    device.on_instant = [&] {
      const std::int64_t now_ns = device.now_ns();
      for (std::size_t client = 0; client < static_cast<std::size_t>(device.clients()); ++client) {
        const std::uint64_t bit = std::uint64_t{1} << client;
        if ((was_first & bit) != 0) {
          waits_from_ns[client] = now_ns;
          first_for_ns[client] += now_ns - last_ns;
          if (first_for_ns[client] >= settings.slice_ns) counts_from_ns[client] = now_ns, first_for_ns[client] = 0;
        }
        if ((was_active & bit) == 0 || request_ns[client] != device.arrived_ns(static_cast<int>(client))) {
          request_ns[client] = waits_from_ns[client] = counts_from_ns[client] =
              device.arrived_ns(static_cast<int>(client));
          first_for_ns[client] = 0;
        }
        if ((device.active() & bit) == 0) continue;
        longest_ns = std::max(longest_ns, now_ns - waits_from_ns[client]);
        ASSERT_LE(now_ns - waits_from_ns[client], max_ns - settings.slice_ns) << "seed " << seed << " at " << now_ns;
        ASSERT_LE(now_ns - counts_from_ns[client], max_ns) << "seed " << seed << " at " << now_ns;
      }
      was_first = device.conductor().running();
      was_active = device.active();
      last_ns = now_ns;
    };
    device.run_until(400 * kMs);
    if (HasFatalFailure()) return;
  }
  EXPECT_GT(longest_ns, settings.slice_ns) << "nobody waited: the test shows nothing";
}

TEST(PriorityProperties, nothing_is_launched_past_somebody_more_urgent) {
  // However late the conductor hears: the masks are right before it does.
  for (const std::int64_t hears_within_ns : {std::int64_t{0}, 20 * kMs}) {
    int urgent = 0;
    for (int seed = 1; seed <= kSeeds; ++seed) {
      SharedDevice device = random_device(scheduler::policy_named("priority"), kNoAgeing, seed, hears_within_ns);
      device.on_launch = [&](int client) {
        for (int other = 0; other < device.clients(); ++other) {
          if (!device.is_active(other)) continue;
          EXPECT_LE(device.demand(other).terms.priority, device.demand(client).terms.priority)
              << "seed " << seed << " at " << device.now_ns();
        }
      };
      device.run_until(200 * kMs);

      // So the most urgent client waits for what was on the device when it came, and for nothing else.
      int most_urgent = 0, holders = 0;
      for (int client = 0; client < device.clients(); ++client) {
        const int priority = device.demand(client).terms.priority, highest = device.demand(most_urgent).terms.priority;
        if (priority > highest) holders = 0, most_urgent = client;
        if (priority >= highest) ++holders;
      }
      if (holders > 1) continue;
      for (const auto& request : device.requests()) {
        if (request.client != most_urgent || request.started_ns < 0) continue;
        EXPECT_EQ(request.started_ns - request.arrived_ns, request.found_ns) << "seed " << seed;
        if (request.found_ns > 0) ++urgent;
      }
    }
    EXPECT_GT(urgent, 100);
  }
}

TEST(PriorityProperties, with_ageing_only_the_aged_pass_somebody_more_urgent) {
  int passed = 0;
  for (int seed = 1; seed <= kSeeds; ++seed) {
    SharedDevice device =
        random_device(scheduler::policy_named("priority"), {.slice_ns = 2 * kMs, .ageing_ns = 20 * kMs}, seed);
    device.on_launch = [&](int client) {
      for (int other = 0; other < device.clients(); ++other) {
        if (!device.is_active(other)) continue;
        if (device.demand(other).terms.priority <= device.demand(client).terms.priority) continue;
        EXPECT_EQ(device.conductor().aged(), client) << "seed " << seed << " at " << device.now_ns();
        ++passed;
      }
    };
    device.run_until(200 * kMs);
  }
  EXPECT_GT(passed, 100);
}

TEST(FifoProperties, requests_are_served_in_the_order_of_their_arrival) {
  for (int seed = 1; seed <= kSeeds; ++seed) {
    SharedDevice device = random_device(scheduler::policy_named("fifo"), kNoAgeing, seed);
    device.on_launch = [&](int client) {
      for (int other = 0; other < device.clients(); ++other) {
        if (!device.is_active(other)) continue;
        EXPECT_LE(device.arrived_ns(client), device.arrived_ns(other)) << "seed " << seed;
      }
    };
    device.run_until(200 * kMs);
  }
}

TEST(WeightedFairProperties, shares_follow_weights_to_within_a_slice_each) {
  // Of two clients, while both are active: use over weight differs by at most slice/weight of one plus that of the
  // other.
  double largest = 0;
  for (int seed = 1; seed <= kSeeds; ++seed) {
    SharedDevice device = random_device(scheduler::policy_named("weighted_fair"), kNoAgeing, seed);
    using Pair = std::pair<int, int>;
    std::map<Pair, double> since;  // difference of the two when both were active first
    const auto slice = static_cast<double>(kNoAgeing.slice_ns);
    device.on_instant = [&] {
      scheduler::Conductor conductor = device.conductor();
      conductor.advance(device.now_ns());  // accounts up to now
      for (int i = 0; i < device.clients(); ++i) {
        for (int j = 0; j < i; ++j) {
          const auto &a = conductor.client(i), &b = conductor.client(j);
          if (!a.is_active || !b.is_active) {
            since.erase({i, j});
            continue;
          }
          const double difference = a.used_ns / a.terms.weight - b.used_ns / b.terms.weight;
          const double changed = difference - since.emplace(Pair(i, j), difference).first->second;
          const double bound = slice / a.terms.weight + slice / b.terms.weight;
          ASSERT_LE(std::abs(changed), bound + 1) << "seed " << seed << " at " << device.now_ns();
          largest = std::max(largest, std::abs(changed) / bound);
        }
      }
    };
    device.run_until(300 * kMs);
    if (HasFatalFailure()) return;
  }
  EXPECT_GT(largest, 0.5) << "the bound was never near: the test shows little";
}

TEST(WeightedFairProperties, the_device_gives_what_the_accounts_say_but_for_kernels_in_flight) {
  const Settings settings{.slice_ns = 2 * kMs, .ageing_ns = 0};
  const std::int64_t kernel_ns = 20 * kUs;
  std::vector<Demand> demands;
  for (const double weight : {1.0, 2.0, 5.0}) {
    demands.push_back({.terms = {.weight = weight},
                       .min_kernels = kEndless,
                       .max_kernels = kEndless,
                       .min_kernel_ns = kernel_ns,
                       .max_kernel_ns = kernel_ns});
  }
  SharedDevice device({.policy = &scheduler::policy_named("weighted_fair"), .settings = settings, .in_flight = 2},
                      demands);
  const std::int64_t end_ns = 4000 * kMs;
  device.run_until(end_ns);
  for (int client = 0; client < 3; ++client) {
    const double share = static_cast<double>(device.ran_ns(client)) / static_cast<double>(end_ns);
    // Two kernels of 20 us run into each turn of 2 ms of the next one.
    EXPECT_NEAR(share, device.demand(client).terms.weight / 8, 0.02) << client;
  }
}

TEST(DeadlineProperties, nothing_is_launched_past_an_earlier_deadline) {
  for (int seed = 1; seed <= kSeeds; ++seed) {
    SharedDevice device = random_device(scheduler::policy_named("earliest_deadline"), kNoAgeing, seed);
    const auto deadline_of = [&](int client) {
      const std::int64_t deadline_ns = device.demand(client).terms.deadline_ns;
      return deadline_ns > 0 ? device.arrived_ns(client) + deadline_ns : kNever;
    };
    device.on_launch = [&](int client) {
      for (int other = 0; other < device.clients(); ++other) {
        if (!device.is_active(other)) continue;
        EXPECT_LE(deadline_of(client), deadline_of(other)) << "seed " << seed;
      }
    };
    device.run_until(200 * kMs);
  }
}

// Periodic requests that together want less than the device has, each before the next one of its client, beside
// somebody without deadlines who wants all. Returns by how much the latest one was late.
std::int64_t latest_ns(int seed, int clients, int in_flight, std::int64_t background_kernel_ns,
                       std::int64_t* longest_kernel_ns) {
  std::mt19937_64 random(static_cast<std::uint64_t>(seed));
  std::vector<Demand> demands;
  double left = 0.97;
  *longest_kernel_ns = background_kernel_ns;
  for (int client = 0; client < clients; ++client) {
    const std::int64_t period_ns = random_between(random, 2, 40) * kMs;
    const double part = client + 1 == clients ? left : left * static_cast<double>(random_between(random, 1, 9)) / 10;
    left -= part;
    const int kernels = static_cast<int>(random_between(random, 1, 20));
    const auto kernel_ns = static_cast<std::int64_t>(part * static_cast<double>(period_ns) / kernels);
    *longest_kernel_ns = std::max(*longest_kernel_ns, kernel_ns);
    demands.push_back({.terms = {.deadline_ns = period_ns},
                       .period_ns = period_ns,
                       .min_kernels = kernels,
                       .max_kernels = kernels,
                       .min_kernel_ns = kernel_ns,
                       .max_kernel_ns = kernel_ns});
  }
  if (background_kernel_ns > 0) {
    demands.push_back({.min_kernels = kEndless,
                       .max_kernels = kEndless,
                       .min_kernel_ns = background_kernel_ns,
                       .max_kernel_ns = background_kernel_ns});
  }
  SharedDevice device({.policy = &scheduler::policy_named("earliest_deadline"),
                       .settings = kNoAgeing,
                       .in_flight = in_flight,
                       .seed = static_cast<std::uint64_t>(seed)},
                      demands);
  device.run_until(1000 * kMs);
  std::int64_t latest = 0;
  for (const auto& request : device.requests()) {
    const std::int64_t deadline_ns = device.demand(request.client).terms.deadline_ns;
    if (deadline_ns == 0) continue;
    const std::int64_t ended_ns = request.ended_ns < 0 ? device.now_ns() : request.ended_ns;
    latest = std::max(latest, ended_ns - request.arrived_ns - deadline_ns);
  }
  return latest;
}

TEST(DeadlineProperties, what_is_feasible_is_late_by_one_blocking_kernel_at_most) {
  // One client with deadlines beside one without, one kernel in flight: nothing else can be in the way.
  std::int64_t longest_ns = 0, latest = 0;
  for (int seed = 1; seed <= kSeeds; ++seed) {
    const std::int64_t late_ns = latest_ns(seed, 1, 1, 1500 * kUs, &longest_ns);
    EXPECT_LE(late_ns, 1500 * kUs) << "seed " << seed;
    latest = std::max(latest, late_ns);
  }
  EXPECT_GT(latest, 0) << "nobody was late: the test shows little";
}

TEST(DeadlineProperties, with_more_clients_by_what_the_others_may_have_in_flight) {
  std::int64_t longest_ns = 0;
  for (int seed = 1; seed <= kSeeds; ++seed) {
    for (const int in_flight : {1, 2}) {
      const int clients = 2 + seed % 4;
      const std::int64_t late_ns = latest_ns(seed, clients, in_flight, 100 * kUs, &longest_ns);
      EXPECT_LE(late_ns, clients * in_flight * longest_ns) << "seed " << seed;
    }
  }
}

TEST(TimeSliceProperties, turns_last_a_slice_times_the_weight_while_others_wait) {
  int full_turns = 0;
  for (int seed = 1; seed <= kSeeds; ++seed) {
    SharedDevice device = random_device(scheduler::policy_named("time_slice"), kNoAgeing, seed);
    std::uint64_t running = 0;
    std::int64_t from_ns = 0;  // since then the same one ran while somebody waited
    const auto length_of = [&](std::uint64_t one) {
      const double weight = device.demand(std::countr_zero(one)).terms.weight;
      return static_cast<std::int64_t>(static_cast<double>(kNoAgeing.slice_ns) * weight);
    };
    device.on_instant = [&] {
      const std::uint64_t now_running = device.conductor().running();
      ASSERT_LE(std::popcount(now_running), 1) << "seed " << seed;
      const bool is_waited_for = (device.active() & ~now_running) != 0;
      if (running != 0) {
        ASSERT_LE(device.now_ns() - from_ns, length_of(running)) << "seed " << seed;
      }
      // It was still active when it lost its turn: then it has had all of it, unless it was alone for the beginning.
      if (running != 0 && now_running != running && device.now_ns() - from_ns == length_of(running)) ++full_turns;
      if (now_running != running || !is_waited_for) from_ns = device.now_ns();
      running = is_waited_for ? now_running : 0;
    };
    device.run_until(300 * kMs);
    if (HasFatalFailure()) return;
  }
  EXPECT_GT(full_turns, 500);
}

TEST(TimeSliceProperties, a_turn_is_not_cut_short) {
  std::vector<Demand> demands;
  for (const double weight : {0.5, 1.0, 3.0, 1.0}) {
    demands.push_back({.terms = {.weight = weight},
                       .min_kernels = kEndless,
                       .max_kernels = kEndless,
                       .min_kernel_ns = 30 * kUs,
                       .max_kernel_ns = 70 * kUs});
  }
  // One that comes and goes, and whose arrivals must not move the others' turns.
  demands.push_back({.max_idle_ns = 3 * kMs, .max_kernels = 5, .min_kernel_ns = 10 * kUs, .max_kernel_ns = 90 * kUs});
  SharedDevice device({.policy = &scheduler::policy_named("time_slice"), .settings = kNoAgeing}, demands);
  int last = -1, turns = 0;
  std::int64_t since_ns = 0;
  device.on_instant = [&] {
    const std::uint64_t running = device.conductor().running();
    const int now = running == 0 ? -1 : std::countr_zero(running);
    if (now == last) return;
    if (last >= 0 && last < 4 && turns > 4) {
      const double expected = static_cast<double>(kNoAgeing.slice_ns) * device.demand(last).terms.weight;
      ASSERT_EQ(device.now_ns() - since_ns, static_cast<std::int64_t>(expected)) << "turn " << turns << " of " << last;
      ASSERT_TRUE(now == (last + 1) % 5 || (last == 3 && now == 0)) << now << " after " << last;
    }
    last = now;
    since_ns = device.now_ns();
    ++turns;
  };
  device.run_until(500 * kMs);
  EXPECT_GT(turns, 200);
}

}  // namespace
}  // namespace weir::testing
