// `weir overlap sweep` as a user would: real ranks, the simulator, variables, resuming, and what is refused.
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "base/json.h"
#include "cli/overlap_runs.h"
#include "cli/program.h"
#include "support/text.h"

namespace weir::testing {
namespace {

std::vector<std::string> tiny_points(std::initializer_list<std::string> more) {
  std::vector<std::string> words = {"overlap", "sweep", "--iterations", "3", "--warmup", "1"};
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

TEST(OverlapSweepCli, RanksExchangeCheckAndSayWhatTheBusCarried) {
  if (const std::string why = why_no_ranks(); !why.empty()) GTEST_SKIP() << why;
  const Folder folder;
  const std::string file = folder / "p.json";
  const Outcome outcome =
      weir(tiny_points({"--device", "cpu", "--ranks", "2", "--gemm", "32,48", "--collective",
                        "all_reduce,all_gather,reduce_scatter,all_to_all,shift", "--bytes", "8K", "-o", file}));
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  expect_valid_as(file, "weir.overlap_sweep.1.json");
  const Json document = read_json(file);
  EXPECT_EQ(document["status"], "complete");
  ASSERT_EQ(document["points"].size(), 10u);
  for (const Json& point : document["points"]) {
    EXPECT_EQ(point["status"], "complete") << point.dump();
    EXPECT_EQ(point["check"]["status"], "passed");
    EXPECT_EQ(point["ranks"], 2);
    const double factor = point["collective"] == "all_reduce" || point["collective"] == "shift" ? 1 : 0.5;
    EXPECT_NEAR(point["bus_bytes_per_s"]["alone"].get<double>(),
                factor * point["algorithm_bytes_per_s"]["alone"].get<double>(), 1);
  }
  std::istringstream lines(outcome.out);
  std::string line;
  std::getline(lines, line);  // the title names the processor
  while (std::getline(lines, line)) EXPECT_TRUE(line.starts_with("Written to") || line.size() <= 80) << line;
  const Outcome shown = weir({"report", file, "-o", folder / "r.html"});
  EXPECT_EQ(shown.code, 0) << shown.err;
  EXPECT_TRUE(has(file_content(folder / "r.html"), "reduce_scatter"));
}

TEST(OverlapSweepCli, VariablesHaveProcessesOfTheirOwnAndResumeGoesOn) {
  const Folder folder;
  const std::string file = folder / "p.json";
  std::vector<std::string> words = tiny_points({"--device", "sim:h200", "--gemm", "256", "--collective", "all_reduce",
                                                "--bytes", "64K", "--env", "NCCL_MAX_NCHANNELS=4,8,", "-o", file});
  const Outcome outcome = weir(words);
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  expect_valid_as(file, "weir.overlap_sweep.1.json");
  Json document = read_json(file);
  ASSERT_EQ(document["points"].size(), 3u);
  EXPECT_EQ(document["points"][1]["set_variables"]["NCCL_MAX_NCHANNELS"], "8");
  EXPECT_TRUE(document["points"][2]["set_variables"]["NCCL_MAX_NCHANNELS"].is_null());
  EXPECT_EQ(document["points"][1]["environment"]["variables"]["NCCL_MAX_NCHANNELS"], "8") << "of its own process";
  EXPECT_TRUE(has(outcome.out, "NCCL_MAX_NCHANNELS=8")) << outcome.out;
  const Json kept = document["points"][0];
  document["points"].erase(std::size_t{1});
  document["points"].erase(std::size_t{1});
  std::ofstream(file) << document.dump();
  words.emplace_back("--resume");
  ASSERT_EQ(weir(words).code, 0);
  document = read_json(file);
  ASSERT_EQ(document["points"].size(), 3u);
  EXPECT_EQ(document["points"][0], kept);
}

TEST(OverlapSweepCli, SaysWhatIsWrong) {
  struct Refused {
    std::vector<std::string> flags;
    const char* said;
  };
  for (const Refused& refused :
       {Refused{{"--collective", "all_reduse"}, "all_reduce"}, Refused{{"--bytes", "64"}, "--bytes 64"},
        Refused{{"--bytes", "64K,64K"}, "listed twice"}, Refused{{"--gemm", "0"}, "--gemm"},
        Refused{{"--device", "null"}, "it runs nothing"}, Refused{{"--env", "PATH=/tmp"}, "decides which code runs"},
        Refused{{"--precision", "fp99"}, "--precision fp99"}, Refused{{"--iterations", "10001"}, "--iterations 10001"},
        Refused{{"--warmup", "20000"}, "--warmup 20000"}, Refused{{"--gemm", "65536", "--bytes", "900G"}, "memory"}}) {
    std::vector<std::string> words = {"overlap", "sweep"};
    if (refused.flags[0] != "--device") words.insert(words.end(), {"--device", "cpu"});
    words.insert(words.end(), refused.flags.begin(), refused.flags.end());
    const Folder folder;
    const Outcome outcome = weir(words, folder.path());
    EXPECT_EQ(outcome.code, 2) << refused.said << outcome.out;
    EXPECT_TRUE(has(outcome.err, refused.said)) << outcome.err;
  }
}

}  // namespace
}  // namespace weir::testing
