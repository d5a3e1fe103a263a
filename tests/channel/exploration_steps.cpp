// What a thread can ask for, but for sleeping and spinning: exploration_waits.cpp.
#include <stdexcept>

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

bool Exploration::is_weakened(std::string_view what, const Where& where) {
  if (options_.sites != nullptr)
    options_.sites->insert({what, where.file_name(), where.line(), where.column(), running_});
  const Site* site = options_.weakened;
  return site != nullptr && site->line == where.line() && site->column == where.column() && site->thread == running_ &&
         site->what == what && site->file == where.file_name();
}

std::memory_order Exploration::ordered(std::memory_order order, const Where& where) {
  if (order == std::memory_order_relaxed) return order;
  if (order == std::memory_order_seq_cst) fail("seq_cst operations are not explored: use full_fence()");
  const std::string_view what = order == std::memory_order_acq_rel   ? "acq_rel"
                                : order == std::memory_order_release ? "release"
                                                                     : "acquire";
  return is_weakened(what, where) ? std::memory_order_relaxed : order;
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
    const bool is_outdone = is_reduced() && memory_.is_outdone(running_, step.x, p);
    if (stores[p].born >= own.born && !is_outdone) options_now_.push_back(p);
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
  if (!is_weakened("acquire_fence", step.where)) memory_.acquire_fence(running_);
  return done(0);
}

bool Exploration::release_fence(Call& step) {
  if (!is_weakened("release_fence", step.where)) memory_.release_fence(running_);
  return done(0);
}

bool Exploration::full_fence(Call& step) {
  if (is_weakened("full_fence", step.where)) return done(0);
  did(Deed::fence, -1);
  if (!is_sequential() && !take(Until::fenced)) return false;
  const View before = memory_.fenced();
  memory_.full_fence(running_);
  after_fence(before);
  return done(0);
}

bool Exploration::light_fence(Call& step) {
  if (is_weakened("light_fence", step.where)) return done(0);
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
  if (is_weakened("heavy_fence", step.where) || is_sequential()) return done(0);
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
    if (!is_reduced() && own.barriers != 0) return false;  // others may come between
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

}  // namespace weir::explored
