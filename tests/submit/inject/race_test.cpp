// libweir_cupti.so in a program on the fake CUDA driver, under plans of `weir race`.
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "submit/inject/race_plan.h"
#include "trace/race_format.h"

namespace weir::testing {
namespace {

using inject::RaceName;
namespace format = race_format;
using RaceKind = format::Kind;

#ifdef WEIR_FAKE_RACE_PROGRAM

struct Logged {
  format::Entry entry{};
  std::vector<format::Access> accesses;
  std::string name;
  bool is(RaceKind kind) const { return static_cast<RaceKind>(entry.kind) == kind; }
  RaceName command() const { return {entry.thread, entry.sequence}; }
};

class RaceTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = (std::filesystem::temp_directory_path() / "weir_race_XXXXXX").string();
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    folder_ = name;
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  void plan(const std::string& lines) { std::ofstream(folder_ / "plan") << "weir race plan 1\n" << lines; }
  // Runs the program; expects that it ends well.
  void run(const std::string& words, const std::string& variables = "") {
    const std::string line = "WEIR_RACE_FOLDER='" + folder_.string() +
                             "' LD_PRELOAD='" WEIR_CUPTI_MODULE "' CUDA_INJECTION64_PATH='" WEIR_CUPTI_MODULE
                             "' WEIR_CUPTI_LIBRARY='" WEIR_FAKE_CUPTI "' " +
                             variables + " timeout 100 '" WEIR_FAKE_RACE_PROGRAM "' " + words + " 2>&1";
    output_.clear();
    std::FILE* const pipe = ::popen(line.c_str(), "r");
    ASSERT_NE(pipe, nullptr);
    std::array<char, 4096> part;
    for (std::size_t size = 0; (size = std::fread(part.data(), 1, part.size(), pipe)) > 0;)
      output_.append(part.data(), size);
    EXPECT_EQ(::pclose(pipe), 0) << output_;
    EXPECT_TRUE(has("misuse none")) << output_;
  }
  bool has(const std::string& line) const { return ("\n" + output_).find("\n" + line + "\n") != std::string::npos; }
  std::string file(const char* name) const {
    std::ostringstream text;
    text << std::ifstream(folder_ / name, std::ios::binary).rdbuf();
    return text.str();
  }
  std::set<std::string> notes() const {
    std::set<std::string> lines;
    std::istringstream text(file("notes"));
    for (std::string line; std::getline(text, line);) lines.insert(line);
    return lines;
  }
  // Every entry, and expects that nothing is torn. Texts are resolved.
  std::vector<Logged> log() const {
    const std::string bytes = file("log");
    std::vector<Logged> all;
    std::map<std::uint64_t, std::string> texts;
    EXPECT_GE(bytes.size(), sizeof(format::Header));
    std::size_t at = sizeof(format::Header);
    while (at + sizeof(format::Entry) <= bytes.size()) {
      Logged one;
      std::memcpy(&one.entry, bytes.data() + at, sizeof(one.entry));
      at += sizeof(one.entry);
      const std::size_t size = one.entry.accesses * (one.is(RaceKind::text) ? 1 : sizeof(format::Access));
      if (at + size > bytes.size()) break;
      if (one.is(RaceKind::text)) {
        texts[one.entry.object] = bytes.substr(at, size);
      } else {
        one.accesses.resize(one.entry.accesses);
        if (size > 0) std::memcpy(one.accesses.data(), bytes.data() + at, size);
        if (one.entry.name != 0) one.name = texts.at(one.entry.name);
      }
      at += size;
      all.push_back(one);
    }
    EXPECT_EQ(at, bytes.size());
    return all;
  }
  static std::vector<Logged> of(const std::vector<Logged>& all, RaceKind kind) {
    std::vector<Logged> some;
    for (const Logged& one : all)
      if (one.is(kind)) some.push_back(one);
    return some;
  }

