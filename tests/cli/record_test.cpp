// Drives `weir record` on a program under a fake driver and a fake CUPTI: what is kept and when, dumps of living and
// dead programs, switching, hangs, and what may not make a program fail.
#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <functional>

#include "base/error.h"
#include "base/json.h"
#include "cli/program.h"
#include "run/record_folders.h"
#include "run/record_live.h"
#include "support/text.h"
#include "trace/recording.h"

namespace weir::testing {
namespace {

namespace fs = std::filesystem;

// ---- Folders ----

TEST(RecordFolders, are_private_and_named_by_the_process) {
  const Folder base;
  const auto roots = record_roots(base.path(), base.path());
  const RecordFolder made = make_record_folder({roots[0]}, std::nullopt, 1);
  struct stat facts{};
  ASSERT_EQ(::stat(made.path.c_str(), &facts), 0);
  EXPECT_EQ(facts.st_mode & 0777, 0700u);
  EXPECT_EQ(made.path.filename(), std::to_string(::getpid()));
  const RecordFolder second = make_record_folder({roots[0]}, std::nullopt, 1);
  EXPECT_EQ(second.path.filename(), std::to_string(::getpid()) + ".1");
  remove_recordings(made);
  EXPECT_FALSE(fs::exists(made.path));
}

TEST(RecordFolders, a_root_that_others_may_read_or_that_is_a_link_is_left_alone) {
  const Folder base, other;
  const auto root = [&](const char* name) { return base.path() / name / "weir" / "record"; };
  fs::create_directories(root("open"));
  fs::permissions(base.path() / "open" / "weir", fs::perms::owner_all | fs::perms::others_read);
  fs::create_directories(base.path() / "linked");
  fs::create_directory_symlink(other.path(), base.path() / "linked" / "weir");
  fs::create_directories(base.path() / "fine");
  const RecordFolder made =
      make_record_folder({root("open"), root("linked"), root("missing"), root("fine")}, std::nullopt, 1);
  EXPECT_EQ(made.path.parent_path(), root("fine"));
  EXPECT_TRUE(fs::is_empty(root("open")));
  EXPECT_TRUE(fs::is_empty(other.path()));
  EXPECT_THROW(make_record_folder({root("open"), root("linked")}, std::nullopt, 1), Error);
  EXPECT_THROW(make_record_folder({root("fine")}, std::nullopt, UINT64_MAX), Error);
}

TEST(RecordFolders, what_is_old_and_of_the_dead_is_removed) {
  const Folder base;
  const fs::path root = record_roots(base.path(), base.path())[0];
  fs::create_directories(root);
  fs::permissions(root, fs::perms::owner_all);
  fs::permissions(root.parent_path(), fs::perms::owner_all);
  const std::string dead = std::to_string([] {
    const pid_t child = start_program({"true"}, ".", "/dev/null", "/dev/null");
    wait_for(child);
    return child;
  }());
  const fs::path chosen = base.path() / "chosen";
  for (const fs::path& folder :
       {root / (dead + ".7"), root / (dead + ".8"), root / std::to_string(::getpid()), root / "notes", chosen}) {
    fs::create_directories(folder);
    put_file(folder / "1.trace.json", "{}");
  }
  fs::create_directory_symlink(chosen, root / (dead + ".9"));
  fs::create_directory_symlink(base.path() / "gone", root / (dead + ".10"));
  const timespec old[2] = {{std::time(nullptr) - 200'000, 0}, {std::time(nullptr) - 200'000, 0}};
  for (const std::string& name : {dead + ".7", std::to_string(::getpid()), std::string("notes"), dead + ".9"})
    ASSERT_EQ(::utimensat(AT_FDCWD, (root / name).c_str(), old, AT_SYMLINK_NOFOLLOW), 0);
  remove_old_recordings({root});
  EXPECT_FALSE(fs::exists(root / (dead + ".7")));
  EXPECT_TRUE(fs::exists(root / (dead + ".8"))) << "it is not old";
  EXPECT_TRUE(fs::exists(root / std::to_string(::getpid()))) << "its process lives";
  EXPECT_TRUE(fs::exists(root / "notes")) << "it is not ours";
  EXPECT_FALSE(fs::is_symlink(root / (dead + ".9")));
  EXPECT_TRUE(fs::exists(chosen / "1.trace.json")) << "what a link leads to is the user's";
  EXPECT_FALSE(fs::is_symlink(root / (dead + ".10")));
}

// ---- Programs ----

#ifdef WEIR_FAKE_PROGRAM

// Beside the other stand-in of a program.
std::string gate_program() { return fs::path(WEIR_FAKE_PROGRAM).parent_path() / "fake_gate_program"; }

bool await(const std::function<bool()>& is_done) {
  for (int i = 0; i < 12'000 && !is_done(); ++i) ::usleep(10'000);
  return is_done();
}

class Record : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(fs::exists(gate_program()));
    if (const char* const before = std::getenv("XDG_RUNTIME_DIR")) runtime_before_ = before;
    fs::create_directory(folder_ / "run");
    ::setenv("XDG_RUNTIME_DIR", (folder_ / "run").c_str(), 1);
    ::setenv("WEIR_CUPTI_LIBRARY", WEIR_FAKE_CUPTI, 1);
  }
  void TearDown() override {
    for (const pid_t process : started_)
      if (::kill(process, SIGKILL) == 0) wait_for(process);
    for (const std::uint64_t pid : recorded_) ::kill(static_cast<pid_t>(pid), SIGKILL);
    runtime_before_.empty() ? ::unsetenv("XDG_RUNTIME_DIR") : ::setenv("XDG_RUNTIME_DIR", runtime_before_.c_str(), 1);
    ::unsetenv("WEIR_CUPTI_LIBRARY");
    ::unsetenv("FAKE_CUPTI_TAKEN");
  }

