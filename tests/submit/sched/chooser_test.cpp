#include "submit/sched/chooser.h"

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "submit/sched/chooser_reasons.h"
#include "support/text.h"

namespace weir::testing {
namespace {

using namespace weir::scheduler;

constexpr std::int64_t kMicrosecond = 1'000, kMillisecond = 1'000'000, kSecond = 1'000'000'000;
constexpr int kServed = 0, kLoop = 1, kOther = 2;
constexpr std::uint64_t kBoth = 0b11, kLoopAlone = 0b10;

// A served model and a loop that makes way for it.
struct Scene {
  explicit Scene(const ChooserSettings& settings = {.confines = true}) : chooser(settings) {
    facts[kServed] = {.pid = 7, .terms = {.priority = 10}};
    facts[kLoop] = {.pid = 8, .terms = {.priority = -10}, .may_yield_to = 1 << kServed, .confinable = Confinable::yes};
    facts[kOther] = {.pid = 9, .terms = {.priority = -10}, .may_yield_to = 1 << kServed, .confinable = Confinable::yes};
  }

  const Choice& at(std::int64_t now_ns, std::uint64_t recent = kBoth, std::uint64_t seated = kBoth) {
    now = now_ns;
    chooser.decide(seated, recent, facts, now_ns);
    return chooser.choice(kLoop);
  }
  // That many milliseconds, in steps of 2.
  const Choice& go_on(std::int64_t ms, std::uint64_t recent = kBoth) {
    for (const std::int64_t end = now + ms * kMillisecond; now < end;) at(now + 2 * kMillisecond, recent);
    return chooser.choice(kLoop);
  }
  // Enough requests for a look at the bound, with this p99, in a second.
  const Choice& serve(std::int64_t p99_ns, std::uint64_t seconds = 1) {
    for (; seconds > 0; --seconds) {
      facts[kServed].requests += 2 * kRequestWindow;
      facts[kServed].request_p99_ns = p99_ns;
      at(now + kSecond);
    }
    return chooser.choice(kLoop);
  }
  std::string said() const { return chooser.reason(kLoop); }

