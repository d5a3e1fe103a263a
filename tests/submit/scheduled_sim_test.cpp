// What policies promise, checked on random steps in the virtual time of the simulated device: who went before whom, who
// was in flight, and whether the host ever waited without a reason.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "base/error.h"
#include "device/sim_testing.h"
#include "kernel/random.h"
#include "submit/hold_back.h"
#include "submit/sched/policy.h"
#include "submit/scheduled.h"

namespace weir {
namespace {

constexpr int kStreams = 5;
constexpr std::int64_t kLaunchNs = 3'000, kClockNs = 20;
constexpr std::int64_t kLookNs = 100;  // of SimSession::relax()

sim::SimProfile profile_of(std::int64_t multiprocessors) {
  sim::SimProfile profile = plain_profile(8, multiprocessors);
  profile.host.launch_ns = kLaunchNs;
  profile.host.record_ns = 400;
  profile.host.wait_ns = 300;
  profile.host.clock_ns = kClockNs;
  return profile;
}

// Streams of different priorities whose commands now and then share data, also with other streams.
void add_random(TimedStep& step, std::uint64_t seed) {
  std::uint64_t draw = 0;
  const auto next = [&](std::uint64_t below) { return random_bits(seed, draw++) % below; };
  std::vector<BufferId> data;
  for (int i = 0; i < 6; ++i) data.push_back(step.data());
  for (std::uint64_t i = 0; i < 80; ++i) {
    const auto stream = static_cast<StreamId>(i < kStreams ? i : next(kStreams));
    const auto ns = static_cast<std::int64_t>(1'000 + next(40'000));
    const auto priority = static_cast<std::int8_t>(stream % 3);
    if (next(3) == 0) {
      step.spin_on(data[next(6)], stream, ns, 1, priority);
    } else {
      step.spin(stream, ns, 1, priority);
    }
  }
}

struct Ran {
  Ran(std::uint64_t seed, const char* policy, int in_flight, std::int64_t multiprocessors = 64)
      : device(open_sim(profile_of(multiprocessors))) {
    TimedStep timed;
    add_random(timed, seed);
    run.emplace(*device, timed, SessionOptions{.follows_progress = true});
    submitter = scheduled_submitter({&scheduler::policy_named(policy),
                                     in_flight,
                                     {.slice_ns = 50'000, .ageing_ns = 0},
                                     stream_terms(run->step, run->placement)},
                                    run->step, run->placement, *run->session, 1);
    run->session->begin_iteration();
    submitter->submit_step();
    run->session->finish();
    Timeline timeline = run->session->timeline();
    submitter->stamp(timeline);
    spans = timeline.spans;
    std::sort(spans.begin(), spans.end(), [](const Span& a, const Span& b) { return a.command < b.command; });
    for (const auto& before : submit_predecessors(run->step, run->placement)) {
      std::int64_t ns = spans[0].enqueued_ns;
      for (const CommandId id : before) ns = std::max(ns, spans[id].accepted_ns);
      ready_ns.push_back(ns);
    }
  }
  int priority(const Span& span) const { return run->step.commands()[span.command].priority; }

  std::unique_ptr<Device> device;
  std::optional<SimRun> run;
  std::unique_ptr<Submitter> submitter;
  std::vector<Span> spans;             // by command
  std::vector<std::int64_t> ready_ns;  // by command: all that must be submitted before was
};

TEST(ScheduledSim, never_has_more_in_flight_than_asked_for) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    for (const scheduler::Policy& policy : scheduler::policies()) {
      for (const int in_flight : {1, 2, 5}) {
        const Ran ran(seed, policy.name.data(), in_flight);
        ASSERT_EQ(ran.spans.size(), 80u);
        for (const Span& span : ran.spans) {
          const auto others = std::count_if(ran.spans.begin(), ran.spans.end(), [&](const Span& other) {
            return other.submitted_ns <= span.submitted_ns && span.submitted_ns < other.ended_ns;
          });
          EXPECT_LE(others, in_flight) << policy.name << " seed " << seed;
        }
      }
    }
  }
}

