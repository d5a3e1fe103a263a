#include "channel/explored_memory.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <stdexcept>

namespace weir::explored {
namespace {

bool acquires(std::memory_order order) {
  return order == std::memory_order_acquire || order == std::memory_order_acq_rel || order == std::memory_order_consume;
}
bool releases(std::memory_order order) {
  return order == std::memory_order_release || order == std::memory_order_acq_rel;
}

std::uint64_t hash_view(std::uint64_t hash, const View& view, const View& base, int locations) {
  for (int i = 0; i * 16 < locations; ++i) {
    const View::Lane clipped = (view.lanes[i] > base.lanes[i] ? view.lanes[i] : base.lanes[i]) - base.lanes[i];
    std::uint64_t words[2];
    std::memcpy(words, &clipped, sizeof words);
    hash = mix(mix(hash, words[0]), words[1]);
  }
  return hash;
}

}  // namespace

bool View::covers(const View& other) const {
  std::uint64_t above = 0;
  for (int i = 0; i < kLanes; ++i) {
    const auto greater = other.lanes[i] > lanes[i];
    std::uint64_t words[2];
    std::memcpy(words, &greater, sizeof words);
    above |= words[0] | words[1];
  }
  return above == 0;
}

void Memory::reset() {
  thread_count_ = 0;
  for (int x = 0; x < locations_; ++x) stores(x).clear();
  locations_ = 0;
  for (ThreadView& thread : threads_) thread = {};
  fenced_ = {};
  atomics_ = {};
}

int Memory::add_atomic(std::uint64_t value) {
  if (locations_ == kMaxLocations) throw std::length_error("too many locations: raise kMaxLocations");
  const int x = locations_++;
  History& history = histories_[static_cast<std::size_t>(x)];
  history.is_plain = false;
  history.born = 1;
  history.stores.assign(1, Store{.value = value});
  atomics_.set(x, 255);
  return x;
}

int Memory::add_plain() {
  const int first = locations_;
  for (int i = 0; i <= thread_count_; ++i) {
    const int x = add_atomic(0);
    histories_[static_cast<std::size_t>(x)].is_plain = true;
    atomics_.set(x, 0);
  }
  return first;
}

std::uint64_t Memory::read(int thread, int x, std::size_t position, std::memory_order order) {
  ThreadView& own = threads_[thread];
  const Store& store = stores(x)[position];
  own.now.set(x, position);
  if (acquires(order)) own.now.join(store.view);
  own.acquired.join(store.view);
  own.acquired.join(own.now);
  return store.value;
}

bool Memory::is_outdone(int thread, int x, std::size_t position) {
  const auto& history = stores(x);
  for (std::size_t p = oldest(thread, x); p < position; ++p) {
    if (history[p].value == history[position].value && history[position].view.covers(history[p].view)) return true;
  }
  return false;
}

void Memory::insert(int x, std::size_t position, Store store) {
  History& history = histories_[static_cast<std::size_t>(x)];
  if (history.stores.size() >= 255) throw std::length_error("too many stores to one location");
  if (position < history.stores.size()) {
    const auto shift = [&](View& view) {
      if (view.at(x) >= position) view.set(x, view.at(x) + 1U);
    };
    for (ThreadView& thread : threads_) {
      for (View* view : {&thread.now, &thread.acquired, &thread.released, &thread.light, &thread.due}) shift(*view);
    }
    shift(fenced_);
    for (int y = 0; y < locations_; ++y) {
      for (Store& other : stores(y)) shift(other.view);
    }
  }
  store.view.set(x, position);
  store.born = history.born++;
  history.stores.insert(history.stores.begin() + static_cast<std::ptrdiff_t>(position), store);
}

void Memory::write(int thread, int x, std::size_t position, std::uint64_t value, std::memory_order order) {
  ThreadView& own = threads_[thread];
  insert(x, position, {.value = value, .view = releases(order) ? own.now : own.released});
  own.now.set(x, position);
  own.acquired.set(x, std::max<std::size_t>(own.acquired.at(x), position));
}

void Memory::update(int thread, int x, std::size_t position, std::uint64_t value, std::memory_order order) {
  read(thread, x, position, order);
  ThreadView& own = threads_[thread];
  Store store{.value = value, .view = releases(order) ? own.now : own.released, .is_update = true};
  store.view.join(stores(x)[position].view);
  insert(x, position + 1, store);
  own.now.set(x, position + 1);
  own.acquired.set(x, std::max<std::size_t>(own.acquired.at(x), position + 1));
}

void Memory::see(int thread, int x, std::size_t position) {
  ThreadView& own = threads_[thread];
  own.now.set(x, std::max<std::size_t>(own.now.at(x), position));
  own.acquired.set(x, std::max<std::size_t>(own.acquired.at(x), position));
}

void Memory::acquire_fence(int thread) { threads_[thread].now = threads_[thread].acquired; }

void Memory::release_fence(int thread) { threads_[thread].released = threads_[thread].now; }

void Memory::full_fence(int thread) {
  ThreadView& own = threads_[thread];
  own.acquired.join(fenced_);
  own.now = own.acquired;
  fenced_.join(own.now.masked(atomics_));
  own.released = own.now;
  own.light = own.now;
}

void Memory::light_fence(int thread) {
  ThreadView& own = threads_[thread];
  own.now.join(own.due);
  own.acquired.join(own.now);
  // A barrier that comes later acquires too, so what was read before is told by it.
  own.light = own.acquired;
}

void Memory::pass_barrier(int thread) {
  fenced_.join(threads_[thread].light.masked(atomics_));
  threads_[thread].due.join(fenced_);
}

bool Memory::plain_read(int thread, int x) {
  ThreadView& own = threads_[thread];
  const auto version = stores(x).front().value;
  if (own.now.at(x) != version) return false;
  std::uint64_t& reads = stores(x + 1 + thread).front().value;
  if (++reads > 255) throw std::length_error("too many reads of one cell");
  own.now.set(x + 1 + thread, reads);
  own.acquired.set(x + 1 + thread, reads);
  return true;
}

bool Memory::plain_write(int thread, int x) {
  ThreadView& own = threads_[thread];
  std::uint64_t& version = stores(x).front().value;
  if (own.now.at(x) != version) return false;
  for (int i = 0; i < thread_count_; ++i) {
    if (own.now.at(x + 1 + i) != stores(x + 1 + i).front().value) return false;
  }
  if (++version > 255) throw std::length_error("too many writes of one cell");
  own.now.set(x, version);
  own.acquired.set(x, version);
  return true;
}

std::uint64_t Memory::hash(std::uint32_t live, std::span<const std::uint32_t> readers, bool only_last) {
  for (int x = 0; x < locations_; ++x) {
    std::uint8_t oldest = 255;
    for (std::uint32_t left = readers[static_cast<std::size_t>(x)] & live; left != 0; left &= left - 1) {
      oldest = std::min(oldest, threads_[std::countr_zero(left)].now.at(x));
    }
    const auto& history = histories_[static_cast<std::size_t>(x)];
    const bool has_one = only_last && oldest != 255 && !history.is_plain;
    base_.set(x, has_one ? history.stores.size() - 1 : oldest);
  }
  std::uint64_t hash = 1;
  for (int i = 0; i < thread_count_; ++i) {
    if ((live >> i & 1U) == 0) continue;
    const ThreadView& own = threads_[i];
    for (const View* view : {&own.now, &own.acquired, &own.released, &own.light, &own.due}) {
      hash = hash_view(hash, *view, base_, locations_);
    }
  }
  hash = hash_view(hash, fenced_, base_, locations_);
  for (int x = 0; x < locations_; ++x) {
    const History& history = histories_[static_cast<std::size_t>(x)];
    if (base_.at(x) == 255) continue;
    if (history.is_plain) {
      hash = mix(hash, history.stores.front().value - base_.at(x));
      continue;
    }
    hash = mix(hash, history.stores.size() - base_.at(x));
    for (std::size_t i = base_.at(x); i < history.stores.size(); ++i) {
      const Store& store = history.stores[i];
      hash = mix(hash, store.value * 2 + (store.is_update ? 1U : 0U));
      hash = hash_view(hash, store.view, base_, locations_);
    }
  }
  return hash;
}

}  // namespace weir::explored
