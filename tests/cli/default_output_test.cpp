// A second identical command must not fail because the first one wrote its default output; a name that was given keeps
// its protection.
#include <gtest/gtest.h>

#include <fstream>

#include "base/json.h"
#include "cli/program.h"
#include "weir_build.h"

namespace weir::testing {
namespace {

namespace fs = std::filesystem;

struct Default {
  const char* name;
  std::vector<std::string> command;
  const char* first;
  const char* second;
};

class DefaultOutput : public ::testing::TestWithParam<Default> {};

TEST_P(DefaultOutput, is_numbered_where_it_is_taken_and_replaced_by_force) {
  const auto& [name, command, first, second] = GetParam();
  if (std::string(name) == "report" && !WEIR_HAVE_HTML)
    GTEST_SKIP() << "this program was built without the report's page";
  const Folder folder;
  ASSERT_EQ(weir({"run", "tiny_kernel_stress", "--device", "sim:h200", "--scale", "tiny", "-q", "-o", "run.json"},
                 folder.path())
                .code,
            0);
  const auto run = [&](std::vector<std::string> more = {}) {
    more.insert(more.begin(), command.begin(), command.end());
    const Outcome outcome = weir(more, folder.path());
    EXPECT_EQ(outcome.code, 0) << outcome.err;
  };
  run();
  ASSERT_TRUE(fs::exists(folder / first)) << first;
  EXPECT_FALSE(fs::exists(folder / second));
  const auto written = fs::last_write_time(folder / first) - std::chrono::hours(1);
  fs::last_write_time(folder / first, written);
  run();
  EXPECT_TRUE(fs::exists(folder / second)) << second;
  EXPECT_EQ(fs::last_write_time(folder / first), written);
  run({"--force"});
  EXPECT_NE(fs::last_write_time(folder / first), written);
}

INSTANTIATE_TEST_SUITE_P(
    Commands, DefaultOutput,
    ::testing::Values(Default{"sweep",
                              {"sweep", "tiny_kernel_stress", "--device", "sim:h200", "--scale", "tiny", "--streams",
                               "1"},
                              "results/sweep-tiny_kernel_stress-sim-h200.json",
                              "results/sweep-tiny_kernel_stress-sim-h200-2.json"},
                      Default{"queues_sweep",
                              {"queues", "sweep", "tiny_kernel_stress", "--device", "sim:h200", "--scale", "tiny",
                               "--streams", "1", "--hw-queues", "1", "--processes", "1"},
                              "results/queues-sweep-tiny_kernel_stress-sim-h200.json",
                              "results/queues-sweep-tiny_kernel_stress-sim-h200-2.json"},
                      Default{"run_class",
                              {"run", "P0", "--device", "sim:h200", "--scale", "tiny", "--no-trace"},
                              "results/P0/hetero_kernels.json",
                              "results/P0-2/hetero_kernels.json"},
                      Default{"profile",
                              {"profile", "tiny_kernel_stress", "--device", "sim:h200", "--scale", "tiny"},
                              "tiny_kernel_stress.trace.json",
                              "tiny_kernel_stress-2.trace.json"},
                      Default{"report", {"report", "run.json"}, "report.html", "report-2.html"},
                      Default{"overlap",
                              {"overlap", "default", "--device", "sim:h200", "--set", "run.scale=tiny"},
                              "results/overlap-default/summary.json",
                              "results/overlap-default-2/summary.json"}),
    [](const ::testing::TestParamInfo<Default>& parameter) { return parameter.param.name; });

TEST(DefaultOutput, resume_continues_the_newest) {
  const Folder folder;
  const std::vector<std::string> command = {"sweep", "tiny_kernel_stress", "--device", "sim:h200", "--scale",
                                            "tiny",  "--streams",          "1,2"};
  const fs::path first = folder / "results/sweep-tiny_kernel_stress-sim-h200.json",
                 second = folder / "results/sweep-tiny_kernel_stress-sim-h200-2.json";
  for (int i = 0; i < 2; ++i) ASSERT_EQ(weir(command, folder.path()).code, 0);
  // As after a kill. Clocks of file systems may be coarse.
  Json cut = read_json(second);
  cut["results"].erase(1);
  std::ofstream(second) << cut.dump();
  fs::last_write_time(first, fs::last_write_time(second) - std::chrono::seconds(1));
  const auto before = fs::last_write_time(first);
  std::vector<std::string> resumed = command;
  resumed.emplace_back("--resume");
  const Outcome outcome = weir(resumed, folder.path());
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(fs::last_write_time(first), before);
  EXPECT_EQ(read_json(second)["results"].size(), 2u);
  EXPECT_EQ(std::distance(fs::directory_iterator(folder / "results"), fs::directory_iterator()), 2);
}

TEST(DefaultOutput, a_name_that_was_given_is_protected) {
  const Folder folder;
  std::ofstream(folder / "mine.json") << "precious";
  for (const std::vector<std::string>& command : {std::vector<std::string>{"sweep", "tiny_kernel_stress"},
                                                  {"queues", "sweep", "tiny_kernel_stress"},
                                                  {"profile", "tiny_kernel_stress"}}) {
    std::vector<std::string> whole = command;
    whole.insert(whole.end(), {"--device", "sim:h200", "--scale", "tiny", "-o", folder / "mine.json"});
    EXPECT_EQ(weir(whole, folder.path()).code, 2) << command[0];
  }
}

}  // namespace
}  // namespace weir::testing
