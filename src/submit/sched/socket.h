// Packets over unix sockets between processes of one user: who is at the other end, and whose file the socket is.
// Throws nothing, prints nothing, and never waits beyond a deadline: clients use it inside other people's programs.
#pragma once

#include <sys/types.h>
#include <sys/un.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace weir::scheduler {

// An open file, closed with the object. Knows -1 for none, where base/handle.h would take 0.
class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(int file) noexcept : file_(file) {}
  Descriptor(Descriptor&& other) noexcept : file_(other.release()) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    reset(other.release());
    return *this;
  }
  ~Descriptor() { reset(); }

  int get() const noexcept { return file_; }
  explicit operator bool() const noexcept { return file_ >= 0; }
  int release() noexcept {
    const int file = file_;
    file_ = -1;
    return file;
  }
  void reset(int file = -1) noexcept;

 private:
  int file_ = -1;
};

struct Peer {
  pid_t pid = 0;  // 0: it is not visible from here
  uid_t user = 0;
};
// Who is at the other end, as the kernel says; false where it does not. Tests put others in its place.
using PeerOf = bool (*)(int socket, Peer* peer) noexcept;
bool peer_of(int socket, Peer* peer) noexcept;

// False: the path does not fit, 107 bytes at most.
bool address_of(std::string_view path, sockaddr_un* address) noexcept;

// Why a socket at that path, or its folder, must not be trusted: not this user's, or open to others. Empty: it may be.
// `is_missing` says whether that is because there is nothing.
std::string why_not_ours(const std::string& path, bool* is_missing);

// Connects to a daemon of this user; empty with a reason otherwise. `errno` as connect() left it.
Descriptor connect_to_daemon(const std::string& path, PeerOf peer, Peer* daemon, std::string* reason);

// One whole packet, without waiting and without a signal where nobody reads any more; descriptors go with it.
bool send_packet(int socket, std::string_view packet, std::span<const int> descriptors = {}) noexcept;
// Waits for one packet until the deadline. Its size, 0 where the other end is gone, -1 where nothing came. Where
// descriptors come with it, each is CLOEXEC; those without a place are closed.
std::ptrdiff_t receive_packet(int socket, std::span<std::byte> buffer, std::int64_t deadline_ns,
                              std::span<Descriptor> descriptors = {}) noexcept;

}  // namespace weir::scheduler
