#include "device/cpu/queue.h"

namespace weir::cpu {

HardwareQueue::HardwareQueue() : cells_(std::make_unique<Cell[]>(kCapacity)) {
  // Relaxed: other threads get the queue from the code that starts them.
  for (std::uint64_t i = 0; i < kCapacity; ++i) cells_[i].ticket.store(i, std::memory_order_relaxed);
}

void HardwareQueue::wait_for(const Cell& cell, std::uint64_t ticket) noexcept {
  for (int spins = 0; cell.ticket.load(std::memory_order_acquire) != ticket; ++spins) relax(spins);  // pairs with pop()
}

}  // namespace weir::cpu
