// Every rule by which one command comes after another, in the smallest log that shows it, and against a search by brute
// force in random logs.
#include "lab/race/order.h"

#include <gtest/gtest.h>

#include <random>

#include "lab/race/log_testing.h"

namespace weir::race {
namespace {

bool is_ordered(const Log& log, std::uint32_t first, std::uint32_t second) {
  const std::pair both{first, second};
  return are_ordered(log, std::span(&both, 1)).front();
}

TEST(RaceOrder, a_stream_is_in_order_and_two_streams_are_not) {
  LogBuilder b;
  const auto x = b.kernel(0), y = b.kernel(0), z = b.kernel(1);
  EXPECT_TRUE(is_ordered(b.log, x, y));
  EXPECT_FALSE(is_ordered(b.log, x, z));
  EXPECT_FALSE(is_ordered(b.log, y, z));
}

TEST(RaceOrder, an_event_orders_what_came_before_its_record) {
  LogBuilder b;
  const auto before = b.kernel(0);
  b.record(7, 0);
  const auto behind = b.kernel(0);
  b.wait(7, 1);
  const auto after = b.kernel(1);
  EXPECT_TRUE(is_ordered(b.log, before, after));
  EXPECT_FALSE(is_ordered(b.log, behind, after));
}

TEST(RaceOrder, what_was_submitted_before_the_wait_is_not_ordered) {
  LogBuilder b;
  const auto first = b.kernel(0);
  b.record(7, 0);
  const auto early = b.kernel(1);
  b.wait(7, 1);
  EXPECT_FALSE(is_ordered(b.log, first, early));
}

TEST(RaceOrder, a_wait_is_for_the_latest_record_before_it) {
  LogBuilder b;
  b.record(7, 0);
  const auto x = b.kernel(0);
  b.wait(7, 1);
  const auto early = b.kernel(1);
  b.record(7, 0);
  b.wait(7, 2);
  const auto late = b.kernel(2);
  EXPECT_FALSE(is_ordered(b.log, x, early));
  EXPECT_TRUE(is_ordered(b.log, x, late));
}

TEST(RaceOrder, an_event_that_was_never_recorded_orders_nothing) {
  LogBuilder b;
  const auto x = b.kernel(0);
  b.wait(7, 1);
  const auto y = b.kernel(1);
  b.record(7, 0);
  EXPECT_FALSE(is_ordered(b.log, x, y));
}

TEST(RaceOrder, order_passes_through_a_third_stream) {
  LogBuilder b;
  const auto x = b.kernel(0);
  b.record(7, 0);
  b.wait(7, 1);
  b.record(8, 1);
  b.wait(8, 2);
  EXPECT_TRUE(is_ordered(b.log, x, b.kernel(2)));
}

TEST(RaceOrder, what_a_thread_waits_for_comes_before_what_it_submits) {
  LogBuilder b;
  const auto x = b.kernel(0);
  const auto early = b.kernel(1);
  b.synchronize(0);
  const auto late = b.kernel(1), other_stream = b.kernel(2);
  EXPECT_FALSE(is_ordered(b.log, x, early));
  EXPECT_TRUE(is_ordered(b.log, x, late));
  EXPECT_TRUE(is_ordered(b.log, x, other_stream));
}

TEST(RaceOrder, the_host_waits_for_an_event_too) {
  LogBuilder b;
  const auto x = b.kernel(0);
  b.record(7, 0);
  const auto y = b.kernel(0);
  b.wait_in_host(7);
  const auto z = b.kernel(1);
  EXPECT_TRUE(is_ordered(b.log, x, z));
  EXPECT_FALSE(is_ordered(b.log, y, z));
}

TEST(RaceOrder, the_wait_of_one_thread_says_nothing_about_another) {
  LogBuilder b;
  const auto x = b.kernel(0);
  b.synchronize(0);
  const auto y = b.by(2).kernel(1);
  EXPECT_FALSE(is_ordered(b.log, x, y));
  b.by(2).synchronize(0);
  EXPECT_TRUE(is_ordered(b.log, x, b.kernel(1)));
}

TEST(RaceOrder, an_event_passes_from_thread_to_thread) {
  LogBuilder b;
  const auto x = b.kernel(0);
  b.record(7, 0);
  b.by(2).wait(7, 1);
  EXPECT_TRUE(is_ordered(b.log, x, b.kernel(1)));
}

TEST(RaceOrder, a_device_is_waited_for_as_a_whole_and_alone) {
  LogBuilder b(2);
  const auto other = b.stream(false, false, 1);
  const auto x = b.kernel(0), y = b.kernel(1), far = b.kernel(other);
  b.synchronize_device();
  const auto z = b.kernel(0);
  EXPECT_TRUE(is_ordered(b.log, x, z));
  EXPECT_TRUE(is_ordered(b.log, y, z));
  EXPECT_FALSE(is_ordered(b.log, far, z));
}

TEST(RaceOrder, a_synchronous_copy_is_waited_for) {
  LogBuilder b;
  const auto x = b.kernel(0);
  const auto copy = b.synchronous(Kind::copy, 0);
  const auto y = b.kernel(1);
  EXPECT_TRUE(is_ordered(b.log, x, y));
  EXPECT_TRUE(is_ordered(b.log, copy, y));
}

TEST(RaceOrder, the_legacy_stream_comes_after_blocking_streams_and_before_them) {
  LogBuilder b(1);  // stream 0 does not block
  const auto one = b.stream(true, false), two = b.stream(true, false), legacy = b.stream(false, true);
  const auto a = b.kernel(one), free_before = b.kernel(0);
  const auto middle = b.kernel(legacy);
  const auto z = b.kernel(two), free_after = b.kernel(0);
  EXPECT_TRUE(is_ordered(b.log, a, middle));
  EXPECT_TRUE(is_ordered(b.log, middle, z));
  EXPECT_TRUE(is_ordered(b.log, a, z));
  EXPECT_FALSE(is_ordered(b.log, free_before, middle));
  EXPECT_FALSE(is_ordered(b.log, middle, free_after));
  const auto again = b.kernel(legacy);
  EXPECT_TRUE(is_ordered(b.log, z, again));
}

TEST(RaceOrder, the_legacy_stream_is_one_of_its_device) {
  LogBuilder b(0);
  const auto here = b.stream(true, false, 0), legacy = b.stream(false, true, 1);
  const auto x = b.kernel(here);
  EXPECT_FALSE(is_ordered(b.log, x, b.kernel(legacy)));
}

TEST(RaceOrder, an_event_recorded_in_the_legacy_stream_covers_blocking_streams) {
  LogBuilder b(1);
  const auto blocking = b.stream(true, false), legacy = b.stream(false, true);
  const auto x = b.kernel(blocking);
  b.record(7, legacy);
  b.wait(7, 0);
  EXPECT_TRUE(is_ordered(b.log, x, b.kernel(0)));
}

TEST(RaceOrder, waiting_for_the_legacy_stream_waits_for_blocking_streams) {
  LogBuilder b(1);
  const auto blocking = b.stream(true, false), legacy = b.stream(false, true);
  const auto x = b.kernel(blocking);
  b.synchronize(legacy);
  EXPECT_TRUE(is_ordered(b.log, x, b.kernel(0)));
}

TEST(RaceOrder, a_block_is_handed_on_only_when_its_release_is_over) {
  LogBuilder b;
  b.allocate(4096, 256, 0);
  const auto x = b.kernel(0), elsewhere = b.kernel(2);
  b.release(4096, 256, 0);
  b.allocate(4096, 256, 1);
  const auto y = b.kernel(1);
  EXPECT_TRUE(is_ordered(b.log, x, y));
  EXPECT_FALSE(is_ordered(b.log, elsewhere, y));
  b.allocate(8192, 256, 3);
  EXPECT_FALSE(is_ordered(b.log, x, b.kernel(3)));
}

TEST(RaceOrder, a_wait_for_a_word_comes_after_its_write) {
  LogBuilder b;
  const auto x = b.kernel(0);
  b.command(Kind::memory_operation, 0, {writes(64, 4)});
  b.command(Kind::memory_operation, 1, {reads(64, 4)});
  EXPECT_TRUE(is_ordered(b.log, x, b.kernel(1)));
  b.command(Kind::memory_operation, 2, {reads(128, 4)});
  EXPECT_FALSE(is_ordered(b.log, x, b.kernel(2)));
}

TEST(RaceOrder, a_capture_is_a_world_of_its_own) {
  LogBuilder b;
  const auto ran = b.kernel(0);
  b.captured(1);
  const auto x = b.kernel(0);
  b.record(7, 0);
  const auto free = b.kernel(2);
  b.wait(7, 1);
  const auto y = b.kernel(1);
  b.captured(2);
  const auto other = b.kernel(1);
  b.captured(0);
  b.synchronize_device();
  const auto ran_after = b.kernel(1);
  EXPECT_TRUE(is_ordered(b.log, x, y));
  EXPECT_FALSE(is_ordered(b.log, x, free));
  EXPECT_FALSE(is_ordered(b.log, y, other));
  EXPECT_FALSE(is_ordered(b.log, ran, x));
  EXPECT_FALSE(is_ordered(b.log, x, ran_after));
  EXPECT_TRUE(is_ordered(b.log, ran, ran_after));
}

TEST(RaceOrder, nonsense_is_not_ordered) {
  LogBuilder b;
  const auto x = b.kernel(0), y = b.kernel(0);
  const auto event = b.record(1, 0);
  EXPECT_FALSE(is_ordered(b.log, y, x));
  EXPECT_FALSE(is_ordered(b.log, x, event));
  EXPECT_FALSE(is_ordered(b.log, x, 1000));
  EXPECT_FALSE(is_ordered(b.log, 1000, 2000));
}

// For each call the set of commands that must have ended, by following every rule one at a time.
std::vector<std::vector<bool>> searched(const Log& log) {
  const std::size_t n = log.calls.size();
  std::vector<std::vector<bool>> before(n, std::vector<bool>(n, false));
  const auto follow = [&](std::size_t later, std::size_t earlier) {
    before[later][earlier] = true;
    for (std::size_t i = 0; i < n; ++i)
      if (before[earlier][i]) before[later][i] = true;
  };
  for (std::size_t i = 0; i < n; ++i) {
    const Call& call = log.calls[i];
    const auto is_of_stream = [&](std::size_t j) { return log.calls[j].stream != kNoStream; };
    const auto is_sync = [&](std::size_t j) {
      return log.calls[j].kind == Kind::event_synchronize || log.calls[j].kind == Kind::stream_synchronize ||
             log.calls[j].kind == Kind::context_synchronize;
    };
    for (std::size_t j = 0; j < i; ++j) {
      const Call& other = log.calls[j];
      if (is_sync(i)) {
        const bool is_waited_for = call.kind == Kind::context_synchronize  ? is_of_stream(j) && !is_sync(j)
                                   : call.kind == Kind::stream_synchronize ? other.stream == call.stream && !is_sync(j)
                                                                           : false;
        if (is_waited_for) follow(i, j);
        continue;
      }
      if (is_sync(j)) {
        if (other.name.thread == call.name.thread) follow(i, j);
        continue;
      }
      const Stream &mine = log.streams[call.stream], &its = log.streams[other.stream];
      if (other.stream == call.stream || (mine.is_legacy && its.is_blocking) || (mine.is_blocking && its.is_legacy))
        follow(i, j);
    }
    if (call.kind != Kind::stream_wait_event && call.kind != Kind::event_synchronize) continue;
    for (std::size_t j = i; j-- > 0;) {
      if (log.calls[j].kind != Kind::event_record || log.calls[j].object != call.object) continue;
      follow(i, j);
      break;
    }
  }
  return before;
}

TEST(RaceOrder, agrees_with_a_search_in_random_logs) {
  std::mt19937 random(3);
  const auto below = [&](std::uint32_t limit) { return static_cast<std::uint32_t>(random() % limit); };
  for (int round = 0; round < 150; ++round) {
    LogBuilder b(2);
    b.stream(true, false);
    b.stream(true, false);
    b.stream(false, true);
    for (int i = 0; i < 70; ++i) {
      b.by(1 + below(2));
      const std::uint32_t what = below(12), stream = below(5);
      if (what < 6) b.kernel(stream);
      if (what == 6 || what == 7) b.record(below(3), stream);
      if (what == 8 || what == 9) b.wait(below(3), stream);
      if (what == 10) b.wait_in_host(below(3));
      if (what == 11 && below(3) == 0) b.synchronize(below(4));  // not the legacy stream: it has a rule of its own
      if (what == 11 && below(8) == 0) b.synchronize_device();
    }
    const auto before = searched(b.log);
    std::vector<std::pair<std::uint32_t, std::uint32_t>> pairs;
    for (std::uint32_t i = 0; i < b.log.calls.size(); ++i)
      for (std::uint32_t j = 0; j < i; ++j)
        if (is_command(b.log.calls[i].kind) && is_command(b.log.calls[j].kind)) pairs.emplace_back(j, i);
    const std::vector<bool> ordered = are_ordered(b.log, pairs);
    for (std::size_t i = 0; i < pairs.size(); ++i)
      ASSERT_EQ(ordered[i], before[pairs[i].second][pairs[i].first])
          << "round " << round << ": " << pairs[i].first << ", " << pairs[i].second;
  }
}

}  // namespace
}  // namespace weir::race
