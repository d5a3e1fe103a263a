// The cpu device's hardware: queues, workers, and engines for copies, host functions and collectives. Workers are also
// the front end: the thread that makes a queue's head ready launches it. Knows packets and prepared steps; knows no
// Session and no Device.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <thread>
#include <vector>

#include "device/cpu/bell.h"
#include "device/cpu/blocks.h"
#include "device/cpu/queue.h"
#include "device/cpu/step.h"

namespace weir::cpu {

inline constexpr int kCopyEngines = 1;

class Engine {
 public:
  Engine(int queue_count, int worker_count);
  // Call when nothing is in flight.
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  // Starts a unit's threads if it has none; workers and the copy engine always have theirs. For one thread at a time.
  void start_threads(Unit unit);

  int queue_count() const noexcept { return graph_queue_; }
  // Queues for new streams, round-robin over the device's lifetime, as drivers assign them. For one thread at a time.
  std::vector<std::uint8_t> assign_queues(int streams);
  int graph_queue() const noexcept { return graph_queue_; }

  // How a submitting thread enters packets: rings once for several of them, as drivers ring doorbells.
  class PacketSender {
   public:
    explicit PacketSender(Engine& engine) noexcept : engine_(engine) {}
    // `woken`: units besides the workers that may have work because of this packet.
    void push(int queue, const Packet& packet, std::uint8_t woken) noexcept {
      engine_.queues_[static_cast<std::size_t>(queue)].push(packet, [this] { ring(); });
      unrung_.add(queue);
      woken_ |= woken;
      ++pushed_;
      if (pushed_ % kPacketsPerRing == 0) ring();
    }
    void ring() noexcept {
      const bool is_news = engine_.pushed_.add(unrung_);
      if (is_news) engine_.group(Unit::workers).bell.ring(1);
      // Workers may all be busy with long blocks, and other units must not wait for them.
      for (std::size_t i = 0; woken_ != 0 && i < kUnits; ++i)
        if ((woken_ >> i & 1) != 0) engine_.groups_[i].bell.ring(1);
      unrung_ = {};
      woken_ = 0;
    }
    // Packets pushed so far.
    std::uint32_t pushed() const noexcept { return pushed_; }

   private:
    static constexpr std::uint32_t kPacketsPerRing = 16;
    Engine& engine_;
    QueueSet unrung_;
    std::uint8_t woken_ = 0;
    std::uint32_t pushed_ = 0;
  };

  // Waits, spinning only briefly. `done` must load what retire() or Times::ended() stored, as Bell requires.
  template <class Done>
  void wait_until(Done&& done) noexcept {
    for (unsigned round = 0; round < kSpins; ++round) {
      if (done()) return;
      spin(round);
    }
    while (!done()) host_bell_.sleep_unless(done);
  }

 private:
  void stop() noexcept;
  // Long enough to catch the next launch of a stream of small kernels (a wake-up costs 5-10 us), short enough to be
  // invisible in `top`: about 10 us on a Neoverse-V1.
  static constexpr unsigned kSpins = 512;

  // The blocks that a round of launches offered, so that no more threads are woken than there is work for.
  struct Offer {
    QueueSet todo;
    std::array<std::uint64_t, kUnits> blocks{};
  };
  // A unit's threads: the pool they take blocks from, and the bell they sleep on.
  struct ThreadGroup {
    BlockPool pool;
    Bell bell;
    bool has_threads = false;
  };
  ThreadGroup& group(Unit unit) noexcept { return groups_[static_cast<std::size_t>(unit)]; }

  // Claims and ends collectives; never blocks in one, because ranks reach those of different streams in any order.
  class Collectives;

  bool has_work(const ThreadGroup& group) const noexcept;
  void work(ThreadGroup& group) noexcept;
  void work_on_collectives(ThreadGroup& group) noexcept;
  void run(ThreadGroup& group, const BlockPool::Claim& claim) noexcept;
  void end(ThreadGroup& group, std::uint32_t slot) noexcept;
  void free_stream(PreparedStep& step, StreamId stream, QueueSet& todo) noexcept;
  void retire(PreparedStep& step) noexcept;

  // Launches everything possible from these queues, and from queues that become ready by it.
  void pump(const QueueSet& queues, const ThreadGroup& own) noexcept;
  void drain(int queue, Offer& offer) noexcept;
  bool drain_launch(int queue, const Packet& packet, Offer& offer) noexcept;
  bool drain_record(const Packet& packet, Offer& offer) noexcept;
  bool drain_wait(int queue, const Packet& packet) noexcept;
  void drain_graphs(Offer& offer) noexcept;
  std::uint32_t acquire(BlockPool& pool, int queue) noexcept;
  void launch(PreparedStep& step, CommandId command, std::uint32_t iteration, int queue, std::uint32_t slot,
              Offer& offer) noexcept;

  int graph_queue_;
  int next_queue_ = 0;  // of a new stream
  std::unique_ptr<HardwareQueue[]> queues_;
  SharedQueueSet pushed_;   // have unprocessed packets
  SharedQueueSet waiting_;  // head waits for an event
  SharedQueueSet starved_;  // head waits for a slot
  SharedQueueSet held_;     // head is held up on purpose; never without Disturbance::delays
  std::array<ThreadGroup, kUnits> groups_;
  Bell host_bell_;  // wakes threads that wait for a session
  int worker_count_;
  std::atomic<bool> is_stopping_{false};  // set by stop(), read by every thread before it sleeps
  std::vector<std::jthread> threads_;
};

}  // namespace weir::cpu
