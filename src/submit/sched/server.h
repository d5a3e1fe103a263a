// The scheduler's daemon: a unix socket of one user, a board in shared memory, and a conductor. One thread, one loop. A
// client is gone when its socket is, however it ended.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>

#include "submit/sched/ask.h"
#include "submit/sched/mechanism.h"
#include "submit/sched/policy.h"
#include "submit/sched/socket.h"

namespace weir::scheduler {

struct ServerOptions {
  std::filesystem::path socket;  // created with mode 0600 in a folder of mode 0700
  const Policy* policy = nullptr;
  Settings settings;
  // Commands that a client may have on the device while it may have to yield to somebody; 0: chosen for each client.
  std::uint32_t in_flight = 0;
  // A client that was idle for longer does not make others keep to that bound.
  std::int64_t recent_ns = 100'000'000;
  const Mechanism* mechanism = nullptr;  // null: the gate alone
  MpsSetup mps;                          // for mechanisms that use it
  PeerOf peer = peer_of;                 // for tests
};

class Server {
 public:
  // Rejects if another daemon answers at that socket; replaces a stale one. Refuses anything that does not belong to
  // this user.
  explicit Server(const ServerOptions& options);
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  // Serves until stop(), or until a client asks for the end; call once. Board, seats and accounts stay right whatever
  // clients send.
  void serve();
  // May be called from a signal handler or any thread.
  void stop() noexcept;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// Where this user's daemon listens: $XDG_RUNTIME_DIR/weir/sched.sock, or /tmp/weir-UID/sched.sock.
std::filesystem::path default_socket(const char* runtime_folder, unsigned user);

}  // namespace weir::scheduler
