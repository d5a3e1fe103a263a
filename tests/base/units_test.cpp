#include "base/units.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace weir {
namespace {

TEST(Units, DurationsHaveThreeDigits) {
  EXPECT_EQ(format_duration(3.456), "3.46 ns");
  EXPECT_EQ(format_duration(812), "812 ns");
  EXPECT_EQ(format_duration(999.9), "1.00 us");
  EXPECT_EQ(format_duration(4210), "4.21 us");
  EXPECT_EQ(format_duration(13'400'000), "13.4 ms");
  EXPECT_EQ(format_duration(999'999'999), "1.00 s");
  EXPECT_EQ(format_duration(2.5e12), "2500 s");
  EXPECT_EQ(format_duration(-1500), "-1.50 us");
}

TEST(Units, BytesAndQuantities) {
  EXPECT_EQ(format_bytes(512), "512 B");
  EXPECT_EQ(format_bytes(1536), "1.50 KiB");
  EXPECT_EQ(format_bytes(std::uint64_t{3} << 30), "3.00 GiB");
  EXPECT_EQ(format_quantity(812), "812");
  EXPECT_EQ(format_quantity(4.21e6), "4.21 M");
  EXPECT_EQ(format_ratio(1.0341), "1.034x");
}

TEST(Units, FractionsAreWrittenTwoWays) {
  EXPECT_DOUBLE_EQ(parse_fraction("5%"), 0.05);
  EXPECT_DOUBLE_EQ(parse_fraction("0.05"), 0.05);
  for (const char* text : {"", "%", "five", "5%%", "-5%", "inf", "nan", "5 %"})
    EXPECT_THROW(parse_fraction(text), Error) << text;
}

TEST(Units, BareNumbersOfOneOrMoreAreNoFractions) {
  EXPECT_DOUBLE_EQ(parse_fraction("500%"), 5);
  EXPECT_DOUBLE_EQ(parse_fraction("0.999"), 0.999);
  try {
    parse_fraction("5", 1);
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "write 5% (0.05)") << "500% is not allowed";
  }
  for (const auto& [text, message] : std::initializer_list<std::pair<const char*, const char*>>{
           {"1", "write 1% (0.01), or 100% if that is meant"},
           {"5", "write 5% (0.05), or 500% if that is meant"},
           {"2.5", "write 2.5% (0.025), or 250% if that is meant"},
           {"1e2", "write 1e2% (1), or 10000% if that is meant"}}) {
    try {
      parse_fraction(text);
      ADD_FAILURE() << text << " was taken";
    } catch (const Error& error) {
      EXPECT_STREQ(error.what(), message);
    }
  }
}

TEST(Units, CountsAgreeWithTheirNouns) {
  EXPECT_EQ(counted(0, "stream"), "0 streams");
  EXPECT_EQ(counted(std::size_t{1}, "stream"), "1 stream");
  EXPECT_EQ(counted(2.0, "stream"), "2 streams");
}

}  // namespace
}  // namespace weir
