#include "submit/sched/connection.h"

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <optional>

#include "base/clock.h"

namespace weir::scheduler {
namespace {

// The longest delay of a starting program if the daemon hangs or has no core.
constexpr std::int64_t kConnectionPatience_ns = 1'000'000'000;
constexpr std::int64_t kLook_ns = 25'000;  // shorter than most kernels, longer than a query of events
// While all other clients are idle, nobody waits to see this one end: looks then only keep up with what was counted.
constexpr std::int64_t kCalmLook_ns = 100'000, kDeepLook_ns = 400'000;
constexpr std::uint32_t kDeep = 32;           // a bound so large that a late look leaves the device enough to do
constexpr std::int64_t kNap_ns = 20'000'000;  // often enough to show the daemon that this client is alive

void close_file(std::atomic<int>& file) noexcept {
  const int open = file.exchange(-1);
  if (open >= 0) ::close(open);
}

void ring_file(const std::atomic<int>& file) noexcept {
  const std::uint64_t one = 1;
  // Never blocks: the eventfd is non-blocking, and a full one has already been rung.
  [[maybe_unused]] const ssize_t written = ::write(file.load(std::memory_order_relaxed), &one, sizeof one);
}

timespec as_timespec(std::int64_t ns) noexcept {
  timespec time{};
  time.tv_sec = static_cast<std::time_t>(ns / 1'000'000'000);
  time.tv_nsec = static_cast<long>(ns % 1'000'000'000);
  return time;
}

}  // namespace

struct Connection::State {
  // Atomic, because a fork in another thread may read them at any instant.
  std::atomic<int> socket{-1};
  std::atomic<int> doorbell{-1};  // the daemon's
  std::atomic<int> bell{-1};      // of the attending thread
  Board* board = nullptr;
  std::optional<Gate> gate;
  std::atomic<bool> has_gate{false};  // pairs with in_child(): the gate and the board exist
  pthread_t thread{};
  bool has_thread = false;
  bool allows_tracing = false;  // this process lets the daemon trace it
  std::atomic<bool> is_child{false};
  std::atomic<bool> is_ending{false};
  std::atomic<bool> is_asleep{false};
  std::atomic<void (*)(void*)> look{nullptr};
  void* look_context = nullptr;

  ~State() {
    close_file(socket);
    close_file(doorbell);
    close_file(bell);
    if (board != nullptr) ::munmap(board, sizeof(Board));
  }

  bool join(const std::string& path, const Request& request, PeerOf peer, std::string* reason);
  bool map_board(const Descriptor& file, std::string* reason) noexcept;
  bool start() noexcept;
  void attend() noexcept;
  void look_once() noexcept {
    // Pairs with Connection::attend(): the context is set.
    if (auto* const call = look.load(std::memory_order_acquire)) call(look_context);
  }
  bool is_daemon_gone() noexcept;
  std::int64_t look_interval_ns() const noexcept {
    if (gate->has_company()) return kLook_ns;
    return gate->is_loose() && gate->bound() >= kDeep ? kDeepLook_ns : kCalmLook_ns;
  }
  void in_child() noexcept;

  static void wake(void* state) noexcept {
    auto& self = *static_cast<State*>(state);
    // Pairs with attend(), which announces sleep and then checks the gate.
    if (self.is_asleep.load(std::memory_order_seq_cst) && self.is_asleep.exchange(false)) ring_file(self.bell);
  }
  static void ring(void* state) noexcept { ring_file(static_cast<State*>(state)->doorbell); }
};

namespace {

// Connections of this process, for a forked child: found without a lock, which another thread might have held. Raw
// words, because State is private to Connection.
constexpr std::size_t kMaxConnections = 16;
std::array<std::atomic<void*>, kMaxConnections> connections{};
std::atomic<void (*)(void*)> release_in_child{nullptr};
std::atomic<bool> is_fork_watched{false};

void after_fork_in_child() {
  auto* const release = release_in_child.load();
  for (std::atomic<void*>& connection : connections) {
    if (void* const state = connection.load()) release(state);
  }
}

bool register_state(void* state) noexcept {
  for (std::atomic<void*>& place : connections) {
    void* empty = nullptr;
    if (place.compare_exchange_strong(empty, state)) return true;
  }
  return false;
}

void unregister_state(void* state) noexcept {
  for (std::atomic<void*>& place : connections) {
    void* found = state;
    if (place.compare_exchange_strong(found, nullptr)) return;
  }
}

}  // namespace

// A child holds the parent's descriptors, so the daemon would not see the parent end; and it shares the board, on which
// it has no seat. Uses only functions that may be called between fork() and exec().
void Connection::State::in_child() noexcept {
  is_child.store(true);
  close_file(socket);
  close_file(doorbell);
  close_file(bell);
  if (!has_gate.load()) return;
  gate->open_in_child();
  ::mmap(board, sizeof(Board), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
}

bool Connection::State::map_board(const Descriptor& file, std::string* reason) noexcept {
  struct stat facts{};
  // Sealed: nobody can truncate the file, which would cause a SIGBUS in somebody else's program.
  const int seals = ::fcntl(file.get(), F_GET_SEALS);
  if (::fstat(file.get(), &facts) != 0 || facts.st_size != static_cast<off_t>(sizeof(Board)) || seals < 0 ||
      (seals & F_SEAL_SHRINK) == 0) {
    *reason = "the daemon's board has another size: it is of another version of weir";
    return false;
  }
  void* const memory = ::mmap(nullptr, sizeof(Board), PROT_READ | PROT_WRITE, MAP_SHARED, file.get(), 0);
  if (memory == MAP_FAILED) {
    *reason = std::string("the daemon's board cannot be mapped: ") + std::strerror(errno);
    return false;
  }
  board = static_cast<Board*>(memory);
  if (board->magic != kBoardMagic || board->version != kBoardVersion || board->bytes != sizeof(Board)) {
    *reason = "the daemon's board is of another version of weir";
    return false;
  }
  return true;
}

bool Connection::State::join(const std::string& path, const Request& request, PeerOf peer, std::string* reason) {
  const std::int64_t deadline = now_ns() + kConnectionPatience_ns;
  Peer daemon;
  Descriptor made = connect_to_daemon(path, peer, &daemon, reason);
  if (!made) return false;
  socket.store(made.release());
  // If this fails, the daemon may already have given a reason.
  send_packet(socket.load(), write_request(request));
  std::array<std::byte, 1024> buffer;
  std::array<Descriptor, 2> descriptors;
  const std::ptrdiff_t size = receive_packet(socket.load(), buffer, deadline, descriptors);
  if (size <= 0) {
    *reason = size < 0 ? "the daemon did not answer within a second" : "the daemon ended the connection";
    return false;
  }
  Reply reply;
  if (const char* wrong = read_reply(std::span(buffer).first(static_cast<std::size_t>(size)), &reply)) {
    *reason = std::string("the daemon's answer cannot be used: ") + wrong;
    return false;
  }
  if (reply.answer != Answer::seat) {
    *reason = reply.answer == Answer::refused && !reply.text.empty() ? "the daemon refused: " + reply.text
                                                                     : "the daemon gave no seat";
    return false;
  }
  if (!descriptors[0] || !descriptors[1] || reply.board_bytes != sizeof(Board) ||
      (::fcntl(descriptors[1].get(), F_GETFL) & O_NONBLOCK) == 0) {
    *reason = "the daemon's answer came without a board";
    return false;
  }
  doorbell.store(descriptors[1].release());
  if (!map_board(descriptors[0], reason)) return false;
  // Without Yama this fails, and nothing has to be allowed.
  if (daemon.pid > 0 && board->asks_to_trace.load(std::memory_order_relaxed) != 0) {
    allows_tracing = true;
    ::prctl(PR_SET_PTRACER, static_cast<unsigned long>(daemon.pid), 0UL, 0UL, 0UL);
  }
  bell.store(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (bell.load() < 0) {
    *reason = std::string("no eventfd: ") + std::strerror(errno);
    return false;
  }
  gate.emplace(*board, static_cast<int>(reply.seat), ring, this);
  gate->set_wake(wake, this);
  has_gate.store(true);
  if (!start()) {
    *reason = "no thread could be started";
    return false;
  }
  return true;
}

bool Connection::State::start() noexcept {
  // The program's signals must not be handled on a thread that it does not know.
  sigset_t all, before;
  sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  has_thread = ::pthread_create(
                   &thread, nullptr,
                   [](void* state) -> void* {
                     static_cast<State*>(state)->attend();
                     return nullptr;
                   },
                   this) == 0;
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (has_thread) ::pthread_setname_np(thread, "weir-sched");
  return has_thread;
}

bool Connection::State::is_daemon_gone() noexcept {
  std::array<std::byte, 16> ignored;
  const ssize_t size = ::recv(socket.load(), ignored.data(), ignored.size(), MSG_DONTWAIT);
  return size == 0 || (size < 0 && errno != EAGAIN && errno != EINTR);
}

void Connection::State::attend() noexcept {
  ::prctl(PR_SET_TIMERSLACK, 1UL);  // for this thread: the default of 50 us is longer than kLook_ns
  std::array<pollfd, 2> files{{{bell.load(), POLLIN, 0}, {socket.load(), POLLIN, 0}}};
  while (!is_ending.load(std::memory_order_acquire)) {
    if (gate->on_device() != 0) look_once();
    // Pairs with wake(): announced before the gate is checked.
    is_asleep.store(true, std::memory_order_seq_cst);
    const std::int64_t now = now_ns();
    const std::int64_t due = gate->settle(now);
    std::int64_t sleep = due == kNever ? kNever : std::clamp<std::int64_t>(due - now, 0, kNap_ns);
    // While a client lingers, its next command is awaited as closely as if one were on the device.
    if (gate->on_device() != 0 || sleep <= 4 * kLook_ns) {
      is_asleep.store(false, std::memory_order_relaxed);
      sleep = std::min(sleep, look_interval_ns());
    }
    const timespec most = as_timespec(sleep == kNever ? 0 : sleep);
    if (::ppoll(files.data(), files.size(), sleep == kNever ? nullptr : &most, nullptr) <= 0) continue;
    is_asleep.store(false, std::memory_order_relaxed);
    if (files[0].revents != 0) {
      std::uint64_t rings = 0;
      [[maybe_unused]] const ssize_t taken = ::read(files[0].fd, &rings, sizeof rings);
    }
    if (files[1].revents != 0 && is_daemon_gone()) {
      gate->open_for_good();
      break;
    }
  }
  // Counted commands still end, and the threads that launched them may need to know.
  while (!is_ending.load(std::memory_order_acquire) && gate->on_device() != 0) {
    look_once();
    const timespec pause = as_timespec(1'000'000);
    ::ppoll(files.data(), 1, &pause, nullptr);
  }
}

std::unique_ptr<Connection> Connection::open(const std::string& socket, const Terms& terms, std::string_view program,
                                             std::string* reason, PeerOf peer) noexcept {
  try {
    if (!are_valid(terms)) {
      *reason = "priority, weight, deadline or bound is out of range";
      return nullptr;
    }
    release_in_child.store([](void* state) { static_cast<State*>(state)->in_child(); });
    if (!is_fork_watched.exchange(true)) ::pthread_atfork(nullptr, nullptr, after_fork_in_child);
    auto state = std::make_unique<State>();
    if (!register_state(state.get())) {
      *reason = "this process has too many connections to daemons";
      return nullptr;
    }
    // From here on the destructor removes it from the list.
    std::unique_ptr<Connection> connection(new Connection(std::move(state)));
    if (!connection->state_->join(socket, {Ask::join, terms, std::string(program)}, peer, reason)) return nullptr;
    return connection;
  } catch (...) {
    return nullptr;  // no memory, not even for a reason
  }
}

Connection::Connection(std::unique_ptr<State> state) noexcept : state_(std::move(state)) {}

Connection::~Connection() {
  State& state = *state_;
  // The attending thread belongs to the parent; a child has none.
  if (state.has_thread && !state.is_child.load()) {
    state.is_ending.store(true, std::memory_order_release);
    ring_file(state.bell);
    ::pthread_join(state.thread, nullptr);
  }
  if (state.has_gate.load() && !state.is_child.load()) state.gate->open_for_good();
  if (state.allows_tracing && !state.is_child.load()) ::prctl(PR_SET_PTRACER, 0UL, 0UL, 0UL, 0UL);
  close_file(state.socket);
  unregister_state(state_.get());
}

Gate& Connection::gate() noexcept { return *state_->gate; }

bool Connection::is_alive() const noexcept { return !state_->gate->is_open_for_good(); }

void Connection::attend(void (*look)(void* context), void* context) noexcept {
  state_->look_context = context;
  state_->look.store(look, std::memory_order_release);  // pairs with look_once()
}

}  // namespace weir::scheduler
