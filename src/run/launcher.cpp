#include "run/launcher.h"

#include <fmt/format.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <set>
#include <sstream>
#include <utility>

#include "base/clock.h"
#include "base/console.h"
#include "base/error.h"
#include "base/file.h"
#include "base/options.h"
#include "base/private_folder.h"
#include "run/children.h"

namespace weir {
namespace {

namespace fs = std::filesystem;

// Exit codes that docs/cli.md promises.
constexpr int kLastExitCode = 4;

constexpr int kLooks = 20;  // every 10 ms, at what was killed; a driver may keep it for longer

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
    const auto facts = facts_of(static_cast<pid_t>(*pid));
    if (facts && !facts->is_ended()) parents.emplace(static_cast<pid_t>(*pid), facts->parent);
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
  std::istringstream status(read_kernel_file(fmt::format("/proc/{}/status", process)));
  for (std::string line; std::getline(status, line);)
    if (line.starts_with("SigCgt:")) return (std::strtoull(line.c_str() + 7, nullptr, 16) >> (signal - 1) & 1) != 0;
  return false;
}

// Forwards interrupts to a job of ranks. Open MPI 4.1 kills ranks within a second of its own SIGINT, and forwards
// SIGUSR1 only while the handler is its own: hwloc's OpenCL plugin may load LLVM into it, which replaces the handler.
// So ranks on this host are asked directly, by SIGTERM (of which LLVM, in a rank with an OpenCL device, passes on the
// first to our handler; of SIGUSR1 none): they stop after their iteration, together with those on other hosts, and rank
// 0 saves the results so far. The second interrupt, or the end of our patience, ends everything.
class Interruption {
 public:
  Interruption(pid_t launcher, const std::atomic<int>& interrupts, std::int64_t patience_ns)
      : launcher_(launcher), interrupts_(interrupts), patience_ns_(patience_ns) {
    ::prctl(PR_SET_CHILD_SUBREAPER, 1);  // orphans of mpirun become children of this process, and can be ended
  }

  bool is_asked() const { return interrupts_.load(std::memory_order_relaxed) > 0; }
  bool is_ending() const { return ending_ns_ != 0; }
  void remove_segments() const {
    for (const std::string& segment : segments_) ::unlink(segment.c_str());
  }

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
    } else if (count > 1 || now - asked_ns_ > patience_ns_ || (seen_ns_ != 0 && now - seen_ns_ > kLaunchersEndNs)) {
      ending_ns_ = now;
      note_segments(found.ranks);
      signal_all(found.ranks, SIGKILL);
      ::kill(launcher_, SIGTERM);  // ends ranks on other hosts
    } else {
      ask(found.ranks);
      if (now - asked_ns_ > kRemarkNs && !std::exchange(has_remarked_, true))
        print_err(
            "weir: waits for the ranks to finish their iteration and save, until {:g} s after the signal; a second one "
            "ends them now\n",
            static_cast<double>(patience_ns_) * 1e-9);
      // There are none here; they may all be on other hosts.
      if (seen_ns_ == 0 && now - asked_ns_ > kStartNs && !std::exchange(is_launcher_asked_, true))
        ::kill(launcher_, SIGUSR1);
    }
  }

 private:
  static constexpr std::int64_t kLookNs = 50'000'000;
  static constexpr std::int64_t kGraceNs = 400'000'000;           // for mpirun to end by itself
  static constexpr std::int64_t kLaunchersEndNs = 3'000'000'000;  // the same, after its ranks have ended
  static constexpr std::int64_t kRemarkNs = 5'000'000'000;        // until the user hears what it waits for
  static constexpr std::int64_t kStartNs = 2'000'000'000;         // for ranks to appear

  void ask(const std::vector<pid_t>& ranks) {
    for (const pid_t rank : ranks)
      if (!asked_.contains(rank) && has_handler(rank, SIGTERM) && ::kill(rank, SIGTERM) == 0) {
        asked_.insert(rank);
        ::kill(rank, SIGCONT);  // a stopped rank could not end
      }
  }
  // Shared memory of Open MPI 4 and 5, which stays where mpirun has no time to remove it.
  // ffff8c000000-ffff8c400000 rw-s 00000000 00:19 62  /dev/shm/vader_segment.host.0.22a00001.1
  void note_segments(const std::vector<pid_t>& ranks) {
    for (const pid_t rank : ranks) {
      std::istringstream maps(read_kernel_file(fmt::format("/proc/{}/maps", rank)));
      for (std::string line; std::getline(maps, line);) {
        const std::size_t name = line.find("/dev/shm/");
        if (name == std::string::npos || line.ends_with(" (deleted)")) continue;
        if (line.find("vader_segment.", name) == name + 9 || line.find("sm_segment.", name) == name + 9)
          segments_.insert(line.substr(name));
      }
    }
  }
  static void signal_all(const std::vector<pid_t>& processes, int signal) {
    for (const pid_t process : processes) ::kill(process, signal);
  }

  const pid_t launcher_;
  const std::atomic<int>& interrupts_;
  const std::int64_t patience_ns_;
  std::int64_t next_ns_ = 0, asked_ns_ = 0, seen_ns_ = 0, ending_ns_ = 0;  // 0: not yet
  std::set<pid_t> asked_;
  std::set<std::string> segments_;
  bool is_launcher_asked_ = false, has_remarked_ = false;
};

// Waits for mpirun; returns its exit code, or 128 + signal. Nothing that it started is left then.
int wait_for(Process& launcher, const std::atomic<int>& interrupts, std::int64_t patience_ns) {
  Interruption interruption(launcher.id(), interrupts, patience_ns);
  while (launcher.listen(20)) interruption.pass_on();
  const int code = launcher.end().code();
  // Until they have gone: their folder is removed next.
  std::vector<pid_t> left = find_descendants().all;
  for (int i = 0; i < kLooks && !left.empty(); ++i, left = find_descendants().all) {
    for (const pid_t process : left) ::kill(process, SIGKILL);
    ::usleep(10'000);
  }
  interruption.remove_segments();
  // An interrupted launcher may report the signals that ended it or its ranks.
  const bool is_cut = interruption.is_ending() || (interruption.is_asked() && code > kLastExitCode);
  return is_cut ? kExitInterrupted : code;
}

}  // namespace

int launch_ranks(const RankLaunch& launch, const std::atomic<int>& interrupts) {
  ProcessOptions options;
  options.out = ProcessOptions::Output::ours;
  options.death_signal = SIGTERM;
  options.variables = launch.variables;
  const PrivateFolder folder;  // for its files and the ranks' on this host, which remain where it is killed
  options.variables.emplace_back("TMPDIR", folder.path().string());
  std::vector<std::string>& command = options.command;
  command = {"mpirun", "-n", std::to_string(launch.ranks)};
  if (launch.is_open_mpi) {
    // -q: rank 0 prints everything necessary. No binding: it would confine a rank's worker threads to one core.
    command.insert(command.end(), {"-q", "--oversubscribe", "--bind-to", "none"});
    if (::geteuid() == 0) command.emplace_back("--allow-run-as-root");
  }
  command.insert(command.end(), launch.command.begin(), launch.command.end());
  int code = kNotExecuted;
  try {
    Process launcher(std::move(options));
    code = wait_for(launcher, interrupts, launch.patience_ns);
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

}  // namespace weir
