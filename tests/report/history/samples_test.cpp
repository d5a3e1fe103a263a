#include "report/history/samples.h"

#include <gtest/gtest.h>

#include <cmath>

#include "measure/bootstrap.h"

namespace weir::history {
namespace {

void expect_kept(const std::vector<double>& samples) {
  const auto back = unpack_samples(pack_samples(samples));
  ASSERT_TRUE(back.has_value());
  ASSERT_EQ(back->size(), samples.size());
  for (std::size_t i = 0; i < samples.size(); ++i) {
    EXPECT_EQ((*back)[i], samples[i]);
    EXPECT_EQ(std::signbit((*back)[i]), std::signbit(samples[i]));
  }
}

TEST(Samples, every_value_comes_back_exactly) {
  expect_kept({});
  expect_kept({0});
  expect_kept({-0.0, 1});
  expect_kept({1, 2, 3, -5, 9007199254740991, -9007199254740991, 0});
  expect_kept({9007199254740993.0, 1e300, 5e-324, 0.1});
  SplitMix random(1);
  for (int round = 0; round < 100; ++round) {
    std::vector<double> samples;
    for (std::uint32_t i = random.below(50); i > 0; --i)
      samples.push_back(round % 2 == 0 ? std::floor(random.fraction() * 1e12) : random.fraction() * 1e-3);
    expect_kept(samples);
  }
}

TEST(Samples, whole_numbers_that_hardly_differ_take_about_two_bytes) {
  std::vector<double> samples;
  for (int i = 0; i < 1000; ++i) samples.push_back(10'910'144 + i % 7 * 100);
  EXPECT_LT(pack_samples(samples).size(), 2'100U);
}

TEST(Samples, other_bytes_are_refused_and_never_read_past_their_end) {
  EXPECT_FALSE(unpack_samples("").has_value());
  EXPECT_FALSE(unpack_samples("x123").has_value());
  EXPECT_FALSE(unpack_samples("f1234567").has_value());
  EXPECT_FALSE(unpack_samples("i\x80").has_value());
  EXPECT_FALSE(unpack_samples("i" + std::string(20, '\xff')).has_value());
  std::string not_a_number = "f";
  not_a_number += std::string(6, '\0') + "\xf8\x7f";
  EXPECT_FALSE(unpack_samples(not_a_number).has_value());
}

}  // namespace
}  // namespace weir::history
