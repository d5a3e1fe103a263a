// What a thread can do, and with which steps of other threads each of them does not commute: see explorer.h.
#include <algorithm>

#include "channel/exploration.h"

namespace weir::explored {

int Exploration::add_atomic(std::uint64_t value) { return memory_.add_atomic(value); }

int Exploration::word_at(const std::uint64_t& word) {
  for (const auto& [address, x] : words_) {
    if (address == &word) return x;
  }
  words_.emplace_back(&word, memory_.add_atomic(word));
  return words_.back().second;
}

std::memory_order Exploration::ordered(std::memory_order order, const Where& where) {
  if (order == std::memory_order_relaxed) return order;
  if (order == std::memory_order_seq_cst) fail("seq_cst operations are not explored: use full_fence()");
  meet(where);
  return is_weakened(where) ? std::memory_order_relaxed : order;
}

// Now (true), or when another thread has done what `until` says?
bool Exploration::take_step(Until until, int x) {
  if (choose(others_enabled() ? 2 : 1) == 0) return true;
  put_off(until, x);
  return false;
}

void Exploration::put_off(Until until, int x) {
  Thread& own = self();
  own.status = Status::put_off;
  own.until = until;
  own.x = x;
  own.born = until == Until::stored ? memory_.born(x) : 0;
  leave();
  own.until = Until::nothing;
  if (own.born == 0) own.x = -1;
}

void Exploration::resume(Until until, int x) {
  for (int i = 0; i < count_; ++i) {
    Thread& other = *threads_[static_cast<std::size_t>(i)];
    if (other.status == Status::put_off && other.until == until && other.x == x) other.status = Status::runnable;
  }
}

void Exploration::after_store(int x, std::size_t position) {
  if (called_[static_cast<std::size_t>(x)] >= position) ++called_[static_cast<std::size_t>(x)];
  for (int i = 0; i < count_; ++i) {
    Thread& other = *threads_[static_cast<std::size_t>(i)];
    if (other.status != Status::put_off || other.x != x || position < memory_.oldest(i, x)) continue;
    if (other.until == Until::stored || other.until == Until::called) other.status = Status::runnable;
  }
}

// Two fences commute if neither tells the other anything.
void Exploration::after_fence(const View& before) {
  const bool has_told = !before.covers(memory_.fenced());
  for (int i = 0; i < count_; ++i) {
    Thread& other = *threads_[static_cast<std::size_t>(i)];
    if (other.status != Status::put_off || (other.until != Until::fenced && other.until != Until::reached)) continue;
    if (has_told || memory_.is_news(i, before)) other.status = Status::runnable;
  }
}

std::uint64_t Exploration::load(int x, std::memory_order order, const Where& where) {
  if (running_ < 0) return memory_.stores(x).back().value;
  order = ordered(order, where);
  Thread& own = self();
  for (;;) {
    options_now_.clear();
    const auto& stores = memory_.stores(x);
    for (std::size_t p = stores.size(); p-- > memory_.oldest(running_, x);) {
      if (stores[p].born >= own.born) options_now_.push_back(p);
    }
    const int count = static_cast<int>(options_now_.size());
    const int chosen = count == 0 ? 0 : choose(count + (others_enabled() ? 1 : 0));
    if (chosen < count) {
      own.born = 0;
      const std::uint64_t value = memory_.read(running_, x, options_now_[static_cast<std::size_t>(chosen)], order);
      step(Kind::load, x, value, where);
      return value;
    }
    put_off(Until::stored, x);
  }
}

void Exploration::store(int x, std::uint64_t value, std::memory_order order, const Where& where) {
  auto& stores = memory_.stores(x);
  if (running_ < 0) {
    stores.back().value = value;
    return;
  }
  order = ordered(order, where);
  options_now_.clear();
  for (std::size_t p = stores.size(); p > memory_.oldest(running_, x); --p) {
    if (p == stores.size() || !stores[p].is_update) options_now_.push_back(p);
  }
  const std::size_t position = options_now_[static_cast<std::size_t>(choose(static_cast<int>(options_now_.size())))];
  memory_.write(running_, x, position, value, order);
  step(Kind::store, x, value, where);
  after_store(x, position);
}

std::uint64_t Exploration::update(int x, Change change, std::uint64_t operand, std::memory_order order,
                                  const Where& where) {
  auto& stores = memory_.stores(x);
  if (running_ < 0) {
    const std::uint64_t old = stores.back().value;
    stores.back().value = change(old, operand);
    return old;
  }
  order = ordered(order, where);
  Thread& own = self();
  for (;;) {
    options_now_.clear();
    for (std::size_t p = stores.size(); p-- > memory_.oldest(running_, x);) {
      const bool is_taken = p + 1 < stores.size() && stores[p + 1].is_update;
      if (!is_taken && stores[p].born >= own.born) options_now_.push_back(p);
    }
    const int count = static_cast<int>(options_now_.size());
    const int chosen = count == 0 ? 0 : choose(count + (others_enabled() ? 1 : 0));
    if (chosen < count) {
      own.born = 0;
      const std::size_t position = options_now_[static_cast<std::size_t>(chosen)];
      const std::uint64_t old = stores[position].value;
      memory_.update(running_, x, position, change(old, operand), order);
      step(Kind::update, x, old, where);
      after_store(x, position + 1);
      return old;
    }
    put_off(Until::stored, x);
  }
}

bool Exploration::compare_exchange(int x, std::uint64_t& expected, std::uint64_t desired, std::memory_order success,
                                   std::memory_order failure, const Where& where) {
  auto& stores = memory_.stores(x);
  if (running_ < 0) {
    const std::uint64_t old = std::exchange(expected, stores.back().value);
    if (old != expected) return false;
    stores.back().value = desired;
    return true;
  }
  success = ordered(success, where);
  failure = ordered(failure, where);
  Thread& own = self();
  for (;;) {
    options_now_.clear();
    for (std::size_t p = stores.size(); p-- > memory_.oldest(running_, x);) {
      const bool is_taken = p + 1 < stores.size() && stores[p + 1].is_update;
      if (stores[p].born >= own.born && !(is_taken && stores[p].value == expected)) options_now_.push_back(p);
    }
    const int count = static_cast<int>(options_now_.size());
    const int chosen = count == 0 ? 0 : choose(count + (others_enabled() ? 1 : 0));
    if (chosen < count) {
      own.born = 0;
      const std::size_t position = options_now_[static_cast<std::size_t>(chosen)];
      const std::uint64_t old = stores[position].value;
      if (old != expected) {
        expected = memory_.read(running_, x, position, failure);
        step(Kind::load, x, old, where);
        return false;
      }
      memory_.update(running_, x, position, desired, success);
      step(Kind::update, x, old, where);
      after_store(x, position + 1);
      return true;
    }
    put_off(Until::stored, x);
  }
}

Exploration::Contents& Exploration::contents_at(const void* address) {
  for (auto& [known, contents] : contents_) {
    if (known == address) return contents;
  }
  contents_.emplace_back(address, Contents{});
  if (running_ >= 0) contents_.back().second.x = memory_.add_plain();
  return contents_.back().second;
}

void Exploration::note_read(const void* address, const Where& where) {
  Contents& contents = contents_at(address);
  if (running_ < 0) return;
  step(Kind::read, contents.x, contents.writer, where);
  if (!memory_.plain_read(running_, contents.x)) fail("race: contents are read while they are written");
}

void Exploration::note_write(const void* address, const Where& where) {
  Contents& contents = contents_at(address);
  if (running_ < 0) return;
  step(Kind::write, contents.x, 0, where);
  if (!memory_.plain_write(running_, contents.x)) fail("race: contents are written while others use them");
  contents.writer = self().history;
}

void Exploration::acquire_fence(const Where& where) {
  if (running_ < 0) return;
  meet(where);
  if (!is_weakened(where)) memory_.acquire_fence(running_);
  step(Kind::acquire_fence, -1, 0, where);
}

void Exploration::full_fence(const Where& where) {
  if (running_ < 0) return;
  meet(where);
  if (!is_weakened(where)) {
    while (!take_step(Until::fenced, -1)) {
    }
    const View before = memory_.fenced();
    memory_.full_fence(running_);
    after_fence(before);
  }
  step(Kind::full_fence, -1, 0, where);
}

void Exploration::light_fence(const Where& where) {
  if (running_ < 0) return;
  meet(where);
  if (!is_weakened(where)) {
    while (!take_step(Until::passed, running_)) {
    }
    memory_.light_fence(running_);
    for (int i = 0; i < count_; ++i) {
      Thread& other = *threads_[static_cast<std::size_t>(i)];
      const bool awaits = (other.barriers >> running_ & 1U) != 0;
      if (other.status == Status::put_off && other.until == Until::reached && awaits) other.status = Status::runnable;
    }
  }
  step(Kind::light_fence, -1, 0, where);
}

void Exploration::heavy_fence(const Where& where) {
  if (running_ < 0) return;
  meet(where);
  Thread& own = self();
  if (!is_weakened(where)) {
    for (int i = 0; i < count_; ++i) {
      if (i != running_) own.barriers |= 1U << i;
    }
    own.has_begun = false;
    // The barrier reaches threads one by one, while others go on; those that do not run, at the end.
    for (;;) {
      options_now_.clear();
      for (int i = 0; i < count_; ++i) {
        const Status status = threads_[static_cast<std::size_t>(i)]->status;
        const bool is_running = status != Status::ended && status != Status::sleeping;
        if ((own.barriers >> i & 1U) != 0 && is_running) options_now_.push_back(static_cast<std::size_t>(i));
      }
      const int count = static_cast<int>(options_now_.size());
      if (count == 0) break;
      const int chosen = choose(count + (others_enabled() ? 1 : 0));
      if (chosen == count) {
        put_off(Until::reached, -1);
        continue;
      }
      const int other = static_cast<int>(options_now_[static_cast<std::size_t>(chosen)]);
      const View before = memory_.fenced();
      if (!own.has_begun) memory_.full_fence(running_);
      own.has_begun = true;
      own.barriers &= ~(1U << other);
      memory_.pass_barrier(other);
      resume(Until::passed, other);
      after_fence(before);
    }
    const View before = memory_.fenced();
    memory_.full_fence(running_);
    for (int i = 0; i < count_; ++i) {
      if ((own.barriers >> i & 1U) != 0) memory_.pass_barrier(i);
    }
    memory_.full_fence(running_);
    after_fence(before);
    own.barriers = 0;
    own.has_begun = false;
  }
  step(Kind::heavy_fence, -1, 0, where);
}

bool Exploration::wait(int x, std::uint64_t value, bool has_deadline, const Where& where) {
  Thread& own = self();
  for (;;) {
    const auto& stores = memory_.stores(x);
    bool can_sleep = false;
    std::size_t other = stores.size();
    for (std::size_t p = std::max(memory_.oldest(running_, x), called_[static_cast<std::size_t>(x)]); p < stores.size();
         ++p) {
      if (stores[p].value == value) {
        can_sleep = true;
      } else if (other == stores.size()) {
        other = p;
      }
    }
    Kind outcomes[3];
    int count = 0;
    if (can_sleep) outcomes[count++] = Kind::sleep;
    if (other != stores.size()) outcomes[count++] = Kind::no_sleep;
    if (has_deadline) outcomes[count++] = Kind::late;
    const int chosen = choose(count + (others_enabled() ? 1 : 0));
    if (chosen == count) {
      put_off(Until::called, x);
      continue;
    }
    step(outcomes[chosen], x, value, where);
    if (outcomes[chosen] == Kind::late) return false;
    if (outcomes[chosen] == Kind::no_sleep) {
      memory_.see(running_, x, other);
      return true;
    }
    own.status = Status::sleeping;
    own.x = x;
    own.has_deadline = has_deadline;
    resume(Until::slept, x);
    leave();
    step(Kind::woken, x, value, where);
    return true;
  }
}

void Exploration::wake(int x, int threads, const Where& where) {
  if (running_ < 0) return;
  while (!take_step(Until::slept, x)) {
  }
  step(Kind::wake, x, static_cast<std::uint64_t>(threads), where);
  for (int woken = 0; woken < threads; ++woken) {
    options_now_.clear();
    for (int i = 0; i < count_; ++i) {
      const Thread& other = *threads_[static_cast<std::size_t>(i)];
      if (other.status == Status::sleeping && other.x == x) options_now_.push_back(static_cast<std::size_t>(i));
    }
    const int sleepers = static_cast<int>(options_now_.size());
    if (sleepers == 0) break;
    // Which of them does not matter where all are woken.
    const int chosen = sleepers <= threads - woken ? 0 : choose(sleepers);
    threads_[options_now_[static_cast<std::size_t>(chosen)]]->status = Status::runnable;
  }
  std::size_t& called = called_[static_cast<std::size_t>(x)];
  called = std::max(called, memory_.oldest(running_, x));
  resume(Until::called, x);
}

bool Exploration::has_news(int thread) {
  for (const Seen& seen : threads_[static_cast<std::size_t>(thread)]->relaxing.last) {
    if (seen.kind != Kind::load) continue;
    const auto& stores = memory_.stores(seen.x);
    for (std::size_t p = memory_.oldest(thread, seen.x); p < stores.size(); ++p) {
      if (stores[p].value != seen.value) return true;
    }
  }
  return false;
}

// The first round is free: it has no other to be compared with.
void Exploration::next_round(Loop& loop, int count, bool is_waiting) {
  if (count == 0) {
    loop.last.clear();
  } else {
    if (loop.round == loop.last) stop(End::given_up);
    std::swap(loop.round, loop.last);
  }
  loop.round.clear();
  if (count == 0 || !is_waiting || has_news(running_)) return;
  self().status = Status::relaxing;
  leave();
}

void Exploration::relax(int spins, const Where& where) {
  if (running_ < 0) return;
  step(Kind::relax, -1, 0, where);
  next_round(self().relaxing, spins, true);
}

void Exploration::retry(int tries, const Where& where) {
  if (running_ < 0) return;
  step(Kind::retry, -1, 0, where);
  next_round(self().retrying, tries, false);
}

}  // namespace weir::explored