  std::filesystem::path folder_;
  std::string output_;
};

void expect_access(const Logged& one, std::size_t at, std::uint64_t begin, std::uint64_t bytes, std::uint32_t how) {
  ASSERT_LT(at, one.accesses.size());
  EXPECT_EQ(one.accesses[at].begin, begin);
  EXPECT_EQ(one.accesses[at].bytes, bytes);
  EXPECT_EQ(one.accesses[at].how, how);
}

TEST_F(RaceTest, each_kind_of_call_is_in_the_log) {
  plan("observe\n");
  run("everything");
  unsigned long long block[5] = {};
  const std::size_t at = output_.find("blocks ");
  ASSERT_NE(at, std::string::npos) << output_;
  ASSERT_EQ(std::sscanf(output_.c_str() + at, "blocks %llx %llx %llx %llx %llx", &block[0], &block[1], &block[2],
                        &block[3], &block[4]),
            5);
  std::vector<Logged> calls;
  for (const Logged& one : log())
    if (!one.is(RaceKind::text) && !one.is(RaceKind::stream)) calls.push_back(one);
  constexpr RaceKind kKinds[] = {RaceKind::allocate,  // three before the first command
                                 RaceKind::allocate,
                                 RaceKind::allocate,
                                 RaceKind::kernel,
                                 RaceKind::allocate,  // the module's, found by asking
                                 RaceKind::kernel,
                                 RaceKind::event_record,
                                 RaceKind::stream_wait_event,
                                 RaceKind::allocate,
                                 RaceKind::copy,
                                 RaceKind::copy,
                                 RaceKind::copy,
                                 RaceKind::set,
                                 RaceKind::event_synchronize,
                                 RaceKind::stream_synchronize,
                                 RaceKind::stream_synchronize,
                                 RaceKind::event_synchronize,
                                 RaceKind::allocate,
                                 RaceKind::release,
                                 RaceKind::release,
                                 RaceKind::context_synchronize,
                                 RaceKind::context_synchronize};
  ASSERT_EQ(calls.size(), std::size(kKinds));
  for (std::size_t i = 0; i < calls.size(); ++i) {
    EXPECT_EQ(static_cast<int>(calls[i].entry.kind), static_cast<int>(kKinds[i])) << i;
    EXPECT_EQ(calls[i].entry.thread, 1u) << i;
    EXPECT_GT(calls[i].entry.time_ns, 0) << i;
  }
  constexpr std::uint32_t kBoth = format::kReads | format::kWrites;
  EXPECT_EQ(calls[3].name, "move(int*, int*)");
  EXPECT_EQ(calls[3].command(), (RaceName{1, 1}));
  ASSERT_EQ(calls[3].accesses.size(), 2u);  // neither the duration nor the count
  expect_access(calls[3], 0, block[0], 0, kBoth);
  EXPECT_EQ(calls[3].accesses[0].parameter, 1u);
  expect_access(calls[3], 1, block[1], 0, kBoth);
  EXPECT_EQ(calls[3].accesses[1].parameter, 2u);
  ASSERT_EQ(calls[5].accesses.size(), 2u);
  EXPECT_NE(calls[6].entry.object, 0u);
  EXPECT_EQ(calls[6].entry.object, calls[7].entry.object);
  EXPECT_EQ(calls[6].entry.stream, calls[3].entry.stream);
  EXPECT_NE(calls[7].entry.stream, calls[3].entry.stream);
  EXPECT_EQ(calls[8].entry.flags, format::kHost);
  expect_access(calls[8], 0, block[3], 32, 0);
  expect_access(calls[9], 0, block[1], 16, format::kReads | format::kExact);
  expect_access(calls[9], 1, block[3], 16, format::kWrites | format::kExact);
  EXPECT_EQ(calls[9].entry.flags, 0);
  EXPECT_EQ(calls[10].entry.flags, format::kSynchronous);  // into pageable memory
  expect_access(calls[11], 0, block[1], 24, format::kReads | format::kExact);
  expect_access(calls[12], 0, block[2], 8, format::kWrites | format::kExact);
  EXPECT_EQ(calls[12].command(), (RaceName{1, 6}));
  EXPECT_EQ(calls[13].entry.object, calls[6].entry.object);
  expect_access(calls[17], 0, block[4], 128, 0);
  EXPECT_EQ(calls[17].entry.stream, calls[7].entry.stream);
  expect_access(calls[18], 0, block[4], 128, 0);
  EXPECT_EQ(calls[18].entry.stream, calls[7].entry.stream);
  expect_access(calls[19], 0, block[0], 64, 0);
  EXPECT_EQ(calls[19].entry.stream, format::kNone);
}

TEST_F(RaceTest, rows_are_logged_from_their_first_byte_to_their_last) {
  plan("observe\n");
  run("rectangles");
  unsigned long long block[3] = {};
  const std::size_t at = output_.find("blocks ");
  ASSERT_NE(at, std::string::npos) << output_;
  ASSERT_EQ(std::sscanf(output_.c_str() + at, "blocks %llx %llx %llx", &block[0], &block[1], &block[2]), 3);
  std::vector<Logged> commands;
  for (const Logged& one : log())
    if (one.entry.sequence != 0) commands.push_back(one);
  ASSERT_EQ(commands.size(), 6u);
  constexpr std::uint32_t kRead = format::kReads | format::kExact, kWritten = format::kWrites | format::kExact;
  expect_access(commands[0], 0, block[0] + 8, 2 * 8 + 4, kRead);
  expect_access(commands[0], 1, block[1] + 2, 2 * 16 + 4, kWritten);
  expect_access(commands[1], 0, block[0], 12 + 4 + 4, kRead);
  expect_access(commands[1], 1, block[1] + 12, 12 + 4 + 4, kWritten);
  expect_access(commands[2], 0, block[2], 8 + 6, kWritten);
  EXPECT_TRUE(commands[3].is(RaceKind::memory_operation));
  expect_access(commands[3], 0, block[2], 4, kWritten);
  EXPECT_EQ(commands[4].entry.flags, format::kSynchronous);
  expect_access(commands[5], 0, block[0], 0, format::kReads | format::kWrites);
  expect_access(commands[5], 1, block[1] + 8, 0, format::kReads | format::kWrites);
}

TEST_F(RaceTest, streams_say_what_they_are) {
  plan("observe\n");
  run("plain default-streams");
  std::map<std::string, int> flags;
  for (const Logged& one : of(log(), RaceKind::stream)) flags[one.name] = one.entry.flags;
  EXPECT_EQ(flags, (std::map<std::string, int>{{"stream 13", 0},
                                               {"stream 14", 0},
                                               {"legacy default stream", format::kLegacy},
                                               {"default stream of thread 1", format::kBlocking}}));
}

TEST_F(RaceTest, captures_and_graphs_are_in_the_log) {
  plan("observe\n");
  run("captured");
  const std::vector<Logged> all = log();
  const auto ends = of(all, RaceKind::capture_ends), made = of(all, RaceKind::graph_made),
             launched = of(all, RaceKind::graph_launch);
  ASSERT_EQ(of(all, RaceKind::capture_begins).size(), 2u);
  ASSERT_EQ(ends.size(), 2u);
  ASSERT_EQ(made.size(), 2u);
  ASSERT_EQ(launched.size(), 2u);
  for (std::size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(made[i].entry.other, ends[i].entry.object);
    EXPECT_EQ(launched[i].entry.object, made[i].entry.object);
    EXPECT_EQ(launched[i].command(), (RaceName{1, static_cast<std::uint32_t>(3 * i + 3)}));
  }
  const auto kernels = of(all, RaceKind::kernel);
  ASSERT_EQ(kernels.size(), 5u);
  for (std::size_t i = 0; i < 5; ++i) EXPECT_EQ(kernels[i].entry.flags, i < 4 ? format::kCaptured : 0) << i;
  EXPECT_EQ(kernels[4].command(), (RaceName{1, 7}));
  const auto streams = of(all, RaceKind::stream);  // the first of them was captured when it was first seen
  ASSERT_EQ(streams.size(), 2u);
  EXPECT_EQ(streams[0].name, "stream 13");
}

TEST_F(RaceTest, a_delay_stands_before_its_command) {
  plan("delay 1.1 400000\ndelay 1.3 777000\n");
  run("plain");
  EXPECT_TRUE(has("result 2")) << output_;
  EXPECT_TRUE(has("stream 13: k400 k1 record")) << output_;
  EXPECT_TRUE(has("stream 14: wait k1 k777 k10")) << output_;
  EXPECT_EQ(notes(), (std::set<std::string>{"delay 1.1 400000: done", "delay 1.3 777000: done"}));
  EXPECT_FALSE(std::filesystem::exists(folder_ / "log"));
}

TEST_F(RaceTest, a_delay_becomes_part_of_a_graph) {
  plan("delay 1.2 300000\ndelay 1.3 200000\n");
  run("captured");
  EXPECT_TRUE(has("graph of 3")) << output_;
  EXPECT_NE(output_.find("stream 13: k11 k300 k12 k11 k12\n"), std::string::npos) << output_;
  EXPECT_NE(output_.find("stream 14: k200 k11 k300 k12 k11 k12 k13\n"), std::string::npos) << output_;
}

TEST_F(RaceTest, a_delay_goes_into_default_streams_too) {
  plan("delay 1.1 50000\ndelay 1.2 60000\ndelay 1.3 70000\n");
  run("default-streams");
  EXPECT_NE(output_.find(": k50 k21 k70 k23\n"), std::string::npos) << output_;
  EXPECT_NE(output_.find(": k60 k22\n"), std::string::npos) << output_;
}

// The delay is long, and still nothing overtakes it.
TEST_F(RaceTest, a_wait_that_is_added_orders_the_two) {
  plan("delay 1.1 10000000\nwait 1.1 1.2\n");
  run("races");
  EXPECT_TRUE(has("stream 13: k10000 k1 record")) << output_;
  EXPECT_TRUE(has("stream 14: wait k1 k10")) << output_;
  EXPECT_TRUE(has("result 2")) << output_;
  EXPECT_TRUE(notes().contains("wait 1.1 1.2: done"));
}

TEST_F(RaceTest, a_join_that_is_added_orders_the_two) {
  plan("delay 1.1 10000000\njoin 1.1\n");
  run("races");
  EXPECT_TRUE(has("result 2")) << output_;
  EXPECT_TRUE(notes().contains("join 1.1: done"));
}

TEST_F(RaceTest, what_cannot_be_waited_for_is_left_out) {
  plan("wait 1.1 1.3\nwait 1.4 1.1\nwait 1.1 1.4\njoin 1.2\nhash 1.2\nwait 1.7 9.9\n");
  run("captured", "FAKE_DRIVER_CAPTURES_EVENTS=1");
  const auto said = notes();
  EXPECT_TRUE(said.contains("wait 1.1 1.3: left out: only one of the two commands is captured into a graph"));
  EXPECT_TRUE(said.contains("wait 1.4 1.1: left out: the first command was not submitted before the second"));
  EXPECT_TRUE(said.contains("wait 1.1 1.4: left out: the two commands are captured into different graphs"));
  EXPECT_TRUE(said.contains("join 1.2: left out: the command is captured into a graph"));
  EXPECT_TRUE(said.contains("hash 1.2: left out: the command is captured into a graph"));
  EXPECT_TRUE(said.contains("command 9.9: was not reached"));
}

TEST_F(RaceTest, a_wait_within_a_capture_becomes_an_edge) {
  plan("wait 1.1 1.2\n");
  run("captured", "FAKE_DRIVER_CAPTURES_EVENTS=1");
  EXPECT_TRUE(notes().contains("wait 1.1 1.2: done"));
  EXPECT_NE(output_.find("stream 13: k11 record wait k12 "), std::string::npos) << output_;
}

TEST_F(RaceTest, blind_delays_are_those_that_the_seed_chooses) {
  plan("observe\nblind 5 3 1000\n");
  run("plain plain plain plain plain plain");
  std::set<std::string> expected;
  std::size_t commands = 0;
  for (const Logged& one : log()) {
    if (one.entry.sequence == 0) continue;
    ++commands;
    if (format::mix(5, one.entry.thread, one.entry.sequence) % 3 == 0)
      expected.insert("delay " + inject::text_of(one.command()) + " 1000: done");
  }
  EXPECT_EQ(commands, 18u);
  EXPECT_FALSE(expected.empty());
  EXPECT_EQ(notes(), expected);
  std::filesystem::remove(folder_ / "claim");
  std::filesystem::remove(folder_ / "notes");
  plan("blind 5 1 1000\nmost 2\n");
  run("plain plain");
  EXPECT_EQ(notes().size(), 2u);
}

TEST_F(RaceTest, hashes_say_what_a_command_changed) {
  plan("observe\nhash 1.1\n");
  run("plain");
  const auto hashed = of(log(), RaceKind::hashed);
  ASSERT_EQ(hashed.size(), 1u);
  EXPECT_EQ(hashed[0].command(), (RaceName{1, 1}));
  ASSERT_EQ(hashed[0].accesses.size(), 2u);
  EXPECT_EQ(hashed[0].accesses[0].begin, hashed[0].accesses[0].bytes);  // it was read
  EXPECT_NE(hashed[0].accesses[1].begin, hashed[0].accesses[1].bytes);  // it was written
  EXPECT_NE(hashed[0].accesses[1].how, 0u);
  EXPECT_TRUE(notes().contains("hash 1.1: done"));
}

TEST_F(RaceTest, a_stack_is_that_of_the_call) {
  plan("stack 1.2\n");
  run("plain");
  const std::string text = file("stacks");
  EXPECT_TRUE(text.starts_with("command 1.2\n")) << text;
  EXPECT_NE(text.find("fake_race_program"), std::string::npos) << text;
  EXPECT_EQ(text.find("weir_cupti"), std::string::npos) << text;
  EXPECT_TRUE(text.ends_with("\n\n")) << text;
}

// splitmix64 over words, summed up.
std::string digest_of(std::vector<std::uint64_t> words) {
  std::uint64_t sum = 0, index = 0;
  for (std::uint64_t word : words) {
    word ^= ++index * 0x9e3779b97f4a7c15u;
    word = (word ^ (word >> 30)) * 0xbf58476d1ce4e5b9u;
    word = (word ^ (word >> 27)) * 0x94d049bb133111ebu;
    sum += word ^ (word >> 31);
  }
  char text[17];
  std::snprintf(text, sizeof(text), "%016llx", static_cast<unsigned long long>(sum));
  return text;
}

TEST_F(RaceTest, checkpoints_are_hashed_where_they_lie) {
  plan("observe\n");
  run("checkpoints");
  EXPECT_EQ(file("digests"), "the_loss 1 " + digest_of({1, 0}) + "\nthe_loss 2 " + digest_of({2, 0}) + "\nhost 1 " +
                                 digest_of({2}) + "\nnothing 1 0000000000000000\n");
  const auto entries = of(log(), RaceKind::checkpoint);
  ASSERT_EQ(entries.size(), 4u);
  EXPECT_EQ(entries[0].name, "the_loss");
  EXPECT_NE(entries[0].entry.stream, format::kNone);
  EXPECT_EQ(entries[2].entry.stream, format::kNone);
}

TEST_F(RaceTest, only_the_first_process_follows_the_plan) {
  plan("delay 1.1 400000\n");
  run("plain forks again");
  EXPECT_EQ(notes(), std::set<std::string>{"delay 1.1 400000: done"});
  EXPECT_EQ(output_.find("k400"), output_.rfind("k400")) << output_;
  run("plain");  // the claim is still there
  EXPECT_EQ(output_.find("k400"), std::string::npos) << output_;
}

TEST_F(RaceTest, a_plan_that_makes_no_sense_harms_nobody) {
  plan("delay 1.1 400000\nexplode 1.1\n");
  run("plain");
  EXPECT_TRUE(has("result 2")) << output_;
  EXPECT_NE(output_.find("weir: the program runs undisturbed: "), std::string::npos) << output_;
  EXPECT_NE(file("notes").find("line 3 is no instruction"), std::string::npos) << file("notes");
  EXPECT_EQ(output_.find("k400"), std::string::npos) << output_;
  std::filesystem::remove(folder_ / "plan");
  run("plain");
  EXPECT_TRUE(has("result 2")) << output_;
  std::filesystem::create_directory(folder_ / "plan");
  run("plain");
  EXPECT_TRUE(has("result 2")) << output_;
}

TEST_F(RaceTest, a_driver_that_refuses_leaves_the_program_unharmed) {
  plan("delay 1.1 400000\nhash 1.2\nobserve\n");
  run("plain captured", "FAKE_DRIVER_FAILS=load");
  EXPECT_TRUE(has("result 2")) << output_;
  EXPECT_NE(file("notes").find("delay 1.1 400000: left out: kernels cannot be loaded: CUDA error 209"),
            std::string::npos)
      << file("notes");
  EXPECT_NE(file("notes").find("hash 1.2: left out: "), std::string::npos) << file("notes");
}

// None of their commands is missing, or there twice.
TEST_F(RaceTest, threads_are_told_apart) {
  plan("observe\nblind 3 4 1000\n");
  run("threads 100");
  EXPECT_TRUE(has("wrong 0")) << output_;
  std::map<std::uint32_t, std::uint32_t> last;
  std::size_t commands = 0;
  for (const Logged& one : log()) {
    if (one.entry.sequence == 0) continue;
    ++commands;
    EXPECT_EQ(one.entry.sequence, ++last[one.entry.thread]);
    EXPECT_LE(one.entry.thread, 4u);
  }
  EXPECT_EQ(commands, 1200u);
  EXPECT_EQ(last.size(), 4u);
}

#endif

}  // namespace
}  // namespace weir::testing
