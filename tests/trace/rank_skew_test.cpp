#include "trace/rank_skew.h"

#include <gtest/gtest.h>

#include "kernel/random.h"

namespace weir {
namespace {

// Arrivals of `ranks` at 10 collectives in each of `iterations`, each up to `noise_ns` late; `late_rank` later still.
std::vector<std::vector<Arrival>> arrivals_of(int ranks, std::uint32_t iterations, std::uint64_t seed, int late_rank,
                                              std::int64_t late_ns) {
  std::vector<std::vector<Arrival>> arrivals(static_cast<std::size_t>(ranks));
  for (int rank = 0; rank < ranks; ++rank)
    for (std::uint32_t iteration = 0; iteration < iterations; ++iteration)
      for (std::uint32_t command = 0; command < 10; ++command) {
        const std::uint64_t index = (iteration * 10 + command) * 64 + static_cast<std::uint64_t>(rank);
        const auto noise = static_cast<std::int64_t>(random_bits(seed, index) % 1000);
        arrivals[static_cast<std::size_t>(rank)].push_back(
            {command, iteration, 1'000'000 * (iteration * 10 + command) + noise + (rank == late_rank ? late_ns : 0)});
      }
  return arrivals;
}

TEST(RankSkew, IsLastMinusFirstArrival) {
  const std::vector<std::vector<Arrival>> arrivals = {{{0, 1, 100}, {1, 1, 500}}, {{0, 1, 130}, {1, 1, 480}}};
  const auto skew = rank_skew(arrivals, 0);
  ASSERT_TRUE(skew);
  EXPECT_EQ(skew->instances, 2u);
  EXPECT_DOUBLE_EQ(skew->p50_ns, 25);
  EXPECT_DOUBLE_EQ(skew->max_ns, 30);
  EXPECT_DOUBLE_EQ(skew->last_share[0], 0.5);
  EXPECT_DOUBLE_EQ(skew->behind_ns[1], 5);  // +30 and -20
  // What the clocks cannot tell apart is shared.
  EXPECT_DOUBLE_EQ(rank_skew(arrivals, 1000)->last_share[0], 0.5);
}

TEST(RankSkew, CountsOnlyCollectivesThatEveryRankCameTo) {
  const std::vector<std::vector<Arrival>> arrivals = {
      {{0, 1, 100}, {1, 1, 500}}, {{0, 1, 130}, {1, 1, kNoTime}}, {{1, 1, 480}, {0, 1, 90}}};
  EXPECT_EQ(rank_skew(arrivals, 0)->instances, 1u);
  EXPECT_FALSE(rank_skew(std::vector<std::vector<Arrival>>{{{0, 1, 100}}, {}}, 0));
  EXPECT_FALSE(rank_skew(std::vector<std::vector<Arrival>>{{{0, 1, 100}}}, 0));
  EXPECT_FALSE(rank_skew({}, 0));
}

// Nanoseconds since 1970 as doubles are 256 ns apart.
TEST(RankSkew, IsExactSince1970) {
  const std::int64_t now = 1'700'000'000'000'000'001;
  const std::vector<std::vector<Arrival>> arrivals = {{{0, 1, now}}, {{0, 1, now + 30}}};
  EXPECT_EQ(rank_skew(arrivals, 0)->max_ns, 30);
}

TEST(Stragglers, AreBehindByMoreThanTheClocksError) {
  EXPECT_EQ(find_stragglers(rank_skew(arrivals_of(2, 20, 5, 1, 5'000), 4'000), {}).size(), 1u);
  EXPECT_TRUE(find_stragglers(rank_skew(arrivals_of(2, 20, 5, 1, 5'000), 6'000), {}).empty());
}

TEST(Stragglers, FindsThePlantedOne) {
  for (const int ranks : {2, 3, 4, 8}) {
    for (int late = 0; late < ranks; ++late) {
      const auto skew = rank_skew(arrivals_of(ranks, 20, 5, late, 5'000), 0);
      const auto found = find_stragglers(skew, {});
      ASSERT_EQ(found.size(), 1u) << ranks;
      EXPECT_EQ(found[0].rank, late);
      EXPECT_DOUBLE_EQ(found[0].last_share.value(), 1.0);
      EXPECT_NEAR(found[0].behind_ns.value(), 5'000, 1'000);
      EXPECT_NE(found[0].reason.find("100 % of 200 collectives"), std::string::npos) << found[0].reason;
    }
  }
}

TEST(Stragglers, InventsNone) {
  for (const int ranks : {2, 3, 4, 8})
    for (const std::uint32_t iterations : {1u, 20u})
      for (std::uint64_t seed = 0; seed < 50; ++seed) {
        const auto skew = rank_skew(arrivals_of(ranks, iterations, seed, -1, 0), 0);
        EXPECT_TRUE(find_stragglers(skew, {}).empty()) << ranks << " ranks, seed " << seed;
      }
  // One collective says nothing, however late somebody was.
  const std::vector<std::vector<Arrival>> once = {{{0, 1, 100}}, {{0, 1, 100}}, {{0, 1, 9'000}}};
  EXPECT_TRUE(find_stragglers(rank_skew(once, 0), {}).empty());
  // A rank that is late by less than the clocks know is not late.
  EXPECT_TRUE(find_stragglers(rank_skew(arrivals_of(4, 20, 1, 2, 3'000), 10'000), {}).empty());
}

TEST(Stragglers, FindsSlowRanksByLatencyAlone) {
  const std::vector<double> latencies = {100, 104, 97, 131};
  const auto found = find_stragglers(std::nullopt, latencies);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].rank, 3);
  EXPECT_FALSE(found[0].last_share);
  EXPECT_NEAR(found[0].latency_ratio.value(), 131.0 / 102, 1e-9);
  EXPECT_TRUE(find_stragglers(std::nullopt, std::vector<double>{100, 104, 97, 111}).empty());
  EXPECT_TRUE(find_stragglers(std::nullopt, std::vector<double>{100}).empty());
  EXPECT_TRUE(find_stragglers(std::nullopt, {}).empty());
}

TEST(CollectiveShare, CountsOverlapOnce) {
  const auto span = [](std::uint32_t command, std::uint32_t iteration, std::int64_t started, std::int64_t ended) {
    Span made;
    made.command = command;
    made.iteration = iteration;
    made.started_ns = started;
    made.ended_ns = ended;
    return made;
  };
  Timeline timeline;
  timeline.spans = {span(0, 1, 0, 60), span(1, 1, 50, 80), span(2, 1, 70, 100), span(1, 2, 1000, 1100)};
  // Iteration 1: 50 of 100; iteration 2: all of 100.
  EXPECT_DOUBLE_EQ(collective_share(timeline, {false, true, true}).value(), 0.75);
  EXPECT_DOUBLE_EQ(collective_share(timeline, {false, false, false}).value(), 0);
  EXPECT_FALSE(collective_share(Timeline{}, {}));
}

}  // namespace
}  // namespace weir
