#include "submit/sched/ask.h"

#include <fmt/format.h>

#include <cstddef>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "submit/sched/socket.h"
#include "submit/sched/wire.h"

namespace weir::scheduler {
namespace {

constexpr std::int64_t kAnswerPatience_ns = 2'000'000'000;

Descriptor connect(const std::filesystem::path& path, pid_t* pid) {
  Peer daemon;
  std::string reason;
  Descriptor socket = connect_to_daemon(path.string(), peer_of, &daemon, &reason);
  if (!socket) reject(reason, "Start one with `weir sched start`, or name its socket: --socket PATH.");
  *pid = daemon.pid;
  return socket;
}

Reply ask(int socket, pid_t pid, Ask what, std::int64_t deadline_ns) {
  std::vector<std::byte> buffer(kMaxReplyBytes);
  send_packet(socket, write_request({what, {}, "weir sched"}));  // on failure the daemon may have given a reason
  const std::ptrdiff_t size = receive_packet(socket, buffer, deadline_ns);
  if (size < 0)
    fail(fmt::format("the scheduler (pid {}) does not answer", pid),
         fmt::format("Its clients run on unscheduled. See what became of it, and end it with `kill {}`.", pid));
  if (size == 0) fail("the scheduler ended the connection", "See whether it still runs: `weir sched status`.");
  Reply reply;
  if (const char* wrong = read_reply(std::span(buffer).first(static_cast<std::size_t>(size)), &reply))
    fail(fmt::format("the scheduler's answer cannot be read: {}", wrong),
         "Use the weir that started it, or end it and start this one's.");
  if (reply.answer == Answer::refused) fail(fmt::format("the scheduler refused: {}", reply.text));
  return reply;
}

}  // namespace

Json ask_status(const std::filesystem::path& path) {
  pid_t pid = 0;
  const Descriptor socket = connect(path, &pid);
  const Reply reply = ask(socket.get(), pid, Ask::status, now_ns() + kAnswerPatience_ns);
  if (reply.answer != Answer::status) fail("the scheduler answered something else");
  return parse_json(reply.text, "the scheduler's status");
}

void ask_stop(const std::filesystem::path& path) {
  const std::int64_t deadline = now_ns() + kAnswerPatience_ns;
  pid_t pid = 0;
  const Descriptor socket = connect(path, &pid);
  if (ask(socket.get(), pid, Ask::stop, deadline).answer != Answer::stopping)
    fail("the scheduler answered something else");
  // The daemon closes its connections last.
  std::byte nothing;
  if (receive_packet(socket.get(), {&nothing, 1}, deadline) != 0)
    fail(fmt::format("the scheduler (pid {}) said that it ends, but has not yet", pid));
}

}  // namespace weir::scheduler
