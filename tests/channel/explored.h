// The machine that channels see in an exploration: every step is told to it (exploration.h), nothing is done directly.
#pragma once

#include <cstdint>
#include <type_traits>

#include "channel/exploration.h"

namespace weir::explored {

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
      return static_cast<T>(Exploration::current()->load(x_, order, where));
    }
    void store(T value, std::memory_order order = std::memory_order_seq_cst, Where where = Where::current()) {
      Exploration::current()->store(x_, word(value), order, where);
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
      std::uint64_t old = word(expected);
      const bool is_done = Exploration::current()->compare_exchange(x_, old, word(desired), success, failure, where);
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
      return static_cast<T>(Exploration::current()->update(x_, change, word(operand), order, where));
    }

    int x_;
  };

  static std::uint64_t load(const std::uint64_t& word, std::memory_order order, Where where = Where::current()) {
    Exploration& exploration = *Exploration::current();
    return exploration.load(exploration.word_at(word), order, where);
  }
  static void store(std::uint64_t& word, std::uint64_t value, std::memory_order order, Where where = Where::current()) {
    Exploration& exploration = *Exploration::current();
    exploration.store(exploration.word_at(word), value, order, where);
  }
  static void note_read(const void* address, Where where = Where::current()) {
    Exploration::current()->note_read(address, where);
  }
  static void note_write(const void* address, Where where = Where::current()) {
    Exploration::current()->note_write(address, where);
  }

  static constexpr std::memory_order kScan = std::memory_order_relaxed;
  static void acquire_fence(Where where = Where::current()) { Exploration::current()->acquire_fence(where); }
  static void full_fence(Where where = Where::current()) { Exploration::current()->full_fence(where); }
  static void light_fence(Where where = Where::current()) { Exploration::current()->light_fence(where); }
  static void heavy_fence(Where where = Where::current()) { Exploration::current()->heavy_fence(where); }
  static void prepare() {}

  static bool wait(Atomic<std::uint32_t>& word, std::uint32_t value, std::int64_t deadline_ns,
                   Where where = Where::current()) {
    return Exploration::current()->wait(word.location(), value, deadline_ns != INT64_MAX, where);
  }
  static void wake(Atomic<std::uint32_t>& word, int threads, Where where = Where::current()) {
    Exploration::current()->wake(word.location(), threads, where);
  }
  static void relax(int spins, Where where = Where::current()) { Exploration::current()->relax(spins, where); }
  static void retry(int tries, Where where = Where::current()) { Exploration::current()->retry(tries, where); }

  static constexpr int kSpinsBeforePark = kSpins;
};

using Explored = ExploredWith<1>;

}  // namespace weir::explored
