#include "cli/ranks.h"

#include <fmt/format.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <set>
#include <sstream>
#include <thread>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/json.h"
#include "base/options.h"
#include "cli/children.h"
#include "cli/flag_values.h"
#include "cli/hang.h"
#include "cli/process.h"
#include "cli/user_program.h"
#include "device/rank/mpi.h"
#include "device/rank/watch.h"

namespace weir::cli {
namespace {

namespace fs = std::filesystem;

constexpr const char* kSrunAdvice =
    "Start them with the launcher of your MPI; under Slurm: srun --mpi=pmix (srun --mpi=list shows what there is).";

// Exit codes that docs/cli.md promises.
constexpr int kLastExitCode = 4;

// Lives until leave_ranks(); otherwise never destroyed, because MPI must not be finalised after a failure.
Communicator* joined = nullptr;
RankWatch* rank_watch = nullptr;
std::optional<Ranks> part;  // from MPI, once it is known

std::optional<int> number_in(const char* variable) {
  const auto text = environment_variable(variable);
  if (!text) return std::nullopt;
  const auto number = parse_integer(*text);
  if (!number || *number < 0 || *number > INT32_MAX) return std::nullopt;
  return static_cast<int>(*number);
}

// Removes "--ranks 4" and "--ranks=4": inside the job, the job's size counts.
std::vector<std::string> without_ranks(const std::vector<std::string>& arguments) {
  std::vector<std::string> kept;
  for (std::size_t i = 1; i < arguments.size(); ++i) {
    if (arguments[i] == "--ranks") {
      ++i;
    } else if (!arguments[i].starts_with("--ranks=")) {
      kept.push_back(arguments[i]);
    }
  }
  return kept;
}

// The descendants of this process: all of them, and the ranks among them, which run this same program.
struct Descendants {
  std::vector<pid_t> all, ranks;
};

Descendants find_descendants() {
  std::map<pid_t, pid_t> parents;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator("/proc", ignored)) {
    const auto pid = parse_integer(entry.path().filename().string());
    if (!pid) continue;
    // 1234 (weir (x)) S 1200 ...: the name may contain anything, so fields are counted from the last ')'.
    std::ifstream file(entry.path() / "stat");
    std::string line, state;
    std::getline(file, line);
    const std::size_t name_end = line.rfind(')');
    if (name_end == std::string::npos) continue;
    std::istringstream fields(line.substr(name_end + 1));
    pid_t parent = 0;
    if (fields >> state >> parent && state != "Z") parents.emplace(static_cast<pid_t>(*pid), parent);
  }
  const pid_t own = ::getpid();
  const fs::path binary = own_binary();
  Descendants found;
  for (const auto& process : parents) {
    pid_t above = process.second;
    for (auto next = parents.find(above); above != own && next != parents.end(); next = parents.find(above))
      above = next->second;
    if (above != own) continue;
    found.all.push_back(process.first);
    if (fs::read_symlink(fmt::format("/proc/{}/exe", process.first), ignored) == binary)
      found.ranks.push_back(process.first);
  }
  return found;
}

// Until it has a handler, the signal would kill it.
bool has_handler(pid_t process, int signal) {
  // SigCgt:	0000000000004002
  std::ifstream status(fmt::format("/proc/{}/status", process));
  for (std::string line; std::getline(status, line);)
    if (line.starts_with("SigCgt:")) return (std::strtoull(line.c_str() + 7, nullptr, 16) >> (signal - 1) & 1) != 0;
  return false;
}

// Forwards interrupts to a job of ranks. Open MPI 4.1 kills ranks within a second of its own SIGINT, and forwards
// SIGUSR1 only while the handler is its own: hwloc's OpenCL plugin may load LLVM into it, which replaces the handler.
// So ranks on this host are asked directly, by SIGUSR1: they stop after their iteration, together with those on other
// hosts, and rank 0 saves the results so far. The second interrupt ends everything.
class Interruption {
 public:
  explicit Interruption(pid_t launcher) : launcher_(launcher) {
    ::prctl(PR_SET_CHILD_SUBREAPER, 1);  // orphans of mpirun become children of this process, and can be ended
  }

  bool is_asked() const { return interrupts_.load(std::memory_order_relaxed) > 0; }
  bool is_ending() const { return ending_ns_ != 0; }

  void pass_on() {
    const int count = interrupts_.load(std::memory_order_relaxed);
    const std::int64_t now = now_ns();
    if (count == 0 || now < next_ns_) return;
    next_ns_ = now + kLookNs;
    if (asked_ns_ == 0) asked_ns_ = now;
    const Descendants found = find_descendants();
    if (!found.ranks.empty()) seen_ns_ = now;
    if (is_ending()) {
      if (now - ending_ns_ > kGraceNs) signal_all(found.all, SIGKILL);
    } else if (count > 1 || (seen_ns_ != 0 && now - seen_ns_ > kLaunchersEndNs)) {
      ending_ns_ = now;
      signal_all(found.ranks, SIGKILL);
      ::kill(launcher_, SIGTERM);  // ends ranks on other hosts
    } else {
      ask(found.ranks);
      // There are none here; they may all be on other hosts.
      if (seen_ns_ == 0 && now - asked_ns_ > kStartNs && !std::exchange(is_launcher_asked_, true))
        ::kill(launcher_, SIGUSR1);
    }
  }

