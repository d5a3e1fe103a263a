// --env of sweep and overlap, and env of overlap configs, as a user would: what the processes got, what documents say,
// what is compared, and what is refused.
#include <gtest/gtest.h>
#include <stdlib.h>

#include <fstream>
#include <set>

#include "base/json.h"
#include "cli/overlap_runs.h"
#include "cli/program.h"
#include "support/text.h"

namespace weir::testing {
namespace {

std::vector<std::string> tiny_sweep(const char* device, const std::vector<std::string>& more) {
  std::vector<std::string> words = {"sweep", "tiny_kernel_stress", "--scale", "tiny",     "--iterations",
                                    "6",     "--warmup",           "1",       "--device", device};
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

TEST(Env, EachPointOfASweepHasItsValues) {
  const Folder folder;
  const std::string file = folder / "s.json";
  ::setenv("NCCL_PROTO", "LL", 1);  // inherited, unless a point says that it is not set
  const Outcome outcome = weir(tiny_sweep(
      "cpu", {"--streams", "1,2", "--env", "NCCL_ALGO=Ring,Tree", "--env", "NCCL_PROTO=LL128,", "-o", file}));
  ::unsetenv("NCCL_PROTO");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_TRUE(has(outcome.out, "NCCL_ALGO=Ring NCCL_PROTO unset")) << outcome.out;
  expect_valid_as(file, "weir.sweep.1.json");
  const Json sweep = read_json(file);
  EXPECT_EQ(sweep["status"], "complete");
  ASSERT_EQ(sweep["results"].size(), 8u);
  std::set<std::string> seen;
  for (const Json& point : sweep["results"]) {
    std::ofstream(folder / "point.json") << point.dump();
    expect_valid_as(folder / "point.json", "weir.result.2.json");
    EXPECT_EQ(point["check"]["status"], "passed");
    const Json& set = point["set_variables"];
    seen.insert(point["streams"].dump() + set.dump());
    const Json& variables = point["environment"]["variables"];  // as the process itself saw them
    EXPECT_EQ(variables["NCCL_ALGO"], set["NCCL_ALGO"]);
    EXPECT_EQ(variables.contains("NCCL_PROTO"), set["NCCL_PROTO"].is_string());
    EXPECT_EQ(at_path(point, {"processes"}).size(), 1u);
  }
  EXPECT_EQ(seen.size(), 8u);
  EXPECT_TRUE(sweep["scaling"].contains("inline, NCCL_ALGO=Tree NCCL_PROTO=LL128")) << sweep["scaling"].dump();
}

TEST(Env, PointsAreTakenApartByTheirVariables) {
  const Folder folder;
  const std::string file = folder / "s.json";
  const std::vector<std::string> words =
      tiny_sweep("sim:h200", {"--streams", "2", "--env", "NCCL_MAX_NCHANNELS=4,8", "-o", file});
  ASSERT_EQ(weir(words).code, 0);
  const Outcome same = weir({"compare", file, file});
  EXPECT_EQ(same.code, 0) << same.out << same.err;
  EXPECT_TRUE(has(same.out, "NCCL_MAX_NCHANNELS=4")) << same.out;
  EXPECT_TRUE(has(same.out, "NCCL_MAX_NCHANNELS=8")) << same.out;

  // As after a kill: one point is missing.
  Json cut = read_json(file);
  cut["results"].erase(std::size_t{1});
  std::ofstream(file) << cut.dump();
  std::vector<std::string> again = words;
  again.emplace_back("--resume");
  const Outcome rest = weir(again);
  ASSERT_EQ(rest.code, 0) << rest.err;
  EXPECT_TRUE(has(rest.out, "kept")) << rest.out;
  EXPECT_EQ(read_json(file)["results"].size(), 2u);

  // Another set of values does not pair with it.
  ASSERT_EQ(
      weir(tiny_sweep("sim:h200", {"--streams", "2", "--env", "NCCL_MAX_NCHANNELS=16", "-o", folder / "o.json"})).code,
      0);
  const Outcome other = weir({"compare", file, folder / "o.json"});
  EXPECT_NE(other.code, 0);
  EXPECT_TRUE(has(other.out + other.err, "NCCL_MAX_NCHANNELS: ")) << other.out << other.err;

  const Outcome figures = weir({"export", file, "--format", "csv", "--output", folder / "f.csv"});
  ASSERT_EQ(figures.code, 0) << figures.err;
  ASSERT_EQ(weir({"report", file, "-o", folder / "r.html"}).code, 0);
  EXPECT_TRUE(has(file_content(folder / "f.csv"), "NCCL_MAX_NCHANNELS=8"));
  EXPECT_TRUE(has(file_content(folder / "r.html"), "NCCL_MAX_NCHANNELS=8"));
}

TEST(Env, OverlapRunsEachCombinationInItsOwnProcesses) {
  const Folder folder;
  const std::string config = folder / "c.yaml";
  std::ofstream(config) << "env:\n  NCCL_ALGO: [Ring, ~]\n  NCCL_NTHREADS: 256\nsweep:\n  fsdp.prefetch: [0, 1]\n";
  const Outcome outcome = weir(tiny_overlap(config, {"-o", folder / "run"}));
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  for (const char* const point : {"fsdp.prefetch=0,NCCL_ALGO=Ring", "fsdp.prefetch=1,NCCL_ALGO_unset"}) {
    const std::string file = folder / ("run/" + std::string(point) + "/summary.json");
    expect_valid_as(file, "weir.overlap.2.json");
    const Json summary = read_json(file);
    EXPECT_EQ(summary["check"]["status"], "passed");
    EXPECT_EQ(summary["set_variables"]["NCCL_NTHREADS"], "256");
    const Json& variables = summary["environment"]["variables"];
    EXPECT_EQ(variables["NCCL_NTHREADS"], "256");
    EXPECT_EQ(variables.contains("NCCL_ALGO"), summary["set_variables"]["NCCL_ALGO"].is_string());
  }
  EXPECT_TRUE(has(file_content(folder / "run/report.md"), "NCCL_ALGO=Ring")) << "the table";
  const Outcome same = weir({"compare", folder / "run", folder / "run"});
  EXPECT_TRUE(has(same.out, "NCCL_ALGO_unset")) << same.out << same.err;
}

TEST(Env, AFlagReplacesTheConfigsVariable) {
  const Folder folder;
  const std::string config = folder / "c.yaml";
  std::ofstream(config) << "env: {NCCL_ALGO: [Ring, Tree]}\n";
  const Outcome outcome =
      weir(tiny_overlap(config, {"--env", "NCCL_ALGO=CollnetDirect", "--summary", folder / "s.json"}));
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(read_json(folder / "s.json")["set_variables"].dump(), R"({"NCCL_ALGO":"CollnetDirect"})");
  const Outcome none = weir(tiny_overlap(config, {"--no-env", "--summary", folder / "n.json"}));
  ASSERT_EQ(none.code, 0) << none.err;
  EXPECT_FALSE(read_json(folder / "n.json").contains("set_variables"));
}

TEST(Env, SaysWhatIsWrong) {
  struct Refused {
    const char* flag;
    const char* said;
  };
  for (const Refused& refused :
       {Refused{"=1", "not NAME=VALUE,VALUE"}, Refused{"A=1,1", "listed twice"},
        Refused{"LD_PRELOAD=/tmp/x.so", "decides which code runs"}, Refused{"MY_PASSWORD=x", "secret"}}) {
    const Outcome sweep = weir(tiny_sweep("null", {"--env", refused.flag}));
    EXPECT_EQ(sweep.code, 2) << refused.flag;
    EXPECT_TRUE(has(sweep.err, refused.said)) << sweep.err;
    const Outcome overlap = weir(tiny_overlap(config_file("default"), {"--env", refused.flag}));
    EXPECT_EQ(overlap.code, 2) << refused.flag;
    EXPECT_TRUE(has(overlap.err, refused.said)) << overlap.err;
  }
  const Folder folder;
  for (const char* const text : {"env: {A=B: 1}\n", "env: {LD_PRELOAD: x.so}\n", "env: {A: []}\n", "env: {A: {b: c}}\n",
                                 "env: [A]\n", "env: {A: [1, 1]}\n"}) {
    std::ofstream(folder / "c.yaml") << text;
    const Outcome outcome = weir(tiny_overlap(folder / "c.yaml", {}));
    EXPECT_EQ(outcome.code, 2) << text;
    EXPECT_TRUE(has(outcome.err, "c.yaml:1: env")) << outcome.err;
  }
}

TEST(Env, RanksGetTheValuesToo) {
  if (const std::string why = why_no_ranks(); !why.empty()) GTEST_SKIP() << why;
  const Folder folder;
  const Outcome outcome = weir(
      tiny_overlap(config_file("default"), {"--ranks", "2", "--env", "NCCL_ALGO=Ring,Tree", "-o", folder / "run"}));
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const Json summary = read_json(folder / "run/NCCL_ALGO=Tree/summary.json");
  EXPECT_EQ(summary["ranks"]["count"], 2);
  EXPECT_EQ(summary["environment"]["variables"]["NCCL_ALGO"], "Tree");
}

}  // namespace
}  // namespace weir::testing
