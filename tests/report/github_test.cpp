// What GitHub's runner would make of a comparison: by its own rules of parsing, with names that would like to be
// commands.
#include <gtest/gtest.h>

#include <sstream>

#include "base/text_gate.h"
#include "report/figures/judgement.h"
#include "support/comparisons.h"

namespace weir {
namespace {

using testing::comparison_of;
using testing::pair_with;

struct WorkflowCommand {
  std::string name, title, message;
};

std::string unescaped(std::string text) {
  std::string plain;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      plain += text[i];
      continue;
    }
    plain += static_cast<char>(std::stoi(text.substr(i + 1, 2), nullptr, 16));
    i += 2;
  }
  return plain;
}

// As the runner reads a log: lines end at CR too, blanks before "::" do not count, and "##[name]" is one anywhere.
std::vector<WorkflowCommand> commands_in(const std::string& log) {
  std::vector<WorkflowCommand> found;
  std::string lines = log;
  for (char& c : lines)
    if (c == '\r') c = '\n';
  std::istringstream all(lines);
  for (std::string line; std::getline(all, line);) {
    const std::size_t begin = line.find_first_not_of(" \t\v\f");
    if (begin != std::string::npos && line.compare(begin, 2, "::") == 0) {
      const std::size_t end = line.find("::", begin + 2);
      if (end == std::string::npos) continue;
      const std::string head = line.substr(begin + 2, end - begin - 2);
      const std::size_t blank = head.find(' ');
      WorkflowCommand& command = found.emplace_back();
      command.name = head.substr(0, blank);
      if (blank != std::string::npos && head.find("title=") == blank + 1)
        command.title = unescaped(head.substr(blank + 7, head.find(',') - blank - 7));
      command.message = unescaped(line.substr(end + 2));
    } else if (line.find("##[") != std::string::npos) {
      found.push_back({line.substr(line.find("##[")), "", ""});
    }
  }
  return found;
}

constexpr const char* kHostile = "x\n::set-env name=A::b\r::add-mask::c, 100%0A: ##[add-path]/evil";

TEST(GitHub, the_worst_come_first_by_kind) {
  const Judged judged =
      judge(comparison_of({pair_with("a", Verdict::same, 1.0), pair_with("b", Verdict::slower, 1.2),
                           pair_with("c", Verdict::slower, 1.9), pair_with("d", Verdict::ambiguous, 1.1),
                           pair_with("e", Verdict::faster, 0.7), testing::failed_pair("f")}),
            "weir compare", false);
  const auto commands = commands_in(github_annotations(judged));
  ASSERT_EQ(commands.size(), 5U);
  EXPECT_EQ(commands[0].title, "weir compare: f failed");
  EXPECT_EQ(commands[1].title, "weir compare: c is slower");
  EXPECT_EQ(commands[2].title, "weir compare: b is slower");
  EXPECT_EQ(commands[3].title, "weir compare: d is ambiguous");
  EXPECT_EQ(commands[4].title, "weir compare: e is faster");
  for (std::size_t i = 0; i < 5; ++i) EXPECT_EQ(commands[i].name, i < 3 ? "error" : i == 3 ? "warning" : "notice");
  EXPECT_NE(commands[1].message.find("1.900x"), std::string::npos) << commands[1].message;
  EXPECT_EQ(github_outputs(judged),
            "verdict=failed\nexit_code=3\nfailed=1\nslower=2\nambiguous=1\nlone=0\nfaster=1\nsame=1\n");
}

TEST(GitHub, no_more_than_it_shows_and_the_last_one_counts) {
  std::vector<PairComparison> pairs;
  for (int i = 0; i < 25; ++i) pairs.push_back(pair_with("p" + std::to_string(i), Verdict::slower, 1.1 + i));
  const auto commands = commands_in(github_annotations(judge(comparison_of(pairs), "weir compare", false)));
  ASSERT_EQ(commands.size(), kMaxAnnotations);
  EXPECT_EQ(commands[0].title, "weir compare: p24 is slower");
  EXPECT_EQ(commands.back().title, "weir compare: and 16 more");
  pairs.resize(10);
  EXPECT_EQ(commands_in(github_annotations(judge(comparison_of(pairs), "weir compare", false))).back().title,
            "weir compare: p0 is slower");
}

TEST(GitHub, lone_points_share_one_warning) {
  std::vector<PairComparison> pairs;
  for (int i = 0; i < 12; ++i) pairs.push_back(pair_with("p", Verdict::ambiguous, 1.1));
  Comparison comparison = comparison_of(pairs);
  comparison.tests[0].test_only = {{"y", "b.json", "nothing near"}, {"z", "b.json", "nothing near"}};
  const auto commands = commands_in(github_annotations(judge(comparison, "weir compare", false)));
  ASSERT_EQ(commands.size(), kMaxAnnotations);
  EXPECT_EQ(commands.back().title, "weir compare: 2 not compared");
  EXPECT_EQ(commands[8].title, "weir compare: and 4 more");
}

TEST(GitHub, a_name_never_becomes_a_command) {
  Comparison comparison = comparison_of({pair_with(kHostile, Verdict::slower, 1.5), testing::failed_pair(kHostile)});
  comparison.tests[0].pairs[0].notes = {kHostile};
  comparison.tests[0].pairs[1].failure = kHostile;
  comparison.tests[0].baseline_only = {{kHostile, kHostile, kHostile}};
  comparison.tests[0].name = comparison.baseline = kHostile;
  const Judged judged = judge(comparison, "weir compare", false);
  const auto commands = commands_in(github_annotations(judged));
  ASSERT_EQ(commands.size(), 3U);
  for (const WorkflowCommand& command : commands) EXPECT_TRUE(command.name == "error" || command.name == "warning");
  EXPECT_EQ(commands[0].title, "weir compare: x ::set-env name=A::b ::add-mask::c, 100%0A: # #[add-path]/evil failed");
  const std::string outputs = github_outputs(judged);
  EXPECT_EQ(outputs.find("set-env"), std::string::npos);
}

