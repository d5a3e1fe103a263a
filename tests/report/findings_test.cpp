#include <gtest/gtest.h>

#include "report/text/documents.h"
#include "support/text.h"

namespace weir {
namespace {

Json device(double span, double busy) {
  return {{"rank", 0},
          {"label", "GPU 0"},
          {"times", {{"span_ns", span}, {"busy_ns", busy}, {"compute_ns", busy}, {"idle_ns", span - busy}}}};
}

TEST(Findings, PutTheLargestLossFirst) {
  Json one = device(1e6, 9e5);
  one["launch_bound"] = {{"host_ns", 5e4}, {"synchronizing_ns", 4e4}, {"in_calls_ns", 0}};
  one["times"]["communication_ns"] = 4e5;
  one["times"]["exposed_communication_ns"] = 2e5;
  one["overlap_slowdown"] = {{"ratio", 1.5}, {"clear", 2}, {"cost_ns", 1e4}};  // 1 % of the span: too little
  const auto found = findings({{"devices", {one}}});
  ASSERT_EQ(found.size(), 2u);
  EXPECT_TRUE(has(found[0], "Communication ran 200 us (20.0 % of the span)")) << found[0];
  EXPECT_TRUE(has(found[1], "Idle 50.0 us (5.0 % of the span)")) << found[1];
  EXPECT_TRUE(has(found[1], "remove synchronisation")) << found[1];
}

TEST(Findings, NameTheLineThatWaited) {
  Json one = device(1e6, 9e5);
  one["launch_bound"] = {{"host_ns", 5e4}, {"synchronizing_ns", 4e4}, {"in_calls_ns", 0}};
  const Json site{{"call", "cudaStreamSynchronize"}, {"line", "train.py(45): step"}, {"count", 3}, {"total_ns", 4e4}};
  one["host_blocked"]["synchronize"]["sites"] = Json::array({site});
  EXPECT_TRUE(has(findings({{"devices", {one}}}).at(0),
                  "The longest waits are in cudaStreamSynchronize at train.py(45): step."));
  one["host_blocked"]["synchronize"]["sites"][0]["line"] = nullptr;
  EXPECT_FALSE(has(findings({{"devices", {one}}}).at(0), "The longest waits"));
}

TEST(Findings, SayThatTheDeviceWaitedForData) {
  Json one = device(1e6, 9e5);
  one["data_loading"] = {{"waits", 4}, {"total_ns", 9e4}, {"idle_ns", 8e4}};
  const auto found = findings({{"devices", {one}}});
  ASSERT_FALSE(found.empty());
  EXPECT_TRUE(has(found[0], "Idle 80.0 us (8.0 % of the span) while the program waited for its data loader (4 waits"))
      << found[0];
  one["data_loading"]["idle_ns"] = 1e3;
  for (const std::string& each : findings({{"devices", {one}}})) EXPECT_FALSE(has(each, "data loader")) << each;
}

TEST(Findings, SayWhyCommunicationWasExposed) {
  Json one = device(1e6, 9e5);
  one["times"]["communication_ns"] = 4e5;
  one["times"]["exposed_communication_ns"] = 2e5;
  const auto cause = [](const char* name, double share) {
    return Json{{"cause", name}, {"share", share}, {"meaning", std::string(name) + " it was"}, {"advice", "do"}};
  };
  one["exposed_causes"]["causes"] = {cause("unknown", 0.6), cause("rank_skew", 0.4)};
  EXPECT_TRUE(has(findings({{"devices", {one}}}).at(0), "For 40.0 % of what was exposed, rank_skew it was: do."));
  one["exposed_causes"]["causes"] = {cause("unknown", 0.9), cause("rank_skew", 0.1)};
  EXPECT_TRUE(has(findings({{"devices", {one}}}).at(0), "Start it earlier"));
}

TEST(Findings, NameTheDeviceThatItCostsMost) {
  Json first = device(1e6, 9e5), second = device(1e6, 5e5);
  first["launch_bound"] = {{"host_ns", 5e4}};
  second["launch_bound"] = {{"host_ns", 4e5}};
  second["rank"] = 1;
  const auto found = findings({{"devices", {first, second}}});
  ASSERT_EQ(found.size(), 2u);
  EXPECT_TRUE(has(found[0], "Rank 1: idle 400 us")) << found[0];
  EXPECT_TRUE(has(found[1], "Rank 1: idle 100 us (10.0 % of the span): the next command waited")) << found[1];
}

TEST(Findings, SayWhatIsNotKnown) {
  Json idle = device(1e6, 1e5);
  idle["queue_map"] = {{"shared_queues", 2}, {"sharing_streams", 9}};
  idle["unavailable"] = {{"false_serialisation", "no times"}};
  const auto found = findings({{"devices", {idle}}});
  ASSERT_EQ(found.size(), 2u);
  EXPECT_TRUE(has(found[0], "does not show why")) << found[0];
  EXPECT_TRUE(has(found[1], "9 streams share 2 hardware queues; what that costs is not known: no times.")) << found[1];
}

// Idle time is only subtracted from what is left to report if a finding shows it.
TEST(Findings, NeverCallAnIdleDeviceGood) {
  for (const double busy : {0.021, 0.3, 0.499, 0.7, 0.89}) {
    const double idle = 1 - busy;
    for (const char* part : {"host_ns", "launch_ns", "calling_ns", "calling_launch_ns", "held_ns", "none"}) {
      for (const double share : {0.005, 0.015, 0.5, 0.97, 1.0}) {
        Json one = device(1e9, busy * 1e9);
        one["launch_bound"] = {{part, share * idle * 1e9}};
        const std::vector<Standout> found = standouts({{"devices", {one}}});
        ASSERT_FALSE(found.empty());
        EXPECT_TRUE(has(found[0].text, "Idle ")) << found[0].text;
        EXPECT_TRUE(found[0].is_warning) << found[0].text;
        double reported = 0;
        for (const Standout& each : found) reported += each.share;
        EXPECT_NEAR(reported, idle, 0.02);
      }
    }
    // Where the host's calls are not known, too.
    EXPECT_TRUE(standouts({{"devices", {device(1e9, busy * 1e9)}}}).at(0).is_warning);
  }
  // Many small reasons make a large one.
  Json parts = device(1e9, 0.88e9);
  parts["launch_bound"] = {{"host_ns", 0.04e9}, {"calling_ns", 0.04e9}};
  for (const Standout& each : standouts({{"devices", {parts}}})) EXPECT_TRUE(each.is_warning) << each.text;
}

// The device that a finding names may be another one than the device that is idle for too long.
TEST(Findings, WarnIfAnyDeviceIsIdle) {
  Json idle = device(1e9, 0.89e9), other = device(1e9, 0.905e9);
  idle["launch_bound"] = {{"host_ns", 0.046e9}, {"calling_ns", 0.046e9}};
  other["launch_bound"] = {{"host_ns", 0.047e9}, {"calling_ns", 0.047e9}};
  for (const Standout& each : standouts({{"devices", {idle, other}}})) EXPECT_TRUE(each.is_warning) << each.text;
  for (const Standout& each : standouts({{"devices", {other}}})) EXPECT_FALSE(each.is_warning) << each.text;
}

TEST(Findings, SayWhenTheDriverHadTheNextCommand) {
  Json one = device(1e9, 0.3e9);
  one["launch_bound"] = {{"host_ns", 1e6},
                         {"held_gaps", 2},
                         {"held_ns", 0.69e9},
                         {"held_most_ns", 0.5e9},
                         {"held_before", "void add<float, 4>(float*, const float*, unsigned long)"}};
  const auto found = findings({{"devices", {one}}});
  ASSERT_EQ(found.size(), 1u);
  EXPECT_TRUE(has(found[0], "Idle 690 ms (69.0 % of the span) although the driver had the next command")) << found[0];
  EXPECT_TRUE(has(found[0], "500 ms at most (before add<float, 4>)")) << found[0];
  EXPECT_FALSE(has(found[0], "had not asked")) << found[0];
}

TEST(Findings, SayThatStartUpIsLeftOut) {
  Json document = {{"devices", {device(1e9, 99e7)}},
                   {"window", {{"begin_ns", 9e9}, {"end_ns", 1e10}, {"commands", 500}, {"reason", "start-up"}}}};
  const auto found = findings(document);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_TRUE(has(found[0], "Start-up took 9.00 s (90.0 % of the trace) and is not in these figures.")) << found[0];
  EXPECT_TRUE(has(found[0], "the device was busy for 99.0 % of the time")) << found[0];
  document["window"]["reason"] = "asked for";
  EXPECT_TRUE(has(findings(document).at(0), "Nothing: ")) << findings(document).at(0);
}

TEST(Findings, SayThatNothingStandsOut) {
  const auto found = findings({{"devices", {device(1e6, 99e4)}}});
  ASSERT_EQ(found.size(), 1u);
  EXPECT_TRUE(has(found[0], "Nothing: the device was busy for 99.0 % of the span")) << found[0];
  EXPECT_TRUE(findings(Json::object()).empty());
  EXPECT_TRUE(findings({{"devices", Json::array()}}).empty());
}

}  // namespace
}  // namespace weir
