// The machine that channels see in an exploration: every step is told to it (exploration.h), nothing is done directly.
#pragma once

#include <cstdint>
#include <type_traits>

#include "channel/exploration.h"

namespace weir::explored {

inline std::uint64_t call(const Call& step) { return Exploration::current()->call(step); }

template <int kSpins>
struct ExploredWith {
  template <class T>
  class Atomic {
    static_assert(std::is_integral_v<T>);

   public:
    Atomic() : Atomic(T{}) {}
    explicit(false) Atomic(T value) : x_(Exploration::current()->add_atomic(word(value))) {}
    Atomic(const Atomic&) = delete;
    Atomic& operator=(const Atomic&) = delete;

    T load(std::memory_order order = std::memory_order_seq_cst, Where where = Where::current()) const {
      return static_cast<T>(call({.kind = Kind::load, .order = order, .x = x_, .where = where}));
    }
    void store(T value, std::memory_order order = std::memory_order_seq_cst, Where where = Where::current()) {
      call({.kind = Kind::store, .order = order, .x = x_, .value = word(value), .where = where});
    }
    T exchange(T value, std::memory_order order = std::memory_order_seq_cst, Where where = Where::current()) {
      return update([](std::uint64_t, std::uint64_t operand) { return operand; }, value, order, where);
    }
    T fetch_add(T value, std::memory_order order = std::memory_order_seq_cst, Where where = Where::current()) {
      return update([](std::uint64_t old, std::uint64_t operand) { return word(static_cast<T>(old + operand)); }, value,
                    order, where);
    }
    T fetch_sub(T value, std::memory_order order = std::memory_order_seq_cst, Where where = Where::current()) {
      return update([](std::uint64_t old, std::uint64_t operand) { return word(static_cast<T>(old - operand)); }, value,
                    order, where);
    }
    T fetch_or(T value, std::memory_order order = std::memory_order_seq_cst, Where where = Where::current()) {
      return update([](std::uint64_t old, std::uint64_t operand) { return old | operand; }, value, order, where);
    }
    T fetch_and(T value, std::memory_order order = std::memory_order_seq_cst, Where where = Where::current()) {
      return update([](std::uint64_t old, std::uint64_t operand) { return old & operand; }, value, order, where);
    }
    bool compare_exchange_strong(T& expected, T desired, std::memory_order success, std::memory_order failure,
                                 Where where = Where::current()) {
      const std::uint64_t old = call({.kind = Kind::exchange,
                                      .order = success,
                                      .failure = failure,
                                      .x = x_,
                                      .value = word(expected),
                                      .desired = word(desired),
                                      .where = where});
      const bool is_done = old == word(expected);
      expected = static_cast<T>(old);
      return is_done;
    }
    bool compare_exchange_strong(T& expected, T desired, std::memory_order order = std::memory_order_seq_cst,
                                 Where where = Where::current()) {
      const bool has_release = order == std::memory_order_acq_rel || order == std::memory_order_release;
      const auto failure = !has_release                         ? order
                           : order == std::memory_order_acq_rel ? std::memory_order_acquire
                                                                : std::memory_order_relaxed;
      return compare_exchange_strong(expected, desired, order, failure, where);
    }
    bool compare_exchange_weak(T& expected, T desired, std::memory_order success, std::memory_order failure,
                               Where where = Where::current()) {
      return compare_exchange_strong(expected, desired, success, failure, where);
    }
    bool compare_exchange_weak(T& expected, T desired, std::memory_order order = std::memory_order_seq_cst,
                               Where where = Where::current()) {
      return compare_exchange_strong(expected, desired, order, where);
    }
    int location() const { return x_; }

   private:
    static std::uint64_t word(T value) {
      if constexpr (std::is_same_v<T, bool>) {
        return value ? 1 : 0;
      } else {
        return static_cast<std::make_unsigned_t<T>>(value);
      }
    }
    T update(Change change, T operand, std::memory_order order, const Where& where) {
      return static_cast<T>(call(
          {.kind = Kind::update, .order = order, .x = x_, .value = word(operand), .change = change, .where = where}));
    }

    int x_;
  };

  static std::uint64_t load(const std::uint64_t& word, std::memory_order order, Where where = Where::current()) {
    return call({.kind = Kind::load, .order = order, .x = Exploration::current()->word_at(word), .where = where});
  }
  static void store(std::uint64_t& word, std::uint64_t value, std::memory_order order, Where where = Where::current()) {
    const int x = Exploration::current()->word_at(word);
    call({.kind = Kind::store, .order = order, .x = x, .value = value, .where = where});
    word = value;  // for those who read it as contents
  }
  static void note_read(const void* address, std::size_t bytes, Where where = Where::current()) {
    call({.kind = Kind::read, .address = address, .bytes = bytes, .where = where});
  }
  static void note_write(const void* address, std::size_t bytes, Where where = Where::current()) {
    call({.kind = Kind::write, .address = address, .bytes = bytes, .where = where});
  }

  static constexpr std::memory_order kScan = std::memory_order_relaxed;
  static void acquire_fence(Where where = Where::current()) { call({.kind = Kind::acquire_fence, .where = where}); }
  static constexpr std::memory_order kSpread = std::memory_order_relaxed;
  static void release_fence(Where where = Where::current()) { call({.kind = Kind::release_fence, .where = where}); }
  static void full_fence(Where where = Where::current()) { call({.kind = Kind::full_fence, .where = where}); }
  static void light_fence(Where where = Where::current()) { call({.kind = Kind::light_fence, .where = where}); }
  static void heavy_fence(Where where = Where::current()) { call({.kind = Kind::heavy_fence, .where = where}); }
  static void prepare() {}

  static bool wait(Atomic<std::uint32_t>& word, std::uint32_t value, std::int64_t deadline_ns,
                   Where where = Where::current()) {
    return call({.kind = Kind::wait,
                 .has_deadline = deadline_ns != INT64_MAX,
                 .x = word.location(),
                 .value = value,
                 .where = where}) != 0;
  }
  static void wake(Atomic<std::uint32_t>& word, int threads, Where where = Where::current()) {
    call({.kind = Kind::wake, .x = word.location(), .value = static_cast<std::uint64_t>(threads), .where = where});
  }
  static void relax(int spins, Where where = Where::current()) {
    call({.kind = Kind::relax, .value = static_cast<std::uint64_t>(spins), .where = where});
  }

  static constexpr int next_spin(int) { return 1; }  // one round is like the other
  static constexpr int kSpinsBeforePark = kSpins;
};

using Explored = ExploredWith<1>;
using Quick = ExploredWith<0>;  // spin_then_park does not spin: only its fences differ from park's

}  // namespace weir::explored
