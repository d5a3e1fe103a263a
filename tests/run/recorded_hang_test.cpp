// Recorded programs that do not go on: whom the diagnosis blames for planted hangs.
#include "run/recorded_hang.h"

#include <gtest/gtest.h>

#include <cstring>
#include <random>

#include "run/recorded_hang_stacks.h"
#include "run/recorded_hang_streams.h"
#include "support/text.h"

namespace weir {
namespace {

using record::Kind;
using record::kNone;

constexpr std::int64_t kSecond = 1'000'000'000, kNow = 100 * kSecond, kTimeout = 10 * kSecond;
constexpr const char* kReduce = "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)";
constexpr const char* kGather = "ncclDevKernel_AllGather_RING_LL(ncclDevKernelArgsStorage<4096ul>)";

// A program that did everything in the first seconds of its clock, one call every microsecond.
class Program {
 public:
  explicit Program(std::uint64_t pid = 4711) {
    recording_.texts.assign(sizeof(record::TextHeader), '\0');
    recording_.header.pid = pid;
    recording_.header.state = static_cast<std::uint32_t>(record::State::running);
    recording_.header.chunks = 16;
    recording_.header.claimed = 2;
    recording_.header.started_ns = kSecond;
    recording_.header.beat_ns = kNow;
    process_.name = "process " + std::to_string(pid);
    thread(static_cast<std::uint32_t>(pid), "main");
  }

  std::uint32_t text(std::string_view text) {
    const auto at = static_cast<std::uint32_t>(recording_.texts.size());
    for (const auto& [known, number] : texts_)
      if (known == text) return number;
    const record::TextHeader length{static_cast<std::uint32_t>(text.size())};
    recording_.texts.append(reinterpret_cast<const char*>(&length), sizeof(length)).append(text);
    recording_.texts.resize((recording_.texts.size() + 3) / 4 * 4);
    texts_.emplace_back(text, at);
    return at;
  }
  std::uint16_t function(std::string_view name) {
    const std::uint32_t number = text(name);
    std::uint16_t at = 1;
    while (recording_.header.functions[at] != record::kNoText && recording_.header.functions[at] != number) ++at;
    recording_.header.functions[at] = number;
    return at;
  }
  std::uint32_t thread(std::uint32_t id, const char* name) {
    record::Thread thread{};
    thread.id = id;
    std::strncpy(thread.name, name, sizeof(thread.name) - 1);
    recording_.threads.push_back(thread);
    return static_cast<std::uint32_t>(recording_.threads.size() - 1);
  }
  std::uint32_t stream(std::uint32_t id) {
    record::Stream stream{};
    stream.is_used = 1;
    stream.id = id;
    stream.handle = 0x1000 + id;
    stream.context = 1;
    stream.thread = kNone;
    recording_.streams.push_back(stream);
    return static_cast<std::uint32_t>(recording_.streams.size() - 1);
  }
  RecordedEntry& call(Kind kind, std::string_view name, std::uint32_t stream, std::uint64_t object) {
    RecordedEntry entry{};
    entry.started_ns = at_ns_;
    entry.ended_ns = at_ns_ + 500;
    at_ns_ += 1000;
    entry.object = object;
    entry.stream = stream;
    entry.context = 1;
    entry.correlation = ++correlation_;
    entry.function = function(name);
    entry.kind = static_cast<std::uint8_t>(kind);
    entry.thread = 0;
    if (record::is_command(kind)) {
      record::Stream& one = recording_.streams[stream];
      entry.number = static_cast<std::uint32_t>(++one.submitted);
      one.submitted_ns = entry.ended_ns;
    }
    recording_.entries.push_back(entry);
    return recording_.entries.back();
  }
  // Returns the command's number.
  std::uint32_t launch(std::uint32_t stream, std::string_view kernel) {
    RecordedEntry& entry = call(Kind::launch, "cuLaunchKernel", stream, 0);
    entry.name = text(kernel);
    if (kernel.starts_with("nccl")) ++recording_.streams[stream].collectives;
    return entry.number;
  }
  void launch_many(std::uint32_t stream, std::string_view kernel, int count) {
    for (int i = 0; i < count; ++i) launch(stream, kernel);
  }
  void record_event(std::uint32_t stream, std::uint64_t event) {
    call(Kind::event_record, "cuEventRecord", stream, event);
  }
  void wait_event(std::uint32_t stream, std::uint64_t event) {
    call(Kind::stream_wait_event, "cuStreamWaitEvent", stream, event);
  }
  void create_event(std::uint64_t event) { call(Kind::event_create, "cuEventCreate", kNone, event); }
  void wait_value(std::uint32_t stream, std::uint64_t address) {
    call(Kind::memory_operation, "cuStreamWaitValue32", stream, address);
  }
  void write_value(std::uint32_t stream, std::uint64_t address) {
    call(Kind::memory_operation, "cuStreamWriteValue32", stream, address);
  }
  // `ended` commands have ended; a mark after `pending` was not reached.
  void progress(std::uint32_t stream, std::uint64_t ended, std::uint64_t pending = 0) {
    record::Stream& one = recording_.streams[stream];
    one.ended = ended;
    one.ended_ns = ended == 0 ? 0 : at_ns_;
    one.pending = pending;
  }
  void all_ended() {
    for (record::Stream& one : recording_.streams) {
      one.ended = one.submitted;
      one.ended_ns = at_ns_;
    }
  }
  void in_call(std::uint32_t thread, Kind kind, std::string_view name, std::uint32_t stream, std::uint64_t object = 0) {
    record::Thread& one = recording_.threads[thread];
    one.started_ns = at_ns_;
    one.kind = static_cast<std::uint8_t>(kind);
    one.function = function(name);
    one.stream = stream;
    one.context = 1;
    one.object = object;
  }
  // Everything so far happened just now.
  void is_fresh() {
    const std::int64_t later = kNow - kSecond - at_ns_;
    for (RecordedEntry& entry : recording_.entries) entry.started_ns += later, entry.ended_ns += later;
    for (record::Stream& one : recording_.streams) {
      one.submitted_ns += later;
      if (one.ended_ns != 0) one.ended_ns += later;
    }
  }

