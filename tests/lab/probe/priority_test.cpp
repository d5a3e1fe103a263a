// What the priority probe makes of times: every answer, the limits of what it reads, and what one process may prove.
#include "lab/probe/priority.h"

#include <gtest/gtest.h>

#include <string>

#include "base/error.h"
#include "support/text.h"

namespace weir::probe {
namespace {

constexpr const char* kLine =
    R"({"probe": "priority", "version": 1, "python": "3.11.2", "torch": "2.6.0", "runtime": "hip",
        "runtime_version": "6.2", "device": "MI300X", "least_priority": 0, "greatest_priority": -1,
        "kernel_ns": 2000000, "queued": 8, "idle": 0, "equal_ns": [9000000], "high_ns": [50000], "alone_ns": [30000]})";

Json line() { return parse_json(kLine, "line"); }

// Times around a value, with some scatter.
std::vector<double> around(double ns, std::uint64_t seed, std::size_t count = 60) {
  SplitMix random(seed);
  std::vector<double> times;
  for (std::size_t i = 0; i < count; ++i) times.push_back(ns * (0.9 + 0.2 * random.fraction()));
  return times;
}

PrioritySamples process(double equal_ns, double high_ns, std::uint64_t seed) {
  PrioritySamples one = read_priority_line(line());
  one.equal_ns = around(equal_ns, 3 * seed + 1);
  one.high_ns = around(high_ns, 3 * seed + 2);
  one.alone_ns = around(30'000, 3 * seed + 3);
  return one;
}

std::vector<PrioritySamples> processes(int count, double equal_ns, double high_ns) {
  std::vector<PrioritySamples> all;
  for (int i = 0; i < count; ++i) all.push_back(process(equal_ns, high_ns, static_cast<std::uint64_t>(i)));
  return all;
}

PriorityFinding judged(const std::vector<PrioritySamples>& all) {
  CompareOptions options;
  options.threshold = 0.2;
  return judge_priority(all, options);
}

TEST(PriorityProbe, finds_that_priority_helps_and_by_how_much) {
  for (const int count : {1, 5}) {
    const PriorityFinding finding = judged(processes(count, 9e6, 1e6));
    EXPECT_EQ(finding.answer, Answer::helps) << count << ": " << finding.reason;
    ASSERT_TRUE(finding.change.ratio && finding.change.interval);
    EXPECT_NEAR(1 / *finding.change.ratio, 9, 1);
    EXPECT_LT(1 / finding.change.interval->high, 9);
    EXPECT_GT(1 / finding.change.interval->low, 9);
    // Half a long kernel beyond what it takes alone: it waits for the one that runs.
    EXPECT_EQ(finding.passes_running, false);
  }
  EXPECT_EQ(judged(processes(5, 9e6, 60'000)).passes_running, true);
}

TEST(PriorityProbe, finds_that_priority_does_nothing) {
  for (const int count : {1, 5}) {
    const PriorityFinding finding = judged(processes(count, 9e6, 9.1e6));
    EXPECT_EQ(finding.answer, Answer::nothing) << count << ": " << finding.reason;
    EXPECT_FALSE(finding.passes_running);
  }
}

TEST(PriorityProbe, finds_that_priority_makes_it_worse) {
  EXPECT_EQ(judged(processes(5, 1e6, 3e6)).answer, Answer::slower);
}

TEST(PriorityProbe, does_not_decide_what_was_not_shown) {
  EXPECT_EQ(judged(processes(2, 9e6, 1e6)).answer, Answer::undecided) << "two processes cannot show a change at 1 %";
  std::vector<PrioritySamples> noisy;
  for (std::uint64_t i = 0; i < 5; ++i) noisy.push_back(process(i % 2 == 0 ? 9e6 : 3e6, i % 2 == 0 ? 4e6 : 8e6, i));
  const PriorityFinding finding = judged(noisy);
  EXPECT_EQ(finding.answer, Answer::undecided);
  EXPECT_FALSE(finding.reason.empty());
  std::vector<PrioritySamples> idle = processes(1, 9e6, 1e6);
  idle[0].equal_ns.clear();
  EXPECT_EQ(judged(idle).answer, Answer::undecided);
  EXPECT_TRUE(has(judged(idle).reason, "idle")) << judged(idle).reason;
}

TEST(PriorityProbe, says_why_nothing_could_be_measured) {
  EXPECT_EQ(judged({}).answer, Answer::unavailable);
  std::vector<PrioritySamples> all = processes(3, 9e6, 1e6);
  for (PrioritySamples& one : all) one.error = "torch finds no GPU";
  EXPECT_EQ(judged(all).answer, Answer::unavailable);
  EXPECT_EQ(judged(all).reason, "torch finds no GPU");
  for (PrioritySamples& one : all) one.error.clear();
  all[2].device = "MI250";
  EXPECT_TRUE(has(judged(all).reason, "differ")) << judged(all).reason;
  all = processes(1, 9e6, 1e6);
  all[0].greatest = all[0].least;
  EXPECT_TRUE(has(judged(all).reason, "one priority only")) << judged(all).reason;
}

TEST(PriorityProbe, judges_the_others_where_a_process_has_failed) {
  std::vector<PrioritySamples> all = processes(6, 9e6, 1e6);
  all[0] = {};
  all[0].error = "it ended without a line of the probe";
  const PriorityFinding finding = judged(all);
  EXPECT_EQ(finding.answer, Answer::helps);
  EXPECT_EQ(finding.reason, "1 of 6 processes failed: it ended without a line of the probe");
  const Json document = priority_document(all, finding, {}, {});
  EXPECT_EQ(document["runtime"]["device"], "MI300X");
  EXPECT_EQ(document["judged_by"], "processes");
}

TEST(PriorityProbe, reads_its_own_line_among_others) {
  std::string text = std::string("warning: a library speaks\n{\"probe\": \"other\"}\n[1]\n") + line().dump() + "\n\n";
  text += line().dump();
  const std::vector<PrioritySamples> all = read_priority_lines(text, "samples.txt");
  ASSERT_EQ(all.size(), 2U);
  EXPECT_EQ(all[1].device, "MI300X");
  EXPECT_EQ(all[1].least, 0);
  EXPECT_EQ(all[1].greatest, -1);
  EXPECT_THROW(read_priority_lines("nothing\n", "samples.txt"), Error);
}

TEST(PriorityProbe, rejects_lines_that_the_script_does_not_write) {
  const auto with = [](const char* key, Json value) {
    Json changed = line();
    changed[key] = std::move(value);
    return changed;
  };
  EXPECT_NO_THROW(read_priority_line(line()));
  for (const auto& [key, value] :
       std::vector<std::pair<const char*, Json>>{{"version", 2},
                                                 {"least_priority", nullptr},
                                                 {"least_priority", 1e30},
                                                 {"greatest_priority", 0.5},
                                                 {"kernel_ns", 0},
                                                 {"kernel_ns", "2"},
                                                 {"idle", -1},
                                                 {"queued", 0},
                                                 {"equal_ns", 5},
                                                 {"equal_ns", Json::array({-1})},
                                                 {"high_ns", Json::array({1e300})},
                                                 {"alone_ns", Json::array({nullptr})},
                                                 {"high_ns", Json(std::vector<double>(3000, 1.0))}})
    EXPECT_THROW(read_priority_line(with(key, value)), Error) << key << " " << value.dump();
  const PrioritySamples named = read_priority_line(with("device", "GPU\x1b[2J" + std::string(5000, 'x')));
  EXPECT_LT(named.device.size(), 600U);
  EXPECT_FALSE(has(named.device, "\x1b"));
  EXPECT_EQ(read_priority_line(with("error", "no driver")).error, "no driver");
}

}  // namespace
}  // namespace weir::probe
