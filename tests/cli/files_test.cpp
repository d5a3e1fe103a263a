// Drives the program among pipes that nobody writes to, full disks, folders that it may not use, and other runs of it
// on the same file.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <thread>

#include "base/json.h"
#include "cli/program.h"
#include "support/text.h"
#include "weir_build.h"

namespace weir::testing {
namespace {

namespace fs = std::filesystem;

constexpr int kDeadlineMs = 120'000;  // only for what would never come
constexpr int kStuck = -1;

bool soon(const std::function<bool()>& is_so) {
  for (int i = 0; i < kDeadlineMs; ++i) {
    if (is_so()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return false;
}

// Its exit code, or kStuck where it never ended by itself.
int end_of(pid_t process) {
  int status = 0;
  if (!soon([&] { return ::waitpid(process, &status, WNOHANG) == process; })) {
    ::kill(process, SIGKILL);
    wait_for(process);
    return kStuck;
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

// Runs it, but not for ever.
Outcome bounded(const std::vector<std::string>& arguments, const Folder& folder) {
  const Folder kept;
  std::vector<std::string> command = {WEIR_BINARY};
  command.insert(command.end(), arguments.begin(), arguments.end());
  Outcome outcome;
  outcome.code = end_of(start_program(command, folder.path(), kept / "out", kept / "err"));
  outcome.out = content(kept / "out");
  outcome.err = content(kept / "err");
  return outcome;
}

// Runs it with a limit of the shell: "-f 8" allows files of 8 KiB.
Outcome limited(const std::string& limit, const std::vector<std::string>& arguments, const Folder& folder) {
  std::vector<std::string> command = {"bash", "-c", "ulimit -S " + limit + " && exec \"$0\" \"$@\"", WEIR_BINARY};
  command.insert(command.end(), arguments.begin(), arguments.end());
  return run_program(command, folder.path());
}

bool has_open(pid_t process, const fs::path& file) {
  std::error_code ignored;
  for (fs::directory_iterator entry("/proc/" + std::to_string(process) + "/fd", ignored);
       !ignored && entry != fs::directory_iterator(); entry.increment(ignored)) {
    std::error_code gone;
    if (fs::read_symlink(entry->path(), gone) == file) return true;
  }
  return false;
}

bool is_over(pid_t process) {
  siginfo_t ended{};
  return ::waitid(P_PID, static_cast<id_t>(process), &ended, WEXITED | WNOHANG | WNOWAIT) == 0 && ended.si_pid != 0;
}

std::vector<std::string> names_in(const fs::path& folder) {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder)) names.push_back(entry.path().filename().string());
  std::sort(names.begin(), names.end());
  return names;
}

std::vector<std::string> small_run(const std::string& file) {
  return {"run", "hetero_kernels", "--device", "sim:h200", "--iterations", "30", "--no-trace", "-o", file, "-q"};
}

TEST(Pipes, InFoldersArePassedOver) {
  const Folder folder;
  fs::create_directory(folder / "results");
  ASSERT_EQ(weir(small_run(folder / "results/run.json")).code, 0);
  fs::copy(folder / "results/run.json", folder / "other.json");
  ASSERT_EQ(::mkfifo((folder / "results/pipe.json").c_str(), 0600), 0);
  fs::create_symlink("pipe.json", folder / "results/link.json");
  const std::string results = folder / "results", other = folder / "other.json";
  const std::vector<std::vector<std::string>> commands = {
      {"compare", results, other},
      {"compare", other, results},
      {"export", results, "--format", "csv"},
#if WEIR_HAVE_SQLITE
      {"history", "add", results, "--db", folder / "history.db", "--commit", "none"},
#endif
#if WEIR_HAVE_HTML
      {"report", other, "--baseline", results, "-o", folder / "page.html"},
      {"report", results, "-o", folder / "second.html"},
#endif
  };
  for (const auto& command : commands) {
    const Outcome outcome = bounded(command, folder);
    EXPECT_NE(outcome.code, kStuck) << fmt::format("{}", fmt::join(command, " "));
    EXPECT_TRUE(outcome.code == 0 || outcome.code == 3) << fmt::format("{}", fmt::join(command, " ")) << outcome.err;
  }
  EXPECT_TRUE(has(bounded(commands[2], folder).err, "pipe.json was skipped: it is not a regular file"));
}

// A pipe that the user names may have its writer later. Until then a signal ends the program.
TEST(Pipes, ThatNobodyWritesToDoNotSurviveSigterm) {
  const Folder folder;
  const std::string pipe = fs::canonical(folder.path()) / "pipe.yaml";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  ASSERT_EQ(weir(small_run(folder / "run.json")).code, 0);
  const std::vector<std::vector<std::string>> commands = {
      {"analyze", pipe},
      {"compare", pipe, folder / "run.json"},
      {"export", pipe},
      {"amd", "log", pipe},
      {"amd", "ftrace", pipe},
      {"amd", "compare", pipe, pipe},
      {"overlap", pipe},
      {"run", "--file", pipe, "--device", "sim:h200"},
#if WEIR_HAVE_SQLITE
      {"history", "add", pipe, "--db", folder / "history.db", "--commit", "none"},
#endif
  };
  for (const auto& command : commands) {
    const std::string words = fmt::format("{}", fmt::join(command, " "));
    const pid_t child = start_weir(command, folder.path());
    EXPECT_TRUE(soon([&] { return has_open(child, pipe) || is_over(child); })) << words << ": blocked while opening";
    ::kill(child, SIGTERM);
    EXPECT_EQ(end_of(child), 128 + SIGTERM) << words;  // whether or not the command catches it
  }
}

TEST(Pipes, OfTheShellCanBeRead) {
  const Folder folder;
  ASSERT_EQ(weir(small_run(folder / "run.json")).code, 0);
  const Outcome given = run_program(
      {"bash", "-c", "\"$0\" compare --baseline <(cat run.json) --test run.json && \"$0\" export /dev/stdin < run.json",
       WEIR_BINARY},
      folder.path());
  EXPECT_EQ(given.code, 0) << given.err;
  const Outcome written = run_program({"bash", "-c",
                                       "\"$0\" export run.json -o >(cat > copy) && \"$0\" export run.json -o "
                                       "/dev/stdout -q | cmp - <(\"$0\" export run.json)",
                                       WEIR_BINARY},
                                      folder.path());
  EXPECT_EQ(written.code, 0) << written.err;
}

TEST(Pipes, AreNoLogsOfADaemonWithoutAReader) {
  const Folder folder;
  ASSERT_EQ(::mkfifo((folder / "log").c_str(), 0600), 0);
  const Outcome outcome = bounded({"sched", "start", "--socket", folder / "s", "--log", folder / "log"}, folder);
  EXPECT_EQ(outcome.code, 2) << outcome.err;
  EXPECT_TRUE(has(outcome.err, "is a pipe that nobody reads")) << outcome.err;
}

// A lock has its holder's number as soon as it is held.
bool is_held(const fs::path& lock) {
  std::error_code missing;
  const auto size = fs::file_size(lock, missing);
  return !missing && size > 0;
}

TEST(Locks, TwoSweepsOnOneFileLoseNothing) {
  const Folder folder;
  const std::string file = folder / "sweep.json";
  const std::vector<std::string> first = {"sweep",      "tiny_kernel_stress", "--device", "cpu",       "--scale",
                                          "tiny",       "--iterations",       "500",      "--streams", "1,64,128",
                                          "--no-trace", "--resume",           "--output", file};
  const pid_t holder = start_weir(first, folder.path());
  ASSERT_TRUE(soon([&] { return is_held(folder / ".sweep.json.lock") || is_over(holder); }));
  ::kill(holder, SIGSTOP);
  std::vector<std::string> second = first;
  second[9] = "2,4";
  for (const char* way : {"--resume", "--force"}) {
    second[second.size() - 3] = way;
    const Outcome outcome = bounded(second, folder);
    EXPECT_EQ(outcome.code, 2) << outcome.out << outcome.err;
    EXPECT_TRUE(has(outcome.err, fmt::format("another weir (process {}) is writing it", holder))) << outcome.err;
  }
  ::kill(holder, SIGCONT);
  EXPECT_EQ(end_of(holder), 0);
  EXPECT_EQ(read_json(file)["results"].size(), 3u);
  second[second.size() - 3] = "--resume";
  EXPECT_EQ(bounded(second, folder).code, 0);
  EXPECT_EQ(read_json(file)["results"].size(), 5u);
  EXPECT_EQ(names_in(folder.path()), std::vector<std::string>{"sweep.json"});
}

TEST(Locks, NamesThatWeirChoseAreNotInTheWay) {
  const Folder folder;
  const std::vector<std::string> words = {"sweep",     "tiny_kernel_stress", "--device", "cpu",       "--scale",
                                          "tiny",      "--iterations",       "500",      "--streams", "64,128",
                                          "--no-trace"};
  const pid_t holder = start_weir(words, folder.path());
  const std::string lock = folder / "results/.sweep-tiny_kernel_stress-cpu.json.lock";
  ASSERT_TRUE(soon([&] { return is_held(lock) || is_over(holder); }));
  ::kill(holder, SIGSTOP);
  std::vector<std::string> second = words;
  second[9] = "1";
  EXPECT_EQ(bounded(second, folder).code, 0);
  ::kill(holder, SIGCONT);
  EXPECT_EQ(end_of(holder), 0);
  EXPECT_EQ(read_json(folder / "results/sweep-tiny_kernel_stress-cpu.json")["results"].size(), 2u);
  EXPECT_EQ(read_json(folder / "results/sweep-tiny_kernel_stress-cpu-2.json")["results"].size(), 1u);
}

TEST(Locks, AFolderOfTrialsHasOneWriter) {
  const Folder folder;
  ASSERT_EQ(::mkfifo((folder / "gate").c_str(), 0600), 0);
  const std::vector<std::string> words = {
      "try", "-o", folder / "trials", "--force", "--trials", "2", "--", "sh", "-c", "read line < " + folder / "gate"};
  const pid_t holder = start_weir(words, folder.path());
  ASSERT_TRUE(soon([&] { return is_held(folder / "trials/.trials.json.lock") || is_over(holder); }));
  const Outcome outcome = bounded(words, folder);
  EXPECT_EQ(outcome.code, 2) << outcome.err;
  EXPECT_TRUE(has(outcome.err, "is writing it")) << outcome.err;
  ::kill(holder, SIGTERM);
  EXPECT_NE(end_of(holder), kStuck);
}

TEST(FullDisk, IsAReasonAndNeverABug) {
  const Folder folder;
  ASSERT_EQ(weir(small_run(folder / "run.json")).code, 0);
  fs::create_directory(folder / "out");
  const std::vector<std::vector<std::string>> commands = {
      {"run", "hetero_kernels", "--device", "sim:h200", "--iterations", "300", "-o", "out/r.json"},
      {"sweep", "hetero_kernels", "--device", "sim:h200", "--iterations", "300", "-o", "out/s.json"},
      {"profile", "hetero_kernels", "--device", "sim:h200", "-o", "out/t.json"},
      {"profile", "hetero_kernels", "--device", "sim:h200", "--iterations", "100", "-o", "out/t.json.gz"},
      {"export", "run.json", "--format", "csv", "--samples", "-o", "out/e.csv"},
#if WEIR_HAVE_SQLITE
      {"history", "add", "run.json", "--db", "out/h.db", "--commit", "none"},
#endif
#if WEIR_HAVE_HTML
      {"report", "run.json", "-o", "out/page.html"},
#endif
      {"queues", "map", "--device", "sim:h200", "-o", "out/m.json"}};
  for (const auto& command : commands) {
    const std::string words = fmt::format("{}", fmt::join(command, " "));
    const Outcome outcome = limited("-f 1", command, folder);
    EXPECT_EQ(outcome.code, 1) << words << "\n" << outcome.err;
    EXPECT_FALSE(has(outcome.err, "bug in weir")) << words << "\n" << outcome.err;
    EXPECT_TRUE(has(outcome.err, "File too large") || has(words, "history")) << words << "\n" << outcome.err;
    for (const std::string& left : names_in(folder / "out")) EXPECT_TRUE(left.starts_with("h.db")) << words << left;
  }
  for (const char* device : {"/dev/full"}) {
    const Outcome outcome = weir({"export", "run.json", "-o", device, "--force"}, folder.path());
    EXPECT_EQ(outcome.code, 1) << outcome.err;
    EXPECT_TRUE(has(outcome.err, "No space left on device")) << outcome.err;
    EXPECT_TRUE(fs::is_character_file(device)) << "the device was replaced";
  }
}

TEST(FullDisk, CapturesThatLackAFileFail) {
  const Folder folder;
  put_file(folder / "debug/kfd/hqds", std::string(100'000, 'x'));
  put_file(folder / "debug/kfd/mqds", "Node 2\n");
  put_file(folder / "sys/class/kfd/kfd/topology/system_properties", "platform_oem 1\n");
  put_file(folder / "kmsg", "");
  const std::vector<std::string> words = {
      "amd",    "capture",       "--tracefs", folder / "none", "--debugfs", folder / "debug", "--sysfs", folder / "sys",
      "--kmsg", folder / "kmsg", "--quiet",   "--force",       "-o",        folder / "out"};
  std::vector<std::string> good = words, bad = words;
  good.insert(good.end(), {"--", "true"});
  bad.insert(bad.end(), {"--", "sh", "-c", "exit 5"});
  EXPECT_EQ(weir(good).code, 0);
  const Outcome outcome = limited("-f 64", good, folder);
  EXPECT_EQ(outcome.code, 1) << outcome.err;
  EXPECT_TRUE(has(outcome.err, "the capture is not complete: snapshots/before/hqds: File too large")) << outcome.err;
  EXPECT_EQ(limited("-f 64", bad, folder).code, 5) << "the program's own code";
}

TEST(Folders, ThatCannotBeUsedAreNoBug) {
  const Folder folder;
  put_file(folder / "results", "a file in the place of the folder");
  const std::vector<std::vector<std::string>> commands = {
      {"sweep", "hetero_kernels", "--device", "sim:h200", "--streams", "1"},
      {"queues", "sweep", "hetero_kernels", "--device", "sim:h200"},
      {"run", "hetero_kernels", "--device", "sim:h200", "-o", "results/r.json"},
      {"try", "-o", "results/trials", "--", "true"},
      {"export", "/proc/1/fd/x/r.json"},
      {"compare", "results/a.json", "results/b.json"}};
  for (const auto& command : commands) {
    const Outcome outcome = bounded(command, folder);
    EXPECT_EQ(outcome.code, 2) << fmt::format("{}: {}", fmt::join(command, " "), outcome.err);
    EXPECT_FALSE(has(outcome.err, "bug in weir")) << outcome.err;
  }
}

TEST(Documents, HaveALimit) {
  const Folder folder;
  put_file(folder / "large.json", "{\"schema\": \"weir.result/2\", ");
  ASSERT_EQ(::truncate((folder / "large.json").c_str(), off_t{3} << 30), 0);
  const Outcome outcome = limited("-v 8000000", {"export", folder / "large.json"}, folder);
  EXPECT_EQ(outcome.code, 2) << outcome.err;
  EXPECT_TRUE(has(outcome.err, "larger than 256 MiB")) << outcome.err;
}

}  // namespace
}  // namespace weir::testing
