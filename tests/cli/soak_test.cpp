// `weir run --seconds` as a user would: the document, ranks, Ctrl-C, and what is refused.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>

#include <chrono>
#include <filesystem>
#include <thread>

#include "base/json.h"
#include "cli/overlap_runs.h"
#include "cli/program.h"
#include "support/text.h"

namespace weir::testing {
namespace {

std::vector<std::string> tiny_soak(const std::string& seconds, const std::vector<std::string>& more) {
  std::vector<std::string> words = {"run",        "tiny_kernel_stress", "--scale", "tiny",     "--warmup", "1",
                                    "--no-trace", "--seconds",          seconds,   "--device", "cpu"};
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

TEST(SoakCli, ABareNumberIsSeconds) {
  for (const char* const seconds : {"1", "700ms"}) {
    const Folder folder;
    const Outcome outcome = weir(tiny_soak(seconds, {"-o", folder / "s.json"}));
    ASSERT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_TRUE(has(outcome.out, "soak ")) << outcome.out;
    expect_valid_as(folder / "s.json", "weir.result.2.json");
    const Json result = read_json(folder / "s.json");
    EXPECT_EQ(result["status"], "complete");
    const Json& soak = result["metrics"]["soak"];
    EXPECT_EQ(soak["asked_ns"], seconds == std::string("1") ? 1'000'000'000 : 700'000'000);
    EXPECT_GE(soak["elapsed_ns"], soak["asked_ns"]);
    EXPECT_EQ(result["iterations"], soak["iterations"]);
  }
}

TEST(SoakCli, RanksEndTogether) {
  if (const std::string why = why_no_ranks(); !why.empty()) GTEST_SKIP() << why;
  const Folder folder;
  const Outcome outcome = weir(tiny_soak("500ms", {"--ranks", "2", "-o", folder / "s.json"}));
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const Json result = read_json(folder / "s.json");
  EXPECT_EQ(result["ranks"]["count"], 2);
  EXPECT_GT(result["samples"]["latency_ns"].size(), 0u);
  EXPECT_TRUE(result["metrics"]["soak"].is_object());
}

TEST(SoakCli, CtrlCKeepsWhatThereIs) {
  const Folder folder;
  const std::string file = folder / "s.json";
  const pid_t child = start_weir(tiny_soak("2h", {"-o", file}), ".");
  std::this_thread::sleep_for(std::chrono::seconds(3));
  ::kill(child, SIGINT);
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(WEXITSTATUS(status), 130);
  ASSERT_TRUE(std::filesystem::exists(file));
  const Json result = read_json(file);
  EXPECT_EQ(result["status"], "interrupted");
  EXPECT_GE(result["metrics"]["soak"]["iterations"].get<int>(), 1);
  expect_valid_as(file, "weir.result.2.json");
}

TEST(SoakCli, SaysWhatIsWrong) {
  struct Refused {
    const char* seconds;
    std::vector<std::string> flags;
    const char* said;
  };
  for (const Refused& refused :
       {Refused{"0", {}, "--seconds 0"}, Refused{"soon", {}, "--seconds soon"}, Refused{"-1", {}, "--seconds"},
        Refused{"1", {"--iterations", "5"}, "--iterations 5"}, Refused{"1", {"--processes", "2"}, "one process"},
        Refused{"1", {"--sync-mode", "end_only"}, "per_iteration"}, Refused{"9999h", {}, "--seconds 9999h"}}) {
    const Outcome outcome = weir(tiny_soak(refused.seconds, refused.flags));
    EXPECT_EQ(outcome.code, 2) << refused.said;
    EXPECT_TRUE(has(outcome.err, refused.said)) << outcome.err;
  }
  const Outcome all = weir({"run", "P0", "--seconds", "1"});
  EXPECT_EQ(all.code, 2);
  EXPECT_TRUE(has(all.err, "--seconds: is for one workload")) << all.err;
}

}  // namespace
}  // namespace weir::testing
