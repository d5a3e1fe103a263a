#include "base/process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <sstream>
#include <utility>

#include "base/clock.h"
#include "base/console.h"
#include "base/file.h"
#include "base/plain_text.h"
#include "base/stop.h"

namespace weir {
namespace {

constexpr int kPeriod_ms = 100;                         // how often to check whether to stop
constexpr std::int64_t kSecondGraceNs = 1'200'000'000;  // Weir itself ends within a second of a second signal

int wait_of(std::int64_t left_ns) {
  return static_cast<int>(std::clamp<std::int64_t>(left_ns / 1'000'000 + 1, 0, kPeriod_ms));
}

// A pipe with ends above the standard descriptors, which may be closed in this process.
struct Pipe {
  Descriptor read, write;

  void open(const std::string& program) {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0)
      throw StartError(fmt::format("{}: {}", program, std::strerror(errno)), errno, false,
                       "Look at the limits of this user: ulimit -n.");
    for (int& end : ends) {
      if (end > 2) continue;
      const int moved = ::fcntl(end, F_DUPFD_CLOEXEC, 3);
      ::close(end);
      end = moved;
    }
    read.reset(ends[0]);
    write.reset(ends[1]);
  }
};

std::vector<char*> pointers_to(std::vector<std::string>& words) {
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  return pointers;
}

std::vector<std::string> environment_with(const Variables& variables, const std::vector<std::string>& absent) {
  std::vector<std::string> lines;
  for (char** line = environ; *line != nullptr; ++line) {
    const std::string_view text(*line), name = text.substr(0, text.find('='));
    const bool is_replaced =
        std::any_of(variables.begin(), variables.end(), [&](const auto& variable) { return variable.first == name; });
    if (!is_replaced && std::find(absent.begin(), absent.end(), name) == absent.end()) lines.emplace_back(text);
  }
  for (const auto& [name, value] : variables) lines.push_back(name + "=" + value);
  return lines;
}

// Searches PATH as execvp() does, but only its absolute folders: an empty one, "." and the like are the folder that
// somebody works in, or a kernel package, and what lies there must not become a compiler or git.
std::string program_path(const std::string& name) {
  if (name.find('/') != std::string::npos) return name;
  const char* const variable = std::getenv("PATH");
  const std::string_view path = variable == nullptr ? "/usr/bin:/bin" : variable;
  for (std::size_t begin = 0; begin <= path.size();) {
    const std::size_t end = std::min(path.find(':', begin), path.size());
    const std::string file = fmt::format("{}/{}", path.substr(begin, end - begin), name);
    struct stat facts{};
    if (path.substr(begin, end - begin).starts_with('/') && ::stat(file.c_str(), &facts) == 0 &&
        S_ISREG(facts.st_mode) && ::access(file.c_str(), X_OK) == 0)
      return file;
    begin = end + 1;
  }
  throw StartError(fmt::format("cannot start {}: {}", name, std::strerror(ENOENT)), ENOENT, true);
}

void limit(int what, std::optional<std::uint64_t> value) {
  if (!value) return;
  rlimit wanted{*value, *value};
  rlimit now{};
  if (::getrlimit(static_cast<__rlimit_resource>(what), &now) == 0 && now.rlim_max != RLIM_INFINITY)
    wanted = {std::min<rlim_t>(*value, now.rlim_max), now.rlim_max};
  ::setrlimit(static_cast<__rlimit_resource>(what), &wanted);
}

// Writing to a child that has ended must not kill this process, and a handler for the whole process is not an option.
class NoPipeSignal {
 public:
  NoPipeSignal() {
    sigset_t pending;
    ::sigpending(&pending);
    was_pending_ = ::sigismember(&pending, SIGPIPE) != 0;
    ::sigemptyset(&set_);
    ::sigaddset(&set_, SIGPIPE);
    ::pthread_sigmask(SIG_BLOCK, &set_, &before_);
  }
  ~NoPipeSignal() {
    const timespec none{};
    if (!was_pending_) ::sigtimedwait(&set_, nullptr, &none);
    ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }
  NoPipeSignal(const NoPipeSignal&) = delete;
  NoPipeSignal& operator=(const NoPipeSignal&) = delete;

 private:
  sigset_t set_{}, before_{};
  bool was_pending_ = false;
};

}  // namespace

