// What is varied: variables with values, combinations of them, and commands split into words.
#include "lab/try/design.h"

#include <gtest/gtest.h>

#include <map>
#include <set>

#include "base/error.h"

namespace weir::trials {
namespace {

using Words = std::vector<std::string>;

TEST(Design, a_variable_has_values_and_may_be_unset) {
  const Factor plain = parse_variable_axis("GPU_MAX_HW_QUEUES=2,4,8");
  EXPECT_EQ(plain.name, "GPU_MAX_HW_QUEUES");
  EXPECT_EQ(plain.values, (std::vector<std::optional<std::string>>{"2", "4", "8"}));
  EXPECT_EQ(parse_variable_axis("A=,1").values, (std::vector<std::optional<std::string>>{std::nullopt, "1"}));
  EXPECT_EQ(parse_variable_axis(R"(A=x\,y,a=b)").values, (std::vector<std::optional<std::string>>{"x,y", "a=b"}));
  EXPECT_EQ(parse_variable_axis("A=").values, (std::vector<std::optional<std::string>>{std::nullopt}));
  EXPECT_EQ(words_for(parse_variable_axis("A=,1"), 0), "A unset");
}

TEST(Design, what_is_not_a_variable_is_rejected) {
  for (const char* text : {"", "A", "=1", "1A=1", "A B=1", "A=1,1", "A=,,1"})
    EXPECT_THROW(parse_variable_axis(text), Error) << text;
}

TEST(Design, words_are_split_as_a_shell_does) {
  EXPECT_EQ(split_words("cmd a  b\tc"), (Words{"cmd", "a", "b", "c"}));
  EXPECT_EQ(split_words("  cmd 'a  b' \"c d\" "), (Words{"cmd", "a  b", "c d"}));
  EXPECT_EQ(split_words(R"(cmd a\ b '\' "\"x\" \n" '')"), (Words{"cmd", "a b", "\\", "\"x\" \\n", ""}));
  EXPECT_EQ(split_words("cmd --x='1 2'3 '$HOME|&'"), (Words{"cmd", "--x=1 23", "$HOME|&"}));
}

TEST(Design, what_only_a_shell_could_do_is_rejected) {
  for (const char* text :
       {"", "  ", "a | b", "a > b", "a; b", "a &", "echo $HOME", "echo \"$HOME\"", "ls *", "a 'b", "a `b`"})
    EXPECT_THROW(split_words(text), Error) << text;
}

TEST(Design, all_combinations_are_settings_and_the_first_is_the_baseline) {
  const Design design = design_of({parse_variable_axis("A=1,2,3"), parse_variable_axis("B=,x")}, 1);
  EXPECT_EQ(design.settings.size(), 6U);
  EXPECT_EQ(std::set(design.settings.begin(), design.settings.end()).size(), 6U);
  EXPECT_EQ(design.settings[0], (Setting{0, 0}));
  EXPECT_EQ(words_for(design, design.settings[5]), "A=3 B=x");
  EXPECT_FALSE(design.is_sample());
  EXPECT_EQ(design_of({}, 1).settings.size(), 1U);
}

TEST(Design, of_too_many_combinations_a_balanced_sample_is_taken) {
  std::vector<Factor> factors;
  for (int i = 0; i < 20; ++i) factors.push_back(parse_variable_axis("V" + std::to_string(i) + "=a,b,c,d"));
  const Design design = design_of(factors, 3);
  EXPECT_TRUE(design.is_sample());
  EXPECT_EQ(design.settings.size(), kSampleSettings);
  EXPECT_EQ(design.settings[0], Setting(20, 0));
  for (std::size_t factor = 0; factor < factors.size(); ++factor) {
    std::map<std::uint32_t, int> counts;
    for (const Setting& setting : design.settings) ++counts[setting[factor]];
    for (const auto& [value, count] : counts) EXPECT_EQ(count, 16) << factor << " " << value;
  }
  EXPECT_EQ(design_of(factors, 3).settings, design.settings) << "it follows from the seed";
}

}  // namespace
}  // namespace weir::trials
