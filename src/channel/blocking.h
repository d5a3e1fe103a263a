// The waiting half of every channel: push and pop that wait, built from its try_push and try_pop. Knows no ring.
#pragma once

#include <cstddef>
#include <span>

#include "channel/wait.h"

namespace weir {

// The result of a batch: how many were moved, and why not more.
struct Moved {
  std::size_t count = 0;
  Outcome outcome = Outcome::done;
};

// Pushes all of them, or as many as the limit and the channel allow.
template <Wait kWait, class Sync, PassOn kPassOn = PassOn::no, class Channel>
Moved push_batch(Channel& channel, Event<kWait, Sync>& room, std::span<const typename Channel::Item> items,
                 Limit limit) noexcept {
  Moved all;
  all.outcome = await<kWait, Sync, kPassOn>(room, limit, Outcome::full, [&] {
    const Moved moved = channel.try_push_batch(items.subspan(all.count));
    all.count += moved.count;
    return moved.outcome;
  });
  return all;
}
// Waits for the first command, then takes all that are available.
template <Wait kWait, class Sync, PassOn kPassOn = PassOn::no, class Channel>
Moved pop_batch(Channel& channel, Event<kWait, Sync>& items_pushed, std::span<typename Channel::Item> items,
                Limit limit) noexcept {
  Moved moved;
  moved.outcome = await<kWait, Sync, kPassOn>(items_pushed, limit, Outcome::empty, [&] {
    moved = channel.try_pop_batch(items);
    return moved.outcome;
  });
  return moved;
}

// `Self` has try_push, try_push_batch, try_pop and try_pop_batch, and calls notify_pushed() and notify_popped() after
// each change.
template <class Self, class T, Wait kWait, class Sync, PassOn kPassOn = PassOn::no>
class Blocking {
 public:
  using Item = T;

  // The limit covers the whole call, until the command is in the channel. Without one (Limit::none()) this is try_push.
  Outcome push(const T& item, Limit limit = Limit::forever()) noexcept {
    return await<kWait, Sync, kPassOn>(room_, limit, Outcome::full, [&] { return self().try_push(item); });
  }
  Outcome pop(T& item, Limit limit = Limit::forever()) noexcept {
    return await<kWait, Sync, kPassOn>(items_, limit, Outcome::empty, [&] { return self().try_pop(item); });
  }
  Moved push_batch(std::span<const T> items, Limit limit = Limit::forever()) noexcept {
    return weir::push_batch<kWait, Sync, kPassOn>(self(), room_, items, limit);
  }
  Moved pop_batch(std::span<T> items, Limit limit = Limit::forever()) noexcept {
    return weir::pop_batch<kWait, Sync, kPassOn>(self(), items_, items, limit);
  }

 protected:
  // Commands were pushed: wakes one consumer for each.
  void notify_pushed(std::size_t count) noexcept { items_.notify(static_cast<int>(count)); }
  // Commands were popped: wakes one producer for each.
  void notify_popped(std::size_t count) noexcept { room_.notify(static_cast<int>(count)); }
  void wake_all() noexcept {
    items_.notify_all();
    room_.notify_all();
  }

 private:
  Self& self() noexcept { return static_cast<Self&>(*this); }

  Event<kWait, Sync> items_, room_;
};

}  // namespace weir
