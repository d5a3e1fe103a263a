#include "submit/sched/connection.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include <array>
#include <atomic>
#include <functional>

#include "submit/sched/board.h"
#include "submit/sched/daemon.h"

namespace weir::testing {
namespace {

using namespace weir::scheduler;

// A daemon that says what a test wants it to, once.
class FalseDaemon {
 public:
  FalseDaemon(const std::string& path, std::function<void(int socket)> answer)
      : listener_(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0)) {
    sockaddr_un address;
    EXPECT_TRUE(address_of(path, &address));
    EXPECT_EQ(::bind(listener_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
    EXPECT_EQ(::listen(listener_.get(), 8), 0);
    thread_ = std::thread([this, answer = std::move(answer)] {
      const Descriptor socket(::accept(listener_.get(), nullptr, nullptr));
      std::array<std::byte, 1024> hello;
      if (socket && receive_packet(socket.get(), hello, now_ns() + 200'000'000'000) > 0) answer(socket.get());
    });
  }
  ~FalseDaemon() {
    ::shutdown(listener_.get(), SHUT_RDWR);
    thread_.join();
  }

 private:
  Descriptor listener_;
  std::thread thread_;
};

std::string reason_of(const std::string& socket, PeerOf peer = peer_of) {
  std::string reason;
  EXPECT_EQ(Connection::open(socket, {}, "x", &reason, peer), nullptr);
  return reason;
}

Descriptor memory(std::size_t bytes, int seals) {
  Descriptor file(::memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  EXPECT_EQ(::ftruncate(file.get(), static_cast<off_t>(bytes)), 0);
  EXPECT_EQ(::fcntl(file.get(), F_ADD_SEALS, seals), 0);
  return file;
}

std::string seat_reply(std::uint32_t seat = 0) { return write_reply({Answer::seat, seat, sizeof(Board), {}}); }

TEST(Connection, says_why_there_is_none) {
  const SocketFolder folder;
  EXPECT_NE(reason_of(folder.socket()).find("no daemon listens"), std::string::npos);
  EXPECT_NE(reason_of("/no/such/folder/sched.sock").find("no daemon listens"), std::string::npos);
  EXPECT_NE(reason_of(std::string(300, 'x')).find("107 bytes"), std::string::npos);
  EXPECT_NE(reason_of("").find("107 bytes"), std::string::npos);
  EXPECT_NE(reason_of((folder.folder() / "..").string()).find("is not a socket"), std::string::npos);
  std::string reason;
  EXPECT_EQ(Connection::open(folder.socket(), {.priority = 99}, "x", &reason), nullptr);
  EXPECT_NE(reason.find("out of range"), std::string::npos);
}

TEST(Connection, does_not_trust_a_folder_that_others_may_write) {
  const SocketFolder folder;
  ServerThread server(folder.options());
  std::filesystem::permissions(folder.folder(), std::filesystem::perms::all);
  EXPECT_NE(reason_of(folder.socket()).find("others may write"), std::string::npos);
}

TEST(Connection, refuses_a_daemon_of_another_user) {
  const SocketFolder folder;
  ServerThread server(folder.options());
  const PeerOf other = [](int, Peer* peer) noexcept {
    *peer = {1, ::geteuid() + 1};
    return true;
  };
  EXPECT_NE(reason_of(folder.socket(), other).find("another user's"), std::string::npos);
}

TEST(Connection, uses_no_board_that_is_not_what_it_should_be) {
  const int sealed = F_SEAL_SHRINK | F_SEAL_GROW;
  const auto answer = [](const std::string& packet, int board, int bell) {
    return [=](int socket) {
      const std::array files = {board, bell};
      send_packet(socket, packet, std::span(files).first(board < 0 ? 0 : 2));
      std::byte nothing;
      receive_packet(socket, {&nothing, 1}, now_ns() + 200'000'000'000);
    };
  };
  const Descriptor bell(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)), blocking(::eventfd(0, EFD_CLOEXEC));
  const Descriptor empty = memory(sizeof(Board), sealed);  // no magic
  const Descriptor small = memory(4096, sealed), loose = memory(sizeof(Board), 0);
  const Descriptor no_memory(::open("/dev/null", O_RDWR | O_CLOEXEC));
  const struct {
    std::function<void(int)> answer;
    const char* expected;
  } cases[] = {
      {answer(seat_reply(), empty.get(), bell.get()), "another version"},
      {answer(seat_reply(), small.get(), bell.get()), "another size"},
      {answer(seat_reply(), loose.get(), bell.get()), "another size"},
      {answer(seat_reply(), no_memory.get(), bell.get()), "another size"},
      {answer(seat_reply(), empty.get(), blocking.get()), "without a board"},
      {answer(seat_reply(), -1, -1), "without a board"},
      {answer(seat_reply(64), empty.get(), bell.get()), "no such seat"},
      {answer("nonsense", -1, -1), "too short"},
      {answer(write_reply({Answer::stopping, 0, 0, {}}), -1, -1), "gave no seat"},
      {answer(write_reply({Answer::refused, 0, 0, "b\x1b]0;ad"}), -1, -1), "refused: b?]0;ad"},
      {[](int) {}, "ended the connection"},
  };
  for (const auto& [reply, expected] : cases) {
    std::string reason = "did not answer";
    // As in join(): it has a second, which a busy machine may not give it.
    for (int attempt = 0; attempt < 20 && reason.find("did not answer") != std::string::npos; ++attempt) {
      const SocketFolder folder;
      FalseDaemon daemon(folder.socket(), reply);
      reason = reason_of(folder.socket());
    }
    EXPECT_NE(reason.find(expected), std::string::npos) << reason << " / " << expected;
  }
}

TEST(Connection, does_not_wait_for_a_daemon_that_hangs) {
  const SocketFolder folder;
  Child daemon([&] {
    Server server(folder.options());
    server.serve();
    return 0;
  });
  join_soon(folder.socket());
  daemon.send(SIGSTOP);
  EXPECT_NE(reason_of(folder.socket()).find("did not answer"), std::string::npos);
  daemon.send(SIGCONT);
  join_soon(folder.socket());
}

TEST(Connection, attends_to_commands_until_they_have_ended) {
  const SocketFolder folder;
  ServerThread server(folder.options());
  const auto one = join(folder.socket()), other = join(folder.socket());
  struct Device {
    Gate* gate;
    std::atomic<int> looks{0};
  } device{&one->gate()};
  one->attend(
      [](void* context) {
        auto& seen = *static_cast<Device*>(context);
        // A command takes three looks.
        if (++seen.looks % 3 == 0) seen.gate->leave();
      },
      &device);
  for (int i = 0; i < 50; ++i) {
    ASSERT_TRUE(one->gate().is_shared());
    one->gate().enter();
    if (i % 10 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));  // until it sleeps
  }
  until([&] { return one->gate().pending() == 0; });
  EXPECT_GE(device.looks.load(), 150);
}

TEST(Connection, a_request_ends_by_itself) {
  const SocketFolder folder;
  ServerThread server(folder.options());
  const auto one = join(folder.socket()), other = join(folder.socket());
  const auto is_active = [&] {
    const Json status = ask_status(folder.socket());
    return status.at("clients")[0].at("is_active") == true;
  };
  one->gate().enter();
  until(is_active);
  one->gate().leave();
  until([&] { return !is_active(); });
  EXPECT_TRUE(one->gate().try_enter());
  one->gate().leave();
  until([&] { return !is_active(); });
}

TEST(Connection, a_child_has_its_gate_open_and_none_of_the_descriptors) {
  const SocketFolder folder;
  ServerThread server(folder.options());
  const auto urgent = join(folder.socket(), kUrgent);
  auto patient = join(folder.socket(), kPatient);
  urgent->gate().enter();
  const int code =
      Child([&] {
        if (patient->is_alive() || patient->gate().is_shared()) return 1;
        patient->gate().enter();  // would wait
        patient->gate().enter();
        patient->gate().enter();
        urgent->gate().leave();  // of no effect on the parent's
        urgent->gate().settle(now_ns() + 1'000'000'000);
        patient.reset();  // joins no thread
        for (int file = 3; file < 64; ++file) {
          struct sockaddr_un name{};
          socklen_t size = sizeof name;
          // The server runs in this process too: its own ends stay. A client's end has no name.
          if (::getpeername(file, reinterpret_cast<sockaddr*>(&name), &size) == 0 && size > sizeof name.sun_family)
            return 2;
        }
        return 0;
      }).wait();
  EXPECT_EQ(code, 0);
  EXPECT_TRUE(patient->is_alive());
  EXPECT_TRUE(urgent->is_alive());
  EXPECT_EQ(urgent->gate().on_device(), 1U);
  EXPECT_FALSE(patient->gate().try_enter()) << "the child changed nothing on the board";
}

TEST(Connection, many_in_one_process_and_then_no_more) {
  const SocketFolder folder;
  ServerThread server(folder.options());
  std::vector<std::unique_ptr<Connection>> all;
  std::string reason;
  while (auto next = Connection::open(folder.socket(), {}, "x", &reason)) all.push_back(std::move(next));
  EXPECT_EQ(all.size(), 16U);
  EXPECT_NE(reason.find("too many"), std::string::npos) << reason;
  all.pop_back();
  EXPECT_NE(Connection::open(folder.socket(), {}, "x", &reason), nullptr);
}

TEST(Connection, opens_its_gate_when_the_daemon_ends) {
  const SocketFolder folder;
  ServerThread server(folder.options());
  const auto urgent = join(folder.socket(), kUrgent), patient = join(folder.socket(), kPatient);
  urgent->gate().enter();
  std::thread thread([&] { patient->gate().enter(); });
  until([&] { return patient->gate().pending() == 1; });
  server.end();
  thread.join();
  until([&] { return !patient->is_alive() && !urgent->is_alive(); });
  EXPECT_FALSE(patient->gate().is_shared());
}

}  // namespace
}  // namespace weir::testing
