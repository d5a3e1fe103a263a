// weir sched with the MPS of its own, over a stand-in for NVIDIA's control process: what is started, what clients get,
// and that nothing is left, whoever is killed. 10 rounds of random kills here, 200 with WEIR_LONG_TESTS=1.
#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <functional>
#include <random>
#include <sstream>
#include <thread>

#include "base/json.h"
#include "cli/program.h"
#include "support/text.h"

namespace weir::testing {
namespace {

namespace fs = std::filesystem;

using Words = std::vector<std::string>;

// Only for what would never come: the machine may be busy.
bool mps_soon(const std::function<bool()>& is_so) {
  for (int i = 0; i < 60'000; ++i) {
    if (is_so()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return false;
}

std::string bytes_of(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

// Processes that have ended but were not asked for their code have no environment any more.
std::vector<pid_t> processes_with(const std::string& part) {
  std::vector<pid_t> found;
  std::error_code status;
  for (fs::directory_iterator each("/proc", status), end; !status && each != end; each.increment(status)) {
    const std::string name = each->path().filename();
    if (name.find_first_not_of("0123456789") == std::string::npos &&
        bytes_of(each->path() / "environ").find(part) != std::string::npos)
      found.push_back(static_cast<pid_t>(std::stol(name)));
  }
  return found;
}

// Children of this process that have ended, so that their numbers mean nothing any more.
void reap_all() {
  while (::waitpid(-1, nullptr, WNOHANG) > 0) {
  }
}

class MpsDaemon {
 public:
  explicit MpsDaemon(Words flags = {}, Words environment = {}) : environment_(std::move(environment)) {
    ::prctl(PR_SET_CHILD_SUBREAPER, 1);
    started = start(std::move(flags));
  }
  ~MpsDaemon() {
    sched({"stop"});
    for (const pid_t pid : processes_with(folder_.path().string())) ::kill(pid, SIGKILL);
    mps_soon([&] {
      reap_all();
      return processes_with(folder_.path().string()).empty();
    });
  }
  MpsDaemon(const MpsDaemon&) = delete;
  MpsDaemon& operator=(const MpsDaemon&) = delete;

  Outcome start(Words flags = {}) {
    flags.insert(flags.begin(), "start");
    return sched(flags);
  }
  Outcome sched(Words arguments) const {
    Words words = {"env", std::string("PATH=") + WEIR_FAKE_MPS + ":/usr/bin:/bin",
                   std::string("LD_LIBRARY_PATH=") + WEIR_FAKE_MPS};
    words.insert(words.end(), environment_.begin(), environment_.end());
    words.insert(words.end(), {WEIR_BINARY, "sched"});
    const auto end = std::find(arguments.begin(), arguments.end(), "--");
    arguments.insert(end, {"--socket", socket()});
    words.insert(words.end(), arguments.begin(), arguments.end());
    return run_program(words);
  }
  Json status() const {
    const Outcome outcome = sched({"status", "--json"});
    return outcome.code == 0 ? parse_json(outcome.out, "status") : Json(nullptr);
  }
  Json mps() const { return member(status(), "mps"); }
  pid_t pid_of(const char* name) const {
    const Json& pid = member(mps(), name);
    return pid.is_number() ? pid.get<pid_t>() : -1;
  }
  // A command to the control process, as its user interface takes it.
  void tell(const std::string& command) const {
    const std::string pipe = member(mps(), "pipe_folder").get<std::string>();
    run_program(
        {"sh", "-c",
         "echo " + command + " | CUDA_MPS_PIPE_DIRECTORY=" + pipe + " " + WEIR_FAKE_MPS + "/nvidia-cuda-mps-control"});
  }
  fs::path folder() const { return folder_.path(); }
  std::string socket() const { return folder_ / "sched.sock"; }
  // Nothing but the lock of the socket, and the socket itself where the daemon was killed.
  Words left() const {
    Words names;
    for (const auto& entry : fs::directory_iterator(folder_.path()))
      if (const std::string name = entry.path().filename(); name.find("mps") != std::string::npos)
        names.push_back(name);
    for (const pid_t pid : processes_with("CUDA_MPS_PIPE_DIRECTORY=" + folder_.path().string()))
      names.push_back("process " + std::to_string(pid));
    return names;
  }
  bool leaves_nothing() const {
    return mps_soon([&] {
      reap_all();
      return left().empty();
    });
  }

  Outcome started;

 private:
  Folder folder_;
  Words environment_;
};

std::string joined_words(const Words& words) {
  std::string all;
  for (const std::string& word : words) all += word + "\n";
  return all;
}

TEST(SchedMps, is_started_in_private_folders_and_ended_with_the_daemon) {
  MpsDaemon daemon({"--mechanism", "mps_priority"});
  ASSERT_EQ(daemon.started.code, 0) << daemon.started.err;
  EXPECT_TRUE(has(daemon.started.out, "MPS: its own, process ")) << daemon.started.out;
  EXPECT_TRUE(has(daemon.started.out, "share faults")) << daemon.started.out;
  const Json status = daemon.status(), mps = status["mps"];
  EXPECT_EQ(status["mechanism"], "mps_priority");
  EXPECT_EQ(status["confines"], false);
  EXPECT_EQ(mps["is_own"], true);
  EXPECT_EQ(mps["is_up"], true);
  EXPECT_EQ(mps["restarts"], 0);
  for (const char* name : {"pipe_folder", "log_folder"}) {
    const std::string folder = mps[name].get<std::string>();
    EXPECT_TRUE(folder.starts_with(daemon.socket() + ".mps-")) << folder;
    struct stat facts{};
    ASSERT_EQ(::stat(folder.c_str(), &facts), 0);
    EXPECT_EQ(facts.st_mode & 0777U, 0700U);
  }
  const Outcome shown = daemon.sched({"status"});
  EXPECT_TRUE(has(shown.out, "MPS: its own")) << shown.out;
  const Folder folder;
  EXPECT_EQ(daemon.sched({"status", "--json", "-o", folder / "status.json"}).code, 0);
  expect_valid_as(folder / "status.json", "weir.sched_status.1.json");
  EXPECT_EQ(daemon.sched({"stop"}).code, 0);
  EXPECT_TRUE(daemon.leaves_nothing()) << joined_words(daemon.left());
}

TEST(SchedMps, one_that_obeys_nothing_is_ended_all_the_same) {
  MpsDaemon daemon({"--mechanism", "mps_share"}, {"FAKE_MPS=stubborn"});
  ASSERT_EQ(daemon.started.code, 0) << daemon.started.err;
  EXPECT_EQ(daemon.sched({"stop"}).code, 0);
  EXPECT_TRUE(daemon.leaves_nothing()) << joined_words(daemon.left());
}

TEST(SchedMps, without_what_it_needs_start_is_refused_with_the_reason) {
  const Folder folder;
  const auto start = [&](const Words& environment, const Words& flags) {
    Words words = {"env"};
    words.insert(words.end(), environment.begin(), environment.end());
    words.insert(words.end(), {WEIR_BINARY, "sched", "start", "--socket", folder / "sched.sock"});
    words.insert(words.end(), flags.begin(), flags.end());
    return run_program(words);
  };
  const std::string library = std::string("LD_LIBRARY_PATH=") + WEIR_FAKE_MPS, path = "PATH=/usr/bin:/bin";
  const std::string fake = std::string("PATH=") + WEIR_FAKE_MPS + ":/usr/bin:/bin";
  if (!fs::exists("/usr/bin/nvidia-cuda-mps-control"))
    for (const char* mechanism : {"mps_priority", "mps_share", "partition"}) {
      const Outcome outcome = start({path, library}, {"--mechanism", mechanism});
      EXPECT_EQ(outcome.code, 2) << outcome.out;
      EXPECT_TRUE(has(outcome.err, "there is no nvidia-cuda-mps-control in PATH")) << outcome.err;
      EXPECT_TRUE(has(outcome.err, "nvidia-compute-utils")) << outcome.err;
    }
  const Outcome dies = start({fake, library, "FAKE_MPS=dies"}, {"--mechanism", "partition"});
  EXPECT_EQ(dies.code, 2) << dies.out;
  EXPECT_TRUE(has(dies.err, "no rights here")) << dies.err;
  const Outcome none = start({fake, library}, {"--mechanism", "mps_share", "--mps", "none"});
  EXPECT_TRUE(has(none.err, "--mps none")) << none.err;
  const Outcome odd = start({fake, library}, {"--mechanism", "mps_share", "--mps", "mine"});
  EXPECT_TRUE(has(odd.err, "--mps mine: not a choice")) << odd.err;
  const Outcome theirs = start({fake, library, "CUDA_MPS_PIPE_DIRECTORY=" + (folder / "no")},
                               {"--mechanism", "mps_share", "--mps", "theirs"});
  EXPECT_TRUE(has(theirs.err, "nobody runs an MPS")) << theirs.err;
  EXPECT_TRUE(has(start({fake, library}, {"--mps", "theirs"}).err, "gate uses no MPS"));
  for (const auto& entry : fs::directory_iterator(folder.path()))
    EXPECT_EQ(entry.path().filename(), "sched.sock.lock") << "left";
}

TEST(SchedMps, auto_is_the_gate_where_there_is_none_and_says_why) {
  MpsDaemon daemon({"--mechanism", "auto", "--mps", "none"});
  ASSERT_EQ(daemon.started.code, 0) << daemon.started.err;
  EXPECT_TRUE(has(daemon.started.out, "the gate alone, because --mps none")) << daemon.started.out;
  const Json status = daemon.status();
  EXPECT_EQ(status["mps"], nullptr);
  EXPECT_TRUE(has(status["mechanism_reason"].get<std::string>(), "--mps none"));
  const Outcome share = daemon.sched({"run", "--share", "50%", "--", "true"});
  EXPECT_EQ(share.code, 2);
  EXPECT_TRUE(has(share.err, "--share 50%: the daemon has no MPS")) << share.err;
  EXPECT_EQ(has(daemon.sched({"run", "--", "env"}).out, "CUDA_MPS_"), false);
}

TEST(SchedMps, a_program_gets_what_its_mechanism_and_terms_say) {
  struct Row {
    Words flags;
    const char *priority, *share;  // null: not set
  };
  const std::vector<std::pair<const char*, std::vector<Row>>> kTable = {
      {"mps_priority",
       {{{}, nullptr, nullptr},
        {{"--priority", "high"}, nullptr, nullptr},
        {{"--priority", "low"}, "1", nullptr},
        {{"--priority", "-1", "--share", "30"}, "1", "30"}}},
      {"mps_share",
       {{{}, nullptr, nullptr},
        {{"--priority", "low"}, nullptr, "80"},
        {{"--priority", "low", "--share", "55%"}, nullptr, "55"},
        {{"--priority", "high", "--share", "100%"}, nullptr, "100"}}},
      {"partition", {{{"--priority", "high"}, nullptr, nullptr}, {{"--priority", "low"}, "1", nullptr}}},
      {"auto", {{{}, nullptr, nullptr}, {{"--priority", "low"}, "1", nullptr}}},
  };
  for (const auto& [mechanism, rows] : kTable) {
    const MpsDaemon daemon({"--mechanism", mechanism});
    ASSERT_EQ(daemon.started.code, 0) << daemon.started.err;
    const std::string pipe = daemon.mps()["pipe_folder"].get<std::string>();
    for (const Row& row : rows) {
      Words words = {"run"};
      words.insert(words.end(), row.flags.begin(), row.flags.end());
      words.insert(words.end(), {"--", "env"});
      const Outcome outcome = daemon.sched(words);
      const auto is_set = [&](const std::string& name, const char* value) {
        return value != nullptr ? has(outcome.out, name + "=" + value + "\n") : !has(outcome.out, name);
      };
      EXPECT_TRUE(is_set("CUDA_MPS_PIPE_DIRECTORY", pipe.c_str())) << mechanism << outcome.out;
      EXPECT_TRUE(is_set("CUDA_MPS_CLIENT_PRIORITY", row.priority)) << mechanism << outcome.out;
      EXPECT_TRUE(is_set("CUDA_MPS_ACTIVE_THREAD_PERCENTAGE", row.share)) << mechanism << outcome.out;
      EXPECT_TRUE(has(outcome.err, "share faults")) << outcome.err;
    }
    const Outcome isolated = daemon.sched({"run", "--priority", "low", "--isolate", "--", "env"});
    EXPECT_FALSE(has(isolated.out, "CUDA_MPS_")) << isolated.out;
    EXPECT_FALSE(has(isolated.err, "share faults")) << isolated.err;
    EXPECT_EQ(daemon.sched({"run", "-q", "--", "true"}).err, "");
    for (const char* share : {"0", "101%", "half", "-5", "%"})
      EXPECT_EQ(daemon.sched({"run", "--share", share, "--", "true"}).code, 2) << share;
    EXPECT_EQ(daemon.sched({"run", "--share", "5%", "--isolate", "--", "true"}).code, 2);
  }
}

TEST(SchedMps, somebody_elses_is_seen_used_on_request_and_never_ended) {
  const Folder theirs;
  const std::string variable = "CUDA_MPS_PIPE_DIRECTORY=" + theirs.path().string();
  const pid_t other = start_program({"env", variable, std::string(WEIR_FAKE_MPS) + "/nvidia-cuda-mps-control", "-f"},
                                    ".", theirs / "server.log", theirs / "err");
  ASSERT_TRUE(mps_soon([&] { return fs::exists(theirs / "control_privileged"); }));
  {
    const MpsDaemon daemon({"--mechanism", "mps_share"}, {variable});
    ASSERT_EQ(daemon.started.code, 0) << daemon.started.err;
    EXPECT_TRUE(has(daemon.started.out, "Somebody else runs an MPS at " + theirs.path().string()))
        << daemon.started.out;
    EXPECT_EQ(daemon.mps()["is_own"], true);
    EXPECT_TRUE(has(daemon.sched({"run", "--", "env"}).out, "CUDA_MPS_PIPE_DIRECTORY=" + daemon.socket()));
    EXPECT_FALSE(has(daemon.sched({"run", "--isolate", "--", "env"}).out, "CUDA_MPS_"));
  }
  {
    const MpsDaemon daemon({"--mechanism", "mps_share", "--mps", "theirs"},
                           {variable, "CUDA_MPS_LOG_DIRECTORY=" + theirs.path().string()});
    ASSERT_EQ(daemon.started.code, 0) << daemon.started.err;
    EXPECT_TRUE(has(daemon.started.out, "MPS: somebody else's")) << daemon.started.out;
    EXPECT_EQ(daemon.mps()["is_own"], false);
    EXPECT_TRUE(has(daemon.sched({"run", "--", "env"}).out, variable + "\n"));
    daemon.sched({"stop"});
  }
  EXPECT_FALSE(has_ended(other));
  ::kill(other, SIGKILL);
  wait_for(other);
}

TEST(SchedMps, a_fault_says_whose_work_was_lost) {
  MpsDaemon daemon({"--mechanism", "mps_priority"});
  ASSERT_EQ(daemon.started.code, 0) << daemon.started.err;
  const std::string own = std::to_string(::getpid());
  daemon.tell("client " + own);
  ASSERT_TRUE(mps_soon([&] { return daemon.mps()["clients"] == Json::array({::getpid()}); }));
  daemon.tell("fault " + own);
  ASSERT_TRUE(mps_soon([&] { return daemon.mps()["fault_count"] == 1; }));
  const Json fault = daemon.mps()["faults"][0];
  EXPECT_EQ(fault["kind"], "gpu_error");
  EXPECT_EQ(fault["noticed_by"], ::getpid());
  EXPECT_TRUE(has(daemon.sched({"status"}).out, "lost their work there: " + own)) << daemon.sched({"status"}).out;
  // Its server is killed: noticed, and the control process starts another one for new clients.
  const pid_t server = daemon.mps()["servers"][0].get<pid_t>();
  ::kill(server, SIGKILL);
  ASSERT_TRUE(mps_soon([&] { return daemon.mps()["fault_count"] == 2; }));
  EXPECT_EQ(daemon.mps()["faults"][1]["kind"], "server_ended");
}

TEST(SchedMps, a_control_process_that_dies_is_started_again) {
  MpsDaemon daemon({"--mechanism", "mps_priority"});
  ASSERT_EQ(daemon.started.code, 0) << daemon.started.err;
  const std::string pipe = daemon.mps()["pipe_folder"].get<std::string>();
  daemon.tell("client " + std::to_string(::getpid()));
  ASSERT_TRUE(mps_soon([&] { return daemon.mps()["clients"].size() == 1; }));
  const pid_t control = daemon.pid_of("pid");
  daemon.tell("die");
  ASSERT_TRUE(mps_soon([&] {
    const Json mps = daemon.mps();
    return mps["is_up"] == true && mps["pid"] != control && mps["restarts"] == 1;
  })) << to_text(daemon.mps());
  EXPECT_EQ(daemon.mps()["pipe_folder"], pipe);
  EXPECT_EQ(daemon.mps()["faults"][0]["kind"], "control_ended");
  EXPECT_TRUE(daemon.mps()["clients"].empty());
}

TEST(SchedMps, one_that_always_dies_is_given_up) {
  MpsDaemon daemon({"--mechanism", "auto"});
  ASSERT_EQ(daemon.started.code, 0) << daemon.started.err;
  ASSERT_TRUE(mps_soon([&] {
    const Json mps = daemon.mps();
    if (mps["pid"].is_number()) ::kill(mps["pid"].get<pid_t>(), SIGKILL);
    return mps["reason"].is_string() && has(mps["reason"].get<std::string>(), "not started any more");
  })) << to_text(daemon.mps());
  EXPECT_TRUE(has(daemon.sched({"status"}).out, "the gate alone, because the MPS is down"));
}

TEST(SchedMps, programs_in_it_outlive_a_daemon_that_is_killed) {
  MpsDaemon daemon({"--mechanism", "mps_priority"});
  ASSERT_EQ(daemon.started.code, 0) << daemon.started.err;
  const pid_t program = start_program({"sleep", "1000"}, ".", "/dev/null", "/dev/null");
  daemon.tell("client " + std::to_string(program));
  ASSERT_TRUE(mps_soon([&] { return daemon.mps()["clients"].size() == 1; }));
  const pid_t control = daemon.pid_of("pid"), first = daemon.status()["pid"].get<pid_t>();
  ::kill(first, SIGKILL);
  wait_for(first);
  // The next daemon leaves them alone as well, and has an MPS of its own.
  ASSERT_EQ(daemon.start({"--mechanism", "mps_priority"}).code, 0);
  EXPECT_EQ(::kill(control, 0), 0);
  EXPECT_NE(daemon.pid_of("pid"), control);
  ::kill(program, SIGKILL);
  wait_for(program);
  EXPECT_TRUE(mps_soon([&] {
    reap_all();
    return ::kill(control, 0) != 0;
  }));
  EXPECT_EQ(daemon.sched({"stop"}).code, 0);
  EXPECT_TRUE(daemon.leaves_nothing()) << joined_words(daemon.left());
}

TEST(SchedMps, whoever_is_killed_nothing_is_left) {
  const char* const asked = std::getenv("WEIR_LONG_TESTS");
  const bool is_long = asked != nullptr && std::string_view(asked) != "0";
  const char* const chosen = std::getenv("WEIR_FAULT_SEED");
  std::mt19937_64 random(chosen != nullptr ? std::strtoull(chosen, nullptr, 10) : 5);
  for (int round = 0; round < (is_long ? 200 : 10); ++round) {
    MpsDaemon daemon({"--mechanism", round % 2 == 0 ? "auto" : "mps_priority"},
                     round % 5 == 4 ? Words{"FAKE_MPS=stubborn"} : Words{});
    ASSERT_EQ(daemon.started.code, 0) << "round " << round << daemon.started.err;
    if (random() % 2 == 0) daemon.tell("client 4194304");  // whose process has gone by then
    const Json status = daemon.status();
    const std::vector<pid_t> victims = {status["pid"].get<pid_t>(), status["mps"]["guardian_pid"].get<pid_t>(),
                                        status["mps"]["pid"].get<pid_t>()};
    // One to three of them, at about the same time.
    const std::uint64_t chosen_ones = 1 + random() % 7;
    std::this_thread::sleep_for(std::chrono::microseconds(random() % 20'000));
    for (std::size_t i = 0; i < victims.size(); ++i) {
      if ((chosen_ones >> i & 1) == 0) continue;
      ::kill(victims[i], SIGKILL);
      if (random() % 2 == 0) std::this_thread::sleep_for(std::chrono::microseconds(random() % 5'000));
    }
    if ((chosen_ones & 1) == 0) {
      // The daemon lives: its MPS comes back.
      ASSERT_TRUE(mps_soon([&] {
        const Json mps = daemon.mps();
        return mps["is_up"] == true && mps["pid"] != victims[2];
      })) << "round "
          << round << " " << chosen_ones << to_text(daemon.mps());
    } else {
      wait_for(victims[0]);
      if ((chosen_ones & 2) == 0) {
        EXPECT_TRUE(daemon.leaves_nothing()) << "round " << round << " " << joined_words(daemon.left());
      }
      // Where both were killed the next start cleans up.
      ASSERT_EQ(daemon.start({"--mechanism", "auto"}).code, 0) << "round " << round;
    }
    EXPECT_EQ(daemon.sched({"stop"}).code, 0);
    EXPECT_TRUE(daemon.leaves_nothing()) << "round " << round << " " << chosen_ones << " "
                                         << joined_words(daemon.left());
  }
}

}  // namespace
}  // namespace weir::testing
