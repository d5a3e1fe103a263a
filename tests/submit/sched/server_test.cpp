#include "submit/sched/server.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <fstream>
#include <utility>
#include <vector>

#include "submit/sched/daemon.h"
#include "support/message_of.h"

namespace weir::testing {
namespace {

using namespace weir::scheduler;

Json client_of(const Json& status, std::string_view program) {
  for (const Json& client : status.at("clients")) {
    if (client.at("program") == program) return client;
  }
  return nullptr;
}

Descriptor connected(const std::string& path) {
  Peer peer;
  std::string reason;
  return connect_to_daemon(path, peer_of, &peer, &reason);
}

// What the daemon says to a connection that it closes.
std::string refusal(const Descriptor& socket) {
  std::array<std::byte, 1024> buffer;
  const std::ptrdiff_t size = receive_packet(socket.get(), buffer, now_ns() + 200'000'000'000);
  Reply reply;
  if (size <= 0 || read_reply(std::span(buffer).first(static_cast<std::size_t>(size)), &reply) != nullptr) return {};
  return reply.answer == Answer::refused ? reply.text : std::string();
}

TEST(Server, lets_a_client_alone_alone) {
  const SocketFolder folder;
  ServerThread server(folder.options());
  const auto first = join(folder.socket());
  ASSERT_NE(first, nullptr);
  EXPECT_TRUE(first->is_alive());
  EXPECT_FALSE(first->gate().is_shared());
  {
    const auto second = join(folder.socket());
    ASSERT_NE(second, nullptr);
    EXPECT_TRUE(second->gate().is_shared());
    EXPECT_TRUE(first->gate().is_shared());
  }
  until([&] { return !first->gate().is_shared(); });
}

TEST(Server, holds_who_has_less_priority_while_the_other_is_active) {
  const SocketFolder folder;
  ServerOptions options = folder.options();
  options.settings.ageing_ns = 0;
  ServerThread server(options);
  const auto urgent = join(folder.socket(), kUrgent, "urgent");
  const auto patient = join(folder.socket(), kPatient, "patient");
  ASSERT_TRUE(urgent && patient);
  urgent->gate().enter();
  std::atomic<bool> is_through{false};
  std::thread thread([&] {
    patient->gate().enter();
    is_through = true;
    patient->gate().leave();
  });
  // Nothing comes through, unless somebody here had no core for 80 ms.
  until([&] { return patient->gate().pending() == 1; });
  Json status;
  until([&] {
    status = ask_status(folder.socket());
    return client_of(status, "patient").at("is_active") == true || is_through;
  });
  if (!is_through) {
    const Json waits_for = client_of(status, "patient").at("waits_for");
    ASSERT_EQ(waits_for.size(), 1U);
    EXPECT_EQ(waits_for[0].at("seat"), client_of(status, "urgent").at("seat"));
    EXPECT_EQ(waits_for[0].at("pid"), ::getpid());
  }
  urgent->gate().leave();
  thread.join();
  EXPECT_EQ(patient->gate().held(), 1U);
  EXPECT_EQ(urgent->gate().held(), 0U);
}

TEST(Server, bounds_only_those_who_may_have_to_make_way) {
  const SocketFolder folder;
  ServerOptions options = folder.options();
  options.in_flight = 3;
  ServerThread server(options);
  const auto urgent = join(folder.socket(), kUrgent, "urgent");
  const auto patient = join(folder.socket(), kPatient, "patient");
  const Json status = ask_status(folder.socket());
  EXPECT_EQ(client_of(status, "patient").at("in_flight"), 3);
  EXPECT_GT(client_of(status, "urgent").at("in_flight"), 100);
}

// What a client says of its commands reaches its seat as a choice, and people as words.
TEST(Server, chooses_how_a_client_makes_way_and_says_why) {
  const SocketFolder folder;
  const Mechanism parts{.name = "parts", .summary = {}, .notice = {}, .open = {}, .confines = true};
  ServerOptions options = folder.options();
  options.mechanism = &parts;
  ServerThread server(options);
  const auto urgent = join(folder.socket(), {.priority = 10, .p99_ns = 5'000'000}, "urgent");
  const auto patient = join(folder.socket(), kPatient, "patient");
  Json seen = client_of(ask_status(folder.socket()), "patient");
  EXPECT_EQ(seen.at("confine"), "never");
  EXPECT_EQ(seen.at("in_flight"), 2);
  urgent->gate().enter();
  until([&] {
    seen = client_of(ask_status(folder.socket()), "patient");
    return seen.at("choice") != "nobody_about";
  });
  EXPECT_EQ(seen.at("choice"), "not_confinable");
  EXPECT_EQ(seen.at("confinable"), "unknown");
  EXPECT_EQ(seen.at("command_ns"), nullptr);
  EXPECT_NE(seen.at("choice_reason").get<std::string>().find("launched nothing yet"), std::string::npos) << seen;
  urgent->gate().leave();
  const Json status = ask_status(folder.socket());
  EXPECT_EQ(status.at("confines"), true);
  EXPECT_EQ(status.at("in_flight"), nullptr);
  EXPECT_EQ(client_of(status, "urgent").at("request_bound_ns").at("p99"), 5'000'000);
  EXPECT_EQ(client_of(status, "urgent").at("bound_state"), "unknown");
  EXPECT_EQ(client_of(status, "patient").at("bound_state"), "none");
  EXPECT_EQ(client_of(status, "patient").at("bound_reason"), nullptr);
}

// A client that is a test: it holds a seat and writes to the board what a library would.
struct RawClient {
  RawClient(const std::string& path, const Terms& terms, const char* program) : socket(connected(path)) {
    send_packet(socket.get(), write_request({Ask::join, terms, program}));
    std::array<std::byte, 1024> answer;
    std::array<Descriptor, 2> descriptors;
    const std::ptrdiff_t size = receive_packet(socket.get(), answer, now_ns() + 200'000'000'000, descriptors);
    Reply reply;
    if (size <= 0 || read_reply(std::span(answer).first(static_cast<std::size_t>(size)), &reply) != nullptr) return;
    void* const memory = ::mmap(nullptr, sizeof(Board), PROT_READ | PROT_WRITE, MAP_SHARED, descriptors[0].get(), 0);
    if (memory == MAP_FAILED) return;
    board = static_cast<Board*>(memory);
    seat = &board->seats[reply.seat];
    bit = std::uint64_t{1} << reply.seat;
  }
  ~RawClient() {
    if (board != nullptr) ::munmap(board, sizeof(Board));
  }
  RawClient(const RawClient&) = delete;
  RawClient& operator=(const RawClient&) = delete;

  void be_active() const {
    seat->arrived_ns = seat->alive_ns = now_ns();
    board->active |= bit;
  }
  Confine confine() const { return static_cast<Confine>(seat->confine.load()); }

  Descriptor socket;
  Board* board = nullptr;
  Seat* seat = nullptr;
  std::uint64_t bit = 0;
};

TEST(Server, confines_who_can_be_confined_while_somebody_who_comes_first_is_about) {
  const SocketFolder folder;
  const Mechanism parts{.name = "parts", .summary = {}, .notice = {}, .open = {}, .confines = true};
  ServerOptions options = folder.options();
  options.mechanism = &parts;
  ServerThread server(options);
  const RawClient urgent(folder.socket(), kUrgent, "urgent"), patient(folder.socket(), kPatient, "patient");
  ASSERT_TRUE(urgent.seat != nullptr && patient.seat != nullptr);
  patient.seat->confinable = static_cast<std::uint32_t>(Confinable::yes);
  patient.seat->command_ns = 1'600'000;
  patient.be_active();
  EXPECT_EQ(patient.confine(), Confine::never);
  until([&] {
    urgent.be_active();
    patient.be_active();
    return patient.confine() == Confine::always;
  });
  EXPECT_EQ(patient.seat->part_percent.load(), 85U);
  EXPECT_EQ(urgent.confine(), Confine::never);
  patient.seat->command_ns = 180'000;
  until([&] {
    urgent.be_active();
    patient.be_active();
    return patient.confine() == Confine::beside;
  });
  EXPECT_EQ(patient.seat->part_percent.load(), 80U);
  const Json seen = client_of(ask_status(folder.socket()), "patient");
  EXPECT_EQ(seen.at("command_ns"), 180'000);
  EXPECT_EQ(seen.at("confinable"), "yes");
  // Numbers that no library would write.
  patient.seat->confinable = 99;
  patient.seat->command_ns = -5;
  urgent.board->active &= ~urgent.bit;
  until([&] { return patient.confine() == Confine::never; });
  EXPECT_EQ(client_of(ask_status(folder.socket()), "patient").at("confinable"), "unknown");
}

// A client that holds a seat and does nothing must not slow the others down.
TEST(Server, idle_clients_bind_nobody) {
  for (const char* policy : {"priority", "weighted_fair", "time_slice", "fifo", "earliest_deadline"}) {
    const SocketFolder folder;
    ServerOptions options = folder.options(policy);
    options.in_flight = 2;
    ServerThread server(options);
    const auto patient = join(folder.socket(), kPatient, "patient");
    std::vector<std::unique_ptr<Connection>> idle;
    for (int i = 0; i < 15; ++i)
      idle.push_back(join(folder.socket(), {.priority = 10, .deadline_ns = 1'000'000}, "idle"));
    Gate& gate = patient->gate();
    ASSERT_TRUE(gate.is_shared());
    EXPECT_EQ(client_of(ask_status(folder.socket()), "patient").at("in_flight"), 2);
    until([&] {
      for (int i = 0; i < 1000; ++i) {
        gate.enter();
        gate.leave();
      }
      return gate.bound() > 100;
    });
    EXPECT_FALSE(gate.has_company());
    // One of them has something to do: from then on the bound is in force, until it has been idle for long.
    idle.back()->gate().enter();
    until([&] { return gate.bound() == 2 && gate.has_company(); });
    idle.back()->gate().leave();
    until([&] { return gate.is_loose() && !gate.has_company(); });
  }
}

TEST(Server, ages_one_that_waits_behind_a_client_that_never_ends) {
  const SocketFolder folder;
  ServerOptions options = folder.options();
  options.settings.ageing_ns = 10'000'000;
  ServerThread server(options);
  const auto urgent = join(folder.socket(), kUrgent);
  const auto patient = join(folder.socket(), kPatient);
  urgent->gate().enter();
  patient->gate().enter();  // ends, or this test does not
  EXPECT_EQ(patient->gate().held(), 1U);
  patient->gate().leave();
  urgent->gate().leave();
}

TEST(Server, takes_turns_where_the_policy_does) {
  for (const char* policy : {"time_slice", "weighted_fair", "fifo", "earliest_deadline"}) {
    const SocketFolder folder;
    ServerThread server(folder.options(policy));
    const auto a = join(folder.socket()), b = join(folder.socket());
    const auto work = [&](Connection& connection) {
      // Leaves its request now and then: under fifo a client that never does keeps the device until others age.
      for (int i = 0; i < 50; ++i) {
        connection.gate().enter();
        connection.gate().leave();
        if (i % 10 == 9) std::this_thread::sleep_for(std::chrono::microseconds(300));
      }
    };
    std::thread first([&] { work(*a); }), second([&] { work(*b); });
    first.join();
    second.join();
    EXPECT_EQ(a->gate().launches() + b->gate().launches(), 100U) << policy;
  }
}

TEST(Server, says_who_is_there_with_names_fit_for_a_terminal) {
  const SocketFolder folder;
  ServerThread server(folder.options("weighted_fair"));
  Json status = ask_status(folder.socket());
  EXPECT_EQ(status.at("schema"), "weir.sched_status/1");
  EXPECT_EQ(status.at("policy"), "weighted_fair");
  EXPECT_EQ(status.at("pid"), ::getpid());
  EXPECT_EQ(status.at("clients").size(), 0U);
  const auto client = join(folder.socket(), {.priority = 3, .weight = 2.5, .deadline_ns = 10'000'000},
                           "evil\x1b[31m\n" + std::string(200, 'x'));
  status = ask_status(folder.socket());
  ASSERT_EQ(status.at("clients").size(), 1U);
  const Json& seen = status.at("clients")[0];
  EXPECT_EQ(seen.at("program").get<std::string>().substr(0, 10), "evil?[31m?");
  EXPECT_LE(seen.at("program").get<std::string>().size(), kMaxProgramBytes);
  EXPECT_EQ(seen.at("priority"), 3);
  EXPECT_EQ(seen.at("weight"), 2.5);
  EXPECT_EQ(seen.at("deadline_ns"), 10'000'000);
  EXPECT_EQ(seen.at("is_active"), nullptr) << "alone: not counted";
}

TEST(Server, status_with_all_seats_taken_fits) {
  const SocketFolder folder;
  ServerThread server(folder.options());
  std::vector<Descriptor> sockets;
  for (int i = 0; i < kMaxClients; ++i) {
    sockets.push_back(connected(folder.socket()));
    ASSERT_TRUE(sockets.back());
    // Each of these characters takes six bytes in a document.
    ASSERT_TRUE(send_packet(sockets.back().get(), write_request({Ask::join, {}, std::string(64, '"')})));
    std::array<std::byte, 1024> answer;
    ASSERT_GT(receive_packet(sockets.back().get(), answer, now_ns() + 200'000'000'000), 0);
  }
  EXPECT_EQ(ask_status(folder.socket()).at("clients").size(), static_cast<std::size_t>(kMaxClients));
  std::string reason;
  EXPECT_EQ(Connection::open(folder.socket(), {}, "one too many", &reason), nullptr);
  EXPECT_NE(reason.find("64 seats"), std::string::npos) << reason;
  sockets.pop_back();
  until([&] { return join(folder.socket()) != nullptr; });
}

TEST(Server, survives_garbage) {
  const SocketFolder folder;
  ServerThread server(folder.options());
  const auto client = join(folder.socket());
  const std::string good = write_request({Ask::join, {}, "x"});
  std::string wrong_magic = good, wrong_version = good, wrong_kind = good;
  wrong_magic[0] ^= 1;
  wrong_version[4] ^= 1;
  wrong_kind[6] = 9;
  for (const std::string& packet : {std::string("x"), std::string(127, 'a'), std::string(4096, '\xff'), wrong_magic,
                                    wrong_version, wrong_kind, good.substr(1), good + "y"}) {
    const Descriptor socket = connected(folder.socket());
    ASSERT_TRUE(socket);
    ASSERT_TRUE(send_packet(socket.get(), packet));
    std::array<std::byte, 1024> buffer;
    const std::ptrdiff_t size = receive_packet(socket.get(), buffer, now_ns() + 200'000'000'000);
    ASSERT_GT(size, 0);
    Reply reply;
    ASSERT_EQ(read_reply(std::span(buffer).first(static_cast<std::size_t>(size)), &reply), nullptr);
    EXPECT_EQ(reply.answer, Answer::refused);
    EXPECT_EQ(receive_packet(socket.get(), buffer, now_ns() + 200'000'000'000), 0) << "and the connection is ended";
  }
  EXPECT_EQ(ask_status(folder.socket()).at("clients").size(), 1U);
  EXPECT_TRUE(client->is_alive());
}

TEST(Server, closes_descriptors_that_nobody_asked_for_and_drops_clients_that_talk) {
  const SocketFolder folder;
  ServerThread server(folder.options());
  const Descriptor socket = connected(folder.socket());
  const std::array sent = {socket.get()};
  ASSERT_TRUE(send_packet(socket.get(), write_request({Ask::join, {}, "x"}), sent));
  std::array<std::byte, 1024> buffer;
  ASSERT_GT(receive_packet(socket.get(), buffer, now_ns() + 200'000'000'000), 0);
  ASSERT_TRUE(send_packet(socket.get(), write_request({Ask::join, {}, "again"})));
  EXPECT_EQ(receive_packet(socket.get(), buffer, now_ns() + 200'000'000'000), 0);
  EXPECT_EQ(ask_status(folder.socket()).at("clients").size(), 0U);
}

TEST(Server, sends_away_who_says_nothing) {
  const SocketFolder folder;
  ServerThread server(folder.options());
  const Descriptor socket = connected(folder.socket());
  EXPECT_NE(refusal(socket).find("asked for nothing in a second"), std::string::npos);
  std::byte nothing;
  EXPECT_EQ(receive_packet(socket.get(), {&nothing, 1}, now_ns() + 200'000'000'000), 0);
}

// However many connections of this user say nothing: whoever asks for something is answered.
TEST(Server, idle_connections_keep_nobody_out) {
  rlimit limit{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &limit), 0);
  const rlim_t before = std::exchange(limit.rlim_cur, std::min<rlim_t>(limit.rlim_max, 4096));
  ::setrlimit(RLIMIT_NOFILE, &limit);
  for (const std::size_t count : {std::size_t{16}, std::size_t{1000}}) {
    if (limit.rlim_cur < count + 300) continue;
    const SocketFolder folder;
    ServerThread server(folder.options());
    const auto first = join(folder.socket(), {}, "first");
    std::vector<Descriptor> idle;
    while (idle.size() < count) {
      idle.push_back(connected(folder.socket()));
      ASSERT_TRUE(idle.back());
      if (idle.size() % 50 == 0) {
        EXPECT_EQ(ask_status(folder.socket()).at("clients").size(), 1U);
      }
    }
    const auto second = join(folder.socket(), {}, "second");
    ASSERT_TRUE(second);
    EXPECT_EQ(ask_status(folder.socket()).at("clients").size(), 2U);
    EXPECT_TRUE(first->is_alive());
    EXPECT_NE(refusal(idle.front()).find("asked for nothing"), std::string::npos);
    ask_stop(folder.socket());
    server.join();
  }
  limit.rlim_cur = before;
  ::setrlimit(RLIMIT_NOFILE, &limit);
}

// A daemon that has no descriptors left refuses seats, and answers those who ask for its status or its end.
TEST(Server, answers_without_descriptors) {
  const SocketFolder folder;
  Child daemon([&] {
    ::close_range(3, ~0U, 0);
    const rlimit few{16, 16};
    ::setrlimit(RLIMIT_NOFILE, &few);
    Server server(folder.options());
    server.serve();
    return 0;
  });
  join_soon(folder.socket());
  std::vector<std::unique_ptr<Connection>> clients;
  std::vector<Descriptor> idle;
  std::string reason;
  for (int i = 0; i < 12; ++i) {
    if (auto client = Connection::open(folder.socket(), {}, "x", &reason)) clients.push_back(std::move(client));
    idle.push_back(connected(folder.socket()));
  }
  EXPECT_GT(clients.size(), 1U);
  EXPECT_NE(reason.find("no file descriptors left"), std::string::npos) << reason;
  EXPECT_EQ(ask_status(folder.socket()).at("clients").size(), clients.size());
  for (int i = 0; i < 20; ++i) idle.push_back(connected(folder.socket()));
  EXPECT_EQ(ask_status(folder.socket()).at("clients").size(), clients.size());
  ask_stop(folder.socket());
  EXPECT_EQ(daemon.wait(), 0);
}

TEST(Server, refuses_another_user) {
  const SocketFolder folder;
  ServerOptions options = folder.options();
  options.peer = [](int, Peer* peer) noexcept {
    *peer = {1, ::geteuid() + 1};
    return true;
  };
  ServerThread server(options);
  std::string reason;
  EXPECT_EQ(Connection::open(folder.socket(), {}, "x", &reason), nullptr);
  EXPECT_NE(reason.find("another user's"), std::string::npos) << reason;
}

TEST(Server, two_cannot_listen_at_one_socket) {
  const SocketFolder folder;
  ServerThread server(folder.options());
  const std::string message = message_of([&] { Server second(folder.options()); });
  EXPECT_NE(message.find("already running"), std::string::npos) << message;
  EXPECT_NE(message.find("pid " + std::to_string(::getpid())), std::string::npos) << message;
  EXPECT_TRUE(join(folder.socket())) << "the first one is not disturbed";
}

TEST(Server, of_many_that_start_at_once_one_wins) {
  const SocketFolder folder;
  std::vector<std::unique_ptr<Child>> children;
  for (int i = 0; i < 4; ++i) {
    children.push_back(std::make_unique<Child>([&] {
      try {
        Server server(folder.options());
        server.serve();
        return 0;
      } catch (const Error&) {
        return 2;
      }
    }));
  }
  join_soon(folder.socket());
  // Those that lost end by themselves; the winner when it is told to.
  int lost = 0;
  while (lost < 3) {
    int status = 0;
    const pid_t ended = ::waitpid(-1, &status, 0);
    ASSERT_GT(ended, 0);
    EXPECT_EQ(WEXITSTATUS(status), 2);
    ++lost;
  }
  ask_stop(folder.socket());
  int status = 0;
  ASSERT_GT(::waitpid(-1, &status, 0), 0);
  EXPECT_EQ(WEXITSTATUS(status), 0);
  for (auto& child : children) child->forget();
}

TEST(Server, replaces_a_stale_socket) {
  const SocketFolder folder;
  {
    Child child([&] {
      Server server(folder.options());
      server.serve();
      return 0;
    });
    join_soon(folder.socket());
    child.send(SIGKILL);
    EXPECT_EQ(child.wait(), -SIGKILL);
  }
  struct stat facts{};
  ASSERT_EQ(::lstat(folder.socket().c_str(), &facts), 0) << "it was left behind";
  ServerThread server(folder.options());
  EXPECT_TRUE(join(folder.socket()));
  ASSERT_EQ(::lstat(folder.socket().c_str(), &facts), 0);
  EXPECT_EQ(facts.st_mode & 07777, 0600U);
}

TEST(Server, leaves_files_that_are_no_sockets_alone) {
  const SocketFolder folder;
  std::ofstream(folder.socket()) << "precious";
  EXPECT_NE(message_of([&] { Server server(folder.options()); }).find("not a socket of yours"), std::string::npos);
  EXPECT_TRUE(std::filesystem::is_regular_file(folder.socket()));
}

TEST(Server, wants_a_folder_of_its_own) {
  const SocketFolder folder;
  ServerOptions options = folder.options();
  options.socket = folder.folder() / "made" / "sched.sock";
  {
    ServerThread server(options);
    struct stat facts{};
    ASSERT_EQ(::stat((folder.folder() / "made").c_str(), &facts), 0);
    EXPECT_EQ(facts.st_mode & 07777, 0700U);
  }
  std::filesystem::permissions(folder.folder() / "made", std::filesystem::perms::all);
  EXPECT_NE(message_of([&] { Server server(options); }).find("open to others"), std::string::npos);
  options.socket = folder.folder() / std::string(120, 'x');
  EXPECT_NE(message_of([&] { Server server(options); }).find("107 bytes"), std::string::npos);
}

TEST(Server, rejects_bounds_and_settings_out_of_range) {
  const SocketFolder folder;
  ServerOptions options = folder.options();
  options.in_flight = kNoBound + 1;
  EXPECT_NE(message_of([&] { Server server(options); }).find("in_flight"), std::string::npos);
  options = folder.options();
  options.settings.slice_ns = 0;
  EXPECT_NE(message_of([&] { Server server(options); }).find("slice"), std::string::npos);
}

TEST(Server, stops_when_told_and_another_can_start_at_once) {
  const SocketFolder folder;
  for (int i = 0; i < 3; ++i) {
    ServerThread server(folder.options());
    const auto client = join(folder.socket());
    ASSERT_TRUE(client);
    ask_stop(folder.socket());
    EXPECT_FALSE(std::filesystem::exists(folder.socket()));
    until([&] { return !client->is_alive(); });
    server.join();
  }
  EXPECT_NE(message_of([&] { ask_status(folder.socket()); }).find("no daemon listens"), std::string::npos);
  EXPECT_NE(message_of([&] { ask_stop(folder.socket()); }).find("no daemon listens"), std::string::npos);
}

TEST(Server, default_socket_is_the_users) {
  EXPECT_EQ(default_socket("/run/user/7", 7), "/run/user/7/weir/sched.sock");
  EXPECT_EQ(default_socket(nullptr, 7), "/tmp/weir-7/sched.sock");
  EXPECT_EQ(default_socket("", 7), "/tmp/weir-7/sched.sock");
  EXPECT_EQ(default_socket("relative", 7), "/tmp/weir-7/sched.sock");
}

}  // namespace
}  // namespace weir::testing
