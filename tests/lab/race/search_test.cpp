// The whole search on a program in virtual time whose races are known (fake_racy_program.cpp): found, shrunk, named,
// replayed; and never a race in one that has none.
#include "lab/race/search.h"

#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <set>

#include "base/error.h"
#include "base/named_values.h"
#include "base/private_folder.h"
#include "base/schemas.h"
#include "lab/race/name.h"
#include "lab/race/race_document.h"

namespace weir::race {
namespace {

class RacySearch : public ::testing::Test {
 protected:
  Search search(const std::string& scenario, SearchOptions options = {}) {
    ProgramRequest request;
    request.command = {WEIR_FAKE_RACY_PROGRAM, scenario, (folder_.path() / scenario).string()};
    request.rules = options.rules;
    return Search(options, [this, request](const RunPlan& plan, double limit_s) {
      return run_program(request, plan, limit_s, stop_);
    });
  }
  // Found by its labels, and shown both ways.
  static void expect_named(const Race& race, const std::string& first, const std::string& second) {
    ASSERT_TRUE(race.first);
    EXPECT_EQ(race.first->label, first);
    ASSERT_EQ(race.second.has_value(), !second.empty());
    if (race.second) {
      EXPECT_EQ(race.second->label, second);
    }
    EXPECT_EQ(race.delays.size(), 1U);
    EXPECT_EQ(race.waits.size(), 1U);
    EXPECT_EQ(race.delayed_changes, race.delayed_runs);
    EXPECT_GT(race.delayed_runs, 0U);
    EXPECT_EQ(race.cured_changes, 0U);
    EXPECT_GT(race.cured_runs, 0U);
    EXPECT_FALSE(race.first_stack.empty());
  }

