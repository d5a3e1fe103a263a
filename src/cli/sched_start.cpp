// weir sched start: starts this user's daemon. Returns when the daemon answers, or reports why it did not start.
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <filesystem>

#include "base/console.h"
#include "base/descriptor.h"
#include "base/error.h"
#include "base/file.h"
#include "base/vendor_library.h"
#include "cli/flag_values.h"
#include "cli/list.h"
#include "cli/process.h"
#include "cli/sched_flags.h"
#include "report/text/documents.h"
#include "report/text/sections.h"
#include "submit/sched/mechanism/list.h"
#include "submit/sched/server.h"

namespace weir::cli {
namespace {

// A daemon cannot take turns as short as policies can, because it must be woken up for each.
constexpr std::int64_t kMinSliceNs = 100'000, kMinAgeingNs = 1'000'000;
constexpr int kMaxInFlight = 1024;

struct SchedStartFlags {
  SocketFlag socket;
  std::string policy = "priority", mechanism = "gate", mps = "own", slice = "2ms", ageing = "100ms", in_flight = "auto",
              log;
  bool is_foreground = false, is_quiet = false;

  void add_to(CommandSyntax syntax) {
    std::string names;
    for (const scheduler::Policy& policy : scheduler::policies())
      names += (names.empty() ? "" : ", ") + std::string(policy.name);
    syntax.add("--policy NAME", policy, "who comes first: " + names);
    std::string mechanisms;
    for (const scheduler::Mechanism& each : scheduler::mechanisms())
      mechanisms += (mechanisms.empty() ? "" : ", ") + std::string(each.name);
    syntax.add("--mechanism NAME", mechanism, "how a client that has to wait is kept from the device: " + mechanisms);
    syntax.add("--mps NAME", mps,
               "NVIDIA's MPS, for mechanisms over it: own (private, ends with the daemon), theirs (one that runs "
               "already), none");
    syntax.add("--slice DURATION", slice,
               "how long a turn lasts, where turns are taken, and how long a client runs before it is suspended again");
    syntax.add("--ageing DURATION", ageing, "a client that waited this long comes first for one slice; 0: never");
    syntax.add("--in-flight N", in_flight,
               "commands that a program may have on the device while others are there; auto: by how long they take");
    socket.add_to(syntax);
    syntax.add("--log PATH", log, "append later errors to this file");
    syntax.add("--foreground", is_foreground, "stay in this terminal until Ctrl-C");
    syntax.add("--quiet,-q", is_quiet, "print nothing but errors");
  }
};

// Looks for a name in a list; rejects with the flag.
template <class Find>
auto* named_by(const char* flag, const std::string& name, Find find) {
  try {
    return &find(name);
  } catch (const Error& error) {
    reject(fmt::format("{} {}: {}", flag, name, error.what()), error.hint);
  }
}

// Where CUDA looks for an MPS, and MPS for the folder of its logs, unless variables say otherwise.
constexpr const char* kDefaultPipeFolder = "/tmp/nvidia-mps";
constexpr const char* kDefaultLogFolder = "/var/log/nvidia-mps";

scheduler::MpsSetup mps_setup_of(const SchedStartFlags& flags) {
  scheduler::MpsSetup setup;
  if (flags.mps == "theirs")
    setup.choice = scheduler::MpsChoice::theirs;
  else if (flags.mps == "none")
    setup.choice = scheduler::MpsChoice::none;
  else if (flags.mps != "own")
    reject(fmt::format("--mps {}: not a choice", flags.mps),
           "Use own (started by the daemon, and ended with it), theirs (one that somebody else runs) or none.");
  const std::string pipe = environment_variable(scheduler::kMpsPipeVariable).value_or(kDefaultPipeFolder);
  if (scheduler::is_mps_live(pipe)) {
    setup.other_pipe = pipe;
    setup.other_log = environment_variable(scheduler::kMpsLogVariable).value_or(kDefaultLogFolder);
  }
  if (const auto program = find_program(scheduler::kMpsProgram)) setup.program = program->string();
  // The driver's own file, or its library where that is a stand-in.
  std::error_code ignored;
  if (!std::filesystem::exists("/dev/nvidiactl", ignored) && !VendorLibrary({"libcuda.so.1"}).is_open())
    setup.no_driver = "there is no NVIDIA driver: neither /dev/nvidiactl nor libcuda.so.1";
  return setup;
}

scheduler::ServerOptions server_options_of(const SchedStartFlags& flags) {
  scheduler::ServerOptions options;
  options.socket = flags.socket.path();
  options.policy = named_by("--policy", flags.policy, scheduler::policy_named);
  options.mechanism = named_by("--mechanism", flags.mechanism, scheduler::mechanism_named);
  if (options.mechanism->uses_mps)
    options.mps = mps_setup_of(flags);
  else if (flags.mps != "own" && flags.mps != "none")
    reject(fmt::format("--mps {}: mechanism {} uses no MPS", flags.mps, options.mechanism->name),
           "Leave it out, or use --mechanism auto.");
  options.settings.slice_ns = duration_of("--slice", flags.slice, kMinSliceNs, scheduler::kLongestSliceNs);
  options.settings.ageing_ns =
      flags.ageing == "0" ? 0 : duration_of("--ageing", flags.ageing, kMinAgeingNs, scheduler::kLongestAgeingNs);
  if (flags.in_flight != "auto")
    options.in_flight = static_cast<std::uint32_t>(
        whole_number("--in-flight", flags.in_flight, 1, kMaxInFlight, "not a number of commands", "Or use auto."));
  return options;
}

std::atomic<scheduler::Server*> g_server{nullptr};
static_assert(std::atomic<scheduler::Server*>::is_always_lock_free,
              "a signal handler may only touch lock-free atomics");

void stop_server() noexcept {
  const int kept = errno;
  if (scheduler::Server* const server = g_server.load()) server->stop();
  errno = kept;
}

void serve(scheduler::Server& server) {
  g_server.store(&server);
  on_interrupt(stop_server);
  catch_interrupts();
  server.serve();
  on_interrupt(nullptr);
  g_server.store(nullptr);
}

std::string words_of(const SchedStartFlags& flags, const scheduler::ServerOptions& options) {
  const scheduler::Mechanism& mechanism = *options.mechanism;
  const std::string how = mechanism.open ? fmt::format(", mechanism {}", mechanism.name) : "";
  const std::string other =
      options.mps.other_pipe.empty() || options.mps.choice == scheduler::MpsChoice::theirs
          ? ""
          : fmt::format("\n  Somebody else runs an MPS at {}; --mps theirs would use it", options.mps.other_pipe);
  const std::string notice = mechanism.notice.empty() ? "" : fmt::format("\n  Note: {}", wrapped(mechanism.notice, 8));
  return fmt::format("policy {}, slice {}, ageing {}, {} in flight{}{}{}", options.policy->name, flags.slice,
                     options.settings.ageing_ns == 0 ? "never" : flags.ageing, flags.in_flight, how, other, notice);
}

// What the daemon sends to its starter: "+" when it listens, or else the error as fault, what and hint, separated by
// zero bytes, which no message contains.
constexpr char kListens = '+';

std::string message_of(const Error& error) {
  std::string text(1, error.fault == Fault::input ? '2' : '1');
  text += '\0';
  text += in_terms_of_flags(error);
  text += '\0';
  text += error.hint;
  return text;
}

// Closes everything inherited from the starter and from the terminal.
void cut_ties(int keep, int log) {
  constexpr int kKept = 3;
  // Moved out of the way first: if the starter had closed its standard descriptors, these may have their numbers.
  keep = ::fcntl(keep, F_DUPFD, kKept + 1);
  if (log >= 0) log = ::fcntl(log, F_DUPFD, kKept + 1);
  const int null = open_kernel_file("/dev/null", O_RDWR).release();
  for (const int standard : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) ::dup2(null, standard);
  if (log >= 0) ::dup2(log, STDERR_FILENO);
  ::dup2(keep, kKept);
  if (::close_range(kKept + 1, ~0U, 0) != 0)  // kernels before 5.9
    for (int other = kKept + 1; other < 1024; ++other) ::close(other);
  [[maybe_unused]] const int moved = ::chdir("/");
  ::umask(077);
  std::signal(SIGHUP, SIG_IGN);
  sigset_t none;
  sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
}

[[noreturn]] void run_daemon(const scheduler::ServerOptions& options, int starter, int log) {
  cut_ties(starter, log);
  Descriptor to_starter(3);
  int code = 0;
  try {
    scheduler::Server server(options);
    write_all(to_starter.get(), std::string(1, kListens));
    to_starter.reset();
    serve(server);
  } catch (const Error& error) {
    write_all(to_starter.get(), message_of(error));
    print_err("weir: {}\n", in_terms_of_flags(error));
    code = static_cast<int>(error.fault);
  } catch (const std::exception& error) {
    write_all(to_starter.get(), message_of(Error(Fault::run, error.what())));
    print_err("weir: {}\n", error.what());
    code = 1;
  }
  // Not exit(): what runs there is the starter's.
  ::_exit(code);
}

// Forks twice, so that the daemon belongs to no session and nobody has to wait for it.
void start_daemon(const scheduler::ServerOptions& options, const std::string& log_path) {
  const Descriptor log = log_path.empty() ? Descriptor() : open_to_append(log_path);
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) fail(fmt::format("cannot make a pipe: {}", std::strerror(errno)));
  const Descriptor read_end(ends[0]);
  Descriptor write_end(ends[1]);
  flush_out();  // or both processes would print it
  const pid_t child = ::fork();
  if (child < 0) fail(fmt::format("cannot start a process: {}", std::strerror(errno)));
  if (child == 0) {
    ::setsid();
    const pid_t daemon = ::fork();
    if (daemon == 0) run_daemon(options, write_end.get(), log.get());
    ::_exit(daemon < 0 ? 1 : 0);
  }
  write_end.reset();
  std::string message;
  read_all(read_end.get(), message);
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (message == std::string_view(&kListens, 1)) return;
  if (message.empty()) fail("the daemon ended before it listened", "Use --foreground to see what it says.");
  const std::size_t what = message.find('\0') + 1;
  const std::size_t hint = message.find('\0', what) + 1;
  throw Error(message[0] == '2' ? Fault::input : Fault::run, message.substr(what, hint - 1 - what),
              message.substr(hint));
}

int execute_sched_start(const SchedStartFlags& flags) {
  const scheduler::ServerOptions options = server_options_of(flags);
  const auto say = [&](const char* how) {
    if (!flags.is_quiet) print_out("{} at {}\n  {}\n", how, options.socket.string(), words_of(flags, options));
    flush_out();
  };
  if (flags.is_foreground) {
    if (!flags.log.empty()) reject("--log: is for a daemon in the background", "Redirect standard error instead.");
    scheduler::Server server(options);
    say("Listening");
    serve(server);
    return 0;
  }
  start_daemon(options, flags.log);
  const Json status = scheduler::ask_status(options.socket);
  say("Started: a scheduler");
  for (const std::string& line : mechanism_lines(status))
    if (!flags.is_quiet) print_out("  {}\n", line);
  if (!flags.is_quiet) print_out("  Run programs under it: weir sched run --priority high -- ./program\n");
  return 0;
}

}  // namespace

CliCommand sched_start() { return command("start", "start this user's daemon", execute_sched_start); }

}  // namespace weir::cli
