// What every channel does with one thread: order, capacity, full and empty, batches, what it carries.
#include <unistd.h>

#include <array>
#include <bit>
#include <cstring>
#include <vector>

#include "any_channel.h"
#include "base/error.h"

namespace weir::test {
namespace {

template <class Kind>
struct EveryChannel : ::testing::Test {
  template <class T = CommandRecord>
  using Made = typename Kind::template Made<T, Wait::spin_then_park>;
};
TYPED_TEST_SUITE(EveryChannel, Kinds, KindName);

TYPED_TEST(EveryChannel, keeps_the_order_around_the_ring) {
  typename TestFixture::template Made<> made(8, 1);
  std::uint32_t pushed = 0, popped = 0;
  CommandRecord record;
  for (std::uint32_t round = 0; round < 500; ++round) {
    for (std::uint32_t i = 0; i < round % 8 + 1; ++i)
      if (made.sink(0).try_push(command(0, pushed)) == Outcome::done) ++pushed;
    for (std::uint32_t i = 0; i < (round * 3) % 8 + 1; ++i) {
      if (made.source().try_pop(record) != Outcome::done) break;
      ASSERT_EQ(record.id, popped++);
      ASSERT_TRUE(is_whole(record));
    }
  }
  while (made.source().try_pop(record) == Outcome::done) ASSERT_EQ(record.id, popped++);
  EXPECT_EQ(pushed, popped);
  EXPECT_GT(popped, 1000U);
}

TYPED_TEST(EveryChannel, holds_as_many_as_its_capacity) {
  using Made = typename TestFixture::template Made<>;
  EXPECT_THROW(Made(0, 1), Error);
  for (const std::size_t asked : {1U, 2U, 5U, 8U, 100U}) {
    Made made(asked, 1);
    const std::size_t capacity = made.channel.capacity();
    EXPECT_EQ(capacity, std::max(TypeParam::kMin, std::bit_ceil(asked))) << asked;
    CommandRecord record;
    // Twice, so that the second time goes around.
    for (int time = 0; time < 2; ++time) {
      EXPECT_EQ(made.source().try_pop(record), Outcome::empty);
      for (std::uint32_t i = 0; i < capacity; ++i)
        ASSERT_EQ(made.sink(0).try_push(command(0, i)), Outcome::done) << i << " of " << capacity;
      EXPECT_EQ(made.sink(0).try_push(command(0, 999)), Outcome::full);
      EXPECT_EQ(made.sink(0).push(command(0, 999), Limit::none()), Outcome::full);
      for (std::uint32_t i = 0; i < capacity; ++i) {
        ASSERT_EQ(made.source().try_pop(record), Outcome::done);
        ASSERT_EQ(record.id, i);
      }
      EXPECT_EQ(made.source().pop(record, Limit::none()), Outcome::empty);
    }
  }
}

TYPED_TEST(EveryChannel, batches_move_what_fits) {
  typename TestFixture::template Made<> made(8, 1);
  std::vector<CommandRecord> in, out(32);
  for (std::uint32_t i = 0; i < 32; ++i) in.push_back(command(0, i));
  const std::span<const CommandRecord> all(in);

  Moved moved = made.sink(0).try_push_batch({});
  EXPECT_EQ(moved.count, 0U);
  EXPECT_EQ(moved.outcome, Outcome::done);
  moved = made.source().try_pop_batch({});
  EXPECT_EQ(moved.count, 0U);
  EXPECT_EQ(moved.outcome, Outcome::done);
  moved = made.source().try_pop_batch(out);
  EXPECT_EQ(moved.count, 0U);
  EXPECT_EQ(moved.outcome, Outcome::empty);

  moved = made.sink(0).try_push_batch(all.first(5));
  EXPECT_EQ(moved.count, 5U);
  EXPECT_EQ(moved.outcome, Outcome::done);
  moved = made.sink(0).try_push_batch(all.subspan(5));  // room for three
  EXPECT_EQ(moved.count, 3U);
  EXPECT_EQ(moved.outcome, Outcome::full);
  moved = made.sink(0).push_batch(all.subspan(8), Limit::none());
  EXPECT_EQ(moved.count, 0U);
  EXPECT_EQ(moved.outcome, Outcome::full);

  moved = made.source().try_pop_batch(std::span(out).first(3));
  EXPECT_EQ(moved.count, 3U);
  moved = made.sink(0).try_push_batch(all.subspan(8, 2));  // around the end
  EXPECT_EQ(moved.count, 2U);
  moved = made.source().try_pop_batch(std::span(out).subspan(3));
  EXPECT_EQ(moved.count, 7U);
  EXPECT_EQ(moved.outcome, Outcome::done);
  for (std::uint32_t i = 0; i < 10; ++i) {
    EXPECT_EQ(out[i].id, i);
    EXPECT_TRUE(is_whole(out[i]));
  }
}

// Lines after the used ones keep what was there before.
TYPED_TEST(EveryChannel, wide_commands_arrive_with_all_their_parameters) {
  for (const bool is_batch : {false, true}) {
    SCOPED_TRACE(is_batch ? "batches" : "one by one");
    typename TestFixture::template Made<WideCommandRecord> made(4, 1);
    for (std::size_t bytes = 0; bytes <= kWideParams; ++bytes) {
      std::array<std::byte, kWideParams> params;
      for (std::size_t i = 0; i < bytes; ++i) params[i] = static_cast<std::byte>(bytes * 3 + i);
      const WideCommandRecord sent = make_wide_launch(7, 8, {9, 1, 1}, {32, 1, 1}, std::span(params).first(bytes),
                                                      static_cast<std::uint32_t>(bytes));
      WideCommandRecord got;
      std::memset(static_cast<void*>(&got), 0xee, sizeof got);
      if (is_batch) {
        ASSERT_EQ(made.sink(0).try_push_batch(std::span(&sent, 1)).count, 1U);
        ASSERT_EQ(made.source().try_pop_batch(std::span(&got, 1)).count, 1U);
      } else {
        ASSERT_EQ(made.sink(0).try_push(sent), Outcome::done);
        ASSERT_EQ(made.source().try_pop(got), Outcome::done);
      }
      ASSERT_EQ(got.line.id, bytes);
      ASSERT_EQ(got.line.launch.params_bytes, bytes);
      ASSERT_EQ(got.line.launch.grid.x, 9U);
      ASSERT_EQ(std::memcmp(got.params.data(), params.data(), bytes), 0) << bytes;
      if (!TypeParam::kCopiesOnlyWhatIsUsed) continue;
      for (std::size_t i = (bytes + kLineBytes - 1) / kLineBytes * kLineBytes; i < kWideParams; ++i)
        ASSERT_EQ(got.params[i], std::byte{0xee}) << "byte " << i << " of a record that uses " << bytes;
    }
  }
}

struct Odd {
  std::array<char, 13> text;
};
struct Small {
  std::uint32_t value;
};
struct Big {
  std::array<std::uint64_t, 40> words;
};

template <class Made, class T>
void carries(const T& sent) {
  Made made(2, 1);
  for (int i = 0; i < 5; ++i) {
    T got{};
    ASSERT_EQ(made.sink(0).try_push(sent), Outcome::done);
    ASSERT_EQ(made.source().try_pop(got), Outcome::done);
    EXPECT_EQ(std::memcmp(&got, &sent, sizeof(T)), 0);
  }
}

TYPED_TEST(EveryChannel, carries_plain_structs) {
  carries<typename TestFixture::template Made<Odd>>(Odd{{"twelve chars"}});
  carries<typename TestFixture::template Made<Small>>(Small{0xdeadbeef});
  Big big{};
  for (std::size_t i = 0; i < big.words.size(); ++i) big.words[i] = i * i + 1;
  carries<typename TestFixture::template Made<Big>>(big);
  carries<typename TestFixture::template Made<std::uint64_t>>(std::uint64_t{42});
}

TYPED_TEST(EveryChannel, a_closed_one_is_drained_then_closed) {
  typename TestFixture::template Made<> made(8, 1);
  CommandRecord record;
  std::vector<CommandRecord> three(3, command(0, 0));
  ASSERT_EQ(made.sink(0).try_push(command(0, 1)), Outcome::done);
  ASSERT_EQ(made.sink(0).try_push(command(0, 2)), Outcome::done);
  EXPECT_FALSE(made.channel.is_closed());
  made.channel.close();
  made.channel.close();
  EXPECT_TRUE(made.channel.is_closed());
  EXPECT_EQ(made.sink(0).try_push(command(0, 3)), Outcome::closed);
  EXPECT_EQ(made.sink(0).push(command(0, 3)), Outcome::closed);
  Moved moved = made.sink(0).try_push_batch(three);
  EXPECT_EQ(moved.count, 0U);
  EXPECT_EQ(moved.outcome, Outcome::closed);
  moved = made.sink(0).push_batch(three);
  EXPECT_EQ(moved.count, 0U);
  EXPECT_EQ(moved.outcome, Outcome::closed);
  EXPECT_EQ(made.source().pop(record), Outcome::done);
  EXPECT_EQ(record.id, 1U);
  EXPECT_EQ(made.source().try_pop(record), Outcome::done);
  EXPECT_EQ(record.id, 2U);
  EXPECT_EQ(made.source().try_pop(record), Outcome::closed);
  EXPECT_EQ(made.source().pop(record), Outcome::closed);
  EXPECT_EQ(made.source().pop_batch(three).outcome, Outcome::closed);
}

TYPED_TEST(EveryChannel, a_full_one_that_is_closed_says_so) {
  typename TestFixture::template Made<> made(2, 1);
  while (made.sink(0).try_push(command(0, 0)) == Outcome::done) {
  }
  made.channel.close();
  EXPECT_EQ(made.sink(0).try_push(command(0, 1)), Outcome::closed);
  EXPECT_EQ(made.sink(0).push(command(0, 1), Limit::within(1)), Outcome::closed);
}

TEST(ChannelNames, are_the_files) {
  for (const std::string_view name : channel_names()) {
    const std::string path = fmt::format("{}/src/channel/{}.h", WEIR_SOURCE_DIR, name);
    EXPECT_EQ(access(path.c_str(), R_OK), 0) << path;
  }
}

}  // namespace
}  // namespace weir::test
