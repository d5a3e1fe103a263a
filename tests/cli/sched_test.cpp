// weir sched as users meet it: a daemon in the background, programs under it, and what goes wrong.
#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <thread>

#include "base/json.h"
#include "cli/program.h"
#include "cli/terminal.h"
#include "support/text.h"

namespace weir::testing {
namespace {

// A daemon by `weir sched start` in a folder of its own. Ends with the object; nobody is left behind.
class SchedDaemon {
 public:
  explicit SchedDaemon(std::vector<std::string> flags = {}) {
    // What is started in the background becomes this process's child, so that it can be waited for.
    ::prctl(PR_SET_CHILD_SUBREAPER, 1);
    start(std::move(flags));
  }
  ~SchedDaemon() {
    if (pid_ > 0) ::kill(pid_, SIGTERM);
    reap();
  }
  SchedDaemon(const SchedDaemon&) = delete;
  SchedDaemon& operator=(const SchedDaemon&) = delete;

  void start(std::vector<std::string> flags = {}) {
    flags.insert(flags.begin(), "start");
    started = sched(flags);
    if (started.code == 0) pid_ = status()["pid"].get<pid_t>();
  }
  Outcome sched(std::vector<std::string> arguments) const {
    const auto end = std::find(arguments.begin(), arguments.end(), "--");
    arguments.insert(end, {"--socket", socket()});
    arguments.insert(arguments.begin(), "sched");
    return weir(arguments);
  }
  Json status() const { return parse_json(sched({"status", "--json"}).out, "status"); }
  std::string socket() const { return folder_ / "sched.sock"; }
  pid_t pid() const { return pid_; }
  // Its exit code, or 128 + signal; -1 where there is none to wait for.
  int reap() {
    if (pid_ <= 0) return -1;
    const int code = wait_for(pid_);
    pid_ = -1;
    return code;
  }

  Outcome started;

