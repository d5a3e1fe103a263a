#include "base/yaml.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "support/growth.h"

namespace weir {
namespace {

TEST(Yaml, many_keys_are_read_in_linear_time) {
  if (std::getenv("WEIR_LONG_TESTS") == nullptr) GTEST_SKIP() << "compares times: set WEIR_LONG_TESTS=1";
  const auto parse = [](int keys) {
    std::string text;
    for (int i = 0; i < keys; ++i) text += fmt::format("k{}: 1\n", i);
    EXPECT_EQ(parse_yaml(text, "x.yaml", {}).items.size(), static_cast<std::size_t>(keys));
  };
  EXPECT_LT(testing::growth(parse, 16'000), 9);
}

TEST(Yaml, a_key_given_twice_is_named_with_its_line) {
  try {
    parse_yaml("a: 1\nb:\n  c: 1\n  c: 2\n", "x.yaml", {});
    FAIL();
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "x.yaml:4: b.c: given twice");
  }
}

}  // namespace
}  // namespace weir
