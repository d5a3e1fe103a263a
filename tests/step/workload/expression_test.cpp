#include "step/workload/expression.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace weir {
namespace {

const std::vector<std::string> kNames = {"size", "streams"};
const std::vector<double> kValues = {100, 8};

double value(const std::string& text) { return Expression(text, kNames).value(kValues); }

std::string expression_refusal(const std::string& text) {
  try {
    Expression(text, kNames).whole(kValues);
  } catch (const Error& error) {
    EXPECT_EQ(error.fault, Fault::input);
    return error.what() + (" " + error.hint);
  }
  return "accepted";
}

std::string repeated(const std::string& text, int times) {
  std::string out;
  for (int i = 0; i < times; ++i) out += text;
  return out;
}

TEST(Expression, FollowsTheRulesOfArithmetic) {
  EXPECT_EQ(value("1 + 2 * 3"), 7);
  EXPECT_EQ(value("(1 + 2) * 3"), 9);
  EXPECT_EQ(value("10 - 4 - 3"), 3);
  EXPECT_EQ(value("100 / 10 / 5"), 2);
  EXPECT_EQ(value("-2 * -3"), 6);
  EXPECT_EQ(value("7 / 2"), 3.5);
  EXPECT_EQ(value("1.5e3"), 1500);
  EXPECT_EQ(value("size * streams"), 800);
  EXPECT_EQ(value("min(size, streams, 3)"), 3);
  EXPECT_EQ(value("max(size, streams)"), 100);
  EXPECT_EQ(value("floor(7 / 2) + ceil(7 / 2)"), 7);
}

TEST(Expression, RemaindersAreNeverNegative) {
  EXPECT_EQ(value("13 % 5"), 3);
  EXPECT_EQ(value("-1 % streams"), 7);
  EXPECT_EQ(value("size % streams"), 4);
}

TEST(Expression, ComparisonsAreOneOrZero) {
  EXPECT_EQ(value("size > 99"), 1);
  EXPECT_EQ(value("size <= 99"), 0);
  EXPECT_EQ(value("size == 100"), 1);
  EXPECT_EQ(value("size != 100"), 0);
  EXPECT_EQ(value("(size < 1) + (size >= 100)"), 1);
}

TEST(Expression, ForgivesRoundingWhereWholeNumbersAreNeeded) {
  EXPECT_EQ(Expression("0.1 * 30", {}).whole({}), 3);
  EXPECT_FALSE(Expression("7 / 2", {}).try_whole({}));
  EXPECT_FALSE(Expression("1e300 * 1e300", {}).try_whole({}));
}

TEST(Expression, SaysWhatIsWrong) {
  EXPECT_NE(expression_refusal("sise").find("Did you mean 'size'?"), std::string::npos) << expression_refusal("sise");
  EXPECT_NE(expression_refusal("size / streams").find("12.5"), std::string::npos);
  EXPECT_NE(expression_refusal("1 / 0").find("divides by 0"), std::string::npos);
  EXPECT_NE(expression_refusal("1 % 0").find("above 0"), std::string::npos);
  EXPECT_NE(expression_refusal("").find("empty"), std::string::npos);
  for (const char* bad : {"1 +", "(1", "1)", "min(1)", "2 size", "2size", "size(3)", "1 2", "*", "1e999", "#", "a.b"})
    EXPECT_NE(expression_refusal(bad), "accepted") << bad;
}

TEST(Expression, IsBounded) {
  EXPECT_NE(expression_refusal(std::string(5000, '1')), "accepted");
  EXPECT_NE(expression_refusal(repeated("(", 100) + "1" + repeated(")", 100)), "accepted");
  EXPECT_NE(expression_refusal(repeated("-", 100) + "1"), "accepted");
  EXPECT_NE(expression_refusal(repeated("1+(", 40)), "accepted");
}

TEST(Expression, KnowsWhatItUses) {
  const Expression expression("size + 1", kNames);
  EXPECT_TRUE(expression.uses(0));
  EXPECT_FALSE(expression.uses(1));
}

}  // namespace
}  // namespace weir
