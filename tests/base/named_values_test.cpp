#include "base/named_values.h"

#include <gtest/gtest.h>

#include <limits>
#include <vector>

namespace weir {
namespace {

enum class Colour { red, green };
const char* to_string(Colour colour) { return colour == Colour::red ? "red" : "green"; }

struct Row {
  int count = 3;
  std::optional<double> mean;
  std::optional<int> most = 7;
  std::vector<int> all = {1, 2};
  Colour colour = Colour::green;
};

TEST(NamedValues, AreMembersUnderTheirOwnNames) {
  const Row row;
  const Row* const pointer = &row;
  const double plain_ns = 1.5;
  EXPECT_EQ(WEIR_NAMED(row.count, pointer->mean, row.most, row.all, row.colour, plain_ns).dump(),
            R"({"count":3,"mean":null,"most":7,"all":[1,2],"colour":"green","plain_ns":1.5})");
}

TEST(NamedValues, AreNullWhereANumberIsNone) {
  Row row;
  row.mean = std::numeric_limits<double>::quiet_NaN();
  row.most.reset();
  EXPECT_EQ(WEIR_NAMED(row.mean, row.most).dump(), R"({"mean":null,"most":null})");
}

TEST(NamedValues, ListsWhatIsMadeOfEachElement) {
  EXPECT_EQ(json_list(std::vector{1, 2}, [](int each) { return Json(10 * each); }).dump(), "[10,20]");
  EXPECT_EQ(json_list(std::vector<int>{}, [](int each) { return Json(each); }).dump(), "[]");
}

}  // namespace
}  // namespace weir
