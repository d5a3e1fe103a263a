// Waits taken away from steps: each is found as a pair of commands, and steps as they are have no such pair. The truth
// is the step's own edges, followed here without clocks.
#include "lab/race/step_race.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "base/error.h"
#include "device/plan.h"
#include "lab/conformance/steps.h"
#include "lab/race/suspects.h"
#include "run/tiny_request.h"

namespace weir::race {
namespace {

using conformance::natural;
using conformance::random_placement;
using conformance::random_step;

// Whether the plan, by its events and the order of its streams alone, keeps every edge of the step in two iterations.
bool keeps_order(const Step& step, const StepPlan& plan, bool is_pipelined) {
  const auto count = static_cast<CommandId>(plan.hops.size());
  const std::size_t total = count * std::size_t{is_pipelined ? 2u : 1u};
  std::vector<std::vector<bool>> before(total, std::vector<bool>(total, false));
  std::vector<std::size_t> last(static_cast<std::size_t>(plan.stream_count), SIZE_MAX);
  std::vector<std::size_t> recorded(plan.event_count, SIZE_MAX);
  for (std::size_t number = 0; number < total; ++number) {
    const auto id = static_cast<CommandId>(number % count);
    const StepPlan::Hop& hop = plan.hops[id];
    const auto follow = [&](std::size_t earlier) {
      if (earlier == SIZE_MAX) return;
      before[number][earlier] = true;
      for (std::size_t i = 0; i < total; ++i)
        if (before[earlier][i]) before[number][i] = true;
    };
    follow(last[hop.stream]);
    for (std::uint32_t i = 0; i < hop.wait_count; ++i) follow(recorded[plan.waits[hop.first_wait + i]]);
    last[hop.stream] = number;
    if ((hop.flags & StepPlan::kRecords) != 0) recorded[hop.event] = number;
    const std::size_t start = number - id;
    for (const CommandId earlier : step.predecessors(id))
      if (!before[number][start + earlier]) return false;
    if (start == 0) continue;
    for (const CommandId earlier : step.carried(id))
      if (!before[number][start - count + earlier]) return false;
  }
  return true;
}

StepPlan plan_without(const Step& step, const Placement& placement, bool is_pipelined, std::uint32_t number) {
  SessionOptions options;
  options.is_pipelined = is_pipelined;
  options.disturbance.missing_waits = {number};
  return make_plan(step, placement, options);
}

std::uint64_t exact_pairs(const Log& log) {
  const Suspects suspects = find_suspects(log);
  return static_cast<std::uint64_t>(
      std::count_if(suspects.pairs.begin(), suspects.pairs.end(), [](const Suspect& pair) { return pair.is_exact; }));
}

struct Tally {
  int deleted = 0, found = 0, overtaken = 0, shown = 0, right_with_wait = 0;
};

// Counts waits that matter by the truth above, and what was said of them.
void count(const Step& step, const Placement& placement, const StepRace& race, Tally& tally) {
  for (const MissingWait& missing : race.missing) {
    const bool matters =
        !keeps_order(step, plan_without(step, placement, race.is_pipelined, missing.number), race.is_pipelined);
    if (!matters) {
      EXPECT_TRUE(missing.pairs.empty()) << "wait " << missing.number << " was accused though it changes nothing";
      continue;
    }
    ++tally.deleted;
    tally.found += missing.is_found ? 1 : 0;
    for (const StepRacePair& pair : missing.pairs) {
      EXPECT_TRUE(pair.is_ordered_with_wait);
      EXPECT_NE(pair.first_stream, pair.second_stream);
      EXPECT_GT(pair.size_bytes, 0u);
      tally.overtaken += pair.is_overtaken.value_or(false) ? 1 : 0;
      EXPECT_NE(pair.is_overtaken, false) << pair.shown;
      tally.shown += pair.is_shown.value_or(false) ? 1 : 0;
      tally.right_with_wait += pair.is_right_with_wait.value_or(false) ? 1 : 0;
    }
  }
}

TEST(RaceStep, a_wait_between_two_commands) {
  StepBuilder builder(1);
  const BufferId data = builder.output(ElementType::f32, 64), result = builder.output(ElementType::f32, 64);
  builder.launch("fill", {.stream = 0}, {.dims = {64}}, {{data}});
  builder.launch("copy", {.stream = 1}, {.dims = {32}}, {{data, 32, 32}, {result, 0, 32}});
  const Step step = std::move(builder).seal(2);
  const auto device = open_device("cpu", {});
  const StepRace race = race_step(*device, step, natural(step), {.patience_ns = 60'000'000'000});
  EXPECT_EQ(race.waits, 1u);
  EXPECT_EQ(race.intact_pairs, 0u);
  ASSERT_EQ(race.missing.size(), 1u);
  EXPECT_EQ(race.missing[0].waiter, (StepCommand{0, 1}));
  EXPECT_EQ(race.missing[0].awaited, 0u);
  ASSERT_EQ(race.missing[0].pairs.size(), 1u);
  const StepRacePair& pair = race.missing[0].pairs[0];
  EXPECT_EQ(pair.first, (StepCommand{0, 0}));
  EXPECT_EQ(pair.second, (StepCommand{0, 1}));
  EXPECT_EQ(pair.first_name, "fill");
  EXPECT_EQ(pair.second_name, "copy");
  EXPECT_EQ(pair.buffer, data);
  EXPECT_EQ(pair.offset_bytes, 128u);
  EXPECT_EQ(pair.size_bytes, 128u);
  EXPECT_EQ(pair.is_shown, true) << pair.shown;
  EXPECT_EQ(pair.is_right_with_wait, true) << pair.shown;
}

TEST(RaceStep, a_wait_for_the_iteration_before) {
  StepBuilder builder(1);
  const BufferId data = builder.uniform(ElementType::f32, 64), result = builder.output(ElementType::f32, 64);
  builder.launch("copy", {.stream = 0}, {.dims = {64}}, {{data}, {result}});
  builder.launch("chain", {.stream = 1}, {.dims = {64, 0}}, {{result}, {data}});
  const Step step = std::move(builder).seal(2);
  const Placement placement = natural(step);
  const Log log = log_of(step, placement, {}, true);
  EXPECT_EQ(exact_pairs(log), 0u);
  EXPECT_EQ(std::count_if(log.calls.begin(), log.calls.end(), [](const Call& call) { return is_command(call.kind); }),
            4);
  const auto device = open_device("sim", {});
  const StepPlan plan = make_plan(step, placement, true);
  const StepRace race = race_step(*device, step, placement,
                                  {.missing = static_cast<std::uint32_t>(plan.waits.size()), .is_pipelined = true});
  Tally tally;
  count(step, placement, race, tally);
  EXPECT_GT(tally.deleted, 1);
  EXPECT_EQ(tally.found, tally.deleted);
  const bool crosses = std::any_of(race.missing.begin(), race.missing.end(), [](const MissingWait& missing) {
    return !missing.pairs.empty() && missing.pairs[0].second.iteration == 1 && missing.pairs[0].first.iteration == 0;
  });
  EXPECT_TRUE(crosses);
}

// 100 waits and more of random steps, on both devices: found by the plan, and shown by a run.
TEST(RaceStep, missing_waits_of_random_steps_are_found_and_shown_on_sim) {
  Tally tally;
  int intact = 0;
  for (std::uint64_t seed = 1; seed <= 100; ++seed) {
    SCOPED_TRACE(seed);
    const int streams = 2 + static_cast<int>(seed % 7);
    const bool is_pipelined = seed % 3 == 0;
    const Step step = random_step(seed, streams, {.has_host = seed % 2 == 0});
    const Placement placement = seed % 4 == 0 ? random_placement(step, seed, streams) : natural(step);
    const auto device = open_device("sim", {.hardware_queues = 16});
    const StepRace race =
        race_step(*device, step, placement, {.missing = 2, .seed = seed, .is_pipelined = is_pipelined});
    intact += race.intact_pairs == 0 ? 1 : 0;
    count(step, placement, race, tally);
  }
  RecordProperty("deleted", tally.deleted);
  RecordProperty("shown", tally.shown);
  EXPECT_EQ(intact, 100);
  EXPECT_GE(tally.deleted, 100);
  EXPECT_EQ(tally.found, tally.deleted);
  EXPECT_EQ(tally.shown, tally.deleted);
  EXPECT_EQ(tally.right_with_wait, tally.shown);
}

TEST(RaceStep, missing_waits_of_random_steps_are_found_and_shown_on_cpu) {
  Tally tally;
  int intact = 0;
  const auto device = open_device("cpu", {.hardware_queues = 16});
  for (std::uint64_t seed = 1; seed <= 100; ++seed) {
    SCOPED_TRACE(seed);
    const int streams = 2 + static_cast<int>(seed % 7);
    const Step step = random_step(seed, streams, {.has_host = seed % 2 == 0});
    const Placement placement = natural(step);
    const StepRace race =
        race_step(*device, step, placement,
                  {.missing = 1, .seed = seed, .is_pipelined = seed % 3 == 0, .patience_ns = 60'000'000'000});
    intact += race.intact_pairs == 0 ? 1 : 0;
    count(step, placement, race, tally);
  }
  EXPECT_EQ(intact, 100);
  EXPECT_GE(tally.deleted, 80);  // not every wait for an earlier iteration matters
  EXPECT_EQ(tally.found, tally.deleted);
  EXPECT_GE(tally.overtaken, tally.deleted);
  // Where the wrong values are overwritten before the end, nothing shows.
  EXPECT_GE(tally.shown, 50);
  EXPECT_EQ(tally.right_with_wait, tally.shown);
}

TEST(RaceStep, what_cannot_be_asked_is_rejected) {
  const Step step = random_step(1, 3);
  const Placement placement = natural(step);
  const auto device = open_device("sim", {});
  EXPECT_THROW(race_step(*device, step, placement, {.missing = 10'000}), Error);
  EXPECT_THROW(race_step(*device, step, placement, {.wait = 10'000}), Error);
  EXPECT_THROW(race_step(*open_device("null", {}), step, placement, {}), Error);
}

TEST(RaceStep, a_workload_by_its_name) {
  const Workload& workload = workload_named("grad_accum");
  const StepRace race =
      race_step("sim", tiny(workload.name, std::max(2, workload.streams.recommended)), {.missing = 1});
  EXPECT_EQ(race.found, 1u);
  EXPECT_EQ(race.shown, 1u);
}

TEST(RaceStep, missing_waits_of_workloads_are_shown_on_cpu) {
  Tally tally;
  const DeviceInfo info = open_device("cpu", {})->info();
  for (const Workload& workload : workloads()) {
    SCOPED_TRACE(workload.name);
    const RunRequest request = tiny(workload.name, workload.streams.recommended);
    const BuiltRun built = build_run(info, request);
    const auto waits = static_cast<std::uint32_t>(make_plan(built.step, built.placement, false).waits.size());
    const StepRace race = race_step("cpu", request, {.missing = std::min(waits, 3u), .patience_ns = 60'000'000'000});
    EXPECT_EQ(race.intact_pairs, 0u);
    count(built.step, built.placement, race, tally);
  }
  EXPECT_GE(tally.deleted, 30);
  EXPECT_EQ(tally.found, tally.deleted);
  EXPECT_GE(tally.overtaken, tally.deleted);
  EXPECT_GE(tally.shown, 25);
  EXPECT_EQ(tally.right_with_wait, tally.shown);
}

TEST(RaceStep, workloads_are_not_accused_and_their_missing_waits_are_found) {
  Tally tally;
  const DeviceInfo info = open_device("sim", {})->info();
  for (const Workload& workload : workloads()) {
    for (const int streams : {workload.streams.min, workload.streams.recommended}) {
      SCOPED_TRACE(workload.name);
      const BuiltRun built = build_run(info, tiny(workload.name, streams));
      for (const bool is_pipelined : {false, true}) {
        const auto waits =
            static_cast<std::uint32_t>(make_plan(built.step, built.placement, is_pipelined).waits.size());
        const auto device = open_device("sim", {.hardware_queues = 64});
        const StepRace race = race_step(*device, built.step, built.placement,
                                        {.missing = std::min(waits, 4u), .is_pipelined = is_pipelined, .shows = false});
        EXPECT_EQ(race.intact_pairs, 0u);
        count(built.step, built.placement, race, tally);
      }
    }
  }
  EXPECT_GE(tally.deleted, 50);
  EXPECT_EQ(tally.found, tally.deleted);
}

}  // namespace
}  // namespace weir::race
