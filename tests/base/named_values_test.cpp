#include "base/named_values.h"

#include <gtest/gtest.h>

#include <limits>
#include <vector>

namespace weir {
namespace {

enum class Colour { red, green };
const char* to_string(Colour colour) { return colour == Colour::red ? "red" : "green"; }

enum class Shape { round, flat };
const char* name_of(Shape shape) { return shape == Shape::round ? "round" : "flat"; }

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

TEST(NamedValues, AreNamedByTheLastNameOfACall) {
  struct Text {
    std::string reason;
    std::optional<Shape> shape = Shape::flat;
    int length() const { return 4; }
  } text;
  Json parts = {1, 2};
  const Text* const pointer = &text;
  EXPECT_EQ(WEIR_NAMED(text_or_null(text.reason), text.length(), pointer->shape).dump(),
            R"({"reason":null,"length":4,"shape":"flat"})");
  EXPECT_EQ(WEIR_NAMED(name_of(*text.shape)).dump(), R"({"shape":"flat"})");
  EXPECT_EQ(WEIR_NAMED(std::move(parts), number_or_null(static_cast<double>(text.length()))).dump(),
            R"({"parts":[1,2],"length":4.0})");
}

TEST(NamedValues, CanHaveANameOfTheirOwn) {
  const Row row;
  EXPECT_EQ(WEIR_NAMED(row.count, named("most (, of", row.most), row.mean).dump(),
            R"({"count":3,"most (, of":7,"mean":null})");
  EXPECT_EQ(WEIR_NAMED(named("shades", {{"first", row.colour == Colour::red}, {"count", 2}}), row.all).dump(),
            R"({"shades":{"first":false,"count":2},"all":[1,2]})");
}

TEST(NamedValues, ListsWhatIsMadeOfEachElement) {
  EXPECT_EQ(json_list(std::vector{1, 2}, [](int each) { return Json(10 * each); }).dump(), "[10,20]");
  EXPECT_EQ(json_list(std::vector<int>{}, [](int each) { return Json(each); }).dump(), "[]");
}

}  // namespace
}  // namespace weir
