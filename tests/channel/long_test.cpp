// A thousand million commands through each channel: none lost, none twice, none out of order. Takes minutes each, so it
// runs only when asked for (make test-long). Commands go one by one, but through mutex_deque in batches of 64: one by
// one it would take ten times as long as all others.
#include <fmt/format.h>

#include <cstdlib>
#include <thread>
#include <vector>

#include "any_channel.h"

namespace weir::test {
namespace {

template <class Kind>
struct ChannelLong : ::testing::Test {};
TYPED_TEST_SUITE(ChannelLong, Kinds, KindName);

struct Tally {
  std::uint64_t count = 0, sum = 0, disorder = 0;

  void add(const CommandRecord& record) {
    const std::uint64_t value = (std::uint64_t{record.stream} << 32 | record.id) * 0x9e3779b97f4a7c15U;
    sum += value ^ (value >> 29);
    ++count;
  }
};

// A clock per command would cost more than the command: only who has to wait looks at one.
template <class Sink>
Moved push(Sink& sink, std::span<const CommandRecord> items) {
  if (items.size() > 1) return sink.push_batch(items, patience());
  const Outcome outcome = sink.try_push(items[0]);
  return {1, outcome == Outcome::full ? sink.push(items[0], patience()) : outcome};
}
template <class Source>
Moved pop(Source& source, std::span<CommandRecord> items) {
  if (items.size() > 1) return source.pop_batch(items, patience());
  const Outcome outcome = source.try_pop(items[0]);
  return {1, outcome == Outcome::empty ? source.pop(items[0], patience()) : outcome};
}

TYPED_TEST(ChannelLong, a_thousand_million_commands) {
  const char* const asked = std::getenv("WEIR_LONG_TESTS");
  if (asked == nullptr || std::string_view(asked) != "1") {
    GTEST_SKIP() << "minutes for each channel: set WEIR_LONG_TESTS=1 (and WEIR_LONG_COMMANDS for fewer)";
  }
  const char* const fewer = std::getenv("WEIR_LONG_COMMANDS");
  const std::uint64_t all = fewer != nullptr ? std::strtoull(fewer, nullptr, 10) : 1'000'000'000;
  const int producers = std::min(2, TypeParam::kProducers), consumers = std::min(2, TypeParam::kConsumers);
  const std::size_t batch = std::is_same_v<TypeParam, MutexDequeKind> ? 64 : 1;
  const auto each = static_cast<std::uint32_t>(all / static_cast<std::uint64_t>(producers));

  typename TypeParam::template Made<CommandRecord, Wait::spin_then_park> made(1024, producers);
  std::vector<Tally> sent(static_cast<std::size_t>(producers)), got(static_cast<std::size_t>(consumers));
  std::vector<std::jthread> consuming, producing;
  const std::int64_t began_ns = now_ns();
  for (int c = 0; c < consumers; ++c) {
    consuming.emplace_back([&, c] {
      const CloseOnExit closer(made.channel);  // an error here must not leave producers waiting
      Tally tally;
      std::vector<std::uint32_t> next(static_cast<std::size_t>(producers));
      std::vector<CommandRecord> items(batch);
      for (;;) {
        const Moved moved = pop(made.source(), std::span(items));
        if (moved.outcome != Outcome::done) {
          EXPECT_EQ(name_of(moved.outcome), "closed");
          break;
        }
        for (std::size_t i = 0; i < moved.count; ++i) {
          const CommandRecord& record = items[i];
          std::uint32_t& expected = next[record.stream % next.size()];
          // One consumer sees every number, one of several at least no smaller one behind a larger.
          if (consumers == 1 ? record.id != expected : record.id < expected) ++tally.disorder;
          expected = record.id + 1;
          tally.add(record);
        }
      }
      got[static_cast<std::size_t>(c)] = tally;
    });
  }
  for (int p = 0; p < producers; ++p) {
    producing.emplace_back([&, p] {
      Tally tally;
      std::vector<CommandRecord> items(batch, make_synchronize(static_cast<std::uint16_t>(p)));
      for (std::uint32_t i = 0; i < each;) {
        const std::size_t count = std::min<std::size_t>(batch, each - i);
        for (std::size_t k = 0; k < count; ++k) {
          items[k].id = i++;
          tally.add(items[k]);
        }
        const Moved moved = push(made.sink(p), std::span<const CommandRecord>(items).first(count));
        if (moved.outcome != Outcome::done) {
          ADD_FAILURE() << "push " << i << " of " << each << ": " << name_of(moved.outcome);
          break;
        }
      }
      sent[static_cast<std::size_t>(p)] = tally;
    });
  }
  producing.clear();
  made.channel.close();
  consuming.clear();
  const double seconds = static_cast<double>(now_ns() - began_ns) / 1e9;

  Tally all_sent, all_got;
  for (const auto& [from, to] : {std::pair(&sent, &all_sent), std::pair(&got, &all_got)}) {
    for (const Tally& tally : *from) {
      to->count += tally.count;
      to->sum += tally.sum;
      to->disorder += tally.disorder;
    }
  }
  EXPECT_EQ(all_sent.count, static_cast<std::uint64_t>(each) * static_cast<std::uint64_t>(producers));
  EXPECT_EQ(all_got.count, all_sent.count);
  EXPECT_EQ(all_got.sum, all_sent.sum);
  EXPECT_EQ(all_got.disorder, 0U);
  fmt::print("{}: {} commands, {} x {}, batches of {}: {:.0f} s, {:.1f} M/s\n", TypeParam::kName, all_got.count,
             producers, consumers, batch, seconds, static_cast<double>(all_got.count) / seconds / 1e6);
  std::fflush(stdout);
}

}  // namespace
}  // namespace weir::test