 private:
  static constexpr std::int64_t kLookNs = 100'000'000;
  static constexpr std::int64_t kGraceNs = 400'000'000;            // for mpirun to end by itself
  static constexpr std::int64_t kLaunchersEndNs = 10'000'000'000;  // the same, after its ranks have ended
  static constexpr std::int64_t kStartNs = 2'000'000'000;          // for ranks to appear

  void ask(const std::vector<pid_t>& ranks) {
    for (const pid_t rank : ranks)
      if (!asked_.contains(rank) && has_handler(rank, SIGUSR1) && ::kill(rank, SIGUSR1) == 0) asked_.insert(rank);
  }
  static void signal_all(const std::vector<pid_t>& processes, int signal) {
    for (const pid_t process : processes) ::kill(process, signal);
  }

  const pid_t launcher_;
  const std::atomic<int>& interrupts_ = count_interrupts();
  std::int64_t next_ns_ = 0, asked_ns_ = 0, seen_ns_ = 0, ending_ns_ = 0;  // 0: not yet
  std::set<pid_t> asked_;
  bool is_launcher_asked_ = false;
};

// Waits for mpirun; returns its exit code, or 128 + signal. Nothing that it started is left then.
int wait_for(Process& launcher) {
  Interruption interruption(launcher.id());
  while (launcher.listen(20)) interruption.pass_on();
  const int code = launcher.end().code();
  for (const pid_t left : find_descendants().all) ::kill(left, SIGKILL);
  // An interrupted launcher may report the signals that ended it or its ranks.
  const bool is_cut = interruption.is_ending() || (interruption.is_asked() && code > kLastExitCode);
  return is_cut ? kExitInterrupted : code;
}

const MpiModule& module_or_reject() {
  const MpiFound found = find_mpi_module(own_binary());
  if (found.module == nullptr)
    reject(fmt::format("no ranks without MPI: {}", found.reason),
           "Install libopenmpi-dev and openmpi-bin and build again, or run one process.");
  return *found.module;
}

}  // namespace

Ranks job_ranks() {
  if (part) return *part;
  // A batch script has SLURM_NTASKS but is one process; only steps started by srun have SLURM_STEP_NUM_TASKS.
  constexpr struct {
    const char* rank;
    const char* count;
  } kLaunchers[] = {{"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"},
                    {"PMI_RANK", "PMI_SIZE"},
                    {"SLURM_PROCID", "SLURM_STEP_NUM_TASKS"},
                    {"PMIX_RANK", "SLURM_NTASKS"}};
  for (const auto& launcher : kLaunchers) {
    const auto rank = number_in(launcher.rank), count = number_in(launcher.count);
    if (rank && count && *count > *rank) return {*rank, *count};
  }
  return {};
}

bool speaks() { return job_ranks().rank == 0; }

int rank_count(const std::string& flag) {
  const Ranks job = job_ranks();
  if (flag.empty()) return job.count;
  const std::int64_t count = whole_number("--ranks", flag, 1, kMostRanks, "not a number of ranks");
  if (job.count > 1 && count != job.count)
    reject(fmt::format("--ranks {}: this job has {}", flag, job.count),
           "Leave --ranks out: under mpirun or srun the launcher decides.");
  return static_cast<int>(count);
}

bool must_start_ranks(const std::string& flag) { return rank_count(flag) > 1 && job_ranks().count == 1; }

int start_ranks(int count) {
  const MpiModule& module = module_or_reject();
  if (!find_program("mpirun"))
    reject(fmt::format("--ranks {}: there is no mpirun", count),
           "Install openmpi-bin, or start weir under your own launcher.");
  ProcessOptions options;
  options.out = ProcessOptions::Output::ours;
  options.death_signal = SIGTERM;
  std::vector<std::string>& command = options.command;
  command = {"mpirun", "-n", std::to_string(count)};
  if (module.library().starts_with("Open MPI")) {
    // -q: rank 0 prints everything necessary. No binding: it would confine a rank's worker threads to one core.
    command.insert(command.end(), {"-q", "--oversubscribe", "--bind-to", "none"});
    if (::geteuid() == 0) command.emplace_back("--allow-run-as-root");
  }
  command.push_back(own_binary().string());
  for (const std::string& argument : without_ranks(run_context().command_line)) command.push_back(argument);
  // hwloc's OpenCL plugin would load drivers into mpirun that replace its signal handlers (Open MPI 4.1, hwloc 2.9,
  // PoCL 3.1). Remove this when mpirun no longer looks for such devices.
  if (!environment_variable("HWLOC_COMPONENTS")) options.variables = {{"HWLOC_COMPONENTS", "-opencl"}};
  int code = kNotExecuted;
  try {
    Process launcher(std::move(options));
    code = wait_for(launcher);
  } catch (const StartError&) {
    // Reported below, like a launcher that exits with this code.
  }
  // Ranks end with Weir's codes, which mpirun passes on. Others are mpirun's own, and -q suppresses its explanation.
  if (code <= kLastExitCode || code == kExitInterrupted) return code;
  if (code == kNotExecuted) fail("mpirun could not be executed", "Try: mpirun --version.");
  if (code > 128)
    fail(fmt::format("mpirun says that a rank was ended by signal {}", code - 128),
         code == 128 + SIGKILL ? "Was it killed, or is the machine out of memory (dmesg)?" : "");
  fail(fmt::format("mpirun ended with status {}", code));
}