 private:
  Folder folder_;
  pid_t pid_ = -1;
};

const std::vector<std::string> kTinyRun = {WEIR_BINARY, "run", "large_gemm_only", "--device", "cpu", "--scale", "tiny",
                                           "--warmup",  "1",   "--iterations",    "20"};

// A flag that is given twice is rejected.
std::vector<std::string> tiny_run_of(const char* iterations) {
  std::vector<std::string> words = kTinyRun;
  words.back() = iterations;
  return words;
}

std::vector<std::string> operator+(std::vector<std::string> words, const std::vector<std::string>& more) {
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

TEST(Sched, a_daemon_starts_answers_and_stops) {
  SchedDaemon daemon({"--policy", "time_slice", "--slice", "3ms", "--ageing", "0", "--in-flight", "4"});
  ASSERT_EQ(daemon.started.code, 0) << daemon.started.err;
  EXPECT_TRUE(has(daemon.started.out, daemon.socket()));
  EXPECT_TRUE(has(daemon.started.out, "policy time_slice, slice 3ms, ageing never, 4 in flight"));
  const Json status = daemon.status();
  EXPECT_EQ(status["policy"], "time_slice");
  EXPECT_EQ(status["slice_ns"], 3'000'000);
  EXPECT_EQ(status["ageing_ns"], nullptr);
  EXPECT_EQ(status["in_flight"], 4);
  EXPECT_TRUE(has(daemon.sched({"status"}).out, "0 clients"));
  const Outcome stopped = daemon.sched({"stop"});
  EXPECT_EQ(stopped.code, 0) << stopped.err;
  EXPECT_EQ(stopped.out, "Stopped.\n");
  EXPECT_EQ(daemon.reap(), 0);
  EXPECT_FALSE(std::filesystem::exists(daemon.socket()));
  const Outcome gone = daemon.sched({"status"});
  EXPECT_EQ(gone.code, 2);
  EXPECT_TRUE(has(gone.err, "weir sched start")) << gone.err;
}

TEST(Sched, socket_and_folder_are_open_to_nobody_else) {
  const Folder folder;
  const std::string socket = folder / "new/sched.sock";
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);
  ASSERT_EQ(weir({"sched", "start", "--socket", socket}).code, 0);
  const pid_t pid =
      parse_json(weir({"sched", "status", "--socket", socket, "--json"}).out, "status")["pid"].get<pid_t>();
  struct stat facts{};
  EXPECT_EQ(::stat(socket.c_str(), &facts), 0);
  EXPECT_EQ(facts.st_mode & 0777U, 0600U);
  EXPECT_EQ(::stat((folder / "new").c_str(), &facts), 0);
  EXPECT_EQ(facts.st_mode & 0777U, 0700U);
  EXPECT_EQ(weir({"sched", "stop", "--socket", socket}).code, 0);
  EXPECT_EQ(wait_for(pid), 0);
}

TEST(Sched, of_two_daemons_the_second_is_rejected) {
  SchedDaemon daemon;
  ASSERT_EQ(daemon.started.code, 0) << daemon.started.err;
  const Outcome second = daemon.sched({"start"});
  EXPECT_EQ(second.code, 2);
  EXPECT_TRUE(has(second.err, daemon.socket())) << second.err;
  EXPECT_EQ(daemon.status()["pid"], daemon.pid());
  // How many commands are in flight is chosen for each client.
  EXPECT_TRUE(has(daemon.started.out, "auto in flight")) << daemon.started.out;
  EXPECT_EQ(daemon.status()["in_flight"], nullptr);
}

TEST(Sched, a_socket_that_was_left_behind_is_replaced) {
  SchedDaemon daemon;
  ASSERT_EQ(daemon.started.code, 0) << daemon.started.err;
  ::kill(daemon.pid(), SIGKILL);
  EXPECT_EQ(daemon.reap(), 128 + SIGKILL);
  ASSERT_TRUE(std::filesystem::exists(daemon.socket()));
  const Outcome gone = daemon.sched({"status"});
  EXPECT_EQ(gone.code, 2) << gone.out;
  daemon.start();
  ASSERT_EQ(daemon.started.code, 0) << daemon.started.err;
  EXPECT_EQ(daemon.sched({"status"}).code, 0);
}

TEST(Sched, a_file_at_the_place_of_the_socket_is_left_alone) {
  const Folder folder;
  std::ofstream(folder / "sched.sock") << "mine\n";
  const Outcome outcome = weir({"sched", "start", "--socket", folder / "sched.sock"});
  EXPECT_EQ(outcome.code, 2) << outcome.err;
  EXPECT_TRUE(has(outcome.err, "sched.sock")) << outcome.err;
  std::ifstream file(folder / "sched.sock");
  std::string line;
  std::getline(file, line);
  EXPECT_EQ(line, "mine");
}

TEST(Sched, a_client_of_another_user_is_rejected) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can be another user for a moment";
  const std::vector<std::string> nobody = {"setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", WEIR_BINARY};
  if (run_program(nobody + std::vector<std::string>{"--version"}).code != 0)
    GTEST_SKIP() << "there is no setpriv, or another user may not run the binary";
  SchedDaemon daemon;
  ASSERT_EQ(daemon.started.code, 0) << daemon.started.err;
  const std::filesystem::path folder = std::filesystem::path(daemon.socket()).parent_path();
  // Even where the files would let it through.
  for (const bool is_open : {false, true}) {
    if (is_open) {
      std::filesystem::permissions(folder, std::filesystem::perms::all);
      std::filesystem::permissions(daemon.socket(), std::filesystem::perms::all);
    }
    for (const char* command : {"status", "stop", "run"}) {
      const Outcome outcome = run_program(
          nobody + std::vector<std::string>{"sched", command, "--socket", daemon.socket()} +
          (std::string(command) == "run" ? std::vector<std::string>{"--", "true"} : std::vector<std::string>{}));
      EXPECT_EQ(outcome.code, 2) << command << is_open << outcome.out << outcome.err;
      EXPECT_TRUE(has(outcome.err, "another user's")) << outcome.err;
    }
  }
  std::filesystem::permissions(folder, std::filesystem::perms::owner_all);
  std::filesystem::permissions(daemon.socket(), static_cast<std::filesystem::perms>(0600));
  EXPECT_EQ(daemon.sched({"status"}).code, 0);
}

TEST(Sched, terms_out_of_range_are_rejected_by_the_name_of_the_flag) {
  SchedDaemon daemon;
  ASSERT_EQ(daemon.started.code, 0) << daemon.started.err;
  const std::vector<std::vector<std::string>> kBad = {
      {"--priority", "11"},  {"--priority", "-11"}, {"--priority", "99999999999999999999"},
      {"--priority", "-"},   {"--priority", "max"}, {"--priority", "1.5"},
      {"--weight", "0"},     {"--weight", "101"},   {"--weight", "nan"},
      {"--weight", "heavy"}, {"--deadline", "10"},  {"--deadline", "0ms"},
      {"--deadline", "-1s"}, {"--deadline", "2h"},  {"--p99", "10"},
      {"--p99", "9us"},      {"--p99", "2h"},
  };
  for (const auto& flags : kBad) {
    const Outcome outcome =
        daemon.sched(std::vector<std::string>{"run"} + flags + std::vector<std::string>{"--", "true"});
    EXPECT_EQ(outcome.code, 2) << flags[1];
    EXPECT_TRUE(has(outcome.err, flags[0] + " " + flags[1])) << outcome.err;
  }
  for (const char* priority : {"-10", "10", "high", "low", "normal", "0"})
    EXPECT_EQ(daemon.sched({"run", "--priority", priority, "--", "true"}).code, 0) << priority;
}

TEST(Sched, settings_that_make_no_sense_are_rejected) {
  const Folder folder;
  const std::vector<std::vector<std::string>> kBad = {
      {"--policy", "prority"}, {"--slice", "0ms"},   {"--slice", "2"},      {"--ageing", "-1ms"},
      {"--in-flight", "0"},    {"--in-flight", "x"}, {"--mechanism", "kfd"}};
  for (const auto& flags : kBad) {
    const Outcome outcome = weir(std::vector<std::string>{"sched", "start", "--socket", folder / "sched.sock"} + flags);
    EXPECT_EQ(outcome.code, 2) << flags[0];
    EXPECT_TRUE(has(outcome.err, flags[1])) << outcome.err;
  }
  EXPECT_FALSE(std::filesystem::exists(folder / "sched.sock"));
}

TEST(Sched, a_mechanism_without_its_driver_is_refused_with_the_reason) {
  if (std::filesystem::exists("/dev/kfd")) GTEST_SKIP() << "this machine has the driver";
  const Folder folder;
  const Outcome outcome = weir({"sched", "start", "--mechanism", "kfd_suspend", "--socket", folder / "sched.sock"});
  EXPECT_EQ(outcome.code, 2) << outcome.out;
  EXPECT_TRUE(has(outcome.err, "--mechanism kfd_suspend: no /dev/kfd on this machine")) << outcome.err;
  EXPECT_TRUE(has(outcome.err, "gate")) << outcome.err;
  EXPECT_FALSE(std::filesystem::exists(folder / "sched.sock"));
  SchedDaemon daemon({"--mechanism", "gate"});
  EXPECT_EQ(daemon.status()["mechanism"], "gate");
}

TEST(Sched, a_log_that_is_a_fifo_is_rejected_and_not_waited_for) {
  const Folder folder;
  const std::string fifo = folder / "log";
  ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
  const Outcome outcome = weir({"sched", "start", "--socket", folder / "sched.sock", "--log", fifo});
  EXPECT_EQ(outcome.code, 2);
  EXPECT_TRUE(has(outcome.err, "is a pipe that nobody reads")) << outcome.err;
}

TEST(Sched, without_a_daemon_run_says_how_to_start_one) {
  const Folder folder;
  const Outcome outcome = weir({"sched", "run", "--socket", folder / "none.sock", "--", "true"});
  EXPECT_EQ(outcome.code, 2);
  EXPECT_TRUE(has(outcome.err, "weir sched start")) << outcome.err;
}

TEST(Sched, a_program_is_required_and_has_to_be_there) {
  SchedDaemon daemon;
  for (const auto& words : {std::vector<std::string>{"run"}, {"run", "--"}, {"run", "--", "./no_such_program"}}) {
    const Outcome outcome = daemon.sched(words);
    EXPECT_EQ(outcome.code, 2) << outcome.err;
  }
}

TEST(Sched, exit_code_signals_and_output_are_the_programs_own) {
  SchedDaemon daemon;
  ASSERT_EQ(daemon.started.code, 0) << daemon.started.err;
  EXPECT_EQ(daemon.sched({"run", "--", "sh", "-c", "exit 7"}).code, 7);
  EXPECT_EQ(daemon.sched({"run", "--", "sh", "-c", "kill -9 $$"}).code, 128 + SIGKILL);
  const Outcome said = daemon.sched({"run", "--quiet", "--", "sh", "-c", "echo out; echo err >&2"});
  EXPECT_EQ(said.out, "out\n");
  EXPECT_EQ(said.err, "err\n");
  // Flags of the program are not ours.
  EXPECT_EQ(daemon.sched({"run", "--", "echo", "--priority", "--", "-h"}).out, "--priority -- -h\n");
}

TEST(Sched, a_program_finds_socket_and_terms_in_its_environment) {
  SchedDaemon daemon;
  ASSERT_EQ(daemon.started.code, 0) << daemon.started.err;
  const Outcome outcome =
      daemon.sched({"run", "--priority", "high", "--weight", "2.5", "--deadline", "10ms", "--p99", "1ms", "--", "env"});
  EXPECT_EQ(outcome.code, 0);
  EXPECT_TRUE(has(outcome.out, "WEIR_SCHED_SOCKET=" + daemon.socket() + "\n")) << outcome.out;
  EXPECT_TRUE(has(outcome.out, "WEIR_SCHED_TERMS=priority=10;weight=2.5;deadline_ns=10000000;p99_ns=1000000\n"))
      << outcome.out;
}

TEST(Sched, the_daemon_keeps_nothing_open_of_whoever_started_it) {
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);
  const Folder folder;
  const std::string socket = folder / "sched.sock", file = folder / "open";
  // Would not return if the daemon kept the pipe.
  const Outcome outcome =
      run_program({"sh", "-c", "exec 9>" + file + "; " + WEIR_BINARY + " sched start --socket " + socket + " | cat"});
  EXPECT_TRUE(has(outcome.out, socket)) << outcome.err;
  const pid_t pid =
      parse_json(weir({"sched", "status", "--socket", socket, "--json"}).out, "status")["pid"].get<pid_t>();
  for (const auto& entry : std::filesystem::directory_iterator("/proc/" + std::to_string(pid) + "/fd")) {
    std::error_code ignored;
    EXPECT_NE(std::filesystem::read_symlink(entry.path(), ignored), std::filesystem::path(file));
  }
  // Started with its standard descriptors closed it comes up as well.
  EXPECT_EQ(weir({"sched", "stop", "--socket", socket}).code, 0);
  EXPECT_EQ(wait_for(pid), 0);
  EXPECT_EQ(
      run_program({"sh", "-c", std::string(WEIR_BINARY) + " sched start -q --socket " + socket + " <&- >&- 2>&-"}).code,
      0);
  const pid_t other =
      parse_json(weir({"sched", "status", "--socket", socket, "--json"}).out, "status")["pid"].get<pid_t>();
  EXPECT_EQ(weir({"sched", "stop", "--socket", socket}).code, 0);
  EXPECT_EQ(wait_for(other), 0);
}

