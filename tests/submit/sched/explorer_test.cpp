// The conductor's state machine, for every policy, in all states that three clients can bring it to.
#include "submit/sched/explorer.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace weir::testing {
namespace {

using scheduler::Conductor;
using scheduler::kNever;
using scheduler::Policy;
using scheduler::Ranking;
using scheduler::Settings;
using scheduler::Situation;
using scheduler::Terms;

constexpr Settings kSettings{.slice_ns = 2, .ageing_ns = 4};
constexpr std::array<Terms, kExplored> kTerms = {{{.priority = 0, .weight = 1, .deadline_ns = 0},
                                                  {.priority = 5, .weight = 2, .deadline_ns = 3},
                                                  {.priority = 5, .weight = 0.5, .deadline_ns = 6}}};
constexpr std::size_t kMaxStates = 150'000;

// Whether everybody who waits waits, in the end, for somebody who does not: takes away who waits for nobody that is
// left, again and again.
template <class Machine>
bool has_cycle(const Machine& machine) {
  std::uint64_t left = machine.seated();
  for (bool goes_on = true; goes_on;) {
    goes_on = false;
    for (int seat = 0; seat < kExplored; ++seat) {
      const std::uint64_t bit = std::uint64_t{1} << seat;
      if ((left & bit) == 0 || (machine.yields_to(seat) & left) != 0) continue;
      left &= ~bit;
      goes_on = true;
    }
  }
  return left != 0;
}

// `longest_wait_ns`: that an active client is not among the first; kNever where the policy promises nothing.
template <class Machine>
std::string violation_in(const World<Machine>& world, std::int64_t longest_wait_ns) {
  const Machine& machine = world.machine;
  const std::uint64_t seated = machine.seated();
  std::uint64_t first = 0;
  for (int client = 0; client < kExplored; ++client) {
    if (world.is_first(client)) first |= std::uint64_t{1} << client;
  }
  if ((machine.active() & ~seated) != 0) return "somebody who has left is active";
  if (has_cycle(machine)) return "clients wait for each other";
  if (machine.active() != 0 && first == 0) return "clients are active and none may go on";
  if (machine.running() != first) return "those that run are not those that wait for nobody";
  if (machine.next_change_ns() <= world.now_ns) return "time does not go on";
  if (machine.active() == 0 && machine.next_change_ns() != kNever) return "the clock is watched for nobody";
  for (int client = 0; client < kExplored; ++client) {
    if (!world.is_seated(client)) continue;
    if ((machine.yields_to(client) & ~seated) != 0) return "somebody yields to an empty seat";
    const std::int64_t waits_ns = world.now_ns - world.waits_from_ns[static_cast<std::size_t>(client)];
    if (world.is_active(client) && !world.is_first(client) && waits_ns > longest_wait_ns) {
      return "client " + std::to_string(client) + " has waited for " + std::to_string(waits_ns) + " ns";
    }
  }
  return "";
}

// What a policy promises beyond that, where nobody is first for its age.
std::string broken_promise(const World<Conductor>& world) {
  const Conductor& machine = world.machine;
  if (machine.aged() >= 0) return std::popcount(machine.running()) == 1 ? "" : "an aged client is not alone";
  const std::string_view policy = machine.policy().name;
  if ((policy == "weighted_fair" || policy == "time_slice") && std::popcount(machine.running()) > 1) {
    return "two have the turn";
  }
  for (int a = 0; a < kExplored; ++a) {
    for (int b = 0; b < kExplored; ++b) {
      if (!world.is_active(a) || !world.is_active(b)) continue;
      const auto &first = machine.client(a), &second = machine.client(b);
      const bool waits = (machine.yields_to(b) >> a & 1) != 0;  // b waits for a
      const auto deadline_of = [](const scheduler::Client& client) {
        return client.terms.deadline_ns > 0 ? client.arrived_ns + client.terms.deadline_ns : kNever;
      };
      if (policy == "priority" && waits != (first.terms.priority > second.terms.priority)) return "priority inverted";
      if (policy == "fifo" && waits != (first.arrived_ns < second.arrived_ns)) return "not in the order of arrival";
      if (policy == "earliest_deadline" && waits != (deadline_of(first) < deadline_of(second)))
        return "not by deadline";
      const double slice = static_cast<double>(machine.settings().slice_ns);
      if (policy == "weighted_fair" && first.virtual_ns > second.virtual_ns + slice / first.terms.weight + 1e-6) {
        return "ahead of another one by more than a slice";
      }
    }
  }
  return "";
}

Memory memory_of(const Policy& policy, const Settings& settings) {
  return {.arrivals = policy.name == "fifo" || policy.name == "weighted_fair",
          .deadlines = policy.name == "earliest_deadline",
          .shares = policy.name == "weighted_fair",
          .ages = settings.ageing_ns > 0,
          .waits = settings.ageing_ns > 0 || policy.name == "time_slice",
          .horizon_ns = 12};
}

Exploration explored(const Policy& policy, const Settings& settings, std::int64_t longest_wait_ns) {
  return Explorer<Conductor>(Conductor(policy, settings), kTerms, memory_of(policy, settings),
                             [&](const World<Conductor>& world) {
                               const std::string found = violation_in(world, longest_wait_ns);
                               return found.empty() ? broken_promise(world) : found;
                             })
      .explore(kMaxStates);
}

class EveryState : public ::testing::TestWithParam<Policy> {};
INSTANTIATE_TEST_SUITE_P(Explorer, EveryState, ::testing::ValuesIn(scheduler::policies()),
                         [](const auto& each) { return std::string(each.param.name); });

TEST_P(EveryState, is_right_with_ageing) {
  // It is aged after ageing_ns; then there are the slices of the two others.
  const std::int64_t longest_ns = kSettings.ageing_ns + (kExplored - 1) * kSettings.slice_ns;
  const Exploration exploration = explored(GetParam(), kSettings, longest_ns);
  EXPECT_EQ(exploration.violation, "") << exploration.text();
  EXPECT_TRUE(exploration.is_complete) << exploration.states;
  EXPECT_GT(exploration.states, 300U);
}

TEST_P(EveryState, is_right_without_ageing) {
  const Settings settings{.slice_ns = kSettings.slice_ns, .ageing_ns = 0};
  // Turns of the two others; the longest ones with weights 2 and 1.
  const std::int64_t longest_ns = GetParam().name == "time_slice" ? 3 * settings.slice_ns : kNever;
  const Exploration exploration = explored(GetParam(), settings, longest_ns);
  EXPECT_EQ(exploration.violation, "") << exploration.text();
  EXPECT_TRUE(exploration.is_complete) << exploration.states;
}

// What follows shows that the explorer finds what it looks for.

// All three active: each waits for the next one.
struct CyclicConductor : Conductor {
  using Conductor::Conductor;
  std::uint64_t yields_to(int seat) const {
    return active() == 0b111 ? std::uint64_t{1} << (seat + 1) % 3 : Conductor::yields_to(seat);
  }
};

TEST(Explorer, finds_a_planted_cycle_by_a_shortest_way) {
  const Policy& policy = scheduler::policy_named("fifo");
  Explorer<CyclicConductor> explorer(CyclicConductor(policy, kSettings), kTerms, memory_of(policy, kSettings),
                                     [](const World<CyclicConductor>& world) { return violation_in(world, kNever); });
  const Exploration exploration = explorer.explore(kMaxStates);
  EXPECT_EQ(exploration.violation, "clients wait for each other");
  ASSERT_EQ(exploration.path.size(), 6U) << exploration.text();
  EXPECT_EQ(std::count_if(exploration.path.begin(), exploration.path.end(),
                          [](const std::string& event) { return event.ends_with("join"); }),
            3);
  EXPECT_TRUE(exploration.path.back().ends_with("become active")) << exploration.text();
}

// Seat 2 comes after the others, and nobody ever has to make room for it.
Ranking forgetful_rank(const Situation& situation) {
  Ranking ranking;
  if (situation.clients.size() > 2) ranking.ranks[2] = 1;
  return ranking;
}
constexpr Policy kForgetful{.name = "forgetful", .summary = "", .rank = forgetful_rank};

TEST(Explorer, finds_who_is_never_served_unless_clients_age) {
  constexpr std::int64_t kLongest = 20;
  Settings settings{.slice_ns = 2, .ageing_ns = 0};
  const auto explore = [&] {
    Memory memory = memory_of(kForgetful, settings);
    memory.waits = true;
    memory.horizon_ns = kLongest + 1;
    return Explorer<Conductor>(Conductor(kForgetful, settings), kTerms, memory,
                               [&](const World<Conductor>& world) { return violation_in(world, kLongest); })
        .explore(kMaxStates);
  };
  const Exploration starving = explore();
  EXPECT_TRUE(starving.violation.starts_with("client 2 has waited for ")) << starving.text();
  settings.ageing_ns = 4;
  EXPECT_EQ(explore().violation, "");
}

// Two clients: the clock is wanted for a moment that has passed, so whoever drives the conductor would spin.
Ranking hasty_rank(const Situation& situation) {
  Ranking ranking;
  ranking.asks_again_ns = situation.clients.size() > 1 ? situation.now_ns : kNever;
  return ranking;
}
constexpr Policy kHasty{.name = "hasty", .summary = "", .rank = hasty_rank};

TEST(Explorer, finds_a_clock_that_stands_still) {
  const Exploration exploration = explored(kHasty, kSettings, kNever);
  EXPECT_EQ(exploration.violation, "time does not go on");
  EXPECT_EQ(exploration.path.size(), 3U) << exploration.text();
}

}  // namespace
}  // namespace weir::testing
