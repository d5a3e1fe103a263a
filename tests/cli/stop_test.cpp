// What signals do to commands, through the built binary: SIGINT, SIGTERM and SIGHUP save what was measured, a second
// one ends everything, and nothing is left. With WEIR_LONG_TESTS=1 (make test-long) 200 random signals, otherwise a
// few.
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <random>

#include "base/clock.h"
#include "base/json.h"
#include "cli/program.h"
#include "support/text.h"

namespace weir::testing {
namespace {

namespace fs = std::filesystem;

bool has_mpi() {
  return fs::exists(fs::path(WEIR_BINARY).parent_path() / "libweir_mpi.so") &&
         run_program({"mpirun", "--version"}).code == 0;
}

// A command in a folder of its own: with folders for temporary files and for sockets, and a mark in its environment by
// which all its processes are found.
class StoppedRun {
 public:
  explicit StoppedRun(std::vector<std::string> arguments, std::vector<std::string> starter = {}) {
    static int count = 0;
    mark_ = "WEIR_STOP_TEST=" + std::to_string(::getpid()) + "." + std::to_string(++count) + ".";
    fs::create_directory(folder_.path() / "tmp");
    fs::create_directory(folder_.path() / "run");
    fs::permissions(folder_.path() / "run", fs::perms::owner_all);
    std::vector<std::string> command = {"env",
                                        mark_,
                                        "TMPDIR=" + folder_ / "tmp",
                                        "XDG_RUNTIME_DIR=" + folder_ / "run",
                                        "XDG_STATE_HOME=" + folder_ / "run",
                                        "XDG_CACHE_HOME=" + folder_ / "run"};
    command.insert(command.end(), starter.begin(), starter.end());
    command.emplace_back(WEIR_BINARY);
    command.insert(command.end(), arguments.begin(), arguments.end());
    process_ = start_program(command, folder_.path(), folder_ / "out", folder_ / "err");
  }
  ~StoppedRun() {
    for (const pid_t left : processes()) ::kill(left, SIGKILL);
    if (code_ < 0) testing::wait_for(process_);
  }
  StoppedRun(const StoppedRun&) = delete;
  StoppedRun& operator=(const StoppedRun&) = delete;

