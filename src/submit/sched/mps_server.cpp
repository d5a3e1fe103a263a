#include "submit/sched/mps_server.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <system_error>
#include <utility>

#include "base/clock.h"
#include "base/error.h"
#include "base/file.h"
#include "base/named_values.h"
#include "base/plain_text.h"
#include "submit/sched/socket.h"

namespace weir::scheduler {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kStartNs = 10'000'000'000;  // until the control process listens
constexpr std::int64_t kEndNs = 3'000'000'000;     // until the guardian has ended it
constexpr std::int64_t kLookNs = 1'000'000'000;
constexpr std::int64_t kReplaceNs = 500'000'000;  // from one guardian's end to the next
constexpr int kMaxGuardiansLost = 8;
constexpr std::size_t kMaxReadAtOnce = 256 * 1024;

std::string shown(const std::string& path) { return without_controls(path, '?'); }

// A folder of ours alone, not a link; made if it is missing.
void make_private_folder(const std::string& path) {
  if (::mkdir(path.c_str(), 0700) != 0 && errno != EEXIST)
    fail(fmt::format("cannot make the folder {}: {}", shown(path), std::strerror(errno)));
  struct stat facts{};
  if (::lstat(path.c_str(), &facts) != 0 || !S_ISDIR(facts.st_mode) || facts.st_uid != ::geteuid() ||
      (facts.st_mode & 0077) != 0)
    reject(fmt::format("{} is not a folder of yours alone", shown(path)), "Remove it, or choose another socket.");
}

Descriptor locked_folder(const std::string& path) {
  Descriptor folder = open_kernel_file(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
  if (folder && ::flock(folder.get(), LOCK_EX | LOCK_NB) != 0) folder.reset();
  return folder;
}

// sched.sock.mps-4711, beside the socket
std::string prefix_of(const fs::path& socket) { return socket.filename().string() + ".mps-"; }

// What daemons left that were killed together with their guardians. One whose guardian lives is locked by it: programs
// still work there.
void remove_stale(const fs::path& socket) {
  std::error_code status;
  const std::string prefix = prefix_of(socket);
  std::vector<std::string> found;
  for (fs::directory_iterator each(socket.parent_path(), status), end; !status && each != end; each.increment(status))
    if (each->path().filename().string().starts_with(prefix)) found.push_back(each->path().string());
  for (const std::string& root : found) {
    struct stat facts{};
    if (::lstat(root.c_str(), &facts) != 0 || !S_ISDIR(facts.st_mode) || facts.st_uid != ::geteuid()) continue;
    const Descriptor lock = locked_folder(root);
    if (!lock) continue;
    end_stray_mps(root + "/pipe");
    fs::remove_all(root, status);
  }
}

std::string words_of(int status) {
  if (WIFSIGNALED(status)) return fmt::format("was killed by signal {}", WTERMSIG(status));
  return WEXITSTATUS(status) == 127 ? "could not be executed"
                                    : fmt::format("ended with status {}", WEXITSTATUS(status));
}

}  // namespace

bool is_mps_live(const std::string& pipe_folder) {
  sockaddr_un address;
  struct stat facts{};
  const std::string path = pipe_folder + "/control";
  if (!address_of(path, &address) || ::stat(path.c_str(), &facts) != 0 || !S_ISSOCK(facts.st_mode)) return false;
  const Descriptor socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  // Of another type (EPROTOTYPE) or with a full queue it listens as well; a file that was left behind refuses.
  return socket && (::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0 ||
                    errno == EPROTOTYPE || errno == EAGAIN);
}

std::unique_ptr<MpsServer> MpsServer::open(const fs::path& socket, const MpsSetup& setup, std::string* reason,
                                           std::string* hint) {
  *hint = "--mechanism gate holds launches without it.";
  const auto refuse = [&](std::string why, const char* advice = nullptr) -> std::unique_ptr<MpsServer> {
    *reason = std::move(why);
    if (advice != nullptr) *hint = advice;
    return nullptr;
  };
  std::unique_ptr<MpsServer> made(new MpsServer);
  if (setup.choice == MpsChoice::none) return refuse("--mps none leaves NVIDIA's MPS out");
  if (!setup.no_driver.empty()) return refuse(setup.no_driver);
  if (setup.choice == MpsChoice::theirs) {
    if (setup.other_pipe.empty())
      return refuse("nobody runs an MPS that could be used",
                    "Set CUDA_MPS_PIPE_DIRECTORY to the folder of the one that runs, or use --mps own.");
    made->places_ = {{}, {}, setup.other_pipe, setup.other_log, setup.other_log + "/server.log"};
    made->output_ = open_regular(made->places_.output);
    struct stat facts{};
    if (made->output_ && ::fstat(made->output_.get(), &facts) == 0)
      made->read_bytes_ = static_cast<std::uint64_t>(facts.st_size);
    made->attend(now_ns());
    return made;
  }
  if (setup.program.empty())
    return refuse(fmt::format("there is no {} in PATH", kMpsProgram),
                  "It comes with NVIDIA's driver: on Ubuntu nvidia-compute-utils-VERSION, on Debian nvidia-cuda-mps. "
                  "--mechanism gate holds launches without it.");
  made->is_own_ = true;
  made->places_.program = setup.program;
  remove_stale(socket);
  made->make_places(socket);
  sockaddr_un address;
  if (!address_of(made->places_.pipe + "/control_privileged", &address))
    return refuse(fmt::format("{} is too long for its sockets", shown(made->places_.pipe)),
                  "Choose a shorter --socket.");
  made->launch();
  std::string why;
  if (!made->await_ready(&why)) return refuse(std::move(why));
  return made;
}

void MpsServer::make_places(const fs::path& socket) {
  places_.root = (socket.parent_path() / fmt::format("{}{}", prefix_of(socket), ::getpid())).string();
  places_.pipe = places_.root + "/pipe";
  places_.log = places_.root + "/log";
  places_.output = places_.log + "/mps.log";
}

void MpsServer::launch() {
  lock_.reset();
  make_private_folder(places_.root);
  make_private_folder(places_.pipe);
  make_private_folder(places_.log);
  lock_ = locked_folder(places_.root);
  const Descriptor output = open_to_append(places_.output);
  output_ = open_regular(places_.output);
  struct stat facts{};
  read_bytes_ = ::fstat(output.get(), &facts) == 0 ? static_cast<std::uint64_t>(facts.st_size) : 0;
  guardian_ = start_mps_guardian(places_, lock_.get(), output.get());
  launches_ns_ = kNever;
}

bool MpsServer::await_ready(std::string* reason) {
  for (const std::int64_t end_ns = now_ns() + kStartNs; !is_up_ && now_ns() < end_ns;) {
    pollfd file{wake_file(), POLLIN, 0};
    ::poll(&file, 1, 50);
    attend(now_ns());
    // The first end is final: what cannot start now is said now.
    if (has_ended_ && !is_up_) break;
  }
  if (is_up_) return true;
  const std::string line = last_line();
  *reason = fmt::format("{} {}{}", kMpsProgram, has_ended_ ? reason_ : "does not listen after 10 s",
                        line.empty() ? "" : fmt::format(": {}", line));
  return false;
}

MpsServer::~MpsServer() {
  if (guardian_.pid <= 0) return;
  ::shutdown(guardian_.channel.get(), SHUT_WR);
  bool has_gone = false;
  for (const std::int64_t end_ns = now_ns() + kEndNs; !has_gone && !lingers_ && now_ns() < end_ns;) {
    pollfd files[] = {{wake_file(), POLLIN, 0}, {guardian_.process.get(), POLLIN, 0}};
    ::poll(files, std::size(files), guardian_.process ? 100 : 10);
    MpsEvent event;
    while (::recv(wake_file(), &event, sizeof event, MSG_DONTWAIT) == sizeof event)
      lingers_ = lingers_ || event.kind == MpsEvent::Kind::lingers;
    has_gone = ::waitpid(guardian_.pid, nullptr, WNOHANG) != 0;
  }
  if (!has_gone) return;
  // Killed before it could do that itself.
  struct stat facts{};
  if (::lstat(places_.root.c_str(), &facts) != 0) return;
  end_stray_mps(places_.pipe);
  std::error_code ignored;
  fs::remove_all(places_.root, ignored);
}

void MpsServer::attend(std::int64_t now_ns) {
  attends_ns_ = now_ns + kLookNs;
  if (!is_own_) {
    is_up_ = is_mps_live(places_.pipe);
    reason_ = is_up_ ? "" : "the MPS that somebody else ran has ended";
    read_output(now_ns);
    if (!is_up_) log_.end_all(MpsFault::Kind::control_ended, now_ns);
    return;
  }
  read_output(now_ns);
  MpsEvent event;
  ssize_t got = -1;
  while (guardian_.channel && (got = ::recv(guardian_.channel.get(), &event, sizeof event, MSG_DONTWAIT)) > 0)
    if (got == sizeof event) hear(event, now_ns);
  if (guardian_.channel && got == 0) lose_guardian(now_ns);
  if (!guardian_.channel && now_ns >= launches_ns_) {
    try {
      launch();
    } catch (const Error& error) {
      reason_ = error.what();
      launches_ns_ = now_ns + kLookNs;
    }
  }
  if (!guardian_.channel) attends_ns_ = std::min(attends_ns_, launches_ns_);
}

void MpsServer::hear(const MpsEvent& event, std::int64_t now_ns) {
  switch (event.kind) {
    case MpsEvent::Kind::ready:
      is_up_ = true;
      reason_.clear();
      control_ = event.pid;
      ++starts_;
      return;
    case MpsEvent::Kind::ended:
      is_up_ = false;
      has_ended_ = true;
      control_ = 0;
      reason_ = words_of(event.status);
      log_.end_all(MpsFault::Kind::control_ended, now_ns);
      return;
    case MpsEvent::Kind::given_up:
      reason_ += ", again and again; it is not started any more";
      return;
    case MpsEvent::Kind::lingers:
      lingers_ = true;
      return;
  }
}

void MpsServer::lose_guardian(std::int64_t now_ns) {
  guardian_.channel.reset();
  if (guardian_.pid > 0) {
    // It may be a moment from its end to where it can be reaped; a zombie costs nothing until then.
    if (::waitpid(guardian_.pid, nullptr, WNOHANG) == 0) zombies_.push_back(guardian_.pid);
    std::erase_if(zombies_, [](pid_t pid) { return ::waitpid(pid, nullptr, WNOHANG) != 0; });
  }
  guardian_ = {};
  is_up_ = false;
  control_ = 0;
  reason_ = "its guardian was killed";
  log_.end_all(MpsFault::Kind::control_ended, now_ns);
  launches_ns_ = now_ns + kReplaceNs;
  if (++guardians_lost_ >= kMaxGuardiansLost) {
    reason_ += ", again and again; it is not started any more";
    launches_ns_ = kNever;
  }
}

void MpsServer::read_output(std::int64_t now_ns) {
  struct stat facts{};
  if (!output_ || ::fstat(output_.get(), &facts) != 0) return;
  const auto size = static_cast<std::uint64_t>(facts.st_size);
  if (size < read_bytes_) read_bytes_ = 0;  // the guardian has emptied it
  std::array<char, 16384> part;
  for (std::size_t all = 0; read_bytes_ < size && all < kMaxReadAtOnce;) {
    const ssize_t got = ::pread(output_.get(), part.data(), part.size(), static_cast<off_t>(read_bytes_));
    if (got <= 0) return;
    log_.read({part.data(), static_cast<std::size_t>(got)}, now_ns);
    read_bytes_ += static_cast<std::uint64_t>(got);
    all += static_cast<std::size_t>(got);
  }
}

// Of what the processes printed, for a message.
std::string MpsServer::last_line() const {
  constexpr std::size_t kMost = 4096, kShown = 200;
  const std::string all = start_of_file(places_.output, kMost);
  const std::string_view text = trimmed(all, " \n\r\t");
  const std::size_t line = text.rfind('\n');
  return without_controls(whole_characters(line == std::string_view::npos ? text : text.substr(line + 1), kShown), '?');
}

bool MpsServer::has_client(int pid) const {
  const std::vector<int>& clients = log_.clients();
  return std::find(clients.begin(), clients.end(), pid) != clients.end();
}

Json MpsServer::document(std::int64_t now_ns) const {
  const Json faults = json_list(log_.faults(), [&](const MpsFault& fault) {
    constexpr std::size_t kMostShown = 32;  // a reply has an end
    const auto shown_ids = static_cast<std::ptrdiff_t>(std::min(fault.clients.size(), kMostShown));
    return Json{{"kind", name_of(fault.kind)},
                {"ns_ago", std::max<std::int64_t>(0, now_ns - fault.at_ns)},
                {"noticed_by", positive_or_null(fault.noticed_by)},
                {"clients", std::vector<int>(fault.clients.begin(), fault.clients.begin() + shown_ids)}};
  });
  return {{"is_own", is_own_},
          {"is_up", is_up_},
          {"reason", text_or_null(reason_)},
          {"pipe_folder", shown(places_.pipe)},
          {"log_folder", shown(places_.log)},
          {"pid", positive_or_null(control_)},
          {"guardian_pid", positive_or_null(static_cast<int>(guardian_.pid))},
          {"servers", log_.servers()},
          {"clients", log_.clients()},
          {"restarts", starts_ > 0 ? starts_ - 1 : 0},
          {"fault_count", log_.fault_count()},
          {"faults", faults}};
}

}  // namespace weir::scheduler
