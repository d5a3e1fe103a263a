// What is judged of a program's output: times are left out, what varies by itself is found, numbers have a tolerance.
#include "lab/race/outputs.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>

#include "base/error.h"
#include "base/private_folder.h"
#include "lab/race/candidates.h"
#include "lab/race/program_runs.h"
#include "lab/race/shrink.h"
#include "trace/race_format.h"

namespace weir::race {
namespace {

Outputs outputs_of(const OutputRules& rules, const std::string& text) {
  OutputReader reader(rules);
  for (const char letter : text) reader.add({&letter, 1});  // in the smallest pieces
  Outputs outputs;
  reader.finish(outputs);
  outputs.values["exit status"] = "0";
  return outputs;
}

TEST(RaceOutputs, times_are_no_results) {
  EXPECT_EQ(without_times("took 3.25 s at 120.5 it/s"), "took # s at # it/s");
  EXPECT_EQ(without_times("10:31:02 step 7"), "# step 7");
  EXPECT_EQ(without_times("loss 2.31 after 12ms"), "loss 2.31 after #ms");
  EXPECT_EQ(without_times("loss 1.5e-3, sm_90, 3 streams"), "loss 1.5e-3, sm_90, 3 streams");
  EXPECT_EQ(without_times("digest 3f00s1"), "digest 3f00s1");
  EXPECT_EQ(without_times(""), "");
}

TEST(RaceOutputs, changed_line_is_found_and_named) {
  const OutputRules rules;
  const Reference reference(rules, {outputs_of(rules, "a 1 s\nb\n"), outputs_of(rules, "a 2 s\nb\n")});
  EXPECT_TRUE(reference.varying().empty());
  EXPECT_FALSE(reference.change(outputs_of(rules, "a 30 s\nb")));
  const auto change = reference.change(outputs_of(rules, "a 1 s\nc\n"));
  ASSERT_TRUE(change);
  EXPECT_NE(change->find("line 2 of standard output was 'c', not 'b'"), std::string::npos) << *change;
  EXPECT_TRUE(reference.change(outputs_of(rules, "a 1 s\nb\nb\n")));
}

TEST(RaceOutputs, varying_line_is_left_out_and_the_others_are_judged) {
  const OutputRules rules;
  const Reference reference(rules, {outputs_of(rules, "x1\nsum 5\n"), outputs_of(rules, "x2\nsum 5\n")});
  EXPECT_EQ(reference.varying().size(), 1U);
  EXPECT_FALSE(reference.change(outputs_of(rules, "x3\nsum 5\n")));
  EXPECT_TRUE(reference.change(outputs_of(rules, "x1\nsum 6\n")));
  // The number of lines is all that is left of standard output, and that is not the same either.
  const Reference nothing(rules, {outputs_of(rules, "x\n"), outputs_of(rules, "x\ny\n")});
  EXPECT_EQ(nothing.judged(), std::vector<std::string>{"exit status"});
}

TEST(RaceOutputs, ignored_lines_and_numbers) {
  OutputRules rules;
  rules.ignored.push_back(pattern_of("--ignore", "^pid", -1));
  rules.numbers.push_back({"loss ([0-9.]+)", pattern_of("--number", "loss ([0-9.]+)", 1)});
  rules.tolerance = 1e-3;
  const Reference reference(rules,
                            {outputs_of(rules, "pid 1\nloss 2.000\n"), outputs_of(rules, "pid 2\nloss 2.001\n")});
  EXPECT_TRUE(reference.varying().empty());
  EXPECT_FALSE(reference.change(outputs_of(rules, "pid 3\nloss 1.999\n")));
  EXPECT_TRUE(reference.change(outputs_of(rules, "pid 3\nloss 2.1\n")));
  EXPECT_TRUE(reference.change(outputs_of(rules, "pid 3\n")));
  EXPECT_THROW(pattern_of("--number", "loss", 1), Error);
  EXPECT_THROW(pattern_of("--ignore", "(", -1), Error);
}

TEST(RaceOutputs, checkpoints_are_judged_by_name) {
  const OutputRules rules;
  Outputs one, same, other;
  add_checkpoints("loss 1 aa\nloss 2 bb\nlayer 3 output 1 cc\nnonsense\n 1 2\n", one);
  add_checkpoints("layer 3 output 1 cc\nloss 1 aa\nloss 2 bb\n", same);
  add_checkpoints("loss 1 aa\nloss 2 bc\nlayer 3 output 1 cc\n", other);
  EXPECT_EQ(one.values.size(), 2U);
  const Reference reference(rules, {one, same});
  EXPECT_FALSE(reference.change(same));
  const auto change = reference.change(other);
  ASSERT_TRUE(change);
  EXPECT_NE(change->find("checkpoint loss"), std::string::npos);
}

TEST(RaceOutputs, files_must_be_written_by_the_run) {
  const PrivateFolder folder;
  const std::string file = (folder.path() / "out.bin").string();
  const OutputFiles before({file});
  Outputs none, first;
  before.finish(none);
  EXPECT_EQ(none.values.at("file " + file), "not written");
  std::ofstream(file) << "first";
  before.finish(first);
  EXPECT_NE(first.values.at("file " + file), "not written");
  Outputs stale;
  OutputFiles({file}).finish(stale);
  EXPECT_EQ(stale.values.at("file " + file), "not written");
}

TEST(RaceShrink, finds_the_one_and_the_two_that_matter) {
  std::vector<int> all(200);
  for (int i = 0; i < 200; ++i) all[static_cast<std::size_t>(i)] = i;
  int runs = 0;
  const auto has = [&](const std::vector<int>& part, int which) {
    return std::find(part.begin(), part.end(), which) != part.end();
  };
  const auto one = shrunk<int>(all, [&](const std::vector<int>& part) { return ++runs, has(part, 137); });
  EXPECT_EQ(one, std::vector<int>{137});
  EXPECT_LE(runs, 16);
  const auto two = shrunk<int>(all, [&](const std::vector<int>& part) { return has(part, 3) && has(part, 150); });
  EXPECT_EQ(two, (std::vector<int>{3, 150}));
  for (std::size_t last = 0; last < 9; ++last)
    EXPECT_EQ(last_that_holds(9, [&](std::size_t i) { return i <= last; }), last);
}

TEST(RacePlan, text_is_what_the_library_reads) {
  RunPlan plan;
  plan.observes = true;
  plan.blind = BlindDelays{7, 4, 400'000, 50};
  plan.delays = {{{1, 5}, 99'000'000'000}};
  plan.waits = {{{1, 2}, CommandName{2, 9}}, {{1, 3}, std::nullopt}};
  plan.hashed = plan.stacks = {{1, 2}};
  EXPECT_EQ(text(plan),
            "weir race plan 1\nobserve\nmost 50\nblind 7 4 400000\nhash 1.2\nstack 1.2\nwait 1.2 2.9\njoin 1.3\n"
            "delay 1.5 10000000\n");
  plan.delays.assign(20'000, {{1, 1}, 1});
  const std::string cut = text(plan);
  EXPECT_EQ(std::count(cut.begin(), cut.end(), '\n'), 1 + race_format::kMostInstructions);
}

TEST(RaceStacks, hostile_files_are_bounded) {
  EXPECT_TRUE(stacks_in("frame before any command\n\n").empty());
  EXPECT_TRUE(stacks_in("command 0.1\nx\n\ncommand 1\ny\n").empty());
  std::string many = "command 1.2\n";
  for (int i = 0; i < 1000; ++i) many += "frame\x1b[2J\n";
  const auto stacks = stacks_in(many);
  ASSERT_EQ(stacks.size(), 1U);
  EXPECT_LE(stacks.begin()->second.size(), 64U);
  EXPECT_EQ(stacks.begin()->second[0].find('\x1b'), std::string::npos);
}

}  // namespace
}  // namespace weir::race
