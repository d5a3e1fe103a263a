// Drives the built binary on several ranks: under its own mpirun, with a rank that is killed, with bad arguments.
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>
#include <utility>

#include "base/json.h"
#include "cli/program.h"
#include "support/text.h"

namespace weir::testing {
namespace {

// Why ranks cannot be tested here; empty where they can.
std::string missing() {
  if (!std::filesystem::exists(std::filesystem::path(WEIR_BINARY).parent_path() / "libweir_mpi.so"))
    return "libweir_mpi.so was not built: no MPI";
  return run_program({"mpirun", "--version"}).code == 0 ? "" : "there is no mpirun";
}

#define NEEDS_MPI() \
  if (const std::string reason = missing(); !reason.empty()) GTEST_SKIP() << reason

std::vector<std::string> tiny_rank_run(std::initializer_list<std::string> more) {
  std::vector<std::string> arguments = {"run",  "tiny_kernel_stress", "--device", "cpu",      "--scale",
                                        "tiny", "--iterations",       "5",        "--warmup", "1"};
  arguments.insert(arguments.end(), more);
  return arguments;
}

// State and parent of a process; nothing where it is gone.
std::pair<char, pid_t> state_of(pid_t process) {
  // 1234 (weir) S 1200 ...: the parent is the second field after the name.
  const std::string line = content("/proc/" + std::to_string(process) + "/stat");
  const std::size_t name_end = line.rfind(')');
  std::istringstream fields(name_end == std::string::npos ? "" : line.substr(name_end + 1));
  char state = 'X';
  pid_t parent = 0;
  fields >> state >> parent;
  return {state, parent};
}

bool is_running(pid_t process) {
  const char state = state_of(process).first;
  return state != 'X' && state != 'Z';
}

// The process that is rank `rank` of the job below `launcher`; 0 until there is one.
pid_t find_rank(pid_t launcher, int rank) {
  const std::string wanted = "OMPI_COMM_WORLD_RANK=" + std::to_string(rank);
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    const std::string name = entry.path().filename();
    if (name.find_first_not_of("0123456789") != std::string::npos) continue;
    if (!has(content(entry.path() / "environ"), wanted)) continue;
    for (pid_t above = std::stoi(name); above > 1; above = state_of(above).second)
      if (above == launcher) return std::stoi(name);
  }
  return 0;
}

// Waits until every rank watches the others, which is the last thing before the run itself. Returns the ranks.
std::vector<pid_t> await_ranks(pid_t launcher, int count) {
  std::vector<pid_t> ranks;
  for (int i = 0; i < 1200 && static_cast<int>(ranks.size()) < count; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    ranks.clear();
    for (int rank = 0; rank < count; ++rank) {
      const pid_t process = find_rank(launcher, rank);
      std::error_code gone;
      for (const auto& thread : std::filesystem::directory_iterator("/proc/" + std::to_string(process) + "/task", gone))
        if (content(thread.path() / "comm") == "rank watch\n") ranks.push_back(process);
    }
  }
  return ranks;
}

TEST(Ranks, WriteOneValidResult) {
  NEEDS_MPI();
  const Folder folder;
  for (const char* sync : {"per_iteration", "end_only", "none"}) {
    const std::string file = folder / (std::string(sync) + ".json");
    const Outcome outcome = weir(tiny_rank_run({"--ranks", "2", "--sync-mode", sync, "-o", file}));
    ASSERT_EQ(outcome.code, 0) << outcome.err;
    // Rank 0 says what it does, a line for each stage; no line is rewritten where nobody sees it.
    EXPECT_EQ(outcome.err.find('\r'), std::string::npos) << outcome.err;
    EXPECT_TRUE(has(outcome.err, "weir: measure, ")) << outcome.err;
    EXPECT_EQ(outcome.err.find("weir: measure"), outcome.err.rfind("weir: measure")) << "one rank prints";
    EXPECT_EQ(outcome.out.find("Written to"), outcome.out.rfind("Written to")) << "one rank prints";
    EXPECT_TRUE(has(outcome.out, "2 on 1 host")) << outcome.out;
    std::istringstream lines(outcome.out.substr(0, outcome.out.find("Written")));
    for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 80u) << line;

    const Json result = read_json(file);
    EXPECT_EQ(result["status"], "complete");
    const Json& ranks = result["ranks"];
    EXPECT_EQ(ranks["count"], 2);
    ASSERT_EQ(ranks["per_rank"].size(), 2u);
    EXPECT_EQ(ranks["per_rank"][1]["rank"], 1);
    EXPECT_TRUE(ranks["skew"].is_null());
    EXPECT_TRUE(result["unavailable"].contains("ranks.skew"));
    EXPECT_EQ(result["samples"]["interval_ns"].size(), 5u);
    if (sync == std::string("per_iteration")) {
      // An iteration is over when its last rank is.
      for (const Json& rank : ranks["per_rank"])
        EXPECT_GE(result["metrics"]["latency_ns"]["max"].get<double>(), rank["latency_ns"]["max"].get<double>());
    }
    const Json alone = [&] {
      const std::string other = folder / "alone.json";
      EXPECT_EQ(weir(tiny_rank_run({"--sync-mode", sync, "--force", "-o", other})).code, 0);
      return read_json(other);
    }();
    EXPECT_TRUE(alone["ranks"].is_null());
    EXPECT_DOUBLE_EQ(result["work_per_iteration"].get<double>(), 2 * alone["work_per_iteration"].get<double>());
    expect_valid_as(file, "weir.result.2.json");
  }
  // Other rank counts are other measurements.
  EXPECT_EQ(weir({"compare", folder / "none.json", folder / "alone.json"}).code, 2);
}

