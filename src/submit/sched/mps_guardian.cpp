#include "submit/sched/mps_guardian.h"

#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <optional>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "base/file.h"
#include "base/plain_text.h"

namespace weir::scheduler {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kMs = 1'000'000;
constexpr std::int64_t kAskNs = 300 * kMs;    // for an answer of the control process
constexpr std::int64_t kQuitNs = 700 * kMs;   // from quit to SIGTERM
constexpr std::int64_t kTermNs = 300 * kMs;   // from SIGTERM to SIGKILL
constexpr std::int64_t kKillNs = 500 * kMs;   // until what was killed is gone
constexpr std::int64_t kStrayNs = 500 * kMs;  // the same two steps for processes of an earlier guardian
constexpr std::int64_t kRetryNs = 250 * kMs;  // from an end to the next start
constexpr std::int64_t kQuickNs = 5'000 * kMs;
constexpr int kMaxQuickEnds = 5;  // in a row, each sooner than kQuickNs after its start
constexpr std::size_t kMaxAnswer = 64 * 1024;
constexpr std::uint64_t kMaxOutput = 16 << 20;  // of the log file, which is emptied then

int pidfd_of(pid_t process) { return static_cast<int>(::syscall(SYS_pidfd_open, process, 0)); }

// Without a pidfd, on kernels before 5.3, by number.
void send_to(const Descriptor& process, pid_t pid, int signal) {
  if (process)
    ::syscall(SYS_pidfd_send_signal, process.get(), signal, nullptr, 0);
  else
    ::kill(pid, signal);
}

struct Stray {
  pid_t pid = 0;
  Descriptor process;
};

bool is_stray(pid_t pid, const std::string& variable) {
  const std::string folder = fmt::format("/proc/{}", pid);
  struct stat facts{};
  if (::stat(folder.c_str(), &facts) != 0 || facts.st_uid != ::geteuid()) return false;
  if (trimmed(read_kernel_file(folder + "/comm", 64), "\n") != kMpsProcessName) return false;
  // NAME=value, each ended by a zero byte; none for one that has ended
  const std::string variables = '\0' + read_kernel_file(folder + "/environ");
  return variables.find('\0' + variable + '\0') != std::string::npos;
}

std::vector<Stray> strays_of(const std::string& pipe_folder) {
  const std::string variable = fmt::format("{}={}", kMpsPipeVariable, pipe_folder);
  std::vector<Stray> strays;
  std::error_code status;
  for (fs::directory_iterator each("/proc", status), end; !status && each != end; each.increment(status)) {
    const auto pid = parse_as<pid_t>(each->path().filename().string());
    if (!pid || *pid <= 1 || !is_stray(*pid, variable)) continue;
    Stray stray{*pid, Descriptor(pidfd_of(*pid))};
    // Asked again: the number may have gone to another process before it was held.
    if (is_stray(*pid, variable)) strays.push_back(std::move(stray));
  }
  return strays;
}

// 587, one id in each line
std::vector<pid_t> ids_in(std::string_view text) {
  std::vector<pid_t> ids;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const auto id = parse_as<pid_t>(trimmed(text.substr(0, end), " \t\r"));
    if (id && *id > 1) ids.push_back(*id);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return ids;
}

bool is_alive(pid_t pid) { return ::kill(pid, 0) == 0 || errno == EPERM; }

// In a process of its own, with one thread. Nothing here may throw past serve().
class Guarding {
 public:
  Guarding(const MpsPlaces& places, int channel, int output, pid_t daemon)
      : places_(places), channel_(channel), output_(output), daemon_pid_(daemon), daemon_(pidfd_of(daemon)) {}

  void serve() {
    clear();
    while (!should_end()) {
      if (control_ <= 0 && !has_given_up_ && now_ns() >= start_ns_) start();
      if (control_ > 0 && !is_ready_ && has_socket()) {
        is_ready_ = true;
        report(MpsEvent::Kind::ready, control_, 0);
      }
      trim_output();
      wait(control_ > 0 && !is_ready_ ? 10 : control_ > 0 || has_given_up_ ? 1000 : 50);
      reap();
    }
    is_ending_ = true;
    if (!is_signalled_) let_clients_finish();
    end_control();
    end_stray_mps(places_.pipe);
    std::error_code ignored;
    fs::remove_all(places_.root, ignored);
  }

