// Commands per second when the consumer reads them where they are, against a ring in the manner of the LMAX Disruptor
// and against our own pop, which copies.
#include <algorithm>
#include <atomic>
#include <memory>
#include <vector>

#include "lab/channels/loops/carried.h"
#include "lab/channels/loops/contestants.h"
#include "lab/channels/loops/flow.h"
#include "lab/channels/loops/list.h"

namespace weir::channel_bench {
namespace {

// A copy command: what a consumer needs of it is spread over its line.
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

// A reference, written after the description of the original (Thompson et al., 2011) and for one producer and one
// consumer: a ring of events, a cursor that publishes, and the consumer's sequence, which holds the producer back. The
// consumer takes all that the cursor allows as one batch and moves its sequence behind it. Busy waiting outside, as for
// the others.
class DisruptorRing {
 public:
  explicit DisruptorRing(std::size_t capacity) : mask_(ring_capacity(capacity) - 1), events_(mask_ + 1) {}

  // The producer's: claims `count` sequences; null where there is no room for them.
  bool can_claim(std::size_t count) noexcept {
    if (next_ + count - gate_seen_ <= mask_ + 1) return true;
    gate_seen_ = consumed_.load(std::memory_order_acquire);  // pairs with the release in consume()
    return next_ + count - gate_seen_ <= mask_ + 1;
  }
  CommandRecord& claimed(std::size_t index) noexcept { return events_[(next_ + index) & mask_]; }
  void publish(std::size_t count) noexcept {
    next_ += count;
    cursor_.store(next_, std::memory_order_release);  // pairs with the acquire in consume()
  }
  // The consumer's: visits what is published, in place; how many that were.
  template <class Visit>
  std::size_t consume(Visit&& visit) noexcept {
    const std::uint64_t available = cursor_.load(std::memory_order_acquire);  // pairs with the release in publish()
    const std::uint64_t count = available - read_;
    for (; read_ != available; ++read_) visit(events_[read_ & mask_]);
    if (count != 0) consumed_.store(read_, std::memory_order_release);  // pairs with the acquire in can_claim()
    return count;
  }

