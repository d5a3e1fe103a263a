// The caches of one thread in all stores, and their cleanup when the thread ends, or a store before it.
#pragma once

#include <cstdint>
#include <vector>

#include "channel/slot_store.h"

namespace weir {

// Destroyed when the thread ends; returns its slots to the stores that still exist.
class ThreadCaches {
 public:
  struct Entry {
    std::uint64_t serial;
    SlotStore* store;
    SlotCache* cache;
  };

  // For the calling thread; has_ended() must be false.
  static ThreadCaches& own();
  // Whether this thread's caches are gone; destructors of other thread_locals may still free slots.
  static bool has_ended() noexcept;
  // Numbers a store; numbers are never reused.
  static std::uint64_t open_store();
  // When this returns, no thread touches the store any more.
  static void close_store(std::uint64_t serial) noexcept;

  SlotCache* find(std::uint64_t serial) const noexcept;  // null: none
  void add(const Entry& entry);
  ~ThreadCaches();

 private:
  ThreadCaches() = default;

  std::vector<Entry> entries_;
};

}  // namespace weir