 private:
  // Of whoever was killed before. The control process itself removes some of its files, and refuses no old ones, but
  // its socket would look ready.
  void clear() {
    end_stray_mps(places_.pipe);
    std::error_code status;
    for (fs::directory_iterator each(places_.pipe, status), end; !status && each != end; each.increment(status))
      ::unlink(each->path().c_str());
  }

  bool has_socket() const {
    struct stat facts{};
    return ::lstat((places_.pipe + "/control").c_str(), &facts) == 0 && S_ISSOCK(facts.st_mode);
  }

  void start() {
    const pid_t guardian = ::getpid();
    started_ns_ = now_ns();
    is_ready_ = false;
    const pid_t child = ::fork();
    if (child == 0) {
      ::setpgid(0, 0);
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      if (::getppid() != guardian) ::_exit(127);
      become({"-f"}, -1, output_);
    }
    if (child < 0) return note_end(0);
    ::setpgid(child, child);
    control_ = child;
    control_process_.reset(pidfd_of(child));
  }

  // After fork(): executes the control program. Does not return.
  [[noreturn]] void become(const std::vector<const char*>& more, int in, int out) const {
    if (in >= 0) ::dup2(in, STDIN_FILENO);
    ::dup2(out, STDOUT_FILENO);
    ::dup2(out, STDERR_FILENO);
    sigset_t none;
    ::sigemptyset(&none);
    ::sigprocmask(SIG_SETMASK, &none, nullptr);
    const rlimit no_core{0, 0};
    ::setrlimit(RLIMIT_CORE, &no_core);
    std::vector<char*> words = {const_cast<char*>(places_.program.c_str())};
    for (const char* word : more) words.push_back(const_cast<char*>(word));
    words.push_back(nullptr);
    ::syscall(SYS_close_range, 3U, ~0U, 0U);
    ::execv(places_.program.c_str(), words.data());
    ::_exit(127);
  }

  // What the control program prints for a command; none where it does not answer in time.
  std::optional<std::string> answer_to(const std::string& command, std::int64_t limit_ns) {
    int in[2], out[2];
    if (::pipe2(in, O_CLOEXEC) != 0) return std::nullopt;
    const Descriptor in_read(in[0]);
    Descriptor in_write(in[1]);
    if (::pipe2(out, O_CLOEXEC) != 0) return std::nullopt;
    const Descriptor out_read(out[0]);
    Descriptor out_write(out[1]);
    write_all(in_write.get(), command + "\n");  // fits into the pipe
    in_write.reset();
    const pid_t guardian = ::getpid();
    const pid_t asking = ::fork();
    if (asking == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      if (::getppid() != guardian) ::_exit(127);
      become({}, in_read.get(), out_write.get());
    }
    if (asking < 0) return std::nullopt;
    out_write.reset();
    std::string text;
    bool has_ended = false;
    for (const std::int64_t end_ns = now_ns() + limit_ns; !has_ended && text.size() < kMaxAnswer;) {
      pollfd file{out_read.get(), POLLIN, 0};
      const std::int64_t left_ns = end_ns - now_ns();
      if (left_ns <= 0 || ::poll(&file, 1, static_cast<int>(left_ns / kMs) + 1) < 0) break;
      char part[4096];
      const ssize_t got = file.revents != 0 ? ::read(out_read.get(), part, sizeof part) : -1;
      has_ended = file.revents != 0 && got <= 0;
      if (got > 0) text.append(part, static_cast<std::size_t>(got));
    }
    ::kill(asking, SIGKILL);
    ::waitpid(asking, nullptr, 0);
    return has_ended ? std::optional(text) : std::nullopt;
  }

