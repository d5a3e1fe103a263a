// Drives `weir queues limits`, `switch` and `fairness` as a user would, with small sizes on the cpu device.
#include <gtest/gtest.h>

#include "base/json.h"
#include "cli/program.h"
#include "cli/queues_checks.h"
#include "support/text.h"

namespace weir::testing {
namespace {

TEST(QueuesLimits, WritesADocumentAndATextOf80Columns) {
  const Folder folder;
  const Outcome outcome = weir({"queues", "limits", "--device", "cpu", "--hw-queues", "4", "--streams", "6",
                                "--launches", "64", "-o", folder / "limits.json"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_LE(widest_line(outcome.out), 80u);
  const Json document = read_json(folder / "limits.json");
  expect_valid(folder / "limits.json");
  EXPECT_EQ(document["schema"], "weir.queues/2");
  EXPECT_EQ(document["experiment"], "limits");
  const Json& limits = document["limits"];
  EXPECT_EQ(limits["hardware_queues"]["told"], 4);
  EXPECT_TRUE(limits["hardware_queues"]["value"].is_number() ||
              document["unavailable"].contains("limits.hardware_queues"));
  EXPECT_TRUE(limits["queue_depth"]["value"].is_null());
  EXPECT_EQ(limits["queue_depth"]["at_least"], 64);
  EXPECT_TRUE(has(document["unavailable"]["limits.queue_depth"].string(), "more than 64"));
  EXPECT_EQ(limits["copies"]["together"].size(), 7u);
  EXPECT_EQ(limits["copies"]["engines_told"], 1);
  EXPECT_EQ(limits["priorities"]["pairs"].size(), 3u);
  const Outcome again = weir({"queues", "limits", "--device", "cpu", "-o", folder / "limits.json"});
  EXPECT_EQ(again.code, 2);
  EXPECT_TRUE(has(again.err, "--force")) << again.err;
}

TEST(QueuesSwitch, MergesQueueCountsAndSaysWhereTheyCross) {
  const Folder folder;
  const Outcome outcome = weir({"queues", "switch", "--device", "cpu", "--hw-queues", "1,4", "--streams", "2,4",
                                "--hops", "32", "--iterations", "2", "-o", folder / "switch.json"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_LE(widest_line(outcome.out), 80u);
  EXPECT_TRUE(has(outcome.out, "Where they cross: ")) << outcome.out;
  const Json document = read_json(folder / "switch.json");
  expect_valid(folder / "switch.json");
  const Json& settings = document["switch"]["settings"];
  ASSERT_EQ(settings.size(), 2u);
  EXPECT_EQ(settings[0]["hardware_queues"], 1);
  EXPECT_EQ(settings[1]["hardware_queues"], 4);
  EXPECT_EQ(settings[1]["rows"].size(), 2u);
  EXPECT_EQ(document["switch"]["best"].size(), 2u);
  const Outcome one =
      weir({"queues", "switch", "--device", "cpu", "--streams", "2", "--hops", "32", "--iterations", "1"});
  ASSERT_EQ(one.code, 0) << one.err;
  EXPECT_TRUE(has(one.out, "give --hw-queues a list") || has(one.out, "fewer than two queue counts")) << one.out;
}

TEST(QueuesFairness, ShowsAShareForEachStream) {
  const Folder folder;
  const Outcome outcome = weir({"queues", "fairness", "--device", "cpu", "--streams", "4", "--iterations", "1",
                                "--priorities", "mixed", "-o", folder / "fairness.json"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_LE(widest_line(outcome.out), 80u);
  EXPECT_TRUE(has(outcome.out, "Jain's index")) << outcome.out;
  expect_valid(folder / "fairness.json");
  EXPECT_EQ(read_json(folder / "fairness.json")["fairness"]["streams"].size(), 4u);
}

TEST(QueuesFlags, BadInputNamesItsFlag) {
  const std::vector<std::pair<std::vector<std::string>, std::string>> cases = {
      {{"limits", "--streams", "0"}, "--streams"},
      {{"limits", "--streams", "2,4"}, "--streams"},
      {{"limits", "--launches", "many"}, "--launches"},
      {{"limits", "--device", "null"}, "--device null"},
      {{"switch", "--streams", "64", "--hops", "10"}, "--hops"},
      {{"switch", "--hw-queues", "0"}, "--hw-queues"},
      {{"switch", "--kernel-time", "-1"}, "--kernel-time"},
      {{"fairness", "--streams", "1"}, "--streams"},
      {{"fairness", "--priorities", "odd"}, "--priorities"},
      {{"fairness", "--iterations", "0"}, "--iterations"},
  };
  for (const auto& [arguments, flag] : cases) {
    std::vector<std::string> command = {"queues"};
    command.insert(command.end(), arguments.begin(), arguments.end());
    if (flag != "--device null") command.insert(command.end(), {"--device", "cpu"});
    const Outcome outcome = weir(command);
    EXPECT_EQ(outcome.code, 2) << flag;
    EXPECT_TRUE(has(outcome.err, flag)) << outcome.err;
  }
}

}  // namespace
}  // namespace weir::testing
