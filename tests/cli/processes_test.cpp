// --processes of run, sweep and overlap, as a user would: documents, resuming, what is refused.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>

#include <chrono>
#include <fstream>
#include <thread>

#include "base/json.h"
#include "cli/overlap_runs.h"
#include "cli/program.h"
#include "support/text.h"

namespace weir::testing {
namespace {

std::vector<std::string> tiny(const char* command, const char* device, const std::vector<std::string>& more) {
  std::vector<std::string> words = {command, "tiny_kernel_stress", "--scale", "tiny",     "--iterations",
                                    "6",     "--warmup",           "1",       "--device", device};
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

TEST(ManyProcesses, OneResultSaysWhichSamplesAreWhose) {
  for (const char* const device : {"cpu", "null", "sim:h200"}) {
    const Folder folder;
    const Outcome outcome = weir(tiny("run", device, {"--processes", "3", "--streams", "4", "-o", folder / "r.json"}));
    ASSERT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_TRUE(has(outcome.out, "3 processes, medians ")) << outcome.out;
    expect_valid_as(folder / "r.json", "weir.result.2.json");
    const Json result = read_json(folder / "r.json");
    EXPECT_EQ(result["status"], "complete");
    ASSERT_EQ(result["processes"].size(), 3u);
    for (const Json& process : result["processes"]) {
      EXPECT_EQ(process["samples"], 6);
      EXPECT_EQ(process["seed"], 1);
      EXPECT_GT(process["wall_ns"].get<double>(), 0);
    }
    for (const char* list : {"latency_ns", "interval_ns", "submit_ns"})
      EXPECT_EQ(result["samples"][list].size(), 18u) << list;
    EXPECT_EQ(result["metrics"]["latency_ns"]["count"], 18);
    EXPECT_EQ(result["iterations"], 6) << "of each process";
    EXPECT_EQ(result["command_line"][1], "run");
    EXPECT_TRUE(has(result["command_line"].dump(), "--processes"));
  }
}

TEST(ManyProcesses, OnlyTheFirstTraces) {
  const Folder folder;
  ASSERT_EQ(weir(tiny("run", "sim:h200", {"--processes", "2", "-o", folder / "r.json"})).code, 0);
  EXPECT_TRUE(read_json(folder / "r.json")["metrics"]["concurrency"].is_object());
}

TEST(ManyProcesses, OneProcessIsAsBefore) {
  const Folder folder;
  ASSERT_EQ(weir(tiny("run", "null", {"--processes", "1", "-o", folder / "r.json"})).code, 0);
  EXPECT_FALSE(read_json(folder / "r.json").contains("processes"));
}

TEST(ManyProcesses, ARangeEndsWhenTheyAgree) {
  const Folder folder;
  ASSERT_EQ(weir(tiny("run", "sim:h200", {"--processes", "2..9", "-o", folder / "r.json"})).code, 0);
  EXPECT_EQ(read_json(folder / "r.json")["processes"].size(), 2u) << "virtual time does not vary";
}

TEST(ManyProcesses, ABudgetEndsThemAfterARound) {
  const Folder folder;
  const Outcome outcome = weir(tiny("run", "null", {"--processes", "500", "--budget", "1ms", "-o", folder / "r.json"}));
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(read_json(folder / "r.json")["processes"].size(), 1u);
  EXPECT_EQ(read_json(folder / "r.json")["status"], "complete");
}

TEST(ManyProcesses, SayWhatIsWrong) {
  struct Refused {
    std::vector<std::string> flags;
    const char* said;
  };
  for (const Refused& refused : {Refused{{"--processes", "0"}, "--processes 0"},
                                 Refused{{"--processes", "2,5"}, "--processes 2,5: not a number of processes"},
                                 Refused{{"--processes", "five"}, "--processes"},
                                 Refused{{"--processes", "5", "--until", "1%"}, "--processes 5..20"},
                                 Refused{{"--budget", "5s"}, "there is only one process"},
                                 Refused{{"--processes", "2..4", "--until", "x"}, "--until x"},
                                 Refused{{"--processes", "2", "--host-profile", "x.svg"}, "--host-profile"},
                                 Refused{{"--processes", "2", "--param", "x=1"}, "--param x=1"},
                                 Refused{{"--processes", "2", "--streams", "4000"}, "--streams 4000"}}) {
    const Outcome outcome = weir(tiny("run", "null", refused.flags));
    EXPECT_EQ(outcome.code, 2) << refused.said;
    EXPECT_TRUE(has(outcome.err, refused.said)) << outcome.err;
  }
}

TEST(ManyProcesses, AnInterruptKeepsThoseThatEnded) {
  const Folder folder;
  const std::string file = folder / "r.json";
  // The first processes end within a second or two; a thousand do not.
  const pid_t child = start_weir(tiny("sweep", "null", {"--streams", "4", "--processes", "1000", "-o", file}), ".");
  for (int i = 0; i < 600 && !std::filesystem::exists(file); ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  ASSERT_TRUE(std::filesystem::exists(file)) << "saved as they come";
  ::kill(child, SIGINT);
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(WEXITSTATUS(status), 130);
  const Json sweep = read_json(file);
  EXPECT_EQ(sweep["status"], "interrupted");
  ASSERT_EQ(sweep["results"].size(), 1u);
  const Json& point = sweep["results"][0];
  EXPECT_EQ(point["status"], "interrupted");
  EXPECT_EQ(point["samples"]["latency_ns"].size(), 6 * point["processes"].size());
  expect_valid_as(file, "weir.sweep.1.json");
}

TEST(ManyProcesses, ASweepGoesOnWithNothingRepeated) {
  const Folder folder;
  const std::string file = folder / "s.json";
  std::vector<std::string> words = tiny("sweep", "cpu", {"--streams", "1,2,4", "--processes", "2", "-o", file});
  const Outcome first = weir(words);
  ASSERT_EQ(first.code, 0) << first.err;
  expect_valid_as(file, "weir.sweep.1.json");
  const Json before = read_json(file);
  ASSERT_EQ(before["results"].size(), 3u);
  EXPECT_EQ(before["status"], "complete");
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(before["results"][i]["streams"], 1 << i) << "in the order asked for";
    EXPECT_EQ(before["results"][i]["processes"].size(), 2u);
  }
  // As after a kill: one point is missing, one has only its first process.
  Json cut = before;
  cut["results"].erase(std::size_t{2});
  Json& short_of = cut["results"][1];
  short_of["status"] = "interrupted";
  short_of["processes"].erase(std::size_t{1});
  for (const char* list : {"latency_ns", "interval_ns", "submit_ns"})
    for (int i = 0; i < 6; ++i) short_of["samples"][list].erase(short_of["samples"][list].size() - 1);
  std::ofstream(file) << cut.dump();
  words.emplace_back("--resume");
  const Outcome again = weir(words);
  ASSERT_EQ(again.code, 0) << again.err;
  EXPECT_TRUE(has(again.out, "kept")) << again.out;
  const Json after = read_json(file);
  ASSERT_EQ(after["results"].size(), 3u);
  EXPECT_EQ(after["results"][0]["processes"], before["results"][0]["processes"]) << "nothing was left to do";
  EXPECT_EQ(after["results"][1]["processes"][0], before["results"][1]["processes"][0]);
  EXPECT_NE(after["results"][1]["processes"][1], before["results"][1]["processes"][1]);
  for (const Json& point : after["results"]) {
    EXPECT_EQ(point["status"], "complete");
    EXPECT_EQ(point["processes"].size(), 2u);
    EXPECT_EQ(point["samples"]["latency_ns"].size(), 12u);
  }
  // One process cannot go on with points of several; older files say so by their points.
  Json older = after;
  older["settings"].erase("several_processes");
  for (const Json& document : {after, older}) {
    std::ofstream(file) << document.dump();
    const Outcome one = weir(tiny("sweep", "cpu", {"--streams", "1,2,4", "-o", file, "--resume"}));
    EXPECT_EQ(one.code, 2);
    EXPECT_TRUE(has(one.err, "several_processes = true")) << one.err;
    EXPECT_EQ(read_json(file)["results"].size(), 3u) << "nothing was dropped";
  }
}

TEST(ManyProcesses, OverlapAddsSamplesToTheFilesOfTheFirst) {
  const Folder folder;
  const Outcome outcome = weir(tiny_overlap(config_file("default"), {"--processes", "2", "-o", folder / "run"}));
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_TRUE(has(outcome.out, "2 processes, medians ")) << outcome.out;
  expect_valid_as(folder / "run/summary.json", "weir.overlap.2.json");
  const Json summary = read_json(folder / "run/summary.json");
  ASSERT_EQ(summary["processes"].size(), 2u);
  EXPECT_EQ(summary["status"], "complete");
  EXPECT_EQ(summary["processes"][1]["samples"], 3);
  EXPECT_EQ(summary["processes"][1]["traced"], 2);
  EXPECT_EQ(summary["step_ns"]["overlapped"]["samples_ns"].size(), 6u);
  EXPECT_EQ(summary["step_ns"]["serial"]["count"], 6);
  EXPECT_EQ(summary["overlap"]["samples"]["exposed_ns"].size(), 4u);
  EXPECT_TRUE(std::filesystem::exists(folder / "run/trace.json"));
  EXPECT_TRUE(has(file_content(folder / "run/report.md"), "2 processes, medians "));
}

}  // namespace
}  // namespace weir::testing
