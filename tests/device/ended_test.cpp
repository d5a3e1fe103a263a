// What sessions tell the thread that submits: how many of a stream's commands have ended, without an allocation.
#include <gtest/gtest.h>

#include <algorithm>

#include "base/error.h"
#include "device/allocation_count.h"
#include "device/sim_testing.h"
#include "submit/placement.h"
#include "submit/sched/policy.h"
#include "submit/scheduled.h"

namespace weir {
namespace {

struct Ready {
  explicit Ready(Device& device) : step(sealed()), placement(place(step, "natural")) {
    session = device.prepare(step, placement, {.follows_progress = true});
  }
  static Step sealed() {
    TimedStep timed;
    const BufferId shared = timed.data();
    for (int i = 0; i < 60; ++i) timed.spin_on(shared, static_cast<StreamId>(i % 3), 500);
    for (int i = 0; i < 60; ++i) timed.spin(static_cast<StreamId>(i % 3), 500, 1, static_cast<std::int8_t>(i % 3));
    return timed.seal();
  }

  Step step;
  Placement placement;
  std::unique_ptr<Session> session;
};

TEST(Ended, devices_count_by_stream) {
  for (const char* name : {"cpu", "sim:h200"}) {
    const auto device = open_device(name, {});
    const Ready ready(*device);
    for (std::uint64_t i = 0; i < 3; ++i) {
      for (StreamId stream = 0; stream < 3; ++stream) EXPECT_EQ(ready.session->ended(stream), 40 * i) << name;
      ready.session->begin_iteration();
      inline_submitter(ready.step, *ready.session)->submit_step();
      for (StreamId stream = 0; stream < 3; ++stream) EXPECT_LE(ready.session->ended(stream), 40 * (i + 1)) << name;
      ready.session->finish();
    }
  }
}

TEST(Ended, where_nothing_runs_everything_has) {
  const auto device = open_device("null", {});
  const Ready ready(*device);
  EXPECT_EQ(ready.session->ended(0), Session::kAllEnded);
}

TEST(Ended, nobody_guesses_for_graphs_and_threads_in_virtual_time) {
  const auto device = open_device("sim:h200", {});
  const Step step = Ready::sealed();
  const Placement placement = place(step, "natural");
  EXPECT_FALSE(device->prepare(step, placement, {.mode = SubmitMode::graph})->ended(0));
  EXPECT_FALSE(device->prepare(step, placement, {.host_threads = 2})->ended(0));
}

TEST(Ended, submitting_by_a_policy_allocates_nothing) {
  for (const char* name : {"null", "cpu", "sim:h200"}) {
    for (const scheduler::Policy& policy : scheduler::policies()) {
      const auto device = open_device(name, {});
      const Ready ready(*device);
      const auto submitter =
          scheduled_submitter({.policy = &policy, .terms = stream_terms(ready.step, ready.placement)}, ready.step,
                              ready.placement, *ready.session, 2);
      // Workers grow their scratch when they first need it, whenever that is; submitting would allocate every time.
      std::uint64_t least = UINT64_MAX;
      for (int i = 0; i < 20; ++i) {
        ready.session->begin_iteration();
        const std::uint64_t before = allocation_count();
        submitter->submit_step();
        least = std::min(least, allocation_count() - before);
        ready.session->finish();
      }
      EXPECT_EQ(least, 0u) << name << " " << policy.name;
    }
  }
}

}  // namespace
}  // namespace weir
