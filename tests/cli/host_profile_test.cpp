// Drives `weir run --host-profile`: with a perf of the test's own, whose words are known, and with the real one where
// it may record.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "base/json.h"
#include "cli/program.h"
#include "cli/queues_checks.h"

namespace weir::testing {
namespace {

constexpr const char* kFakePerf = R"(#!/bin/sh
# perf record ... -o DATA ... --control fifo:COMMANDS,ANSWERS | perf script -i DATA ...
if [ "$1" = record ]; then
  while [ $# -gt 0 ]; do
    case $1 in
      -o) data=$2 ;;
      --control) pipes=${2#fifo:} ;;
    esac
    shift
  done
  [ -z "$FAKE_PERF_DENIES" ] || { printf 'Error:\nAccess to performance monitoring is limited.\n' >&2; exit 255; }
  trap 'echo data > "$data"; exit 0' INT
  exec 3<>"${pipes%,*}" 4<>"${pipes#*,}"
  while :; do
    read -r command <&3 && echo "$command" >> "$FAKE_PERF_LOG" && printf 'ack\n\0' >&4
  done
fi
[ -z "$FAKE_PERF_BREAKS" ] || { echo 'no symbols today' >&2; exit 1; }
printf 'weir  7 \n\t 1f spin (/usr/bin/weir)\n\t 2f main (/usr/bin/weir)\n\n'
printf 'weir  7 \n\t 1f spin (/usr/bin/weir)\n\t 2f main (/usr/bin/weir)\n\n'
printf 'worker  8 \n\t 3f [unknown] (/usr/lib/libcuda.so)\n\n'
)";

// Puts the fake first on PATH until the end of the test.
class HostProfile : public ::testing::Test {
 protected:
  void SetUp() override {
    path_ = std::getenv("PATH");
    const std::string perf = folder_ / "bin/perf";
    std::filesystem::create_directory(folder_ / "bin");
    std::ofstream(perf) << kFakePerf;
    std::filesystem::permissions(perf, std::filesystem::perms::owner_all);
    ::setenv("PATH", ((folder_ / "bin:") + path_).c_str(), 1);
    ::setenv("FAKE_PERF_LOG", (folder_ / "log").c_str(), 1);
  }
  void TearDown() override {
    ::setenv("PATH", path_.c_str(), 1);
    for (const char* name : {"FAKE_PERF_LOG", "FAKE_PERF_DENIES", "FAKE_PERF_BREAKS"}) ::unsetenv(name);
  }
  Outcome run(const std::string& file, std::vector<std::string> more = {}) const {
    std::vector<std::string> words = {"run", "hetero_kernels", "--device", "cpu", "--scale",    "tiny", "--iterations",
                                      "5",   "--host-profile", file,       "-o",  "result.json"};
    words.insert(words.end(), more.begin(), more.end());
    return weir(words, folder_.path());
  }
  std::string text_of(const std::string& name) const {
    std::ifstream in(folder_ / name);
    return {std::istreambuf_iterator<char>(in), {}};
  }