TEST(ScheduledSim, no_lower_priority_is_submitted_while_a_higher_one_is_ready) {
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    for (const int in_flight : {1, 2, 4}) {
      const Ran ran(seed, "priority", in_flight);
      for (const Span& high : ran.spans) {
        std::int64_t started = 0;
        for (const Span& low : ran.spans) {
          if (ran.priority(low) >= ran.priority(high)) continue;
          const std::int64_t ready = ran.ready_ns[high.command];
          EXPECT_FALSE(low.submitted_ns >= ready && low.submitted_ns < high.submitted_ns)
              << "command " << low.command << " before " << high.command << " seed " << seed;
          started += low.started_ns >= ready && low.started_ns < high.submitted_ns ? 1 : 0;
        }
        EXPECT_LE(started, in_flight) << "what was on its way already";
      }
    }
  }
}

// As soon as a command has ended, the next one goes: the host is in another call, or it looks once and goes.
TEST(ScheduledSim, the_host_never_waits_while_a_command_could_go) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    for (const scheduler::Policy& policy : scheduler::policies()) {
      for (const int in_flight : {1, 2, 4}) {
        const Ran ran(seed, policy.name.data(), in_flight);
        std::vector<const Span*> order;
        for (const Span& span : ran.spans) order.push_back(&span);
        std::sort(order.begin(), order.end(),
                  [](const Span* a, const Span* b) { return a->submitted_ns < b->submitted_ns; });
        std::vector<std::int64_t> ends;
        std::int64_t free_ns = order[0]->enqueued_ns;
        for (std::size_t i = 0; i < order.size(); ++i) {
          if (i > 0) {
            free_ns = order[i - 1]->accepted_ns;
            ends.push_back(order[i - 1]->ended_ns);
          }
          if (i >= static_cast<std::size_t>(in_flight)) {
            // The moment at which fewer than the bound were left.
            std::sort(ends.begin(), ends.end());
            free_ns = std::max(free_ns, ends[i - static_cast<std::size_t>(in_flight)]);
          }
          // Events of the command come first within its submission; a record follows the launch.
          const std::int64_t calls_ns = 400 + 300 * kStreams;
          EXPECT_LE(order[i]->submitted_ns - free_ns, calls_ns + 2 * kLookNs + 4 * kClockNs)
              << policy.name << " " << in_flight << " seed " << seed << " at " << i;
        }
      }
    }
  }
}

TEST(ScheduledSim, the_device_is_not_idle_longer_than_a_submission_takes) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    const Ran ran(seed, "priority", 2);
    std::vector<Span> order = ran.spans;
    std::sort(order.begin(), order.end(), [](const Span& a, const Span& b) { return a.started_ns < b.started_ns; });
    std::int64_t busy_until = order[0].started_ns;
    for (const Span& span : order) {
      EXPECT_LE(span.started_ns - busy_until, kLaunchNs + 400 + 300 * kStreams + 2 * kLookNs + 4 * kClockNs)
          << "seed " << seed << " command " << span.command;
      busy_until = std::max(busy_until, span.ended_ns);
    }
  }
}

// Two streams that always have work: at any moment their shares differ by no more than a turn of each, which ends with
// the kernel that its slice ends in, and what each may have in flight when its turn is over.
TEST(ScheduledSim, weighted_shares_stay_within_a_slice_and_what_is_in_flight) {
  constexpr std::int64_t kKernelNs = 20'000, kSliceNs = 60'000;
  for (const double weight : {1.0, 2.0, 4.0}) {
    for (const int in_flight : {1, 2}) {
      TimedStep timed;
      for (int i = 0; i < 200; ++i)
        for (StreamId stream = 0; stream < 2; ++stream) timed.spin(stream, kKernelNs);
      const auto device = open_sim(profile_of(1));  // one block at a time: shares are what ran
      SimRun run(*device, timed, {.follows_progress = true});
      const auto submitter = scheduled_submitter({&scheduler::policy_named("weighted_fair"),
                                                  in_flight,
                                                  {.slice_ns = kSliceNs, .ageing_ns = 0},
                                                  {{.weight = 1}, {.weight = weight}}},
                                                 run.step, run.placement, *run.session);
      run.session->begin_iteration();
      submitter->submit_step();
      run.session->finish();
      std::vector<Span> spans = run.session->timeline().spans;
      std::sort(spans.begin(), spans.end(), [](const Span& a, const Span& b) { return a.started_ns < b.started_ns; });
      double used[2] = {0, 0};
      std::size_t left[2] = {200, 200};
      double worst = 0;
      for (const Span& span : spans) {
        used[span.stream] += static_cast<double>(span.ended_ns - span.started_ns);
        if (--left[span.stream] == 0) break;
        worst = std::max(worst, std::abs(used[0] - used[1] / weight));
      }
      EXPECT_LE(worst, static_cast<double>(2 * (kSliceNs + kKernelNs) + 2 * in_flight * kKernelNs))
          << weight << " " << in_flight;
    }
  }
}

