// One reply to one question: set once, awaited with a limit. Either side may go away first: a sender that is dropped
// closes its reply, a receiver that is dropped lets the reply fall. Replies live in slots that are used again and
// again, so asking allocates nothing; a slot's generation tells a late reply from the one that is awaited there now.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>

#include "base/error.h"
#include "channel/wait.h"

namespace weir {

// Names one reply for all time: the slot and its generation. Can travel through a channel like bytes. 0: none.
using Ticket = std::uint64_t;

// The slots. They outlive every ticket that is still used, as a channel outlives those who push to it.
template <class T, Wait kWait = Wait::spin_then_park, class Sync = System>
class Oneshots {
  static_assert(std::is_trivially_copyable_v<T>, "replies are copied like bytes");

  static constexpr int kIndexBits = 16;
  static constexpr std::uint32_t kNoSlot = UINT32_MAX;

 public:
  using Reply = T;
  static constexpr std::size_t kMostSlots = std::size_t{1} << kIndexBits;

  // `slots`: how many replies can be awaited at once.
  explicit Oneshots(std::size_t slots) : slots_(new Slot[check_count(slots)]) {
    Sync::prepare();
    for (std::size_t i = 0; i < slots; ++i) {
      slots_[i].state.store(kFirstGeneration << kPhaseBits, std::memory_order_relaxed);
      slots_[i].next.store(i + 1 == slots ? kNoSlot : static_cast<std::uint32_t>(i + 1), std::memory_order_relaxed);
    }
  }

  // The receiver's. `full`: every slot is awaited, and none came back within the limit.
  Outcome open(Ticket& ticket, Limit limit = Limit::none()) noexcept {
    return await<kWait, Sync>(freed_, limit, Outcome::full, [&] { return try_open(ticket); });
  }
  // `done`: the reply is in `reply`; `closed`: there will be none. After both the ticket is spent. `late` (`empty`
  // without a limit): not yet; wait again, or give up.
  Outcome wait(Ticket ticket, T& reply, Limit limit = Limit::forever()) noexcept {
    Slot& slot = slot_of(ticket);
    return await<kWait, Sync>(slot.changed, limit, Outcome::empty, [&] {
      const std::uint64_t state = slot.state.load(std::memory_order_acquire);  // pairs with set() and drop()
      if (state == state_of(ticket, Phase::set)) {
        Sync::note_read(&slot, sizeof(Slot));
        reply = slot.reply;
        retire(ticket);
        return Outcome::done;
      }
      if (state == state_of(ticket, Phase::dropped)) {
        retire(ticket);
        return Outcome::closed;
      }
      // Another generation: the ticket was spent before.
      return generation_of(state) == generation_of(ticket) ? Outcome::empty : Outcome::closed;
    });
  }
  // From now on a reply falls. The slot serves others at once: a sender that is too late finds another generation.
  void give_up(Ticket ticket) noexcept {
    Slot& slot = slot_of(ticket);
    std::uint64_t state = state_of(ticket, Phase::open);
    // Acquires: the next reply is written behind what became of this one.
    while (!slot.state.compare_exchange_weak(state, next_of(ticket, state), std::memory_order_acq_rel,
                                             std::memory_order_acquire)) {
      if (generation_of(state) != generation_of(ticket) || phase_of(state) == Phase::abandoned) return;
    }
    if (phase_of(state) != Phase::writing) recycle(ticket);
  }

  // The sender's, once; any thread. False: nobody waits any more, and the reply fell.
  bool set(Ticket ticket, const T& reply) noexcept {
    Slot& slot = slot_of(ticket);
    std::uint64_t state = state_of(ticket, Phase::open);
    // Ours to write only while this generation is open. Pairs with the release in try_open().
    if (!slot.state.compare_exchange_strong(state, state_of(ticket, Phase::writing), std::memory_order_acquire,
                                            std::memory_order_relaxed)) {
      return false;
    }
    Sync::note_write(&slot, sizeof(Slot));
    slot.reply = reply;
    state = state_of(ticket, Phase::writing);
    // Pairs with the acquires in wait() and give_up().
    if (!slot.state.compare_exchange_strong(state, state_of(ticket, Phase::set), std::memory_order_release,
                                            std::memory_order_relaxed)) {
      retire(ticket);  // given up while it was written: the slot was left to us
      return false;
    }
    slot.changed.notify();
    return true;
  }
  // There will be no reply. Harmless where there has been one.
  void drop(Ticket ticket) noexcept {
    Slot& slot = slot_of(ticket);
    std::uint64_t state = state_of(ticket, Phase::open);
    // Pairs with the acquire in wait(): who is told sees what led to it.
    if (slot.state.compare_exchange_strong(state, state_of(ticket, Phase::dropped), std::memory_order_release,
                                           std::memory_order_relaxed)) {
      slot.changed.notify();
    }
  }

  // The two ends as objects that let go when they are destroyed: one class, but for what letting go is.
  template <void (Oneshots::*kLetGo)(Ticket) noexcept>
  class End {
   public:
    End() = default;
    End(Oneshots& slots, Ticket ticket) noexcept : slots_(&slots), ticket_(ticket) {}
    End(End&& other) noexcept : slots_(other.slots_), ticket_(other.release()) {}
    End& operator=(End&& other) noexcept {
      let_go();
      slots_ = other.slots_;
      ticket_ = other.release();
      return *this;
    }
    ~End() { let_go(); }

    void let_go() noexcept {
      if (ticket_ != 0) (slots_->*kLetGo)(release());
    }
    // A sender's into a channel: whoever takes it from there makes a Sender of it again.
    Ticket release() noexcept { return std::exchange(ticket_, 0); }