 private:
  std::uint64_t mask_;
  std::vector<CommandRecord> events_;
  alignas(kApart) std::atomic<std::uint64_t> cursor_{0};
  alignas(kApart) std::atomic<std::uint64_t> consumed_{0};
  std::uint64_t read_ = 0;                  // the consumer's copy of its sequence
  alignas(kApart) std::uint64_t next_ = 0;  // the producer's
  std::uint64_t gate_seen_ = 0;
};

// Contestants of this group: push one or `batch` commands, visit what is there.
template <class Channel>
struct Ours {
  static constexpr bool kIsOurs = true;
  explicit Ours(std::size_t capacity) : channel(capacity) {}
  bool push(const CommandRecord& item) noexcept { return channel.try_push(item) == Outcome::done; }
  std::size_t push_batch(std::span<const CommandRecord> items) noexcept { return channel.try_push_batch(items).count; }
  template <class Visit>
  std::size_t consume(Visit&& visit) noexcept {
    return channel.consume(channel.capacity(), visit).count;
  }
  Channel channel;
};
struct OurSpsc : Ours<Spsc<CommandRecord>> {
  static constexpr std::string_view kName = "spsc";
  using Ours::Ours;
};
struct OurMpsc : Ours<Mpsc<CommandRecord>> {
  static constexpr std::string_view kName = "mpsc";
  using Ours::Ours;
};
struct DisruptorStyle {
  static constexpr std::string_view kName = "disruptor_style";
  static constexpr bool kIsOurs = false;
  explicit DisruptorStyle(std::size_t capacity) : ring(capacity) {}
  bool push(const CommandRecord& item) noexcept {
    if (!ring.can_claim(1)) return false;
    ring.claimed(0) = item;
    ring.publish(1);
    return true;
  }
  std::size_t push_batch(std::span<const CommandRecord> items) noexcept {
    if (!ring.can_claim(items.size())) return 0;
    for (std::size_t i = 0; i < items.size(); ++i) ring.claimed(i) = items[i];
    ring.publish(items.size());
    return items.size();
  }
  template <class Visit>
  std::size_t consume(Visit&& visit) noexcept {
    return ring.consume(visit);
  }
  DisruptorRing ring;
};

template <class Contestant>
Tally visit_all(Contestant& channel, Flow& flow) {
  const InPlace carried;
  Tally tally;
  std::uint64_t told = 0;
  for (int spins = 0;;) {
    if (channel.consume([&](const CommandRecord& item) { tally.add(carried.mark_of(item)); }) != 0) {
      spins = 0;
      continue;
    }
    if (flow.has_ended(tally, told) || flow.patience().is_over(spins)) return tally;
    System::relax(spins++);
  }
}

template <class Contestant>
std::uint64_t produce_one_by_one(Contestant& channel, int, Flow& flow) {
  const InPlace carried;
  CommandRecord item = carried.make();
  std::uint64_t count = 0;
  while (flow.goes_on()) {
    for (int i = 0; i < Flow::kBlock; ++i) {
      carried.mark(item, Flow::number(0, count));
      if (!flow.patience().until([&] { return channel.push(item); })) return count;
      ++count;
    }
  }
  return count;
}

constexpr std::size_t kBatch = 16;
template <class Contestant>
std::uint64_t produce_batches(Contestant& channel, int, Flow& flow) {
  const InPlace carried;
  std::vector<CommandRecord> items(kBatch, carried.make());
  std::uint64_t count = 0;
  while (flow.goes_on()) {
    for (std::size_t i = 0; i < Flow::kBlock / kBatch; ++i) {
      for (std::size_t k = 0; k < kBatch; ++k) carried.mark(items[k], Flow::number(0, count + k));
      for (std::size_t done = 0; done < kBatch;) {
        const auto rest = std::span<const CommandRecord>(items).subspan(done);
        std::size_t moved = 0;
        if (!flow.patience().until([&] { return (moved = channel.push_batch(rest)) != 0; })) return count;
        done += moved;
        count += moved;
      }
    }
  }
  return count;
}

template <class Contestant>
void enter(std::vector<Benchmark>& list, const std::string& shared) {
  const auto make = [](const Conditions& here) {
    return [capacity = here.capacity] { return std::make_unique<Contestant>(capacity); };
  };
  list.push_back(entry<Contestant>(
      "read_in_place", "single", Unit::per_second, "pushed singly, read in place, one thread to another" + shared,
      [make](const Conditions& here) {
        return measure_flow(here, 1, 1, make(here), produce_one_by_one<Contestant>, visit_all<Contestant>);
      }));
  list.push_back(entry<Contestant>(
      "read_in_place", "batch", Unit::per_second,
      "pushed 16 in one call, read in place, one thread to another" + shared, [make](const Conditions& here) {
        return measure_flow(here, 1, 1, make(here), produce_batches<Contestant>, visit_all<Contestant>);
      }));
}

std::vector<Benchmark> benchmarks(const Conditions& conditions) {
  std::vector<Benchmark> list;
  const std::string shared = sharing(conditions, 2);
  enter<OurSpsc>(list, shared);
  enter<OurMpsc>(list, shared);
  enter<DisruptorStyle>(list, shared);
  for_each_contestant<CommandRecord, 1, 1>([&]<class Contestant>() {
    list.push_back(
        entry<Contestant>("read_in_place", "copy", Unit::per_second, "the same commands, popped by copying" + shared,
                          [](const Conditions& here) { return measure_singly<Contestant, InPlace>(here, 1, 1); }));
  });
  return list;
}

}  // namespace

Group read_in_place() {
  return {"read_in_place", "commands per second when they are read where they are", "", benchmarks};
}

}  // namespace weir::channel_bench
