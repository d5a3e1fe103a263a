// The caches of one thread, in all stores, and what becomes of them when the thread ends, or a store before it.
#pragma once

#include <cstdint>
#include <vector>

#include "channel/slot_store.h"

namespace weir {

// Goes when the thread ends, and gives its slots back to the stores that still live.
class ThreadCaches {
 public:
  struct Entry {
    std::uint64_t serial;
    SlotStore* store;
    SlotCache* cache;
  };

  // Of the calling thread, which must not have ended.
  static ThreadCaches& own();
  // Destructors of other thread_locals may still free slots.
  static bool has_ended() noexcept;
  // Numbers a store; numbers are never used again.
  static std::uint64_t open_store();
  // No thread touches the store when it returns.
  static void close_store(std::uint64_t serial) noexcept;

  SlotCache* find(std::uint64_t serial) const noexcept;  // null: none
  void add(const Entry& entry);
  ~ThreadCaches();

 private:
  ThreadCaches() = default;

  std::vector<Entry> entries_;
};

}  // namespace weir