  Chooser chooser;
  std::array<ClientFacts, kMaxClients> facts{};
  std::int64_t now = 0;
};

std::string text(const Choice& choice) {
  return std::string(name_of(choice.confine)) + " " + std::to_string(choice.part_percent) + " " +
         std::to_string(choice.in_flight) + " " + name_of(choice.why);
}

// What a client says at a time, who was about, and what follows.
struct Moment {
  std::int64_t at_ms;
  std::int64_t command_us;
  std::uint64_t recent;
  const char* choice;
  const char* reason;
};

void expect_all(Scene scene, const std::vector<Moment>& moments) {
  for (const Moment& moment : moments) {
    scene.facts[kLoop].command_ns = moment.command_us * kMicrosecond;
    EXPECT_EQ(text(scene.at(moment.at_ms * kMillisecond, moment.recent)), moment.choice) << moment.at_ms << " ms";
    EXPECT_TRUE(has(scene.said(), moment.reason)) << moment.at_ms << " ms: " << scene.said();
  }
}

TEST(Chooser, goes_by_the_length_of_commands_and_by_who_is_about) {
  expect_all(Scene(), {
                          {0, 0, kLoopAlone, "never 0 2 nobody_about",
                           "has the device: nobody that comes first was active lately"},
                          {10, 0, kBoth, "beside 80 1 unknown_length",
                           "not known yet: they use 80 % of the device while process 7 is active"},
                          {20, 180, kBoth, "beside 80 3 short_commands",
                           "its commands take 180 us, no longer than 400 us: they use 80 %"},
                          {30, 180, kLoopAlone, "never 0 2 nobody_about", "nobody"},
                          {40, 180, kBoth, "beside 80 3 short_commands", "while process 7 is active"},
                      });
  expect_all(
      Scene(),
      {
          {0, 0, kBoth, "beside 80 1 unknown_length", "not known"},
          {2, 1600, kBoth, "always 85 64 long_commands",
           "its commands take 1.60 ms, longer than 400 us: they use 85 % of the device while process 7 is about"},
          {4, 1600, kLoopAlone, "never 0 2 nobody_about", "nobody"},
          {6, 1600, kBoth, "always 85 64 long_commands", "longer than"},
      });
}

TEST(Chooser, changes_its_choice_when_the_program_changes_and_not_before) {
  expect_all(Scene(), {
                          {0, 200, kBoth, "beside 80 2 short_commands", "take 200 us"},
                          {100, 500, kBoth, "beside 80 2 short_commands", "take 200 us"},  // over, but not by half
                          {900, 500, kBoth, "beside 80 2 short_commands", "take 200 us"},
                          {1000, 700, kBoth, "beside 80 2 short_commands", "take 200 us"},  // clearly over, from now on
                          {1100, 300, kBoth, "beside 80 2 short_commands", "take 300 us"},  // or not
                          {1200, 700, kBoth, "beside 80 2 short_commands", "take 300 us"},
                          {1399, 700, kBoth, "beside 80 2 short_commands", "take 300 us"},
                          {1400, 700, kBoth, "always 85 64 long_commands", "take 700 us, longer than"},
                          {1500, 300, kBoth, "always 85 64 long_commands", "take 700 us"},
                          {2500, 300, kBoth, "always 85 64 long_commands", "take 700 us"},
                          {2600, 200, kBoth, "always 85 64 long_commands", "take 700 us"},
                          {2800, 200, kBoth, "beside 80 2 short_commands", "take 200 us"},
                          {2802, 5800, kBoth, "always 85 64 long_commands", "take 5.80 ms"},  // much longer: at once
                      });
}

TEST(Chooser, at_the_gate_the_length_decides_how_many_are_in_flight) {
  for (const auto& [us, in_flight] : std::vector<std::pair<std::int64_t, std::uint32_t>>{
           {0, 2}, {1, 64}, {5, 20}, {30, 4}, {49, 3}, {60, 2}, {300, 2}, {501, 1}, {10'000, 1}}) {
    Scene scene({.confines = false});
    scene.facts[kLoop].command_ns = us * kMicrosecond;
    const Choice& choice = scene.at(0);
    EXPECT_EQ(choice.in_flight, in_flight) << us;
    EXPECT_EQ(choice.confine, Confine::never);
    EXPECT_EQ(choice.why, Why::no_mechanism);
    EXPECT_TRUE(has(scene.said(), "held at the gate with " + std::to_string(in_flight) + " in flight: "))
        << scene.said();
  }
}

TEST(Chooser, what_cannot_be_confined_is_held_and_says_why) {
  const auto said = [](auto change) {
    Scene scene;
    scene.facts[kLoop].command_ns = 1600 * kMicrosecond;
    change(scene.facts);
    EXPECT_EQ(scene.at(0).confine, Confine::never);
    EXPECT_EQ(scene.chooser.choice(kLoop).in_flight, 1U);
    return scene.said();
  };
  const auto of = [&](Confinable state) { return said([&](auto& facts) { facts[kLoop].confinable = state; }); };
  EXPECT_TRUE(has(of(Confinable::unknown), "launched nothing yet"));
  EXPECT_TRUE(has(of(Confinable::not_hooked), "was not loaded"));
  EXPECT_TRUE(has(of(Confinable::no_driver), "12.4"));
  EXPECT_TRUE(has(of(Confinable::own_contexts), "contexts that it made itself"));
  EXPECT_TRUE(has(of(Confinable::refused), "refused"));
  EXPECT_TRUE(has(said([](auto& facts) { facts[kLoop].terms.is_isolated = true; }), "as it asked"));
  // Beside a process to which the driver gives the whole device nothing runs: it would wait for the driver's slices.
  EXPECT_TRUE(has(said([](auto& facts) { facts[kLoop].is_apart = true; }), "shares no MPS"));
  EXPECT_TRUE(has(said([](auto& facts) { facts[kServed].is_apart = true; }), "shares no MPS"));
  EXPECT_TRUE(has(said([](auto& facts) { facts[kServed].terms.is_isolated = true; }), "shares no MPS"));
  // Shares come from waiting: where each yields to the other at some time, nobody runs beside the other.
  EXPECT_TRUE(has(said([](auto& facts) { facts[kServed].may_yield_to = 1 << kLoop; }), "takes turns"));
}

TEST(Chooser, what_the_user_set_stays) {
  Scene scene({.confines = true, .in_flight = 5});
  scene.facts[kServed].terms.p99_ns = kMillisecond;
  EXPECT_EQ(scene.at(0).in_flight, 5U);
  scene.facts[kLoop].command_ns = 1600 * kMicrosecond;
  EXPECT_EQ(scene.at(kMillisecond).in_flight, 5U);
  EXPECT_EQ(scene.at(2 * kMillisecond, kLoopAlone).in_flight, 5U);
  EXPECT_EQ(text(scene.serve(2 * kMillisecond, 12)), "always 50 5 tightened");
}

TEST(Chooser, the_tightest_bound_says_which_commands_are_long) {
  Scene scene;
  scene.facts[kLoop].command_ns = 300 * kMicrosecond;
  EXPECT_EQ(scene.at(0).confine, Confine::beside);
  scene.facts[kServed].terms.p99_ns = kMillisecond;  // two of them would take more than half of it
  EXPECT_EQ(scene.at(kMillisecond).confine, Confine::always);
  EXPECT_TRUE(has(scene.said(), "take 300 us, longer than 250 us")) << scene.said();
  scene.facts[kServed].terms.p99_ns = 10 * kMillisecond;
  scene.facts[kLoop].command_ns = 1600 * kMicrosecond;
  EXPECT_EQ(scene.at(2 * kMillisecond).confine, Confine::beside) << scene.said();
}

TEST(Chooser, climbs_the_ladder_until_the_bound_is_kept) {
  Scene scene;
  scene.facts[kServed].terms.p99_ns = kMillisecond;
  scene.facts[kLoop].command_ns = 100 * kMicrosecond;
  EXPECT_EQ(text(scene.at(0)), "beside 80 2 short_commands");
  EXPECT_TRUE(has(scene.chooser.bound_reason(kServed), "too few requests so far"));
  EXPECT_EQ(text(scene.serve(2 * kMillisecond)), "beside 80 1 short_commands");
  EXPECT_TRUE(has(scene.chooser.bound_reason(kServed), "p99 2.00 ms > 1.00 ms: the others are confined more"));
  EXPECT_EQ(text(scene.serve(2 * kMillisecond)), "always 85 1 tightened");
  EXPECT_TRUE(has(scene.said(), "the bound of process 7 asks for it: its commands use 85 %")) << scene.said();
  for (const char* next : {"always 80 1", "always 70 1", "always 60 1"})
    EXPECT_EQ(text(scene.serve(2 * kMillisecond)), std::string(next) + " tightened");
  EXPECT_EQ(text(scene.serve(800 * kMicrosecond, 100)), "always 60 1 tightened") << "kept, without room";
  EXPECT_EQ(scene.chooser.bound_state(kServed), BoundState::kept);
  EXPECT_TRUE(has(scene.chooser.bound_reason(kServed), "p99 800 us <= 1.00 ms: kept"));
  // A little over, and far over once, may be chance.
  for (const std::int64_t us : {1200, 800, 7000, 700})
    EXPECT_EQ(text(scene.serve(us * kMicrosecond)), "always 60 1 tightened") << us;
  EXPECT_EQ(text(scene.serve(1200 * kMicrosecond)), "always 60 1 tightened");
  EXPECT_EQ(text(scene.serve(1200 * kMicrosecond, 2)), "always 50 1 tightened");
  EXPECT_EQ(text(scene.serve(2 * kMillisecond)), "never 0 1 held");
  EXPECT_TRUE(has(scene.said(), "held at the gate with 1 in flight, for the bound of process 7")) << scene.said();
  EXPECT_EQ(scene.chooser.bound_state(kServed), BoundState::exceeded);
  EXPECT_EQ(text(scene.serve(4 * kMillisecond)), "always 60 1 tightened") << "what came closest";
  EXPECT_EQ(scene.chooser.bound_state(kServed), BoundState::cannot_be);
  EXPECT_TRUE(has(scene.chooser.bound_reason(kServed), "p99 4.00 ms > 1.00 ms: cannot be kept, and nothing else"))
      << scene.chooser.bound_reason(kServed);
  EXPECT_EQ(text(scene.serve(2 * kMillisecond, 20)), "always 60 1 tightened");
  EXPECT_EQ(scene.chooser.bound_state(kServed), BoundState::cannot_be);
  scene.serve(500 * kMicrosecond, 20);
  EXPECT_EQ(scene.chooser.bound_state(kServed), BoundState::kept);
}

TEST(Chooser, says_what_is_in_the_way_of_a_bound) {
  Scene scene;
  scene.facts[kServed].terms.p99_ns = kMillisecond;
  scene.facts[kLoop].command_ns = 5800 * kMicrosecond;
  scene.facts[kLoop].confinable = Confinable::own_contexts;
  EXPECT_EQ(text(scene.at(0)), "never 0 1 not_confinable");
  scene.serve(6 * kMillisecond);
  EXPECT_TRUE(has(scene.chooser.bound_reason(kServed),
                  "p99 6.00 ms > 1.00 ms: cannot be kept, a command of process 8 that has begun takes 5.80 ms"))
      << scene.chooser.bound_reason(kServed);
  // Nobody makes way for it now, and it is no faster.
  for (int i = 0; i < 3; ++i) {
    scene.facts[kServed].requests += 2 * kRequestWindow;
    scene.facts[kServed].request_p99_ns = 1500 * kMicrosecond;
    scene.at(scene.now + kSecond, 0b01);
  }
  EXPECT_TRUE(has(scene.chooser.bound_reason(kServed), "without the others it takes 1.50 ms"));
}

TEST(Chooser, few_requests_or_little_time_change_nothing) {
  Scene scene;
  scene.facts[kServed].terms.p99_ns = kMillisecond;
  scene.facts[kLoop].command_ns = 100 * kMicrosecond;
  scene.facts[kServed].request_p99_ns = 5 * kMillisecond;
  scene.at(0);
  scene.facts[kServed].requests = 100;
  EXPECT_EQ(text(scene.go_on(20'000)), "beside 80 2 short_commands");
  Scene fast;
  fast.facts = scene.facts;
  fast.at(0);
  fast.facts[kServed].requests = 100'000;
  EXPECT_EQ(text(fast.go_on(900)), "beside 80 2 short_commands");
  EXPECT_EQ(text(fast.go_on(200)), "beside 80 1 short_commands");
}

TEST(Chooser, gives_back_what_is_not_needed_and_does_not_try_what_failed_lately) {
  Scene scene;
  scene.facts[kServed].terms.p99_ns = kMillisecond;
  scene.facts[kLoop].command_ns = 1600 * kMicrosecond;
  scene.at(0);
  EXPECT_EQ(text(scene.serve(3 * kMillisecond)), "always 85 1 long_commands");
  EXPECT_EQ(text(scene.serve(3 * kMillisecond)), "always 80 1 tightened");
  EXPECT_EQ(text(scene.serve(500 * kMicrosecond, 50)), "always 80 1 tightened") << "85 failed less than a minute ago";
  EXPECT_EQ(text(scene.serve(500 * kMicrosecond, 15)), "always 85 1 long_commands");
  EXPECT_EQ(text(scene.serve(3 * kMillisecond, 2)), "always 80 1 tightened");
  EXPECT_EQ(text(scene.serve(500 * kMicrosecond, 100)), "always 80 1 tightened") << "it failed twice: two minutes";
  EXPECT_EQ(text(scene.serve(500 * kMicrosecond, 25)), "always 85 1 long_commands");
  // What failed with these clients says nothing about others.
  EXPECT_EQ(text(scene.serve(3 * kMillisecond, 2)), "always 80 1 tightened");
  scene.chooser.decide(0b111, 0b111, scene.facts, scene.now);
  scene.facts[kOther].command_ns = 100 * kMicrosecond;
  scene.facts[kServed].request_p99_ns = 500 * kMicrosecond;
  for (int i = 0; i < 12; ++i) {
    scene.facts[kServed].requests += 2 * kRequestWindow;
    scene.at(scene.now + kSecond, 0b111, 0b111);
  }
  EXPECT_EQ(scene.chooser.choice(kLoop).part_percent, 85U);
  EXPECT_EQ(text(scene.chooser.choice(kOther)), "always 85 1 tightened");
}

TEST(Chooser, a_bound_that_leaves_takes_its_steps_along) {
  Scene scene;
  scene.facts[kServed].terms.p99_ns = kMillisecond;
  scene.facts[kLoop].command_ns = 100 * kMicrosecond;
  scene.at(0);
  EXPECT_EQ(text(scene.serve(2 * kMillisecond, 3)), "always 80 1 tightened");
  EXPECT_EQ(text(scene.at(scene.now + kMillisecond, kLoopAlone)), "never 0 2 nobody_about");
  EXPECT_EQ(text(scene.at(scene.now + kMillisecond)), "always 80 1 tightened") << "nothing was forgotten meanwhile";
  EXPECT_EQ(text(scene.at(scene.now + kMillisecond, kLoopAlone, kLoopAlone)), "never 0 0 alone");
  EXPECT_EQ(text(scene.at(scene.now + kMillisecond)), "beside 80 2 short_commands");
}

// Whatever clients say.
TEST(Chooser, never_confines_without_need_and_always_says_why) {
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    std::mt19937_64 random(seed);
    const auto below = [&](std::uint64_t most) { return random() % most; };
    const ChooserSettings settings{.confines = seed % 4 != 0,
                                   .in_flight = static_cast<std::uint32_t>(below(3) == 0 ? 1 + below(5) : 0)};
    Chooser chooser(settings);
    std::array<ClientFacts, kMaxClients> facts{};
    std::int64_t now = 0;
    for (int step = 0; step < 300; ++step) {
      now += static_cast<std::int64_t>(below(kSecond));
      for (std::size_t seat = 0; seat < 6; ++seat) {
        ClientFacts& each = facts[seat];
        each.pid = static_cast<int>(below(3));
        if (below(10) == 0) each.terms.p99_ns = static_cast<std::int64_t>(below(2) * below(10 * kMillisecond));
        if (below(10) == 0) each.terms.is_isolated = below(5) == 0;
        if (below(5) == 0) each.may_yield_to = below(64) & ~(std::uint64_t{1} << seat);
        if (below(5) == 0) each.confinable = static_cast<Confinable>(below(6));
        if (below(3) == 0)
          each.command_ns = static_cast<std::int64_t>(below(2) == 0 ? below(kMillisecond) : below(kLongestP99Ns));
        each.commands = below(20) == 0 ? 0 : each.commands + below(1000);
        each.requests = below(20) == 0 ? 0 : each.requests + below(1000);
        each.requests_ns = below(20) == 0 ? 0 : each.requests_ns + below(kSecond);
        each.request_p99_ns = static_cast<std::int64_t>(below(20 * kMillisecond));
      }
      const std::uint64_t seated = below(64), recent = below(64);
      chooser.decide(seated, recent, facts, now);
      for (int seat = 0; seat < 6; ++seat) {
        if ((seated >> seat & 1) == 0) continue;
        const Choice& choice = chooser.choice(seat);
        const ClientFacts& each = facts[static_cast<std::size_t>(seat)];
        const bool has_company = (each.may_yield_to & seated & recent) != 0;
        EXPECT_FALSE(chooser.reason(seat).empty());
        EXPECT_EQ(chooser.bound_reason(seat).empty(), chooser.bound_state(seat) == BoundState::none);
        EXPECT_EQ(choice.in_flight == 0, std::popcount(seated) < 2);
        EXPECT_EQ(choice.part_percent == 0, choice.confine == Confine::never);
        if (!has_company || !settings.confines || each.terms.is_isolated || each.confinable != Confinable::yes) {
          EXPECT_EQ(choice.confine, Confine::never);
        }
        if (choice.confine != Confine::never) {
          EXPECT_TRUE(choice.part_percent >= 50 && choice.part_percent <= 97) << choice.part_percent;
        }
        if (settings.in_flight != 0 && choice.in_flight != 0 && choice.in_flight != kNoBound) {
          EXPECT_EQ(choice.in_flight, settings.in_flight);
        }
      }
    }
  }
}

}  // namespace
}  // namespace weir::testing
