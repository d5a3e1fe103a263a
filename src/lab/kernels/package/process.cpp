#include "lab/kernels/package/process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/clock.h"
#include "base/plain_text.h"

namespace weir::package {
namespace {

constexpr int kPeriod_ms = 100;  // of asking whether we are to stop

// A pipe whose ends are beyond the standard descriptors, which we may have been started without.
struct Pipe {
  int read = -1, write = -1;
};
Pipe make_pipe(const std::string& program) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) throw StartError(fmt::format("{}: {}", program, std::strerror(errno)), false);
  for (int& end : ends) {
    if (end > 2) continue;
    const int moved = ::fcntl(end, F_DUPFD_CLOEXEC, 3);
    ::close(end);
    end = moved;
  }
  return {ends[0], ends[1]};
}

void close_end(int& descriptor) {
  if (descriptor >= 0) ::close(descriptor);
  descriptor = -1;
}

void limit(int what, std::optional<std::uint64_t> value) {
  if (!value) return;
  rlimit wanted{*value, *value};
  rlimit now{};
  if (::getrlimit(static_cast<__rlimit_resource>(what), &now) == 0 && now.rlim_max != RLIM_INFINITY)
    wanted = {std::min<rlim_t>(*value, now.rlim_max), now.rlim_max};
  ::setrlimit(static_cast<__rlimit_resource>(what), &wanted);
}

// Writing to a child that has gone must not kill us, and a handler for the whole process is not ours to set.
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
  const std::size_t first = std::min(text.size(), most_first_ - first_.size());
  first_ += text.substr(0, first);
  text.remove_prefix(first);
  if (text.size() > kLastBytes) {
    dropped_ += last_.size() + text.size() - kLastBytes;
    last_ = text.substr(text.size() - kLastBytes);
    return;
  }
  last_ += text;
  // Cut now and then, so that many short pieces do not move the whole each time.
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
  close_end(input_);
  end_group();
  close_end(answers_);
  close_end(words_);
  close_end(death_);
}

void Process::start() {
  const std::string& program = options_.command.at(0);
  std::vector<char*> arguments;
  for (std::string& argument : options_.command) arguments.push_back(argument.data());
  arguments.push_back(nullptr);
  const std::string folder = options_.folder.string();
  const bool talks = options_.is_conversation;

  Pipe in, out, words, trouble;
  const auto close_all = [&] {
    for (Pipe* pipe : {&in, &out, &words, &trouble}) {
      close_end(pipe->read);
      close_end(pipe->write);
    }
  };
  try {
    if (talks) in = make_pipe(program);
    if (talks) out = make_pipe(program);
    words = make_pipe(program);
    trouble = make_pipe(program);
  } catch (...) {
    close_all();
    throw;
  }

  const pid_t parent = ::getpid();
  pid_ = ::fork();
  if (pid_ == 0) {
    // Only what is safe after fork() in a program with threads: no memory is taken.
    ::setpgid(0, 0);
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != parent) ::_exit(127);
    sigset_t none;
    ::sigemptyset(&none);
    ::sigprocmask(SIG_SETMASK, &none, nullptr);
    for (const int number : {SIGPIPE, SIGINT, SIGTERM, SIGHUP, SIGQUIT}) ::signal(number, SIG_DFL);
    const int nothing = talks ? -1 : ::open("/dev/null", O_RDONLY | O_CLOEXEC);
    ::dup2(talks ? in.read : nothing, 0);
    ::dup2(talks ? out.write : words.write, 1);
    ::dup2(words.write, 2);
    limit(RLIMIT_CORE, 0);
    limit(RLIMIT_CPU, options_.cpu_s);
    limit(RLIMIT_AS, options_.memory_bytes);
    limit(RLIMIT_FSIZE, options_.file_bytes);
#ifdef SYS_close_range
    ::syscall(SYS_close_range, 3U, ~0U, 4U /* CLOSE_RANGE_CLOEXEC: others' descriptors are none of its business */);
#endif
    int error = 0;
    if (!folder.empty() && ::chdir(folder.c_str()) != 0) {
      error = -errno;
    } else {
      ::execvp(arguments[0], arguments.data());
      error = errno;
    }
    if (::write(trouble.write, &error, sizeof error) < 0) ::_exit(126);
    ::_exit(127);
  }
  const int fork_error = errno;
  if (pid_ > 0) ::setpgid(pid_, pid_);  // also here: whoever comes first
  input_ = std::exchange(in.write, -1);
  answers_ = std::exchange(out.read, -1);
  words_ = std::exchange(words.read, -1);
  int reported = std::exchange(trouble.read, -1);
  close_all();
  int error = 0;
  ssize_t got = 0;
  if (pid_ > 0) {
    do got = ::read(reported, &error, sizeof error);
    while (got < 0 && errno == EINTR);
  }
  close_end(reported);
  if (pid_ < 0 || got == sizeof error) {
    if (pid_ > 0) ::waitpid(pid_, nullptr, 0);
    const bool is_folder = error < 0;
    const int code = pid_ < 0 ? fork_error : std::abs(error);
    pid_ = -1;
    for (int* end : {&input_, &answers_, &words_}) close_end(*end);
    throw StartError(fmt::format("cannot start {}: {}", is_folder ? folder : program, std::strerror(code)),
                     code == ENOENT && !is_folder);
  }
  for (const int end : {input_, answers_, words_})
    if (end >= 0) ::fcntl(end, F_SETFL, O_NONBLOCK);