// Every workload with collectives: what is gathered into slots that are used again (fsdp_tp) is checked, too, and what
// is reduced from there (ranking_transformer).
TEST(Ranks, CollectivesAreChecked) {
  NEEDS_MPI();
  const Folder folder;
  for (const char* workload :
       {"fsdp_tp", "moe", "activation_ckpt", "grad_accum", "disaggregated_serving", "ranking_transformer"}) {
    const std::string file = folder / (std::string(workload) + ".json");
    std::vector<std::string> arguments = {"run",      workload, "--ranks",   "3", "--device",     "cpu",
                                          "--scale",  "tiny",   "--streams", "6", "--iterations", "2",
                                          "--warmup", "1",      "-o",        file};
    // Its batch is that of all ranks together.
    if (std::string_view(workload) == "ranking_transformer") arguments.insert(arguments.end(), {"--param", "batch=9"});
    const Outcome outcome = weir(arguments);
    ASSERT_EQ(outcome.code, 0) << workload << outcome.err;
    const Json result = read_json(file);
    EXPECT_EQ(result["check"]["status"], "passed") << workload;
    EXPECT_TRUE(result["ranks"]["skew"].is_object()) << workload;
    std::istringstream lines(outcome.out.substr(0, outcome.out.find("Written")));
    for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 80u) << line;
  }
}

TEST(Ranks, SweepAndResumeTogether) {
  NEEDS_MPI();
  const Folder folder;
  const std::vector<std::string> arguments = {
      "sweep", "tiny_kernel_stress", "--device", "cpu", "--scale",  "tiny", "--iterations",   "3", "--streams",
      "1,2",   "--no-trace",         "--ranks",  "2",   "--resume", "-o",   folder / "s.json"};
  ASSERT_EQ(weir(arguments).code, 0);
  const Json first = read_json(folder / "s.json");
  ASSERT_EQ(first["results"].size(), 2u);
  EXPECT_EQ(first["results"][1]["ranks"]["count"], 2);
  const Outcome again = weir(arguments);
  EXPECT_EQ(again.code, 0) << again.err;
  EXPECT_EQ(read_json(folder / "s.json")["results"], first["results"]);
}

