// The flight recorder in a program on the fake CUDA driver, and what its file says afterwards and meanwhile.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <functional>
#include <map>
#include <thread>

#include "support/programs.h"
#include "trace/recording.h"

#ifdef WEIR_FAKE_GATE_PROGRAM

namespace weir::testing {
namespace {

namespace fs = std::filesystem;

class CuptiRecordTest : public ::testing::Test {
 protected:
  CuptiRecordTest() {
    std::string name = (fs::temp_directory_path() / "weir_record_XXXXXX").string();
    EXPECT_NE(::mkdtemp(name.data()), nullptr);
    folder_ = name;
  }
  ~CuptiRecordTest() override {
    if (child_ > 0) {
      ::kill(child_, SIGKILL);
      ::waitpid(child_, nullptr, 0);
    }
    std::error_code ignored;
    fs::remove_all(folder_, ignored);
  }

  void start(const std::vector<std::string>& words,
             const std::vector<std::pair<const char*, const char*>>& variables = {}) {
    child_ = ::fork();
    ASSERT_GE(child_, 0);
    if (child_ != 0) return;
    ::setenv("CUDA_INJECTION64_PATH", WEIR_CUPTI_MODULE, 1);
    ::setenv("WEIR_CUPTI_LIBRARY", has_hooks_ ? "/nowhere" : WEIR_FAKE_CUPTI, 1);
    if (has_hooks_) ::setenv("LD_PRELOAD", WEIR_CUPTI_MODULE, 1);
    ::setenv(record::kFolderVariable, folder_.c_str(), 1);
    ::setenv(record::kBytesVariable, "4000000", 1);
    for (const auto& [name, value] : variables) ::setenv(name, value, 1);
    const int output = ::open((folder_ / "output").c_str(), O_CREAT | O_WRONLY | O_APPEND, 0600);
    ::dup2(output, STDOUT_FILENO);
    ::dup2(output, STDERR_FILENO);
    std::vector<char*> arguments = {const_cast<char*>(WEIR_FAKE_GATE_PROGRAM)};
    for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
    arguments.push_back(nullptr);
    ::execv(arguments[0], arguments.data());
    ::_exit(127);
  }
  // Exit code, or 128 + signal.
  int ended() {
    int status = -1;
    EXPECT_EQ(::waitpid(child_, &status, 0), child_);
    child_ = 0;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }
  std::string output() const {
    std::string text;
    std::FILE* const file = std::fopen((folder_ / "output").c_str(), "re");
    if (file == nullptr) return text;
    char part[4096];
    for (std::size_t got = 0; (got = std::fread(part, 1, sizeof(part), file)) > 0;) text.append(part, got);
    std::fclose(file);
    return text;
  }
  fs::path file() const {
    for (const fs::directory_entry& entry : fs::directory_iterator(folder_))
      if (entry.path().extension() == record::kSuffix) return entry.path();
    return {};
  }
  // As often as it takes: the program is running.
  bool eventually(const std::function<bool()>& is_true) const {
    for (int tries = 0; tries < 3000; ++tries) {
      if (is_true()) return true;
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    return false;
  }
  Recording recording() const { return read_recording(file()); }
  Recording of_program(const std::vector<std::string>& words,
                       const std::vector<std::pair<const char*, const char*>>& variables = {}) {
    start(words, variables);
    EXPECT_EQ(ended(), 0) << output();
    EXPECT_NE(output().find("misuse none"), std::string::npos) << output();
    return recording();
  }

  fs::path folder_;
  pid_t child_ = 0;
  bool has_hooks_ = false;
};

// Calls are seen by hooks where the library is preloaded, without any CUPTI, or else by CUPTI's callbacks.
class CudaRecordTest : public CuptiRecordTest, public ::testing::WithParamInterface<bool> {
 protected:
  CudaRecordTest() { has_hooks_ = GetParam(); }
};
INSTANTIATE_TEST_SUITE_P(By, CudaRecordTest, ::testing::Bool(),
                         [](const auto& one) { return one.param ? "hooks" : "callbacks"; });

// By kind.
std::map<record::Kind, int> counted(const Recording& recording) {
  std::map<record::Kind, int> counts;
  for (const RecordedEntry& entry : recording.entries)
    if ((entry.flags & record::flag::kCaptured) == 0) ++counts[static_cast<record::Kind>(entry.kind)];
  return counts;
}

TEST_P(CudaRecordTest, every_launch_is_there_once_with_its_stream_and_name) {
  const Recording recording = of_program({"run", "100", "10", "streams", "40", "10"});
  auto counts = counted(recording);
  EXPECT_EQ(counts[record::Kind::launch], 140);
  EXPECT_EQ(recording.header.lost, 0U);
  EXPECT_TRUE(recording.dropped.empty());
  EXPECT_EQ(recording.header.state, static_cast<std::uint32_t>(record::State::ended));
  ASSERT_FALSE(recording.command().empty());
  std::uint64_t submitted = 0, known = 0;
  for (const record::Stream& stream : recording.streams) {
    submitted += stream.submitted;
    known += stream.ended;
  }
  EXPECT_EQ(submitted, 140U);
  EXPECT_EQ(known, 140U) << "the program waited for its context at the end";
  for (const RecordedEntry& entry : recording.entries)
    if (entry.kind == static_cast<std::uint8_t>(record::Kind::launch)) {
      EXPECT_EQ(recording.text(entry.name), "do_things(float*, int)");
    }
}

TEST_P(CudaRecordTest, every_kind_of_launch_on_default_streams_and_threads) {
  const Recording recording = of_program({"kinds", "threads", "20", "20", "fails"});
  int commands = 0, failed = 0;
  for (const RecordedEntry& entry : recording.entries) {
    if (!record::is_command(static_cast<record::Kind>(entry.kind))) continue;
    ((entry.flags & record::flag::kFailed) != 0 ? failed : commands) += 1;
  }
  EXPECT_EQ(commands, 4 * 8 + 4 * 20);
  EXPECT_EQ(failed, 20);
}

TEST_P(CudaRecordTest, captures_are_not_disturbed_and_a_graph_is_one_command) {
  const Recording recording = of_program({"capture", "20"});
  EXPECT_NE(output().find("graph of 20"), std::string::npos) << output();
  EXPECT_EQ(counted(recording)[record::Kind::graph_launch], 10);
  const auto captured =
      std::count_if(recording.entries.begin(), recording.entries.end(), [](const RecordedEntry& entry) {
        return entry.kind == static_cast<std::uint8_t>(record::Kind::launch) &&
               (entry.flags & record::flag::kCaptured) != 0;
      });
  EXPECT_EQ(captured, 20);
}

TEST_P(CudaRecordTest, events_say_who_waits_for_whom) {
  const Recording recording = of_program({"events", "30"});
  auto counts = counted(recording);
  EXPECT_EQ(counts[record::Kind::event_record], 30) << "marks are not the program's";
  EXPECT_EQ(counts[record::Kind::stream_wait_event], 30);
  EXPECT_EQ(counts[record::Kind::stream_synchronize], 1);
  std::uint32_t recorded_on = record::kNone;
  std::uint64_t event = 0;
  for (const RecordedEntry& entry : recording.entries) {
    if (entry.kind == static_cast<std::uint8_t>(record::Kind::event_record))
      recorded_on = entry.stream, event = entry.object;
    if (entry.kind != static_cast<std::uint8_t>(record::Kind::stream_wait_event)) continue;
    EXPECT_EQ(entry.object, event);
    EXPECT_NE(entry.stream, recorded_on);
  }
}

TEST_P(CudaRecordTest, streams_and_contexts_may_go_with_work_in_them) {
  const Recording recording = of_program({"destroy", "run", "5", "10", "reset", "destroy", "reset", "run", "5", "10"});
  EXPECT_EQ(counted(recording)[record::Kind::launch], 2 * 10 + 2 * 5 + 2);
}

TEST_P(CudaRecordTest, a_forked_child_writes_nothing_and_harms_nothing) {
  const Recording recording = of_program({"run", "10", "10", "fork"});
  EXPECT_NE(output().find("child 0"), std::string::npos) << output();
  EXPECT_EQ(counted(recording)[record::Kind::launch], 10);
}

TEST_P(CudaRecordTest, a_thread_goes_on_after_it_has_forked) {
  const Recording recording = of_program({"fork-thread", "run", "5", "10"});
  EXPECT_NE(output().find("child 0"), std::string::npos) << output();
  EXPECT_EQ(counted(recording)[record::Kind::launch], 15);
}

TEST_P(CudaRecordTest, the_end_of_a_forked_thread_is_not_that_of_its_parents) {
  start({"fork-thread-stays"});
  ASSERT_TRUE(eventually([&] { return output().find("child 0, forked") != std::string::npos; })) << output();
  const Recording recording = this->recording();
  EXPECT_EQ(counted(recording)[record::Kind::launch], 10);
  for (const record::Thread& thread : recording.threads) EXPECT_EQ(thread.has_ended, 0U) << thread.id;
}

TEST_P(CudaRecordTest, a_stream_is_one_stream_whatever_the_current_context) {
  const Recording recording = of_program({"across", "10", "10", "across", "10", "10"});
  std::vector<std::uint64_t> submitted;
  std::vector<std::uint32_t> contexts, destroyed;
  for (const record::Stream& stream : recording.streams) {
    if (stream.is_used == 0) continue;
    submitted.push_back(stream.submitted);
    contexts.push_back(stream.context);
    destroyed.push_back(stream.is_destroyed);
  }
  EXPECT_EQ(submitted, (std::vector<std::uint64_t>{10, 10}));
  EXPECT_EQ(contexts, (std::vector<std::uint32_t>{1, 1}));
  EXPECT_EQ(destroyed, (std::vector<std::uint32_t>{1, 1}));
}

// Programs and their children may have threads with small stacks, out of which libraries take their own memory.
TEST_P(CudaRecordTest, threads_need_hardly_more_stack_than_without) {
  of_program({"small-stacks"});
  EXPECT_NE(output().find("has small stacks"), std::string::npos) << output();
}

TEST_P(CudaRecordTest, a_program_exits_while_a_thread_launches) {
  start({"exits"});
  EXPECT_EQ(ended(), 0) << output();
  EXPECT_GT(recording().entries.size(), 0U);
}

TEST_P(CudaRecordTest, functions_that_a_program_asks_for_are_recorded_too) {
  start({"asks", "20", "run", "3", "10"});
  EXPECT_EQ(ended(), 0) << output();
  // Without hooks RTLD_NEXT is the loader's own.
  EXPECT_NE(output().find("same 1, next 1, missing 1"), std::string::npos) << output();
  const Recording made = recording();
  EXPECT_EQ(counted(made)[record::Kind::launch], 63);
  std::vector<std::uint64_t> submitted;
  for (const record::Stream& stream : made.streams)
    if (stream.is_used != 0) submitted.push_back(stream.submitted);
  EXPECT_EQ(submitted, (std::vector<std::uint64_t>{40, 20, 3})) << "everybody's default stream, a thread's, a new one";
}

TEST_F(CuptiRecordTest, a_driver_that_gives_functions_of_its_own_is_followed_by_callbacks) {
  const Recording made =
      of_program({"run", "20", "10", "asks", "5"}, {{"LD_PRELOAD", WEIR_CUPTI_MODULE}, {"FAKE_DRIVER_FAILS", "give"}});
  EXPECT_EQ(counted(made)[record::Kind::launch], 35);
}

TEST_P(CudaRecordTest, a_program_that_is_linked_with_the_driver_may_ask_first) {
  const Recording made = of_program({"linked", "asks", "5", "run", "3", "10"}, {{record::kOffVariable, "1"}});
  EXPECT_NE(output().find("ended 18"), std::string::npos) << output();
  EXPECT_TRUE(made.entries.empty());
}

TEST_F(CuptiRecordTest, a_profiler_does_not_disturb_hooks_nor_they_it) {
  const Recording made =
      of_program({"run", "20", "10"}, {{"LD_PRELOAD", WEIR_CUPTI_MODULE}, {"FAKE_CUPTI_TAKEN", "1"}});
  EXPECT_EQ(counted(made)[record::Kind::launch], 20);
}

TEST_F(CuptiRecordTest, exact_records_have_the_times_of_the_device) {
  const Recording recording = of_program({"run", "50", "100", "sleep", "100"}, {{record::kExactVariable, "1"}});
  auto counts = counted(recording);
  EXPECT_EQ(counts[record::Kind::launch], 50);
  EXPECT_EQ(counts[record::Kind::device], 50);
  std::map<std::uint32_t, int> of_call;
  for (const RecordedEntry& entry : recording.entries) {
    if (entry.kind == static_cast<std::uint8_t>(record::Kind::launch)) ++of_call[entry.correlation];
    if (entry.kind != static_cast<std::uint8_t>(record::Kind::device)) continue;
    --of_call[entry.correlation];
    EXPECT_GE(entry.ended_ns, entry.started_ns);
    EXPECT_EQ(recording.text(entry.name), "do_things(float*, int)");
  }
  for (const auto& [correlation, surplus] : of_call) EXPECT_EQ(surplus, 0) << correlation;
}

TEST_F(CuptiRecordTest, a_driver_or_profiler_that_refuses_leaves_the_program_unharmed) {
  for (const char* what : {"make", "record", "query"}) {
    start({"run", "50", "10"}, {{"FAKE_DRIVER_FAILS", what}});
    EXPECT_EQ(ended(), 0) << what << output();
    fs::remove(file());
  }
  start({"run", "50", "10"}, {{"FAKE_CUPTI_TAKEN", "1"}});
  EXPECT_EQ(ended(), 0) << output();
  const Recording recording = this->recording();
  EXPECT_EQ(recording.header.state, static_cast<std::uint32_t>(record::State::refused));
  EXPECT_NE(recording.text(recording.header.message).find("CUPTI for somebody is one already"), std::string::npos);
}

TEST_F(CuptiRecordTest, records_beside_another_profiler_where_cupti_allows_it) {
  const Recording recording = of_program({"run", "20", "10"}, {{"FAKE_CUPTI_TAKEN", "1"}, {"FAKE_CUPTI_SHARED", "1"}});
  auto counts = counted(recording);
  EXPECT_EQ(static_cast<int>(recording.entries.size()),
            20 + counts[record::Kind::mark] + counts[record::Kind::context_synchronize]);
}

// What survives SIGKILL, and a stream that is stuck.
TEST_P(CudaRecordTest, a_killed_program_leaves_what_it_did_and_where_its_streams_are) {
  start({"hang"}, {{record::kHangVariable, "1"}});
  const auto streams = [&] {
    const fs::path path = file();
    return path.empty() || output().find("hangs") == std::string::npos ? std::vector<record::Stream>()
                                                                       : read_recording(path).streams;
  };
  // The end of the first stream is marked although nobody launches any more.
  EXPECT_TRUE(eventually([&] {
    const auto now = streams();
    return now.size() > 1 && now[0].ended == 3 && now[0].pending == 4 && now[1].pending == 1;
  })) << output();
  ::kill(child_, SIGKILL);
  EXPECT_EQ(ended(), 128 + SIGKILL);
  const Recording recording = this->recording();
  EXPECT_EQ(recording.header.state, static_cast<std::uint32_t>(record::State::running));
  EXPECT_EQ(recording.streams[0].submitted, 4U);
  EXPECT_EQ(recording.streams[1].submitted, 1U);
  EXPECT_EQ(recording.streams[1].ended, 0U);
  const auto in_call =
      std::count_if(recording.threads.begin(), recording.threads.end(), [&](const record::Thread& thread) {
        return thread.started_ns != 0 && recording.function(thread.function) == "cuStreamSynchronize";
      });
  EXPECT_EQ(in_call, 1);
}

// Switches and questions go through the mapped file.
class Mapped {
 public:
  explicit Mapped(const fs::path& path) {
    const int descriptor = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
    memory_ = ::mmap(nullptr, sizeof(record::Header), PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
    ::close(descriptor);
  }
  ~Mapped() { ::munmap(memory_, sizeof(record::Header)); }
  std::atomic_ref<std::uint32_t> word(std::uint32_t record::Header::* member) const {
    return std::atomic_ref(static_cast<record::Header*>(memory_)->*member);
  }

 private:
  void* memory_ = nullptr;
};

TEST_P(CudaRecordTest, is_switched_off_and_on_while_the_program_runs) {
  start({"run", "10", "10", "sleep", "200", "say", "first", "sleep", "100000"});
  ASSERT_TRUE(eventually([&] { return output().find("first") != std::string::npos; })) << output();
  const Mapped mapped(file());
  for (int round = 0; round < 3; ++round)
    for (const std::uint32_t off : {1U, 0U}) {
      mapped.word(&record::Header::wanted_off).store(off);
      EXPECT_TRUE(eventually([&] { return mapped.word(&record::Header::is_off).load() == off; }));
    }
}

TEST_P(CudaRecordTest, begins_off_and_then_records_nothing) {
  const Recording recording = of_program({"run", "20", "10"}, {{record::kOffVariable, "1"}});
  EXPECT_TRUE(recording.entries.empty());
  EXPECT_EQ(recording.header.is_off, 1U);
}

TEST_P(CudaRecordTest, says_what_its_threads_do_when_asked) {
  start({"hang"}, {{record::kHangVariable, "1"}});
  ASSERT_TRUE(eventually([&] { return output().find("hangs") != std::string::npos; })) << output();
  const Mapped mapped(file());
  for (std::uint32_t asked = 1; asked <= 3; ++asked) {
    mapped.word(&record::Header::stacks_wanted).store(asked);
    ASSERT_TRUE(eventually([&] { return mapped.word(&record::Header::stacks_given).load() == asked; }));
  }
  const Recording recording = this->recording();
  EXPECT_NE(recording.text(recording.header.stacks).find("cuStreamSynchronize"), std::string::npos)
      << recording.text(recording.header.stacks);
}

}  // namespace
}  // namespace weir::testing

#endif
