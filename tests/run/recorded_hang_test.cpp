// Recorded programs that do not go on: whom the diagnosis blames for streams that are stuck, and what it never does.
#include <gtest/gtest.h>

#include <random>

#include "run/hanged_program.h"
#include "run/recorded_hang_stacks.h"
#include "run/recorded_hang_streams.h"

namespace weir::testing {
namespace {

TEST(RecordedHang, names_an_endless_kernel_and_when_it_began) {
  Program program;
  const std::uint32_t stream = program.stream(13);
  program.launch_many(stream, "step(float*)", 41);
  program.launch(stream, "spin_forever(int*)");
  program.launch_many(stream, "step(float*)", 3);
  program.progress(stream, 41, 42);
  const RecordedHang hang = diagnose(program);
  EXPECT_EQ(hang.cause, HangCause::command);
  EXPECT_EQ(hang.culprit,
            "stream 13 of process 4711 is stuck in kernel spin_forever(int*) (command 42), which has run for 98.0 s.");
  EXPECT_TRUE(has(hang.text, "runs       98.0 s")) << hang.text;
  EXPECT_TRUE(has(hang.text, "command 42: kernel spin_forever(int*)")) << hang.text;
  EXPECT_TRUE(hang.text.starts_with("stream 13 of process 4711 is stuck in")) << hang.text;
}

TEST(RecordedHang, prefers_among_candidates_the_kernel_that_has_never_ended) {
  Program program;
  const std::uint32_t stream = program.stream(13);
  for (int i = 0; i < 10; ++i) {
    program.launch(stream, "often(float*)");
    program.launch(stream, "also_often(float*)");
  }
  program.launch_many(stream, "often(float*)", 4);
  program.launch(stream, "fresh(int*)");
  program.launch_many(stream, "also_often(float*)", 3);
  program.progress(stream, 20, 28);
  const RecordedHang hang = diagnose(program);
  EXPECT_EQ(hang.cause, HangCause::command);
  EXPECT_TRUE(has(hang.culprit, "one of commands 21 to 28, most likely in kernel fresh(int*) (command 25), for 98.0 s"))
      << hang.culprit;
  EXPECT_TRUE(has(hang.text, "one of commands 21 to 28, likeliest first:\n      command 25: kernel fresh(int*)"))
      << hang.text;
  EXPECT_TRUE(has(hang.text, "and 4 more")) << hang.text;
}

TEST(RecordedHang, takes_a_collective_before_a_new_kernel) {
  Program program;
  const std::uint32_t stream = program.stream(7);
  program.launch(stream, "fresh(int*)");
  program.launch(stream, kReduce);
  program.progress(stream, 0, 2);
  const RecordedHang hang = diagnose(program);
  EXPECT_EQ(hang.cause, HangCause::collective);
  EXPECT_TRUE(has(hang.culprit, "most likely in kernel ncclDevKernel_AllReduce_Sum_f32_RING_LL")) << hang.culprit;
  EXPECT_TRUE(has(hang.culprit, "their recordings are not here")) << hang.culprit;
}

TEST(RecordedHang, follows_a_chain_of_streams_to_its_end) {
  Program program;
  const std::uint32_t a = program.stream(13), b = program.stream(14), c = program.stream(15);
  for (const std::uint64_t event : {0xe1ULL, 0xe2ULL}) program.create_event(event);
  program.launch(a, "step(float*)");
  program.launch(b, "step(float*)");
  program.launch(a, "spin_forever(int*)");
  program.record_event(a, 0xe1);
  program.wait_event(b, 0xe1);
  program.launch(b, "second(float*)");
  program.record_event(b, 0xe2);
  program.wait_event(c, 0xe2);
  program.launch(c, "third(float*)");
  program.progress(a, 1, 2);
  program.progress(b, 1, 2);
  program.progress(c, 0, 1);
  const RecordedHang hang = diagnose(program);
  EXPECT_EQ(hang.cause, HangCause::command);
  EXPECT_TRUE(hang.culprit.starts_with("stream 13 of process 4711 is stuck in kernel spin_forever(int*) (command 2)"))
      << hang.culprit;
  EXPECT_TRUE(hang.culprit.ends_with("; 2 other streams wait for it.")) << hang.culprit;
  EXPECT_TRUE(has(hang.text, "before command 1: waits for event 0xe2, recorded after command 2 of")) << hang.text;
  EXPECT_TRUE(has(hang.text, "      in the end for stream 13\n")) << hang.text;
}

TEST(RecordedHang, follows_an_event_that_has_no_command_of_its_own) {
  Program program;
  const std::uint32_t a = program.stream(13), b = program.stream(14), c = program.stream(15);
  program.launch(a, "spin_forever(int*)");
  program.record_event(a, 0xe1);
  program.wait_event(b, 0xe1);  // b only passes it on
  program.record_event(b, 0xe2);
  program.wait_event(c, 0xe2);
  program.launch(c, "third(float*)");
  program.progress(a, 0, 1);
  program.progress(c, 0, 1);
  const RecordedHang hang = diagnose(program);
  EXPECT_TRUE(hang.culprit.starts_with("stream 13 of process 4711 is stuck in kernel spin_forever(int*)"))
      << hang.culprit;
  EXPECT_TRUE(hang.culprit.ends_with("; 1 other stream waits for it.")) << hang.culprit;
}

TEST(RecordedHang, does_not_mistake_streams_that_hand_over_to_each_other_for_a_circle) {
  Program program;
  const std::uint32_t a = program.stream(13), b = program.stream(14);
  program.launch(a, "spin_forever(int*)");
  program.record_event(a, 0xe1);
  program.wait_event(b, 0xe1);
  program.launch(b, "there(float*)");
  program.record_event(b, 0xe2);
  program.wait_event(a, 0xe2);
  program.launch(a, "back(float*)");
  program.progress(a, 0, 2);  // which of the two is not known by marks alone
  program.progress(b, 0, 1);
  const RecordedHang hang = diagnose(program);
  EXPECT_EQ(hang.cause, HangCause::command);
  EXPECT_TRUE(hang.culprit.starts_with("stream 13 of process 4711 is stuck in kernel spin_forever(int*) (command 1)"))
      << hang.culprit;
}

TEST(RecordedHang, ignores_events_that_were_reached_captured_or_failed) {
  Program program;
  const std::uint32_t a = program.stream(13), b = program.stream(14);
  program.launch(a, "step(float*)");
  program.record_event(a, 0xe1);
  program.wait_event(b, 0xe1);
  program.call(Kind::event_record, "cuEventRecord", a, 0xe2).flags = record::flag::kCaptured;
  program.launch(a, "spin_forever(int*)");
  program.call(Kind::event_record, "cuEventRecord", a, 0xe1).flags = record::flag::kFailed;
  program.wait_event(b, 0xe1);
  program.launch(b, "other(float*)");
  program.progress(a, 1, 2);
  program.progress(b, 0, 1);
  const RecordedHang hang = diagnose(program);
  // Nothing is in the way of either.
  EXPECT_EQ(hang.cause, HangCause::command);
  EXPECT_EQ(count(hang.text, "  runs  "), 2U) << hang.text;
  EXPECT_FALSE(has(hang.text, "waits")) << hang.text;
}

TEST(RecordedHang, learns_from_what_others_have_passed) {
  Program program;
  const std::uint32_t a = program.stream(13), b = program.stream(14);
  program.launch_many(a, "step(float*)", 3);
  program.record_event(a, 0xe1);
  program.launch(a, "late(float*)");
  program.wait_event(b, 0xe1);
  program.launch(b, "other(float*)");
  program.progress(a, 0, 4);  // one of four, by marks alone
  program.progress(b, 1);     // but this one has passed the event after the third
  const RecordedHang hang = diagnose(program);
  EXPECT_TRUE(hang.culprit.starts_with("stream 13 of process 4711 is stuck in kernel late(float*) (command 4)"))
      << hang.culprit;
}

TEST(RecordedHang, says_that_nobody_writes_the_value_that_a_stream_waits_for) {
  Program program;
  const std::uint32_t a = program.stream(13), b = program.stream(14);
  program.launch(a, "step(float*)");
  program.wait_value(a, 0xf00);
  program.record_event(a, 0xe1);
  program.wait_event(b, 0xe1);
  program.launch(b, "other(float*)");
  program.progress(a, 1, 2);
  program.progress(b, 0, 1);
  RecordedHang hang = diagnose(program);
  EXPECT_EQ(hang.cause, HangCause::value);
  EXPECT_EQ(
      hang.culprit,
      "stream 13 of process 4711 waits at command 2 for a value at 0xf00 that nobody writes, for 98.0 s: no stream "
      "of this process was ever given a write to it; 1 other stream waits for it.");
  program.recording().header.claimed = 100;
  hang = diagnose(program);
  EXPECT_TRUE(has(hang.culprit, "no write to it is in what the recording keeps")) << hang.culprit;
}

TEST(RecordedHang, follows_a_value_to_the_stream_that_should_write_it) {
  Program program;
  const std::uint32_t a = program.stream(13), b = program.stream(14);
  program.wait_value(a, 0xf00);
  program.launch(b, "spin_forever(int*)");
  program.write_value(b, 0xf00);
  program.progress(a, 0, 1);
  program.progress(b, 0, 1);
  const RecordedHang hang = diagnose(program);
  EXPECT_EQ(hang.cause, HangCause::command);
  EXPECT_TRUE(hang.culprit.starts_with("stream 14 of process 4711 is stuck in kernel spin_forever(int*)"))
      << hang.culprit;
  EXPECT_TRUE(has(hang.text, "command 1: waits for a value at 0xf00, which command 2 of stream 14")) << hang.text;
}

TEST(RecordedHang, says_that_a_value_was_written_before_and_is_not_what_is_waited_for) {
  Program program;
  const std::uint32_t a = program.stream(13), b = program.stream(14);
  program.write_value(b, 0xf00);
  program.wait_value(a, 0xf00);
  program.progress(a, 0, 1);
  program.progress(b, 1);
  const RecordedHang hang = diagnose(program);
  EXPECT_EQ(hang.cause, HangCause::value);
  EXPECT_TRUE(has(hang.culprit, "1 write to it in the recording has ended")) << hang.culprit;
}

TEST(RecordedHang, finds_streams_that_wait_for_each_other) {
  Program program;
  const std::uint32_t a = program.stream(13), b = program.stream(14), c = program.stream(15);
  program.wait_value(a, 0xa0);
  program.write_value(a, 0xb0);
  program.wait_value(b, 0xb0);
  program.write_value(b, 0xa0);
  program.record_event(b, 0xe1);
  program.wait_event(c, 0xe1);
  program.launch(c, "third(float*)");
  program.progress(a, 0, 2);
  program.progress(b, 0, 2);
  program.progress(c, 0, 1);
  const RecordedHang hang = diagnose(program);
  EXPECT_EQ(hang.cause, HangCause::cycle);
  EXPECT_TRUE(has(hang.culprit, " of process 4711 wait for each other, for 98.0 s: ")) << hang.culprit;
  EXPECT_TRUE(has(hang.culprit, "command 1 of stream 13 waits for a value at 0xa0 that command 2 of stream 14 writes"))
      << hang.culprit;
  EXPECT_TRUE(has(hang.culprit, "command 1 of stream 14 waits for a value at 0xb0 that command 2 of stream 13 writes"))
      << hang.culprit;
  EXPECT_TRUE(hang.culprit.ends_with("; 1 other stream waits for it.")) << hang.culprit;
  EXPECT_TRUE(has(hang.text, "circle: stream 13 waits for stream 14 waits for stream 13")) << hang.text;
}

TEST(RecordedHang, finds_a_stream_that_waits_for_its_own_later_command) {
  Program program;
  const std::uint32_t a = program.stream(13);
  program.wait_value(a, 0xa0);
  program.write_value(a, 0xa0);
  program.progress(a, 0, 2);
  const RecordedHang hang = diagnose(program);
  EXPECT_EQ(hang.cause, HangCause::cycle);
  EXPECT_TRUE(hang.culprit.starts_with("stream 13 of process 4711 waits for itself")) << hang.culprit;
}

TEST(RecordedHang, blames_events_of_others_only_where_the_recording_is_whole) {
  Program program;
  const std::uint32_t a = program.stream(13);
  program.wait_event(a, 0xe9);
  program.launch(a, "step(float*)");
  program.progress(a, 0, 1);
  RecordedHang hang = diagnose(program);
  EXPECT_EQ(hang.cause, HangCause::value);
  EXPECT_TRUE(has(hang.culprit, "waits before command 1 for event 0xe9, which this process has never recorded"))
      << hang.culprit;
  program.recording().header.claimed = 100;
  hang = diagnose(program);
  EXPECT_EQ(hang.cause, HangCause::command);
  EXPECT_TRUE(has(hang.culprit, "unless it waits for event 0xe9, whose record the recording no longer has"))
      << hang.culprit;
}

TEST(RecordedHang, knows_that_waiting_for_an_event_that_was_never_recorded_does_nothing) {
  Program program;
  const std::uint32_t a = program.stream(13);
  program.create_event(0xe9);
  program.wait_event(a, 0xe9);
  program.launch(a, "spin_forever(int*)");
  program.progress(a, 0, 1);
  const RecordedHang hang = diagnose(program);
  EXPECT_EQ(hang.cause, HangCause::command);
  EXPECT_FALSE(has(hang.text, "0xe9")) << hang.text;
}

TEST(RecordedHang, gives_the_number_where_the_call_was_overwritten) {
  Program program;
  const std::uint32_t a = program.stream(13);
  program.launch_many(a, "step(float*)", 50);
  program.recording().entries.erase(program.recording().entries.begin(), program.recording().entries.begin() + 45);
  program.recording().header.claimed = 100;
  program.progress(a, 41, 42);
  const RecordedHang hang = diagnose(program);
  EXPECT_EQ(hang.cause, HangCause::command);
  EXPECT_TRUE(has(hang.culprit, "is stuck in command 42, whose call is no longer in the recording, for 98.0 s"))
      << hang.culprit;
}

TEST(RecordedHang, follows_an_event_whose_commands_were_overwritten) {
  Program program;
  const std::uint32_t a = program.stream(13), b = program.stream(14);
  program.launch_many(a, "spin_forever(int*)", 3);
  program.record_event(a, 0xe1);
  program.launch(a, "after(float*)");
  program.wait_event(b, 0xe1);
  program.launch(b, "other(float*)");
  program.recording().entries.erase(program.recording().entries.begin(), program.recording().entries.begin() + 3);
  program.recording().header.claimed = 100;
  program.progress(a, 1, 2);
  program.progress(b, 0, 1);
  const RecordedHang hang = diagnose(program);
  EXPECT_TRUE(hang.culprit.starts_with("stream 13 of process 4711 is stuck in command 2, whose call is no longer"))
      << hang.culprit;
  EXPECT_TRUE(hang.culprit.ends_with("; 1 other stream waits for it.")) << hang.culprit;
  EXPECT_TRUE(has(hang.text, "recorded after command 3 of")) << hang.text;
}

TEST(RecordedHang, does_not_take_commands_of_a_destroyed_stream_for_those_of_its_successor) {
  Program program;
  const std::uint32_t a = program.stream(13);
  program.launch(a, "old_first(int*)");
  program.launch(a, "old_second(int*)");
  program.call(Kind::other, "cuStreamDestroy_v2", a, 0);
  program.recording().streams[a] = record::Stream{};
  record::Stream& again = program.recording().streams[a];
  again.is_used = 1;
  again.id = 99;
  again.handle = 0x9999;
  program.launch(a, "new_first(int*)");
  program.launch(a, "new_second(int*)");
  program.progress(a, 1, 2);
  const RecordedHang hang = diagnose(program);
  EXPECT_TRUE(hang.culprit.starts_with("stream 99 of process 4711 is stuck in kernel new_second(int*) (command 2)"))
      << hang.culprit;
}

TEST(RecordedHang, believes_the_devices_own_records) {
  Program program;
  const std::uint32_t a = program.stream(13);
  program.launch_many(a, "step(float*)", 4);
  program.recording().header.is_exact = 1;
  for (std::uint32_t correlation = 1; correlation <= 3; ++correlation) {
    RecordedEntry record{};
    record.kind = static_cast<std::uint8_t>(Kind::device);
    record.correlation = correlation;
    record.stream = a;
    program.recording().entries.push_back(record);
  }
  program.progress(a, 0, 4);
  EXPECT_TRUE(has(diagnose(program).culprit, "stuck in kernel step(float*) (command 4)")) << diagnose(program).culprit;
}

TEST(RecordedHang, a_healthy_program_is_not_blamed) {
  Program program;
  const std::uint32_t a = program.stream(13);
  program.launch_many(a, "step(float*)", 4);
  program.progress(a, 2, 4);
  program.is_fresh();
  RecordedHang hang = diagnose(program);
  EXPECT_EQ(hang.cause, HangCause::none);
  EXPECT_EQ(hang.culprit, "nothing has stood still for 10.0 s.");
  program.all_ended();
  program.is_fresh();
  EXPECT_EQ(diagnose(program).cause, HangCause::none);
  // The same program, half a minute later.
  hang = diagnose_recordings(std::vector{program.made()}, kNow + 30 * kSecond, kTimeout + 30 * kSecond);
  EXPECT_EQ(hang.cause, HangCause::none);
}

TEST(RecordedHang, a_program_that_has_ended_and_one_that_is_switched_off_are_not_blamed) {
  Program program;
  const std::uint32_t a = program.stream(13);
  program.launch(a, "step(float*)");
  program.progress(a, 0, 1);
  program.recording().header.is_off = 1;
  RecordedHang hang = diagnose(program);
  EXPECT_EQ(hang.cause, HangCause::none);
  EXPECT_TRUE(has(hang.text, "Recording is switched off")) << hang.text;
  program.recording().header.is_off = 0;
  program.process().is_alive = false;
  program.recording().header.state = static_cast<std::uint32_t>(record::State::ended);
  hang = diagnose(program);
  EXPECT_EQ(hang.cause, HangCause::none);
  EXPECT_EQ(hang.culprit, "every recorded process has ended normally.");
}

TEST(RecordedHang, a_long_report_stays_narrow_and_short) {
  Program program;
  const std::string name =
      "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>, "
      "std::array<char*, 3ul> >(int, at::native::CUDAFunctor_add<float>, std::array<char*, 3ul>)";
  for (std::uint32_t i = 0; i < 100; ++i) {
    const std::uint32_t stream = program.stream(i);
    program.launch(stream, name);
    program.progress(stream, 0, 1);
  }
  std::string& stacks = program.process().stacks;
  for (int i = 0; i < 200; ++i) {
    stacks += "thread " + std::to_string(5000 + i) + " (worker):\n";
    for (int frame = 0; frame < 30; ++frame)
      stacks += "  frame_" + std::to_string(i) + "_" + std::to_string(frame) + " [libwork.so]\n";
  }
  const RecordedHang hang = diagnose(program);
  EXPECT_TRUE(has(hang.culprit, "vectorized_elementwise_kernel")) << hang.culprit;
  EXPECT_TRUE(has(hang.text, "and 68 more unfinished")) << hang.text;
  EXPECT_TRUE(has(hang.text, "      and 18 more\n")) << hang.text;
  EXPECT_LE(lines_of(hang.text.substr(hang.text.find("stacks, innermost first"))).size(), 62U);
}

TEST(RecordedHang, threads_with_the_same_stack_are_shown_once) {
  const std::vector<RecordedStack> stacks = recorded_stacks(
      "thread 10 (main):\n  poll [libc.so.6]\n  [train]\nthread 11 (pool):\n  wait [libc.so.6]\n"
      "thread 12 (pool):\n  wait [libc.so.6]\nthread 13 (pool):\n  does not answer: it blocks signals\n");
  ASSERT_EQ(stacks.size(), 4U);
  const std::string text = stacks_text(stacks, 10, 60);
  EXPECT_TRUE(has(text, "thread 11 (pool), and 1 more alike:\n")) << text;
  EXPECT_EQ(count(text, "wait [libc.so.6]"), 1U) << text;
  EXPECT_EQ(innermost_own_frame(stacks[0]), "code of train");
  EXPECT_EQ(innermost_own_frame(stacks[1]), "");
}

TEST(RecordedHang, names_the_users_code_beside_a_packages) {
  const std::vector<RecordedStack> stacks = recorded_stacks(
      "Python:\nCurrent thread 0x00007f0000000002 (most recent call first):\n"
      "  File \"/usr/lib/python3.11/ssl.py\", line 1166 in read\n"
      "  File \"/venv/lib/python3.11/site-packages/urllib3/response.py\", line 500 in read\n"
      "  File \"/app/train.py\", line 12 in download\n"
      "  File \"/app/train.py\", line 80 in <module>\n");
  ASSERT_EQ(stacks.size(), 1U);
  EXPECT_EQ(innermost_own_frame(stacks[0]), "read (urllib3/response.py:500), called by download (train.py:12)");
  EXPECT_EQ(awaited_process(stacks[0]), AwaitedProcess::none);
}

TEST(RecordedHang, numbers_at_their_limits_do_no_harm) {
  Program program;
  const std::uint32_t a = program.stream(13), b = program.stream(14);
  program.launch_many(a, "step(float*)", 4);
  program.record_event(a, 0xe1);
  program.wait_event(b, 0xe1);
  program.launch(b, "other(float*)");
  Recording& recording = program.recording();
  for (const std::uint64_t submitted : {std::uint64_t{0}, std::uint64_t{1}, UINT64_MAX})
    for (const std::uint64_t ended : {std::uint64_t{0}, std::uint64_t{2}, UINT64_MAX - 1, UINT64_MAX})
      for (const std::uint64_t pending : {std::uint64_t{0}, std::uint64_t{1}, UINT64_MAX})
        for (const std::int64_t time : {INT64_MIN, std::int64_t{0}, INT64_MAX}) {
          for (record::Stream& stream : recording.streams) {
            stream.submitted = submitted;
            stream.ended = ended;
            stream.pending = pending;
            stream.collectives = submitted;
            stream.submitted_ns = stream.ended_ns = time;
          }
          recording.header.started_ns = recording.header.beat_ns = time;
          for (const bool is_alive : {true, false}) {
            program.process().is_alive = is_alive;
            EXPECT_FALSE(diagnose(program).culprit.empty());
          }
        }
}

TEST(RecordedHang, any_bytes_in_a_recording_do_no_harm) {
  std::mt19937_64 random(20260101);
  for (int round = 0; round < 300; ++round) {
    Program program;
    Recording& recording = program.recording();
    for (std::uint32_t i = 0; i < 4; ++i) program.stream(i);
    const std::uint64_t small = round % 3 == 0 ? UINT64_MAX : 12;
    const auto any = [&] { return small == UINT64_MAX ? random() : random() % small; };
    for (int i = 0; i < 200; ++i) {
      RecordedEntry entry{};
      entry.started_ns = static_cast<std::int64_t>(any());
      entry.ended_ns = static_cast<std::int64_t>(any());
      entry.object = random() % 4;
      entry.stream = static_cast<std::uint32_t>(random() % 6);  // two that are not there
      entry.correlation = static_cast<std::uint32_t>(random() % 32);
      entry.name = static_cast<std::uint32_t>(random() % 64);
      entry.function = static_cast<std::uint16_t>(random() % 6);
      entry.kind = static_cast<std::uint8_t>(random() % 33);
      entry.number = static_cast<std::uint32_t>(any());
      entry.thread = static_cast<std::uint32_t>(random() % 3);
      recording.entries.push_back(entry);
    }
    for (const char* name : {"cuStreamWaitValue32", "cuStreamWriteValue32", "cuStreamDestroy_v2"})
      program.function(name);
    for (record::Stream& stream : recording.streams) {
      stream.submitted = any();
      stream.ended = any();
      stream.pending = any();
      stream.collectives = any();
      stream.submitted_ns = static_cast<std::int64_t>(any());
      stream.ended_ns = static_cast<std::int64_t>(any());
    }
    program.in_call(0, static_cast<Kind>(random() % 20), "cuStreamSynchronize",
                    static_cast<std::uint32_t>(random() % 6), random() % 4);
    recording.header.is_exact = static_cast<std::uint32_t>(random() % 2);
    program.process().stacks = std::string(kPythonLoads).substr(random() % 400, random() % 600);
    program.process().rank = static_cast<int>(random() % 3) - 1;
    const RecordedHang hang = diagnose({program.made(), waiting_rank(0).made()});
    EXPECT_FALSE(hang.culprit.empty());
  }
}

TEST(RecordedHang, events_that_wait_for_events_in_a_ring_come_to_an_end) {
  // Such a ring cannot be submitted; a file can say anything. Every stream waits for events of all others.
  Program program;
  constexpr std::uint32_t kCount = 40;
  for (std::uint32_t i = 0; i < kCount; ++i) program.stream(i);
  for (int round = 0; round < 20; ++round)
    for (std::uint32_t i = 0; i < kCount; ++i) {
      for (std::uint32_t j = 0; j < kCount; ++j) program.wait_event(i, j);
      program.wait_value(i, (i + 1) % kCount);
      program.write_value(i, i);
      program.record_event(i, i);
    }
  for (std::uint32_t i = 0; i < kCount; ++i) program.progress(i, 0, 40);
  program.recording().header.claimed = 100;  // so that events without a record are no answer
  const RecordedHang hang = diagnose(program);
  EXPECT_EQ(hang.cause, HangCause::cycle);
}

TEST(RecordedHang, terminals_are_not_written_to) {
  Program program;
  const std::uint32_t a = program.stream(13);
  program.launch(a, "spin\x1b[2J(int*)");
  program.progress(a, 0, 1);
  program.process().name = "rank \x1b]0;x\x07";
  program.process().stacks = "thread 4711 (\x1b[31mred):\n  poll\x1b[0m [libc.so.6]\n";
  const RecordedHang hang = diagnose(program);
  EXPECT_FALSE(has(hang.text, "\x1b")) << hang.text;
  EXPECT_FALSE(has(hang.text, "\x07")) << hang.text;
}

TEST(RecordedHang, kernels_keep_their_function_when_they_are_shortened) {
  EXPECT_EQ(kernel_name_within("f(int)", 40), "f(int)");
  EXPECT_EQ(kernel_name_within("void ns::gemm_kernel<float, 128, 64>(Params const*, int)", 40),
            "ns::gemm_kernel<float, 128, 64>");
  EXPECT_EQ(kernel_name_within("void ns::gemm_kernel<float, 128, 64>(Params const*, int)", 20), "ns::gemm_kernel");
  EXPECT_EQ(kernel_name_within("void (anonymous namespace)::f<g(int)->h>(char, int, long)", 24), "f<g->h>");
  EXPECT_EQ(kernel_name_within(std::string(100, 'a'), 10), "aaaaaaaa..");
}

TEST(RecordedHang, nothing_at_all) {
  EXPECT_EQ(diagnose(std::vector<HangedProcess>{}).cause, HangCause::none);
  const RecordedHang hang = diagnose(std::vector<HangedProcess>(1));
  EXPECT_EQ(hang.cause, HangCause::host);
}

}  // namespace
}  // namespace weir::testing
