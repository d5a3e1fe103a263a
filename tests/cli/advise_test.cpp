// weir advise as a user types it: the document, the text, proofs and their record, messages.
#include <gtest/gtest.h>
#include <weir_build.h>

#include <fstream>

#include "base/json.h"
#include "cli/program.h"

namespace weir::testing {
namespace {

class Advise : public ::testing::Test {
 protected:
  void SetUp() override {
    const Outcome outcome = weir({"profile", "speculative_decode", "--device", "sim:h200", "--streams", "8", "--scale",
                                  "tiny", "--iterations", "4", "--warmup", "1", "-o", "trace.json"},
                                 folder.path());
    ASSERT_EQ(outcome.code, 0) << outcome.err;
  }
  const Folder folder;
};

TEST_F(Advise, says_what_to_do_first_and_what_it_rests_on) {
  const Outcome outcome = weir({"advise", "trace.json"}, folder.path());
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_NE(outcome.out.find("1. Launches as graphs: "), std::string::npos) << outcome.out;
  EXPECT_NE(outcome.out.find("What can be done"), std::string::npos);
  EXPECT_NE(outcome.out.find("--untraced"), std::string::npos);
  for (std::size_t at = 0; at < outcome.out.size();) {
    const std::size_t end = std::min(outcome.out.find('\n', at), outcome.out.size());
    EXPECT_LE(end - at, 80u) << outcome.out.substr(at, end - at);
    at = end + 1;
  }
}

TEST_F(Advise, writes_its_document) {
  ASSERT_EQ(weir({"advise", "trace.json", "-o", "advice.json"}, folder.path()).code, 0);
  expect_valid_as(folder / "advice.json", "weir.advice.1.json");
  const Json advice = read_json(folder / "advice.json");
  EXPECT_LT(std::abs(advice["replay"]["error"].get<double>()), 0.001);
  EXPECT_TRUE(advice["proof"].is_null());
  EXPECT_TRUE(advice["untraced"].is_null());
  const Json& first = advice["predictions"][advice["advised"][0].get<std::size_t>()];
  EXPECT_EQ(first["kind"].get<std::string>(), "graphs");
  EXPECT_GT(first["gain"].get<double>(), 0.02);
}

TEST_F(Advise, is_about_the_program_without_its_profiler_if_told_how_long_that_takes) {
  ASSERT_EQ(weir({"advise", "trace.json", "-o", "traced.json"}, folder.path()).code, 0);
  const double step_ns = read_json(folder / "traced.json")["step_ns"].get<double>();
  const std::string untraced = std::to_string(0.8e-6 * step_ns) + "ms";
  ASSERT_EQ(weir({"advise", "trace.json", "--untraced", untraced, "-o", "advice.json"}, folder.path()).code, 0);
  const Json advice = read_json(folder / "advice.json");
  EXPECT_NEAR(advice["step_ns"].get<double>(), 0.8 * step_ns, 0.001 * step_ns);
  EXPECT_LT(advice["untraced"]["host_factor"].get<double>(), 1);
}

TEST_F(Advise, proves_a_variable_and_keeps_how_often_it_was_right) {
  std::ofstream(folder / "program") << "#!/bin/sh\necho step: 10.$CUDA_DEVICE_MAX_CONNECTIONS\n";
  for (int proven = 1; proven <= 2; ++proven) {
    const Outcome outcome = weir({"advise", "trace.json", "--prove", "--metric", "step: ([0-9.]+)", "--trials", "3",
                                  "--db", "proofs.db", "--force", "-o", "advice.json", "--", "sh", "program"},
                                 folder.path());
    ASSERT_EQ(outcome.code, 0) << outcome.err;
    expect_valid_as(folder / "advice.json", "weir.advice.1.json");
    const Json proof = read_json(folder / "advice.json")["proof"];
    EXPECT_EQ(proof["setting"].get<std::string>().substr(0, 28), "CUDA_DEVICE_MAX_CONNECTIONS=");
    EXPECT_LT(std::abs(proof["measured_gain"].get<double>()), 0.04);
#if WEIR_HAVE_SQLITE
    EXPECT_EQ(proof["record"]["proven"].get<int>(), proven);
#endif
  }
}

TEST_F(Advise, says_what_to_type) {
  const auto message = [&](std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), "advise");
    const Outcome outcome = weir(arguments, folder.path());
    EXPECT_EQ(outcome.code, 2) << outcome.out;
    return outcome.err;
  };
  EXPECT_NE(message({}).find("weir advise trace.json"), std::string::npos);
  EXPECT_NE(message({"trace.json", "--prove"}).find("-- python3 train.py"), std::string::npos);
  EXPECT_NE(message({"trace.json", "--", "true"}).find("--prove"), std::string::npos);
  EXPECT_NE(message({"trace.json", "--db", "a.db"}).find("--prove"), std::string::npos);
  EXPECT_NE(message({"trace.json", "--untraced", "soon"}).find("--untraced soon"), std::string::npos);
  EXPECT_NE(message({"trace.json", "--queues", "0"}).find("--queues 0"), std::string::npos);
}

// Without calls of the host nobody knows what commands waited for.
TEST(AdviseInput, gives_none_where_the_trace_does_not_show_causes) {
  const Folder folder;
  std::ofstream(folder / "kernels.csv")
      << "\"Kind\",\"Agent_Id\",\"Queue_Id\",\"Stream_Id\",\"Thread_Id\",\"Dispatch_Id\",\"Kernel_Id\",\"Kernel_Name\","
         "\"Correlation_Id\",\"Start_Timestamp\",\"End_Timestamp\"\n"
      << "\"KERNEL_DISPATCH\",\"Agent 4\",1,0,1,1,10,\"fill\",1,1000,2000\n"
      << "\"KERNEL_DISPATCH\",\"Agent 4\",1,0,1,2,10,\"fill\",2,3000,4000\n";
  const Outcome outcome = weir({"advise", "kernels.csv"}, folder.path());
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_NE(outcome.out.find("No advice: the trace has no calls of the host"), std::string::npos) << outcome.out;
}

}  // namespace
}  // namespace weir::testing