#ifdef SYS_pidfd_open
  death_ = static_cast<int>(::syscall(SYS_pidfd_open, pid_, 0U));  // -1 before Linux 5.3: then we look now and then
#endif
}

bool Process::is_dead() const {
  siginfo_t info{};
  return ::waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid == pid_;
}

void Process::end_group() {
  if (pid_ < 0) return;
  // Before the leader is buried: after that its number may be somebody else's.
  ::kill(-pid_, SIGKILL);
  ::kill(pid_, SIGKILL);
  while (::waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
  }
  pid_ = -1;
}

// False: there is nothing now. Closes at the end of the stream.
bool Process::read_some(int& descriptor, std::string* into) {
  if (descriptor < 0) return false;
  char buffer[65536];
  const ssize_t got = ::read(descriptor, buffer, sizeof buffer);
  if (got > 0) {
    const std::string_view text(buffer, static_cast<std::size_t>(got));
    if (into != nullptr) {
      *into += text;
    } else {
      output_.add(text);
    }
    return true;
  }
  if (got == 0 || (errno != EAGAIN && errno != EINTR)) close_end(descriptor);
  return false;
}

Process::Answer Process::ask(std::string_view text, double limit_s, std::size_t longest, std::string& line) {
  const auto take_line = [&](std::size_t end) {
    line = pending_.substr(0, end);
    pending_.erase(0, std::min(end + 1, pending_.size()));
  };
  while (read_some(answers_, &pending_) && pending_.size() <= longest) {
  }
  if (!pending_.empty()) {
    take_line(std::min(pending_.find('\n'), pending_.size()));
    return Answer::unasked;
  }
  const NoPipeSignal quiet;
  const std::int64_t end_ns = now_ns() + static_cast<std::int64_t>(limit_s * 1e9);
  std::size_t searched = 0;
  for (;;) {
    const bool is_over = is_dead();  // asked before reading: what it said before its death is in the pipes by now
    while (read_some(words_, nullptr)) {
    }
    while (read_some(answers_, &pending_) && pending_.size() <= longest) {
    }
    if (const std::size_t found = pending_.find('\n', searched); found != std::string::npos) {
      if (found <= longest) {
        take_line(found);
        return Answer::line;
      }
      searched = longest + 1;
    }
    if (pending_.size() > longest) {
      line = pending_.substr(0, longest);
      return Answer::too_long;
    }
    searched = pending_.size();
    if (is_over || answers_ < 0) {
      line = std::exchange(pending_, {});
      return Answer::ended;
    }
    if (!text.empty() && input_ >= 0) {
      const ssize_t sent = ::write(input_, text.data(), text.size());
      if (sent > 0) text.remove_prefix(static_cast<std::size_t>(sent));
      if (sent < 0 && errno != EAGAIN && errno != EINTR) close_end(input_);  // it may still have something to say
    }
    const std::int64_t left_ns = end_ns - now_ns();
    if (left_ns <= 0) return Answer::timed_out;
    if (options_.is_stopped && options_.is_stopped()) return Answer::stopped;
    pollfd polled[] = {
        {answers_, POLLIN, 0}, {words_, POLLIN, 0}, {death_, POLLIN, 0}, {text.empty() ? -1 : input_, POLLOUT, 0}};
    ::poll(polled, std::size(polled), static_cast<int>(std::min<std::int64_t>(kPeriod_ms, left_ns / 1'000'000 + 1)));
  }
}

ProcessEnd Process::finish(double limit_s) {
  close_end(input_);
  const std::int64_t end_ns = now_ns() + static_cast<std::int64_t>(limit_s * 1e9);
  ProcessEnd end;
  for (;;) {
    const bool is_over = is_dead();
    while (read_some(words_, nullptr)) {
    }
    std::string unread;
    while (read_some(answers_, &unread)) unread.clear();
    if (is_over) break;
    const std::int64_t left_ns = end_ns - now_ns();
    if (left_ns <= 0) end.how = ProcessEnd::How::timed_out;
    if (options_.is_stopped && options_.is_stopped()) end.how = ProcessEnd::How::stopped;
    if (end.how != ProcessEnd::How::exited) {
      end_group();
      return end;
    }
    // Where both outputs are closed and there is no descriptor of its death, poll() is a nap.
    const bool is_blind = death_ < 0 && words_ < 0 && answers_ < 0;
    pollfd polled[] = {{answers_, POLLIN, 0}, {words_, POLLIN, 0}, {death_, POLLIN, 0}};
    ::poll(polled, std::size(polled),
           static_cast<int>(std::min<std::int64_t>(is_blind ? 5 : kPeriod_ms, left_ns / 1'000'000 + 1)));
  }
  siginfo_t info{};
  ::waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOHANG | WNOWAIT);
  if (info.si_code == CLD_EXITED) {
    end.value = info.si_status;
  } else {
    end.how = ProcessEnd::How::signalled;
    end.value = info.si_status;
  }
  end_group();
  return end;
}

}  // namespace weir::package
