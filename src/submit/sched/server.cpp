#include "submit/sched/server.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <memory>
#include <new>
#include <optional>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "base/json.h"
#include "submit/sched/board.h"
#include "submit/sched/bound.h"
#include "submit/sched/chooser.h"
#include "submit/sched/conductor.h"
#include "submit/sched/listener.h"
#include "submit/sched/sched_status.h"
#include "submit/sched/wire.h"

namespace weir::scheduler {
namespace {

constexpr std::int64_t kSilentConnection_ns = 1'000'000'000;  // for connections that send nothing
constexpr std::int64_t kStoppedNs = 50'000'000;  // an active client without a sign of life; it gives one every 20 ms
constexpr std::int64_t kTick_ns = 2'000'000;     // while somebody is active: checks for ends, charges time
constexpr std::int64_t kHeldTick_ns = 500'000;   // while a mechanism keeps a client off the device that may be free
// Connections that have not yet said what they want. The oldest makes way for the next one, so however many are idle,
// whoever says what it wants is heard. Fewer are accepted at a time, so none makes way before it was read.
constexpr std::size_t kMaxSilentConnections = 64;
constexpr int kMaxAccepts = 32;

[[noreturn]] void fail_with_errno(const char* what) { fail(fmt::format("{}: {}", what, std::strerror(errno))); }

const ServerOptions& checked(const ServerOptions& options) {
  check(options.settings);
  if (options.in_flight > kNoBound)
    reject_setting("in_flight", std::to_string(options.in_flight),
                   fmt::format("it goes from 1 to {}; 0: chosen for each client", kNoBound),
                   "It says how many commands are on the device at most when a more urgent client arrives.");
  return options;
}

Descriptor make_eventfd() {
  Descriptor made(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!made) fail_with_errno("cannot make an eventfd");
  return made;
}

bool has_input(int file) {
  pollfd asked{file, POLLIN, 0};
  return ::poll(&asked, 1, 0) > 0;
}

void drain(int eventfd) {
  std::uint64_t rings = 0;
  [[maybe_unused]] const ssize_t taken = ::read(eventfd, &rings, sizeof rings);
}

}  // namespace

struct Server::State {
  struct Unmap {
    void operator()(Board* board) const noexcept { ::munmap(board, sizeof(Board)); }
  };

  // A connection: at first of unknown purpose, then a client's. One that was answered is closed.
  struct ServerConnection {
    Descriptor socket;
    Descriptor process;  // pidfd: a child that was created without fork()'s handlers may hold the socket open
    Peer peer;
    std::int64_t since_ns = 0;
    int seat = -1;
    bool is_gone = false;
  };

  explicit State(const ServerOptions& chosen)
      : options(checked(chosen)),
        conductor(*chosen.policy, chosen.settings),
        chooser({.in_flight = chosen.in_flight}),
        listener(std::in_place, chosen.socket),
        stop_bell(make_eventfd()),
        doorbell(make_eventfd()) {
    if (options.mechanism != nullptr && options.mechanism->open)
      enforcer = options.mechanism->open({options.settings, options.socket, options.mps});
    // Where processes share no MPS, the driver gives the whole device to one after the other.
    has_mps = enforcer != nullptr && !enforcer->mps(begun_ns).is_null();
    confines = options.mechanism != nullptr && options.mechanism->confines && (has_mps || enforcer == nullptr);
    chooser = Chooser({.confines = confines, .in_flight = options.in_flight});
    make_board();
    has_spare();
  }

  void make_board();
  void serve();
  std::int64_t next_wake_ns(std::int64_t now) const;
  void wait(std::int64_t now);
  void accept(std::int64_t now);
  bool close_oldest_silent();
  bool has_spare();
  void refuse(ServerConnection& connection, std::string why);
  void read_requests(ServerConnection& connection, std::int64_t now);
  void seat(ServerConnection& connection, const Request& request, std::int64_t now);
  void unseat(const ServerConnection& connection, std::int64_t now);
  void observe(std::int64_t now);
  void choose(std::int64_t now);
  void publish(std::int64_t now);
  std::string status(std::int64_t now) const;