  using Words = std::vector<std::string>;
  static Words line(const Words& flags, const Words& program) {
    Words words = {"record"};
    words.insert(words.end(), flags.begin(), flags.end());
    words.emplace_back("--");
    words.push_back(gate_program());
    words.insert(words.end(), program.begin(), program.end());
    return words;
  }
  Outcome record(const Words& flags, const Words& program) { return weir(line(flags, program), folder_.path()); }
  Outcome below(const Words& words) {
    Words all = {"record"};
    all.insert(all.end(), words.begin(), words.end());
    return weir(all, folder_.path());
  }
  // Returns the process id of `weir record` when the program has said "ready".
  pid_t start(const Words& flags, Words program) {
    Words words = line(flags, program);
    words.insert(words.begin(), WEIR_BINARY);
    const pid_t process = start_program(words, folder_.path(), out(), err());
    started_.push_back(process);
    EXPECT_TRUE(await([&] { return has(content(out()), "ready\n") || has_ended(process); }));
    EXPECT_TRUE(has(content(out()), "ready\n")) << content(err());
    for (const RecordFile& file : recordings()) recorded_.push_back(file.pid);
    return process;
  }
  void end(pid_t process) { started_.erase(std::remove(started_.begin(), started_.end(), process), started_.end()); }
  // All below the root.
  std::vector<RecordFile> recordings() const { return all_recordings({root()}); }
  std::string only_pid() const {
    const auto all = recordings();
    EXPECT_EQ(all.size(), 1u);
    return all.empty() ? "0" : std::to_string(all[0].pid);
  }
  fs::path root() const { return folder_.path() / "run" / "weir" / "record"; }
  bool is_root_empty() const { return !fs::exists(root()) || fs::is_empty(root()); }
  // Commands of a trace: spans of the device.
  int spans_of(const std::string& trace) const {
    int spans = 0;
    const Json json = read_json(trace);
    for (const Json& event : json["traceEvents"])
      spans += event.contains("cat") && (event["cat"] == "kernel" || event["cat"] == "gpu_memcpy") ? 1 : 0;
    return spans;
  }
  std::string list_row(const std::string& pid) {
    for (const std::string& row : lines_of(below({"list"}).out))
      if (has(row, " " + pid + " ")) return row;
    return {};
  }
  std::string out() const { return folder_ / "out"; }
  std::string err() const { return folder_ / "err"; }
  const Folder& folder() const { return folder_; }