TEST(Ranks, BadArgumentsGiveOneMessage) {
  const Folder folder;
  for (const std::vector<std::string>& bad : std::vector<std::vector<std::string>>{
           {"run", "tiny_kernel_stres", "--ranks", "2"},
           {"run", "tiny_kernel_stress", "--device", "cpu", "--ranks", "2", "--streams", "4000"},
           {"run", "tiny_kernel_stress", "--device", "cpu", "--ranks", "2", "--param", "nonsense=1"},
           {"run", "tiny_kernel_stress", "--device", "cpu", "--ranks=2", "--placement", "nowhere"},
           {"run", "tiny_kernel_stress", "--device", "cpu", "--ranks", "2", "-o", "absent/r.json"},
           {"run", "tiny_kernel_stress", "--device", "cpu", "--ranks", "0"},
           {"run", "tiny_kernel_stress", "--device", "cpu", "--ranks", "two"},
           {"sweep", "tiny_kernel_stress", "--device", "cpu", "--ranks", "2", "--submit", "pigeon"}}) {
    const Outcome outcome = weir(bad, folder.path());
    EXPECT_EQ(outcome.code, 2) << outcome.err;
    EXPECT_EQ(outcome.err.find("weir: "), 0u) << outcome.err;
    EXPECT_EQ(outcome.err.rfind("weir: "), 0u) << outcome.err;
  }
}

TEST(Ranks, BadArgumentsUnderMpirunAreToldByOne) {
  NEEDS_MPI();
  for (const char* bad : {"--param=nonsense=1", "--ranks=7", "--bogus"}) {
    const Outcome outcome = run_program({"mpirun", "-q", "-n", "2", "--oversubscribe", "--allow-run-as-root",
                                         WEIR_BINARY, "run", "tiny_kernel_stress", "--device", "cpu", bad});
    EXPECT_EQ(outcome.code, 2) << outcome.err;
    EXPECT_TRUE(has(outcome.err, "weir: ")) << outcome.err;
    EXPECT_EQ(outcome.err.find("weir: "), outcome.err.rfind("weir: ")) << outcome.err;
  }
}

TEST(Ranks, SeveralTasksWithoutMpiAreRefused) {
  NEEDS_MPI();
  // As srun would start them without its MPI plugin: MPI itself sees one task.
  const Outcome outcome = run_program({"env", "SLURM_PROCID=0", "SLURM_STEP_NUM_TASKS=2", WEIR_BINARY, "run",
                                       "tiny_kernel_stress", "--device", "cpu", "--iterations", "2"});
  EXPECT_NE(outcome.code, 0);
  EXPECT_TRUE(has(outcome.err, "--mpi=pmix")) << outcome.err;
}

TEST(Ranks, OneThatDiesEndsTheRunAndIsNamed) {
  NEEDS_MPI();
  const Folder folder;
  const pid_t launcher = start_program({WEIR_BINARY, "run", "large_gemm_only", "--device", "cpu", "--scale", "tiny",
                                        "--iterations", "10000000", "--ranks", "3"},
                                       folder.path(), folder / "out", folder / "err");
  const std::vector<pid_t> ranks = await_ranks(launcher, 3);
  ASSERT_EQ(ranks.size(), 3u) << content(folder / "err");
  const pid_t victim = ranks[1];
  std::this_thread::sleep_for(std::chrono::seconds(1));  // into the iterations
  ::kill(victim, SIGKILL);
  EXPECT_EQ(wait_for(launcher), 1);
  const std::string said = content(folder / "err");
  EXPECT_TRUE(has(said, "rank 1 (pid " + std::to_string(victim) + ") died")) << said;
  EXPECT_EQ(said.find(") died"), said.rfind(") died")) << "those that mpirun ends are not to blame: " << said;
}

// A run that does not end by itself.
const std::vector<std::string> kEndless = {"run",          "large_gemm_only", "--device", "cpu", "--scale", "tiny",
                                           "--iterations", "10000000",        "--ranks",  "2",   "-o",      "r.json"};

void expect_saved(const Folder& folder, pid_t launcher, int signal, int code) {
  const std::vector<pid_t> ranks = await_ranks(launcher, 2);
  ASSERT_EQ(ranks.size(), 2u) << content(folder / "err");
  ::kill(launcher, signal);
  EXPECT_EQ(wait_for(launcher), code) << content(folder / "err");
  for (const pid_t rank : ranks) EXPECT_FALSE(is_running(rank));
  const Json result = read_json(folder / "r.json");
  EXPECT_EQ(result["status"], "interrupted");
  EXPECT_EQ(result["ranks"]["count"], 2);
}

TEST(Ranks, CtrlCSavesWhatThereIs) {
  NEEDS_MPI();
  for (const auto& [signal, code] : {std::pair(SIGINT, 130), std::pair(SIGTERM, 143), std::pair(SIGHUP, 129)}) {
    const Folder folder;
    expect_saved(folder, start_weir(kEndless, folder.path()), signal, code);
  }
}