  Recording& recording() { return recording_; }
  HangedProcess& process() { return process_; }
  HangedProcess made() const {
    HangedProcess process = process_;
    process.recording = recording_;
    return process;
  }

 private:
  Recording recording_;
  HangedProcess process_;
  std::vector<std::pair<std::string, std::uint32_t>> texts_;
  std::int64_t at_ns_ = 2 * kSecond;
  std::uint32_t correlation_ = 0;
};

RecordedHang diagnose(const std::vector<HangedProcess>& processes) {
  RecordedHang hang = diagnose_recordings(processes, kNow, kTimeout);
  const std::size_t stacks = hang.text.find("stacks, innermost first");
  expect_narrow(hang.text.substr(0, stacks));
  return hang;
}
RecordedHang diagnose(const Program& program) { return diagnose(std::vector{program.made()}); }

Program rank(int number) {
  Program program(4000 + static_cast<std::uint64_t>(number));
  program.process().rank = number;
  program.process().name = "rank " + std::to_string(number);
  return program;
}

constexpr const char* kPythonSleeps =
    "Python:\n"
    "Thread 0x00007f0000000001 (most recent call first):\n"
    "  File \"/usr/lib/python3.11/threading.py\", line 320 in wait\n"
    "  File \"/usr/lib/python3.11/site-packages/tqdm/_monitor.py\", line 60 in run\n"
    "  File \"/usr/lib/python3.11/threading.py\", line 1045 in _bootstrap_inner\n"
    "\n"
    "Current thread 0x00007f0000000002 (most recent call first):\n"
    "  File \"/app/data/cache.py\", line 17 in fetch\n"
    "  File \"/usr/lib/python3.11/contextlib.py\", line 81 in inner\n"
    "  File \"/app/train.py\", line 41 in <module>\n"
    "\n"
    "thread 4711 (python3):\n"
    "  clock_nanosleep [libc.so.6]\n"
    "  [python3.11]\n";

constexpr const char* kPythonLoads =
    "Python:\n"
    "Current thread 0x00007f0000000002 (most recent call first):\n"
    "  File \"/usr/lib/python3.11/selectors.py\", line 415 in select\n"
    "  File \"/usr/lib/python3.11/multiprocessing/connection.py\", line 930 in wait\n"
    "  File \"/usr/lib/python3.11/multiprocessing/connection.py\", line 256 in poll\n"
    "  File \"/usr/lib/python3.11/multiprocessing/queues.py\", line 113 in get\n"
    "  File \"/venv/lib/python3.11/site-packages/torch/utils/data/dataloader.py\", line 1133 in _try_get_data\n"
    "  File \"/venv/lib/python3.11/site-packages/torch/utils/data/dataloader.py\", line 630 in __next__\n"
    "  File \"/app/train.py\", line 55 in <module>\n";

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

TEST(RecordedHang, a_host_that_launches_nothing_in_Python) {
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

TEST(RecordedHang, a_host_that_launches_nothing_in_native_code) {
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

TEST(RecordedHang, a_stopped_process_is_named_whatever_its_streams_seem_to_do) {
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
TEST(RecordedHang, a_launch_that_waits_in_the_driver_is_the_streams_fault) {
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

TEST(RecordedHang, workers_of_a_data_loader) {
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

TEST(RecordedHang, a_child_is_not_blamed_by_a_program_that_does_not_wait_for_it) {
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

TEST(RecordedHang, a_call_that_does_not_return_while_nothing_is_outstanding) {
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

TEST(RecordedHang, a_call_that_a_stream_explains_is_not_blamed) {
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

TEST(RecordedHang, work_that_nobody_asked_about_is_not_taken_for_unfinished) {
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

TEST(RecordedHang, a_dead_process_and_what_it_ran_last) {
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

// Three ranks in their tenth collective, of which the last one is replaced by tests.
Program waiting_rank(int number, int collectives = 10) {
  Program program = rank(number);
  const std::uint32_t compute = program.stream(7), network = program.stream(13);
  for (int i = 0; i < collectives; ++i) {
    program.launch(compute, "backward(float*)");
    program.launch(network, kReduce);
  }
  program.progress(compute, static_cast<std::uint64_t>(collectives));
  program.progress(network, static_cast<std::uint64_t>(collectives - 1), static_cast<std::uint64_t>(collectives));
  return program;
}

TEST(RecordedHang, a_rank_whose_host_sleeps_has_not_joined) {
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

TEST(RecordedHang, a_dead_rank_has_not_joined) {
  Program absent = waiting_rank(1, 9);
  absent.all_ended();
  absent.process().is_alive = false;
  const RecordedHang hang = diagnose({waiting_rank(0).made(), absent.made()});
  EXPECT_EQ(hang.cause, HangCause::collective);
  EXPECT_TRUE(hang.culprit.starts_with("rank 1 has not joined collective 10")) << hang.culprit;
  EXPECT_TRUE(has(hang.culprit, "which rank 0 is in: it has died")) << hang.culprit;
}

TEST(RecordedHang, a_rank_with_a_stuck_kernel_has_not_joined) {
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

TEST(RecordedHang, a_rank_that_goes_on_without_joining) {
  Program absent = waiting_rank(1, 9);
  absent.all_ended();
  absent.is_fresh();
  const RecordedHang hang = diagnose({waiting_rank(0).made(), absent.made()});
  EXPECT_TRUE(hang.culprit.ends_with("it has submitted 9, and it goes on.")) << hang.culprit;
}

TEST(RecordedHang, ranks_in_different_collectives_and_ranks_that_have_all_joined) {
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

TEST(RecordedHang, a_rank_that_has_ended_the_collective_is_not_blamed) {
  Program done = waiting_rank(0);
  done.all_ended();
  done.process().stacks = kPythonSleeps;
  Program absent = waiting_rank(2, 9);
  absent.all_ended();
  const RecordedHang hang = diagnose({done.made(), waiting_rank(1).made(), absent.made()});
  EXPECT_TRUE(hang.culprit.starts_with("rank 2 has not joined")) << hang.culprit;
}

TEST(RecordedHang, of_several_processes_the_one_that_explains_most_is_blamed) {
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
}  // namespace weir
