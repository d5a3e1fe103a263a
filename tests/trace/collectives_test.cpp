#include "trace/analyse/collectives.h"

#include <gtest/gtest.h>

namespace weir {
namespace {

void add(Timeline& timeline, CollectiveKind kind, std::int64_t took, std::uint64_t bytes, std::uint32_t ranks,
         std::uint32_t group = kNoName) {
  Span span;
  span.kind = SpanKind::collective;
  span.started_ns = static_cast<std::int64_t>(timeline.spans.size()) * 1'000'000;
  span.ended_ns = span.started_ns + took;
  timeline.collectives.push_back({static_cast<std::uint32_t>(timeline.spans.size()), kind, ranks, group, bytes});
  timeline.spans.push_back(span);
}

TEST(Collectives, BandwidthsByKindAndSize) {
  Timeline timeline;
  add(timeline, CollectiveKind::all_reduce, 1000, 4096, 4);
  add(timeline, CollectiveKind::all_reduce, 3000, 8000, 4);  // still of the class from 4096
  add(timeline, CollectiveKind::all_gather, 500, 8192, 8);
  add(timeline, CollectiveKind::broadcast, 100, 1024, 0);
  add(timeline, CollectiveKind::all_reduce, 9000, 0, 4);
  const Collectives found = collectives(timeline);
  EXPECT_EQ(found.count, 5u);
  EXPECT_EQ(found.total_ns, 13'600);
  ASSERT_EQ(found.classes.size(), 4u);
  EXPECT_FALSE(found.classes[0].from_bytes);
  EXPECT_FALSE(found.classes[0].algorithm_bandwidth);
  EXPECT_FALSE(found.classes[0].bus_bandwidth);
  const CollectiveClass& reduce = found.classes[1];
  EXPECT_EQ(reduce.from_bytes, 4096u);
  EXPECT_EQ(reduce.count, 2u);
  EXPECT_EQ(reduce.p50_ns, 2000);
  EXPECT_DOUBLE_EQ(reduce.p99_ns, 2980);
  EXPECT_DOUBLE_EQ(*reduce.algorithm_bandwidth, 12'096 / 4e-6);
  EXPECT_DOUBLE_EQ(*reduce.bus_bandwidth, 12'096 / 4e-6 * 1.5);
  EXPECT_DOUBLE_EQ(*reduce.best_bus_bandwidth, 4096 / 1e-6 * 1.5) << "of the fastest one";
  EXPECT_FALSE(found.classes[0].best_bus_bandwidth);
  EXPECT_DOUBLE_EQ(*found.classes[2].bus_bandwidth, 8192 / 500e-9 * 7 / 8);
  EXPECT_DOUBLE_EQ(*found.classes[3].bus_bandwidth, 1024 / 100e-9);  // ranks do not matter
  EXPECT_FALSE(found.reason.empty());
}

TEST(Collectives, GroupsAreApart) {
  Timeline timeline;
  add(timeline, CollectiveKind::all_reduce, 1000, 4096, 4, 1);
  add(timeline, CollectiveKind::all_reduce, 1000, 4096, 4, 2);
  EXPECT_EQ(collectives(timeline).classes.size(), 2u);
}

TEST(Collectives, SaysWhyThereAreNone) {
  Timeline timeline;
  EXPECT_EQ(collectives(timeline).reason, "no collectives");
  add(timeline, CollectiveKind::all_to_all, 0, 4096, 0);  // no time, no ranks
  const Collectives found = collectives(timeline);
  EXPECT_FALSE(found.classes.at(0).algorithm_bandwidth);
  EXPECT_FALSE(bus_factor(CollectiveKind::all_to_all, 0));
  EXPECT_EQ(bus_factor(CollectiveKind::all_reduce, 1), 0);
}

}  // namespace
}  // namespace weir
