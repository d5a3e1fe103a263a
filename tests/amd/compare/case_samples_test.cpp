#include "amd/compare/case_samples.h"

#include <gtest/gtest.h>

namespace weir::amd {
namespace {

double total(const std::vector<Stretch>& stretches, double Stretch::* count) {
  double sum = 0;
  for (const Stretch& stretch : stretches) sum += stretch.*count;
  return sum;
}

TEST(ThinnedSamples, keep_one_of_every_n_in_order) {
  ThinnedSamples samples;
  for (int i = 0; i < 100'000; ++i) samples.add(i);
  ASSERT_LE(samples.values().size(), ThinnedSamples::kMax);
  ASSERT_GE(samples.values().size(), ThinnedSamples::kMax / 2);
  EXPECT_EQ(samples.count(), 100'000u);
  for (std::size_t i = 0; i < samples.values().size(); ++i)
    ASSERT_EQ(static_cast<std::size_t>(samples.values()[i]) / 32, i) << "one of each 32";
}

TEST(ThinnedSamples, what_repeats_is_not_sampled_in_step) {
  ThinnedSamples samples;
  for (int i = 0; i < 1'000'000; ++i) samples.add(i % 4);
  double sum = 0;
  for (const double value : samples.values()) sum += value;
  EXPECT_NEAR(sum / static_cast<double>(samples.values().size()), 1.5, 0.1);
}

TEST(Stretches, double_as_time_grows_and_lose_nothing) {
  CaseSampler sampler;
  for (int i = 0; i <= 1'000'000; ++i) sampler.launch(std::int64_t{i} * 1000);
  const std::vector<Stretch> stretches = sampler.stretches();
  EXPECT_LE(stretches.size(), Stretches::kMax);
  EXPECT_GE(stretches.size(), Stretches::kMax / 2 - 1);
  // The last one is not over.
  EXPECT_NEAR(total(stretches, &Stretch::launches), 1e6, static_cast<double>(sampler.width_ns()) / 1000 + 1);
  for (const Stretch& stretch : stretches)
    ASSERT_NEAR(stretch.launches, static_cast<double>(sampler.width_ns()) / 1000, 1);
  EXPECT_EQ(sampler.observed_ns(), 1e9);
}

TEST(Stretches, have_pauses_where_they_were) {
  CaseSampler sampler;
  for (int i = 0; i < 1000; ++i) sampler.launch(std::int64_t{i} * 100'000);                 // 100 ms of work
  for (int i = 0; i <= 1000; ++i) sampler.launch(400'000'000 + std::int64_t{i} * 100'000);  // 300 ms later, again
  const std::vector<Stretch> stretches = sampler.stretches();
  EXPECT_NEAR(total(stretches, &Stretch::pause_ns), 300'100'000, 1);
  const auto width = static_cast<double>(sampler.width_ns());
  for (std::size_t i = 0; i < stretches.size(); ++i) {
    const double begin = static_cast<double>(i) * width, end = begin + width;
    if (begin > 100e6 && end < 399e6) {
      ASSERT_EQ(stretches[i].pause_ns, width) << i;
    }
    if (end < 99e6 || begin > 401e6) {
      ASSERT_EQ(stretches[i].pause_ns, 0) << i;
    }
  }
}

TEST(Stretches, told_idle_times_take_the_place_of_gaps) {
  CaseSampler sampler;
  sampler.set_idle_known();
  sampler.launch(0);
  sampler.launch(100'000'000);
  EXPECT_EQ(total(sampler.stretches(), &Stretch::pause_ns), 0);
  sampler.idle(50'000'000, 80'000'000);
  sampler.idle(80'000'000, 80'500'000);  // too short for a pause
  sampler.launch(200'000'000);
  EXPECT_EQ(total(sampler.stretches(), &Stretch::pause_ns), 30'000'000);
}

TEST(CaseSampler, runs_do_not_see_each_other) {
  CaseSampler sampler;
  for (const std::int64_t begin : {std::int64_t{1} << 50, std::int64_t{1000}}) {
    sampler.begin_run();
    for (int i = 0; i <= 100; ++i) sampler.launch(begin + i * std::int64_t{1'000'000});
  }
  EXPECT_EQ(sampler.observed_ns(), 2e8);
  EXPECT_EQ(sampler.gap_ns.count(), 200u);
  for (const double gap : sampler.gap_ns.values()) ASSERT_EQ(gap, 1e6);
  EXPECT_EQ(total(sampler.stretches(), &Stretch::pause_ns), 0);
}

TEST(CaseSampler, bounds_its_memory_whatever_the_times_are) {
  CaseSampler sampler;
  for (const std::int64_t time : {INT64_MIN + 1, INT64_MAX, std::int64_t{0}, INT64_MIN + 2, INT64_MAX - 1}) {
    sampler.launch(time);
    sampler.barrier(time);
    sampler.copy(time, 1e18);
    sampler.idle(time, INT64_MAX);
  }
  EXPECT_LE(sampler.stretches().size(), Stretches::kMax);
  for (int i = 0; i < 1000; ++i) {
    sampler.begin_run();
    sampler.launch(i);
  }
  EXPECT_EQ(sampler.runs_left_out(), 1001 - CaseSampler::kMaxRuns);
}

}  // namespace
}  // namespace weir::amd
