// Hardware queues of the cpu device: bounded in-order rings of packets, filled by any thread without locks and drained
// by one thread at a time. Knows how packets travel, not what they do.
#pragma once

#include <array>
#include <atomic>
#include <bit>
#include <cstdint>
#include <memory>

#include "device/cpu/bell.h"
#include "step/command.h"

namespace weir::cpu {

struct PreparedStep;

// One more than users can request: the last one carries graph launches.
inline constexpr int kMaxQueues = 128;

enum class PacketKind : std::uint8_t {
  launch,  // a command of any kind
  record,  // records an event when everything before it in its stream has ended
  wait,    // waits until an event's instance is done
  graph,   // a segment of a step
};

struct Packet {
  PreparedStep* step = nullptr;
  std::uint32_t subject = 0;  // command, event or segment
  std::uint32_t number = 0;   // iteration of a launch or a graph; instance of an event
  StreamId stream = 0;
  PacketKind kind = PacketKind::launch;
};

// A set of queues as bits.
class QueueSet {
 public:
  void add(int queue) noexcept { words_[word(queue)] |= bit(queue); }
  void add(const QueueSet& other) noexcept {
    for (std::size_t i = 0; i < words_.size(); ++i) words_[i] |= other.words_[i];
  }
  // Removes and returns one queue, or -1.
  int take() noexcept {
    for (std::size_t i = 0; i < words_.size(); ++i) {
      if (words_[i] == 0) continue;
      const int found = std::countr_zero(words_[i]);
      words_[i] &= words_[i] - 1;
      return static_cast<int>(i) * 64 + found;
    }
    return -1;
  }

 private:
  friend class SharedQueueSet;
  static std::size_t word(int queue) noexcept { return static_cast<std::size_t>(queue) / 64; }
  static std::uint64_t bit(int queue) noexcept { return std::uint64_t{1} << (queue % 64); }
  std::array<std::uint64_t, kMaxQueues / 64> words_{};
};

// The same for many threads. All operations are sequentially consistent, because its users rely on "either I see your
// change, or you see my bit".
class SharedQueueSet {
 public:
  // True if the thread that takes the set must be woken: one of the touched words was empty before.
  bool add(const QueueSet& queues) noexcept {
    bool is_news = false;
    for (std::size_t i = 0; i < words_.size(); ++i) {
      if (queues.words_[i] == 0) continue;
      is_news |= words_[i].fetch_or(queues.words_[i], std::memory_order_seq_cst) == 0;  // pairs with take()
    }
    return is_news;
  }
  void add(int queue) noexcept {
    words_[QueueSet::word(queue)].fetch_or(QueueSet::bit(queue), std::memory_order_seq_cst);  // pairs with take()
  }
  QueueSet take() noexcept {
    QueueSet taken;
    for (std::size_t i = 0; i < words_.size(); ++i)
      if (words_[i].load(std::memory_order_seq_cst) != 0)
        taken.words_[i] = words_[i].exchange(0, std::memory_order_seq_cst);  // pairs with add()
    return taken;
  }
  bool is_empty() const noexcept {
    for (const auto& word : words_)
      if (word.load(std::memory_order_seq_cst) != 0) return false;  // pairs with add()
    return true;
  }

 private:
  alignas(64) std::array<std::atomic<std::uint64_t>, kMaxQueues / 64> words_{};
};

// A queue of 1024 packets. Each cell carries the ticket that may use it next, so producers need no lock.
class HardwareQueue {
 public:
  static constexpr std::uint64_t kCapacity = 1024;

  HardwareQueue();

  // Appends from any thread. If the queue is full, it calls `before_waiting` once and waits, as a launch on a GPU does.
  template <class BeforeWaiting>
  void push(const Packet& packet, BeforeWaiting&& before_waiting) noexcept {
    // Relaxed: the ticket orders packets; the cell's own ticket publishes them.
    const std::uint64_t ticket = tail_.fetch_add(1, std::memory_order_relaxed);
    Cell& cell = cells_[ticket % kCapacity];
    if (cell.ticket.load(std::memory_order_acquire) != ticket) [[unlikely]] {  // pairs with the release in pop()
      before_waiting();
      wait_for(cell, ticket);
    }
    cell.packet = packet;
    cell.ticket.store(ticket + 1, std::memory_order_release);  // pairs with the acquire in front()
  }

  // The head, or null. Like pop(), only for the thread that is inside `turnstile`.
  const Packet* front() const noexcept {
    const Cell& cell = cells_[head_ % kCapacity];
    return cell.ticket.load(std::memory_order_acquire) == head_ + 1 ? &cell.packet : nullptr;  // pairs with push()
  }
  void pop() noexcept {
    cells_[head_ % kCapacity].ticket.store(head_ + kCapacity, std::memory_order_release);  // pairs with push()
    ++head_;
  }

  Turnstile turnstile;

 private:
  struct Cell {
    std::atomic<std::uint64_t> ticket;
    Packet packet;
  };
  static void wait_for(const Cell& cell, std::uint64_t ticket) noexcept;

  std::unique_ptr<Cell[]> cells_;
  std::uint64_t head_ = 0;  // passed from holder to holder by the turnstile
  alignas(64) std::atomic<std::uint64_t> tail_{0};
};

}  // namespace weir::cpu
