// Many threads at once: nothing is lost, nothing comes twice or torn, and each producer's commands stay in order.
#include <fmt/format.h>

#include <atomic>
#include <barrier>
#include <thread>
#include <vector>

#include "any_channel.h"

namespace weir::test {
namespace {

template <class Kind>
struct Stress : ::testing::Test {};
TYPED_TEST_SUITE(Stress, Kinds, KindName);

struct Shape {
  int producers, consumers;
  std::size_t capacity, batch;
  std::uint32_t each;  // commands of each producer
};

std::uint64_t mixed(const CommandRecord& record) {
  const std::uint64_t value = (std::uint64_t{record.stream} << 32 | record.id) * 0x9e3779b97f4a7c15U;
  return value ^ (value >> 29);
}

struct Found {
  std::uint64_t count = 0, sum = 0;
  std::string error;
};

template <class Sink>
Found produce(Sink& sink, int producer, const Shape& shape) {
  Found sent;
  std::vector<CommandRecord> batch;
  for (std::uint32_t i = 0; i < shape.each;) {
    batch.clear();
    while (batch.size() < shape.batch && i < shape.each) batch.push_back(command(producer, i++));
    const Moved moved =
        batch.size() == 1 ? Moved{1, sink.push(batch[0], patience())} : sink.push_batch(batch, patience());
    if (moved.outcome != Outcome::done) {
      sent.error = fmt::format("push: {}", name_of(moved.outcome));
      return sent;
    }
    for (const CommandRecord& record : batch) sent.sum += mixed(record);
    sent.count += batch.size();
  }
  return sent;
}

template <class Source>
Found consume(Source& source, const Shape& shape) {
  Found got;
  std::vector<std::int64_t> last(static_cast<std::size_t>(shape.producers), -1);
  std::vector<CommandRecord> batch(shape.batch);
  for (;;) {
    const Moved moved =
        shape.batch == 1 ? Moved{1, source.pop(batch[0], patience())} : source.pop_batch(batch, patience());
    if (moved.outcome == Outcome::closed) return got;
    if (moved.outcome != Outcome::done) {
      got.error = fmt::format("pop: {}", name_of(moved.outcome));
      return got;
    }
    for (const CommandRecord& record : std::span(batch).first(moved.count)) {
      if (record.stream >= shape.producers || !is_whole(record)) {
        got.error = "a torn command";
        return got;
      }
      std::int64_t& before = last[record.stream];
      if (before >= std::int64_t{record.id}) {
        got.error = fmt::format("out of order: {} behind {}", record.id, before);
        return got;
      }
      before = record.id;
      got.sum += mixed(record);
    }
    got.count += moved.count;
  }
}

template <class Made>
void stress(const Shape& shape) {
  SCOPED_TRACE(fmt::format("{} x {}, capacity {}, batches of {}", shape.producers, shape.consumers, shape.capacity,
                           shape.batch));
  Made made(shape.capacity, shape.producers);
  std::vector<Found> sent(static_cast<std::size_t>(shape.producers)), got(static_cast<std::size_t>(shape.consumers));
  std::vector<std::jthread> producers, consumers;
  for (int c = 0; c < shape.consumers; ++c) {
    consumers.emplace_back([&, c] {
      const CloseOnExit closer(made.channel);  // an error here must not leave producers waiting
      got[static_cast<std::size_t>(c)] = consume(made.source(), shape);
    });
  }
  for (int p = 0; p < shape.producers; ++p)
    producers.emplace_back([&, p] { sent[static_cast<std::size_t>(p)] = produce(made.sink(p), p, shape); });
  producers.clear();
  made.channel.close();
  consumers.clear();
  Found all_sent, all_got;
  for (const Found& found : sent) {
    EXPECT_EQ(found.error, "");
    all_sent.count += found.count;
    all_sent.sum += found.sum;
  }
  for (const Found& found : got) {
    EXPECT_EQ(found.error, "");
    all_got.count += found.count;
    all_got.sum += found.sum;
  }
  EXPECT_EQ(all_sent.count, static_cast<std::uint64_t>(shape.producers) * shape.each);
  EXPECT_EQ(all_got.count, all_sent.count);
  EXPECT_EQ(all_got.sum, all_sent.sum);
}

TYPED_TEST(Stress, one_to_eight_threads_on_each_side) {
  for_each_wait([]<Wait kWait>() {
    using Made = typename TypeParam::template Made<CommandRecord, kWait>;
    for (const int producers : {1, 2, 4, 8}) {
      for (const int consumers : {1, 2, 4, 8}) {
        if (producers > TypeParam::kProducers || consumers > TypeParam::kConsumers) continue;
        if (producers + consumers > 8 && producers != consumers && consumers != 1) continue;  // enough is enough
        const std::uint32_t each = 1600 / static_cast<std::uint32_t>(producers);
        stress<Made>({producers, consumers, 16, 1, each});
        stress<Made>({producers, consumers, 2, 1, each / 4});
        stress<Made>({producers, consumers, 16, 7, each});
      }
    }
  });
}

// A machine on which some threads stand still for a while between claiming a cell and publishing it.
struct Stalling : System {
  static void note_write(const void*, std::size_t) noexcept { stall(); }
  static void note_read(const void*, std::size_t) noexcept { stall(); }
  static void stall() noexcept {
    thread_local std::uint32_t random = static_cast<std::uint32_t>(now_ns()) | 1U;
    random = random * 1664525U + 1013904223U;
    if (random >> 29 == 0) std::this_thread::sleep_for(std::chrono::microseconds(random >> 20 & 127));
  }
};

// One who sleeps until the deadline beside what it waits for finds it then: that is too late.
template <class Wait>
bool is_done_in_time(Wait&& wait) {
  const Limit limit = Limit::within(200'000'000'000);
  return wait(limit) == Outcome::done && !limit.is_past();
}

// Nobody sleeps beside a command that is there, or beside room: as many pops as pushes, round by round. Two pushes may
// be published in the other order than they were claimed, and a wake-up then goes to one who cannot use it.
template <class Channel>
void nobody_sleeps(int producers, int consumers, std::size_t capacity) {
  Channel channel(capacity);
  std::barrier<> round(producers + consumers);
  std::atomic<bool> is_bad{false};
  std::vector<std::jthread> threads;
  constexpr int kRounds = 400;
  const int pushes = 12 / producers, pops = 12 / consumers;
  for (int p = 0; p < producers; ++p) {
    threads.emplace_back([&, p] {
      for (int i = 0; i < kRounds && !is_bad; ++i) {
        for (int k = 0; k < pushes; ++k)
          if (!is_done_in_time([&](Limit limit) { return channel.push(command(p, 1), limit); })) is_bad = true;
        round.arrive_and_wait();
      }
      round.arrive_and_drop();
    });
  }
  for (int c = 0; c < consumers; ++c) {
    threads.emplace_back([&] {
      CommandRecord record;
      for (int i = 0; i < kRounds && !is_bad; ++i) {
        for (int k = 0; k < pops; ++k)
          if (!is_done_in_time([&](Limit limit) { return channel.pop(record, limit); })) is_bad = true;
        round.arrive_and_wait();
      }
      round.arrive_and_drop();
    });
  }
  threads.clear();
  EXPECT_FALSE(is_bad) << producers << " x " << consumers << ", capacity " << capacity;
}

TEST(Sleepers, are_woken_where_cells_become_ready_out_of_order) {
  nobody_sleeps<Mpmc<CommandRecord, Wait::park, Stalling>>(4, 4, 16);
  nobody_sleeps<Mpmc<CommandRecord, Wait::park, Stalling>>(4, 4, 2);
  nobody_sleeps<Mpmc<CommandRecord, Wait::spin_then_park, Stalling>>(6, 6, 4);
  nobody_sleeps<Mpsc<CommandRecord, Wait::park, Stalling>>(4, 1, 4);
  nobody_sleeps<Priority<CommandRecord, Wait::park, Stalling>>(4, 1, 4);
}

}  // namespace
}  // namespace weir::test
