// Commands per second when the consumer reads them in place, compared with a ring like the LMAX Disruptor's and with
// Weir's own pop, which copies.
#include <atomic>
#include <memory>
#include <vector>

#include "lab/channels/loops/carried.h"
#include "lab/channels/loops/contestants.h"
#include "lab/channels/loops/flow.h"
#include "lab/channels/loops/list.h"

namespace weir::channel_bench {
namespace {

// A copy command: the fields that a consumer needs are spread over its cache line.
struct InPlace {
  using Item = CommandRecord;
  Item make() const noexcept {
    return make_copy(RecordKind::copy_to_device, 0, {.buffer = 1, .offset_bytes = 0, .size_bytes = 64, .payload = 0});
  }
  void mark(Item& item, std::uint32_t number) const noexcept {
    item.id = number;
    item.copy.payload = number;
  }
  std::uint32_t mark_of(const Item& item) const noexcept {
    return item.id ^ static_cast<std::uint32_t>(item.copy.payload - item.id);
  }
};

// A reference implementation, written from the description of the original (Thompson et al., 2011) for one producer and
// one consumer: a ring of events, a cursor that publishes, and the consumer's sequence, which holds the producer back.
// The consumer takes all that the cursor allows as one batch and then advances its sequence. Busy waiting is outside,
// as for the others.
class DisruptorRing {
 public:
  using Item = CommandRecord;

  explicit DisruptorRing(std::size_t capacity) : mask_(ring_capacity(capacity) - 1), events_(mask_ + 1) {}

  // Called by the producer.
  Outcome try_push(const CommandRecord& item) noexcept {
    return try_push_batch({&item, 1}).count == 1 ? Outcome::done : Outcome::full;
  }
  // All of them or none: claims their sequences, fills the events, publishes them.
  Moved try_push_batch(std::span<const CommandRecord> items) noexcept {
    if (!can_claim(items.size())) return {0, Outcome::full};
    for (std::size_t i = 0; i < items.size(); ++i) events_[(next_ + i) & mask_] = items[i];
    next_ += items.size();
    cursor_.store(next_, std::memory_order_release);  // pairs with the acquire in consume()
    return {items.size(), Outcome::done};
  }
  // Called by the consumer: visits the published events in place.
  template <class Visit>
  Moved consume(std::size_t, Visit&& visit) noexcept {
    const std::uint64_t available =
        cursor_.load(std::memory_order_acquire);  // pairs with the release in try_push_batch()
    const std::uint64_t count = available - read_;
    for (; read_ != available; ++read_) visit(events_[read_ & mask_]);
    if (count != 0) consumed_.store(read_, std::memory_order_release);  // pairs with the acquire in can_claim()
    return {count, Outcome::done};
  }
  std::size_t capacity() const noexcept { return events_.size(); }

 private:
  bool can_claim(std::size_t count) noexcept {
    if (next_ + count - gate_seen_ <= mask_ + 1) return true;
    gate_seen_ = consumed_.load(std::memory_order_acquire);  // pairs with the release in consume()
    return next_ + count - gate_seen_ <= mask_ + 1;
  }

  std::uint64_t mask_;
  std::vector<CommandRecord> events_;
  alignas(kApart) std::atomic<std::uint64_t> cursor_{0};
  alignas(kApart) std::atomic<std::uint64_t> consumed_{0};
  std::uint64_t read_ = 0;                  // the consumer's copy of its sequence
  alignas(kApart) std::uint64_t next_ = 0;  // owned by the producer
  std::uint64_t gate_seen_ = 0;
};

template <class Contestant>
Tally visit_all(Contestant& contestant, Flow& flow) {
  const InPlace carried;
  auto& channel = contestant.channel;
  return take_all(flow, [&](Tally& tally) {
    const auto visit = [&](const CommandRecord& item) { tally.add(carried.mark_of(item)); };
    return channel.consume(channel.capacity(), visit).count != 0;
  });
}

template <class Contestant>
void enter(std::vector<Benchmark>& list, const std::string& shared) {
  const auto make = [](const Conditions& here) {
    return [capacity = here.capacity] { return std::make_unique<Contestant>(capacity); };
  };
  list.push_back(entry<Contestant>(
      "single", Unit::per_second, "pushed singly, read in place, one thread to another" + shared,
      [make](const Conditions& here) {
        return measure_flow(here, 1, 1, make(here), produce_singly<Contestant, InPlace>, visit_all<Contestant>);
      }));
  list.push_back(entry<Contestant>("batch", Unit::per_second,
                                   "pushed 16 in one call, read in place, one thread to another" + shared,
                                   [make](const Conditions& here) {
                                     const auto produce = [](Contestant& channel, int, Flow& flow) {
                                       return produce_batches<Contestant, InPlace>(channel, 16, flow);
                                     };
                                     return measure_flow(here, 1, 1, make(here), produce, visit_all<Contestant>);
                                   }));
}

std::vector<Benchmark> benchmarks(const Conditions& conditions) {
  std::vector<Benchmark> list;
  const std::string shared = sharing(conditions, 2);
  enter<SpscContestant<CommandRecord>>(list, shared);
  enter<MpscContestant<CommandRecord>>(list, shared);
  enter<ChannelContestant<DisruptorRing, "disruptor_style", 1, 1, false>>(list, shared);
  for_each_contestant<CommandRecord, 1, 1>([&]<class Contestant>() {
    list.push_back(
        entry<Contestant>("copy", Unit::per_second, "the same commands, popped by copying" + shared,
                          [](const Conditions& here) { return measure_singly<Contestant, InPlace>(here, 1, 1); }));
  });
  return list;
}

}  // namespace

Group read_in_place() {
  return {"read_in_place", "commands per second when they are read where they are", "", benchmarks};
}

}  // namespace weir::channel_bench
