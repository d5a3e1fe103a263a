// Drives `weir channel` as a user would, with the quickest group.
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <set>

#include "base/json.h"
#include "cli/program.h"
#include "cli/queues_checks.h"
#include "measure/environment.h"

namespace weir::testing {
namespace {

void expect_valid_channel(const std::string& file) { expect_valid_as(file, "weir.channel.2.json"); }

// Without two cores the floor cannot be measured, and there is nothing to drive.
bool has_two_cores() { return usable_cores().size() >= 2; }

std::vector<std::string> quick_ping_pong(std::initializer_list<std::string> more) {
  std::vector<std::string> arguments = {"channel", "ping_pong", "--quick", "--samples", "2"};
  arguments.insert(arguments.end(), more);
  return arguments;
}

TEST(Channel, ListShowsGroupsAndContestants) {
  const Outcome outcome = weir({"channel", "--list"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  for (const char* part : {"ping_pong", "contestants", "floor", "one_line"})
    EXPECT_TRUE(has(outcome.out, part)) << part;
  expect_narrow(outcome.out);
  const Json json = parse_json(weir({"channel", "--list", "--json", "ping_pong"}).out, "list");
  ASSERT_EQ(json.size(), 1u);
  EXPECT_EQ(json[0]["group"], "ping_pong");
  ASSERT_EQ(json[0]["contestants"].size(), 1u);
  EXPECT_EQ(json[0]["contestants"][0], "floor");
}

TEST(Channel, ListSaysWhatCannotBeRunHere) {
  const std::string core = std::to_string(usable_cores().front());
  const Outcome outcome = weir({"channel", "--list", "ping_pong", "--cores", core});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_TRUE(has(outcome.out, "not here")) << outcome.out;
  EXPECT_TRUE(has(outcome.out, "two cores")) << outcome.out;
}

TEST(Channel, MeasuresWritesAndTells) {
  if (!has_two_cores()) GTEST_SKIP() << "one core only";
  const Folder folder;
  const Outcome outcome = weir(quick_ping_pong({"-o", folder / "out.json", "--capacity", "100"}), folder.path());
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  expect_narrow(outcome.out);
  EXPECT_TRUE(has(outcome.out, "two_lines")) << outcome.out;
  EXPECT_TRUE(has(outcome.out, "--capacity 100 was rounded up to 128")) << outcome.out;
  EXPECT_TRUE(has(outcome.err, "3 benchmarks in 2 processes: about")) << outcome.err;
  expect_valid_channel(folder / "out.json");
  const Json document = read_json(folder / "out.json");
  EXPECT_EQ(document["status"], "complete");
  EXPECT_EQ(document["settings"]["capacity"], 128);
  EXPECT_EQ(document["settings"]["capacity_asked"], 100);
  ASSERT_EQ(document["benchmarks"].size(), 3u);
  for (const Json& benchmark : document["benchmarks"]) {
    EXPECT_EQ(benchmark["status"], "measured");
    ASSERT_EQ(benchmark["processes"].size(), 2u);
    EXPECT_EQ(benchmark["processes"][0]["samples"].size(), 2u);
    EXPECT_EQ(benchmark["sent"], benchmark["received"]);
    EXPECT_GT(benchmark["sent"], 0);
  }
  EXPECT_FALSE(std::filesystem::exists(folder.path() / ".weir"));
  EXPECT_EQ(weir(quick_ping_pong({"-o", folder / "out.json"})).code, 2) << "replaced without --force";
}

TEST(Channel, PrintsJsonAndMarkdownAndNothing) {
  if (!has_two_cores()) GTEST_SKIP() << "one core only";
  EXPECT_EQ(parse_json(weir(quick_ping_pong({"--json"})).out, "x")["schema"], "weir.channel/2");
  EXPECT_TRUE(has(weir(quick_ping_pong({"--format", "markdown"})).out, "| benchmark | contestant |"));
  const Outcome quiet = weir(quick_ping_pong({"--quiet"}));
  EXPECT_EQ(quiet.code, 0);
  EXPECT_EQ(quiet.out + quiet.err, "");
}

TEST(Channel, WhatCannotBeRunIsNoFailure) {
  const std::string core = std::to_string(usable_cores().front());
  const Outcome outcome = weir(quick_ping_pong({"--cores", core}));
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_TRUE(has(outcome.out, "3 cannot be run here")) << outcome.out;
}

TEST(Channel, SavesABaselineAndComparesWithIt) {
  if (!has_two_cores()) GTEST_SKIP() << "one core only";
  const Folder folder;
  const Outcome saved = weir(quick_ping_pong({"--processes", "4", "--save-baseline", "main"}), folder.path());
  ASSERT_EQ(saved.code, 0) << saved.err;
  const std::string file = folder / ".weir/channel/main.json";
  EXPECT_TRUE(has(saved.out, ".weir/channel/main.json")) << saved.out;
  expect_valid_channel(file);
  Json old = read_json(file);
  old["created"] = "2026-01-01T00:00:00Z";
  std::ofstream(file) << old.dump();
  const Outcome again = weir(quick_ping_pong({"--save-baseline", "main", "--processes", "4"}), folder.path());
  EXPECT_EQ(again.code, 0) << again.err;
  EXPECT_NE(read_json(file)["created"], old["created"]) << "the newer one replaces it";
  std::ofstream(folder / ".weir/channel/mine.json") << "{}";
  EXPECT_EQ(weir(quick_ping_pong({"--save-baseline", "mine"}), folder.path()).code, 2) << "nothing that is no baseline";

  const Outcome compared =
      weir(quick_ping_pong({"--processes", "4", "--baseline", "main", "-o", folder / "new.json"}), folder.path());
  // Nothing about times: a busy machine may well be slower.
  EXPECT_TRUE(compared.code == 0 || compared.code == 3) << compared.code << compared.err;
  EXPECT_TRUE(has(compared.out, "Against the baseline 'main'")) << compared.out;
  expect_narrow(compared.out);
  expect_valid_channel(folder / "new.json");
  EXPECT_EQ(read_json(folder / "new.json")["comparison"]["changes"].size(), 3u);

  // A baseline from a machine twenty times as fast.
  Json document = read_json(file);
  for (Json& benchmark : document["benchmarks"])
    for (Json& process : benchmark["processes"])
      for (Json& sample : process["samples"]) sample = sample.get<double>() / 20;
  write_file(folder / "fast.json", to_text(document), true);
  const Outcome slower =
      weir(quick_ping_pong({"--processes", "8", "--baseline-dir", folder.path().string(), "--baseline", "fast"}));
  EXPECT_EQ(slower.code, 3) << slower.out << slower.err;
  EXPECT_TRUE(has(slower.out, "slower")) << slower.out;
  const Outcome few = weir(quick_ping_pong(
      {"--processes", "1", "--strict", "--baseline-dir", folder.path().string(), "--baseline", "fast"}));
  EXPECT_EQ(few.code, 4) << few.out << few.err;
}

TEST(Channel, CalibratesAgainstItself) {
  if (!has_two_cores()) GTEST_SKIP() << "one core only";
  const Folder folder;
  const Outcome outcome = weir(quick_ping_pong({"--calibrate", "--processes", "3", "-o", folder / "aa.json"}));
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_TRUE(has(outcome.out, "called slower than itself")) << outcome.out;
  expect_narrow(outcome.out);
  expect_valid_channel(folder / "aa.json");
  const Json document = read_json(folder / "aa.json");
  EXPECT_EQ(document["calibration"]["processes"], 6);
  EXPECT_EQ(document["calibration"]["all"]["benchmarks"], 3);
}

TEST(Channel, RunsSingleBenchmarksAndReportsToOthers) {
  const Folder folder;
  const Outcome outcome = weir({"channel", "send_latency/small", "payload_clone", "--skip",
                                "payload_clone/two_threads,send_latency/small/boost_spsc", "--quick", "--samples", "2",
                                "--junit", folder / "junit.xml", "-o", folder / "out.json", "--github"},
                               folder.path());
  ASSERT_EQ(outcome.code, 0) << outcome.out << outcome.err;
  expect_narrow(outcome.out);
  for (const char* part : {"broadcast", "against mutex", "send latency", "a clone costs the same at any size"})
    EXPECT_TRUE(has(outcome.out, part)) << part << outcome.out;
  expect_valid_channel(folder / "out.json");
  const Json document = read_json(folder / "out.json");
  EXPECT_EQ(document["settings"]["capacity_asked"], 100);
  std::set<std::string> ids;
  for (const Json& benchmark : document["benchmarks"]) ids.insert(benchmark["id"].get<std::string>());
  EXPECT_TRUE(ids.contains("send_latency/small/broadcast") && ids.contains("payload_clone/1MB/payload"));
  EXPECT_FALSE(ids.contains("send_latency/medium/spsc") || ids.contains("send_latency/small/boost_spsc") ||
               ids.contains("payload_clone/two_threads/1MB/payload"));
  EXPECT_EQ(document["factors"].size(), 1u);
  std::ifstream junit(folder / "junit.xml");
  const std::string xml{std::istreambuf_iterator<char>(junit), {}};
  EXPECT_TRUE(has(xml, "send_latency/small/spsc")) << xml;

  const Outcome added = weir({"history", "add", folder / "out.json"}, folder.path());
  ASSERT_EQ(added.code, 0) << added.err;
  const Outcome trend =
      weir({"history", "trend", "send_latency/small", "--key", "channel=spsc", "--json"}, folder.path());
  EXPECT_EQ(trend.code, 0) << trend.err;
  EXPECT_TRUE(has(trend.out, "send_latency/small")) << trend.out;
}

TEST(Channel, BadInputSaysWhatToDo) {
  const Folder folder;
  const auto write = [&](const char* name, const std::string& text) { std::ofstream(folder / name) << text; };
  write("empty.json", "");
  write("half.json", R"({"schema":"weir.channel/2","created":)");
  write("other.json", R"({"schema":"weir.result/2"})");
  write("deep.json", std::string(200'000, '['));
  write("hollow.json", R"({"schema":"weir.channel/2"})");
  const std::vector<std::pair<std::vector<std::string>, std::string>> cases = {
      {{"pingpong"}, "Did you mean 'ping_pong'?"},
      {{"--channel", "flor"}, "Did you mean 'floor'?"},
      {{"--only"}, "--channel"},
      {{"ping_pong/flga"}, "Did you mean 'ping_pong/flag'?"},
      {{"--skip", "pingpong"}, "--skip: unknown group 'pingpong'"},
      {{"ping_pong", "--skip", "ping_pong"}, "nothing is left"},
      {{"--capacity", "0"}, "--capacity 0"},
      {{"--capacity", "-3"}, "--capacity"},
      {{"--capacity", "many"}, "--capacity many"},
      {{"--processes", "0"}, "--processes"},
      {{"--samples", "0"}, "--samples"},
      {{"--cores", "99999"}, "--cores 99999"},
      {{"--cores", "a"}, "--cores"},
      {{"--seed", "-1"}, "--seed"},
      {{"--limit", "0s"}, "--limit"},
      {{"--threshold", "0"}, "--threshold"},
      {{"--threshold", "5"}, "Write --threshold 5%."},
      {{"--device", "cpuu"}, "Did you mean 'cpu'?"},
      {{"--save-baseline", "../x"}, "--save-baseline"},
      {{"--save-baseline", "x", "--baseline", "x"}, "--save-baseline x"},
      {{"--baseline", "a/b"}, "--baseline"},
      {{"--baseline", "absent"}, "--save-baseline absent"},
      {{"--baseline", "empty"}, "empty.json"},
      {{"--baseline", "half"}, "half.json"},
      {{"--baseline", "other"}, "weir.result/2"},
      {{"--baseline", "deep"}, "deep.json"},
      {{"--baseline", "hollow"}, "is missing"},
      {{"--calibrate", "--baseline", "x"}, "x"},
      {{"-o", "no/such/folder/x.json"}, "does not exist"},
      {{"--child", "absent"}, "absent"},
      {{"--child", folder / "other.json"}, "not a request"},
  };
  for (const auto& [more, message] : cases) {
    std::vector<std::string> arguments = {"channel", "--quick", "--baseline-dir", folder.path().string()};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const Outcome outcome = weir(arguments);
    EXPECT_EQ(outcome.code, 2) << more.back() << outcome.out << outcome.err;
    EXPECT_TRUE(has(outcome.err, message)) << more.back() << ": " << outcome.err;
  }
}

TEST(Channel, InterruptedItTellsAndSavesWhatItHas) {
  if (!has_two_cores()) GTEST_SKIP() << "one core only";
  const Folder folder;
  const std::string out = folder / "out.json";
  const pid_t process = start_weir({"channel", "ping_pong", "--quick", "--processes", "400", "--samples", "50", "-o",
                                    out, "--save-baseline", "part", "--baseline-dir", folder / "kept"},
                                   folder.path());
  await_handler(process, SIGINT);
  for (int i = 0; i < 60'000 && !std::filesystem::exists(out); ++i) ::usleep(1000);  // the first process has ended
  ::kill(process, SIGINT);
  EXPECT_EQ(wait_for(process), 130);
  const Json document = read_json(out);
  EXPECT_EQ(document["status"], "interrupted");
  EXPECT_EQ(document["benchmarks"][0]["status"], "measured");
  expect_valid_channel(out);
  EXPECT_EQ(read_json(folder / "kept/part.json")["status"], "interrupted");
}

}  // namespace
}  // namespace weir::testing
