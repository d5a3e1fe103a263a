// Samples from one thread to another: order, pace, the end and failures. Run under ThreadSanitizer too.
#include "lab/watch/feed.h"

#include <gtest/gtest.h>

#include <atomic>

#include "base/clock.h"
#include "base/error.h"

namespace weir::watch {
namespace {

constexpr std::int64_t kMinute = 60'000'000'000;

Feed::Body endless() {
  return [](Feed& feed) {
    while (feed.await_due()) feed.publish({});
  };
}

TEST(Feed, samples_are_numbered_and_the_latest_is_kept) {
  std::atomic<int> woken{0};
  Feed feed(endless(), {0, 1'000'000}, [&] { woken.fetch_add(1); });
  const auto sample = feed.await(3, kMinute);
  ASSERT_NE(sample, nullptr);
  EXPECT_GE(sample->number, 3u);
  EXPECT_GE(feed.latest()->number, sample->number);
  EXPECT_GE(woken.load(), 2);  // the third may not have rung yet
}

TEST(Feed, ends_at_once_though_the_next_sample_is_far_away) {
  const std::int64_t before = now_ns();
  {
    Feed feed(endless(), {0, 10 * kMinute});
    feed.await(1, kMinute);
    EXPECT_FALSE(feed.is_due());
  }
  EXPECT_LT(now_ns() - before, 5 * kMinute);
}

TEST(Feed, nothing_comes_before_the_first_is_due) {
  Feed feed(endless(), {10 * kMinute, 1'000'000});
  EXPECT_EQ(feed.await(1, 1'000'000), nullptr);
  EXPECT_EQ(feed.latest(), nullptr);
}

TEST(Feed, a_shorter_interval_counts_at_once) {
  Feed feed(endless(), {0, 10 * kMinute});
  feed.await(1, kMinute);
  feed.set_interval(1'000'000);
  ASSERT_NE(feed.await(2, kMinute), nullptr);
  EXPECT_GE(feed.latest()->number, 2u);
}

TEST(Feed, a_failure_of_the_source_comes_to_whoever_shows_it) {
  Feed feed([](Feed&) { fail("the device is gone"); }, {0, 1'000'000});
  feed.await(1, kMinute);
  EXPECT_TRUE(feed.has_ended());
  EXPECT_THROW(feed.rethrow(), Error);
  EXPECT_EQ(feed.latest(), nullptr);
}

TEST(Feed, a_source_that_ends_by_itself_is_no_failure) {
  Feed feed([](Feed& self) { self.publish({}); }, {0, 1'000'000});
  feed.await(2, kMinute);
  EXPECT_TRUE(feed.has_ended());
  EXPECT_NO_THROW(feed.rethrow());
  EXPECT_EQ(feed.latest()->number, 1u);
}

}  // namespace
}  // namespace weir::watch