TEST(ScheduledSim, deadlines_are_met_in_their_order) {
  TimedStep timed;
  for (int i = 0; i < 10; ++i)
    for (StreamId stream = 0; stream < 4; ++stream) timed.spin(stream, 20'000);
  const auto device = open_sim(profile_of(1));
  SimRun run(*device, timed, {.follows_progress = true});
  const std::vector<scheduler::Terms> terms = {
      {.deadline_ns = 900'000}, {.deadline_ns = 300'000}, {}, {.deadline_ns = 600'000}};
  const auto submitter = scheduled_submitter(
      {&scheduler::policy_named("earliest_deadline"), 1, {.slice_ns = 50'000, .ageing_ns = 0}, terms}, run.step,
      run.placement, *run.session);
  run.session->begin_iteration();
  submitter->submit_step();
  run.session->finish();
  std::map<StreamId, std::int64_t> first, last;
  for (const Span& span : run.session->timeline().spans) {
    const auto entry = first.try_emplace(span.stream, span.started_ns).first;
    entry->second = std::min(entry->second, span.started_ns);
    last[span.stream] = std::max(last[span.stream], span.ended_ns);
  }
  const StreamId order[] = {1, 3, 0, 2};
  for (int i = 0; i < 3; ++i) EXPECT_GE(first[order[i + 1]], last[order[i]]) << i;
}

TEST(ScheduledSim, gives_the_same_times_every_time) {
  for (const scheduler::Policy& policy : scheduler::policies()) {
    const Ran one(7, policy.name.data(), 2), two(7, policy.name.data(), 2);
    for (std::size_t i = 0; i < one.spans.size(); ++i) {
      EXPECT_EQ(one.spans[i].submitted_ns, two.spans[i].submitted_ns);
      EXPECT_EQ(one.spans[i].ended_ns, two.spans[i].ended_ns);
    }
  }
}

// A session in virtual time cannot wait for what never happens: it says so.
TEST(ScheduledSim, time_passes_while_it_waits_and_only_then) {
  TimedStep timed;
  const CommandId command = timed.spin(0, 1'000'000);
  const auto device = open_sim(profile_of(1));
  SimRun run(*device, timed, {.follows_progress = true});
  run.session->begin_iteration();
  run.session->submit(run.ids);
  for (int i = 0; i < 1000; ++i) EXPECT_EQ(run.session->ended(0), 0u);
  const std::int64_t before = run.now();
  EXPECT_LT(before, 10'000);
  int looks = 0;
  for (; run.session->ended(0) == 0u; ++looks) run.session->relax(looks);
  EXPECT_LE(looks, 3) << "it skips to the next event";
  EXPECT_LE(run.ended(command), run.now());
  EXPECT_LE(run.now(), run.ended(command) + kLookNs + 2 * kClockNs);
  EXPECT_EQ(run.session->ended(0), 1u);
  run.session->relax(0);
  EXPECT_EQ(run.session->ended(0), Session::kAllEnded) << "nothing more will happen: nobody is to wait for it";
  EXPECT_THROW(run.session->finish(), Error);
}

}  // namespace
}  // namespace weir