 private:
  Folder folder_;
  std::string runtime_before_;
  std::vector<pid_t> started_;
  std::vector<std::uint64_t> recorded_;
};

TEST_F(Record, leaves_nothing_after_an_ordinary_end) {
  const Outcome made = record({}, {"run", "5", "10", "say", "hello"});
  EXPECT_EQ(made.code, 0) << made.err;
  EXPECT_TRUE(has(made.out, "hello\nended 5\n")) << made.out;  // standard output is the program's
  EXPECT_LE(lines_of(made.err).size(), 2u) << made.err;
  EXPECT_TRUE(has(made.err, "weir record dump ")) << made.err;
  EXPECT_TRUE(is_root_empty());
  EXPECT_EQ(record({"--quiet"}, {"run", "5", "10"}).err, "");
}

TEST_F(Record, keeps_when_asked_and_dumps_by_either_process_and_by_file) {
  const Outcome made = record({"--keep"}, {"run", "20", "10"});
  ASSERT_EQ(made.code, 0) << made.err;
  const auto all = recordings();
  ASSERT_EQ(all.size(), 1u);
  for (const std::string& word : {std::to_string(all[0].pid), std::to_string(all[0].session), all[0].path.string(),
                                  all[0].path.parent_path().string()}) {
    const Outcome dump = below({"dump", word, "-o", "t.json", "--force"});
    ASSERT_EQ(dump.code, 0) << word << ": " << dump.err;
    EXPECT_TRUE(has(dump.out, "t.json: 20 commands in ")) << dump.out;
    EXPECT_TRUE(has(dump.out, "of process " + std::to_string(all[0].pid) + ", nothing lost")) << dump.out;
    EXPECT_GT(spans_of(folder() / "t.json"), 0);
  }
  const Outcome again = below({"dump", std::to_string(all[0].pid), "-o", "t.json"});
  EXPECT_EQ(again.code, 2);
  EXPECT_TRUE(has(again.err, "--force")) << again.err;
  ASSERT_EQ(below({"dump", std::to_string(all[0].pid), "--trace-format", "csv"}).code, 0);
  EXPECT_TRUE(content(folder() / "record.trace.csv").starts_with("rank,device,stream,")) << "the default name";
  EXPECT_TRUE(has(list_row(std::to_string(all[0].pid)), "fake_gate_program  ended"));
  expect_narrow(below({"list"}).out);
  EXPECT_EQ(weir({"analyze", "t.json"}, folder().path()).code, 0);
}

TEST_F(Record, exit_codes_are_the_programs_and_what_failed_is_kept) {
  const Outcome failed = weir({"record", "--", "sh", "-c", "\"$0\" run 5 10; exit 3", gate_program()}, folder().path());
  EXPECT_EQ(failed.code, 3);
  EXPECT_EQ(lines_of(failed.err).size(), 3u) << failed.err;
  EXPECT_TRUE(has(failed.err, "the recording is kept: weir record dump ")) << failed.err;
  EXPECT_EQ(recordings().size(), 1u);
  const Outcome killed =
      weir({"record", "--", "sh", "-c", "\"$0\" run 5 10; kill -9 $$", gate_program()}, folder().path());
  EXPECT_EQ(killed.code, 128 + SIGKILL);
  EXPECT_EQ(recordings().size(), 2u);
}