  PrivateFolder folder_;
  std::atomic<bool> stop_{false};
};

TEST_F(RacySearch, missing_wait_is_found_and_named) {
  Search one = search("missing_wait");
  one.hunt();
  ASSERT_EQ(one.findings().answer, Answer::found);
  ASSERT_EQ(one.findings().races.size(), 1U);
  const Race& race = one.findings().races[0];
  expect_named(race, "produce", "consume");
  EXPECT_EQ(race.hazard, Hazard::read_after_write);
  EXPECT_NE(missing_call(race).find("stream 8 must wait for stream 7"), std::string::npos) << missing_call(race);
  EXPECT_TRUE(race.is_suspect);
}

TEST_F(RacySearch, memory_that_is_written_while_it_is_read) {
  Search one = search("reuse");
  one.hunt();
  ASSERT_EQ(one.findings().races.size(), 1U);
  expect_named(one.findings().races[0], "consume", "fill");
  EXPECT_EQ(one.findings().races[0].hazard, Hazard::write_after_read);
  EXPECT_NE(missing_call(one.findings().races[0]).find("record_stream"), std::string::npos);
}

TEST_F(RacySearch, memory_that_is_given_away_while_it_is_read) {
  Search one = search("reuse_of_pool");
  one.hunt();
  ASSERT_EQ(one.findings().races.size(), 1U);
  const Race& race = one.findings().races[0];
  ASSERT_TRUE(race.first && race.second);
  EXPECT_EQ(race.first->label, "consume");
  EXPECT_EQ(race.second->label, "fill");
}

TEST_F(RacySearch, host_that_reads_too_early) {
  Search one = search("host_read");
  one.hunt();
  ASSERT_EQ(one.findings().races.size(), 1U);
  const Race& race = one.findings().races[0];
  ASSERT_TRUE(race.first);
  EXPECT_FALSE(race.second);
  EXPECT_EQ(race.first->kind, "copy");
  EXPECT_EQ(race.hazard, Hazard::host_reads);
  EXPECT_EQ(race.cured_changes, 0U);
}

TEST_F(RacySearch, two_races_are_named_one_after_the_other) {
  Search one = search("two_races");
  one.hunt();
  ASSERT_EQ(one.findings().races.size(), 2U);
  std::set<std::string> pairs;
  for (const Race& race : one.findings().races) {
    ASSERT_TRUE(race.first && race.second);
    pairs.insert(race.first->label + " " + race.second->label);
    EXPECT_EQ(race.cured_changes, 0U);
  }
  EXPECT_EQ(pairs, (std::set<std::string>{"produce consume", "consume consume_too"}));
}

TEST_F(RacySearch, a_wait_that_helps_once_by_chance_is_not_named) {
  SearchOptions options;
  options.races = 1;
  Search one = search("two_writers", options);
  one.hunt();
  ASSERT_EQ(one.findings().races.size(), 1U);
  std::filesystem::remove(folder_.path() / "two_writers");
  std::optional<CommandName> delayed;
  for (const Call& call : one.log().calls)
    if (one.log().label_of(call) == "produce_a") delayed = call.name;
  ASSERT_TRUE(delayed);
  const Race race = name_race(one, {{*delayed, 400'000}}, "a change");
  expect_named(race, "produce_b", "consume");
  EXPECT_TRUE(std::filesystem::exists(folder_.path() / "two_writers")) << "no wait was tried";
}

TEST_F(RacySearch, only_a_checkpoint_changes) {
  Search one = search("checkpoint");
  one.hunt();
  ASSERT_EQ(one.findings().races.size(), 1U);
  EXPECT_NE(one.findings().races[0].change.find("checkpoint out"), std::string::npos);
}

TEST_F(RacySearch, program_without_a_race_is_not_accused) {
  SearchOptions options;
  options.seeds = 40;
  options.one_in = 2;
  Search one = search("clean", options);
  one.hunt();
  EXPECT_EQ(one.findings().answer, Answer::clean);
  EXPECT_TRUE(one.findings().races.empty());
  EXPECT_TRUE(one.findings().warnings.empty()) << one.findings().warnings[0];
  std::size_t blind = 0, delays = 0;
  for (const RunRecord& run : one.findings().runs) {
    EXPECT_FALSE(run.change) << *run.change;
    blind += run.purpose == Purpose::blind;
    delays += run.delays;
  }
  EXPECT_EQ(blind, 40U);
  EXPECT_GT(delays, 40U);
}

TEST_F(RacySearch, output_that_is_never_the_same_is_refused) {
  Search one = search("unsteady");
  one.hunt();
  EXPECT_EQ(one.findings().answer, Answer::varying);
  EXPECT_FALSE(one.findings().varying.empty());
  EXPECT_TRUE(one.findings().races.empty());
}

TEST_F(RacySearch, one_varying_line_is_left_out) {
  Search one = search("unsteady_line");
  one.hunt();
  ASSERT_EQ(one.findings().answer, Answer::found);
  EXPECT_FALSE(one.findings().varying.empty());
  expect_named(one.findings().races[0], "produce", "consume");
}

TEST_F(RacySearch, race_that_shows_without_delays) {
  SearchOptions options;
  options.plain_runs = 4;
  Search one = search("by_itself", options);
  one.hunt();
  EXPECT_TRUE(one.findings().is_by_itself);
  ASSERT_EQ(one.findings().answer, Answer::found);
  ASSERT_TRUE(one.findings().races[0].second);
  EXPECT_EQ(one.findings().races[0].second->label, "consume");
}

TEST_F(RacySearch, crash_is_a_changed_output) {
  Search one = search("crash");
  one.hunt();
  ASSERT_EQ(one.findings().answer, Answer::found);
  EXPECT_NE(one.findings().races[0].change.find("exit status was 11, not 0"), std::string::npos);
  expect_named(one.findings().races[0], "produce", "consume");
}

TEST_F(RacySearch, run_that_does_not_end_is_ended_and_reported) {
  SearchOptions options;
  options.shortest_limit_s = 3;
  options.seeds = 1;
  options.one_in = 1;
  Search one = search("hang", options);
  one.hunt();
  EXPECT_EQ(one.findings().answer, Answer::unclear);
  bool is_late = false;
  for (const RunRecord& run : one.findings().runs) is_late |= run.is_timed_out;
  EXPECT_TRUE(is_late);
  ASSERT_FALSE(one.findings().warnings.empty());
}

TEST_F(RacySearch, program_that_submits_nothing_fails) {
  Search one = search("silent");
  EXPECT_THROW(one.hunt(), Error);
}

TEST_F(RacySearch, replay_from_the_document) {
  SearchOptions options;
  Search one = search("missing_wait");
  one.hunt();
  const Json document =
      parse_json(to_text(race_document({"program"}, options, one.findings(), RunContext{}, "complete")), "test");
  Search again = search("missing_wait");
  again.replay(race_in(document, 1, "test"), 5, true);
  ASSERT_EQ(again.findings().races.size(), 1U);
  EXPECT_EQ(again.findings().races[0].delayed_changes, 5U);
  EXPECT_EQ(again.findings().races[0].cured_changes, 0U);
  EXPECT_EQ(again.findings().races[0].cured_runs, 5U);
  EXPECT_THROW(race_in(document, 2, "test"), Error);
  Search clean = search("clean");
  clean.replay(race_in(document, 1, "test"), 2, false);
  EXPECT_EQ(clean.findings().answer, Answer::clean);
}

TEST_F(RacySearch, race_without_suspects_is_named_by_places) {
  // A log whose commands touch nothing.
  ProgramRequest request;
  request.command = {WEIR_FAKE_RACY_PROGRAM, "missing_wait"};
  SearchOptions options;
  options.seeds = 20;
  Search blind(options, [&](const RunPlan& plan, double limit_s) {
    ProgramRun run = run_program(request, plan, limit_s, stop_);
    if (run.log)
      for (Call& call : run.log->calls) call.range_count = 0;
    return run;
  });
  blind.hunt();
  ASSERT_EQ(blind.findings().races.size(), 1U);
  const Race& race = blind.findings().races[0];
  EXPECT_FALSE(race.is_suspect);
  ASSERT_TRUE(race.first && race.second);
  EXPECT_EQ(race.first->label, "produce");
  EXPECT_EQ(race.second->label, "consume");
}

}  // namespace
}  // namespace weir::race