void KeptOutput::add(std::string_view text) {
  const std::size_t first = std::min(text.size(), max_first_ - first_.size());
  first_ += text.substr(0, first);
  text.remove_prefix(first);
  if (text.size() > kLastBytes) {
    dropped_ += last_.size() + text.size() - kLastBytes;
    last_ = text.substr(text.size() - kLastBytes);
    return;
  }
  last_ += text;
  // Trimmed only now and then, so that many short pieces do not move the whole text each time.
  if (last_.size() > 2 * kLastBytes) {
    dropped_ += last_.size() - kLastBytes;
    last_.erase(0, last_.size() - kLastBytes);
  }
}

std::string KeptOutput::text() const {
  const std::size_t left_out = last_.size() > kLastBytes ? last_.size() - kLastBytes : 0;
  const std::uint64_t dropped = dropped_ + left_out;
  std::string text = first_;
  if (dropped > 0) text += fmt::format("\n[{} bytes left out]\n", dropped);
  text += std::string_view(last_).substr(left_out);
  text = without_controls(text, '?', "\n\t");
  while (!text.empty() && text.back() == '\n') text.pop_back();
  return text;
}

std::string ProcessEnd::words(double limit_s) const {
  switch (how) {
    case How::exited:
      return fmt::format("ended with status {}", value);
    case How::signalled:
      return fmt::format("was killed by signal {} ({})", value, ::strsignal(value));
    case How::timed_out:
      return fmt::format("took longer than {:g} s and was stopped", limit_s);
    case How::stopped:
      break;
  }
  return "was stopped";
}

Process::Process(ProcessOptions options) : options_(std::move(options)), output_(options_.first_bytes) { start(); }

Process::~Process() {
  input_.reset();
  if (options_.shares_terminal == nullptr) end();
}

void Process::start() {
  using Output = ProcessOptions::Output;
  // Everything that allocates comes before the fork, because another thread may hold the allocator's lock.
  const std::string& program = options_.command.at(0);
  const std::string path = program_path(program);
  std::vector<std::string> lines = environment_with(options_.variables, options_.absent);
  const std::vector<char*> arguments = pointers_to(options_.command), environment = pointers_to(lines);
  const std::string folder = options_.folder.string();
  const bool is_ours = options_.out == Output::ours, shares = options_.shares_terminal != nullptr;

  Pipe in, out, words, trouble;  // a successful exec closes the last one
  if (options_.has_input) in.open(program);
  if (options_.out == Output::read) out.open(program);
  if (!is_ours && options_.err_file < 0) words.open(program);
  trouble.open(program);
  const int err = is_ours ? STDERR_FILENO : options_.err_file >= 0 ? options_.err_file : words.write.get();
  if (is_ours) flush_out();  // our own output comes first

  const pid_t parent = ::getpid();
  pid_ = ::fork();
  if (pid_ == 0) {
    // Only async-signal-safe calls after fork() in a program with threads: no allocation.
    if (!shares) ::setpgid(0, 0);
    ::prctl(PR_SET_PDEATHSIG, options_.death_signal);
    if (::getppid() != parent) ::_exit(127);
    if (shares) {
      ::sigprocmask(SIG_SETMASK, options_.shares_terminal, nullptr);
      restore_signals();
    } else {
      sigset_t none;
      ::sigemptyset(&none);
      ::sigprocmask(SIG_SETMASK, &none, nullptr);
      // Not SIGHUP: where it is ignored (nohup), the user wants that for children, too.
      for (const int number : {SIGPIPE, SIGXFSZ, SIGINT, SIGTERM, SIGQUIT}) ::signal(number, SIG_DFL);
      const int nothing = ::open("/dev/null", O_RDWR);  // exec() must not close it: it may be one of the three itself
      ::dup2(options_.has_input ? in.read.get() : nothing, STDIN_FILENO);
      if (!is_ours)
        ::dup2(options_.out == Output::read      ? out.write.get()
               : options_.out == Output::dropped ? nothing
                                                 : err,
               STDOUT_FILENO);
      if (!is_ours) ::dup2(err, STDERR_FILENO);
    }
    limit(RLIMIT_CORE, options_.core_bytes);
    limit(RLIMIT_CPU, options_.cpu_s);
    limit(RLIMIT_AS, options_.memory_bytes);
    limit(RLIMIT_FSIZE, options_.file_bytes);
#ifdef SYS_close_range
    // CLOSE_RANGE_CLOEXEC: the child inherits no other descriptors.
    if (!shares) ::syscall(SYS_close_range, 3U, ~0U, 4U);
#endif
    int error = 0;
    if (!folder.empty() && ::chdir(folder.c_str()) != 0) {
      error = -errno;
    } else {
      ::execvpe(path.c_str(), arguments.data(), environment.data());
      error = errno;
    }
    if (::write(trouble.write.get(), &error, sizeof error) < 0) ::_exit(126);
    ::_exit(127);
  }
  int error = 0;
  if (pid_ < 0) {
    error = errno;
    throw StartError(fmt::format("cannot start {}: {}", program, std::strerror(error)), error, false,
                     "Look at the limits of this user: ulimit -u.");
  }
  if (!shares) remember_group(pid_);
  if (!shares) ::setpgid(pid_, pid_);  // parent and child both call it, because either may run first
  trouble.write.reset();
  ssize_t got = 0;
  do got = ::read(trouble.read.get(), &error, sizeof error);
  while (got < 0 && errno == EINTR);
  if (got == sizeof error) {
    if (!shares) forget_group(pid_);
    ::waitpid(pid_, nullptr, 0);
    pid_ = -1;
    const bool is_folder = error < 0;
    const int code = std::abs(error);
    throw StartError(fmt::format("cannot start {}: {}", is_folder ? folder : program, std::strerror(code)), code,
                     code == ENOENT && !is_folder);
  }
  input_ = std::move(in.write);
  answers_ = std::move(out.read);
  words_ = std::move(words.read);
  for (const Descriptor* end : {&input_, &answers_, &words_})
    if (*end) ::fcntl(end->get(), F_SETFL, O_NONBLOCK);
#ifdef SYS_pidfd_open
  // -1 before Linux 5.3; then the end is polled.
  death_.reset(static_cast<int>(::syscall(SYS_pidfd_open, pid_, 0U)));
#endif
}

