#include "device/cpu/blocks.h"

#include <bit>

namespace weir::cpu {

std::uint32_t BlockPool::acquire() noexcept {
  for (std::size_t i = 0; i < used_.size(); ++i) {
    std::uint64_t used = used_[i].load(std::memory_order_seq_cst);  // pairs with release(); see Engine::acquire()
    while (used != UINT64_MAX) {
      const auto slot = static_cast<std::uint32_t>(std::countr_one(used));
      // Acquire: the last user's reads of the slot come before the new writes. Pairs with release().
      if (used_[i].compare_exchange_weak(used, used | std::uint64_t{1} << slot, std::memory_order_seq_cst))
        return static_cast<std::uint32_t>(i) * 64 + slot;
    }
  }
  return kNoSlot;
}

void BlockPool::release(std::uint32_t slot) noexcept {
  used_[slot / 64].fetch_and(~(std::uint64_t{1} << slot % 64), std::memory_order_seq_cst);  // pairs with acquire()
}

void BlockPool::publish(std::uint32_t slot, std::uint32_t level, std::uint32_t blocks) noexcept {
  Level& fifo = levels_[level];
  // Relaxed: the position is the kernel's age; the cell publishes it.
  const std::uint64_t position = fifo.tail.fetch_add(1, std::memory_order_relaxed);
  fifo.cells[position % kCells].store(word_of(lap_of(position), slot, blocks),
                                      std::memory_order_seq_cst);  // pairs with claim() and has_blocks()
}

bool BlockPool::claim(Claim& claim) noexcept {
  for (std::uint32_t level = kLevels; level-- > 0;) {
    Level& fifo = levels_[level];
    std::uint64_t head = fifo.head.load(std::memory_order_acquire);  // pairs with the exchanges below
    for (;;) {
      auto& cell = fifo.cells[head % kCells];
      std::uint64_t word = cell.load(std::memory_order_acquire);  // pairs with publish()
      if (lap_in(word) != lap_of(head)) {
        const std::uint64_t now = fifo.head.load(std::memory_order_acquire);
        if (now == head) break;
        head = now;
        continue;
      }
      const std::uint32_t unclaimed = blocks_in(word);
      if (unclaimed != 0) {
        // Acquire: the slot's fields. Pairs with publish(), whose release sequence other claims continue.
        if (!cell.compare_exchange_weak(word, word - 1, std::memory_order_acq_rel)) continue;
        claim.slot = slot_in(word);
        // The slot cannot be released before the block just taken ends.
        claim.block = slots_[claim.slot].blocks - unclaimed;
      }
      if (unclaimed <= 1) {
        std::uint64_t expected = head;
        // A thread that finds the head exhausted moves it; a thread that loses this race reads the winner's value.
        fifo.head.compare_exchange_strong(expected, head + 1, std::memory_order_acq_rel);
      }
      if (unclaimed != 0) return true;
      head = fifo.head.load(std::memory_order_acquire);
    }
  }
  return false;
}

bool BlockPool::has_blocks() const noexcept {
  for (const Level& fifo : levels_) {
    std::uint64_t head = fifo.head.load(std::memory_order_seq_cst);
    const std::uint64_t word = fifo.cells[head % kCells].load(std::memory_order_seq_cst);  // pairs with publish()
    // A head that has moved meanwhile means activity: return true, and the caller checks properly.
    if (lap_in(word) == lap_of(head) || fifo.head.load(std::memory_order_seq_cst) != head) return true;
  }
  return false;
}

}  // namespace weir::cpu
