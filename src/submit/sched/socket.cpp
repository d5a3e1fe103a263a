#include "submit/sched/socket.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "base/clock.h"
#include "base/plain_text.h"

namespace weir::scheduler {
namespace {

constexpr std::size_t kMaxDescriptors = 4;
constexpr std::int64_t kBacklogPatience_ns = 500'000'000;
constexpr std::size_t kControlBytes = CMSG_SPACE(sizeof(int) * kMaxDescriptors);

std::string quoted_path(const std::string& path) { return "'" + without_controls(path, '?') + "'"; }

// Waits until something can be received, or until the deadline.
bool is_readable(int socket, std::int64_t deadline_ns) noexcept {
  for (;;) {
    const std::int64_t left = std::max<std::int64_t>(0, deadline_ns - now_ns());
    timespec most{};
    most.tv_sec = static_cast<std::time_t>(left / 1'000'000'000);
    most.tv_nsec = static_cast<long>(left % 1'000'000'000);
    pollfd file{socket, POLLIN, 0};
    const int ready = ::ppoll(&file, 1, &most, nullptr);
    if (ready > 0) return true;
    if (ready == 0 || errno != EINTR) return false;
  }
}

}  // namespace

bool peer_of(int socket, Peer* peer) noexcept {
  ucred credentials{};
  socklen_t size = sizeof credentials;
  if (::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &credentials, &size) != 0 || size != sizeof credentials)
    return false;
  *peer = {credentials.pid, credentials.uid};
  return true;
}

bool address_of(std::string_view path, sockaddr_un* address) noexcept {
  *address = {};
  address->sun_family = AF_UNIX;
  // A path that begins with 0 would name an abstract socket, which has no owner and no mode.
  if (path.empty() || path.size() >= sizeof address->sun_path || path.find('\0') != std::string_view::npos)
    return false;
  path.copy(address->sun_path, path.size());
  return true;
}

std::string why_not_ours(const std::string& path, bool* is_missing) {
  *is_missing = false;
  const std::size_t slash = path.rfind('/');
  const std::string folder = slash == std::string::npos ? "." : slash == 0 ? "/" : path.substr(0, slash);
  struct stat facts{};
  if (::stat(folder.c_str(), &facts) != 0) {
    *is_missing = errno == ENOENT;
    return "there is no folder " + quoted_path(folder);
  }
  if (facts.st_uid != ::geteuid()) return "the folder " + quoted_path(folder) + " is another user's";
  if ((facts.st_mode & 0022) != 0) return "others may write in the folder " + quoted_path(folder);
  if (::lstat(path.c_str(), &facts) != 0) {
    *is_missing = errno == ENOENT;
    return *is_missing ? "there is no socket " + quoted_path(path) : quoted_path(path) + ": " + std::strerror(errno);
  }
  if (!S_ISSOCK(facts.st_mode)) return quoted_path(path) + " is not a socket";
  if (facts.st_uid != ::geteuid()) return quoted_path(path) + " is another user's";
  return {};
}

Descriptor connect_to_daemon(const std::string& path, PeerOf peer, Peer* daemon, std::string* reason) {
  sockaddr_un address;
  bool is_missing = false;
  if (!address_of(path, &address)) {
    *reason = "a socket's path has 1 to 107 bytes, this one " + std::to_string(path.size());
    return {};
  }
  *reason = why_not_ours(path, &is_missing);
  if (!reason->empty()) {
    if (is_missing) *reason = "no daemon listens at " + quoted_path(path);
    return {};
  }
  // Non-blocking: the backlog of a daemon that hangs fills up at some time. So does that of one that lives, for an
  // instant, when very many connect at once.
  Descriptor socket(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  const auto is_connected = [&] {
    return socket && ::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
  };
  bool is_through = is_connected();
  for (const std::int64_t end_ns = now_ns() + kBacklogPatience_ns; !is_through && errno == EAGAIN && now_ns() < end_ns;
       is_through = is_connected())
    ::usleep(1000);
  if (!is_through) {
    const int error = errno;
    *reason = error == ECONNREFUSED ? "no daemon listens at " + quoted_path(path) + " any more"
              : error == EAGAIN     ? "the daemon at " + quoted_path(path) + " does not answer"
                                    : "cannot connect to " + quoted_path(path) + ": " + std::strerror(error);
    errno = error;
    return {};
  }
  // The file may have been replaced since it was checked; the kernel reports who listens.
  if (!peer(socket.get(), daemon) || daemon->user != ::geteuid()) {
    *reason = "the daemon at " + quoted_path(path) + " is another user's";
    return {};
  }
  return socket;
}

bool send_packet(int socket, std::string_view packet, std::span<const int> descriptors) noexcept {
  iovec part{const_cast<char*>(packet.data()), packet.size()};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  alignas(cmsghdr) std::array<char, kControlBytes> control{};
  if (!descriptors.empty()) {
    if (descriptors.size() > kMaxDescriptors) return false;
    message.msg_control = control.data();
    message.msg_controllen = CMSG_SPACE(descriptors.size_bytes());
    cmsghdr* header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(descriptors.size_bytes());
    std::memcpy(CMSG_DATA(header), descriptors.data(), descriptors.size_bytes());
  }
  for (;;) {
    const ssize_t sent = ::sendmsg(socket, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent >= 0) return static_cast<std::size_t>(sent) == packet.size();
    if (errno != EINTR) return false;
  }
}

std::ptrdiff_t receive_packet(int socket, std::span<std::byte> buffer, std::int64_t deadline_ns,
                              std::span<Descriptor> descriptors) noexcept {
  iovec part{buffer.data(), buffer.size()};
  alignas(cmsghdr) std::array<char, kControlBytes> control{};
  msghdr message{};
  ssize_t size = -1;
  bool was_reset = false;
  for (;;) {
    if (!is_readable(socket, deadline_ns)) return -1;
    message = {};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    // Without room for descriptors the kernel closes those that were sent.
    if (!descriptors.empty()) {
      message.msg_control = control.data();
      message.msg_controllen = control.size();
    }
    size = ::recvmsg(socket, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC | MSG_TRUNC);
    if (size >= 0) break;
    if (errno == EINTR || errno == EAGAIN) continue;
    // The kernel first reports that the other end closed without reading what was sent, then delivers what it had sent
    // before.
    if (errno != ECONNRESET || was_reset) return 0;
    was_reset = true;
  }
  std::size_t taken = 0;
  for (cmsghdr* header = CMSG_FIRSTHDR(&message); header != nullptr; header = CMSG_NXTHDR(&message, header)) {
    if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS) continue;
    const std::size_t count = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (std::size_t i = 0; i < count; ++i) {
      int file = -1;
      std::memcpy(&file, CMSG_DATA(header) + i * sizeof file, sizeof file);
      Descriptor received(file);
      if (taken < descriptors.size()) descriptors[taken++] = std::move(received);
    }
  }
  // MSG_TRUNC: the packet's own size. A packet that did not fit is rejected.
  return static_cast<std::size_t>(size) > buffer.size() ? -1 : size;
}

}  // namespace weir::scheduler
