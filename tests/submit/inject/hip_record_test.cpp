// What libweir_hip_gate.so records of a program that is linked with the fake HIP runtime, as `weir record` reads it.
#ifdef WEIR_FAKE_HIP_PROGRAM

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "submit/inject/gated_program.h"
#include "support/programs.h"
#include "trace/recording.h"

namespace weir::testing {
namespace {

using record::Kind;
using record::kNone;

constexpr std::uint64_t kDefaultStream = 1, kStreamOfThread = 2;

std::vector<std::filesystem::path> recordings_in(const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> all;
  for (const auto& file : std::filesystem::directory_iterator(folder))
    if (file.path().extension() == record::kSuffix) all.push_back(file.path());
  return all;
}

std::size_t count_of(const Recording& recording, Kind kind, std::uint32_t stream = kNone, std::uint8_t flags = 0) {
  return static_cast<std::size_t>(
      std::count_if(recording.entries.begin(), recording.entries.end(), [&](const RecordedEntry& entry) {
        return entry.kind == static_cast<std::uint8_t>(kind) && (stream == kNone || entry.stream == stream) &&
               entry.flags == flags;
      }));
}

std::size_t calls_of(const Recording& recording, std::string_view function) {
  return static_cast<std::size_t>(
      std::count_if(recording.entries.begin(), recording.entries.end(), [&](const RecordedEntry& entry) {
        return entry.kind != static_cast<std::uint8_t>(Kind::mark) && recording.function(entry.function) == function;
      }));
}

// Those that have commands.
std::vector<std::uint32_t> used_streams(const Recording& recording) {
  std::vector<std::uint32_t> used;
  for (std::uint32_t place = 0; place < recording.streams.size(); ++place)
    if (recording.streams[place].is_used != 0 && recording.streams[place].submitted != 0) used.push_back(place);
  return used;
}
std::uint32_t stream_with(const Recording& recording, std::uint64_t handle) {
  for (const std::uint32_t place : used_streams(recording))
    if (recording.streams[place].handle == handle) return place;
  return kNone;
}

bool has_all_ended(const Recording& recording) {
  const std::vector<std::uint32_t> used = used_streams(recording);
  return !used.empty() && std::all_of(used.begin(), used.end(), [&](std::uint32_t place) {
    return recording.streams[place].ended == recording.streams[place].submitted;
  });
}

class HipRecordTest : public ::testing::Test {
 protected:
  std::vector<std::string> command(const std::vector<std::string>& words,
                                   const std::vector<std::string>& variables = {}) const {
    std::vector<std::string> all = {"env", "LD_PRELOAD=" WEIR_HIP_GATE,
                                    std::string(record::kFolderVariable) + "=" + folder_.path().string(),
                                    std::string(record::kBytesVariable) + "=4194304"};
    all.insert(all.end(), variables.begin(), variables.end());
    all.emplace_back(WEIR_FAKE_HIP_PROGRAM);
    all.insert(all.end(), words.begin(), words.end());
    return all;
  }
  Outcome program(const std::vector<std::string>& words, const std::vector<std::string>& variables = {}) const {
    return run_program(command(words, variables));
  }
  Recording recording() const {
    const auto files = recordings_in(folder_.path());
    if (files.size() != 1) {
      ADD_FAILURE() << files.size() << " recordings";
      return {};
    }
    return read_recording(files[0]);
  }

