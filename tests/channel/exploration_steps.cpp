// What a thread can ask for, and with which steps of other threads each of them does not commute: see explorer.h.
#include <algorithm>
#include <climits>
#include <stdexcept>
#include <utility>

#include "channel/exploration.h"

namespace weir::explored {

int Exploration::word_at(const std::uint64_t& word) {
  for (const auto& [address, x] : words_) {
    if (address == &word) return x;
  }
  words_.emplace_back(&word, memory_.add_atomic(word));
  return words_.back().second;
}

std::uint64_t Exploration::call(const Call& step) {
  if (running_ < 0) return call_outside(step);
  Thread& own = self();
  own.step = step;
  own.fiber.leave();
  return own.result;
}

std::uint64_t Exploration::call_outside(const Call& step) {
  if (step.kind == Kind::read || step.kind == Kind::write) contents_at(step);
  if (step.x < 0) return 0;
  std::uint64_t& value = memory_.stores(step.x).back().value;
  const std::uint64_t old = value;
  if (step.kind == Kind::store) value = step.value;
  if (step.kind == Kind::update) value = step.change(old, step.value);
  if (step.kind == Kind::exchange && old == step.value) value = step.desired;
  return old;
}

bool Exploration::perform() {
  try {
    if (self().step.kind != Kind::none && ++steps_ > options_.steps) throw std::length_error("too many steps");
    return perform_step();
  } catch (const std::length_error& error) {
    report_.failure = std::string("a bound was met: ") + error.what();
    end_ = End::bound;
    return false;
  }
}

bool Exploration::perform_step() {
  Call& step = self().step;
  if (step.x >= 0) did(Deed::touch, step.x);
  switch (step.kind) {
    case Kind::none:
      return done(0);
    case Kind::load:
      return load(step);
    case Kind::store:
      return store(step);
    case Kind::update:
    case Kind::exchange:
      return update(step);
    case Kind::read:
      return read(step);
    case Kind::write:
      return write(step);
    case Kind::acquire_fence:
      return acquire_fence(step);
    case Kind::release_fence:
      return release_fence(step);
    case Kind::full_fence:
      return full_fence(step);
    case Kind::light_fence:
      return light_fence(step);
    case Kind::heavy_fence:
      return heavy_fence(step);
    case Kind::wait:
      return wait(step);
    case Kind::woken:
      return done(1);
    case Kind::wake:
      return wake(step);
    case Kind::relax:
      return relax(step);
  }
  return false;
}

// The thread may go on with this.
bool Exploration::done(std::uint64_t result) {
  Thread& own = self();
  if (is_traced_) trace(own, " " + std::to_string(result));
  own.result = result;
  own.born = 0;
  own.until = Until::nothing;
  own.step = {};
  return true;
}

bool Exploration::put_off(Until until) {
  Thread& own = self();
  own.status = Status::put_off;
  own.until = until;
  if (until == Until::stored) own.born = memory_.born(own.step.x);
  return false;
}

// Now (true), or when another thread has done what `until` says?
bool Exploration::take(Until until) {
  const int chosen = choose(is_worth_waiting(until, self().step.x) ? 2 : 1);
  if (chosen == 1) put_off(until);
  return chosen == 0;
}

void Exploration::did(Deed deed, int x) {
  std::uint32_t& threads = deeds_[static_cast<int>(deed)][x + 1];
  if ((threads >> running_ & 1U) != 0) return;
  threads |= 1U << running_;
  has_new_deeds_ = true;
}

bool Exploration::may_come(Deed deed, int x) {
  const std::uint32_t threads = deeds_[static_cast<int>(deed)][x + 1];
  for (int i = 0; i < count_; ++i) {
    if (i != running_ && thread(i).status != Status::ended && (threads >> i & 1U) != 0) return true;
  }
  return false;
}

// Whether something may still happen that the step would be put off for.
bool Exploration::is_worth_waiting(Until until, int x) {
  bool may_happen = false;
  switch (until) {
    case Until::stored:
      may_happen = may_come(Deed::store, x);
      break;
    case Until::touched:
      may_happen = may_come(Deed::touch, x);
      break;
    case Until::fenced:
      may_happen = may_come(Deed::fence, -1) || may_come(Deed::heavy_fence, -1);
      break;
    case Until::passed:
      may_happen = may_come(Deed::heavy_fence, -1);
      break;
    case Until::reached:
      may_happen = may_come(Deed::fence, -1) || may_come(Deed::heavy_fence, -1) || may_come(Deed::light_fence, -1);
      break;
    case Until::called:
      may_happen = may_come(Deed::store, x) || may_come(Deed::wake, x);
      break;
    case Until::slept:
      may_happen = may_come(Deed::sleep, x);
      break;
    case Until::nothing:
      break;
  }
  if (!may_happen) return false;
  for (int i = 0; i < count_; ++i) {
    if (i != running_ && is_enabled(i)) return true;
  }
  return false;
}

bool Exploration::is_weakened(const Where& where) {
  if (options_.sites != nullptr) options_.sites->insert({where.file_name(), where.line(), where.column(), running_});
  const Site* site = options_.weakened;
  return site != nullptr && site->line == where.line() && site->column == where.column() && site->thread == running_ &&
         site->file == where.file_name();
}

std::memory_order Exploration::ordered(std::memory_order order, const Where& where) {
  if (order == std::memory_order_relaxed) return order;
  if (order == std::memory_order_seq_cst) fail("seq_cst operations are not explored: use full_fence()");
  return is_weakened(where) ? std::memory_order_relaxed : order;
}

void Exploration::resume(Until until, int x) {
  for (int i = 0; i < count_; ++i) {
    Thread& other = thread(i);
    if (other.status == Status::put_off && other.until == until && other.step.x == x) other.status = Status::runnable;
  }
}

void Exploration::after_store(int x, std::size_t position) {
  if (called_[static_cast<std::size_t>(x)] >= position) ++called_[static_cast<std::size_t>(x)];
  for (int i = 0; i < count_; ++i) {
    Thread& other = thread(i);
    if (other.status != Status::put_off || other.step.x != x || position < memory_.oldest(i, x)) continue;
    if (other.until == Until::stored || other.until == Until::called || other.until == Until::touched)
      other.status = Status::runnable;
  }
}

// Two fences commute if neither tells the other anything.
void Exploration::after_fence(const View& before) {
  const bool has_told = !before.covers(memory_.fenced());
  for (int i = 0; i < count_; ++i) {
    Thread& other = thread(i);
    if (other.status != Status::put_off || (other.until != Until::fenced && other.until != Until::reached)) continue;
    if (has_told || memory_.is_news(i, before)) other.status = Status::runnable;
  }
}

// The oldest store that the running thread may read.
std::size_t Exploration::first_option(int x) {
  return is_sequential() ? memory_.stores(x).size() - 1 : memory_.oldest(running_, x);
}

bool Exploration::load(Call& step) {
  const auto order = ordered(step.order, step.where);
  Thread& own = self();
  const auto& stores = memory_.stores(step.x);
  options_now_.clear();
  for (std::size_t p = stores.size(); p-- > first_option(step.x);) {
    if (stores[p].born >= own.born && !memory_.is_outdone(running_, step.x, p)) options_now_.push_back(p);
  }
  const std::size_t count = options_now_.size();
  const int chosen = count == 0 ? 0 : choose(count + (is_worth_waiting(Until::stored, step.x) ? 1 : 0));
  if (chosen < 0) return false;
  if (static_cast<std::size_t>(chosen) == count) return put_off(Until::stored);
  const std::uint64_t value = memory_.read(running_, step.x, options_now_[static_cast<std::size_t>(chosen)], order);
  if (own.is_spinning) note_seen(step.x, value);
  resume(Until::touched, step.x);
  return done(value);
}

bool Exploration::store(Call& step) {
  did(Deed::store, step.x);
  const auto order = ordered(step.order, step.where);
  const auto& stores = memory_.stores(step.x);
  if (is_sequential() && !take(Until::touched)) return false;
  options_now_.clear();
  for (std::size_t p = stores.size(); p > first_option(step.x); --p) {
    if (p == stores.size() || !stores[p].is_update) options_now_.push_back(p);
  }
  const int chosen = choose(options_now_.size());
  if (chosen < 0) return false;
  const std::size_t position = options_now_[static_cast<std::size_t>(chosen)];
  memory_.write(running_, step.x, position, step.value, order);
  after_store(step.x, position);
  return done(step.value);
}

// Also the exchange: of a store that is as expected and that nothing has replaced yet, or else only a load.
bool Exploration::update(Call& step) {
  did(Deed::store, step.x);
  Thread& own = self();
  const auto order = ordered(step.order, step.where);
  const auto failure = ordered(step.failure, step.where);
  const auto& stores = memory_.stores(step.x);
  if (is_sequential() && !take(Until::touched)) return false;
  const auto is_expected = [&](std::size_t p) { return step.kind == Kind::update || stores[p].value == step.value; };
  options_now_.clear();
  for (std::size_t p = stores.size(); p-- > first_option(step.x);) {
    const bool is_taken = p + 1 < stores.size() && stores[p + 1].is_update;
    if (stores[p].born >= own.born && !(is_taken && is_expected(p))) options_now_.push_back(p);
  }
  const std::size_t count = options_now_.size();
  const bool can_wait = !is_sequential() && is_worth_waiting(Until::stored, step.x);
  const int chosen = count == 0 ? 0 : choose(count + (can_wait ? 1 : 0));
  if (chosen < 0) return false;
  if (static_cast<std::size_t>(chosen) == count) return put_off(Until::stored);
  const std::size_t position = options_now_[static_cast<std::size_t>(chosen)];
  const std::uint64_t old = stores[position].value;
  if (is_expected(position)) {
    const bool is_update = step.kind == Kind::update;
    const std::uint64_t next = is_update ? step.change(old, step.value) : step.desired;
    memory_.update(running_, step.x, position, next, order);
    after_store(step.x, position + 1);
  } else {
    memory_.read(running_, step.x, position, failure);
    if (own.is_spinning) note_seen(step.x, old);
    resume(Until::touched, step.x);
  }
  return done(old);
}

int Exploration::contents_at(const Call& step) {
  for (const Contents& contents : contents_) {
    if (contents.is_shared && contents.address == step.address) return contents.x;
  }
  const int x = running_ >= 0 ? memory_.add_plain() : -1;
  contents_.push_back({.address = step.address, .bytes = step.bytes, .is_shared = true, .x = x});
  return contents_.back().x;
}

bool Exploration::read(Call& step) {
  const int x = contents_at(step);
  for (int i = 0; i <= count_; ++i) did(Deed::touch, x + i);
  if (!memory_.plain_read(running_, x)) fail("race: contents are read that others write");
  return done(0);
}

bool Exploration::write(Call& step) {
  const int x = contents_at(step);
  for (int i = 0; i <= count_; ++i) did(Deed::touch, x + i);
  if (!memory_.plain_write(running_, x)) fail("race: contents are written that others use");
  return done(0);
}

bool Exploration::acquire_fence(Call& step) {
  if (!is_weakened(step.where)) memory_.acquire_fence(running_);
  return done(0);
}

bool Exploration::release_fence(Call& step) {
  if (!is_weakened(step.where)) memory_.release_fence(running_);
  return done(0);
}

bool Exploration::full_fence(Call& step) {
  if (is_weakened(step.where)) return done(0);
  did(Deed::fence, -1);
  if (!is_sequential() && !take(Until::fenced)) return false;
  const View before = memory_.fenced();
  memory_.full_fence(running_);
  after_fence(before);
  return done(0);
}

bool Exploration::light_fence(Call& step) {
  if (is_weakened(step.where)) return done(0);
  did(Deed::light_fence, -1);
  if (!is_sequential() && !take(Until::passed)) return false;
  memory_.light_fence(running_);
  for (int i = 0; i < count_; ++i) {
    Thread& other = thread(i);
    const bool awaits = (other.barriers >> running_ & 1U) != 0;
    if (other.status == Status::put_off && other.until == Until::reached && awaits) other.status = Status::runnable;
  }
  return done(0);
}

bool Exploration::heavy_fence(Call& step) {
  if (is_weakened(step.where) || is_sequential()) return done(0);
  did(Deed::heavy_fence, -1);
  Thread& own = self();
  if (own.barriers == 0) own.barriers = ((1U << count_) - 1) & ~(1U << running_);
  // The barrier reaches threads one by one, while others go on; those that do not run, at the end.
  for (;;) {
    options_now_.clear();
    for (int i = 0; i < count_; ++i) {
      const Status status = thread(i).status;
      const bool is_running = status != Status::ended && status != Status::sleeping;
      if ((own.barriers >> i & 1U) != 0 && is_running) options_now_.push_back(static_cast<std::size_t>(i));
    }
    const std::size_t count = options_now_.size();
    if (count == 0) break;
    const int chosen = choose(count + (is_worth_waiting(Until::reached, -1) ? 1 : 0));
    if (chosen < 0) return false;
    if (static_cast<std::size_t>(chosen) == count) return put_off(Until::reached);
    const int other = static_cast<int>(options_now_[static_cast<std::size_t>(chosen)]);
    const View before = memory_.fenced();
    if (!own.has_begun) memory_.full_fence(running_);
    own.has_begun = true;
    own.barriers &= ~(1U << other);
    memory_.pass_barrier(other);
    if (thread(other).until == Until::passed && thread(other).status == Status::put_off) {
      thread(other).status = Status::runnable;
    }
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
  return done(0);
}

bool Exploration::wait(Call& step) {
  did(Deed::sleep, step.x);
  self().is_spinning = false;
  const auto& stores = memory_.stores(step.x);
  const std::size_t called = called_[static_cast<std::size_t>(step.x)];
  bool can_sleep = false;
  std::size_t other = stores.size();
  for (std::size_t p = std::max(first_option(step.x), called); p < stores.size(); ++p) {
    if (stores[p].value == step.value) {
      can_sleep = true;
    } else if (other == stores.size()) {
      other = p;
    }
  }
  enum class Way { sleep, go_on, late };
  Way ways[3];
  std::size_t count = 0;
  if (can_sleep) ways[count++] = Way::sleep;
  if (other != stores.size()) ways[count++] = Way::go_on;
  if (step.has_deadline) ways[count++] = Way::late;
  const int chosen = choose(count + (is_worth_waiting(Until::called, step.x) ? 1 : 0));
  if (chosen < 0) return false;
  if (static_cast<std::size_t>(chosen) == count) return put_off(Until::called);
  resume(Until::touched, step.x);
  switch (ways[chosen]) {
    case Way::late:
      return done(0);
    case Way::go_on:
      memory_.see(running_, step.x, other);
      return done(1);
    case Way::sleep:
      break;
  }
  if (is_traced_) trace(self(), " sleeps");
  self().status = Status::sleeping;
  self().until = Until::nothing;
  resume(Until::slept, step.x);
  return false;
}

bool Exploration::wake(Call& step) {
  did(Deed::wake, step.x);
  if (!take(Until::slept)) return false;
  int left = static_cast<int>(std::min<std::uint64_t>(step.value, INT_MAX));
  for (; left > 0; --left) {
    options_now_.clear();
    for (int i = 0; i < count_; ++i) {
      if (thread(i).status == Status::sleeping && thread(i).step.x == step.x) {
        options_now_.push_back(static_cast<std::size_t>(i));
      }
    }
    const std::size_t sleepers = options_now_.size();
    if (sleepers == 0) break;
    // Which of them does not matter where all are woken.
    const int chosen = sleepers <= static_cast<std::size_t>(left) ? 0 : choose(sleepers);
    if (chosen < 0) return false;
    Thread& other = *threads_[options_now_[static_cast<std::size_t>(chosen)]];
    other.status = Status::runnable;
    other.step.kind = Kind::woken;
  }
  std::size_t& called = called_[static_cast<std::size_t>(step.x)];
  called = std::max(called, memory_.oldest(running_, step.x));
  resume(Until::called, step.x);
  return done(step.value);
}

bool Exploration::may_learn(int i) {
  for (const Seen& seen : thread(i).last) {
    const auto& stores = memory_.stores(seen.x);
    for (std::size_t p = is_sequential() ? stores.size() - 1 : memory_.oldest(i, seen.x); p < stores.size(); ++p) {
      if (stores[p].value != seen.value) return true;
    }
  }
  return false;
}

void Exploration::note_seen(int x, std::uint64_t value) {
  Thread& own = self();
  const auto at = [x](std::vector<Seen>& seen) {
    return std::lower_bound(seen.begin(), seen.end(), x, [](const Seen& a, int b) { return a.x < b; });
  };
  const auto before = at(own.last);
  if (before == own.last.end() || before->x != x || before->value != value) own.has_differed = true;
  const auto place = at(own.round);
  if (place == own.round.end() || place->x != x) {
    own.round.insert(place, {x, value});
  } else {
    place->value = value;
  }
}

bool Exploration::relax(Call& step) {
  Thread& own = self();
  if (std::exchange(own.has_waited, false)) return done(0);
  if (step.value == 0 || !own.is_spinning) {  // the first round is free: it has no other to be compared with
    own.is_spinning = true;
    own.last.clear();
  } else if (!own.has_differed) {
    end_ = End::given_up;
    return false;
  } else {
    std::swap(own.round, own.last);
  }
  own.has_differed = false;
  own.round.clear();
  if (own.last.empty() || may_learn(running_)) return done(0);
  own.has_waited = true;  // when it comes here again
  own.status = Status::relaxing;
  return false;
}

}  // namespace weir::explored