  const Folder folder_;
  std::string path_;
};

TEST_F(HostProfile, writes_folded_stacks_of_a_run_of_its_own) {
  const Outcome outcome = run("host.folded");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(text_of("host.folded"), "weir;main;spin 2\nworker;[libcuda.so] 1\n");
  EXPECT_TRUE(has(outcome.out, "Host profile of 3 samples written to host.folded")) << outcome.out;
  expect_valid_as(folder_ / "result.json", "weir.result.2.json");
  const Json result = read_json(folder_ / "result.json");
  EXPECT_EQ(result["metrics"]["host_profile"]["samples"], 3);
  EXPECT_EQ(result["metrics"]["host_profile"]["hz"], 997);
  EXPECT_EQ(result["samples"]["latency_ns"].size(), 5u) << "the samples are those of the run that nobody watched";
  // Attached while off, on for the measuring, off again.
  EXPECT_EQ(text_of("log"), "disable\nenable\ndisable\n");
}

TEST_F(HostProfile, of_channels_is_taken_once_more) {
  const Outcome outcome = weir({"channel", "error_path/push_full/spsc", "--only", "--quick", "--host-profile",
                                "host.folded", "-o", "channel.json"},
                               folder_.path());
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(text_of("host.folded"), "weir;main;spin 2\nworker;[libcuda.so] 1\n");
  EXPECT_TRUE(has(outcome.out, "Host profile of 3 samples written to host.folded")) << outcome.out;
  expect_valid_as(folder_ / "channel.json", "weir.channel.2.json");
  const Json document = read_json(folder_ / "channel.json");
  EXPECT_EQ(document["host_profile"]["samples"], 3);
  EXPECT_EQ(document["benchmarks"][0]["processes"].size(), 2u) << "the samples are of processes that nobody watched";
  EXPECT_EQ(text_of("log"), "disable\nenable\ndisable\n");
}

TEST_F(HostProfile, draws_a_flame_graph_where_the_name_says_so) {
  ASSERT_EQ(run("host.svg").code, 0);
  const std::string svg = text_of("host.svg");
  EXPECT_TRUE(svg.starts_with("<svg ")) << svg;
  EXPECT_TRUE(has(svg, "<title>spin: 2 samples, 66.67 %</title>")) << svg;
}

TEST_F(HostProfile, what_perf_refuses_is_told_and_the_result_stays) {
  ::setenv("FAKE_PERF_DENIES", "1", 1);
  const Outcome denied = run("host.folded");
  EXPECT_EQ(denied.code, 0) << denied.err;
  EXPECT_TRUE(has(denied.out, "! there is no host profile: perf cannot record this process")) << denied.out;
  const Json result = read_json(folder_ / "result.json");
  EXPECT_TRUE(result["metrics"]["host_profile"].is_null());
  EXPECT_EQ(result["unavailable"]["metrics.host_profile"],
            "perf cannot record this process: Access to performance monitoring is limited");
  expect_valid_as(folder_ / "result.json", "weir.result.2.json");
  EXPECT_FALSE(std::filesystem::exists(folder_ / "host.folded"));
  ::unsetenv("FAKE_PERF_DENIES");
  ::setenv("FAKE_PERF_BREAKS", "1", 1);
  const Outcome broken = run("host.folded", {"--force"});
  EXPECT_TRUE(has(broken.out, "no symbols today")) << broken.out;
}

TEST_F(HostProfile, without_perf_it_says_what_to_install) {
  ::setenv("PATH", (folder_ / "nothing").c_str(), 1);
  const Outcome outcome = run("host.folded");
  ::setenv("PATH", path_.c_str(), 1);
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_TRUE(has(outcome.out, "perf is not installed")) << outcome.out;
}

TEST_F(HostProfile, bad_requests_are_refused_before_anything_runs) {
  std::ofstream(folder_ / "there.svg") << "mine";
  EXPECT_EQ(run("there.svg").code, 2);
  EXPECT_EQ(text_of("there.svg"), "mine");
  const Outcome dry = weir({"run", "moe", "--device", "cpu", "--dry-run", "--host-profile", folder_ / "x"});
  EXPECT_EQ(dry.code, 2);
  EXPECT_TRUE(has(dry.err, "--host-profile")) << dry.err;
}

TEST(HostProfileOfPerf, the_real_one_sees_our_own_functions) {
  const Folder folder;
  const Outcome outcome = weir({"run", "hetero_kernels", "--device", "cpu", "--scale", "tiny", "--host-profile",
                                "host.folded", "-o", "result.json"},
                               folder.path());
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const Json profile = read_json(folder / "result.json");
  if (profile["metrics"]["host_profile"].is_null())
    GTEST_SKIP() << profile["unavailable"]["metrics.host_profile"].get<std::string>();
  std::ifstream in(folder / "host.folded");
  const std::string text(std::istreambuf_iterator<char>(in), {});
  EXPECT_TRUE(has(text, "weir")) << text.substr(0, 2000);
}

}  // namespace
}  // namespace weir::testing