  // None where that is not known: on a busy machine an answer takes its time.
  std::optional<std::vector<pid_t>> clients() {
    const auto servers = answer_to("get_server_list", kAskNs);
    if (!servers) return std::nullopt;
    std::vector<pid_t> all;
    for (const pid_t server : ids_in(*servers)) {
      const auto theirs = answer_to(fmt::format("get_client_list {}", server), kAskNs);
      if (!theirs) return std::nullopt;
      for (const pid_t client : ids_in(*theirs)) all.push_back(client);
    }
    return all;
  }

  // Ending the MPS would end the work of all who are in it, and they have done nothing wrong.
  void let_clients_finish() {
    constexpr int kMostSilent = 60;
    bool has_reported = false;
    for (int silent = 0; control_ > 0 && is_ready_ && !is_signalled_ && silent < kMostSilent;) {
      const auto known = clients();
      silent = known ? 0 : silent + 1;
      if (known && known->empty()) return;
      const std::vector<pid_t> left = known.value_or(std::vector<pid_t>());
      if (!has_reported && known) report(MpsEvent::Kind::lingers, control_, static_cast<std::int32_t>(left.size()));
      has_reported |= known.has_value();
      // Asked again only when all of these have ended, and never without a pause: each question is a line in the log.
      const std::int64_t least_ns = now_ns() + 1'000 * kMs;
      while (control_ > 0 && !is_signalled_ &&
             (now_ns() < least_ns || std::any_of(left.begin(), left.end(), is_alive))) {
        wait(100);
        take_signals();
        reap();
        trim_output();
      }
    }
  }

  void end_control() {
    if (control_ > 0 && is_ready_) answer_to("quit", kQuitNs);
    const auto await_end = [&](std::int64_t limit_ns) {
      for (const std::int64_t end_ns = now_ns() + limit_ns; control_ > 0 && now_ns() < end_ns; reap()) wait(10);
      return control_ <= 0;
    };
    if (await_end(is_ready_ ? 100 * kMs : 0)) return;
    ::kill(-control_, SIGTERM);
    if (await_end(kTermNs)) return;
    ::kill(-control_, SIGKILL);
    await_end(kKillNs);
  }

  void reap() {
    for (;;) {
      siginfo_t info{};
      if (::waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) != 0 || info.si_pid == 0) return;
      // The server of a control process that died is of no use. While that is a zombie its group keeps its number.
      const bool is_control = info.si_pid == control_;
      if (is_control) ::kill(-control_, SIGKILL);
      int status = 0;
      ::waitpid(info.si_pid, &status, 0);
      if (is_control) note_end(status);
    }
  }

  void note_end(int status) {
    report(MpsEvent::Kind::ended, control_, status);
    control_ = -1;
    control_process_.reset();
    is_ready_ = false;
    const std::int64_t now = now_ns();
    quick_ends_ = now - started_ns_ < kQuickNs ? quick_ends_ + 1 : 0;
    start_ns_ = now + kRetryNs;
    if (is_ending_) return;
    if (quick_ends_ >= kMaxQuickEnds) {
      has_given_up_ = true;
      report(MpsEvent::Kind::given_up, 0, status);
    } else {
      clear();
    }
  }

  void report(MpsEvent::Kind kind, pid_t pid, int status) const {
    const MpsEvent event{kind, pid, status};
    [[maybe_unused]] const ssize_t sent = ::send(channel_, &event, sizeof event, MSG_DONTWAIT | MSG_NOSIGNAL);
  }

  void wait(int ms) {
    // One that has closed would be ready all the time.
    pollfd files[] = {{is_ending_ ? -1 : channel_, POLLIN, 0},
                      {is_ending_ ? -1 : daemon_.get(), POLLIN, 0},
                      {control_process_.get(), POLLIN, 0}};
    ::poll(files, std::size(files), control_ > 0 && !control_process_ ? std::min(ms, 50) : ms);
  }

  void take_signals() {
    sigset_t all;
    ::sigfillset(&all);
    const timespec none{};
    for (int signal = 0; (signal = ::sigtimedwait(&all, nullptr, &none)) > 0;)
      if (signal == SIGTERM || signal == SIGINT || signal == SIGQUIT) is_signalled_ = true;
  }