  pid_t process() const { return process_; }
  const Folder& folder() const { return folder_; }
  std::string err() const { return content(folder_ / "err"); }
  void send(int signal) const { ::kill(process_, signal); }
  // The exit code; -1 where it has not ended in two minutes.
  int end() {
    for (int i = 0; i < 120'000 && !has_ended(process_); ++i) ::usleep(1000);
    if (!has_ended(process_)) return -1;
    return code_ = testing::wait_for(process_);
  }
  // Its processes that run, including itself.
  std::vector<pid_t> processes() const {
    std::vector<pid_t> found;
    for (const auto& entry : fs::directory_iterator("/proc")) {
      const std::string name = entry.path().filename();
      if (name.find_first_not_of("0123456789") != std::string::npos) continue;
      const std::string stat = content(entry.path() / "stat");
      const std::size_t state = stat.rfind(')') + 2;
      const bool runs = state < stat.size() && stat[state] != 'Z' && stat[state] != 'X';
      if (runs && has(content(entry.path() / "environ"), mark_)) found.push_back(std::stoi(name));
    }
    return found;
  }
  // After its end: no process, no temporary file, and every document whole.
  void expect_nothing_left(const std::string& what) const {
    // A killed process may take a moment to go.
    for (int i = 0; i < 5000 && !processes().empty(); ++i) ::usleep(1000);
    EXPECT_TRUE(processes().empty()) << what;
    for (const auto& entry : fs::directory_iterator(folder_.path() / "tmp"))
      ADD_FAILURE() << what << ": left in TMPDIR: " << entry.path();
    for (const auto& entry : fs::recursive_directory_iterator(folder_.path())) {
      const fs::path& file = entry.path();
      EXPECT_NE(file.extension(), ".tmp") << what << ": " << file;
      if (file.extension() != ".json") continue;
      EXPECT_NO_THROW(read_json(file)) << what << ": " << file;
    }
  }

 private:
  Folder folder_;
  std::string mark_;
  pid_t process_ = -1;
  int code_ = -1;
};

std::vector<std::string> on_cpu(std::vector<std::string> arguments, std::initializer_list<std::string> more) {
  arguments.insert(arguments.end(), {"--device", "cpu", "--scale", "tiny"});
  arguments.insert(arguments.end(), more);
  return arguments;
}
const std::vector<std::string> kRun =
    on_cpu({"run", "tiny_kernel_stress"}, {"--iterations", "10000000", "-o", "r.json"});
const std::vector<std::string> kOverlap = {
    "overlap", "default", "--device", "cpu", "--set", "run.scale=tiny", "--set", "run.iterations=1000000", "-o", "o"};

TEST(Stop, every_signal_saves_what_was_measured) {
  const std::vector<std::pair<std::vector<std::string>, std::string>> commands = {
      {kRun, "r.json"},
      {kOverlap, "o/summary.json"},
      {on_cpu({"profile", "moe"}, {"--iterations", "10000000", "-o", "t.json"}), "t.json"},
      {on_cpu({"sweep", "tiny_kernel_stress"}, {"--iterations", "1000000", "--streams", "1,2", "-o", "s.json"}),
       "s.json"},
  };
  for (const auto& [command, file] : commands)
    for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
      const std::string what = command[0] + " " + ::strsignal(signal);
      StoppedRun run(command);
      await_handler(run.process(), SIGHUP);
      run.send(signal);
      EXPECT_EQ(run.end(), 128 + signal) << what << run.err();
      EXPECT_TRUE(fs::exists(run.folder() / file)) << what;
      run.expect_nothing_left(what);
    }
}

// The terminal that started it may go.
TEST(Stop, nohup_is_respected) {
  StoppedRun run(kRun, {"sh", "-c", "trap '' HUP; exec \"$0\" \"$@\""});
  await_handler(run.process(), SIGTERM);
  run.send(SIGHUP);
  run.send(SIGTERM);
  EXPECT_EQ(run.end(), 128 + SIGTERM) << run.err();
  EXPECT_EQ(read_json(run.folder() / "r.json")["status"], "interrupted");
}

// timeout(1), and a shell whose terminal is closed, send the same signal twice.
TEST(Stop, a_signal_that_comes_twice_at_once_still_saves) {
  for (const int signal : {SIGTERM, SIGHUP}) {
    StoppedRun run(kRun);
    await_handler(run.process(), SIGHUP);
    ::usleep(300'000);  // into the iterations
    run.send(signal);
    run.send(signal);
    EXPECT_EQ(run.end(), 128 + signal) << run.err();
    run.expect_nothing_left(::strsignal(signal));
  }
}

// Two streams that wait for each other: the iteration does not end, so that the first signal ends nothing.
TEST(Stop, the_second_signal_ends_what_hangs_and_leaves_nothing) {
  const std::vector<std::string> hangs = {"run",       "--file",   WEIR_SOURCE_DIR "/tests/cli/deadlock.yaml",
                                          "--device",  "cpu",      "--iterations",
                                          "3",         "--warmup", "0",
                                          "--no-trace"};
  std::vector<std::string> in_processes = hangs;
  in_processes.insert(in_processes.end(), {"--processes", "3"});
  for (const auto& command : {hangs, in_processes})
    for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
      StoppedRun run(command);
      await_handler(run.process(), SIGHUP);
      if (command.size() > hangs.size())
        while (run.processes().size() < 2 && !has_ended(run.process())) ::usleep(1000);
      run.send(signal);
      ::usleep(100'000);  // not at once: the kernel delivers two of the same that wait as one
      run.send(SIGINT);
      EXPECT_EQ(run.end(), 128 + signal) << run.err();
      run.expect_nothing_left(::strsignal(signal));
    }
}

TEST(Stop, ranks_save_after_every_signal) {
  if (!has_mpi()) GTEST_SKIP() << "there is no MPI";
  for (const auto& [command, file] : {std::pair(kRun, "r.json"), std::pair(kOverlap, "o/summary.json")})
    for (const int signal : {SIGHUP, SIGTERM}) {
      std::vector<std::string> with_ranks = command;
      with_ranks.insert(with_ranks.end(), {"--ranks", "2"});
      StoppedRun run(with_ranks);
      await_handler(run.process(), SIGHUP);
      ::usleep(signal == SIGHUP ? 0 : 1'500'000);  // any moment will do: before there are ranks, and later
      run.send(signal);
      EXPECT_EQ(run.end(), 128 + signal) << run.err();
      EXPECT_TRUE(fs::exists(run.folder() / file)) << command[0] << run.err();
      run.expect_nothing_left(command[0] + " " + ::strsignal(signal));
    }
}

struct Campaign {
  std::string name;
  std::vector<std::string> command;
  bool has_ranks = false;
};

std::vector<Campaign> campaign() {
  const auto overlap = [](std::initializer_list<std::string> more) {
    std::vector<std::string> command = kOverlap;
    command.insert(command.end(), more);
    return command;
  };
  std::vector<Campaign> all = {
      {"run", kRun},
      {"run --processes",
       on_cpu({"run", "tiny_kernel_stress"}, {"--iterations", "300", "--processes", "200", "-o", "r.json"})},
      {"sweep", on_cpu({"sweep", "tiny_kernel_stress"}, {"--iterations", "3000", "--streams", "1..8", "-o", "s.json"})},
      {"sweep --processes", on_cpu({"sweep", "tiny_kernel_stress"},
                                   {"--iterations", "50", "--streams", "1,2", "--processes", "99", "-o", "s.json"})},
      {"bench", {"bench", "--path", "reduction", "--device", "cpu", "--iterations", "1000", "--budget", "60s"}},
      {"overlap", kOverlap},
      {"overlap tune",
       {"overlap", "tune", "default", "--device", "cpu", "--set", "run.scale=tiny", "--set", "run.iterations=5",
        "--budget", "60s", "-o", "t.json"}},
      {"overlap sweep",
       {"overlap", "sweep", "--device", "cpu", "--gemm", "1..300", "--bytes", "4K", "--iterations", "20", "-o",
        "o.json"}},
      {"run --seconds", on_cpu({"run", "tiny_kernel_stress"}, {"--seconds", "1h", "-o", "soak.json"})},
      {"sweep --env", on_cpu({"sweep", "tiny_kernel_stress"},
                             {"--iterations", "300", "--streams", "1..8", "--env", "A=1,2,3,4,5", "-o", "e.json"})},
      {"profile", on_cpu({"profile", "moe"}, {"--iterations", "10000000", "-o", "t.json"})},
      {"profile --", {"profile", "-o", "t.json", "--", "sleep", "1000"}},
      {"channel", {"channel", "ping_pong", "--quick", "--processes", "400", "--samples", "50", "-o", "c.json"}},
      {"queues sweep",
       {"queues", "sweep", "tiny_kernel_stress", "--device", "sim:h200", "--hw-queues", "1..100", "--streams", "2",
        "--scale", "tiny", "-o", "q.json"}},
      {"queues map", {"queues", "map", "--device", "cpu", "--hw-queues", "4", "-o", "m.json"}},
      {"queues cost",
       {"queues", "cost", "--file", "depth_first", "--device", "cpu", "--streams", "8", "--iterations", "2000", "-o",
        "k.json"}},
      {"queues switch", {"queues", "switch", "--device", "cpu", "-o", "w.json"}},
      {"calibrate", on_cpu({"calibrate", "moe"}, {"--processes", "50", "-o", "k.json"})},
      {"try",
       {"try", "--env", "A=,1,2", "--trials", "30", "-o", "tr", "--", "sh", "-c", "sleep 1000 & sleep 0.3; echo done"}},
      {"preempt",
       {"preempt", "--device", "cpu", "--mechanisms", "none,launch_gate", "--iterations", "20000", "--interval", "5ms",
        "--victims", "waves", "-o", "p.json"}},
      {"conformance", {"conformance", "--device", "cpu", "-o", "cf.json"}},
      {"watch", {"watch", "--source", "device", "--device", "cpu", "--scale", "tiny", "--json"}},
      {"sched start", {"sched", "start", "--foreground"}},
      {"amd capture", {"amd", "capture", "-o", "cap", "--", "sleep", "1000"}},
  };
  if (!has_mpi()) return all;
  std::vector<std::string> run = kRun, sweep = all[2].command;
  run.insert(run.end(), {"--ranks", "2"});
  sweep.insert(sweep.end(), {"--ranks", "2"});
  all.push_back({"run --ranks", run, true});
  all.push_back({"sweep --ranks", sweep, true});
  all.push_back({"overlap --ranks", overlap({"--ranks", "2"}), true});
  all.push_back({"overlap --ranks --processes",
                 overlap({"--ranks", "2", "--processes", "20", "--set", "run.iterations=20"}), true});
  return all;
}

// Times are printed, not checked: the machine may be busy.
TEST(Stop, random_signals_at_random_moments) {
  const std::vector<Campaign> all = campaign();
  const bool is_long = std::getenv("WEIR_LONG_TESTS") != nullptr;
  const std::size_t rounds = is_long ? 200 : 6;
  const char* const seed = std::getenv("WEIR_STOP_SEED");
  std::mt19937 random(seed != nullptr ? static_cast<unsigned>(std::atoi(seed)) : 1U);
  const auto within = [&](int low, int high) { return std::uniform_int_distribution<int>(low, high)(random); };
  const auto any_signal = [&] { return std::array{SIGINT, SIGTERM, SIGHUP}[static_cast<std::size_t>(within(0, 2))]; };
  std::map<std::string, std::vector<double>> times;
  for (std::size_t round = 0; round < rounds; ++round) {
    // The short version takes those without ranks, which start quickly.
    const std::size_t which = is_long ? round % all.size() : static_cast<std::size_t>(within(0, 12));
    const Campaign& each = all[which];
    StoppedRun run(each.command);
    const int wait_ms = within(0, is_long ? 2500 : 300), gap_ms = within(0, 1000);
    for (int i = 0; i < wait_ms && !has_ended(run.process()); ++i) ::usleep(1000);
    const bool was_over = has_ended(run.process());
    const int first = any_signal(), second = any_signal();
    const bool is_twice = within(0, 2) == 0;
    std::int64_t sent_ns = now_ns();
    run.send(first);
    bool has_sent_twice = false;
    if (is_twice) {
      for (int i = 0; i < gap_ms && !has_ended(run.process()); ++i) ::usleep(1000);
      has_sent_twice = !has_ended(run.process());
      if (has_sent_twice) sent_ns = now_ns();
      run.send(second);
    }
    const int code = run.end();
    const double seconds = static_cast<double>(now_ns() - sent_ns) * 1e-9;
    const std::string what = each.name + ": " + ::strsignal(first) + " after " + std::to_string(wait_ms) + " ms" +
                             (has_sent_twice ? std::string(", then ") + ::strsignal(second) : "") + "\n" + run.err();
    // A signal that comes before there is a handler, or a second one for a program of the user, counts as it is. A
    // daemon that is asked to end ends well.
    const bool is_right = code == 128 + first || (has_sent_twice && code == 128 + second) ||
                          (code == 0 && (was_over || each.name == "sched start"));
    EXPECT_TRUE(is_right) << "exit code " << code << ", " << what;
    run.expect_nothing_left(what);
    if (!was_over)
      times[std::string(has_sent_twice ? "after a second signal" : "after one signal") +
            (each.has_ranks ? ", ranks" : "")]
          .push_back(seconds);
  }
  for (auto& [kind, values] : times) {
    std::sort(values.begin(), values.end());
    std::printf("%-30s %4zu ended: median %.2f s, 95 %% %.2f s, longest %.2f s\n", kind.c_str(), values.size(),
                values[values.size() / 2], values[values.size() * 95 / 100], values.back());
  }
}

}  // namespace
}  // namespace weir::testing
