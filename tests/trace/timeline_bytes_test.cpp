// Timelines as bytes: they come back as they were, and nothing else is taken for one.
#include "trace/timeline_bytes.h"

#include <gtest/gtest.h>

#include <cstring>
#include <random>

#include "base/error.h"
#include "support/random_timeline.h"
#include "trace/analyse/breakdown.h"
#include "trace/analyse/exposed_causes.h"
#include "trace/analyse/slice.h"
#include "trace/merge.h"

namespace weir {
namespace {

Timeline random_sample(std::uint64_t seed) {
  test::RandomTimeline random(seed);
  Timeline t = random.timeline(20, 50);
  t.has_exact_gaps = true;
  t.clock_error_ns = 12.5;
  t.names = {"gemm", std::string("a\0b\xff", 4), "", "ProfilerStep#0"};
  t.processes = {{3, "job", 2}};
  t.devices = {{0, 7, "GPU 7"}};
  t.streams = {{0, 0, "s0"}, {0, 1, "s1"}, {0, 2, "s2"}, {0, UINT64_MAX, "s3"}};
  t.queues = {{0, 0, "queue 0"}, {kCopyQueues, 0, "copy engine 0"}};
  t.calls = {{0, 9, 77, 0, CallKind::launch, 5, 6}, {kNoName, 9, 78, 0, CallKind::other, 8, kNoTime}};
  const auto count = static_cast<std::int64_t>(t.spans.size());
  for (std::uint32_t i = 0; i < t.spans.size(); ++i) {
    t.spans[i].call = i % 3 == 0 ? 1 : kNoCall;
    t.spans[i].bytes = i * 1000;
    t.spans[i].role = static_cast<std::uint8_t>(i);
    if (t.spans[i].kind == SpanKind::collective)
      t.collectives.push_back({i, CollectiveKind::reduce_scatter, 4, 1, 4096});
    t.dependencies.push_back({static_cast<std::uint32_t>(random.below(count)), i});
  }
  t.has_dependencies = true;
  t.ranges = {{3, 0, 1, 2}};
  t.dropped = {{"no reason", 4, "byte 3"}};
  t.notes = {"a note"};
  return t;
}

TEST(TimelineBytes, ComeBackAsTheyWere) {
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    const Timeline before = random_sample(seed);
    const std::string bytes = timeline_bytes(before);
    const Timeline after = timeline_of_bytes(bytes, "rank 3");
    // Every field is written, so equal bytes are equal timelines; and the fields that are easy to forget:
    EXPECT_EQ(timeline_bytes(after), bytes);
    ASSERT_EQ(after.spans.size(), before.spans.size());
    for (std::size_t i = 0; i < after.spans.size(); ++i) {
      EXPECT_EQ(after.spans[i].started_ns, before.spans[i].started_ns);
      EXPECT_EQ(after.spans[i].seen_ns, before.spans[i].seen_ns);
      EXPECT_EQ(after.spans[i].role, before.spans[i].role);
      EXPECT_EQ(after.spans[i].call, before.spans[i].call);
      EXPECT_EQ(after.spans[i].queue, before.spans[i].queue);
    }
    EXPECT_EQ(after.names, before.names);
    EXPECT_EQ(after.processes[0].clock, 2);
    EXPECT_EQ(after.streams[3].id, UINT64_MAX);
    EXPECT_EQ(after.calls[1].correlation, 78u);
    EXPECT_EQ(after.collectives.size(), before.collectives.size());
    EXPECT_EQ(after.dependencies.size(), before.dependencies.size());
    EXPECT_TRUE(after.has_dependencies);
    EXPECT_TRUE(after.has_exact_gaps);
    EXPECT_EQ(after.clock_error_ns, 12.5);
    EXPECT_EQ(after.ranges.at(0).name, 3u);
    EXPECT_EQ(after.dropped.at(0).count, 4u);
    EXPECT_EQ(after.notes, before.notes);
    EXPECT_EQ(after.source, before.source);
  }
}

TEST(TimelineBytes, AnEmptyOneToo) {
  const Timeline after = timeline_of_bytes(timeline_bytes({}), "rank 0");
  EXPECT_TRUE(after.spans.empty());
  EXPECT_FALSE(after.has_dependencies);
}

TEST(TimelineBytes, EveryTruncationIsTold) {
  const std::string bytes = timeline_bytes(random_sample(3));
  for (std::size_t size = 0; size < bytes.size(); ++size)
    ASSERT_THROW(timeline_of_bytes(std::string_view(bytes).substr(0, size), "rank 1"), Error) << size;
  EXPECT_THROW(timeline_of_bytes(bytes + '\0', "rank 1"), Error);
  std::string other = bytes;
  other[14] = '1';  // of the version
  try {
    timeline_of_bytes(other, "rank 1");
    FAIL();
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("rank 1"), std::string::npos);
    EXPECT_NE(error.hint.find("same build"), std::string::npos);
  }
}

// What passes must not lead analyses out of their arrays.
TEST(TimelineBytes, DamageIsRejectedOrHarmless) {
  std::mt19937_64 random(7);
  std::size_t rejected = 0, taken = 0;
  for (int round = 0; round < 20'000; ++round) {
    static const std::string kWhole = timeline_bytes(random_sample(5));
    std::string bytes = kWhole;
    const int changes = 1 + static_cast<int>(random() % 4);
    for (int i = 0; i < changes; ++i) {
      const std::size_t at = 16 + random() % (bytes.size() - 16);
      switch (random() % 4) {
        case 0:
          bytes[at] = static_cast<char>(random());
          break;
        case 1:
          bytes[at] = static_cast<char>(bytes[at] ^ (1 << random() % 8));
          break;
        case 2:  // a number of all ones, where a count may be
          std::memset(bytes.data() + at, 0xFF, std::min<std::size_t>(8, bytes.size() - at));
          break;
        default:
          bytes.erase(at, random() % 9);
      }
    }
    try {
      Timeline timeline = timeline_of_bytes(bytes, "rank 1");
      ++taken;
      breakdown(slice(timeline, 0));
      exposed_causes(timeline);
      merge({timeline, random_sample(5)});
    } catch (const Error&) {
      ++rejected;
    }
  }
  EXPECT_GT(rejected, 1'000u);
  EXPECT_GT(taken, 1'000u);
}

}  // namespace
}  // namespace weir