TEST(GitHub, text_for_the_log_holds_no_command) {
  EXPECT_EQ(commands_in(kHostile).size(), 2U) << "the reader of this test knows one when it sees it";
  EXPECT_TRUE(commands_in(without_commands(kHostile)).empty());
  EXPECT_TRUE(commands_in(without_commands("  \t::error::a\n\v::b::c\r::d::e\n##[error]\nx ##[[group]")).empty());
  EXPECT_EQ(without_commands("a::b\n  c ::d\n# [x] ## [y]\n"), "a::b\n  c ::d\n# [x] ## [y]\n");
  const std::string json = R"({"label": "##[add-path]x"})";
  EXPECT_TRUE(commands_in(without_commands(json, true)).empty());
  EXPECT_EQ(Json::parse(without_commands(json, true)), Json::parse(json));
}

TEST(GitHub, an_excerpt_ends_at_a_line_and_says_so) {
  EXPECT_EQ(github_excerpt("a\nb\n", 100), "a\nb\n");
  const std::string cut = github_excerpt(std::string(50, 'a') + "\n" + std::string(200, 'b') + "\n", 130);
  EXPECT_LE(cut.size(), 130U);
  EXPECT_TRUE(cut.starts_with(std::string(50, 'a') + "\n**Cut:**")) << cut;
}

TEST(GitHub, long_texts_are_cut) {
  const auto commands = commands_in(
      github_annotations(judge(comparison_of({pair_with(std::string(100'000, 'x'), Verdict::slower, 2)}), "t", false)));
  ASSERT_EQ(commands.size(), 1U);
  EXPECT_LT(commands[0].title.size(), 250U);
}

Json regressed() {
  return Json::parse(R"json({"baseline": "main", "verdict": "regressed", "cases": [
    {"key": "softmax/cpu/fp32/rows=8", "verdict": "slower", "is_regression": true, "reason": "more than 10 %",
     "ratio": 1.25, "interval": [1.2, 1.3], "before_ns": {"p50": 1e6}, "after_ns": {"p50": 1.25e6}},
    {"key": "fft/cpu/fp32/", "verdict": "failed", "is_regression": true, "reason": "it ran before"},
    {"key": "gone/cpu/fp32/", "verdict": "gone", "is_regression": false, "reason": "not here"}]})json");
}

TEST(GitHub, a_run_of_channels_is_judged_with_and_without_a_baseline) {
  Json document = Json::parse(R"json({"benchmarks": [
    {"id": "a/b/spsc", "status": "measured"}, {"id": "a/b/boost", "status": "measured"},
    {"id": "a/b/mpsc", "status": "failed", "reason": "it hung"},
    {"id": "a/b/cuda", "status": "unavailable", "reason": "no GPU"}], "comparison": null})json");
  const Judged alone = judge_channel(document, "weir channel", false, 1);
  EXPECT_EQ(alone.summary, "1 failed, 1 lone, 2 ran");
  document["comparison"] = Json::parse(R"json({"baseline": "main", "changes": [
    {"id": "a/b/spsc", "is_ours": true, "verdict": "slower", "slowness": 1.5, "reason": null},
    {"id": "a/b/boost", "is_ours": false, "verdict": "slower", "slowness": 2, "reason": null}]})json");
  const Judged judged = judge_channel(document, "weir channel", false, 3);
  EXPECT_EQ(judged.counts().at(CaseStatus::slower), 1U) << "a control fails nothing";
  const auto commands = commands_in(github_annotations(judged));
  ASSERT_GE(commands.size(), 2U);
  EXPECT_EQ(commands[0].title, "weir channel: a/b/mpsc failed");
  EXPECT_EQ(commands[0].message, "it hung");
  EXPECT_EQ(commands[1].title, "weir channel: a/b/spsc is slower");
  EXPECT_EQ(commands[1].message, "slower: takes 1.50x the time of the baseline");
  document["comparison"]["changes"][0]["is_ours"] = false;
  EXPECT_EQ(judge_channel(document, "weir channel", false, 3).counts().at(CaseStatus::slower), 2U)
      << "without ours, all are judged, as by the exit code";
}

TEST(GitHub, a_bench_is_judged_with_and_without_a_baseline) {
  Json summary = testing::bench_document();
  const Judged alone = judge_bench(summary, false, 1);
  EXPECT_EQ(alone.verdict(), CaseStatus::failed);
  EXPECT_EQ(alone.summary, "1 failed, 1 ran");
  summary["regressions"] = regressed();
  const Judged judged = judge_bench(summary, false, 3);
  const auto commands = commands_in(github_annotations(judged));
  ASSERT_EQ(commands.size(), 3U);
  EXPECT_EQ(commands[0].title, "weir bench: fft/cpu/fp32/ failed");
  EXPECT_EQ(commands[0].message, "crashed: signal 11");
  EXPECT_EQ(commands[1].title, "weir bench: softmax/cpu/fp32/rows=8 is slower");
  EXPECT_EQ(commands[1].message, "1.00 ms -> 1.25 ms, +25.0 % (+20.0 .. +30.0 %): slower: more than 10 %");
  EXPECT_EQ(judged.counts().at(CaseStatus::lone), 1U);
}

}  // namespace
}  // namespace weir
