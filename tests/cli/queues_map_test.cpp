// Drives `weir queues map` and `weir queues cost` as a user would, on the cpu device and on simulated ones.
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>

#include "base/json.h"
#include "cli/program.h"
#include "cli/queues_checks.h"

namespace weir::testing {
namespace {

std::vector<std::string> words(std::initializer_list<std::string> first, const std::vector<std::string>& more) {
  std::vector<std::string> all = first;
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

TEST(QueuesMap, FindsTheMapOfTheCpuDevice) {
  const Folder folder;
  const std::string file = folder / "map.json";
  const Outcome outcome = weir({"queues", "map", "--device", "cpu", "--hw-queues", "3", "--streams", "12", "-o", file});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  expect_narrow(outcome.out);
  EXPECT_TRUE(has(outcome.out, "fixed: a stream")) << outcome.out;
  expect_valid(file);
  const Json document = read_json(file);
  EXPECT_EQ(document["experiment"], "map");
  const Json& map = document["map"];
  EXPECT_EQ(map["streams"], 12);
  EXPECT_EQ(map["probe"]["queues"], 3);
  ASSERT_GE(map["probe"]["queue_of_stream"].size(), 12u);
  for (std::size_t i = 0; i < 12; ++i) EXPECT_EQ(map["probe"]["queue_of_stream"][i], i % 3);
  const Outcome again = weir({"queues", "map", "--device", "cpu", "-o", file});
  EXPECT_EQ(again.code, 2);
  EXPECT_TRUE(has(again.err, "--force")) << again.err;
}

TEST(QueuesMap, NamesThePolicyOfSimulatedDevices) {
  const Folder folder;
  const std::vector<std::pair<std::vector<std::string>, std::string>> devices = {
      {{"sim:h200"}, "load_based"},
      {{"sim:mi300x"}, "least_referenced"},
      {{"sim:mi300x", "--sim", "mapping=load_based"}, "load_based"},
      {{"sim:mi300x", "--sim", "mapping=rotating", "--hw-queues", "6"}, "rotating"},
      {{"sim:mi300x_2026"}, "load_based"},
      {{"sim:toy"}, "round_robin"},
      {{"sim:h200", "--sim", "mapping=rotating"}, "rotating"},
      {{"sim:h200", "--sim", "mapping=fixed", "--sim", "map=0,0,1,3"}, "fixed"},
      {{"sim:h200", "--hw-queues", "1"}, "one_queue"},
      {{"sim:h200", "--hw-queues", "64"}, "unshared"},
  };
  int number = 0;
  for (const auto& [device, policy] : devices) {
    const std::string file = folder / (std::to_string(number++) + ".json");
    const Outcome outcome = weir(words({"queues", "map", "-o", file, "--device"}, device));
    ASSERT_EQ(outcome.code, 0) << policy << outcome.err;
    expect_narrow(outcome.out);
    expect_valid(file);
    const Json map = read_json(file)["map"];
    const Json& probe = map["probe"];
    // A table goes on where the last session's streams ended, so other sessions do have another map.
    if (policy != "fixed") {
      EXPECT_EQ(map["agreement"]["disagree"].size(), 0u) << policy << map["agreement"].dump();
      EXPECT_EQ(map["runtime"]["agreeing_marks"], map["runtime"]["marks"]) << policy;
    }
    EXPECT_EQ(probe["policy"], policy);
    EXPECT_TRUE(has(outcome.out, probe["mapping"].get<std::string>().substr(0, 20))) << outcome.out;
  }
}

TEST(QueuesMap, SaysThatQueuesAreTooShallow) {
  for (const char* depth : {"queue_depth=1", "queue_depth=2", "queue_depth=5"}) {
    const Folder folder;
    const Outcome outcome = weir({"queues", "map", "--device", "sim:h200", "--sim", depth, "-o", folder / "map.json"});
    EXPECT_EQ(outcome.code, 1) << outcome.err;
    expect_narrow(outcome.out);
    expect_valid(folder / "map.json");
    EXPECT_TRUE(has(outcome.out, "too shallow")) << outcome.out;
    EXPECT_FALSE(has(outcome.out + outcome.err, "too busy")) << outcome.out << outcome.err;
    const std::string reason = read_json(folder / "map.json")["map"]["probe"]["reason"].get<std::string>();
    EXPECT_TRUE(has(reason, "--sim queue_depth=80")) << reason;
  }
}

TEST(QueuesMap, LooksAtTheTimelineOfAStep) {
  const Folder folder;
  const std::string file = folder / "map.json";
  const Outcome outcome = weir({"queues", "map", "moe", "--device", "sim:toy", "-o", file});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  expect_narrow(outcome.out);
  expect_valid(file);
  const Json document = read_json(file);
  EXPECT_EQ(document["map"]["timeline"]["step"], "moe");
  EXPECT_EQ(document["map"]["timeline"]["queues"], 2);
  EXPECT_FALSE(document["map"]["timeline"]["intervals"].empty());
  const Outcome unknown = weir({"queues", "map", "nonsense", "--device", "sim:toy"});
  EXPECT_EQ(unknown.code, 2);
  EXPECT_TRUE(has(unknown.err, "nonsense")) << unknown.err;
}

TEST(QueuesMap, QuietSaysNothing) {
  const Outcome outcome = weir({"queues", "map", "--device", "sim:toy", "-q"});
  EXPECT_EQ(outcome.code, 0);
  EXPECT_EQ(outcome.out + outcome.err, "");
}

TEST(QueuesMap, BadInputNamesItsFlag) {
  const Folder folder;
  const std::vector<std::pair<std::vector<std::string>, std::string>> cases = {
      {{"--streams", "1"}, "--streams 1"},       {{"--streams", "5000"}, "--streams 5000"},
      {{"--streams", "2,4"}, "--streams 2,4"},   {{"--streams", "x"}, "--streams x"},
      {{"--confidence", "2"}, "--confidence 2"}, {{"--confidence", "x"}, "--confidence x"},
      {{"--hw-queues", "0"}, "--hw-queues 0"},   {{"-o", "absent/map.json"}, "absent"},
      {{"--sim", "queues"}, "--sim queues"},     {{"--confidence", "99"}, "Write --confidence 99%"},
  };
  for (const auto& [more, part] : cases) {
    const Outcome outcome = weir(words({"queues", "map", "--device", "cpu"}, more), folder.path());
    EXPECT_EQ(outcome.code, 2) << part << outcome.err;
    EXPECT_TRUE(has(outcome.err, part)) << outcome.err;
  }
  const Outcome null = weir({"queues", "map", "--device", "null"});
  EXPECT_EQ(null.code, 2);
  EXPECT_TRUE(has(null.err, "--device null")) << null.err;
  const Outcome few = weir({"queues", "map", "--device", "sim:h200", "--sim", "max_streams=20"});
  EXPECT_EQ(few.code, 2);
  EXPECT_TRUE(has(few.err, "40 streams") && has(few.err, "--sim max_streams")) << few.err;
}

std::vector<std::string> cost(const std::vector<std::string>& more) {
  return words({"queues", "cost", "--scale", "tiny", "--iterations", "6", "--warmup", "1"}, more);
}

TEST(QueuesCost, VerifiesOnTheCpuDevice) {
  const Folder folder;
  const std::string file = folder / "cost.json";
  const Outcome outcome = weir(cost({"hetero_kernels", "--device", "cpu", "--hw-queues", "2", "--queues", "1,2,4",
                                     "--streams", "4", "--verify-all", "-o", file}));
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  expect_narrow(outcome.out);
  expect_valid(file);
  const Json document = read_json(file);
  EXPECT_EQ(document["experiment"], "cost");
  const Json& found = document["cost"];
  EXPECT_EQ(found["queues"], 2);
  EXPECT_EQ(found["predictions"].size(), 3u);
  ASSERT_EQ(found["verification"].size(), 3u);
  for (const Json& one : found["verification"]) EXPECT_GT(one["measured_ns"].get<double>(), 0);
  EXPECT_EQ(found["verification"][2]["setting"], "--hw-queues 4");
}

TEST(QueuesCost, VerifiesOnASimulatedDevice) {
  const Folder folder;
  const std::string file = folder / "cost.json";
  // The count under --sim is that of now; it must not reach the processes that try another one.
  const Outcome outcome =
      weir({"queues", "cost", "--file", WEIR_SOURCE_DIR "/config/depth_first.yaml", "--streams", "32", "--device",
            "sim:h200", "--sim", "queues=4", "--scale", "full", "--iterations", "6", "--verify", "-o", file});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  expect_narrow(outcome.out);
  EXPECT_TRUE(has(outcome.out, "use --hw-queues 32: predicted -")) << outcome.out;
  expect_valid(file);
  const Json found = read_json(file)["cost"];
  EXPECT_EQ(found["queues"], 4);
  EXPECT_EQ(found["advice"]["queues"], 32);
  ASSERT_EQ(found["verification"].size(), 1u);
  EXPECT_EQ(found["verification"][0]["queues"], 32);
  EXPECT_LT(std::abs(found["verification"][0]["error"].get<double>()), 0.01);  // virtual time
  EXPECT_TRUE(has(found["explanation"].string(),
                  "only because an unrelated command sat in front of them in the same hardware queue"));
}

TEST(QueuesCost, WithoutVerifyItSaysThatItDidNot) {
  const Folder folder;
  const std::string file = folder / "cost.json";
  const Outcome outcome = weir(cost({"moe", "--device", "sim:a100", "-o", file}));
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  expect_narrow(outcome.out);
  expect_valid(file);
  const Json document = read_json(file);
  EXPECT_TRUE(document["cost"]["verification"].is_null());
  EXPECT_TRUE(has(document["unavailable"]["cost.verification"].string(), "--verify"));
}

TEST(QueuesCost, ASavedProfileIsADevice) {
  const Folder folder;
  const std::string profile = folder / "mine.yaml", file = folder / "cost.json", run = folder / "run.json";
  const Outcome outcome =
      weir(cost({"moe", "--device", "sim:h200", "--queues", "8", "--save-profile", profile, "-o", file}));
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_TRUE(has(outcome.out, "--device sim:" + profile)) << outcome.out;
  ASSERT_TRUE(std::filesystem::exists(profile));
  const Outcome again =
      weir({"run", "moe", "--device", "sim:" + profile, "--scale", "tiny", "--iterations", "3", "-o", run});
  ASSERT_EQ(again.code, 0) << again.err;
  const double predicted = read_json(file)["cost"]["predictions"][0]["step_ns"].get<double>();
  const double simulated = read_json(run)["metrics"]["latency_ns"]["p50"].get<double>();
  EXPECT_NEAR(simulated / predicted, 1, 0.001);  // virtual time
  EXPECT_EQ(weir(cost({"moe", "--device", "sim:h200", "--save-profile", profile})).code, 2) << "never without --force";
}

TEST(QueuesCost, BadInputNamesItsFlag) {
  const Folder folder;
  const std::vector<std::pair<std::vector<std::string>, std::string>> cases = {
      {{"nonsense"}, "nonsense"},
      {{}, "a workload is required"},
      {{"moe", "--file", "x.yaml"}, "--file x.yaml"},
      {{"moe", "--queues", "0"}, "--queues 0"},
      {{"moe", "--queues", "1000"}, "--queues 1000"},
      {{"moe", "--queues", "1,x"}, "--queues 1,x"},
      {{"moe", "--streams", "5000"}, "--streams 5000"},
      {{"moe", "--submit", "pigeon"}, "--submit pigeon"},
      {{"moe", "--placement", "nowhere"}, "--placement nowhere"},
      {{"moe", "--param", "nonsense=1"}, "nonsense"},
      {{"moe", "-o", "absent/cost.json"}, "absent"},
      {{"moe", "--save-profile", "absent/mine.yaml"}, "absent"},
  };
  for (const auto& [more, part] : cases) {
    const Outcome outcome = weir(words({"queues", "cost", "--device", "cpu"}, more), folder.path());
    EXPECT_EQ(outcome.code, 2) << part << outcome.err;
    EXPECT_TRUE(has(outcome.err, part)) << outcome.err;
  }
  const Outcome null = weir({"queues", "cost", "moe", "--device", "null"});
  EXPECT_EQ(null.code, 2);
  EXPECT_TRUE(has(null.err, "--device null")) << null.err;
}

}  // namespace
}  // namespace weir::testing