bool Process::is_dead() const {
  siginfo_t info{};
  if (::waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOHANG | WNOWAIT) != 0) {
    if (errno == EINTR) return false;
    fail(fmt::format("lost sight of {}", options_.command[0]));
  }
  return info.si_pid == pid_;
}

void Process::signal(int number) const {
  if (pid_ > 0) ::kill(pid_, number);
}

ProcessEnd Process::end() {
  if (pid_ < 0) return {};
  // Before waitpid(): afterwards the group's number may belong to another process.
  if (options_.shares_terminal == nullptr) {
    ::kill(-pid_, SIGKILL);
    ::kill(pid_, SIGKILL);
    forget_group(pid_);
  }
  int status = 0;
  while (::waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
  }
  pid_ = -1;
  if (WIFEXITED(status)) return {ProcessEnd::How::exited, WEXITSTATUS(status)};
  return {ProcessEnd::How::signalled, WTERMSIG(status)};
}

// False: no data at present. Closes the descriptor at the end of the stream.
bool Process::read_some(Descriptor& from, std::string* into) {
  if (!from) return false;
  char buffer[65536];
  const ssize_t got = ::read(from.get(), buffer, sizeof buffer);
  if (got > 0) {
    const std::string_view text(buffer, static_cast<std::size_t>(got));
    if (into != nullptr) {
      *into += text;
    } else {
      output_.add(text);
    }
    return true;
  }
  if (got == 0 || (errno != EAGAIN && errno != EINTR)) from.reset();
  return false;
}

bool Process::listen(int max_ms, std::size_t max_unread, bool is_writing) {
  // With nothing to poll for, poll() only sleeps.
  const bool cannot_poll = !death_ && !words_ && !answers_;
  pollfd polled[] = {{answers_.get(), POLLIN, 0},
                     {words_.get(), POLLIN, 0},
                     {death_.get(), POLLIN, 0},
                     {is_writing ? input_.get() : -1, POLLOUT, 0}};
  ::poll(polled, std::size(polled), std::min(max_ms, cannot_poll ? 5 : !death_ ? kPeriod_ms : max_ms));
  const bool is_over = is_dead();  // checked before reading: output from before its death is already in the pipes
  while (read_some(words_, nullptr)) {
  }
  while (unread_.size() <= max_unread && read_some(answers_, &unread_)) {
  }
  return !is_over || unread_.size() > max_unread;
}

