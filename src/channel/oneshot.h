// One reply to one request: set once, awaited with a limit. Either side may go away first: a dropped sender closes its
// reply, and a reply to a dropped receiver is discarded. Replies live in reused slots, so a request allocates nothing;
// a slot's generation distinguishes a late reply from the one that is awaited there now.
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

// Uniquely identifies one reply: the slot and its generation. Can travel through a channel as bytes. 0: none.
using Ticket = std::uint64_t;

// The slots. They must outlive every ticket in use, as a channel must outlive its producers.
template <class T, Wait kWait = Wait::spin_then_park, class Sync = System>
class Oneshots {
  static_assert(std::is_trivially_copyable_v<T>, "replies are copied like bytes");

  static constexpr int kIndexBits = 16;
  static constexpr std::uint32_t kNoSlot = UINT32_MAX;

 public:
  using Reply = T;
  static constexpr std::size_t kMaxSlots = std::size_t{1} << kIndexBits;

  // `slots`: how many replies can be awaited at once.
  explicit Oneshots(std::size_t slots) : slots_(new Slot[check_count(slots)]) {
    Sync::prepare();
    for (std::size_t i = 0; i < slots; ++i) {
      slots_[i].state.store(kFirstGeneration << kPhaseBits, std::memory_order_relaxed);
      slots_[i].next.store(i + 1 == slots ? kNoSlot : static_cast<std::uint32_t>(i + 1), std::memory_order_relaxed);
    }
  }

  // For the receiver. `full`: every slot is in use, and none was returned within the limit.
  Outcome open(Ticket& ticket, Limit limit = Limit::none()) noexcept {
    return await<kWait, Sync>(freed_, limit, Outcome::full, [&] { return try_open(ticket); });
  }
  // `done`: the reply is in `reply`; `closed`: there will be none. Either ends the ticket's use. `late` (`empty`
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
      // Another generation: the ticket was already used up.
      return generation_of(state) == generation_of(ticket) ? Outcome::empty : Outcome::closed;
    });
  }
  // From now on a reply is discarded. The slot can be reused at once: a late sender finds another generation.
  void give_up(Ticket ticket) noexcept {
    Slot& slot = slot_of(ticket);
    std::uint64_t state = state_of(ticket, Phase::open);
    // Acquires, so that the next reply is written after the end of this one.
    while (!slot.state.compare_exchange_weak(state, next_of(ticket, state), std::memory_order_acq_rel,
                                             std::memory_order_acquire)) {
      if (generation_of(state) != generation_of(ticket) || phase_of(state) == Phase::abandoned) return;
    }
    if (phase_of(state) != Phase::writing) recycle(ticket);
  }

  // For the sender, once; any thread. False: nobody is waiting any more, and the reply was discarded.
  bool set(Ticket ticket, const T& reply) noexcept {
    Slot& slot = slot_of(ticket);
    std::uint64_t state = state_of(ticket, Phase::open);
    // Writable only while this generation is open. Pairs with the release in try_open().
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
      retire(ticket);  // the receiver gave up during the write and left the slot to this thread
      return false;
    }
    slot.changed.notify();
    return true;
  }
  // There will be no reply. Harmless if there was one already.
  void drop(Ticket ticket) noexcept {
    Slot& slot = slot_of(ticket);
    std::uint64_t state = state_of(ticket, Phase::open);
    // Pairs with the acquire in wait(): the receiver sees what led to this.
    if (slot.state.compare_exchange_strong(state, state_of(ticket, Phase::dropped), std::memory_order_release,
                                           std::memory_order_relaxed)) {
      slot.changed.notify();
    }
  }

  // The two ends as objects that let go when destroyed; they differ only in how they let go.
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
    // For sending through a channel: the receiver of the ticket makes a Sender of it again.
    Ticket release() noexcept { return std::exchange(ticket_, 0); }

   protected:
    Oneshots* slots_ = nullptr;
    Ticket ticket_ = 0;
  };
  struct Sender : End<&Oneshots::drop> {
    using End<&Oneshots::drop>::End;
    // False: nobody is waiting any more, or a reply was already set.
    bool set(const T& reply) noexcept { return this->ticket_ != 0 && this->slots_->set(this->release(), reply); }
    void drop() noexcept { this->let_go(); }
  };
  struct Receiver : End<&Oneshots::give_up> {
    using End<&Oneshots::give_up>::End;
    // `late`: not yet; may be called again. `closed` if the sender is gone, and after a reply.
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
  // Nothing: every slot is in use, and none was returned within the limit.
  std::optional<Pair> make(Limit limit = Limit::none()) noexcept {
    Ticket ticket = 0;
    if (open(ticket, limit) != Outcome::done) return std::nullopt;
    return Pair{Sender(*this, ticket), Receiver(*this, ticket)};
  }

 private:
  // The state of a slot. In one word with the generation, so that one exchange decides which side is first.
  enum class Phase : std::uint64_t {
    free,
    open,       // awaited
    writing,    // a sender has it, and the receiver still waits
    abandoned,  // a sender has it, the receiver is gone: the sender frees it
    set,
    dropped,
  };
  static constexpr std::uint64_t kFirstGeneration = 1;  // no ticket is 0
  static constexpr int kPhaseBits = kIndexBits;         // a ticket is a state with the index in place of the phase

  struct alignas(kApart) Slot {
    typename Sync::template Atomic<std::uint64_t> state{0};
    typename Sync::template Atomic<std::uint32_t> next{kNoSlot};  // in the list of free slots
    T reply{};
    Event<kWait, Sync> changed;
  };

  static std::size_t check_count(std::size_t slots) {
    if (slots == 0) reject("replies need a slot", "Use 1 slot or more.");
    if (slots > kMaxSlots) reject("at most 65536 replies can be awaited at once", "Use fewer slots.");
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
  // The new state when the receiver gives up.
  static constexpr std::uint64_t next_of(Ticket ticket, std::uint64_t state) noexcept {
    return phase_of(state) == Phase::writing ? state_of(ticket, Phase::abandoned) : freed_state(ticket);
  }
  Slot& slot_of(Ticket ticket) noexcept { return slots_[ticket & (kMaxSlots - 1)]; }

  Outcome try_open(Ticket& ticket) noexcept {
    // Pairs with the release in recycle().
    std::uint64_t head = free_.load(std::memory_order_acquire);
    std::uint32_t index = 0;
    do {
      index = static_cast<std::uint32_t>(head);
      if (index == kNoSlot) return Outcome::full;
      // May be another list's `next` by now; then the tag has changed, and the exchange fails.
    } while (!free_.compare_exchange_weak(head, tagged(head, slots_[index].next.load(std::memory_order_relaxed)),
                                          std::memory_order_acquire));
    Slot& slot = slots_[index];
    const std::uint64_t state = slot.state.load(std::memory_order_relaxed);      // ours: acquired with the list
    ticket = state | index;                                                      // the phase is `free`, which is 0
    slot.state.store(state_of(ticket, Phase::open), std::memory_order_release);  // pairs with the acquire in set()
    return Outcome::done;
  }
  void retire(Ticket ticket) noexcept {
    slot_of(ticket).state.store(freed_state(ticket), std::memory_order_release);  // pairs with set() of an old ticket
    recycle(ticket);
  }
  void recycle(Ticket ticket) noexcept {
    const auto index = static_cast<std::uint32_t>(ticket & (kMaxSlots - 1));
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