  bool should_end() {
    take_signals();
    if (is_signalled_ || ::getppid() != daemon_pid_) return true;
    char nothing = 0;
    const ssize_t got = ::recv(channel_, &nothing, sizeof nothing, MSG_DONTWAIT);
    return got >= 0 || (errno != EAGAIN && errno != EINTR);
  }

  void trim_output() const {
    struct stat facts{};
    if (::fstat(output_, &facts) == 0 && static_cast<std::uint64_t>(facts.st_size) > kMaxOutput) [[maybe_unused]]
      const int cut = ::ftruncate(output_, 0);
  }

  const MpsPlaces& places_;
  const int channel_, output_;
  const pid_t daemon_pid_;
  const Descriptor daemon_;
  pid_t control_ = -1;
  Descriptor control_process_;
  bool is_ready_ = false, has_given_up_ = false, is_ending_ = false;
  bool is_signalled_ = false;  // asked to end at once
  std::int64_t started_ns_ = 0, start_ns_ = 0;
  int quick_ends_ = 0;
};

[[noreturn]] void guard(const MpsPlaces& places, pid_t daemon, int channel, int output, int lock, int null) {
  // Signals are taken from the queue, so no handler of the daemon ever runs here.
  sigset_t all;
  ::sigfillset(&all);
  ::sigprocmask(SIG_SETMASK, &all, nullptr);
  ::setsid();
  ::prctl(PR_SET_NAME, "weir-mps-guard");
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);
  // First out of the way of the numbers that they get.
  constexpr int kFirst = 3, kFree = 16;
  int files[] = {channel, output, lock};
  for (int& file : files) file = ::fcntl(file, F_DUPFD_CLOEXEC, kFree);
  null = ::fcntl(null, F_DUPFD_CLOEXEC, kFree);
  for (int standard = 0; standard < kFirst; ++standard) ::dup2(null, standard);
  for (int i = 0; i < 3; ++i) ::dup3(files[i], kFirst + i, O_CLOEXEC);
  if (::syscall(SYS_close_range, 6U, ~0U, 0U) != 0)  // kernels before 5.9
    for (int other = 6; other < 1024; ++other) ::close(other);
  [[maybe_unused]] const int moved = ::chdir("/");
  ::umask(077);
  ::setenv(kMpsPipeVariable, places.pipe.c_str(), 1);
  ::setenv(kMpsLogVariable, places.log.c_str(), 1);
  // The server is a CUDA program, too.
  for (const char* name : {"CUDA_INJECTION64_PATH", "NVTX_INJECTION64_PATH", "WEIR_SCHED_SOCKET", "WEIR_SCHED_TERMS"})
    ::unsetenv(name);
  try {
    Guarding(places, kFirst, kFirst + 1, daemon).serve();
  } catch (...) {
    // No memory left: the control process ends with this one, and the next start removes the folders.
  }
  ::_exit(0);
}

}  // namespace

MpsGuardian start_mps_guardian(const MpsPlaces& places, int lock, int output) {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) != 0)
    fail(fmt::format("cannot make a pair of sockets: {}", std::strerror(errno)));
  MpsGuardian made;
  made.channel.reset(ends[0]);
  const Descriptor theirs(ends[1]);
  const Descriptor null = open_kernel_file("/dev/null", O_RDWR);
  const pid_t daemon = ::getpid();
  made.pid = ::fork();
  if (made.pid < 0) fail(fmt::format("cannot start a process: {}", std::strerror(errno)));
  if (made.pid == 0) {
    made.channel.reset();
    guard(places, daemon, theirs.get(), output, lock, null.get());
  }
  made.process.reset(pidfd_of(made.pid));
  return made;
}

bool end_stray_mps(const std::string& pipe_folder) {
  for (const int signal : {SIGTERM, SIGKILL}) {
    for (const Stray& stray : strays_of(pipe_folder)) send_to(stray.process, stray.pid, signal);
    for (const std::int64_t end_ns = now_ns() + (signal == SIGTERM ? kStrayNs : 3 * kStrayNs); now_ns() < end_ns;) {
      if (strays_of(pipe_folder).empty()) return true;
      // In a guardian they are children, which are zombies until somebody asks.
      ::usleep(5'000);
    }
  }
  return false;
}

}  // namespace weir::scheduler
