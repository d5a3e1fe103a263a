// Sessions that are wrong on purpose: without some of their waits, and with commands that are held up.
#include <gtest/gtest.h>

#include <cstring>

#include "base/error.h"
#include "device/cpu_testing.h"
#include "device/plan.h"
#include "device/sim_testing.h"

namespace weir {
namespace {

// Three commands on three streams, each after the one before.
Step three_in_a_row(ActionStep& step, BufferId data, Log& log) {
  for (int i = 0; i < 3; ++i) step.add_on({.stream = static_cast<StreamId>(i)}, data, [&log, i](auto) { log.add(i); });
  return step.seal();
}

TEST(Disturbance, a_plan_lacks_the_waits_that_are_missing) {
  ActionStep actions;
  Log log;
  const Step step = three_in_a_row(actions, actions.data(), log);
  const Placement placement = natural(step);
  SessionOptions options;
  const StepPlan whole = make_plan(step, placement, options);
  ASSERT_EQ(whole.waits.size(), 2u);
  options.disturbance.missing_waits = {0};
  const StepPlan part = make_plan(step, placement, options);
  ASSERT_EQ(part.waits.size(), 1u);
  EXPECT_EQ(part.waits[0], whole.waits[1]);
  EXPECT_EQ(part.hops[1].wait_count, 0u);
  EXPECT_EQ(part.hops[1].flags & StepPlan::kWaits, 0);
  EXPECT_EQ(part.hops[2].wait_count, 1u);
  EXPECT_NE(part.hops[2].flags & StepPlan::kWaits, 0);
  options.disturbance.missing_waits = {2};
  EXPECT_THROW(make_plan(step, placement, options), Error);
}

TEST(Disturbance, delays_that_nobody_can_keep_are_rejected) {
  ActionStep actions;
  actions.add({.stream = 0}, [](auto) {});
  const Step step = actions.seal();
  const Placement placement = natural(step);
  const auto rejects = [&](const char* name, const SessionOptions& options) {
    EXPECT_THROW(open_device(name, {})->prepare(step, placement, options), Error) << name;
  };
  SessionOptions options;
  options.disturbance.delays = {{.command = 0, .ns = 1}};
  rejects("null", options);
  options.mode = SubmitMode::graph;
  rejects("cpu", options);
  rejects("sim", options);
  options.mode = SubmitMode::eager;
  for (const Disturbance::Delay& bad :
       {Disturbance::Delay{.command = 9, .ns = 1}, {.command = 0, .ns = -1}, {.command = 0, .ns = 1, .until = 9}}) {
    options.disturbance.delays = {bad};
    rejects("cpu", options);
    rejects("sim", options);
  }
  options.disturbance.delays = {{.command = 0, .ns = 1}, {.command = 0, .ns = 1}};
  rejects("cpu", options);
}

TEST(Disturbance, cpu_holds_a_command_up_until_another_has_ended) {
  ActionStep actions;
  Log log;
  const CommandId first = actions.add({.stream = 0}, [&](auto) { log.add(1); }, 3);
  actions.add({.stream = 0}, [&](auto) { log.add(2); });
  const CommandId last = actions.add({.stream = 1}, [&](auto) { log.add(3); });
  const auto device = action_device(2, 2);
  SessionOptions options;
  // An hour: it is over as soon as the other one has ended, or the test is.
  options.disturbance.delays = {{.command = first, .ns = 3'600'000'000'000, .until = last}};
  Prepared run(*device, actions.seal(), options);
  for (int i = 0; i < 3; ++i) {
    run.iterate();
    run.session->finish();
  }
  EXPECT_EQ(log.entries(), (std::vector<int>{3, 1, 1, 1, 2, 3, 1, 1, 1, 2, 3, 1, 1, 1, 2}));
}

TEST(Disturbance, cpu_holds_a_command_up_until_one_of_the_next_iteration) {
  ActionStep actions;
  Log log;
  const CommandId first = actions.add({.stream = 0}, [&](auto) { log.add(1); });
  const CommandId other = actions.add({.stream = 1}, [&](auto) { log.add(2); });
  const auto device = action_device(2, 2);
  SessionOptions options;
  options.is_pipelined = true;
  options.disturbance.delays = {
      {.command = first, .ns = 3'600'000'000'000, .until = other, .iterations_later = 1, .iteration = 0}};
  Prepared run(*device, actions.seal(), options);
  run.iterate();
  run.iterate();
  run.session->finish();
  EXPECT_EQ(log.entries(), (std::vector<int>{2, 2, 1, 1}));
}

TEST(Disturbance, cpu_holds_a_command_up_for_a_time) {
  ActionStep actions;
  const CommandId command = actions.add({.stream = 0}, [](auto) {});
  const auto device = action_device(2, 1);
  SessionOptions options;
  options.is_traced = true;
  options.trace_iterations = 2;
  options.disturbance.delays = {{.command = command, .ns = 2'000'000}};
  Prepared run(*device, actions.seal(), options);
  for (std::uint32_t i = 0; i < 2; ++i) {
    run.iterate();
    run.session->finish();
    EXPECT_GE(run.span(command, i).started_ns - run.span(command, i).submitted_ns, 2'000'000);
  }
}

TEST(Disturbance, a_delay_on_sim_is_virtual_and_exact) {
  const auto started = [](std::int64_t delay_ns, std::uint32_t iteration) {
    const auto device = open_sim(plain_profile());
    TimedStep timed;
    timed.spin(0, 100);
    timed.spin(1, 100);
    SessionOptions options;
    options.is_traced = true;
    options.trace_iterations = 1;
    if (delay_ns != 0) options.disturbance.delays = {{.command = 0, .ns = delay_ns, .iteration = iteration}};
    SimRun run(*device, timed, options);
    run.iterate();
    run.session->finish();
    std::vector<std::int64_t> times(2);
    for (const Span& span : run.session->timeline().spans) times[span.command] = span.started_ns;
    return times;
  };
  const auto plain = started(0, 0), delayed = started(5'000'000'000, 0), other = started(5'000'000'000, 1);
  EXPECT_EQ(delayed[0] - plain[0], 5'000'000'000);
  EXPECT_EQ(delayed[1], plain[1]);
  EXPECT_EQ(other, plain);
}

}  // namespace
}  // namespace weir