  // Those that have work and must wait for others.
  std::uint64_t waiting() const { return conductor.active() & ~conductor.running(); }
  bool acts_on_running() const { return enforcer != nullptr && enforcer->acts_on_running(); }
  bool holds_launches() const { return options.mechanism == nullptr || options.mechanism->holds_launches; }

  const ServerOptions options;
  Conductor conductor;
  Chooser chooser;
  std::unique_ptr<Enforcer> enforcer;  // null: the gate alone
  std::optional<Listener> listener;
  Descriptor stop_bell, doorbell, board_file, spare;
  std::unique_ptr<Board, Unmap> board;
  std::vector<ServerConnection> connections;
  std::array<Occupant, kMaxClients> occupants;
  std::array<std::uint64_t, kMaxClients> may_yield_to{};  // by seat: clients that it may have to yield to at some time
  std::array<ClientFacts, kMaxClients> facts{};           // by seat, for the chooser
  std::uint64_t silent = 0;  // active clients that are stopped or stuck: nobody waits for them
  std::uint64_t recent = 0;  // clients that were active within options.recent_ns and are not silent
  std::array<std::int64_t, kMaxClients> last_active_ns{};
  std::int64_t begun_ns = now_ns();
  bool has_mps = false;
  bool confines = false;              // clients' kernels may run in a part of the device
  std::int64_t accepts_again_ns = 0;  // set when no descriptors were left
  std::vector<pollfd> files;
  bool is_stopping = false;
};

void Server::State::make_board() {
  board_file.reset(::memfd_create("weir_sched", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!board_file || ::ftruncate(board_file.get(), sizeof(Board)) != 0) fail_with_errno("cannot make shared memory");
  if (::fcntl(board_file.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0)
    fail_with_errno("cannot seal shared memory");
  void* const memory = ::mmap(nullptr, sizeof(Board), PROT_READ | PROT_WRITE, MAP_SHARED, board_file.get(), 0);
  if (memory == MAP_FAILED) fail_with_errno("cannot map shared memory");
  board.reset(new (memory) Board);
  board->bytes = sizeof(Board);
  // A mechanism that acts on running work has to know at once.
  board->follows_arrivals.store(options.policy->follows_arrivals || acts_on_running() ? 1 : 0);
  board->asks_to_trace.store(acts_on_running() ? 1 : 0);
}

void Server::State::accept(std::int64_t now) {
  for (int accepted = 0; accepted < kMaxAccepts; ++accepted) {
    Descriptor socket(::accept4(listener->get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!socket) {
      if (errno == ECONNABORTED || errno == EINTR) continue;
      const bool is_short = errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS;
      // The kernel reports a lack of descriptors even if nobody wants to connect.
      if (!is_short || !has_input(listener->get())) return;
      if (close_oldest_silent() || std::exchange(spare, {})) continue;
      // Without descriptors the connection stays in the queue: try again later, instead of in a busy loop.
      accepts_again_ns = now + kBeatNs;
      return;
    }
    ServerConnection connection{.socket = std::move(socket), .since_ns = now};
    if (!options.peer(connection.socket.get(), &connection.peer) || connection.peer.user != ::geteuid()) {
      refuse(connection, "this scheduler is another user's");
      continue;
    }
    const auto silent_ones = std::count_if(connections.begin(), connections.end(),
                                           [](const ServerConnection& other) { return other.seat < 0; });
    if (static_cast<std::size_t>(silent_ones) >= kMaxSilentConnections) close_oldest_silent();
    connections.push_back(std::move(connection));
  }
}

bool Server::State::close_oldest_silent() {
  const auto oldest = std::find_if(connections.begin(), connections.end(), [](const ServerConnection& connection) {
    return connection.seat < 0 && !has_input(connection.socket.get());
  });
  if (oldest == connections.end()) return false;
  refuse(*oldest, "this connection asked for nothing, and others came; connect again when there is a request");
  connections.erase(oldest);
  return true;
}

// Keeps a descriptor that is given up when there are no others, so that status and stop are answered even then.
bool Server::State::has_spare() {
  if (!spare) spare.reset(::fcntl(stop_bell.get(), F_DUPFD_CLOEXEC, 0));
  return static_cast<bool>(spare);
}

void Server::State::refuse(ServerConnection& connection, std::string why) {
  send_packet(connection.socket.get(), write_reply({Answer::refused, 0, 0, std::move(why)}));
  connection.is_gone = true;
}

void Server::State::read_requests(ServerConnection& connection, std::int64_t now) {
  std::array<std::byte, kRequestBytes> packet;
  const std::ptrdiff_t size = receive_packet(connection.socket.get(), packet, 0);
  if (size == 0) {
    connection.is_gone = true;
    return;
  }
  // A seated client sends nothing more.
  if (connection.seat >= 0) {
    connection.is_gone = true;
    return;
  }
  Request request;
  const char* wrong =
      size < 0 ? "it is too long" : read_request(std::span(packet).first(static_cast<std::size_t>(size)), &request);
  if (wrong != nullptr) {
    refuse(connection, fmt::format("the message cannot be read: {}", wrong));
    return;
  }
  switch (request.ask) {
    case Ask::join:
      seat(connection, request, now);
      return;
    case Ask::status:
      observe(now);
      if (enforcer != nullptr) enforcer->attend(now);
      send_packet(connection.socket.get(), write_reply({Answer::status, 0, 0, status(now)}));
      connection.is_gone = true;
      return;
    case Ask::stop:
      send_packet(connection.socket.get(), write_reply({Answer::stopping, 0, 0, {}}));
      is_stopping = true;  // and closes this connection last
      return;
  }
}

void Server::State::seat(ServerConnection& connection, const Request& request, std::int64_t now) {
  Descriptor process(connection.peer.pid > 0 ? static_cast<int>(::syscall(SYS_pidfd_open, connection.peer.pid, 0))
                                             : -1);
  if (connection.peer.pid > 0 && !process && errno == ESRCH) {
    connection.is_gone = true;
    return;
  }
  const bool is_short = connection.peer.pid > 0 && !process && (errno == EMFILE || errno == ENFILE);
  if (is_short || !has_spare()) {
    refuse(connection, "the daemon has no file descriptors left; raise its limit (ulimit -n)");
    return;
  }
  const int number = conductor.join(request.terms, now);
  if (number < 0) {
    refuse(connection, fmt::format("all {} seats are taken", kMaxClients));
    return;
  }
  const auto index = static_cast<std::size_t>(number);
  Seat& place = board->seats[index];
  place.arrived_ns.store(0);
  place.alive_ns.store(0);
  place.launches.store(0);
  place.held.store(0);
  place.held_ns.store(0);
  place.paced_ns.store(0);
  place.confinable.store(0);
  place.confined.store(0);
  place.command_ns.store(0);
  place.requests.store(0);
  place.requests_ns.store(0);
  place.request_p99_ns.store(0);
  place.confine.store(0);
  place.part_percent.store(0);
  place.yields_to.store(0);
  place.in_flight.store(0);
  last_active_ns[index] = 0;
  board->active.fetch_and(~(std::uint64_t{1} << number));  // set by a former client that did not know it was gone
  place.is_taken.store(1);
  connection.seat = number;
  connection.process = std::move(process);
  occupants[index] = {static_cast<int>(connection.peer.pid), request.program, now};
  if (enforcer != nullptr) enforcer->join(number, static_cast<int>(connection.peer.pid));
  for (std::uint64_t left = conductor.seated() & ~(std::uint64_t{1} << number); left != 0; left &= left - 1) {
    const auto other = static_cast<std::size_t>(std::countr_zero(left));
    const Terms& theirs = conductor.client(static_cast<int>(other)).terms;
    const auto bit = [](std::size_t of, bool is_set) { return static_cast<std::uint64_t>(is_set) << of; };
    may_yield_to[index] |= bit(other, may_yield(*options.policy, options.settings, request.terms, theirs));
    may_yield_to[other] |= bit(index, may_yield(*options.policy, options.settings, theirs, request.terms));
  }
  // Before the answer: its first command must find the device shared.
  board->beat_ns.store(now);
  publish(now);
  const std::array files_to_send = {board_file.get(), doorbell.get()};
  const Reply reply{Answer::seat, static_cast<std::uint32_t>(number), sizeof(Board), {}};
  if (!send_packet(connection.socket.get(), write_reply(reply), files_to_send)) connection.is_gone = true;
}

void Server::State::unseat(const ServerConnection& connection, std::int64_t now) {
  const auto index = static_cast<std::size_t>(connection.seat);
  const std::uint64_t bit = std::uint64_t{1} << connection.seat;
  conductor.leave(connection.seat, now);
  if (enforcer != nullptr) enforcer->leave(connection.seat);
  may_yield_to[index] = 0;
  for (std::uint64_t& others : may_yield_to) others &= ~bit;
  occupants[index] = {};
  Seat& place = board->seats[index];
  place.is_taken.store(0);
  place.in_flight.store(0);
  place.yields_to.store(0);
  board->active.fetch_and(~bit);
}

void Server::State::observe(std::int64_t now) {
  const std::uint64_t marked = board->active.load(std::memory_order_seq_cst) & conductor.seated();
  std::array<std::int64_t, kMaxClients> arrived{};
  silent = 0;
  for (std::uint64_t left = marked; left != 0; left &= left - 1) {
    const int seat = std::countr_zero(left);
    const Seat& place = board->seats[seat];
    arrived[static_cast<std::size_t>(seat)] = std::min(now, place.arrived_ns.load(std::memory_order_relaxed));
    // Stopped (^Z) or hung: a client that sleeps in its turn must not keep others waiting.
    if (now - place.alive_ns.load(std::memory_order_relaxed) > kStoppedNs) silent |= std::uint64_t{1} << seat;
  }
  conductor.set_active(marked & ~silent, now, arrived.data());
  conductor.advance(now);
  recent = 0;
  for (std::uint64_t left = conductor.seated() & ~silent; left != 0; left &= left - 1) {
    const auto seat = static_cast<std::size_t>(std::countr_zero(left));
    const std::uint64_t bit = std::uint64_t{1} << seat;
    // A request that began and ended since the last look shows by its arrival.
    const std::int64_t arrived_ns = board->seats[seat].arrived_ns.load(std::memory_order_relaxed);
    last_active_ns[seat] = (marked & bit) != 0 ? now : std::max(last_active_ns[seat], std::min(now, arrived_ns));
    if (now - last_active_ns[seat] < options.recent_ns) recent |= bit;
  }
}

// Numbers come from memory that clients write.
void Server::State::choose(std::int64_t now) {
  constexpr auto kRead = std::memory_order_relaxed;
  constexpr std::int64_t kMost_ns = kLongestP99Ns;
  for (std::uint64_t left = conductor.seated(); left != 0; left &= left - 1) {
    const auto seat = static_cast<std::size_t>(std::countr_zero(left));
    const Seat& place = board->seats[seat];
    const std::uint32_t confinable = place.confinable.load(kRead);
    facts[seat] = {.pid = occupants[seat].pid,
                   .terms = conductor.client(static_cast<int>(seat)).terms,
                   .may_yield_to = may_yield_to[seat],
                   .confinable = confinable <= static_cast<std::uint32_t>(Confinable::refused)
                                     ? static_cast<Confinable>(confinable)
                                     : Confinable::unknown,
                   .is_apart = has_mps && !enforcer->use(static_cast<int>(seat)).is_in_use,
                   .command_ns = std::clamp<std::int64_t>(place.command_ns.load(kRead), 0, kMost_ns),
                   .commands = place.launches.load(kRead),
                   .requests = place.requests.load(kRead),
                   .requests_ns = place.requests_ns.load(kRead),
                   .request_p99_ns = std::clamp<std::int64_t>(place.request_p99_ns.load(kRead), 0, kMost_ns)};
  }
  chooser.decide(conductor.seated(), recent, facts, now);
  std::uint64_t beside = 0;
  for (std::uint64_t left = conductor.seated(); left != 0; left &= left - 1) {
    const int seat = std::countr_zero(left);
    if (chooser.choice(seat).confine != Confine::never) beside |= std::uint64_t{1} << seat;
  }
  conductor.set_beside(beside);
}

void Server::State::publish(std::int64_t now) {
  const std::uint64_t present = holds_launches() ? conductor.seated() & ~silent : 0;
  bool has_changed = false;
  // Clears old bits first, then sets new ones: between one set of masks and the other nobody waits in a circle, even if
  // this process is stopped or killed between two stores.
  for (const bool is_new : {false, true}) {
    for (std::uint64_t left = conductor.seated(); left != 0; left &= left - 1) {
      const int seat = std::countr_zero(left);
      std::atomic<std::uint64_t>& place = board->seats[seat].yields_to;
      const std::uint64_t wanted = conductor.yields_to(seat) & present, current = place.load();
      const std::uint64_t next = is_new ? wanted : current & wanted;
      if (next == current) continue;
      place.store(next, std::memory_order_seq_cst);  // pairs with Gate::holds(), after a sleeper's flag
      has_changed = true;
    }
  }
  choose(now);
  board->recent.store(recent, std::memory_order_relaxed);  // read by attending threads, which look again soon
  for (std::uint64_t left = conductor.seated(); left != 0; left &= left - 1) {
    const auto seat = static_cast<std::size_t>(std::countr_zero(left));
    // Clients that do nothing must cost nothing: the bound is for those that come and go.
    board->seats[seat].is_loose.store((may_yield_to[seat] & recent) == 0 ? 1 : 0, std::memory_order_relaxed);
    const Choice& choice = chooser.choice(static_cast<int>(seat));
    // Where a launch reads one and then the other, it finds a part whenever it is to be confined.
    // Before it is confined, a client that might be makes the part ready and says whether that works.
    const bool may_be = confines && !facts[seat].terms.is_isolated;
    const std::uint32_t percent = choice.part_percent != 0 ? choice.part_percent : may_be ? Chooser::kFirstPart : 0;
    if (percent != 0) board->seats[seat].part_percent.store(percent, std::memory_order_relaxed);
    const auto confine = static_cast<std::uint32_t>(choice.confine);
    if (board->seats[seat].confine.load(std::memory_order_relaxed) != confine) {
      board->seats[seat].confine.store(confine, std::memory_order_release);
      has_changed = true;
    }
    const std::uint32_t bound = choice.in_flight != 0 && !holds_launches() ? kNoBound : choice.in_flight;
    if (board->seats[seat].in_flight.load() == bound) continue;
    board->seats[seat].in_flight.store(bound, std::memory_order_seq_cst);
    has_changed = true;
  }
  if (has_changed) wake_waiting(*board);
}

std::string Server::State::status(std::int64_t now) const {
  return to_line(status_document({&conductor, board.get(), &occupants, options.mechanism, enforcer.get(),
                                  static_cast<int>(::getpid()), begun_ns, now, options.in_flight, &chooser, confines}));
}

std::int64_t Server::State::next_wake_ns(std::int64_t now) const {
  std::int64_t next = kNever;
  if (accepts_again_ns > now) next = accepts_again_ns;
  for (const ServerConnection& connection : connections) {
    if (connection.seat < 0) next = std::min(next, connection.since_ns + kSilentConnection_ns);
  }
  if (enforcer != nullptr && conductor.clients() > 0) next = std::min(next, enforcer->attends_again_ns());
  // A single client waits for nobody: no heartbeat, and no power drawn.
  if (conductor.clients() < 2) return next;
  const bool is_active = (board->active.load() & conductor.seated()) != 0;
  const bool is_held = acts_on_running() && waiting() != 0;
  next = std::min(next, now + (is_held ? kHeldTick_ns : is_active ? kTick_ns : kBeatNs));
  return std::min(next, conductor.next_change_ns());
}

void Server::State::wait(std::int64_t now) {
  files.clear();
  files.push_back({stop_bell.get(), POLLIN, 0});
  files.push_back({doorbell.get(), POLLIN, 0});
  files.push_back({accepts_again_ns > now ? -1 : listener->get(), POLLIN, 0});
  // Only what is open: the kernel refuses more entries than a process may have descriptors.
  for (const ServerConnection& connection : connections) files.push_back({connection.socket.get(), POLLIN, 0});
  for (const ServerConnection& connection : connections)
    if (connection.process) files.push_back({connection.process.get(), POLLIN, 0});
  if (enforcer != nullptr && enforcer->wake_file() >= 0) files.push_back({enforcer->wake_file(), POLLIN, 0});
  const std::int64_t next = next_wake_ns(now);
  timespec most{};
  const std::int64_t left = std::max<std::int64_t>(0, next - now);
  most.tv_sec = static_cast<std::time_t>(left / 1'000'000'000);
  most.tv_nsec = static_cast<long>(left % 1'000'000'000);
  if (::ppoll(files.data(), files.size(), next == kNever ? nullptr : &most, nullptr) < 0) {
    if (errno != EINTR) fail_with_errno("ppoll");
    for (pollfd& file : files) file.revents = 0;
  }
}

void Server::State::serve() {
  while (!is_stopping) {
    wait(now_ns());
    const std::int64_t now = now_ns();
    board->beat_ns.store(now, std::memory_order_relaxed);  // read by threads that wait at a gate
    if (files[0].revents != 0) is_stopping = true;
    if (files[1].revents != 0) drain(doorbell.get());
    std::size_t process = 3 + connections.size();
    for (std::size_t i = 0; i < connections.size(); ++i) {
      ServerConnection& connection = connections[i];
      if (connection.process && files[process++].revents != 0)
        connection.is_gone = true;
      else if (files[3 + i].revents != 0)
        read_requests(connection, now);
      else if (connection.seat < 0 && now - connection.since_ns >= kSilentConnection_ns)
        refuse(connection, "this connection asked for nothing in a second; connect again when there is a request");
    }
    const std::uint64_t before = conductor.seated();
    std::erase_if(connections, [&](const ServerConnection& connection) {
      if (connection.is_gone && connection.seat >= 0) unseat(connection, now);
      return connection.is_gone;
    });
    if (files[2].revents != 0) accept(now);
    // The last file is its own, if it has one; a client's end may concern it as well.
    if (enforcer != nullptr && (files.back().revents != 0 || now >= enforcer->attends_again_ns()))
      enforcer->attend(now);
    observe(now);
    publish(now);
    if (enforcer != nullptr) enforcer->hold(waiting(), now);
    // A process that died may have cleared the sleepers' flag without waking them.
    if (conductor.seated() != before) wake_all_clients(*board);
  }
}

Server::Server(const ServerOptions& options) : state_(std::make_unique<State>(options)) {}

Server::~Server() = default;

void Server::serve() {
  State& state = *state_;
  const int slack = ::prctl(PR_GET_TIMERSLACK);
  ::prctl(PR_SET_TIMERSLACK, 1'000UL);  // slices are as short as 10 us
  state.serve();
  if (slack > 0) ::prctl(PR_SET_TIMERSLACK, static_cast<unsigned long>(slack));
  if (state.acts_on_running()) state.enforcer.reset();         // puts everybody back on the device
  state.board->is_closed.store(1, std::memory_order_seq_cst);  // pairs with Gate::holds()
  wake_all_clients(*state.board);
  state.enforcer.reset();  // others may take a while to end what they started
  // The client that asked for the end sees its connection closed last, and may then start the next daemon.
  state.listener.reset();
  state.connections.clear();
}

void Server::stop() noexcept {
  const std::uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = ::write(state_->stop_bell.get(), &one, sizeof one);
}

std::filesystem::path default_socket(const char* runtime_folder, unsigned user) {
  const std::filesystem::path folder = runtime_folder != nullptr && runtime_folder[0] == '/'
                                           ? std::filesystem::path(runtime_folder) / "weir"
                                           : std::filesystem::path(fmt::format("/tmp/weir-{}", user));
  return folder / "sched.sock";
}

}  // namespace weir::scheduler
