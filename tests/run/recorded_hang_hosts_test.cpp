// Recorded programs that do not go on for their host's sake, or for another process's: whom the diagnosis blames.
#include <gtest/gtest.h>

#include "run/hanged_program.h"

namespace weir::testing {
namespace {

TEST(RecordedHangOfHosts, a_host_that_launches_nothing_in_Python) {
  Program program;
  const std::uint32_t a = program.stream(13);
  program.launch_many(a, "step(float*)", 4);
  program.all_ended();
  program.process().stacks = kPythonSleeps;
  const RecordedHang hang = diagnose(program);
  EXPECT_EQ(hang.cause, HangCause::host);
  EXPECT_EQ(hang.culprit,
            "process 4711 has launched nothing for 98.0 s, and all that it launched has ended: its main thread is in "
            "fetch (cache.py:17).");
  EXPECT_TRUE(has(hang.text, "1 stream is idle")) << hang.text;
  EXPECT_TRUE(has(hang.text, "line 17 in fetch")) << hang.text;
}

TEST(RecordedHangOfHosts, a_host_that_launches_nothing_in_native_code) {
  Program program;
  const std::uint32_t a = program.stream(13);
  program.launch(a, "step(float*)");
  program.all_ended();
  RecordedHang hang = diagnose(program);
  EXPECT_EQ(hang.cause, HangCause::host);
  EXPECT_TRUE(hang.culprit.ends_with(": its last call was cuLaunchKernel by thread 4711 (main).")) << hang.culprit;
  program.process().stacks =
      "thread 4711 (train):\n  clock_nanosleep [libc.so.6]\n  load_batch(int) [libdata.so]\n  [train]\n"
      "thread 4712 (worker):\n  epoll_wait [libc.so.6]\n";
  hang = diagnose(program);
  EXPECT_TRUE(hang.culprit.ends_with(": its main thread is in load_batch(int) of libdata.so.")) << hang.culprit;
}

TEST(RecordedHangOfHosts, a_stopped_process_is_named_whatever_its_streams_seem_to_do) {
  Program program;
  const std::uint32_t a = program.stream(13);
  program.launch(a, "step(float*)");
  program.progress(a, 0, 1);
  program.process().state = 'T';
  RecordedHang hang = diagnose(program);
  EXPECT_EQ(hang.cause, HangCause::host);
  EXPECT_TRUE(has(hang.culprit, "process 4711 is stopped, by SIGSTOP, Ctrl-Z or a debugger")) << hang.culprit;
  program.process().state = '?';
  program.recording().header.beat_ns = kNow - 50 * kSecond;
  hang = diagnose(program);
  EXPECT_TRUE(has(hang.culprit, "nothing in process 4711 has run for 50.0 s")) << hang.culprit;
  program.in_call(0, Kind::other, "cuModuleLoadData", kNone);
  program.all_ended();
  hang = diagnose(program);
  EXPECT_TRUE(hang.culprit.ends_with("; its thread 4711 (main) was in cuModuleLoadData for 98.0 s.")) << hang.culprit;
}

// The driver keeps its locks meanwhile, so the library's own thread is not answered and writes no time any more.
TEST(RecordedHangOfHosts, a_launch_that_waits_in_the_driver_is_the_streams_fault) {
  Program program;
  const std::uint32_t a = program.stream(13);
  program.launch(a, "spin(int*)");
  program.launch_many(a, "step(float*)", 1023);
  program.progress(a, 0, 1);
  program.in_call(0, Kind::launch, "cuLaunchKernel", a);
  program.recording().header.beat_ns = kNow - 50 * kSecond;
  const RecordedHang hang = diagnose(program);
  EXPECT_EQ(hang.cause, HangCause::command);
  EXPECT_EQ(hang.culprit,
            "stream 13 of process 4711 is stuck in kernel spin(int*) (command 1), which has run for 98.0 s.");
}

TEST(RecordedHangOfHosts, workers_of_a_data_loader) {
  Program program;
  const std::uint32_t a = program.stream(13);
  program.launch(a, "step(float*)");
  program.all_ended();
  program.process().stacks = kPythonLoads;
  const auto culprit = [&](std::vector<RecordedChild> children) {
    program.process().children = std::move(children);
    const RecordedHang hang = diagnose(program);
    EXPECT_EQ(hang.cause, HangCause::child);
    EXPECT_TRUE(hang.culprit.starts_with("process 4711 waits for its data loader, for 98.0 s: ")) << hang.culprit;
    return hang.culprit;
  };
  EXPECT_TRUE(
      culprit({{5001, 'S', "python3"}, {5002, 'T', "python3"}}).ends_with("its worker 5002 (python3) was stopped."));
  EXPECT_TRUE(
      culprit({{5001, 'Z', "python3"}, {5002, 'S', "python3"}}).ends_with("its worker 5001 (python3) has died."));
  EXPECT_TRUE(culprit({{5001, 'S', "python3"}, {5002, 'S', "python3"}}).ends_with("all its 2 workers sleep."));
  EXPECT_TRUE(culprit({{5001, 'S', "python3"}, {5002, 'R', "python3"}})
                  .ends_with("its worker 5002 (python3) is still at work."));
  EXPECT_TRUE(culprit({}).ends_with("it has no worker any more."));
}

TEST(RecordedHangOfHosts, a_child_is_not_blamed_by_a_program_that_does_not_wait_for_it) {
  Program program;
  const std::uint32_t a = program.stream(13);
  program.launch(a, "step(float*)");
  program.all_ended();
  program.process().stacks = kPythonSleeps;
  program.process().children = {{5001, 'T', "tensorboard"}};
  const RecordedHang hang = diagnose(program);
  EXPECT_EQ(hang.cause, HangCause::host);
  EXPECT_TRUE(has(hang.text, "Its child 5001 (tensorboard) is stopped.")) << hang.text;
}

TEST(RecordedHangOfHosts, a_call_that_does_not_return_while_nothing_is_outstanding) {
  Program program;
  const std::uint32_t a = program.stream(13);
  program.launch(a, "step(float*)");
  program.all_ended();
  program.thread(4712, "loader");
  program.in_call(1, Kind::other, "cuMemFree_v2", kNone);
  const RecordedHang hang = diagnose(program);
  EXPECT_EQ(hang.cause, HangCause::driver);
  EXPECT_EQ(hang.culprit,
            "thread 4712 (loader) of process 4711 has been in cuMemFree_v2 for 98.0 s, and no stream explains it.");
}

TEST(RecordedHangOfHosts, a_call_that_a_stream_explains_is_not_blamed) {
  Program program;
  const std::uint32_t a = program.stream(13);
  program.launch_many(a, "step(float*)", 3);
  program.record_event(a, 0xe1);
  program.progress(a, 2);  // no mark stands after the third: that the host waits for it is the proof
  program.in_call(0, Kind::event_synchronize, "cuEventSynchronize", kNone, 0xe1);
  const RecordedHang hang = diagnose(program);
  EXPECT_EQ(hang.cause, HangCause::command);
  EXPECT_TRUE(has(hang.culprit, "kernel step(float*) (command 3)")) << hang.culprit;
  EXPECT_TRUE(has(hang.text, "thread 4711 (main) is in cuEventSynchronize for 98.0 s, for event 0xe1 after"))
      << hang.text;
}

TEST(RecordedHangOfHosts, work_that_nobody_asked_about_is_not_taken_for_unfinished) {
  Program program;
  const std::uint32_t a = program.stream(13);
  program.launch_many(a, "step(float*)", 3);
  program.progress(a, 2);
  RecordedHang hang = diagnose(program);
  EXPECT_EQ(hang.cause, HangCause::host);
  EXPECT_TRUE(has(hang.text, "unknown")) << hang.text;
  // With stacks the program was started with a hang timeout: then such work has a mark, or one that was lost.
  program.process().stacks = kPythonSleeps;
  EXPECT_EQ(diagnose(program).cause, HangCause::command);
}

TEST(RecordedHangOfHosts, a_dead_process_and_what_it_ran_last) {
  Program program;
  const std::uint32_t a = program.stream(13);
  program.launch(a, "step(float*)");
  program.launch(a, "crash(int*)");
  program.progress(a, 1, 2);
  program.process().is_alive = false;
  program.recording().header.beat_ns = kNow - 5 * kSecond;
  RecordedHang hang = diagnose(program);
  EXPECT_EQ(hang.cause, HangCause::ended);
  EXPECT_EQ(hang.culprit,
            "process 4711 has died, 5.00 s ago; its stream 13 had come to command 2: kernel crash(int*).");
  program.all_ended();
  hang = diagnose(program);
  EXPECT_TRUE(hang.culprit.ends_with("its last call was cuLaunchKernel.")) << hang.culprit;
}

TEST(RecordedHangOfHosts, a_rank_whose_host_sleeps_has_not_joined) {
  Program absent = waiting_rank(1, 9);
  absent.all_ended();
  absent.process().stacks = kPythonSleeps;
  const RecordedHang hang = diagnose({waiting_rank(0).made(), absent.made(), waiting_rank(2).made()});
  EXPECT_EQ(hang.cause, HangCause::collective);
  EXPECT_EQ(
      hang.culprit,
      "rank 1 has not joined collective 10 (ncclDevKernel_AllReduce_Sum_f32_RING_LL), which rank 0 and rank 2 are "
      "in: it has submitted 9, and it has launched nothing for 98.0 s, and all that it launched has ended: its main "
      "thread is in fetch (cache.py:17).");
  EXPECT_TRUE(has(hang.text, "\nrank 2\n")) << hang.text;
}

TEST(RecordedHangOfHosts, a_dead_rank_has_not_joined) {
  Program absent = waiting_rank(1, 9);
  absent.all_ended();
  absent.process().is_alive = false;
  const RecordedHang hang = diagnose({waiting_rank(0).made(), absent.made()});
  EXPECT_EQ(hang.cause, HangCause::collective);
  EXPECT_TRUE(hang.culprit.starts_with("rank 1 has not joined collective 10")) << hang.culprit;
  EXPECT_TRUE(has(hang.culprit, "which rank 0 is in: it has died")) << hang.culprit;
}

TEST(RecordedHangOfHosts, a_rank_with_a_stuck_kernel_has_not_joined) {
  Program absent = rank(1);
  const std::uint32_t compute = absent.stream(7), network = absent.stream(13);
  for (int i = 0; i < 10; ++i) {
    absent.launch(compute, i < 9 ? "backward(float*)" : "spin_forever(int*)");
    absent.record_event(compute, 0xe1);
    absent.wait_event(network, 0xe1);
    absent.launch(network, kReduce);
  }
  absent.progress(compute, 9, 10);
  absent.progress(network, 9, 10);
  const RecordedHang hang = diagnose({waiting_rank(0).made(), absent.made()});
  EXPECT_EQ(hang.cause, HangCause::collective);
  EXPECT_TRUE(has(hang.culprit, "rank 1 has not joined collective 10")) << hang.culprit;
  EXPECT_TRUE(has(hang.culprit, ": its stream 7 is stuck in kernel spin_forever(int*) (command 10), which has run for"))
      << hang.culprit;
  EXPECT_TRUE(hang.culprit.ends_with("; 1 other stream waits for it.")) << hang.culprit;
}

TEST(RecordedHangOfHosts, a_rank_that_goes_on_without_joining) {
  Program absent = waiting_rank(1, 9);
  absent.all_ended();
  absent.is_fresh();
  const RecordedHang hang = diagnose({waiting_rank(0).made(), absent.made()});
  EXPECT_TRUE(hang.culprit.ends_with("it has submitted 9, and it goes on.")) << hang.culprit;
}

TEST(RecordedHangOfHosts, ranks_in_different_collectives_and_ranks_that_have_all_joined) {
  Program other = rank(1);
  const std::uint32_t compute = other.stream(7), network = other.stream(13);
  other.launch(compute, "backward(float*)");
  other.launch_many(network, kReduce, 9);
  other.launch(network, kGather);
  other.progress(compute, 1);
  other.progress(network, 9, 10);
  RecordedHang hang = diagnose({waiting_rank(0).made(), other.made()});
  EXPECT_EQ(hang.cause, HangCause::collective);
  EXPECT_TRUE(has(hang.culprit, "rank 1 in ncclDevKernel_AllGather_RING_LL")) << hang.culprit;
  hang = diagnose({waiting_rank(0).made(), waiting_rank(1).made()});
  EXPECT_TRUE(has(hang.culprit, "all 2 ranks that are recorded have joined")) << hang.culprit;
  // One is still in the collective before.
  hang = diagnose({waiting_rank(0).made(), waiting_rank(1, 9).made()});
  EXPECT_TRUE(
      hang.culprit.ends_with("rank 0 is in: it is still in collective 9 "
                             "(ncclDevKernel_AllReduce_Sum_f32_RING_LL)."))
      << hang.culprit;
}

TEST(RecordedHangOfHosts, a_rank_that_has_ended_the_collective_is_not_blamed) {
  Program done = waiting_rank(0);
  done.all_ended();
  done.process().stacks = kPythonSleeps;
  Program absent = waiting_rank(2, 9);
  absent.all_ended();
  const RecordedHang hang = diagnose({done.made(), waiting_rank(1).made(), absent.made()});
  EXPECT_TRUE(hang.culprit.starts_with("rank 2 has not joined")) << hang.culprit;
}

TEST(RecordedHangOfHosts, of_several_processes_the_one_that_explains_most_is_blamed) {
  Program idle(100), stuck(200);
  const std::uint32_t a = idle.stream(1), b = stuck.stream(2);
  idle.launch(a, "step(float*)");
  idle.all_ended();
  stuck.launch(b, "spin_forever(int*)");
  stuck.progress(b, 0, 1);
  const RecordedHang hang = diagnose({idle.made(), stuck.made()});
  EXPECT_TRUE(hang.culprit.starts_with("stream 2 of process 200 is stuck in kernel spin_forever(int*)"))
      << hang.culprit;
  EXPECT_TRUE(hang.culprit.ends_with("; 1 other process does not go on either.")) << hang.culprit;
}

}  // namespace
}  // namespace weir::testing
