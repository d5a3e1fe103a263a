#include "cli/children.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "base/clock.h"
#include "base/error.h"
#include "base/units.h"
#include "cli/descriptor.h"
#include "cli/private_folder.h"
#include "cli/process.h"

extern char** environ;

namespace weir::cli {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMostHeard = 16 * 1024;     // of what a child says on stderr: its end, where the reason is
constexpr std::int64_t kGraceNs = 3'000'000'000;  // between asking a child to end and ending it
constexpr int kPollMs = 5;

std::vector<char*> pointers_to(std::vector<std::string>& words) {
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  return pointers;
}

std::vector<std::string> environment_with(const Variables& variables) {
  std::vector<std::string> lines;
  for (char** line = environ; *line != nullptr; ++line) {
    const std::string_view text(*line);
    const bool is_replaced = std::any_of(variables.begin(), variables.end(), [&](const auto& variable) {
      return text.starts_with(variable.first) && text.substr(variable.first.size()).starts_with('=');
    });
    if (!is_replaced) lines.emplace_back(text);
  }
  for (const auto& [name, value] : variables) lines.push_back(name + "=" + value);
  return lines;
}

// What a child says on stderr; only the end of a long speech is kept.
class Ear {
 public:
  explicit Ear(int descriptor) : from_(descriptor) { ::fcntl(descriptor, F_SETFL, O_NONBLOCK); }

  // Waits up to kPollMs for something to hear.
  void listen() {
    pollfd wanted{from_.get(), POLLIN, 0};  // -1 once there is nothing more: then this only waits
    ::poll(&wanted, 1, kPollMs);
    drain();
  }
  void drain() {
    std::array<char, 4096> part;
    while (from_.get() >= 0) {
      const ssize_t count = ::read(from_.get(), part.data(), part.size());
      if (count < 0 && (errno == EAGAIN || errno == EINTR)) return;
      if (count <= 0) return from_.close();
      heard_.append(part.data(), static_cast<std::size_t>(count));
      if (heard_.size() > kMostHeard) heard_.erase(0, heard_.size() - kMostHeard);
    }
  }
  const std::string& heard() const { return heard_; }

 private:
  Descriptor from_;
  std::string heard_;
};

// weir: --streams 0: out of range
//       Use 1 to 128.
// and anything that drivers or sanitizers say above it. Lines of the hint are joined.
void take_message(const std::string& heard, ChildOutcome& outcome) {
  constexpr std::string_view kMark = "weir: ";
  std::size_t begin = heard.rfind("\n" + std::string(kMark));
  begin = begin == std::string::npos ? (heard.starts_with(kMark) ? 0 : begin) : begin + 1;
  if (begin == std::string::npos) {
    // Not in our form: its last line is the best that there is.
    const std::size_t last = heard.find_last_not_of("\n ");
    if (last == std::string::npos) return;
    const std::size_t line = heard.rfind('\n', last);
    outcome.message = heard.substr(line == std::string::npos ? 0 : line + 1, last - (line + 1) + 1);
    return;
  }
  std::size_t end = std::min(heard.find('\n', begin), heard.size());
  outcome.message = heard.substr(begin + kMark.size(), end - begin - kMark.size());
  while (end + 1 < heard.size() && heard.compare(end + 1, 6, "      ") == 0) {
    const std::size_t from = end + 7;
    end = std::min(heard.find('\n', from), heard.size());
    if (!outcome.hint.empty()) outcome.hint += ' ';
    outcome.hint += heard.substr(from, end - from);
  }
}

// Waits for the child and returns its status. Ends it with its group where we are interrupted or its time is up.
int await(pid_t child, const ChildRequest& request, Ear& ear, ChildEnd& end) {
  const std::atomic<bool>& is_interrupted = catch_interrupts();
  const std::int64_t begun = now_ns();
  std::int64_t asked = 0;  // when it was told to end
  for (;;) {
    int status = 0;
    const pid_t ended = ::waitpid(child, &status, WNOHANG);
    if (ended == child) {
      if (asked != 0) ::kill(-child, SIGKILL);  // what it had started and left behind
      ear.drain();
      return status;
    }
    if (ended < 0 && errno != EINTR) fail("lost sight of a child process");
    const std::int64_t now = now_ns();
    if (asked == 0 && is_interrupted.load(std::memory_order_relaxed)) end = ChildEnd::interrupted;
    if (asked == 0 && end == ChildEnd::done && now - begun > request.limit_ns) end = ChildEnd::timed_out;
    if (asked == 0 && end != ChildEnd::done) {
      ::kill(-child, SIGTERM);
      asked = now;
    }
    if (asked != 0 && now - asked > kGraceNs) ::kill(-child, SIGKILL);
    ear.listen();
  }
}

void read_document(const fs::path& file, ChildOutcome& outcome) {
  try {
    outcome.document = read_json(file);
  } catch (const Error& error) {
    outcome.end = ChildEnd::failed;
    outcome.message = fmt::format("its document cannot be read: {}", error.what());
  }
}

}  // namespace

fs::path own_binary() {
  std::error_code status;
  const fs::path path = fs::read_symlink("/proc/self/exe", status);
  if (status)
    fail(fmt::format("/proc/self/exe: {}", status.message()), "Starting other processes needs a mounted /proc.");
  return path;
}

std::optional<fs::path> own_library(const char* file) {
  const fs::path folder = own_binary().parent_path();
  std::error_code ignored;
  for (const fs::path& candidate : {folder / file, folder.parent_path() / "lib" / "weir" / file})
    if (fs::exists(candidate, ignored)) return candidate;
  return std::nullopt;
}

