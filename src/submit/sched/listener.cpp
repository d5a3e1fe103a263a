#include "submit/sched/listener.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <system_error>

#include "base/clock.h"
#include "base/error.h"
#include "base/plain_text.h"

namespace weir::scheduler {
namespace {

constexpr std::int64_t kLockPatience_ns = 1'000'000'000;  // a daemon that was told to stop needs a moment

std::string plain_path(const std::string& path) { return without_controls(path, '?'); }

[[noreturn]] void reject_running(const std::string& path, pid_t pid) {
  reject(fmt::format("a scheduler is already running at {}{}", plain_path(path),
                     pid > 0 ? fmt::format(" (pid {})", pid) : ""),
         "Use it, or end it with `weir sched stop`, or choose another socket.");
}

// The folder keeps others out even if a system ignores the mode of sockets.
void prepare_folder(const std::filesystem::path& folder) {
  if (!std::filesystem::exists(folder)) {
    std::error_code status;
    if (folder.has_parent_path()) std::filesystem::create_directories(folder.parent_path(), status);
    // Mode 0700 from the first instant on; somebody else may create it first, which is detected below.
    if (::mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST)
      reject(fmt::format("cannot make the folder {}: {}", plain_path(folder.string()), std::strerror(errno)),
             "Choose a socket in a folder that you may write.");
  }
  struct stat facts{};
  if (::lstat(folder.c_str(), &facts) != 0 || !S_ISDIR(facts.st_mode))
    reject(fmt::format("{} is no folder", plain_path(folder.string())), "Choose a socket in a folder of your own.");
  if (facts.st_uid != ::geteuid())
    reject(fmt::format("the folder {} is another user's", plain_path(folder.string())),
           "The scheduler's socket has to lie in a folder of your own.");
  if ((facts.st_mode & 0077) != 0)
    reject(
        fmt::format("the folder {} is open to others (mode {:o})", plain_path(folder.string()), facts.st_mode & 07777),
        fmt::format("Choose a folder of its own for the socket, or `chmod 700 {}`.", plain_path(folder.string())));
}

// The process that listens there; 0: none.
pid_t listening_at(const std::string& path) {
  Peer peer;
  std::string reason;
  errno = 0;
  const Descriptor socket = connect_to_daemon(path, peer_of, &peer, &reason);
  if (socket) return peer.pid;
  return errno == EAGAIN ? -1 : 0;  // alive, but not answering
}

}  // namespace

Listener::Listener(const std::filesystem::path& path) : path_(path.string()) {
  sockaddr_un address;
  if (!address_of(path_, &address))
    reject(fmt::format("{}: a socket's path has 1 to 107 bytes, this one {}", plain_path(path_), path_.size()),
           "Choose a shorter one.");
  prepare_folder(path.has_parent_path() ? path.parent_path() : std::filesystem::path("."));

  const std::string lock = path_ + ".lock";
  lock_.reset(::open(lock.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  struct stat facts{};
  if (!lock_ || ::fstat(lock_.get(), &facts) != 0)
    reject(fmt::format("cannot open {}: {}", plain_path(lock), std::strerror(errno)));
  if (!S_ISREG(facts.st_mode) || facts.st_uid != ::geteuid())
    reject(fmt::format("{} is not a file of yours", plain_path(lock)), "Remove it, or choose another socket.");
  const std::int64_t begun = now_ns();
  while (::flock(lock_.get(), LOCK_EX | LOCK_NB) != 0) {
    if (const pid_t pid = listening_at(path_); pid > 0) reject_running(path_, pid);
    if (now_ns() - begun > kLockPatience_ns)
      reject(fmt::format("another scheduler holds {}, but does not answer", plain_path(lock)),
             fmt::format("See who has it open: `fuser {}`.", plain_path(lock)));
    ::usleep(10'000);
  }

  if (::lstat(path_.c_str(), &facts) == 0) {
    if (!S_ISSOCK(facts.st_mode) || facts.st_uid != ::geteuid())
      reject(fmt::format("{} is not a socket of yours", plain_path(path_)), "Remove it, or choose another name.");
    if (const pid_t pid = listening_at(path_); pid != 0) reject_running(path_, pid);
    if (::unlink(path_.c_str()) != 0)
      reject(fmt::format("cannot remove the stale socket {}: {}", plain_path(path_), std::strerror(errno)));
  }
  socket_.reset(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  // Before bind(): Linux creates the file with the mode of the socket, so it is never open to others.
  if (!socket_ || ::fchmod(socket_.get(), 0600) != 0 ||
      ::bind(socket_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0)
    reject(fmt::format("cannot make the socket {}: {}", plain_path(path_), std::strerror(errno)),
           "Choose another folder: some file systems carry no sockets.");
  if (::chmod(path_.c_str(), 0600) != 0 || ::listen(socket_.get(), SOMAXCONN) != 0) {
    const int error = errno;
    ::unlink(path_.c_str());
    fail(fmt::format("cannot listen at {}: {}", plain_path(path_), std::strerror(error)));
  }
}

Listener::~Listener() { ::unlink(path_.c_str()); }

}  // namespace weir::scheduler