// A peer that is stopped is in no collective and in no step: the others wait for it in Weir's own barrier.
TEST(Ranks, AStoppedOneIsNoticedByTheHangWatch) {
  NEEDS_MPI();
  const std::vector<std::vector<std::string>> commands = {
      {"run", "tiny_kernel_stress", "--device", "cpu", "--scale", "tiny", "--iterations", "10000000"},
      {"overlap", "default", "--device", "cpu", "--set", "run.scale=tiny", "--set", "run.iterations=1000000", "-o",
       "o"}};
  for (std::vector<std::string> command : commands) {
    const Folder folder;
    const bool has_collectives = command[0] == "overlap";
    command.insert(command.begin(), WEIR_BINARY);
    command.insert(command.end(), {"--ranks", "2", "--hang-timeout", "3s"});
    const pid_t launcher = start_program(command, folder.path(), folder / "out", folder / "err");
    const std::vector<pid_t> ranks = await_ranks(launcher, 2);
    ASSERT_EQ(ranks.size(), 2u) << content(folder / "err");
    ::kill(ranks[1], SIGSTOP);
    EXPECT_EQ(wait_for(launcher), 1);
    for (const pid_t rank : ranks) EXPECT_FALSE(is_running(rank));
    const std::string said = content(folder / "err");
    EXPECT_TRUE(has(said, "rank 0 of 2: ")) << said;
    EXPECT_TRUE(has_collectives || has(said, "rank 1 (pid " + std::to_string(ranks[1]) + ") is stopped")) << said;
  }
}

TEST(Ranks, CtrlCContinuesAStoppedOneAndSaves) {
  NEEDS_MPI();
  const Folder folder;
  const pid_t launcher = start_weir(kEndless, folder.path());
  const std::vector<pid_t> ranks = await_ranks(launcher, 2);
  ASSERT_EQ(ranks.size(), 2u);
  ::kill(ranks[1], SIGSTOP);
  ::kill(launcher, SIGTERM);
  EXPECT_EQ(wait_for(launcher), 143);
  EXPECT_EQ(read_json(folder / "r.json")["status"], "interrupted");
}

// As where a driver that hwloc loads into mpirun has taken over its handlers.
TEST(Ranks, CtrlCNeedsNoLauncherThatPassesSignalsOn) {
  NEEDS_MPI();
  const Folder folder;
  std::ofstream(folder / "mpirun") << "#!/bin/bash\ntrap '' USR1\nPATH=${PATH#*:} mpirun \"$@\" &\nwait $!\n";
  std::filesystem::permissions(folder / "mpirun", std::filesystem::perms::owner_all);
  std::vector<std::string> command = {"env", "PATH=" + folder.path().string() + ":" + std::getenv("PATH"), WEIR_BINARY};
  command.insert(command.end(), kEndless.begin(), kEndless.end());
  expect_saved(folder, start_program(command, folder.path(), folder / "out", folder / "err"), SIGINT, 130);
}

TEST(Ranks, SecondCtrlCEndsAllAndKeepsWhatWasSaved) {
  NEEDS_MPI();
  const Folder folder;
  const pid_t launcher = start_weir({"sweep", "large_gemm_only", "--device", "cpu", "--scale", "tiny", "--iterations",
                                     "300", "--streams", "1,2,3,4", "--no-trace", "--ranks", "2", "-o", "s.json"},
                                    folder.path());
  const std::vector<pid_t> ranks = await_ranks(launcher, 2);
  ASSERT_EQ(ranks.size(), 2u);
  while (!std::filesystem::exists(folder / "s.json") && is_running(launcher)) ::usleep(1000);
  ::kill(ranks[1], SIGSTOP);  // the iteration will not end, and so the first Ctrl-C ends nothing
  while (!has_ended(launcher)) {
    ::kill(launcher, SIGINT);
    ::usleep(100'000);
  }
  EXPECT_EQ(wait_for(launcher), 130);
  for (const pid_t rank : ranks) EXPECT_FALSE(is_running(rank));
  EXPECT_GE(read_json(folder / "s.json")["results"].size(), 1u);
}

}  // namespace
}  // namespace weir::testing
