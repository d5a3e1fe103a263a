// A program under the scheduler, for tests that kill and stop such programs: it checks every iteration against one that
// no gate has seen, and reports how it gets on in memory that it shares with the test.
#pragma once

#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <random>
#include <thread>

#include "submit/gated.h"
#include "submit/order_session.h"
#include "submit/placement.h"
#include "submit/sched/daemon.h"
#include "submit/submitter.h"

namespace weir::testing {

inline constexpr int kWrongOutput = 3;  // exit code

enum class Joined : std::uint8_t { not_yet, scheduled, unscheduled };

inline constexpr std::int64_t kLongStallNs = 50'000'000;

// What a client reports while it lives, in memory of both.
struct Note {
  std::atomic<Joined> joined{Joined::not_yet};
  std::atomic<bool> should_end{false};
  std::atomic<std::uint64_t> iterations{0};
  std::atomic<std::int64_t> ended_ns{0};         // the last of them
  std::atomic<std::int64_t> longest_ns{0};       // from one's end to the next one's
  std::atomic<std::int64_t> longest_held_ns{0};  // of that: the most that the scheduler kept an iteration waiting
  // The first iterations that took longer than kLongStallNs: when they ended, how long they took and how much of it the
  // scheduler held them.
  struct Stall {
    std::atomic<std::int64_t> ended_ns{0}, took_ns{0}, held_ns{0};
  };
  std::atomic<std::uint32_t> stall_count{0};
  std::array<Stall, 1024> stalls;
};

template <std::size_t kCount>
class Notes {
 public:
  Notes() : memory_(new(::mmap(nullptr, sizeof(All), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0)) All) {}
  ~Notes() { ::munmap(memory_, sizeof(All)); }
  Notes(const Notes&) = delete;
  Notes& operator=(const Notes&) = delete;
  Note& operator[](std::size_t i) const { return (*memory_)[i]; }

 private:
  using All = std::array<Note, kCount>;
  All* memory_;
};

using Outputs = std::vector<std::vector<std::byte>>;

inline Outputs iterate(const Step& step, Session& session, Submitter& submitter) {
  session.reset();
  session.begin_iteration();
  submitter.submit_step();
  session.finish();
  Outputs outputs;
  for (BufferId id = 0; id < step.buffers().size(); ++id) {
    outputs.emplace_back(step.buffers()[id].size_bytes());
    session.read(id, outputs.back());
  }
  return outputs;
}

// How a client lives: a step of so many commands again and again, with pauses as between requests.
struct Life {
  int commands = 12;
  std::int64_t least_pause_us = 100, more_pause_us = 600;
};

// Iterations on the cpu device until the note says that it is enough. An empty socket: not scheduled.
inline int live_as_client(const std::string& socket, const scheduler::Terms& terms, std::uint64_t seed, Note& note,
                          const Life& life = {}) {
  using namespace scheduler;
  const Step step = random_step(1, 2, life.commands);
  const Placement placement = place(step, "natural");
  DeviceOptions small;
  small.workers = 1;
  small.hardware_queues = 2;
  const auto plain = open_device("cpu", small);
  const auto expected = [&] {
    const auto session = plain->prepare(step, placement, {});
    return iterate(step, *session, *inline_submitter(step, *session));
  }();
  std::string reason;
  const auto connection = socket.empty() ? nullptr : Connection::open(socket, terms, "test", &reason);
  std::shared_ptr<GatedWork> work;
  auto device = open_device("cpu", small);
  if (connection != nullptr) {
    work = std::make_shared<GatedWork>(connection->gate());
    connection->attend([](void* looking) { static_cast<GatedWork*>(looking)->look(); }, work.get());
    device = gated_device(std::move(device), work);
  }
  note.joined = connection != nullptr ? Joined::scheduled : Joined::unscheduled;
  const auto session = device->prepare(step, placement, {});
  const auto submitter = inline_submitter(step, *session);
  std::mt19937_64 random(seed);
  while (!note.should_end) {
    const std::uint64_t held_before = connection != nullptr ? connection->gate().held_ns() : 0;
    if (iterate(step, *session, *submitter) != expected) return kWrongOutput;
    const std::int64_t ended = now_ns();
    const auto held = static_cast<std::int64_t>(connection != nullptr ? connection->gate().held_ns() - held_before : 0);
    const std::int64_t took = note.iterations != 0 ? ended - note.ended_ns : 0;
    note.longest_ns = std::max(note.longest_ns.load(), took);
    if (took > kLongStallNs && note.stall_count < note.stalls.size()) {
      Note::Stall& stall = note.stalls[note.stall_count];
      stall.ended_ns = ended;
      stall.took_ns = took;
      stall.held_ns = held;
      ++note.stall_count;
    }
    note.longest_held_ns = std::max(note.longest_held_ns.load(), held);
    note.ended_ns = ended;
    ++note.iterations;
    const std::int64_t pause_us =
        life.least_pause_us +
        (life.more_pause_us == 0
             ? 0
             : static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(life.more_pause_us)));
    if (pause_us != 0) std::this_thread::sleep_for(std::chrono::microseconds(pause_us));
  }
  return 0;
}

}  // namespace weir::testing
