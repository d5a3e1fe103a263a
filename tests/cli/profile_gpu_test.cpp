// `weir profile` on a real GPU: the traced pass, and this very program as "any program" under the injection library.
// Skipped where there is no GPU or no CUPTI.
#include <gtest/gtest.h>

#include <map>

#include "base/json.h"
#include "cli/program.h"
#include "device/gpu/cuda.h"
#include "device/gpu/gpu.h"

namespace weir::testing {
namespace {

class ProfileGpu : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string reason;
    const GpuApi* const api = cuda_api(&reason);
    if (api == nullptr) GTEST_SKIP() << reason;
    if (const auto found = find_gpus(*api); found.names.empty()) GTEST_SKIP() << found.reason;
    if (api->activity(&reason) == nullptr) GTEST_SKIP() << reason;
  }
  static std::map<std::string, int> categories(const std::string& file) {
    std::map<std::string, int> count;
    const Json trace = read_json(file);
    for (const Json& event : trace["traceEvents"]) ++count[event["cat"].get<std::string>()];
    return count;
  }
};

TEST_F(ProfileGpu, traces_every_command_of_a_workload) {
  for (const bool has_latency : {false, true}) {
    const Folder folder;
    std::vector<std::string> words = {
        "profile", "tiny_kernel_stress",  "--device", "cuda", "--streams",      "8", "--iterations",
        "20",      "--traced-iterations", "5",        "-o",   folder / "t.json"};
    if (has_latency) words.push_back("--latency-timestamps");
    words.push_back("--json");
    const Outcome made = weir(words);
    ASSERT_EQ(made.code, 0) << made.err;
    const Json document = parse_json(made.out, "profile");
    const int commands = document["run"]["commands_per_iteration"].get<int>() * 5;
    auto count = categories(folder / "t.json");
    EXPECT_EQ(count["kernel"] + count["gpu_memcpy"], commands);
    EXPECT_EQ(document["devices"][0]["commands"], commands);
    EXPECT_GE(document["devices"][0]["queues"].get<int>(), 1);
    EXPECT_FALSE(document["tracing"]["cost_ns_per_command"].is_null());
    RecordProperty(has_latency ? "latency_ns_per_command" : "cost_ns_per_command",
                   document["tracing"]["cost_ns_per_command"].dump());
  }
}

TEST_F(ProfileGpu, captures_another_program) {
  const Folder folder;
  const Outcome made = weir({"profile",
                             "--json",
                             "-o",
                             folder / "t.json",
                             "--",
                             WEIR_BINARY,
                             "run",
                             "tiny_kernel_stress",
                             "--device",
                             "cuda",
                             "--streams",
                             "8",
                             "--iterations",
                             "10",
                             "--warmup",
                             "0",
                             "--no-trace",
                             "--no-check",
                             "--quiet",
                             "-o",
                             folder / "r.json"});
  ASSERT_EQ(made.code, 0) << made.err;
  const Json document = parse_json(made.out, "profile");
  const int commands = read_json(folder / "r.json")["commands_per_iteration"].get<int>() * 10;
  // At least: preparing launches things as well.
  EXPECT_GE(document["devices"][0]["kinds"]["kernel"].get<int>(), commands);
  EXPECT_GE(document["devices"][0]["queues"].get<int>(), 1);
  EXPECT_TRUE(document["dropped"].empty()) << document["dropped"].dump();
  auto count = categories(folder / "t.json");
  EXPECT_GE(count["cuda_runtime"], commands);
}

}  // namespace
}  // namespace weir::testing
