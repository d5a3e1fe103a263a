// Drives `weir queues` as a user would: sweep and convoy on the cpu device, resumed, interrupted, with bad arguments.
#include <gtest/gtest.h>
#include <signal.h>

#include <filesystem>
#include <fstream>

#include "base/json.h"
#include "cli/program.h"
#include "cli/queues_checks.h"

namespace weir::testing {
namespace {

std::vector<std::string> sweep(std::initializer_list<std::string> more) {
  std::vector<std::string> arguments = {
      "queues",   "sweep", "tiny_kernel_stress", "--device", "cpu", "--iterations", "6",
      "--warmup", "1",     "--processes",        "2"};
  arguments.insert(arguments.end(), more);
  return arguments;
}

TEST(QueuesSweep, RunsEachSettingInItsOwnProcess) {
  const Folder folder;
  const std::string file = folder / "sweep.json";
  const Outcome outcome = weir(sweep(
      {"--hw-queues", "1,4", "--streams", "1,2,4,8,16", "--scale", "tiny", "--param", "elements=64,128", "-o", file}));
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  expect_narrow(outcome.out);
  EXPECT_TRUE(has(outcome.out, "tiny, elements=128")) << outcome.out;
  expect_valid(file);
  const Json document = read_json(file);
  EXPECT_EQ(document["experiment"], "sweep");
  EXPECT_EQ(document["sweep"]["status"], "complete");
  ASSERT_EQ(document["sweep"]["points"].size(), 20u);
  for (const Json& point : document["sweep"]["points"]) {
    EXPECT_EQ(point["status"], "complete");
    ASSERT_EQ(point["runs"].size(), 2u);
    for (const Json& run : point["runs"]) {
      EXPECT_EQ(run["seen"]["hardware_queues"], point["queues"]);
      EXPECT_EQ(run["samples_ns"].size(), 6u);
    }
    EXPECT_GE(point["ratio"].get<double>(), 1.0);
  }
  EXPECT_EQ(document["sweep"]["best"].size(), 10u);
}

TEST(QueuesSweep, ResumesWhatIsThere) {
  const Folder folder;
  const std::string file = folder / "sweep.json";
  ASSERT_EQ(weir(sweep({"--hw-queues", "1,2", "--streams", "2", "--scale", "tiny", "-o", file})).code, 0);
  const Json first = read_json(file);
  EXPECT_EQ(weir(sweep({"--hw-queues", "1,2", "--streams", "2", "--scale", "tiny", "-o", file})).code, 2)
      << "never without --force";
  // A run is missing, as after a kill.
  Json cut = first;
  cut["sweep"]["points"][1]["runs"].erase(1);
  cut["sweep"]["points"][1]["status"] = "partial";
  std::ofstream(file) << cut.dump();
  const Outcome again =
      weir(sweep({"--hw-queues", "1,2,3", "--streams", "2", "--scale", "tiny", "-o", file, "--resume"}));
  ASSERT_EQ(again.code, 0) << again.err;
  const Json second = read_json(file);
  ASSERT_EQ(second["sweep"]["points"].size(), 3u);
  EXPECT_EQ(second["sweep"]["points"][0]["runs"], first["sweep"]["points"][0]["runs"]);
  EXPECT_EQ(second["sweep"]["points"][1]["runs"][0], first["sweep"]["points"][1]["runs"][0]);
  EXPECT_EQ(second["sweep"]["points"][1]["runs"].size(), 2u);
  EXPECT_EQ(second["sweep"]["points"][2]["queues"], 3);
  expect_valid(file);

  const Outcome other = weir(sweep(
      {"--hw-queues", "1", "--streams", "2", "--scale", "tiny", "-o", file, "--resume", "--placement", "serial"}));
  EXPECT_EQ(other.code, 2);
  EXPECT_TRUE(has(other.err, "placement")) << other.err;
  std::ofstream(folder / "other.json") << "{\"schema\": \"weir.result/2\"}";
  EXPECT_EQ(weir(sweep({"-o", folder / "other.json", "--resume"})).code, 2);
}

TEST(QueuesSweep, ProcessesThatTakeTooLongFailTheirPoint) {
  const Folder folder;
  const std::string file = folder / "sweep.json";
  const Outcome outcome = weir({"queues", "sweep", "tiny_kernel_stress", "--device", "cpu", "--iterations", "10000000",
                                "--hw-queues", "2", "--streams", "2", "--time-limit", "1s", "-o", file});
  EXPECT_EQ(outcome.code, 1);
  EXPECT_TRUE(has(outcome.err, "took longer than 1.00 s")) << outcome.err;
  expect_valid(file);
  EXPECT_EQ(read_json(file)["sweep"]["points"][0]["status"], "failed");
}

TEST(QueuesSweep, AnInterruptSavesWhatThereIs) {
  const Folder folder;
  const std::string file = folder / "sweep.json";
  const pid_t process =
      start_weir(sweep({"--hw-queues", "1..100", "--streams", "2", "--scale", "tiny", "-o", file}), folder.path());
  await_handler(process, SIGINT);
  for (int i = 0; i < 60'000 && !std::filesystem::exists(file); ++i) ::usleep(1000);
  ::kill(process, SIGINT);
  EXPECT_EQ(wait_for(process), 130);
  const Json document = read_json(file);
  EXPECT_EQ(document["sweep"]["status"], "interrupted");
  EXPECT_GE(document["sweep"]["points"].size(), 1u);
  expect_valid(file);
}

TEST(QueuesSweep, BadArgumentsAreNamed) {
  const Folder folder;
  const std::vector<std::vector<std::string>> bad = {
      {"--hw-queues", "0"}, {"--hw-queues", "1,x"},    {"--hw-queues", "200"},  {"--streams", "4000"},
      {"--scale", "huge"},  {"--param", "nonsense=1"}, {"--param", "elements"}, {"--time-limit", "0s"},
      {"--processes", "0"}, {"--iterations", "-1"},    {"--submit", "pigeon"},  {"--placement", "nowhere"},
      {"--device", "null"}, {"--precision", "fp3"},    {"-o", "absent/s.json"}, {"--param", "elements=1,,2"},
  };
  for (const std::vector<std::string>& words : bad) {
    std::vector<std::string> arguments = {"queues", "sweep", "tiny_kernel_stress"};
    if (words[0] != "--device") arguments.insert(arguments.end(), {"--device", "cpu"});
    arguments.insert(arguments.end(), words.begin(), words.end());
    const Outcome outcome = weir(arguments, folder.path());
    EXPECT_EQ(outcome.code, 2) << words[0] << " " << words[1] << outcome.err;
    EXPECT_TRUE(has(outcome.err, words[0] == "-o" ? words[1] : words[0])) << outcome.err;
  }
  EXPECT_EQ(weir({"queues", "sweep"}, folder.path()).code, 2);
}

TEST(QueuesConvoy, MeasuresThreeCasesOnTheirQueues) {
  const Folder folder;
  const std::string file = folder / "convoy.json";
  const Outcome outcome = weir({"queues", "convoy", "--device", "cpu", "--streams", "4", "--iterations", "20",
                                "--large-time", "200us", "-o", file});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  expect_narrow(outcome.out);
  EXPECT_TRUE(has(outcome.out, "head-of-line index")) << outcome.out;
  expect_valid(file);
  const Json document = read_json(file);
  const Json& cases = document["convoy"]["cases"];
  for (const char* name : {"alone", "beside", "behind"}) EXPECT_EQ(cases[name]["latency_ns"]["count"], 40) << name;
  EXPECT_EQ(cases["beside"]["seen_queues"], 32);
  EXPECT_EQ(cases["behind"]["seen_queues"], 1);
  // The device tells who shared a queue with a large kernel: nobody, and everybody.
  EXPECT_EQ(cases["beside"]["shared"], 0);
  EXPECT_EQ(cases["behind"]["shared"], 40);
  // 40 samples are too few for an interval of p99, and the document says so.
  EXPECT_TRUE(document["convoy"]["convoy_index"]["p99_interval"].is_null());
  EXPECT_TRUE(document["unavailable"].contains("convoy.cases.alone.latency_ns.p99_interval"));
  // Behind the second large kernel of a stream a small one waits for the first at least: a fact, not a timing.
  EXPECT_GE(cases["behind"]["latency_ns"]["min"].get<double>(), 200e3 / 2);
}

TEST(QueuesConvoy, BadArgumentsAreNamed) {
  const Folder folder;
  const std::vector<std::vector<std::string>> bad = {
      {"--streams", "1"},        {"--streams", "500"},     {"--iterations", "0"}, {"--large-time", "0us"},
      {"--small-time", "500us"}, {"--large-blocks", "-3"}, {"--hw-queues", "4"},  {"--case", "nowhere"}};
  for (const std::vector<std::string>& words : bad) {
    const Outcome outcome = weir({"queues", "convoy", "--device", "cpu", words[0], words[1]}, folder.path());
    EXPECT_EQ(outcome.code, 2) << words[0] << " " << words[1] << outcome.err;
    EXPECT_TRUE(has(outcome.err, words[0])) << outcome.err;
  }
  EXPECT_EQ(weir({"queues", "convoy", "--device", "null"}, folder.path()).code, 2);
}

}  // namespace
}  // namespace weir::testing
