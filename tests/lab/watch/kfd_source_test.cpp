// Rates from two looks at KFD, over wraps of the ring; and rows from the text that a kernel would show.
#include "lab/watch/kfd_source.h"

#include <gtest/gtest.h>

#include "lab/watch/document.h"
#include "support/amd_scene.h"
#include "support/kfd_text.h"

namespace weir::watch {
namespace {

constexpr std::uint64_t kRing = 1024;  // dwords

RingPosition at(std::uint64_t read, std::uint64_t write, std::optional<std::uint64_t> backlog) {
  return {0, read, write, kRing, backlog};
}

TEST(DwordsRead, the_read_pointer_alone_gives_a_bound) {
  const SampleValue forward = dwords_read(at(100, 200, 100), at(180, 200, 20));
  EXPECT_EQ(forward.value, 80);
  EXPECT_TRUE(forward.is_at_least);
}

TEST(DwordsRead, the_bound_goes_over_the_ring_s_end) {
  EXPECT_EQ(dwords_read(at(1000, kRing, std::nullopt), at(24, kRing + 30, std::nullopt)).value, 48);
  EXPECT_EQ(dwords_read(at(0, 0, std::nullopt), at(0, 0, std::nullopt)).value, 0);
  EXPECT_TRUE(dwords_read(at(0, 0, std::nullopt), at(0, 0, std::nullopt)).is_at_least);
}

TEST(DwordsRead, a_write_pointer_beyond_the_ring_counts_on_and_is_exact) {
  // Five times round: the read pointer alone would say 8.
  const SampleValue figure = dwords_read(at(16, 2064, 0), at(24, 2064 + 5 * kRing + 8, 0));
  EXPECT_EQ(figure.value, 5 * kRing + 8);
  EXPECT_FALSE(figure.is_at_least);
  // What is left in the ring was not read.
  EXPECT_EQ(dwords_read(at(16, 2064, 0), at(16, 2064 + 160, 160)).value, 0);
  // What was left before was read in between.
  EXPECT_EQ(dwords_read(at(16, 2064 + 160, 160), at(176, 2064 + 160, 0)).value, 160);
}

TEST(DwordsRead, without_a_backlog_it_is_a_bound_again) {
  const SampleValue figure = dwords_read(at(16, 2064, std::nullopt), at(24, 2072, 0));
  EXPECT_EQ(figure.value, 8);
  EXPECT_TRUE(figure.is_at_least);
}

TEST(DwordsRead, nothing_is_said_of_another_ring_or_a_pointer_that_went_back) {
  EXPECT_FALSE(dwords_read({0, 0, 0, kRing, 0}, {0, 0, 0, 2 * kRing, 0}).value);
  EXPECT_FALSE(dwords_read({0, 0, 0, 0, 0}, {0, 0, 0, 0, 0}).value);
  EXPECT_FALSE(dwords_read(at(16, 5000, 0), at(16, 16, 0)).value);
}

// A queue that was destroyed and made anew has the same ring: 984 to 24 is no 64 more of the first.
TEST(DwordsRead, a_read_pointer_that_went_back_in_a_ring_that_was_never_full_is_no_bound) {
  EXPECT_FALSE(dwords_read(at(984, 984, 0), at(24, 24, 0)).value);
  EXPECT_FALSE(dwords_read(at(984, 984, 0), at(24, 1000, 976)).value);
}

TEST(DwordsRead, of_several_xccs_the_slowest_counts) {
  const std::vector<RingPosition> before = {{0, 0, 2048, kRing, 0}, {1, 0, 2048, kRing, 0}};
  const std::vector<RingPosition> after = {{0, 64, 2112, kRing, 0}, {1, 32, 2112, kRing, 32}};
  EXPECT_EQ(dwords_read(before, after).value, 32);
  EXPECT_FALSE(dwords_read(before, std::vector<RingPosition>{{2, 0, 2048, kRing, 0}}).value);
  EXPECT_FALSE(dwords_read({}, after).value);
}

kfd::Snapshot snapshot_of(const weir::testing::Scene& scene, std::int64_t taken_ns) {
  kfd::Snapshot snapshot;
  snapshot.taken_ns = taken_ns;
  snapshot.hqds = kfd::parse_hqds(weir::testing::hqds_text(scene), "hqds");
  snapshot.mqds = kfd::parse_mqds(weir::testing::mqds_text(scene), "mqds");
  return snapshot;
}

weir::testing::Scene one_queue(std::uint64_t read_packets, std::uint64_t written_packets) {
  weir::testing::Scene scene;
  scene.gpus.emplace_back();
  scene.processes.emplace_back();
  weir::testing::SceneQueue queue;
  queue.ring_base = 0x7f41b5200000;
  queue.mqd_base = 0x17ba000;
  queue.doorbell = 0x1008;
  queue.read_packets = read_packets;
  queue.written_packets = written_packets;
  scene.queues.push_back(queue);
  return scene;
}

TEST(KfdRates, the_first_sample_has_no_rate_and_the_second_has) {
  KfdRates rates;
  const Sample first = rates.sample_of(snapshot_of(one_queue(100, 104), 1'000'000'000));
  ASSERT_EQ(first.rows.size(), 1u);
  EXPECT_FALSE(first.window_ns);
  EXPECT_FALSE(first.rows[0].packets_per_s.value);
  EXPECT_NE(first.rows[0].packets_per_s.reason, "");
  EXPECT_EQ(first.rows[0].backlog.value, 4);
  EXPECT_EQ(first.rows[0].is_active, true);
  EXPECT_FALSE(first.rows[0].streams.value);
  const Sample second = rates.sample_of(snapshot_of(one_queue(400, 402), 3'000'000'000));
  ASSERT_EQ(second.rows.size(), 1u);
  EXPECT_EQ(second.window_ns, 2'000'000'000);
  EXPECT_EQ(second.rows[0].key, first.rows[0].key);
  EXPECT_EQ(second.rows[0].packets_per_s.value, 150);
  EXPECT_TRUE(second.rows[0].packets_per_s.is_at_least);  // nothing shows yet that the write pointer counts on
  EXPECT_EQ(second.rows[0].packets.value, 300);
}

TEST(KfdRates, far_beyond_the_ring_the_rate_is_exact) {
  const std::uint64_t ring = (1 << 20) / 64;
  KfdRates rates;
  rates.sample_of(snapshot_of(one_queue(3 * ring, 3 * ring), 0));
  const Sample sample = rates.sample_of(snapshot_of(one_queue(6 * ring + 10, 6 * ring + 15), 1'000'000'000));
  ASSERT_EQ(sample.rows.size(), 1u);
  EXPECT_EQ(sample.rows[0].packets_per_s.value, 3 * ring + 10);
  EXPECT_FALSE(sample.rows[0].packets_per_s.is_at_least);
  EXPECT_EQ(sample.rows[0].backlog.value, 5);
}

TEST(KfdRates, a_queue_that_is_not_mapped_has_no_rate_but_a_row) {
  KfdRates rates;
  rates.sample_of(snapshot_of(one_queue(1, 1), 0));
  auto scene = one_queue(1, 1);
  scene.queues[0].is_mapped = false;
  const Sample sample = rates.sample_of(snapshot_of(scene, 1'000'000'000));
  ASSERT_EQ(sample.rows.size(), 1u);
  EXPECT_EQ(sample.rows[0].packets_per_s.reason, "not mapped now");
  EXPECT_EQ(sample.rows[0].is_mapped, false);
  EXPECT_EQ(sample.rows[0].is_active, false);
}

// Where queues take turns, most are off the hardware in most samples.
TEST(KfdRates, what_was_read_is_still_counted_when_a_queue_was_not_mapped_meanwhile) {
  KfdRates rates;
  rates.sample_of(snapshot_of(one_queue(100, 100), 0));
  EXPECT_EQ(rates.sample_of(snapshot_of(one_queue(300, 300), 1'000'000'000)).rows[0].packets.value, 200);
  auto away = one_queue(300, 300);
  away.queues[0].is_mapped = false;
  const Sample without = rates.sample_of(snapshot_of(away, 2'000'000'000));
  EXPECT_EQ(without.rows[0].packets.value, 200) << "a counter never goes back";
  EXPECT_TRUE(without.rows[0].packets.is_at_least);
  const Sample back = rates.sample_of(snapshot_of(one_queue(450, 450), 3'000'000'000));
  EXPECT_EQ(back.rows[0].packets.value, 350);
  EXPECT_EQ(back.rows[0].packets_per_s.reason, "not mapped in the sample before") << "the window is another one";
  EXPECT_EQ(rates.sample_of(snapshot_of(one_queue(500, 500), 4'000'000'000)).rows[0].packets_per_s.value, 50);
}

TEST(KfdRates, without_hqds_nobody_knows_who_is_active) {
  kfd::Snapshot snapshot = snapshot_of(one_queue(1, 1), 0);
  snapshot.hqds.reset();
  snapshot.missing.push_back({"hqds", "/sys/kernel/debug/kfd/hqds", "permission denied", "Run as root."});
  EXPECT_TRUE(can_watch(snapshot));
  const Sample sample = KfdRates().sample_of(snapshot);
  ASSERT_EQ(sample.rows.size(), 1u);
  EXPECT_FALSE(sample.rows[0].is_active);
  EXPECT_EQ(sample.rows[0].active_reason, "hqds could not be read");
  const Json document = watch_document(sample, 1, "2026-01-01T00:00:00Z");
  EXPECT_TRUE(document["queues"][0]["active"].is_null());
  EXPECT_EQ(document["queues"][0]["unavailable"]["active"], "hqds could not be read");
  EXPECT_EQ(document["missing"][0]["hint"], "Run as root.");
  snapshot.mqds.reset();
  EXPECT_FALSE(can_watch(snapshot));
}

TEST(KfdRates, random_scenes_have_a_row_for_each_queue_with_a_key_of_its_own) {
  using weir::testing::Gfx;
  for (const Gfx gfx : {Gfx::gfx9, Gfx::gfx9_4_3, Gfx::gfx10, Gfx::gfx11, Gfx::gfx12}) {
    for (std::uint64_t seed = 1; seed <= 20; ++seed) {
      const weir::testing::Scene scene = weir::testing::random_scene(seed, gfx);
      const Sample sample = KfdRates().sample_of(snapshot_of(scene, 1));
      EXPECT_EQ(sample.rows.size(), scene.queues.size()) << seed;
      std::map<std::string, int> keys;
      for (const Row& row : sample.rows) EXPECT_EQ(++keys[row.key], 1) << row.key;
    }
  }
}

}  // namespace
}  // namespace weir::watch
