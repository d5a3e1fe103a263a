// A small number for every living thread, so that each can have a place of its own in a table. Numbers of threads that
// ended are given out again.
#pragma once

namespace weir {

inline constexpr int kThreadSlots = 64;

namespace detail {
// Without a destructor and set before anything runs, so that a look at it is a look at a word. -1: not asked for yet.
inline constinit thread_local int own_slot = -1;
int take_thread_slot() noexcept;
}  // namespace detail

// 0 ... kThreadSlots - 1, and no other living thread has it; kThreadSlots: there are more threads than that, and these
// share.
inline int thread_slot() noexcept {
  const int slot = detail::own_slot;
  return slot >= 0 ? slot : detail::take_thread_slot();
}

// Slots that were ever given out: no place of a table behind this one was ever used.
int thread_slots_used() noexcept;

}  // namespace weir
