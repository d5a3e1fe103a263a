// Planted hangs through the built binary: it says where the run stands, and ends in time, alone and on several ranks.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>

#include "cli/program.h"
#include "support/text.h"

namespace weir::testing {
namespace {

constexpr const char* kDeadlock = WEIR_SOURCE_DIR "/tests/cli/deadlock.yaml";

std::vector<std::string> deadlock(std::initializer_list<std::string> more) {
  std::vector<std::string> arguments = {"run",          "--file", kDeadlock,  "--device", "cpu",
                                        "--iterations", "3",      "--warmup", "0",        "--no-trace"};
  arguments.insert(arguments.end(), more);
  return arguments;
}

TEST(CliHang, two_streams_that_wait_for_each_other) {
  const Folder folder;
  const auto begun = std::chrono::steady_clock::now();
  const Outcome outcome =
      weir(deadlock({"--submit", "channel:mpsc", "--hang-timeout", "2s", "-o", folder / "result.json"}));
  EXPECT_EQ(outcome.code, 1) << outcome.out;
  EXPECT_GE(std::chrono::steady_clock::now() - begun, std::chrono::seconds(2));
  for (const char* part :
       {"weir: the run does not go on: nothing has ended for 2.",
        "runs        command 0 of iteration 0: kernel hold (left)",
        "until its flag is set by command 3 of iteration 0 on stream 1:",
        "runs        command 1 of iteration 0: kernel hold (right)",
        "until its flag is set by command 2 of iteration 0 on stream 0:",
        "cycle: stream 0 waits for stream 1 waits for stream 0", "Host threads", "\n  main\n", "CpuSession::finish"})
    EXPECT_TRUE(has(outcome.err, part)) << part << "\n" << outcome.err;
  EXPECT_FALSE(std::filesystem::exists(folder / "result.json"));
}

TEST(CliHang, is_off_unless_asked_for_and_silent_where_the_run_goes_on) {
  Outcome run = weir(deadlock({"--param", "limit_ms=300", "--no-check"}));
  EXPECT_EQ(run.code, 0) << run.err;
  run = weir(deadlock({"--param", "limit_ms=300", "--no-check", "--hang-timeout", "20s", "-q"}));
  EXPECT_EQ(run.code, 0) << run.err;
  EXPECT_EQ(run.err, "");
  // What has no reference cannot pass for checked.
  run = weir(deadlock({"--param", "limit_ms=1"}));
  EXPECT_EQ(run.code, 1);
  EXPECT_TRUE(has(run.err, "'hold' measures and computes nothing that could be checked")) << run.err;
}

TEST(CliHang, a_profile_is_watched_too) {
  const Folder folder;
  const Outcome outcome = weir({"profile", "--file", kDeadlock, "--device", "cpu", "--iterations", "3", "--warmup", "0",
                                "--submit", "graph", "--hang-timeout", "0.5s"},
                               folder.path());
  EXPECT_EQ(outcome.code, 1) << outcome.out;
  EXPECT_TRUE(has(outcome.err, "cycle: stream 0 waits for stream 1")) << outcome.err;
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
}

TEST(CliHang, a_reader_that_does_not_read_holds_up_nothing) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  // Full: whoever writes now waits until somebody reads.
  ::fcntl(ends[1], F_SETFL, O_NONBLOCK);
  const std::string noise(4096, 'x');
  while (::write(ends[1], noise.data(), noise.size()) > 0) {
  }
  ::fcntl(ends[1], F_SETFL, 0);
  const Folder folder;
  const auto begun = std::chrono::steady_clock::now();
  std::vector<std::string> command = {WEIR_BINARY};
  for (const std::string& argument : deadlock({"--hang-timeout", "0.5s"})) command.push_back(argument);
  const pid_t process = start_program(command, folder.path(), "/dev/null", "/proc/self/fd/" + std::to_string(ends[1]));
  siginfo_t ended{};
  while (ended.si_pid == 0 && std::chrono::steady_clock::now() - begun < std::chrono::minutes(4)) {
    ::usleep(10'000);
    ::waitid(P_PID, static_cast<id_t>(process), &ended, WEXITED | WNOHANG | WNOWAIT);
  }
  if (ended.si_pid == 0) ::kill(process, SIGKILL);
  EXPECT_EQ(wait_for(process), 1);
  ::close(ends[0]);
  ::close(ends[1]);
}

TEST(CliHang, every_rank_reports_and_all_end) {
  if (!std::filesystem::exists(std::filesystem::path(WEIR_BINARY).parent_path() / "libweir_mpi.so"))
    GTEST_SKIP() << "libweir_mpi.so was not built: no MPI";
  if (run_program({"mpirun", "--version"}).code != 0) GTEST_SKIP() << "there is no mpirun";
  const Outcome outcome = weir(deadlock({"--ranks", "2", "--hang-timeout", "1s"}));
  EXPECT_EQ(outcome.code, 1) << outcome.out;
  for (const char* part : {"rank 0 of 2: the run does not go on", "rank 1 of 2: the run does not go on"})
    EXPECT_TRUE(has(outcome.err, part)) << part << "\n" << outcome.err;
  // Rank 0 has nothing to hold it, and waits for the other one between iterations.
  const Outcome alone = weir(deadlock({"--ranks", "2", "--hang-timeout", "1s", "--param", "calm_rank=0"}));
  EXPECT_EQ(alone.code, 1) << alone.out;
  EXPECT_TRUE(has(alone.err, "rank 1 of 2: the run does not go on")) << alone.err;
  EXPECT_FALSE(has(alone.err, "rank 0 of 2: the run does not go on")) << alone.err;
}

}  // namespace
}  // namespace weir::testing
