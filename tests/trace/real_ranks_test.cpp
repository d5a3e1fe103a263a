// Ranks of real captures: their clocks, and who kept the others waiting.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "trace/clock_alignment.h"
#include "trace/import/import.h"
#include "trace/import/list.h"
#include "trace/merge.h"
#include "trace/rank_collectives.h"

namespace weir {
namespace {

class RealRanks : public testing::Test {
 protected:
  void SetUp() override {
    const char* folder = std::getenv("WEIR_REAL_DATA");
    if (folder == nullptr) GTEST_SKIP() << "WEIR_REAL_DATA does not name the folder of real captures";
    folder_ = folder;
    for (const Importer& importer : importers())
      if (std::string(importer.name) == "kineto") return;
    GTEST_SKIP() << "no importer of Kineto's JSON";
  }

  Timeline read(const char* name) const {
    return std::move(import_traces({folder_ / "kineto" / name}, {}).at(0).timeline);
  }
  bool has_ranks() const { return std::filesystem::exists(folder_ / "truth"); }
  // truth/NAME_rank0.json and truth/NAME_rank1.json
  Timeline read_ranks(const std::string& name) const {
    std::vector<Timeline> parts;
    for (const char* rank : {"_rank0.json", "_rank1.json"})
      parts.push_back(std::move(import_traces({folder_ / "truth" / (name + rank)}, {}).at(0).timeline));
    return merge(std::move(parts));
  }

 private:
  std::filesystem::path folder_;
};

TEST_F(RealRanks, OneOfFourKeepsTheOthersWaiting) {
  const Timeline timeline = read("mi300x_4ranks_fused_140MB.json.gz");
  const auto alignment = align_clocks(timeline);
  ASSERT_TRUE(alignment);
  EXPECT_TRUE(alignment->is_aligned);
  for (const RankClock& clock : alignment->ranks) EXPECT_FALSE(clock.is_shifted);  // ranks of one host
  EXPECT_LT(alignment->error_ns, 50'000);
  const RankCollectives found = rank_collectives(timeline, alignment);
  EXPECT_EQ(found.matched, 21u);
  ASSERT_EQ(found.stragglers.size(), 1u);
  EXPECT_EQ(found.stragglers[0].rank, 3);
  ASSERT_EQ(found.ranks.size(), 4u);
  for (const RankWait& rank : found.ranks) {
    if (rank.rank == 3)
      EXPECT_LT(*rank.wait_share, 0.001);
    else
      EXPECT_GT(*rank.wait_share, 0.3);
  }
}

// Collectives every millisecond; the second clock is five of them ahead.
TEST_F(RealRanks, OffsetNearAMultipleOfThePeriodIsFound) {
  if (!has_ranks()) GTEST_SKIP() << "the folder of real captures has no truth/";
  const Timeline timeline = read_ranks("offset");
  const auto alignment = align_clocks(timeline);
  ASSERT_TRUE(alignment && alignment->is_aligned);
  EXPECT_NEAR(*alignment->ranks[1].offset_ns, 5'000'000, 500);
  EXPECT_LT(alignment->error_ns, 5'000);
}

TEST_F(RealRanks, DriftIsTakenOut) {
  if (!has_ranks()) GTEST_SKIP() << "the folder of real captures has no truth/";
  Timeline timeline = read_ranks("drift");
  const auto alignment = align_clocks(timeline);
  ASSERT_TRUE(alignment && alignment->is_aligned);
  EXPECT_NEAR(alignment->ranks[1].drift_ppm.value_or(0), 50, 1);
  EXPECT_LT(alignment->error_ns, 5'000);
  apply_alignment(timeline, *alignment);
  EXPECT_TRUE(rank_collectives(timeline, alignment).stragglers.empty());
}

TEST_F(RealRanks, EightFilesOfOneHostAgree) {
  const Timeline timeline = read("v100_dlrm_8ranks.tar.gz");
  const auto alignment = align_clocks(timeline);
  ASSERT_TRUE(alignment);
  EXPECT_EQ(alignment->ranks.size(), 8u);
  EXPECT_TRUE(alignment->is_aligned);
  EXPECT_LT(alignment->error_ns, 10'000);
  EXPECT_EQ(rank_collectives(timeline, alignment).matched, 8u);
}

}  // namespace
}  // namespace weir