pid_t start_program(const std::vector<std::string>& command, const StartOptions& options) {
  // All that allocates comes before the fork: another thread may hold the allocator's lock.
  std::vector<std::string> words = command, lines = environment_with(options.variables);
  const std::vector<char*> arguments = pointers_to(words), environment = pointers_to(lines);
  const pid_t parent = ::getpid();
  int report[2] = {-1, -1};  // closed by a successful execution
  if (options.exec_error != nullptr && ::pipe2(report, O_CLOEXEC) != 0)
    fail("cannot make a pipe", "Look at the limits of this user: ulimit -n.");
  Descriptor from_child(report[0]), to_parent(report[1]);
  std::fflush(nullptr);
  const pid_t child = ::fork();
  if (child < 0) fail("cannot start another process", "Look at the limits of this user: ulimit -u.");
  if (child == 0) {
    if (!options.shares_terminal) ::setpgid(0, 0);
    ::prctl(PR_SET_PDEATHSIG, options.death_signal);
    if (::getppid() != parent) ::_exit(kNotExecuted);  // we were ended in between
    if (!options.shares_terminal) {
      const int nothing = ::open("/dev/null", O_RDONLY);
      if (nothing >= 0) ::dup2(nothing, STDIN_FILENO);
    }
    if (options.out >= 0) ::dup2(options.out, STDOUT_FILENO);
    if (options.err >= 0) ::dup2(options.err, STDERR_FILENO);
    if (options.mask != nullptr) ::pthread_sigmask(SIG_SETMASK, options.mask, nullptr);
    ::execvpe(arguments[0], arguments.data(), environment.data());
    const int reason = errno;
    if (report[1] >= 0 && ::write(report[1], &reason, sizeof(reason)) < 0) ::_exit(kNotExecuted);
    ::_exit(kNotExecuted);
  }
  if (!options.shares_terminal) ::setpgid(child, child);  // whoever comes first: signals need the group
  if (options.exec_error != nullptr) {
    to_parent.close();
    *options.exec_error = 0;
    while (::read(from_child.get(), options.exec_error, sizeof(int)) < 0 && errno == EINTR) {
    }
  }
  return child;
}

ChildOutcome run_child(const ChildRequest& request) {
  const PrivateFolder folder;
  const fs::path file = folder.path() / "document.json";
  std::vector<std::string> command = {request.program.empty() ? own_binary().string() : request.program};
  command.insert(command.end(), request.arguments.begin(), request.arguments.end());
  command.insert(command.end(), {"--quiet", request.output_flag, file.string()});

  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) fail("cannot make a pipe", "Look at the limits of this user: ulimit -n.");
  Ear ear(ends[0]);
  Descriptor to_ear(ends[1]), silence(::open("/dev/null", O_WRONLY | O_CLOEXEC));
  ChildOutcome outcome;
  outcome.end = ChildEnd::done;
  const std::int64_t begun = now_ns();
  const pid_t child = start_program(command, {request.variables, SIGKILL, silence.get(), to_ear.get()});
  to_ear.close();
  const int status = await(child, request, ear, outcome.end);
  outcome.wall_ns = now_ns() - begun;
  outcome.code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  if (outcome.end == ChildEnd::timed_out) {
    outcome.message =
        fmt::format("it took longer than {} and was ended", format_duration(static_cast<double>(request.limit_ns)));
    return outcome;
  }
  if (outcome.end == ChildEnd::done && outcome.code == kExitInterrupted) outcome.end = ChildEnd::interrupted;
  if (outcome.end == ChildEnd::interrupted) {
    outcome.message = "it was interrupted";
    return outcome;
  }
  if (outcome.code == 0) {
    read_document(file, outcome);
    return outcome;
  }
  outcome.end = ChildEnd::failed;
  take_message(ear.heard(), outcome);
  if (!outcome.message.empty()) return outcome;
  outcome.message = outcome.code > 128 ? fmt::format("it was ended by signal {}", outcome.code - 128)
                                       : fmt::format("it ended with status {}", outcome.code);
  if (outcome.code == 128 + SIGKILL) outcome.hint = "Was it killed, or is the machine out of memory (dmesg)?";
  return outcome;
}

std::optional<Json> child_document(const ChildRequest& request) {
  ChildOutcome outcome = run_child(request);
  if (outcome.end == ChildEnd::interrupted) return std::nullopt;
  if (outcome.end == ChildEnd::done) return std::move(outcome.document);
  // What the child rejects was the user's: our own checks came first, so it is rare, but it stays bad input.
  if (outcome.code == static_cast<int>(Fault::input)) reject(outcome.message, outcome.hint);
  fail(fmt::format("a child process failed: {}", outcome.message), outcome.hint);
}

void QueueSetting::apply(int queues, ChildRequest& request) const {
  if (variable.empty()) {
    request.arguments.insert(request.arguments.end(), {"--hw-queues", std::to_string(queues)});
  } else {
    request.variables.emplace_back(variable, std::to_string(queues));
  }
}

std::string QueueSetting::text(int queues) const {
  return variable.empty() ? fmt::format("--hw-queues {}", queues) : fmt::format("{}={}", variable, queues);
}

std::string child_device(const DeviceInfo& info, const std::string& asked) {
  return info.is_virtual ? asked : info.name;
}

QueueSetting queue_setting(const DeviceInfo& info) {
  if (info.most_hardware_queues > 0) return {info.queue_variable, info.most_hardware_queues};
  reject(fmt::format("--device {}: its number of hardware queues cannot be chosen", info.name),
         "Use a GPU, cpu or sim.");
}

}  // namespace weir::cli
