// Trials of real programs: small scripts that fail by a counter or print the number that is compared. Nothing here
// depends on how long anything takes.
#include "lab/try/experiment.h"

#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <fstream>
#include <set>

#include "base/error.h"
#include "support/programs.h"

namespace weir::trials {
namespace {

namespace fs = std::filesystem;
using weir::testing::Folder;

std::string read_text(const fs::path& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

class TrialsOfScripts : public ::testing::Test {
 protected:
  // The words of a command that runs this text with sh. $DIR is the test's folder.
  std::vector<std::string> script(const std::string& text) {
    const fs::path file = folder_ / ("script" + std::to_string(++scripts_) + ".sh");
    std::ofstream(file) << "DIR='" << folder_.path().string() << "'\n" << text << "\n";
    return {"/bin/sh", file.string()};
  }
  Plan plan(std::vector<std::string> command, const std::vector<std::string>& variables) {
    Plan plan;
    plan.commands = {std::move(command)};
    std::vector<Factor> factors;
    for (const std::string& text : variables) factors.push_back(parse_variable_axis(text));
    plan.design = design_of(std::move(factors), 1);
    return plan;
  }
  Experiment experiment(Plan plan) { return {std::move(plan), folder_ / "out", {{"weir", "try"}, Json::object()}}; }

  Folder folder_;
  int scripts_ = 0;
  std::atomic<bool> stop_{false};
};

// Every third trial with X=3 fails.
constexpr const char* kFailsWithThree =
    "[ \"$X\" = 3 ] || exit 0; n=$(cat $DIR/count 2>/dev/null || echo 0); n=$((n + 1)); echo $n > $DIR/count; "
    "[ $((n % 3)) -ne 0 ] || exit 7";

TEST_F(TrialsOfScripts, the_value_that_fails_is_named) {
  Plan wanted = plan(script(kFailsWithThree), {"X=1,2,3,4,5,6"});
  wanted.is_failures_only = true;
  wanted.trials = 20;
  Experiment trying = experiment(wanted);
  EXPECT_TRUE(trying.run(stop_, {}));
  const Findings findings = trying.findings();
  ASSERT_EQ(findings.judgement.culprits.size(), 1U);
  EXPECT_EQ(words_for(trying.plan().design, trying.search().suspects()[findings.judgement.culprits[0].suspect]), "X=3");
  EXPECT_LT(trying.records().size(), trying.plan().matrix());
  EXPECT_EQ(exit_code_of(findings, false), 3);
  for (const TrialRecord& record : trying.records())
    EXPECT_EQ(record.failure, record.code == 7 ? "ended with status 7" : "");
}

TEST_F(TrialsOfScripts, a_number_in_the_output_is_compared) {
  // A little noise that is the same in every run.
  Plan wanted = plan(script("n=$(cat $DIR/n 2>/dev/null || echo 0); echo $((n + 1)) > $DIR/n\n"
                            "case $X in 13) base=1300;; *) base=1000;; esac\n"
                            "echo 'rate\": 5'; echo \"{\\\"rate\\\": $((base + n % 7)), \\\"x\\\": 1}\""),
                     {"X=10,11,13"});
  wanted.metric = R"(rate": ([0-9.]+))";
  wanted.is_less_better = false;
  Experiment trying = experiment(wanted);
  EXPECT_TRUE(trying.run(stop_, {}));
  const Findings findings = trying.findings();
  EXPECT_EQ(findings.changes[1].verdict, Verdict::same);
  EXPECT_EQ(findings.changes[2].verdict, Verdict::faster);
  EXPECT_NEAR(*findings.changes[2].ratio, 1.3, 0.01);
  EXPECT_EQ(findings.failure_count(), 0U);
  EXPECT_EQ(exit_code_of(findings, true), 0);
}

TEST_F(TrialsOfScripts, a_hang_is_a_failure_and_its_children_end) {
  Plan wanted = plan(script("sleep 1000 & echo $! > $DIR/child; wait"), {});
  wanted.trials = 1;
  wanted.timeout_s = 1;
  Experiment trying = experiment(wanted);
  trying.run(stop_, {});
  ASSERT_EQ(trying.records().size(), 1U);
  EXPECT_EQ(trying.records()[0].how, "timed_out");
  EXPECT_EQ(trying.records()[0].failure, "took longer than 1 s");
  const Json document = trying.document("complete");
  EXPECT_TRUE(document["trials"][0]["exit_code"].is_null());
  EXPECT_TRUE(document["trials"][0]["signal"].is_null());
  EXPECT_EQ(records_in(document, "a.json")[0].code, 0);
  const std::string child = read_text(folder_ / "child");
  if (child.empty()) GTEST_SKIP() << "the machine was too busy to start the program within a second";
  const auto facts = facts_of(std::stoi(child));
  EXPECT_TRUE(!facts || facts->is_ended());
}

TEST_F(TrialsOfScripts, results_that_differ_between_settings_and_between_trials_are_told_apart) {
  Plan wanted = plan(script("n=$(cat $DIR/n 2>/dev/null || echo 0); echo $((n + 1)) > $DIR/n\n"
                            "case $X in 1|2|3) echo right;; 4) echo other;; 5) echo $n;; esac"),
                     {"X=1,2,3,4,5"});
  wanted.hashed = {"-"};
  Experiment trying = experiment(wanted);
  trying.run(stop_, {});
  const Findings findings = trying.findings();
  EXPECT_TRUE(findings.differs);
  EXPECT_EQ(findings.is_varying, (std::vector<bool>{false, false, false, false, true}));
  EXPECT_EQ(findings.tallies[3].failures, findings.tallies[3].trials);
  EXPECT_EQ(findings.tallies[0].failures, 0U);
  EXPECT_EQ(exit_code_of(findings, false), 3);
}

TEST_F(TrialsOfScripts, a_result_file_that_is_not_written_is_a_failure) {
  const std::string file = folder_ / "result";
  std::ofstream(file) << "old";
  Plan wanted = plan(script("[ \"$X\" = 2 ] || { rm -f $DIR/result; echo new > $DIR/result; }"), {"X=1,2"});
  wanted.hashed = {file};
  wanted.trials = 2;
  Experiment trying = experiment(wanted);
  trying.run(stop_, {});
  for (const TrialRecord& record : trying.records())
    EXPECT_EQ(record.failure, record.setting == 0 ? "" : "did not write " + file);
}

TEST_F(TrialsOfScripts, output_does_not_follow_links) {
  const fs::path output = fs::path(folder_ / "out") / "output";
  fs::create_directories(output);
  fs::create_symlink(folder_ / "other", output / "0001.out");
  Experiment trying = experiment(plan(script("echo 1"), {}));
  trying.run(stop_, {});
  EXPECT_FALSE(fs::exists(folder_ / "other"));
  EXPECT_TRUE(fs::is_regular_file(fs::symlink_status(output / "0001.out"))) << "a link is replaced";
}

TEST_F(TrialsOfScripts, variables_are_set_and_unset_and_no_shell_is_started) {
  ::setenv("WEIR_TEST_TRY", "inherited", 1);
  Plan wanted = plan({"/usr/bin/env"}, {"WEIR_TEST_TRY=,a b;$c"});
  wanted.trials = 1;
  Experiment trying = experiment(wanted);
  trying.run(stop_, {});
  ::unsetenv("WEIR_TEST_TRY");
  ASSERT_EQ(trying.records().size(), 2U);
  for (const TrialRecord& record : trying.records()) {
    const std::string out = read_text(fs::path(folder_ / "out") / record.out_file);
    EXPECT_EQ(out.find("WEIR_TEST_TRY=inherited"), std::string::npos);
    EXPECT_EQ(out.find("WEIR_TEST_TRY=a b;$c\n") != std::string::npos, record.setting == 1);
  }
}

TEST_F(TrialsOfScripts, a_continued_experiment_repeats_nothing) {
  // Each trial leaves a line. The time of a trial decides nothing.
  Plan wanted = plan(script("echo \"$X\" >> $DIR/log; echo value 1.5"), {"X=1,2,3", "Y=,1"});
  wanted.metric = "value ([0-9.]+)";
  wanted.trials = 4;
  for (int part = 0; part < 50; ++part) {
    Experiment trying = experiment(wanted);
    trying.resume();
    std::atomic<bool> stop{false};
    const std::size_t before = trying.records().size();
    const bool is_complete =
        trying.run(stop, [&](const TrialRecord&, std::size_t count) { stop = count >= before + 7; });
    const Json saved = read_json(trying.file());
    EXPECT_EQ(saved["trials"].size(), trying.records().size());
    EXPECT_EQ(saved["status"].get<std::string>(), is_complete ? "complete" : "interrupted");
    if (!is_complete) continue;
    std::set<std::pair<std::size_t, std::size_t>> seen;
    for (const TrialRecord& record : trying.records()) EXPECT_TRUE(seen.emplace(record.setting, record.round).second);
    std::ifstream log(folder_ / "log");
    EXPECT_EQ(std::count(std::istreambuf_iterator<char>(log), {}, '\n'), static_cast<long>(trying.records().size()));
    EXPECT_THROW(experiment(wanted), Error) << "a folder has one writer";
    {
      const Experiment ended = std::move(trying);
    }
    {
      Experiment again = experiment(wanted);
      again.resume();
      const std::size_t kept = again.records().size();
      EXPECT_TRUE(again.run(stop_, {}));
      EXPECT_EQ(again.records().size(), kept) << "a complete one runs nothing more";
    }
    Experiment other = experiment(plan(script("true"), {"X=1,2,3", "Y=,1"}));
    EXPECT_THROW(other.resume(), Error);
    return;
  }
  FAIL() << "did not end";
}

TEST_F(TrialsOfScripts, a_program_that_cannot_be_executed_is_an_error) {
  Experiment trying = experiment(plan({folder_ / "missing"}, {"X=1,2"}));
  EXPECT_THROW(trying.run(stop_, {}), StartError);
}

TEST_F(TrialsOfScripts, a_program_that_always_fails_blames_no_setting) {
  Experiment trying = experiment(plan(script("exit 1"), {"X=1,2,3"}));
  trying.run(stop_, {});
  const Findings findings = trying.findings();
  EXPECT_TRUE(findings.judgement.culprits.empty());
  EXPECT_EQ(exit_code_of(findings, false), 1);
}

TEST_F(TrialsOfScripts, output_files_are_bounded) {
  Plan wanted = plan(script("yes 0123456789 | head -c 20000000; echo 'metric 4.5'"), {});
  wanted.trials = 1;
  wanted.metric = "metric ([0-9.]+)";
  Experiment trying = experiment(wanted);
  trying.run(stop_, {});
  ASSERT_EQ(trying.records().size(), 1U);
  EXPECT_LT(fs::file_size(fs::path(folder_ / "out") / trying.records()[0].out_file), kMaxOutputBytes + 100);
  EXPECT_EQ(trying.records()[0].metric, 4.5);
}

TEST(Metric, the_last_number_counts_wherever_pieces_and_lines_end) {
  const std::regex pattern = metric_pattern("rate ([-+0-9.e]+)");
  for (const std::size_t piece : {1U, 3U, 4096U}) {
    MetricFinder finder(&pattern);
    const std::string text = "rate 1\nrate x\rrate 2.5e3 and rate 7\n" + std::string(30'000, '#') + "rate 8.25" +
                             std::string(9'000, '#') + "\nrat";
    for (std::size_t i = 0; i < text.size(); i += piece) finder.add(std::string_view(text).substr(i, piece));
    EXPECT_EQ(finder.finish(), 8.25) << piece;
  }
  const std::regex any = metric_pattern("took (\\S+)");
  for (const auto& [text, value] : {std::pair{"took 3.5.", std::optional(3.5)},
                                    {"took 12.", 12.0},
                                    {"took 1,234", std::nullopt},
                                    {"took 3.5GB", std::nullopt},
                                    {"took inf", std::nullopt},
                                    {"took 1.5.2", std::nullopt}}) {
    MetricFinder finder(&any);
    finder.add(text);
    EXPECT_EQ(finder.finish(), value) << text;
  }
  MetricFinder none(&pattern);
  none.add("nothing here");
  EXPECT_FALSE(none.finish());
  EXPECT_THROW(metric_pattern("no group"), Error);
  EXPECT_THROW(metric_pattern("(two) (groups)"), Error);
  EXPECT_THROW(metric_pattern("(open"), Error);
}

}  // namespace
}  // namespace weir::trials
