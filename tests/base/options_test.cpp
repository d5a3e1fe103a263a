#include "base/options.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace weir {
namespace {

std::vector<int> counts(const std::string& text) { return parse_counts("--streams", text, 1, 128); }

TEST(Counts, TakesListsRangesAndStrides) {
  EXPECT_EQ(counts("8"), std::vector<int>({8}));
  EXPECT_EQ(counts("1,2,4"), std::vector<int>({1, 2, 4}));
  EXPECT_EQ(counts("1..4"), std::vector<int>({1, 2, 3, 4}));
  EXPECT_EQ(counts("1..64:x2"), std::vector<int>({1, 2, 4, 8, 16, 32, 64}));
  EXPECT_EQ(counts("16..64:+16"), std::vector<int>({16, 32, 48, 64}));
  EXPECT_EQ(counts("8, 1..4:x2,8"), std::vector<int>({1, 2, 4, 8}));
}

TEST(Counts, RejectsWhatIsNoCount) {
  for (const char* text : {"",      "0",       "129",     "-1",      "eight",   "1,,2", "1,",  "4..1",
                           "1..8:", "1..8:x1", "1..8:x0", "1..8:2",  "1..8:+0", "1.5",  "1 2", "99999999999999999999",
                           "..",    "1..",     "..4",     "1..4..8", "0x8"}) {
    EXPECT_THROW(counts(text), Error) << text;
  }
}

TEST(Counts, NamesTheFlagAndTheWord) {
  try {
    counts("1,many");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.fault, Fault::input);
    EXPECT_STREQ(error.what(), "--streams 1,many: 'many' is not a whole number");
    EXPECT_FALSE(error.hint.empty());
  }
}

TEST(Assignment, SplitsAtTheFirstEquals) {
  EXPECT_EQ(parse_assignment("--param", "a=b=c"), (std::pair<std::string, std::string>("a", "b=c")));
  for (const char* text : {"", "a", "=b", "a="}) EXPECT_THROW(parse_assignment("--param", text), Error) << text;
}

TEST(Nearest, FindsTyposAndBeginnings) {
  const std::vector<std::string> names = {"hetero_kernels", "tiny_kernel_stress", "large_gemm_only"};
  EXPECT_EQ(nearest("hetero_kernel", names), "hetero_kernels");
  EXPECT_EQ(nearest("hetero", names), "hetero_kernels");
  EXPECT_EQ(nearest("tiny_kernal_stres", names), "tiny_kernel_stress");
  EXPECT_EQ(nearest("zzz", names), std::nullopt);
  EXPECT_NE(suggestion("zzz", names).find("large_gemm_only"), std::string::npos);
}

TEST(Integer, TakesWholeNumbersOnly) {
  EXPECT_EQ(parse_integer("42"), 42);
  EXPECT_EQ(parse_integer("-7"), -7);
  for (const char* text : {"", " 1", "1 ", "+1", "1e3", "9223372036854775808"})
    EXPECT_EQ(parse_integer(text), std::nullopt) << text;
}

}  // namespace
}  // namespace weir