TEST_F(Record, a_program_without_cuda_leaves_nothing) {
  const Outcome made = weir({"record", "--", "sh", "-c", "exit 3"}, folder().path());
  EXPECT_EQ(made.code, 3);
  EXPECT_TRUE(has(made.err, "no process of the program started CUDA or HIP")) << made.err;
  EXPECT_TRUE(is_root_empty());
  EXPECT_EQ(weir({"record", "--", "./not-there"}, folder().path()).code, 2);
  put_file(folder() / "script", "#!/not/there\n");
  fs::permissions(folder() / "script", fs::perms::owner_all);
  EXPECT_EQ(weir({"record", "--", folder() / "script"}, folder().path()).code, 2);
  EXPECT_TRUE(is_root_empty());
}

TEST_F(Record, standard_input_is_the_programs) {
  const Outcome made = run_program(
      {"sh", "-c", "echo words | \"$0\" record -q -- sh -c 'read line; echo \"$line\"'", WEIR_BINARY}, folder().path());
  EXPECT_EQ(made.out, "words\n") << made.err;
}

TEST_F(Record, is_dumped_while_it_runs_and_after_the_death_of_both) {
  const pid_t process = start({}, {"run", "30", "10", "say", "ready", "sleep", "600000"});
  const std::string pid = only_pid();
  const Outcome alive = below({"dump", pid, "-o", "alive.json"});
  EXPECT_EQ(alive.code, 0) << alive.err;
  EXPECT_TRUE(has(alive.out, "30 commands")) << alive.out;
  EXPECT_TRUE(has(list_row(pid), "recording")) << list_row(pid);
  ASSERT_EQ(::kill(process, SIGKILL), 0);
  EXPECT_EQ(wait_for(process), 128 + SIGKILL);
  end(process);
  // The program goes on, and so does its recording.
  const auto beat = [&] {
    std::string ignored;
    const auto state = LiveRecording(recordings()[0].path).read(ignored);
    return state ? state->header.beat_ns : 0;
  };
  const std::int64_t before = beat();
  EXPECT_TRUE(await([&] { return beat() > before; }));
  EXPECT_TRUE(has(list_row(pid), "recording")) << list_row(pid);
  const Outcome orphan = below({"dump", pid, "-o", "orphan.json"});
  EXPECT_EQ(orphan.code, 0) << orphan.err;
  ::kill(std::atoi(pid.c_str()), SIGKILL);
  EXPECT_TRUE(await([&] { return has(list_row(pid), "died"); })) << list_row(pid);
  const Outcome dead = below({"dump", pid, "-o", "dead.json"});
  EXPECT_EQ(dead.code, 0) << dead.err;
  EXPECT_TRUE(has(dead.out, "30 commands")) << dead.out;
  EXPECT_GT(spans_of(folder() / "dead.json"), 0);
}

TEST_F(Record, a_program_that_is_killed_leaves_its_recording) {
  const pid_t process = start({}, {"run", "30", "10", "say", "ready", "sleep", "600000"});
  const std::string pid = only_pid();
  ASSERT_EQ(::kill(std::atoi(pid.c_str()), SIGKILL), 0);
  EXPECT_EQ(wait_for(process), 128 + SIGKILL);
  end(process);
  EXPECT_TRUE(has(content(err()), "the recording is kept")) << content(err());
  const Outcome dead = below({"dump", pid, "-o", "dead.json"});
  EXPECT_TRUE(has(dead.out, "30 commands")) << dead.out << dead.err;
}

TEST_F(Record, is_switched_off_and_on_while_it_runs) {
  start({"--off"}, {"run", "30", "10", "say", "ready", "sleep", "600000"});
  const std::string pid = only_pid();
  EXPECT_TRUE(await([&] { return has(list_row(pid), " off "); })) << list_row(pid);
  const Outcome on = below({"on", pid});
  EXPECT_EQ(on.code, 0) << on.err;
  EXPECT_TRUE(on.out.starts_with("process " + pid + ": on after ")) << on.out;
  EXPECT_TRUE(has(list_row(pid), " recording ")) << list_row(pid);
  const Outcome off = below({"off", pid});
  EXPECT_EQ(off.code, 0) << off.err;
  EXPECT_TRUE(off.out.starts_with("process " + pid + ": off after ")) << off.out;
  EXPECT_TRUE(has(list_row(pid), " off ")) << list_row(pid);
  ::kill(std::atoi(pid.c_str()), SIGKILL);
  EXPECT_TRUE(await([&] { return has(list_row(pid), "died"); }));
  const Outcome dead = below({"on", pid});
  EXPECT_EQ(dead.code, 1);
  EXPECT_TRUE(has(dead.err, "has ended")) << dead.err;
}

