// What others cost is found in launches of one kind, and not in launches that differ by themselves.
#include "lab/advise/slowdown.h"

#include <gtest/gtest.h>

#include <random>

namespace weir::advise {
namespace {

TEST(Slowdown, is_the_median_by_the_number_of_others) {
  std::mt19937 random(3);
  std::vector<BesideOthers> launches;
  for (int i = 0; i < 600; ++i) {
    const int others = i % 4;
    launches.push_back({static_cast<double>(others), 100'000 + 20'000 * others + static_cast<int>(random() % 8'000)});
  }
  const std::vector<double> factors = slowdown_of(launches);
  ASSERT_EQ(factors.size(), 4u);
  EXPECT_EQ(factors[0], 1);
  for (std::size_t i = 1; i < 4; ++i) EXPECT_NEAR(factors[i], 1 + 0.19 * static_cast<double>(i), 0.02);
}

TEST(Slowdown, never_falls_with_more_others) {
  std::vector<BesideOthers> launches;
  for (const auto& [others, ns] : {std::pair(0, 100), {1, 150}, {2, 140}, {5, 200}})
    for (int i = 0; i < 5; ++i) launches.push_back({static_cast<double>(others), ns});
  launches.push_back({9, 900});  // a single one says nothing
  EXPECT_EQ(slowdown_of(launches), (std::vector<double>{1, 1.45, 1.45, 1.45, 1.45, 2}));
}

TEST(Slowdown, is_not_read_into_launches_that_differ_by_themselves) {
  std::mt19937 random(5);
  std::vector<BesideOthers> launches;
  for (int i = 0; i < 600; ++i)
    launches.push_back({static_cast<double>(random() % 8), 20'000 + static_cast<int>(random() % 80'000)});
  EXPECT_TRUE(slowdown_of(launches).empty());
}

TEST(Slowdown, is_unknown_where_all_ran_beside_equally_many) {
  EXPECT_TRUE(slowdown_of(std::vector<BesideOthers>(100, {2, 5'000})).empty());
  EXPECT_TRUE(slowdown_of({}).empty());
}

}  // namespace
}  // namespace weir::advise
