// A small number for every living thread, so that each can have its own place in a table. Numbers of ended threads are
// reused.
#pragma once

namespace weir {

inline constexpr int kThreadSlots = 64;

namespace detail {
// Without a destructor and statically initialized, so that reading it is reading a word. -1: not requested yet.
inline constinit thread_local int own_slot = -1;
int take_thread_slot() noexcept;
}  // namespace detail

// 0 ... kThreadSlots - 1, unique among living threads; kThreadSlots: there are more threads, which share this number.
inline int thread_slot() noexcept {
  const int slot = detail::own_slot;
  return slot >= 0 ? slot : detail::take_thread_slot();
}

// Slots that were ever assigned: no table entry from this one on was ever used.
int thread_slots_used() noexcept;

}  // namespace weir