TEST_F(Record, what_has_no_recording_is_named_with_what_to_type) {
  const Outcome running = below({"dump", std::to_string(::getpid())});
  EXPECT_EQ(running.code, 2);
  EXPECT_TRUE(has(running.err, "was not started by `weir record`")) << running.err;
  EXPECT_TRUE(has(running.err, "Start it again: ")) << running.err;
  const Outcome missing = below({"off", "2147483646"});
  EXPECT_EQ(missing.code, 2);
  EXPECT_TRUE(has(missing.err, "there is no recording of such a process")) << missing.err;
  const Outcome path = below({"hang", "nowhere"});
  EXPECT_EQ(path.code, 2);
  EXPECT_TRUE(has(path.err, "no such process, file or folder")) << path.err;
  const Outcome empty = below({"dump", "run"});
  EXPECT_EQ(empty.code, 2);
  EXPECT_TRUE(has(empty.err, "holds no recording")) << empty.err;
  put_file(folder() / "1.weirrec", std::string(100'000, 'x'));
  const Outcome other = below({"dump", "1.weirrec"});
  EXPECT_NE(other.code, 0);
  EXPECT_TRUE(has(other.err, "1.weirrec")) << other.err;
  EXPECT_NE(below({"hang", "1.weirrec"}).code, 0);
  EXPECT_NE(below({"on", "1.weirrec"}).code, 0);
}

TEST_F(Record, a_chosen_folder_is_found_by_the_process_and_stays) {
  const Outcome made = record({"-o", "kept"}, {"run", "5", "10"});
  ASSERT_EQ(made.code, 0) << made.err;
  const auto all = recordings();
  ASSERT_EQ(all.size(), 1u);  // by the link
  const Outcome dump = below({"dump", std::to_string(all[0].pid), "-o", "t.json"});
  EXPECT_EQ(dump.code, 0) << dump.err;
  EXPECT_EQ(below({"dump", "kept", "-o", "u.json"}).code, 0);
  const Outcome again = record({"-o", "kept"}, {"run", "5", "10"});
  EXPECT_EQ(again.code, 2);
  EXPECT_TRUE(has(again.err, "kept: the folder is not empty")) << again.err;
  put_file(folder() / "file", "");
  EXPECT_TRUE(has(record({"-o", "file"}, {"run", "5", "10"}).err, "is not a folder"));
  fs::create_directory(folder() / "empty");
  EXPECT_EQ(record({"-o", "empty"}, {"run", "5", "10"}).code, 0);
}

TEST_F(Record, a_folder_that_cannot_be_written_is_rejected_before_the_program_starts) {
  for (const std::string& name : {std::string("/proc/weir"), std::string("nowhere/kept")}) {
    const Outcome made = record({"-o", name}, {"say", "ran"});
    EXPECT_NE(made.code, 0);
    EXPECT_FALSE(has(made.out, "ran"));
    EXPECT_TRUE(has(made.err, name)) << made.err;
  }
}

TEST_F(Record, a_full_disk_does_not_stop_the_program) {
  const Outcome made = run_program(
      {"sh", "-c", "ulimit -f 1000; \"$0\" record -- \"$1\" run 20 10 say done", WEIR_BINARY, gate_program()},
      folder().path());
  EXPECT_EQ(made.code, 0) << made.err;
  EXPECT_TRUE(has(made.out, "done\nended 20\n")) << made.out;
  EXPECT_TRUE(has(made.err, "ulimit -f")) << made.err;
}

TEST_F(Record, few_descriptors_are_enough) {
  const Outcome made = run_program(
      {"sh", "-c", "ulimit -n 64; \"$0\" record --keep --hang-timeout 60s -- \"$1\" threads 10 10 streams 40 10",
       WEIR_BINARY, gate_program()},
      folder().path());
  EXPECT_EQ(made.code, 0) << made.err;
  EXPECT_TRUE(has(made.out, "misuse none")) << made.out;
  EXPECT_TRUE(has(below({"dump", only_pid(), "-o", "t.json"}).out, "80 commands"));
}

TEST_F(Record, programs_that_handle_their_own_faults_or_forbid_themselves_calls_are_not_disturbed) {
  const Outcome faults = record({"--hang-timeout", "1h"}, {"run", "3", "10", "faults", "run", "3", "10"});
  EXPECT_EQ(faults.code, 0) << faults.err;
  EXPECT_TRUE(has(faults.out, "recovered\n")) << faults.out;
  const pid_t process = start({"--hang-timeout", "1h"}, {"run", "3", "10", "locks-up", "say", "ready", "hang"});
  if (has(content(out()), "has no seccomp")) GTEST_SKIP() << "this kernel has no seccomp";
  const std::string pid = only_pid();
  EXPECT_TRUE(await([&] { return has(content(out()), "hangs\n"); }));
  // To write its stacks it would have to open files.
  const Outcome hang = below({"hang", pid, "--hang-timeout", "1ms"});
  EXPECT_TRUE(has(hang.out, "do_things(float*, int)")) << hang.out;
  EXPECT_EQ(below({"dump", pid, "-o", "t.json"}).code, 0);
  EXPECT_FALSE(has_ended(process));
}

TEST_F(Record, another_subscriber_is_named_and_the_program_runs) {
  ::setenv("FAKE_CUPTI_TAKEN", "1", 1);
  // Exact times are CUPTI's; without them nobody asks it.
  const Outcome made = record({"--keep", "--exact"}, {"run", "20", "10"});
  EXPECT_EQ(made.code, 0) << made.err;
  EXPECT_TRUE(has(made.out, "ended 20")) << made.out;
  EXPECT_TRUE(has(made.err, "nothing is recorded: ")) << made.err;
  const std::string pid = only_pid();
  EXPECT_TRUE(has(list_row(pid), "refused")) << list_row(pid);
  EXPECT_EQ(below({"dump", pid, "-o", "t.json"}).code, 1);
  EXPECT_FALSE(fs::exists(folder() / "t.json"));
}

TEST_F(Record, each_process_of_a_program_has_a_trace) {
  const Outcome made =
      weir({"record", "--keep", "--", "sh", "-c", "\"$0\" run 5 10 & \"$0\" run 7 10; wait", gate_program()},
           folder().path());
  ASSERT_EQ(made.code, 0) << made.err;
  const auto all = recordings();
  ASSERT_EQ(all.size(), 2u);
  const Outcome dump = below({"dump", std::to_string(all[0].session), "-o", "t.json"});
  EXPECT_EQ(dump.code, 0) << dump.err;
  EXPECT_EQ(lines_of(dump.out).size(), 2u) << dump.out;
  for (const RecordFile& file : all)
    EXPECT_GT(spans_of(folder() / ("t.process" + std::to_string(file.pid) + ".json")), 0);
}

TEST_F(Record, exact_has_the_devices_times) {
  ASSERT_EQ(record({"--keep", "--exact"}, {"run", "20", "100"}).code, 0);
  ASSERT_EQ(below({"dump", only_pid(), "-o", "t.json"}).code, 0);
  EXPECT_EQ(spans_of(folder() / "t.json"), 20);
}

TEST_F(Record, a_hang_is_explained_and_ended) {
  const Outcome hung = record({"--hang-timeout", "1s", "--on-hang", "kill"}, {"hang"});
  EXPECT_EQ(hung.code, 1) << hung.err;
  EXPECT_TRUE(has(hung.err, "has not moved for ")) << hung.err;
  EXPECT_TRUE(has(hung.err, "do_things(float*, int)")) << hung.err;
  EXPECT_TRUE(has(hung.err, "cuStreamSynchronize")) << hung.err;  // in the stack, too
  const auto all = recordings();
  ASSERT_EQ(all.size(), 1u);
  EXPECT_TRUE(has(content(all[0].path.parent_path() / "hang.txt"), "do_things(float*, int)"));
}

TEST_F(Record, a_hang_is_explained_on_demand_and_the_program_goes_on) {
  start({"--hang-timeout", "1h"}, {"run", "3", "10", "say", "ready", "hang"});
  const std::string pid = only_pid();
  const auto is_stuck = [&] {
    return has(below({"hang", pid, "--hang-timeout", "100ms"}).out, "do_things(float*, int)");
  };
  EXPECT_TRUE(await(is_stuck)) << below({"hang", pid, "--hang-timeout", "100ms"}).out;
  EXPECT_EQ(::kill(std::atoi(pid.c_str()), 0), 0);
  const Outcome fine = below({"hang", pid, "--hang-timeout", "5h"});
  EXPECT_EQ(fine.code, 0);
  EXPECT_FALSE(has(fine.out, "is stuck in")) << fine.out;
}

TEST_F(Record, a_stall_is_dumped_and_the_program_goes_on) {
  const pid_t process = start({"--stall", "1s"}, {"run", "3", "10", "say", "ready", "hang"});
  const std::string pid = only_pid();
  const fs::path trace = recordings()[0].path.parent_path() / (pid + "-1.trace.json");
  EXPECT_TRUE(await([&] { return fs::exists(trace) && has(content(err()), trace.string()); })) << content(err());
  EXPECT_TRUE(has(content(err()), "no command has ended for ")) << content(err());
  EXPECT_GT(spans_of(trace), 0);
  EXPECT_FALSE(has_ended(process));
}

TEST_F(Record, a_signal_to_weir_dumps_and_does_not_reach_the_program) {
  const pid_t process = start({"--dump-signal", "USR2"}, {"run", "3", "10", "say", "ready", "hang"});
  const std::string pid = only_pid();
  const fs::path trace = recordings()[0].path.parent_path() / (pid + "-1.trace.json");
  ::kill(process, SIGUSR2);
  EXPECT_TRUE(await([&] { return fs::exists(trace) && has(content(err()), trace.string()); })) << content(err());
  EXPECT_TRUE(has(content(err()), "asked for by a signal: ")) << content(err());
  EXPECT_FALSE(has_ended(process));
}

TEST_F(Record, a_slow_step_is_dumped) {
  Words program;
  for (int step = 0; step < 16; ++step) program.insert(program.end(), {"run", "1", "10", "sleep", "60"});
  program.insert(program.end(), {"sleep", "4000", "run", "1", "10"});
  const Outcome made = record({"--slow-step", "5", "--dumps", "1"}, program);
  EXPECT_EQ(made.code, 0) << made.err;
  EXPECT_TRUE(has(made.err, "weir: a step took ")) << made.err;
  EXPECT_TRUE(has(made.err, "-1.trace.json: ")) << made.err;
  EXPECT_EQ(recordings().size(), 0u);
  EXPECT_FALSE(is_root_empty()) << "the dump stays";
}

// A quiet thread's entries stay while another one writes over everything.
TEST_F(Record, a_dump_begins_where_everything_is_kept) {
  const Outcome made =
      record({"--keep", "--memory", "1M"}, {"run", "20", "1", "sleep", "300", "threads", "20000", "0"});
  EXPECT_EQ(made.code, 0) << made.err;
  const std::string pid = only_pid();
  const Outcome dump = below({"dump", pid, "-o", "t.json"});
  EXPECT_EQ(dump.code, 0) << dump.err;
  const Recording recording = read_recording(recordings()[0].path);
  std::size_t kept = 0, older = 0;
  for (const RecordedEntry& entry : recording.entries)
    if (record::is_command(static_cast<record::Kind>(entry.kind)))
      ++(entry.ended_ns < recording.header.overwritten_ns ? older : kept);
  EXPECT_GE(older, 20U);
  EXPECT_TRUE(has(dump.out, fmt::format(": {} commands in ", kept))) << dump.out;
  EXPECT_TRUE(has(dump.out, "all that --memory had room for")) << dump.out;
}

TEST_F(Record, recordings_of_one_process_id_get_a_name_each) {
  for (const char* const name : {"a", "b"}) EXPECT_EQ(record({"-o", name}, {"run", "5", "10"}).code, 0);
  const fs::path a = recordings_in(folder() / "a").at(0).path, b = folder() / "b" / a.filename();
  fs::rename(recordings_in(folder() / "b").at(0).path, b);
  const Outcome both = below({"dump", a, a, b, "-o", "t.json"});
  EXPECT_EQ(both.code, 0) << both.err;
  const std::string word = "t.process" + a.stem().string();
  EXPECT_TRUE(fs::exists(folder() / (word + "-1.json"))) << both.out;
  EXPECT_TRUE(fs::exists(folder() / (word + "-2.json"))) << both.out;
}

TEST_F(Record, a_killed_program_takes_its_children_along) {
  const Outcome hung = weir({"record", "--hang-timeout", "1s", "--on-hang", "kill", "--", "sh", "-c",
                             "(trap '' TERM; \"$0\" hang) & wait", gate_program()},
                            folder().path());
  EXPECT_EQ(hung.code, 1) << hung.err;
  EXPECT_TRUE(has(hung.err, "processes")) << hung.err;
  ASSERT_EQ(recordings().size(), 1U);
  std::string reason;
  const auto state = LiveRecording(recordings()[0].path).read(reason);
  ASSERT_TRUE(state) << reason;
  EXPECT_FALSE(is_alive(state->header));
}

TEST_F(Record, figures_for_prometheus) {
  const Outcome made = record({"--exact", "--openmetrics", "m.prom", "--interval", "100ms"}, {"run", "50", "100"});
  ASSERT_EQ(made.code, 0) << made.err;
  EXPECT_TRUE(content(folder() / "m.prom").starts_with("# TYPE weir_record_processes gauge\n"));
  const pid_t process = start({"--openmetrics", "m.prom", "--exact", "--interval", "100ms"},
                              {"run", "20", "10", "say", "ready", "sleep", "600000"});
  const std::string pid = only_pid();
  const auto text = [&] { return content(folder() / "m.prom"); };
  const std::string labels = "{pid=\"" + pid + "\",program=\"fake_gate_program\"";
  EXPECT_TRUE(await([&] { return has(text(), "weir_record_commands_total" + labels); })) << text();
  EXPECT_TRUE(await([&] { return has(text(), "weir_record_kernel_seconds_total" + labels); })) << text();
  for (const char* part : {"weir_record_processes 1\n", "weir_record_outstanding_commands{", "weir_record_exact{",
                           "kernel=\"do_things(float*, int)\"", "weir_record_busy_ratio{", "# EOF\n"})
    EXPECT_TRUE(has(text(), part)) << part << "\n" << text();
  ::kill(std::atoi(pid.c_str()), SIGKILL);
  wait_for(process);
  end(process);
  EXPECT_TRUE(has(text(), "weir_record_processes 0\n")) << text();
  put_file(folder() / "mine", "not a metric\n");
  const Outcome refused = record({"--openmetrics", "mine"}, {"say", "ran"});
  EXPECT_EQ(refused.code, 2);
  EXPECT_EQ(content(folder() / "mine"), "not a metric\n");
}

TEST_F(Record, signals_go_to_the_program) {
  const pid_t process = start({}, {"run", "3", "10", "say", "ready", "sleep", "600000"});
  ::kill(process, SIGTERM);
  EXPECT_EQ(wait_for(process), 128 + SIGTERM);
  end(process);
}

#endif  // WEIR_FAKE_PROGRAM

}  // namespace
}  // namespace weir::testing
