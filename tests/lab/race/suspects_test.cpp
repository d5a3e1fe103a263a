// Which pairs are suspected, how sure that is, and what is not suspected.
#include "lab/race/suspects.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>

#include "lab/race/log_testing.h"
#include "lab/race/order.h"

namespace weir::race {
namespace {

using Pairs = std::set<std::pair<std::uint32_t, std::uint32_t>>;

Pairs pairs_of(const Suspects& suspects) {
  Pairs pairs;
  for (const Suspect& suspect : suspects.pairs) pairs.emplace(suspect.first, suspect.second);
  return pairs;
}
const Suspect& only_suspect(const Suspects& suspects) {
  static const Suspect none;
  EXPECT_EQ(suspects.pairs.size(), 1u);
  return suspects.pairs.empty() ? none : suspects.pairs.front();
}

TEST(RaceSuspects, a_write_and_a_read_that_nothing_orders) {
  LogBuilder b;
  const auto x = b.kernel(0, {writes(1000, 100)}), y = b.kernel(1, {reads(1050, 100)});
  const Suspects suspects = find_suspects(b.log);
  const Suspect& found = only_suspect(suspects);
  EXPECT_EQ(found.first, x);
  EXPECT_EQ(found.second, y);
  EXPECT_EQ(found.begin, 1050u);
  EXPECT_EQ(found.end, 1100u);
  EXPECT_TRUE(found.is_exact);
  EXPECT_EQ(suspects.found, 1u);
}

TEST(RaceSuspects, two_reads_and_what_does_not_overlap_are_fine) {
  LogBuilder b;
  b.kernel(0, {reads(1000, 100), writes(2000, 100)});
  b.kernel(1, {reads(1000, 100), writes(2100, 100)});
  EXPECT_TRUE(find_suspects(b.log).pairs.empty());
}

TEST(RaceSuspects, what_is_ordered_is_fine) {
  LogBuilder b;
  b.kernel(0, {writes(1000, 100)});
  b.record(1, 0);
  b.wait(1, 1);
  b.kernel(1, {reads(1000, 100)});
  EXPECT_TRUE(find_suspects(b.log).pairs.empty());
}

TEST(RaceSuspects, a_read_that_is_still_under_way_and_a_later_write) {
  LogBuilder b;
  b.kernel(0, {writes(1000, 100)});
  b.record(1, 0);
  b.wait(1, 1);
  const auto reader = b.kernel(1, {reads(1000, 100)}), writer = b.kernel(0, {writes(1000, 100)});
  EXPECT_EQ(pairs_of(find_suspects(b.log)), (Pairs{{reader, writer}}));
}

TEST(RaceSuspects, the_latest_of_a_stream_stands_for_those_before) {
  LogBuilder b;
  b.kernel(0, {writes(1000, 100)}, "a");
  const auto late = b.kernel(0, {writes(1000, 100)}, "b"), reader = b.kernel(1, {reads(1000, 100)}, "c");
  EXPECT_EQ(pairs_of(find_suspects(b.log)), (Pairs{{late, reader}}));
}

TEST(RaceSuspects, a_read_does_not_hide_the_write_before_it) {
  LogBuilder b;
  const auto writer = b.kernel(0, {writes(1000, 100)}, "a");
  b.kernel(0, {reads(1000, 100)}, "b");
  const auto reader = b.kernel(1, {reads(1000, 100)}, "c");
  EXPECT_EQ(pairs_of(find_suspects(b.log)), (Pairs{{writer, reader}}));
}

TEST(RaceSuspects, pointers_reach_to_the_next_pointer) {
  LogBuilder b;
  b.allocate(1000, 1000);
  const auto before = b.kernel(0, {pointer(1000, 1000)}, "before");
  const auto same = b.kernel(2, {pointer(1200, 800)}, "same");
  const auto reader = b.kernel(1, {pointer(1200, 800)}, "reader");
  const Suspects suspects = find_suspects(b.log);
  // The same pointer comes first; that `before` may reach further than the next pointer is a weaker sign.
  ASSERT_EQ(pairs_of(suspects), (Pairs{{same, reader}, {before, same}, {before, reader}}));
  EXPECT_EQ(suspects.pairs[0].first, same);
  EXPECT_EQ(suspects.pairs[0].begin, 1200u);
  EXPECT_LT(suspects.pairs[1].score + 1, suspects.pairs[0].score);
  EXPECT_FALSE(suspects.pairs[0].is_exact);
}

TEST(RaceSuspects, a_pointer_ends_with_its_allocation) {
  LogBuilder b;
  b.allocate(1000, 100);
  b.allocate(1100, 100);
  b.kernel(0, {pointer(1000, 5000)});
  b.kernel(1, {pointer(1100, 100)});
  EXPECT_TRUE(find_suspects(b.log).pairs.empty());
}

TEST(RaceSuspects, pointers_of_an_allocation_that_is_gone_cut_nothing) {
  LogBuilder b;
  b.allocate(1000, 1000);
  b.kernel(0, {pointer(1400, 600)});
  b.synchronize_device();
  b.release(1000, 1000);
  b.allocate(1000, 1000);
  const auto x = b.kernel(0, {pointer(1000, 1000)}), y = b.kernel(1, {writes(1500, 100)});
  const Suspects suspects = find_suspects(b.log);
  EXPECT_EQ(pairs_of(suspects), (Pairs{{x, y}}));
  // The copy's own address is a pointer of this allocation, so the kernel may end there.
  EXPECT_EQ(suspects.pairs.front().begin, 1500u);
}

TEST(RaceSuspects, a_block_that_is_used_again_while_another_stream_reads_it) {
  LogBuilder b;
  b.allocate(1000, 100, 0);
  b.kernel(0, {pointer(1000, 100)}, "produce");
  b.record(1, 0);
  b.wait(1, 1);
  const auto reader = b.kernel(1, {pointer(1000, 100)}, "side");
  b.release(1000, 100, 0);
  b.allocate(1000, 100, 0);
  const auto writer = b.kernel(0, {pointer(1000, 100)}, "next");
  EXPECT_EQ(pairs_of(find_suspects(b.log)), (Pairs{{reader, writer}}));
}

TEST(RaceSuspects, who_gets_new_memory_first_probably_writes_it) {
  LogBuilder b;
  b.allocate(1000, 100);
  b.allocate(2000, 100);
  b.command(Kind::copy, 0, {writes(1000, 100)});
  b.synchronize_device();
  // Both read the input that was copied; the result of the first is what the second must not read yet.
  const auto producer = b.kernel(0, {pointer(1000, 100), pointer(2000, 100)}, "producer");
  const auto other = b.kernel(2, {pointer(1000, 100)}, "other");
  const auto reader = b.kernel(1, {pointer(2000, 100)}, "reader");
  const Suspects suspects = find_suspects(b.log);
  EXPECT_EQ(pairs_of(suspects), (Pairs{{producer, other}, {producer, reader}}));
  EXPECT_EQ(suspects.pairs[0].second, reader);
}

TEST(RaceSuspects, exact_pairs_come_before_guessed_ones_and_near_before_far) {
  LogBuilder b;
  b.allocate(10'000, 100);
  const auto guessed_first = b.kernel(0, {pointer(10'000, 100)}, "a");
  const auto guessed_second = b.kernel(1, {pointer(10'000, 100)}, "b");
  const auto far_first = b.kernel(0, {writes(1000, 4)}, "c");
  for (int i = 0; i < 100; ++i) b.kernel(3);
  const auto far_second = b.kernel(1, {reads(1000, 4)}, "d");
  const auto near_first = b.kernel(0, {writes(2000, 4)}, "e"), near_second = b.kernel(1, {reads(2000, 4)}, "f");
  const Suspects suspects = find_suspects(b.log);
  ASSERT_EQ(suspects.pairs.size(), 3u);
  EXPECT_EQ(std::pair(suspects.pairs[0].first, suspects.pairs[0].second), std::pair(near_first, near_second));
  EXPECT_EQ(std::pair(suspects.pairs[1].first, suspects.pairs[1].second), std::pair(far_first, far_second));
  EXPECT_EQ(std::pair(suspects.pairs[2].first, suspects.pairs[2].second), std::pair(guessed_first, guessed_second));
}

TEST(RaceSuspects, steps_that_repeat_are_one_place) {
  LogBuilder b;
  for (int i = 0; i < 50; ++i) {
    b.kernel(0, {writes(1000, 100)}, "produce");
    b.kernel(1, {reads(1000, 100)}, "use");
    b.synchronize_device();
  }
  const Suspects suspects = find_suspects(b.log);
  EXPECT_EQ(suspects.pairs.size(), kMostAlike);
  EXPECT_EQ(suspects.found, 50u);
  for (const Suspect& suspect : suspects.pairs) EXPECT_EQ(suspect.repeats, 50u);
  EXPECT_EQ(find_suspects(b.log, 1).pairs.size(), 1u);
}

TEST(RaceSuspects, captured_commands_meet_in_their_graph_and_launches_outside) {
  LogBuilder b;
  b.kernel(3, {writes(1000, 100)}, "eager");
  b.captured(1);
  const auto x = b.kernel(0, {writes(1000, 100)}, "a"), y = b.kernel(1, {reads(1000, 100)}, "b");
  b.captured(0);
  const auto launch = b.command(Kind::graph_launch, 0, {writes(1000, 100)}, "graph");
  EXPECT_EQ(pairs_of(find_suspects(b.log)), (Pairs{{x, y}, {0, launch}}));
}

TEST(RaceSuspects, a_copy_to_the_host_that_nobody_waits_for) {
  LogBuilder b;
  b.allocate(1 << 20, 4096, kNoStream, true);
  const auto copy = b.command(Kind::copy, 0, {reads(1000, 64), writes(1 << 20, 64)});
  b.checkpoint();
  b.synchronize_device();
  const Suspects suspects = find_suspects(b.log);
  EXPECT_EQ(pairs_of(suspects), (Pairs{{copy, kHost}}));
  EXPECT_FALSE(suspects.pairs.front().is_exact);
  EXPECT_LT(suspects.pairs.front().score, 1);  // below all others
  EXPECT_EQ(suspects.pairs.front().begin, 1u << 20);
}

TEST(RaceSuspects, how_the_host_waited_decides_how_suspect_a_copy_is) {
  const auto score = [](int how) {
    LogBuilder b;
    b.allocate(1 << 20, 4096, kNoStream, true);
    b.command(Kind::copy, 0, {reads(1000, 64), writes(1 << 20, 64)});
    if (how == 1) b.synchronize(0);
    if (how == 2) b.kernel(1);
    if (how == 2) b.synchronize(0);
    b.checkpoint();
    return only_suspect(find_suspects(b.log)).score;
  };
  EXPECT_LT(score(1), score(2));
  EXPECT_LT(score(2), score(0));
}

TEST(RaceSuspects, a_synchronous_copy_and_memory_of_nobody_are_fine) {
  LogBuilder b;
  b.allocate(1 << 20, 4096, kNoStream, true);
  b.synchronous(Kind::copy, 0, {reads(1000, 64), writes(1 << 20, 64)});
  b.command(Kind::copy, 0, {reads(1000, 64), writes(1 << 24, 64)});
  EXPECT_TRUE(find_suspects(b.log).pairs.empty());
}

TEST(RaceSuspects, a_host_buffer_that_is_filled_again_before_its_copy_has_ended) {
  const auto found = [](bool waits) {
    LogBuilder b;
    b.allocate(1 << 20, 4096, kNoStream, true);
    b.command(Kind::copy, 0, {reads(1 << 20, 64), writes(1000, 64)}, "first");
    b.kernel(0, {}, "k");
    if (waits) b.synchronize(0);
    b.command(Kind::copy, 0, {reads(1 << 20, 64), writes(2000, 64)}, "second");
    b.synchronize(0);
    return find_suspects(b.log).pairs.front();
  };
  EXPECT_EQ(found(false).second, kHost);
  EXPECT_GT(found(false).score, found(true).score);
}

// Every pair, compared one by one: what find_suspects() must not miss and must not invent. Of the commands of a stream
// only the latest have to be named, so what is compared is which commands were found to race at all.
TEST(RaceSuspects, agrees_with_all_pairs_in_random_logs) {
  std::mt19937 random(11);
  const auto below = [&](std::uint32_t limit) { return static_cast<std::uint32_t>(random() % limit); };
  for (int round = 0; round < 200; ++round) {
    LogBuilder b(4);
    for (int i = 0; i < 60; ++i) {
      const std::uint32_t what = below(8), stream = below(4);
      if (what < 4) {
        std::vector<Range> ranges;
        for (std::uint32_t r = 0; r <= below(3); ++r) {
          const std::uint64_t begin = 1000 + below(20) * 10, bytes = 10 + below(4) * 10;
          ranges.push_back(below(2) == 0 ? reads(begin, bytes) : writes(begin, bytes));
        }
        b.kernel(stream, ranges, "kernel " + std::to_string(i));
      }
      if (what == 4 || what == 5) b.record(below(4), stream);
      if (what > 5) b.wait(below(4), stream);
    }
    std::vector<std::pair<std::uint32_t, std::uint32_t>> all;
    for (std::uint32_t j = 0; j < b.log.calls.size(); ++j) {
      for (std::uint32_t i = 0; i < j; ++i) {
        bool meets = false;
        for (const Range& x : b.log.ranges_of(b.log.calls[i]))
          for (const Range& y : b.log.ranges_of(b.log.calls[j]))
            meets |= x.begin < y.end && y.begin < x.end && (x.writes || y.writes);
        if (meets && b.log.calls[i].stream != b.log.calls[j].stream) all.emplace_back(i, j);
      }
    }
    const std::vector<bool> ordered = are_ordered(b.log, all);
    Pairs expected;
    std::set<std::uint32_t> racing;  // that race with something before them
    for (std::size_t i = 0; i < all.size(); ++i) {
      if (ordered[i]) continue;
      expected.insert(all[i]);
      racing.insert(all[i].second);
    }
    std::set<std::uint32_t> found;
    for (const auto& pair : pairs_of(find_suspects(b.log, 100'000))) {
      EXPECT_TRUE(expected.contains(pair)) << "round " << round << ": " << pair.first << ", " << pair.second;
      found.insert(pair.second);
    }
    EXPECT_EQ(found, racing) << "round " << round;
  }
}

TEST(RaceSuspects, a_command_that_races_with_all_names_the_nearest) {
  LogBuilder b(100);
  for (std::uint32_t stream = 0; stream < 99; ++stream) b.kernel(stream, {reads(1000, 4)}, "reader");
  const auto writer = b.kernel(99, {writes(1000, 4)}, "writer");
  const Suspects suspects = find_suspects(b.log);
  EXPECT_LT(suspects.found, 99u);
  EXPECT_EQ(suspects.cut, 1u);
  ASSERT_FALSE(suspects.pairs.empty());
  EXPECT_EQ(suspects.pairs[0].first, writer - 1);
}

TEST(RaceSuspects, a_large_log_is_one_pass) {
  // No time is measured: with all pairs instead of the last accesses this would take hours.
  std::mt19937 random(1);
  LogBuilder b(8);
  b.allocate(1 << 20, std::uint64_t{1} << 30);
  for (std::uint32_t i = 0; i < 100'000; ++i) {
    const std::uint32_t stream = random() % 8;
    std::vector<Range> ranges;
    for (int r = 0; r < 5; ++r) {
      const std::uint64_t slot = r == 0 ? random() % 64 : 64 + stream * 512 + random() % 512;
      const std::uint64_t at = (1 << 20) + slot * 4096;
      ranges.push_back(pointer(at, (1 << 20) + (std::uint64_t{1} << 30) - at));
    }
    b.kernel(stream, std::move(ranges));
    b.record(stream, stream);
    b.wait(random() % 8, stream);
  }
  EXPECT_GT(find_suspects(b.log).found, 0u);
}

}  // namespace
}  // namespace weir::race