TEST(Sched, in_the_foreground_it_ends_by_a_signal) {
  const Folder folder;
  const std::string socket = folder / "sched.sock";
  const pid_t process = start_weir({"sched", "start", "--foreground", "--socket", socket}, ".");
  await_handler(process, SIGTERM);
  EXPECT_EQ(weir({"sched", "status", "--socket", socket}).code, 0);
  ::kill(process, SIGTERM);
  EXPECT_EQ(wait_for(process), 0);
  EXPECT_FALSE(std::filesystem::exists(socket));
}

TEST(Sched, a_run_of_weir_is_a_client_and_its_result_says_so) {
  SchedDaemon daemon;
  ASSERT_EQ(daemon.started.code, 0) << daemon.started.err;
  const Folder folder;
  const Outcome outcome = daemon.sched(std::vector<std::string>{"run", "--priority", "3", "--"} + kTinyRun +
                                       std::vector<std::string>{"-o", folder / "result.json"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const Json facts = read_json(folder / "result.json")["environment"]["scheduler"];
  EXPECT_EQ(facts["is_scheduled"], true);
  EXPECT_EQ(facts["policy"], "priority");
  EXPECT_EQ(facts["terms"]["priority"], 3);
  EXPECT_EQ(facts["is_alive_at_end"], true);
  EXPECT_TRUE(daemon.status()["clients"].empty());
}

TEST(Sched, a_run_whose_daemon_is_gone_goes_on_unscheduled_with_a_warning) {
  const Folder folder;
  const std::vector<std::string> lost = {"env", "WEIR_SCHED_SOCKET=" + (folder / "none.sock")};
  const Outcome outcome = run_program(lost + kTinyRun + std::vector<std::string>{"-o", folder / "result.json"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_TRUE(has(outcome.err, "unscheduled")) << outcome.err;
  EXPECT_EQ(read_json(folder / "result.json")["environment"]["scheduler"]["is_scheduled"], false);
  const Outcome terms = run_program(lost + std::vector<std::string>{"WEIR_SCHED_TERMS=priority=high"} + kTinyRun);
  EXPECT_EQ(terms.code, 2);
  EXPECT_TRUE(has(terms.err, "WEIR_SCHED_TERMS")) << terms.err;
}

// Its children are clients of their own, and all of them end.
TEST(Sched, a_program_that_forks_has_a_seat_for_each_process_that_needs_one) {
  SchedDaemon daemon({"--policy", "fifo"});
  ASSERT_EQ(daemon.started.code, 0) << daemon.started.err;
  std::string one;
  for (const std::string& word : kTinyRun) one += word + " ";
  const Outcome outcome = daemon.sched(
      {"run", "--priority", "low", "--", "sh", "-c", one + "-q & a=$!; " + one + "-q & b=$!; wait $a && wait $b"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(outcome.err, "");
  EXPECT_TRUE(daemon.status()["clients"].empty());
}

// The urgent one may be held by nobody; the other one runs when it may.
TEST(Sched, runs_of_different_priority_share_the_device_and_are_right) {
  SchedDaemon daemon({"--ageing", "0"});
  ASSERT_EQ(daemon.started.code, 0) << daemon.started.err;
  const Folder folder;
  const auto start = [&](const char* priority) {
    return start_weir(
        std::vector<std::string>{"sched", "run", "-q", "--socket", daemon.socket(), "--priority", priority, "--"} +
            tiny_run_of("200") + std::vector<std::string>{"-o", folder / priority},
        ".");
  };
  const pid_t low = start("low"), high = start("high");
  EXPECT_EQ(wait_for(high), 0);
  EXPECT_EQ(wait_for(low), 0);
  EXPECT_EQ(read_json(folder / "high")["check"]["status"], "passed");
  EXPECT_EQ(read_json(folder / "low")["check"]["status"], "passed");
  EXPECT_EQ(read_json(folder / "high")["environment"]["scheduler"]["held"], 0);
}

TEST(Sched, a_daemon_killed_under_a_run_does_not_hurt_it) {
  for (int round = 0; round < 3; ++round) {
    SchedDaemon daemon;
    ASSERT_EQ(daemon.started.code, 0) << daemon.started.err;
    std::vector<pid_t> runs;
    for (const char* priority : {"low", "high"})
      runs.push_back(start_weir(
          std::vector<std::string>{"sched", "run", "-q", "--socket", daemon.socket(), "--priority", priority, "--"} +
              tiny_run_of("2000") + std::vector<std::string>{"-q"},
          "."));
    // One that has ended already does not come any more.
    while (daemon.status()["clients"].size() < 2 - static_cast<std::size_t>(round == 2) &&
           std::none_of(runs.begin(), runs.end(), has_ended))
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    ::kill(daemon.pid(), SIGKILL);
    for (const pid_t run : runs) EXPECT_EQ(wait_for(run), 0);
    daemon.reap();
  }
}

TEST(Sched, status_tells_in_three_ways) {
  SchedDaemon daemon;
  ASSERT_EQ(daemon.started.code, 0) << daemon.started.err;
  EXPECT_TRUE(has(daemon.sched({"status", "--format", "markdown"}).out, "# Scheduler"));
  const Folder folder;
  EXPECT_EQ(daemon.sched({"status", "--json", "-o", folder / "status.json"}).code, 0);
  EXPECT_EQ(daemon.sched({"status", "--json", "-o", folder / "status.json"}).code, 2);
  EXPECT_EQ(daemon.sched({"status", "--format", "xml"}).code, 2);
  expect_valid_as(folder / "status.json", "weir.sched_status.1.json");
}

TEST(Sched, top_prints_tables_where_there_is_no_terminal) {
  SchedDaemon daemon;
  ASSERT_EQ(daemon.started.code, 0) << daemon.started.err;
  const Outcome two = daemon.sched({"top", "--interval", "50ms", "--iterations", "2"});
  EXPECT_EQ(two.code, 0) << two.err;
  EXPECT_NE(two.out.find("0 clients"), two.out.rfind("0 clients")) << two.out;
  EXPECT_EQ(daemon.sched({"top", "--once"}).code, 0);
  EXPECT_EQ(daemon.sched({"top", "--once", "--iterations", "3"}).code, 2);
  EXPECT_EQ(daemon.sched({"top", "--interval", "1ms"}).code, 2);
}

TEST(Sched, top_on_a_terminal_is_a_screen_that_q_ends) {
  if (!has(weir({"info"}).out, "ncurses            yes")) GTEST_SKIP() << "built without ncurses";
  SchedDaemon daemon;
  ASSERT_EQ(daemon.started.code, 0) << daemon.started.err;
  Terminal terminal({"sched", "top", "--socket", daemon.socket(), "--interval", "100ms"}, 80, 24);
  ASSERT_TRUE(terminal.await("q quits")) << terminal.bytes();
  EXPECT_TRUE(terminal.await("0 clients"));
  terminal.type("q");
  EXPECT_EQ(terminal.end(), 0);
  EXPECT_TRUE(terminal.is_cooked());
}

TEST(Sched, top_ends_with_a_message_when_the_daemon_does) {
  SchedDaemon daemon;
  ASSERT_EQ(daemon.started.code, 0) << daemon.started.err;
  Terminal terminal({"sched", "top", "--socket", daemon.socket(), "--interval", "100ms"}, 80, 24);
  ASSERT_TRUE(terminal.await("0 clients"));
  EXPECT_EQ(daemon.sched({"stop"}).code, 0);
  EXPECT_EQ(terminal.end(), 2);
  EXPECT_TRUE(terminal.is_cooked());
}

}  // namespace
}  // namespace weir::testing
