// libweir_hip_gate.so before the fake HIP runtime, in a program that is linked with that.
#include <future>

#include "submit/inject/gated_program.h"

#ifdef WEIR_FAKE_HIP_PROGRAM

namespace weir::testing {
namespace {

class HipGateTest : public GatedProgramTest {
 protected:
  Ended program(const std::string& words, const std::string& variables = "") const {
    return run(variables, "env LD_PRELOAD='" WEIR_HIP_GATE "' '" WEIR_FAKE_HIP_PROGRAM "' " + words);
  }
};

TEST_F(HipGateTest, has_no_more_commands_on_the_device_than_it_may_and_loses_no_parameter) {
  start_daemon(2);
  const Ended ended = program("run 40 default 40");
  EXPECT_EQ(ended.status, 0) << ended.output;
  EXPECT_EQ(ended.output.find("wrong"), std::string::npos) << ended.output;
  EXPECT_TRUE(ended.has("values right")) << ended.output;
  EXPECT_LE(ended.number("most"), 3) << ended.output;
}

TEST_F(HipGateTest, alone_a_program_runs_ahead) {
  start_daemon();
  first_.reset();
  const Ended ended = program("run 40");
  EXPECT_EQ(ended.status, 0) << ended.output;
  EXPECT_TRUE(ended.has("values right")) << ended.output;
  EXPECT_GT(ended.number("most"), 3) << ended.output;
}

TEST_F(HipGateTest, launches_are_held_while_another_comes_first) {
  start_daemon();
  occupy();
  auto ended = std::async(std::launch::async, [&] { return program("default 8"); });
  EXPECT_EQ(ended.wait_for(std::chrono::milliseconds(300)), std::future_status::timeout);
  release();
  EXPECT_TRUE(ended.get().has("values right"));
}

// HIP calls its own functions: a launch that is counted twice waits for itself until the gate finds that stuck, and a
// thousand of them take longer than the program may.
TEST_F(HipGateTest, a_launch_is_counted_once_with_one_in_flight) {
  start_daemon(1);
  const Ended ended = program("run 4000 fails default 16");
  EXPECT_EQ(ended.status, 0) << ended.output;
  EXPECT_TRUE(ended.has("failed as they should")) << ended.output;
  EXPECT_LE(ended.number("most"), 2) << ended.output;
}

TEST_F(HipGateTest, captures_are_left_alone) {
  start_daemon(1);
  occupy();
  auto ended = std::async(std::launch::async, [&] { return program("capture 10"); });
  EXPECT_EQ(ended.wait_for(std::chrono::milliseconds(200)), std::future_status::timeout) << "the graph is held";
  release();
  const Ended result = ended.get();
  EXPECT_TRUE(result.has("graph ran")) << result.output;
}

TEST_F(HipGateTest, without_a_daemon_programs_run_as_ever) {
  const Ended ended = program("run 8");
  EXPECT_NE(ended.output.find("weir: the program runs unscheduled: "), std::string::npos) << ended.output;
  EXPECT_TRUE(ended.has("values right")) << ended.output;
  const Ended unasked = program("run 8", "WEIR_SCHED_SOCKET=");
  EXPECT_EQ(unasked.output.find("weir:"), std::string::npos) << unasked.output;
  EXPECT_TRUE(unasked.has("values right")) << unasked.output;
}

}  // namespace
}  // namespace weir::testing

#endif