Process::Answer Process::ask(std::string_view text, double limit_s, std::size_t longest, std::string& line) {
  const auto take_line = [&](std::size_t end) {
    line = unread_.substr(0, end);
    unread_.erase(0, std::min(end + 1, unread_.size()));
  };
  listen(0, longest);
  if (!unread_.empty()) {
    take_line(std::min(unread_.find('\n'), unread_.size()));
    return Answer::unexpected;
  }
  const NoPipeSignal quiet;
  const std::int64_t end_ns = now_ns() + static_cast<std::int64_t>(limit_s * 1e9);
  std::size_t searched = 0;
  for (int wait_ms = 0;;) {
    const bool is_over = !listen(wait_ms, longest, !text.empty());
    if (const std::size_t found = unread_.find('\n', searched); found != std::string::npos) {
      if (found <= longest) {
        take_line(found);
        return Answer::line;
      }
      searched = longest + 1;
    }
    if (unread_.size() > longest) {
      line = unread_.substr(0, longest);
      return Answer::too_long;
    }
    searched = unread_.size();
    if (is_over || !answers_) {
      line = std::exchange(unread_, {});
      return Answer::ended;
    }
    if (!text.empty() && input_) {
      const ssize_t sent = ::write(input_.get(), text.data(), text.size());
      if (sent > 0) text.remove_prefix(static_cast<std::size_t>(sent));
      if (sent < 0 && errno != EAGAIN && errno != EINTR) input_.reset();  // it may still have output
    }
    const std::int64_t left_ns = end_ns - now_ns();
    if (left_ns <= 0) return Answer::timed_out;
    if (options_.is_stopped && options_.is_stopped()) return Answer::stopped;
    wait_ms = wait_of(left_ns);
  }
}

ProcessEnd Process::finish(double limit_s) {
  input_.reset();
  const std::int64_t end_ns = now_ns() + static_cast<std::int64_t>(limit_s * 1e9);
  std::int64_t kill_ns = 0;  // 0: it may continue
  bool is_asked_twice = false;
  std::optional<ProcessEnd::How> cut;
  for (int wait_ms = 0; listen(wait_ms);) {
    unread_.clear();
    const std::int64_t now = now_ns();
    if (!cut) {
      if (now >= end_ns) cut = ProcessEnd::How::timed_out;
      if (options_.is_stopped && options_.is_stopped()) cut = ProcessEnd::How::stopped;
      if (cut && options_.grace_s > 0) ::kill(-pid_, SIGTERM);
      kill_ns = now + static_cast<std::int64_t>(options_.grace_s * 1e9);
    }
    if (cut && now >= kill_ns) {
      if (options_.grace_s <= 0 || is_asked_twice) break;
      is_asked_twice = true;  // then Weir does not save any more, but ends its own children
      ::kill(-pid_, SIGTERM);
      kill_ns = now + kSecondGraceNs;
    }
    wait_ms = wait_of((cut ? kill_ns : end_ns) - now);
  }
  ProcessEnd ended = end();
  if (cut) ended.how = *cut;
  return ended;
}

// 1234 (weir (x)) S 1200 ...: the name may contain anything, so fields are counted from the last ')'.
std::optional<ProcessFacts> facts_of(pid_t process, const std::string& proc) {
  const std::string text = read_kernel_file(fmt::format("{}/{}/stat", proc, process), 4096);
  std::string skipped;
  const std::size_t name_end = text.rfind(')');
  if (name_end == std::string::npos) return std::nullopt;
  std::istringstream fields(text.substr(name_end + 1));
  ProcessFacts facts;
  fields >> facts.state >> facts.parent;
  for (int field = 5; field < 14; ++field) fields >> skipped;
  unsigned long long user = 0, system = 0;
  fields >> user >> system;
  facts.cpu_ticks = user + system;
  for (int field = 16; field < 22; ++field) fields >> skipped;
  return fields >> facts.started ? std::optional(facts) : std::nullopt;
}

std::optional<std::string> printed_by(std::vector<std::string> command) {
  ProcessOptions options;
  options.command = std::move(command);
  options.first_bytes = 4096;
  options.core_bytes = 0;
  try {
    Process process(std::move(options));
    if (!process.finish(10).is_success()) return std::nullopt;
    return process.output().text();
  } catch (const StartError&) {
    return std::nullopt;
  }
}

}  // namespace weir
