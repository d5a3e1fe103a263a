// Packets over unix sockets between processes of one user; checks who is at the other end, and who owns the socket
// file. Throws nothing, prints nothing, and never waits beyond a deadline: clients use it inside other people's
// programs.
#pragma once

#include <sys/types.h>
#include <sys/un.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "base/descriptor.h"

namespace weir::scheduler {

struct Peer {
  pid_t pid = 0;  // 0: it is not visible from here
  uid_t user = 0;
};
// Reports who is at the other end, according to the kernel; false if that is unknown. Tests replace it.
using PeerOf = bool (*)(int socket, Peer* peer) noexcept;
bool peer_of(int socket, Peer* peer) noexcept;

// False if the path does not fit; the limit is 107 bytes.
bool address_of(std::string_view path, sockaddr_un* address) noexcept;

// Why a socket at that path, or its folder, must not be trusted: not this user's, or open to others. Empty if it may
// be. `is_missing`: whether the reason is that it does not exist.
std::string why_not_ours(const std::string& path, bool* is_missing);

// Connects to a daemon of this user; empty with a reason otherwise. `errno` is as connect() left it.
Descriptor connect_to_daemon(const std::string& path, PeerOf peer, Peer* daemon, std::string* reason);

// Sends one whole packet with its descriptors, without waiting, and without a signal if nobody reads any more.
bool send_packet(int socket, std::string_view packet, std::span<const int> descriptors = {}) noexcept;
// Waits for one packet until the deadline. Returns its size, 0 if the other end is gone, or -1 if nothing came.
// Received descriptors are CLOEXEC; those without room are closed.
std::ptrdiff_t receive_packet(int socket, std::span<std::byte> buffer, std::int64_t deadline_ns,
                              std::span<Descriptor> descriptors = {}) noexcept;

}  // namespace weir::scheduler