   protected:
    Oneshots* slots_ = nullptr;
    Ticket ticket_ = 0;
  };
  struct Sender : End<&Oneshots::drop> {
    using End<&Oneshots::drop>::End;
    // False: nobody waits any more, or this was set before.
    bool set(const T& reply) noexcept { return this->ticket_ != 0 && this->slots_->set(this->release(), reply); }
    void drop() noexcept { this->let_go(); }
  };
  struct Receiver : End<&Oneshots::give_up> {
    using End<&Oneshots::give_up>::End;
    // `late`: not yet; may be called again. `closed` where the sender is gone, and after a reply.
    Outcome wait(T& reply, Limit limit = Limit::forever()) noexcept {
      if (this->ticket_ == 0) return Outcome::closed;
      const Outcome outcome = this->slots_->wait(this->ticket_, reply, limit);
      if (outcome == Outcome::done || outcome == Outcome::closed) this->release();
      return outcome;
    }
    void give_up() noexcept { this->let_go(); }
  };
  struct Pair {
    Sender sender;
    Receiver receiver;
  };
  // Nothing: every slot is awaited, and none came back within the limit.
  std::optional<Pair> make(Limit limit = Limit::none()) noexcept {
    Ticket ticket = 0;
    if (open(ticket, limit) != Outcome::done) return std::nullopt;
    return Pair{Sender(*this, ticket), Receiver(*this, ticket)};
  }

 private:
  // What a slot is up to. With the generation in one word, so that one exchange decides who comes first.
  enum class Phase : std::uint64_t {
    free,
    open,       // awaited
    writing,    // a sender has it, the receiver waits on
    abandoned,  // a sender has it, the receiver is gone: the sender frees it
    set,
    dropped,
  };
  static constexpr std::uint64_t kFirstGeneration = 1;  // no ticket is 0
  static constexpr int kPhaseBits = kIndexBits;         // a ticket is a state with the index in the place of the phase

  struct alignas(kApart) Slot {
    typename Sync::template Atomic<std::uint64_t> state{0};
    typename Sync::template Atomic<std::uint32_t> next{kNoSlot};  // of those that are free
    T reply{};
    Event<kWait, Sync> changed;
  };

  static std::size_t check_count(std::size_t slots) {
    if (slots == 0) reject("replies need a slot", "Use 1 slot or more.");
    if (slots > kMostSlots) reject("at most 65536 replies can be awaited at once", "Use fewer slots.");
    return slots;
  }
  static constexpr std::uint64_t generation_of(std::uint64_t state) noexcept { return state >> kPhaseBits; }
  static constexpr Phase phase_of(std::uint64_t state) noexcept {
    return static_cast<Phase>(state & ((std::uint64_t{1} << kPhaseBits) - 1));
  }
  static constexpr std::uint64_t state_of(Ticket ticket, Phase phase) noexcept {
    return (generation_of(ticket) << kPhaseBits) | static_cast<std::uint64_t>(phase);
  }
  static constexpr std::uint64_t freed_state(Ticket ticket) noexcept {
    return ((generation_of(ticket) + 1) << kPhaseBits) | static_cast<std::uint64_t>(Phase::free);
  }
  // What the state becomes when the receiver gives up.
  static constexpr std::uint64_t next_of(Ticket ticket, std::uint64_t state) noexcept {
    return phase_of(state) == Phase::writing ? state_of(ticket, Phase::abandoned) : freed_state(ticket);
  }
  Slot& slot_of(Ticket ticket) noexcept { return slots_[ticket & (kMostSlots - 1)]; }

  Outcome try_open(Ticket& ticket) noexcept {
    // Pairs with the release in recycle().
    std::uint64_t head = free_.load(std::memory_order_acquire);
    std::uint32_t index = 0;
    do {
      index = static_cast<std::uint32_t>(head);
      if (index == kNoSlot) return Outcome::full;
      // May be another's `next` by now; then the tag has changed, and the exchange fails.
    } while (!free_.compare_exchange_weak(head, tagged(head, slots_[index].next.load(std::memory_order_relaxed)),
                                          std::memory_order_acquire));
    Slot& slot = slots_[index];
    const std::uint64_t state = slot.state.load(std::memory_order_relaxed);      // ours alone: acquired with the list
    ticket = state | index;                                                      // the phase is `free`, which is 0
    slot.state.store(state_of(ticket, Phase::open), std::memory_order_release);  // pairs with the acquire in set()
    return Outcome::done;
  }
  void retire(Ticket ticket) noexcept {
    slot_of(ticket).state.store(freed_state(ticket), std::memory_order_release);  // pairs with set() of an old ticket
    recycle(ticket);
  }
  void recycle(Ticket ticket) noexcept {
    const auto index = static_cast<std::uint32_t>(ticket & (kMostSlots - 1));
    std::uint64_t head = free_.load(std::memory_order_relaxed);
    do {
      slots_[index].next.store(static_cast<std::uint32_t>(head), std::memory_order_relaxed);
      // Pairs with the acquires in try_open().
    } while (!free_.compare_exchange_weak(head, tagged(head, index), std::memory_order_acq_rel));
    freed_.notify();
  }
  // The list's head with a tag that changes each time, so that a head that comes back is not taken for the same list.
  static constexpr std::uint64_t tagged(std::uint64_t head, std::uint32_t index) noexcept {
    return (((head >> 32) + 1) << 32) | index;
  }

  const std::unique_ptr<Slot[]> slots_;
  alignas(kApart) typename Sync::template Atomic<std::uint64_t> free_{0};  // tag and index of the first free slot
  Event<kWait, Sync> freed_;
};

}  // namespace weir
