// The cpu device's hardware: queues, workers, a copy engine. Workers are also the front end: whoever makes a queue's
// head ready, launches it. Knows packets and prepared steps; no Session and no Device.
#pragma once

#include <cstdint>
#include <memory>
#include <thread>
#include <vector>

#include "device/cpu_bell.h"
#include "device/cpu_blocks.h"
#include "device/cpu_queue.h"
#include "device/cpu_step.h"

namespace weir::cpu {

inline constexpr int kCopyEngines = 1;

class Engine {
 public:
  Engine(int queue_count, int worker_count);
  // Call when nothing is in flight.
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  int queue_count() const noexcept { return graph_queue_; }
  int graph_queue() const noexcept { return graph_queue_; }

  // One submitting thread's way in: pushes packets and rings for several of them at once, as drivers ring doorbells.
  class Door {
   public:
    explicit Door(Engine& engine) noexcept : engine_(engine) {}
    void push(int queue, const Packet& packet, bool wakes_copies) noexcept {
      engine_.queues_[static_cast<std::size_t>(queue)].push(packet, [this] { ring(); });
      unrung_.add(queue);
      wakes_copies_ |= wakes_copies;
      ++pushed_;
      if (pushed_ % kPacketsPerRing == 0) ring();
    }
    void ring() noexcept {
      const bool is_news = engine_.pushed_.add(unrung_);
      if (is_news) engine_.worker_bell_.ring(1);
      // Workers may all be busy with long blocks, and a copy must not wait for them.
      if (wakes_copies_) engine_.copy_bell_.ring(1);
      unrung_ = {};
      wakes_copies_ = false;
    }
    // Packets so far.
    std::uint32_t pushed() const noexcept { return pushed_; }

   private:
    static constexpr std::uint32_t kPacketsPerRing = 16;
    Engine& engine_;
    QueueSet unrung_;
    bool wakes_copies_ = false;
    std::uint32_t pushed_ = 0;
  };

  // Waits, spinning for a moment only. `done` must load what retire() or Times::ended() stored, as Bell asks.
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

  // What a round of launches offered, so that as many threads are woken as there is work for.
  struct Offer {
    QueueSet todo;
    std::uint64_t kernel_blocks = 0;
    std::uint64_t copy_blocks = 0;
  };

  void work(BlockPool& pool, Bell& bell) noexcept;
  void run(BlockPool& pool, const BlockPool::Claim& claim) noexcept;
  void end(BlockPool& pool, std::uint32_t slot) noexcept;
  void free_stream(PreparedStep& step, StreamId stream, QueueSet& todo) noexcept;
  void retire(PreparedStep& step) noexcept;

  // Launches all that can be launched from these queues, and from those which that makes ready.
  void pump(const QueueSet& queues, const BlockPool* own) noexcept;
  void drain(int queue, Offer& offer) noexcept;
  bool drain_launch(int queue, const Packet& packet, Offer& offer) noexcept;
  bool drain_record(const Packet& packet, Offer& offer) noexcept;
  bool drain_wait(int queue, const Packet& packet) noexcept;
  void drain_graphs(Offer& offer) noexcept;
  std::uint32_t acquire(BlockPool& pool, int queue) noexcept;
  void launch(PreparedStep& step, CommandId command, std::uint32_t iteration, int queue, std::uint32_t slot,
              Offer& offer) noexcept;

  int graph_queue_;
  std::unique_ptr<HardwareQueue[]> queues_;
  SharedQueueSet pushed_;   // have packets that nobody has looked at
  SharedQueueSet waiting_;  // head waits for an event
  SharedQueueSet starved_;  // head waits for a slot
  BlockPool kernels_, copies_;
  Bell worker_bell_, copy_bell_, host_bell_;
  std::atomic<bool> is_stopping_{false};  // set by stop(), read by every thread before it sleeps
  std::vector<std::jthread> threads_;
};

}  // namespace weir::cpu
