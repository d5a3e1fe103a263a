// Recorded programs made up call by call, and what the diagnosis says of them.
#pragma once

#include <cstring>

#include "run/recorded_hang.h"
#include "support/text.h"

namespace weir::testing {

using record::Kind;
using record::kNone;

inline constexpr std::int64_t kSecond = 1'000'000'000, kNow = 100 * kSecond, kTimeout = 10 * kSecond;
inline constexpr const char* kReduce = "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)";
inline constexpr const char* kGather = "ncclDevKernel_AllGather_RING_LL(ncclDevKernelArgsStorage<4096ul>)";

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

inline RecordedHang diagnose(const std::vector<HangedProcess>& processes) {
  RecordedHang hang = diagnose_recordings(processes, kNow, kTimeout);
  const std::size_t stacks = hang.text.find("stacks, innermost first");
  expect_narrow(hang.text.substr(0, stacks));
  return hang;
}
inline RecordedHang diagnose(const Program& program) { return diagnose(std::vector{program.made()}); }

inline Program rank(int number) {
  Program program(4000 + static_cast<std::uint64_t>(number));
  program.process().rank = number;
  program.process().name = "rank " + std::to_string(number);
  return program;
}

inline constexpr const char* kPythonSleeps =
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

inline constexpr const char* kPythonLoads =
    "Python:\n"
    "Current thread 0x00007f0000000002 (most recent call first):\n"
    "  File \"/usr/lib/python3.11/selectors.py\", line 415 in select\n"
    "  File \"/usr/lib/python3.11/multiprocessing/connection.py\", line 930 in wait\n"
    "  File \"/usr/lib/python3.11/multiprocessing/connection.py\", line 256 in poll\n"
    "  File \"/usr/lib/python3.11/multiprocessing/queues.py\", line 113 in get\n"
    "  File \"/venv/lib/python3.11/site-packages/torch/utils/data/dataloader.py\", line 1133 in _try_get_data\n"
    "  File \"/venv/lib/python3.11/site-packages/torch/utils/data/dataloader.py\", line 630 in __next__\n"
    "  File \"/app/train.py\", line 55 in <module>\n";

// Three ranks in their tenth collective, of which the last one is replaced by tests.
inline Program waiting_rank(int number, int collectives = 10) {
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

}  // namespace weir::testing