Communicator* join_ranks() {
  const Ranks job = job_ranks();
  if (job.count == 1) return nullptr;
  // Open MPI ends the process in MPI_Init where srun has no plugin for it, so this is reported before.
  const bool has_launcher = number_in("OMPI_COMM_WORLD_RANK") || number_in("PMI_RANK") || number_in("PMIX_RANK");
  if (!has_launcher) reject(fmt::format("srun started {} tasks without telling MPI", job.count), kSrunAdvice);
  catch_interrupts();  // SIGUSR1 may arrive at any moment
  joined = module_or_reject().open().release();
  part = joined->ranks();
  if (part->count != job.count) {
    const int seen = part->count;
    part = job;  // only one of the tasks may print
    reject(fmt::format("the launcher started {} tasks, but MPI ({}) sees {}", job.count, joined->library(), seen),
           kSrunAdvice);
  }
  return joined;
}

void watch_ranks() {
  if (joined == nullptr) return;
  const Json own = {{"host", joined->host()}, {"pid", ::getpid()}};
  Json all = Json::array();
  for (const std::string& text : joined->gather(own.dump())) all.push_back(Json::parse(text));
  all = Json::parse(broadcast_text(*joined, all.dump()));
  std::vector<RankProcess> here;
  for (std::size_t rank = 0; rank < all.size(); ++rank)
    if (all[rank]["host"] == own["host"]) here.push_back({static_cast<int>(rank), all[rank]["pid"].get<pid_t>()});
  rank_watch = new RankWatch(here, [own_rank = joined->ranks().rank](const RankProcess& dead, int lowest_alive) {
    if (is_ending_hung()) return;  // ends by itself, after its report
    // One of the remaining ranks prints. All wait a while, so that one that notices late does not take the printing
    // rank for the first that died.
    if (own_rank == lowest_alive) {
      fmt::print(stderr, "weir: rank {} (pid {}) died; ending the run\n", dead.rank, dead.pid);
      std::fflush(stderr);
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
    ::_exit(static_cast<int>(Fault::run));
  });
}

void leave_ranks() {
  if (joined == nullptr) return;
  // No process may end before every watch has stopped: MPI's own shutdown waits for all.
  joined->barrier();
  delete rank_watch;
  rank_watch = nullptr;
  delete joined;
  joined = nullptr;
}

void end_ranks(const Error& error) {
  const Ranks job = job_ranks();
  if (joined == nullptr) {
    // Before MPI starts, all ranks find the same errors; one of them prints.
    if (job.count > 1 && job.rank > 0 && error.fault == Fault::input) std::exit(static_cast<int>(error.fault));
    return;
  }
  const int code = static_cast<int>(error.fault);
  // All ranks find a wrong argument: rank 0 reports it and ends the others (their launcher signals it) before they
  // repeat it. An error that only one rank found is reported a little later.
  const bool is_common = error.fault == Fault::input;
  if (is_common && job.rank > 0) {
    const std::atomic<bool>& is_ended = catch_interrupts();
    for (int i = 0; i < 150; ++i) {
      if (is_ended.load(std::memory_order_relaxed)) ::_exit(code);
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
  }
  std::fflush(stdout);
  if (is_common && job.rank == 0) {
    fmt::print(stderr, "weir: {}\n", error.what());
  } else {
    const std::string who = fmt::format("rank {} of {} ({})", job.rank, job.count, joined->host());
    const bool is_named = std::string_view(error.what()).starts_with(who);
    fmt::print(stderr, "weir: {}{}\n", is_named ? "" : who + ": ", error.what());
  }
  if (!error.hint.empty()) fmt::print(stderr, "      {}\n", error.hint);
  std::fflush(stderr);
  joined->abort(code);
}

std::string describe_mpi() {
  const MpiFound found = find_mpi_module(own_binary());
  if (found.module == nullptr) return "left out: " + found.reason;
  return fmt::format("yes, {}; mpirun {}", found.module->library(), find_program("mpirun") ? "found" : "not found");
}

}  // namespace weir::cli
