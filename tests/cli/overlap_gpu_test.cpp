// `weir overlap` on a real GPU: collectives by NCCL, staged between ranks that share it, and behind a slow network.
// Skipped where there is no GPU.
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>

#include "base/json.h"
#include "cli/program.h"
#include "device/gpu/cuda.h"
#include "device/gpu/gpu.h"

namespace weir::testing {
namespace {

using Words = std::vector<std::string>;

class OverlapGpu : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string reason;
    api_ = cuda_api(&reason);
    if (api_ == nullptr) GTEST_SKIP() << reason;
    if (const auto found = find_gpus(*api_); found.names.empty()) GTEST_SKIP() << found.reason;
  }

  // Runs it into `folder` and returns the summary; null where it failed.
  static Json overlap(const Folder& folder, const Words& more) {
    Words words = {"overlap",  WEIR_SOURCE_DIR "/config/default.yaml",
                   "--device", "cuda:0",
                   "--set",    "run.scale=small",
                   "-o",       folder / "out",
                   "--quiet"};
    words.insert(words.end(), more.begin(), more.end());
    const Outcome made = weir(words);
    EXPECT_EQ(made.code, 0) << made.err << made.out;
    return made.code == 0 ? read_json(folder / "out/summary.json") : Json(nullptr);
  }

  const GpuApi* api_ = nullptr;
};

std::string collectives_of(const Json& summary) { return summary["ranks"]["collectives"].get<std::string>(); }

double number(const Json& value) { return value.is_number() ? value.get<double>() : std::nan(""); }

// What holds of every run, whatever carries its collectives.
void expect_sound(const Json& summary) {
  EXPECT_EQ(summary["status"], "complete");
  EXPECT_TRUE(summary["failure"].is_null()) << summary["failure"].dump();
  EXPECT_EQ(summary["check"]["status"], "passed") << summary["check"].dump();
  ASSERT_FALSE(summary["losses"].is_null());
  EXPECT_GE(summary["losses"].size(), 20u);
  for (const Json& loss : summary["losses"]) EXPECT_TRUE(std::isfinite(number(loss))) << loss.dump();
  EXPECT_EQ(summary["per_rank"].size(), summary["ranks"]["count"].get<std::size_t>());
  for (const Json& rank : summary["per_rank"])
    for (const char* pass : {"overlapped", "serial", "compute_alone", "communication_alone"}) {
      const Json& times = rank[pass];
      ASSERT_TRUE(times.is_object()) << pass;
      const double span = number(times["span_ns"]), communication = number(times["communication_ns"]);
      EXPECT_GT(span, 0) << pass;
      EXPECT_NEAR(number(times["busy_ns"]) + number(times["idle_ns"]), span, 0.01 * span) << pass;
      if (std::string_view(pass) == "compute_alone") continue;
      EXPECT_GT(communication, 0) << pass;
      EXPECT_NEAR(number(times["hidden_ns"]) + number(times["exposed_ns"]), communication, 0.001 * communication)
          << pass;
    }
  const Json& overlap = summary["overlap"];
  EXPECT_NEAR(number(overlap["hidden_ns"]) + number(overlap["exposed_ns"]), number(overlap["communication_ns"]),
              0.001 * number(overlap["communication_ns"]));
}

// Of one device each; in the order of ranks.
void expect_same_in_trace(const Folder& folder, const Json& summary) {
  const Outcome analyzed = weir({"analyze", folder / "out/trace.json", "--json"});
  ASSERT_EQ(analyzed.code, 0) << analyzed.err;
  const Json document = parse_json(analyzed.out, "analysis");
  double hidden = 0, communication = 0;
  for (const Json& device : document["devices"]) {
    if (!device["overlap"].is_object()) continue;
    hidden += number(device["overlap"]["hidden_ns"]);
    communication += number(device["overlap"]["communication_ns"]);
  }
  ASSERT_GT(communication, 0);
  EXPECT_NEAR(hidden / communication, number(summary["overlap"]["efficiency"]), 0.02);
}

TEST_F(OverlapGpu, one_rank_by_nccl) {
  if (std::string reason; api_->collectives(&reason) == nullptr) GTEST_SKIP() << reason;
  const Folder folder;
  const Json summary = overlap(folder, {});
  ASSERT_TRUE(summary.is_object());
  EXPECT_TRUE(collectives_of(summary).starts_with("NCCL")) << collectives_of(summary);
  expect_sound(summary);
  expect_same_in_trace(folder, summary);
  RecordProperty("efficiency", summary["overlap"]["efficiency"].dump());
}

// The global batch is the same, and so are the first parameters.
TEST_F(OverlapGpu, two_ranks_share_a_gpu) {
  if (run_program({"mpirun", "--version"}).code != 0) GTEST_SKIP() << "there is no mpirun";
  if (!std::filesystem::exists(std::filesystem::path(WEIR_BINARY).parent_path() / "libweir_mpi.so"))
    GTEST_SKIP() << "libweir_mpi.so was not built: no MPI";
  const Folder one_folder, two_folder;
  const Json one = overlap(one_folder, {}), two = overlap(two_folder, {"--ranks", "2"});
  ASSERT_TRUE(one.is_object() && two.is_object());
  EXPECT_NE(collectives_of(two).find("staged through host memory: NCCL needs a GPU per rank"), std::string::npos)
      << collectives_of(two);
  expect_sound(two);
  expect_same_in_trace(two_folder, two);
  ASSERT_EQ(one["losses"].size(), two["losses"].size());
  for (std::size_t i = 0; i < one["losses"].size(); ++i) {
    const double expected = number(one["losses"][i]);
    EXPECT_NEAR(number(two["losses"][i]), expected, 1e-3 * std::fabs(expected)) << "step " << i;
  }
}

TEST_F(OverlapGpu, a_slow_network_is_hidden_better_than_serially) {
  const Folder folder;
  const Json summary = overlap(folder, {"--set", "network.latency_us=500"});
  ASSERT_TRUE(summary.is_object());
  EXPECT_NE(collectives_of(summary).find("staged through host memory: it was asked for"), std::string::npos)
      << collectives_of(summary);
  expect_sound(summary);
  expect_same_in_trace(folder, summary);
  EXPECT_GT(number(summary["overlap"]["efficiency"]), number(summary["overlap"]["serial_efficiency"]));
  // Of the longest stretches of communication none is shorter than the latency.
  EXPECT_GE(number(summary["overlap"]["communication_alone_ns"]), 500'000);
}

// A step without ranks, in the precisions that it has.
TEST_F(OverlapGpu, ranking_transformer_checks_out) {
  for (const char* precision : {"fp32", "bf16"})
    for (const char* submit : {"inline", "graph"}) {
      const Folder folder;
      const Outcome made =
          weir({"run", "ranking_transformer", "--device", "cuda:0", "--scale", "small", "--precision", precision,
                "--submit", submit, "--iterations", "5", "--warmup", "1", "--quiet", "-o", folder / "r.json"});
      ASSERT_EQ(made.code, 0) << precision << ", " << submit << ": " << made.err;
      const Json result = read_json(folder / "r.json");
      EXPECT_EQ(result["check"]["status"], "passed") << precision << ", " << submit << ": " << result["check"].dump();
    }
}

}  // namespace
}  // namespace weir::testing