  Folder folder_;
};

TEST_F(HipRecordTest, counts_the_commands_of_each_stream_once_although_hip_calls_itself) {
  const Outcome outcome = program({"run", "40", "default", "40"});
  EXPECT_EQ(outcome.code, 0) << outcome.out << outcome.err;
  EXPECT_EQ(outcome.out.find("wrong"), std::string::npos) << outcome.out;
  const Recording all = recording();
  EXPECT_TRUE(all.dropped.empty());
  EXPECT_EQ(all.header.state, static_cast<std::uint32_t>(record::State::ended));
  EXPECT_EQ(all.header.lost, 0U);
  EXPECT_EQ(calls_of(all, "hipModuleLaunchKernel"), 40U);
  EXPECT_EQ(calls_of(all, "hipLaunchKernel"), 20U);
  const std::vector<std::uint32_t> streams = used_streams(all);
  ASSERT_EQ(streams.size(), 2U);
  EXPECT_NE(stream_with(all, kDefaultStream), kNone);
  for (const std::uint32_t stream : streams) {
    EXPECT_EQ(count_of(all, Kind::launch, stream), 30U);
    EXPECT_EQ(count_of(all, Kind::copy, stream), 10U);
    EXPECT_EQ(count_of(all, Kind::host_function, stream), 40U);
    EXPECT_EQ(count_of(all, Kind::stream_synchronize, stream), 1U);
    EXPECT_EQ(all.streams[stream].submitted, 80U);
    EXPECT_EQ(all.streams[stream].ended, 80U);
    EXPECT_EQ(all.streams[stream].device, 0U);
    EXPECT_EQ(all.streams[stream].context, 1U);
  }
  std::map<std::uint32_t, std::uint32_t> numbers;
  std::set<std::uint32_t> correlations;
  for (const RecordedEntry& entry : all.entries) {
    if (!record::is_command(static_cast<Kind>(entry.kind))) continue;
    EXPECT_EQ(entry.number, ++numbers[entry.stream]);
    EXPECT_TRUE(correlations.insert(entry.correlation).second);
    EXPECT_LE(entry.started_ns, entry.ended_ns);
    if (entry.kind == static_cast<std::uint8_t>(Kind::launch)) {
      EXPECT_EQ(all.text(entry.name), "weir_fill_i32");
    }
    if (entry.kind == static_cast<std::uint8_t>(Kind::copy)) {
      EXPECT_EQ(entry.object, 800'000U);
    }
  }
}

TEST_F(HipRecordTest, shows_who_records_an_event_and_who_waits_for_it) {
  EXPECT_EQ(program({"events", "10"}).code, 0);
  const Recording all = recording();
  EXPECT_EQ(count_of(all, Kind::event_create), 10U);
  EXPECT_EQ(count_of(all, Kind::event_synchronize), 10U);
  EXPECT_EQ(count_of(all, Kind::event_destroy), 10U);
  EXPECT_EQ(count_of(all, Kind::context_synchronize), 1U);
  std::vector<RecordedEntry> made, recorded, waits;
  for (const RecordedEntry& entry : all.entries) {
    if (entry.kind == static_cast<std::uint8_t>(Kind::event_create)) made.push_back(entry);
    if (entry.kind == static_cast<std::uint8_t>(Kind::event_record)) recorded.push_back(entry);
    if (entry.kind == static_cast<std::uint8_t>(Kind::stream_wait_event)) waits.push_back(entry);
  }
  ASSERT_EQ(recorded.size(), 10U);
  ASSERT_EQ(waits.size(), 10U);
  for (std::size_t i = 0; i < recorded.size(); ++i) {
    EXPECT_NE(made[i].object, 0U);
    EXPECT_EQ(recorded[i].object, made[i].object);
    EXPECT_EQ(waits[i].object, made[i].object);
    EXPECT_EQ(recorded[i].stream, recorded[0].stream);
    EXPECT_EQ(waits[i].stream, waits[0].stream);
  }
  EXPECT_NE(recorded[0].stream, waits[0].stream);
  // Both were destroyed, and the program waited for the device before.
  const std::vector<std::uint32_t> streams = used_streams(all);
  EXPECT_EQ(streams.size(), 2U);
  for (const std::uint32_t stream : streams) {
    EXPECT_EQ(all.streams[stream].is_destroyed, 1U);
    EXPECT_EQ(all.streams[stream].submitted, 10U);
    EXPECT_EQ(all.streams[stream].ended, 10U);
  }
}

TEST_F(HipRecordTest, copies_that_the_host_waits_for_have_ended_when_they_return) {
  EXPECT_EQ(program({"copy", "3"}).code, 0);
  const Recording all = recording();
  EXPECT_EQ(count_of(all, Kind::synchronous_copy), 3U);
  EXPECT_EQ(count_of(all, Kind::memset), 1U);
  EXPECT_EQ(count_of(all, Kind::copy), 0U) << "what hipMemcpy calls itself";
  const std::uint32_t stream = stream_with(all, kDefaultStream);
  ASSERT_NE(stream, kNone);
  EXPECT_EQ(all.streams[stream].submitted, 4U);
  EXPECT_EQ(all.streams[stream].ended, 4U);
}

TEST_F(HipRecordTest, names_kernels_as_people_wrote_them_and_knows_collectives) {
  EXPECT_EQ(program({"names"}).code, 0);
  const Recording all = recording();
  std::vector<std::string> names;
  for (const RecordedEntry& entry : all.entries)
    if (entry.kind == static_cast<std::uint8_t>(Kind::launch)) names.emplace_back(all.text(entry.name));
  EXPECT_EQ(names, (std::vector<std::string>{"scale_all(float*, int)", "ncclDevKernel_AllReduce()"}));
  const std::vector<std::uint32_t> streams = used_streams(all);
  ASSERT_EQ(streams.size(), 1U);
  EXPECT_EQ(all.streams[streams[0]].collectives, 1U);
}

TEST_F(HipRecordTest, an_event_that_a_launch_records_is_recorded) {
  EXPECT_EQ(program({"timed"}).code, 0);
  const Recording all = recording();
  ASSERT_EQ(count_of(all, Kind::event_record), 1U) << "HIP's own is none of the program's";
  ASSERT_EQ(count_of(all, Kind::event_create), 1U);
  std::uint64_t made = 0, recorded = 0;
  for (const RecordedEntry& entry : all.entries) {
    if (entry.kind == static_cast<std::uint8_t>(Kind::event_create)) made = entry.object;
    if (entry.kind == static_cast<std::uint8_t>(Kind::event_record)) recorded = entry.object;
  }
  EXPECT_EQ(recorded, made);
  EXPECT_EQ(calls_of(all, "hipExtLaunchKernel"), 2U) << "the launch and the record";
}

TEST_F(HipRecordTest, the_default_stream_of_a_thread_is_its_own) {
  EXPECT_EQ(program({"own", "4", "own", "5"}).code, 0);
  const Recording all = recording();
  std::multiset<std::uint64_t> submitted;
  std::uint64_t commands = 0;
  for (const std::uint32_t stream : used_streams(all)) {
    EXPECT_EQ(all.streams[stream].handle, kStreamOfThread);
    EXPECT_NE(all.streams[stream].thread, kNone);
    EXPECT_EQ(all.streams[stream].ended, all.streams[stream].submitted);
    commands += all.streams[stream].submitted;
  }
  EXPECT_EQ(commands, 9U);
  EXPECT_EQ(count_of(all, Kind::launch), 9U);
}

TEST_F(HipRecordTest, what_is_captured_does_not_run) {
  EXPECT_EQ(program({"capture", "10"}).code, 0);
  const Recording all = recording();
  EXPECT_EQ(count_of(all, Kind::launch), 0U);
  EXPECT_EQ(count_of(all, Kind::launch, kNone, record::flag::kCaptured), 10U);
  EXPECT_EQ(count_of(all, Kind::graph_launch), 5U);
  const std::vector<std::uint32_t> streams = used_streams(all);
  ASSERT_EQ(streams.size(), 1U);
  EXPECT_EQ(all.streams[streams[0]].submitted, 5U);
  EXPECT_EQ(all.streams[streams[0]].ended, 5U);
}

TEST_F(HipRecordTest, commands_that_fail_are_noted_and_not_counted) {
  const Outcome outcome = program({"fails"});
  EXPECT_NE(outcome.out.find("failed as they should"), std::string::npos) << outcome.out;
  const Recording all = recording();
  EXPECT_EQ(count_of(all, Kind::launch, kNone, record::flag::kFailed), 20U);
  EXPECT_EQ(count_of(all, Kind::launch), 0U);
  EXPECT_TRUE(used_streams(all).empty());
}

// ROCm 5.2 cannot be asked for a stream's device by the function that later versions have.
TEST_F(HipRecordTest, older_versions_are_recorded_without_what_they_lack) {
  std::vector<std::string> words = command({"events", "10", "names", "default", "8"});
  std::replace(words.begin(), words.end(), std::string(WEIR_FAKE_HIP_PROGRAM), std::string(WEIR_FAKE_HIP_PROGRAM_5));
  const Outcome outcome = run_program(words);
  EXPECT_EQ(outcome.code, 0) << outcome.out << outcome.err;
  const Recording all = recording();
  EXPECT_EQ(count_of(all, Kind::launch), 28U);
  EXPECT_EQ(count_of(all, Kind::host_function), 8U);
  EXPECT_EQ(used_streams(all).size(), 4U);
  for (const std::uint32_t stream : used_streams(all)) EXPECT_EQ(all.streams[stream].device, 0U);
  EXPECT_TRUE(has_all_ended(all));
}

TEST_F(HipRecordTest, a_forked_child_records_nothing) {
  const Outcome outcome = program({"run", "8", "fork", "default", "8"});
  EXPECT_NE(outcome.out.find("child 0\n"), std::string::npos) << outcome.out;
  const Recording all = recording();
  EXPECT_EQ(count_of(all, Kind::launch, kNone, record::flag::kFailed), 0U);
  EXPECT_EQ(count_of(all, Kind::launch), 12U) << "the program goes on as before";
  EXPECT_EQ(all.header.state, static_cast<std::uint32_t>(record::State::ended));
}

TEST_F(HipRecordTest, a_device_that_is_reset_has_new_streams) {
  EXPECT_EQ(program({"run", "8", "default", "8", "reset", "default", "12"}).code, 0);
  const Recording all = recording();
  std::multiset<std::pair<std::uint32_t, std::uint64_t>> streams;  // destroyed, commands
  for (const std::uint32_t stream : used_streams(all)) {
    EXPECT_EQ(all.streams[stream].ended, all.streams[stream].submitted);
    streams.emplace(all.streams[stream].is_destroyed, all.streams[stream].submitted);
  }
  EXPECT_EQ(streams.count({0, 24}), 1U);
  EXPECT_EQ(count_of(all, Kind::launch), 6U + 6U + 9U);
  EXPECT_EQ(calls_of(all, "hipDeviceReset"), 1U);
}

TEST_F(HipRecordTest, exact_times_are_another_tools) {
  EXPECT_EQ(program({"run", "8"}, {std::string(record::kExactVariable) + "=1"}).code, 0);
  const Recording all = recording();
  EXPECT_NE(all.text(all.header.message).find("rocprofv3"), std::string_view::npos) << all.text(all.header.message);
  EXPECT_EQ(all.header.is_exact, 0U);
  EXPECT_EQ(count_of(all, Kind::launch), 6U);
}

TEST_F(HipRecordTest, programs_without_hip_leave_no_file) {
  EXPECT_EQ(run_program({"env", "LD_PRELOAD=" WEIR_HIP_GATE,
                         std::string(record::kFolderVariable) + "=" + folder_.path().string(), "sh", "-c", "true"})
                .code,
            0);
  EXPECT_TRUE(recordings_in(folder_.path()).empty());
}

TEST_F(HipRecordTest, a_folder_that_is_not_there_costs_the_recording_alone) {
  const Outcome outcome = program({"run", "8"}, {std::string(record::kFolderVariable) + "=" + folder_ / "none"});
  EXPECT_EQ(outcome.code, 0);
  EXPECT_NE(outcome.out.find("values right"), std::string::npos) << outcome.out;
  EXPECT_NE(outcome.err.find("weir: cannot write a recording into "), std::string::npos) << outcome.err;
}

// A program that does what the test says while the test looks at its recording.
class LiveHipRecordTest : public HipRecordTest {
 protected:
  void start(const std::vector<std::string>& variables = {}) {
    int input[2], output[2];
    ASSERT_EQ(::pipe2(input, O_CLOEXEC), 0);
    ASSERT_EQ(::pipe2(output, O_CLOEXEC), 0);
    const std::vector<std::string> words = command({"stdin"}, variables);
    std::vector<char*> arguments;
    for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
    arguments.push_back(nullptr);
    process_ = ::fork();
    if (process_ == 0) {
      ::dup2(input[0], 0);
      ::dup2(output[1], 1);
      ::execvp(arguments[0], arguments.data());
      ::_exit(127);
    }
    ::close(input[0]);
    ::close(output[1]);
    input_ = input[1];
    output_ = ::fdopen(output[0], "r");
    ASSERT_GT(process_, 0);
  }
  void TearDown() override {
    if (process_ > 0) ::kill(process_, SIGKILL);
    end();
    if (input_ >= 0) ::close(input_);
    if (output_ != nullptr) std::fclose(output_);
  }
  void kill() { ::kill(process_, SIGKILL), end(); }
  void end() {
    if (process_ > 0) ::waitpid(process_, nullptr, 0);
    process_ = -1;
  }
  // Returns when the program has done it.
  void say(const std::string& words) {
    const std::string line = words + "\n";
    ASSERT_EQ(::write(input_, line.data(), line.size()), static_cast<ssize_t>(line.size()));
    char answer[256];
    do {
      ASSERT_NE(std::fgets(answer, sizeof(answer), output_), nullptr) << "it ended at: " << words;
    } while (std::string(answer) != "ok\n");
  }
  // Looks until that is so.
  template <class Condition>
  Recording await(Condition&& condition) {
    for (int i = 0; i < 6000; ++i) {
      Recording now = recording();
      if (condition(now)) return now;
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    ADD_FAILURE() << "it never became so";
    return recording();
  }
  // As `weir record on|off` does.
  void want_off(std::uint32_t is_off) {
    const auto files = recordings_in(folder_.path());
    ASSERT_EQ(files.size(), 1U);
    const int file = ::open(files[0].c_str(), O_RDWR | O_CLOEXEC);
    EXPECT_EQ(::pwrite(file, &is_off, sizeof(is_off), offsetof(record::Header, wanted_off)), 4);
    ::close(file);
    await([&](const Recording& now) { return now.header.is_off == is_off; });
  }

  pid_t process_ = -1;
  int input_ = -1;
  std::FILE* output_ = nullptr;
};

TEST_F(LiveHipRecordTest, marks_show_that_commands_have_ended_although_nobody_asks_hip) {
  start();
  say("quiet 8");
  // A mark's entry comes after what it says about its stream.
  const Recording all = await([](const Recording& now) { return has_all_ended(now) && count_of(now, Kind::mark) > 0; });
  ASSERT_EQ(used_streams(all).size(), 1U);
  const record::Stream& stream = all.streams[used_streams(all)[0]];
  EXPECT_EQ(stream.submitted, 16U);
  EXPECT_GE(count_of(all, Kind::mark, used_streams(all)[0]), 1U);
  EXPECT_EQ(count_of(all, Kind::event_create), 0U) << "our own events are none of the program's";
  EXPECT_EQ(count_of(all, Kind::event_record), 0U);
  for (const RecordedEntry& entry : all.entries)
    if (entry.kind == static_cast<std::uint8_t>(Kind::mark)) {
      EXPECT_LE(entry.object, stream.submitted);
    }
}

TEST_F(LiveHipRecordTest, marks_go_on_after_captures) {
  start();
  say("capture 4");
  say("quiet 4");
  const Recording all = await(has_all_ended);
  EXPECT_EQ(used_streams(all).size(), 2U);
}

TEST_F(LiveHipRecordTest, is_switched_off_and_on_while_the_program_runs) {
  start();
  say("run 8");
  want_off(1);
  const std::size_t before = recording().entries.size();
  say("run 8");
  EXPECT_EQ(recording().entries.size(), before);
  want_off(0);
  say("run 8");
  const Recording all = recording();
  EXPECT_EQ(count_of(all, Kind::launch), 12U);
  EXPECT_EQ(count_of(all, Kind::copy), 4U);
}

TEST_F(LiveHipRecordTest, may_begin_switched_off) {
  start({std::string(record::kOffVariable) + "=1"});
  say("run 8");
  EXPECT_TRUE(recording().entries.empty());
  want_off(0);
  say("run 8");
  EXPECT_EQ(count_of(recording(), Kind::launch), 6U);
}

TEST_F(LiveHipRecordTest, a_program_that_hangs_and_is_killed_leaves_what_it_was_doing) {
  start({std::string(record::kHangVariable) + "=1"});
  say("run 8");
  say("stuck 0");
  const auto in_wait = [](const Recording& now) {
    for (const record::Thread& thread : now.threads)
      if (thread.started_ns != 0 && thread.kind == static_cast<std::uint8_t>(Kind::stream_synchronize))
        return thread.stream;
    return kNone;
  };
  await([&](const Recording& now) {
    const std::uint32_t stream = in_wait(now);
    return stream != kNone && now.streams[stream].submitted == 3 && now.streams[stream].ended <= 1;
  });
  kill();
  const Recording all = recording();
  EXPECT_EQ(all.header.state, static_cast<std::uint32_t>(record::State::running)) << "it did not end normally";
  const std::uint32_t stuck = in_wait(all);
  ASSERT_NE(stuck, kNone);
  EXPECT_EQ(all.streams[stuck].submitted, 3U);
  EXPECT_LE(all.streams[stuck].ended, 1U);
  EXPECT_EQ(count_of(all, Kind::memory_operation, stuck), 1U);
  EXPECT_EQ(count_of(all, Kind::launch), 6U + 2U);
}

// The gate holds launches of the same program meanwhile.
class ScheduledHipRecordTest : public GatedProgramTest {};

TEST_F(ScheduledHipRecordTest, programs_are_held_and_recorded_at_once) {
  start_daemon(1);
  const Folder folder;
  const Ended ended = run("WEIR_RECORD_FOLDER='" + folder.path().string() + "'",
                          "env LD_PRELOAD='" WEIR_HIP_GATE "' '" WEIR_FAKE_HIP_PROGRAM "' run 40 fails default 16");
  EXPECT_EQ(ended.status, 0) << ended.output;
  EXPECT_EQ(ended.output.find("wrong"), std::string::npos) << ended.output;
  EXPECT_LE(ended.number("most"), 2) << ended.output;
  const auto files = recordings_in(folder.path());
  ASSERT_EQ(files.size(), 1U);
  const Recording all = read_recording(files[0]);
  EXPECT_EQ(count_of(all, Kind::launch), 30U + 12U);
  EXPECT_EQ(count_of(all, Kind::copy), 10U + 4U);
  EXPECT_EQ(count_of(all, Kind::event_record), 0U) << "the gate's marks are none of the program's";
  EXPECT_TRUE(has_all_ended(all));
}

}  // namespace
}  // namespace weir::testing

#endif
