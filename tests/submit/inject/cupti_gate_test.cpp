// libweir_cupti.so in a program on the fake CUDA driver, under a daemon of the test's.
#include <atomic>
#include <future>
#include <thread>

#include "submit/inject/gated_program.h"

#ifdef WEIR_FAKE_GATE_PROGRAM

namespace weir::testing {
namespace {

class CuptiGateTest : public GatedProgramTest {
 protected:
  Ended program(const std::string& words, const std::string& variables = "") const {
    return run("CUDA_INJECTION64_PATH='" WEIR_CUPTI_MODULE "' WEIR_CUPTI_LIBRARY='" WEIR_FAKE_CUPTI "' " + variables,
               "'" WEIR_FAKE_GATE_PROGRAM "' " + words);
  }
};

TEST_F(CuptiGateTest, has_no_more_commands_on_the_device_than_it_may) {
  start_daemon(2);
  const Ended ended = program("run 100 50 streams 40 50");
  EXPECT_EQ(ended.status, 0) << ended.output;
  EXPECT_EQ(ended.number("ended"), 140) << ended.output;
  EXPECT_LE(ended.number("most"), 2) << ended.output;
  EXPECT_TRUE(ended.has("events some")) << ended.output;
  EXPECT_TRUE(ended.has("misuse none")) << ended.output;
}

TEST_F(CuptiGateTest, alone_a_program_runs_ahead_and_makes_no_events) {
  start_daemon();
  first_.reset();
  const Ended ended = program("run 100 50");
  EXPECT_EQ(ended.status, 0) << ended.output;
  EXPECT_EQ(ended.number("ended"), 100);
  EXPECT_GT(ended.number("most"), 2) << ended.output;
  EXPECT_TRUE(ended.has("events none")) << ended.output;
}

TEST_F(CuptiGateTest, launches_are_held_while_another_comes_first) {
  start_daemon();
  occupy();
  auto ended = std::async(std::launch::async, [&] { return program("run 5 10"); });
  EXPECT_EQ(ended.wait_for(std::chrono::milliseconds(300)), std::future_status::timeout);
  release();
  EXPECT_TRUE(ended.get().has("ended 5"));
}

TEST_F(CuptiGateTest, every_kind_of_launch_counts_on_default_streams_too) {
  start_daemon(1);
  const Ended ended = program("kinds threads 20 20");
  EXPECT_EQ(ended.status, 0) << ended.output;
  EXPECT_EQ(ended.number("ended"), 4 * 8 + 4 * 20) << ended.output;
  EXPECT_EQ(ended.number("most"), 1) << ended.output;
  EXPECT_TRUE(ended.has("misuse none")) << ended.output;
}

TEST_F(CuptiGateTest, copies_that_the_host_waits_for_are_held_too) {
  start_daemon(1);
  occupy();
  auto ended = std::async(std::launch::async, [&] { return program("copies 5 run 5 10"); });
  EXPECT_EQ(ended.wait_for(std::chrono::milliseconds(300)), std::future_status::timeout);
  release();
  const Ended last = ended.get();
  EXPECT_TRUE(last.has("ended 10")) << last.output;
  EXPECT_TRUE(last.has("misuse none")) << last.output;
}

TEST_F(CuptiGateTest, captures_are_left_alone_and_a_graph_is_one_command) {
  start_daemon(2);
  const Ended ended = program("capture 20");
  EXPECT_EQ(ended.status, 0) << ended.output;
  EXPECT_TRUE(ended.has("graph of 20")) << ended.output;
  EXPECT_LE(ended.number("most"), 2) << ended.output;
  EXPECT_TRUE(ended.has("misuse none")) << ended.output;
}

TEST_F(CuptiGateTest, failed_launches_leave_nothing_behind) {
  start_daemon(1);
  const Ended ended = program("fails run 5 10");
  EXPECT_EQ(ended.status, 0) << ended.output;
  EXPECT_TRUE(ended.has("failed as they should")) << ended.output;
  EXPECT_TRUE(ended.has("ended 5")) << ended.output;
}

TEST_F(CuptiGateTest, streams_and_contexts_may_go_with_work_in_them) {
  start_daemon(2);
  const Ended ended = program("destroy run 5 10 reset destroy reset run 5 10");
  EXPECT_EQ(ended.status, 0) << ended.output;
  EXPECT_EQ(ended.number("ended"), 2 * 10 + 2 * 5 + 2) << ended.output;
  EXPECT_TRUE(ended.has("misuse none")) << ended.output;
}

TEST_F(CuptiGateTest, other_devices_are_not_held) {
  start_daemon();
  occupy();
  const Ended ended = program("second 20 10");  // would not end
  release();
  EXPECT_EQ(ended.status, 0) << ended.output;
  EXPECT_TRUE(ended.has("ended 20")) << ended.output;
  EXPECT_TRUE(ended.has("events none")) << ended.output;
}

TEST_F(CuptiGateTest, a_driver_that_fails_leaves_the_program_unharmed) {
  start_daemon(1);
  for (const char* what : {"make", "record", "query"}) {
    const Ended ended = program("run 50 10", std::string("FAKE_DRIVER_FAILS=") + what);
    EXPECT_EQ(ended.status, 0) << what << ended.output;
    EXPECT_TRUE(ended.has("ended 50")) << what << ended.output;
  }
}

TEST_F(CuptiGateTest, a_child_that_is_forked_is_not_held) {
  start_daemon();
  occupy();
  const Ended ended = program("fork");  // the parent itself launches nothing
  release();
  EXPECT_EQ(ended.status, 0) << ended.output;
  EXPECT_TRUE(ended.has("child 0")) << ended.output;
}

TEST_F(CuptiGateTest, a_program_exits_while_it_is_held) {
  start_daemon();
  occupy();
  const Ended ended = program("exits");
  release();
  EXPECT_EQ(ended.status, 0) << ended.output;
  EXPECT_TRUE(ended.has("leaves")) << ended.output;
}

TEST_F(CuptiGateTest, goes_on_when_the_daemon_is_gone) {
  start_daemon();
  occupy();
  auto ended = std::async(std::launch::async, [&] { return program("run 20 10"); });
  EXPECT_EQ(ended.wait_for(std::chrono::milliseconds(200)), std::future_status::timeout);
  server_.reset();
  EXPECT_TRUE(ended.get().has("ended 20"));
}

TEST_F(CuptiGateTest, runs_unscheduled_and_says_why) {
  const std::string no_daemon = program("run 5 10").output;
  EXPECT_NE(no_daemon.find("weir: the program runs unscheduled: "), std::string::npos) << no_daemon;
  EXPECT_NE(no_daemon.find("ended 5\n"), std::string::npos) << no_daemon;
  start_daemon(1);
  const Ended taken = program("run 5 10", "FAKE_CUPTI_TAKEN=1");
  EXPECT_NE(taken.output.find("MULTIPLE_SUBSCRIBERS"), std::string::npos) << taken.output;
  EXPECT_TRUE(taken.has("ended 5")) << taken.output;
  const Ended refused = program("run 5 10", "FAKE_CUPTI_REFUSES=1");
  EXPECT_NE(refused.output.find("launches cannot be followed"), std::string::npos) << refused.output;
  EXPECT_TRUE(refused.has("ended 5")) << refused.output;
  const Ended no_cupti = program("run 5 10", "WEIR_CUPTI_LIBRARY=/nowhere/libcupti.so");
  EXPECT_NE(no_cupti.output.find("CUPTI was not found"), std::string::npos) << no_cupti.output;
  EXPECT_TRUE(no_cupti.has("ended 5")) << no_cupti.output;
  const Ended terms = program("run 5 10", "WEIR_SCHED_TERMS=nonsense");
  EXPECT_NE(terms.output.find("WEIR_SCHED_TERMS"), std::string::npos) << terms.output;
  EXPECT_TRUE(terms.has("ended 5")) << terms.output;
}

// In a part of the device kernels run beside the one that comes first, and everything keeps its order.
class PartTest : public CuptiGateTest {
 protected:
  Ended preloaded(const std::string& words, const std::string& variables = "") const {
    return program(words, "LD_PRELOAD='" WEIR_CUPTI_MODULE "' " + variables);
  }
  void start_confining_daemon() {
    static const scheduler::Mechanism kConfines = {
        .name = "partition", .summary = {}, .notice = {}, .open = {}, .confines = true};
    mechanism_ = &kConfines;
    start_daemon();
  }
};

TEST_F(PartTest, kernels_and_graphs_run_beside_and_keep_their_order) {
  start_confining_daemon();
  occupy();  // for the whole time: nothing would be launched
  const Ended ended = preloaded("ordered 60 100");
  release();
  EXPECT_EQ(ended.status, 0) << ended.output;
  EXPECT_TRUE(ended.has("order kept")) << ended.output;
  EXPECT_TRUE(ended.has("all ran")) << ended.output;
  EXPECT_GT(ended.number("in part"), 300) << ended.output;
  EXPECT_TRUE(ended.has("misuse none")) << ended.output;
}

TEST_F(PartTest, changes_between_part_and_whole_keep_the_order) {
  start_confining_daemon();
  std::atomic<bool> is_over{false};
  std::thread comes_and_goes([&] {
    for (int i = 0; !is_over; ++i) {
      occupy();
      std::this_thread::sleep_for(std::chrono::microseconds(300 + i % 7 * 400));
      release();
      std::this_thread::sleep_for(std::chrono::microseconds(300 + i % 5 * 700));
    }
  });
  const Ended ended = preloaded("ordered-changes 200 100");
  is_over = true;
  comes_and_goes.join();
  EXPECT_EQ(ended.status, 0) << ended.output;
  EXPECT_TRUE(ended.has("order kept")) << ended.output;
  EXPECT_TRUE(ended.has("all ran")) << ended.output;
  EXPECT_GT(ended.number("in part"), 0) << ended.output;
  EXPECT_TRUE(ended.has("misuse none")) << ended.output;
}

// While it is alone on the device nothing is counted, and still a graph never runs beside its twin.
TEST_F(PartTest, a_graph_that_wandered_while_it_was_alone_keeps_its_order) {
  start_confining_daemon();
  first_.reset();
  auto program_ends = std::async(std::launch::async, [&] { return preloaded("ordered-changes 400 200"); });
  std::this_thread::sleep_for(std::chrono::milliseconds(60));
  for (int i = 0; i < 20; ++i) {
    std::string reason;
    first_ = scheduler::Connection::open(folder_.socket(), {.priority = 10}, "first", &reason);
    ASSERT_NE(first_, nullptr) << reason;
    occupy();
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    release();
    first_.reset();
    std::this_thread::sleep_for(std::chrono::milliseconds(3));
  }
  const Ended ended = program_ends.get();
  EXPECT_EQ(ended.status, 0) << ended.output;
  EXPECT_TRUE(ended.has("order kept")) << ended.output;
  EXPECT_TRUE(ended.has("all ran")) << ended.output;
  EXPECT_TRUE(ended.has("misuse none")) << ended.output;
}

TEST_F(PartTest, everything_that_programs_do_goes_on_in_a_part) {
  start_confining_daemon();
  occupy();
  const Ended ended = preloaded("streams 40 50 capture 20 destroy threads 20 20 reset run 20 10");
  release();
  EXPECT_EQ(ended.status, 0) << ended.output;
  EXPECT_TRUE(ended.has("graph of 20")) << ended.output;
  EXPECT_GT(ended.number("in part"), 40) << ended.output;
  EXPECT_TRUE(ended.has("misuse none")) << ended.output;
}

TEST_F(PartTest, where_there_is_no_part_launches_are_held) {
  start_confining_daemon();
  occupy();
  auto refused = std::async(std::launch::async, [&] { return preloaded("run 5 10", "FAKE_DRIVER_FAILS=part"); });
  auto not_hooked = std::async(std::launch::async, [&] { return program("run 5 10"); });
  EXPECT_EQ(refused.wait_for(std::chrono::milliseconds(300)), std::future_status::timeout);
  EXPECT_EQ(not_hooked.wait_for(std::chrono::milliseconds(10)), std::future_status::timeout);
  release();
  for (auto* const one : {&refused, &not_hooked}) {
    const Ended ended = one->get();
    EXPECT_TRUE(ended.has("ended 5")) << ended.output;
    EXPECT_EQ(ended.number("in part"), 0) << ended.output;
  }
}

TEST_F(CuptiGateTest, is_profiled_and_held_at_once) {
  start_daemon(1);
  const Ended ended = program("run 20 10", "WEIR_CAPTURE_FOLDER='" + folder_.folder().string() + "'");
  EXPECT_EQ(ended.status, 0) << ended.output;
  EXPECT_EQ(ended.number("most"), 1) << ended.output;
  bool has_capture = false;
  for (const auto& entry : std::filesystem::directory_iterator(folder_.folder()))
    has_capture = has_capture || entry.path().extension() == ".weircap";
  EXPECT_TRUE(has_capture);
}

}  // namespace
}  // namespace weir::testing

#endif
