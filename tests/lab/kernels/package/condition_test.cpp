#include "lab/kernels/package/condition.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/error.h"
#include "support/text.h"

namespace weir::package {
namespace {

Facts some_facts() {
  return {{"backend", std::string("cuda")},
          {"precision", std::string("fp16")},
          {"cuda.is_present", true},
          {"hip.is_present", false},
          {"cpu.cores", 8.0},
          {"cpu.arch", std::string("aarch64")},
          {"os", std::string("linux")},
          {"memory_gib", 15.5}};
}
bool holds(const std::string& text) { return Condition(text).holds(some_facts()); }

struct ConditionRefusal {
  std::string what, hint;
};
ConditionRefusal condition_refusal(const std::string& text) {
  try {
    Condition(text).holds(some_facts());
  } catch (const Error& error) {
    EXPECT_EQ(error.fault, Fault::input);
    return {error.what(), error.hint};
  }
  ADD_FAILURE() << text << " was accepted";
  return {};
}

TEST(Condition, words_are_looked_up) {
  EXPECT_TRUE(holds("cuda.is_present"));
  EXPECT_FALSE(holds("hip.is_present"));
  EXPECT_TRUE(holds("not hip.is_present"));
  EXPECT_TRUE(holds("true"));
  EXPECT_FALSE(holds("false"));
}

TEST(Condition, numbers_are_compared) {
  EXPECT_TRUE(holds("cpu.cores == 8"));
  EXPECT_FALSE(holds("cpu.cores != 8"));
  EXPECT_FALSE(holds("cpu.cores < 8"));
  EXPECT_TRUE(holds("cpu.cores <= 8"));
  EXPECT_FALSE(holds("cpu.cores > 8.0"));
  EXPECT_TRUE(holds("8e0 >= cpu.cores"));
  EXPECT_TRUE(holds("memory_gib > -1.5e1"));
}

TEST(Condition, texts_are_compared) {
  EXPECT_TRUE(holds("backend == 'cuda'"));
  EXPECT_TRUE(holds("cpu.arch != \"x86_64\""));
  EXPECT_FALSE(holds("'cuda' != backend"));
  EXPECT_TRUE(holds("os == 'linux' and cuda.is_present == true"));
}

TEST(Condition, and_binds_tighter_than_or_and_not_tighter_than_both) {
  EXPECT_TRUE(holds("true or false and false"));
  EXPECT_FALSE(holds("(true or false) and false"));
  EXPECT_FALSE(holds("not true or false"));
  EXPECT_TRUE(holds("not false and true"));
  EXPECT_FALSE(holds("not (false or true)"));
  EXPECT_TRUE(holds("not not true"));
}

TEST(Condition, not_takes_the_whole_comparison) {
  EXPECT_TRUE(holds("not cpu.cores == 4"));
  EXPECT_FALSE(holds("not cpu.cores == 8"));
}

TEST(Condition, a_fact_that_does_not_matter_may_be_missing) {
  const Condition condition("cuda.is_present and device.memory_gib < 8");
  EXPECT_FALSE(condition.holds({{"cuda.is_present", false}}));
  EXPECT_TRUE(condition.holds({{"cuda.is_present", true}, {"device.memory_gib", 4.0}}));
  EXPECT_TRUE(Condition("cuda.is_present or device.has_fp16").holds({{"cuda.is_present", true}}));
}

TEST(Condition, a_fact_that_is_needed_and_missing_is_refused) {
  EXPECT_TRUE(has(condition_refusal("device.memory_gib < 8").what, "device.memory_gib is not known here"));
}

TEST(Condition, a_fact_of_another_kind_than_its_word_is_refused) {
  EXPECT_THROW(Condition("cpu.cores < 8").holds({{"cpu.cores", std::string("eight")}}), Error);
  EXPECT_THROW(Condition("cuda.is_present").holds({{"cuda.is_present", 1.0}}), Error);
}

TEST(Condition, the_usual_questions_of_python_are_understood) {
  const auto asks = [](const char* text, bool cuda, bool hip) {
    return Condition(text).holds({{"cuda.is_present", cuda}, {"hip.is_present", hip}, {"device.has_bf16", cuda}});
  };
  for (const char* question : {"torch.cuda.is_available()", "cupy.is_available()", "cupy.cuda.is_available()"}) {
    EXPECT_TRUE(asks(question, true, false)) << question;
    EXPECT_TRUE(asks(question, false, true)) << question;
    EXPECT_FALSE(asks(question, false, false)) << question;
  }
  EXPECT_TRUE(asks("not torch.cuda.is_available() or True == False", false, false));
  EXPECT_TRUE(asks("torch.version.hip is None", true, false));
  EXPECT_TRUE(asks("torch.version.hip is not None and torch.version.cuda is None", false, true));
  EXPECT_TRUE(asks("torch.version.cuda", true, false));
  EXPECT_TRUE(asks("torch.cuda.is_bf16_supported()", true, false));
  EXPECT_TRUE(has(condition_refusal("torch.version.hip is 3").what, "None is expected"));
}

TEST(Condition, other_calls_of_python_are_refused_with_our_word) {
  const ConditionRefusal found = condition_refusal("not torch.cuda.device_count()");
  EXPECT_TRUE(has(found.what, "column 5")) << found.what;
  EXPECT_TRUE(has(found.what, "functions cannot be called here")) << found.what;
  EXPECT_TRUE(has(found.hint, "'cuda.is_present'")) << found.hint;
  EXPECT_TRUE(has(condition_refusal("torch.hip.x").hint, "'hip.is_present'"));
  EXPECT_TRUE(has(condition_refusal("cuda.is_present()").hint, "without parentheses"));
  EXPECT_TRUE(has(condition_refusal("__import__('os').system('x')").what, "functions cannot be called"));
}

TEST(Condition, unknown_words_are_refused_with_a_suggestion) {
  EXPECT_TRUE(has(condition_refusal("cpu.core < 4").hint, "Did you mean 'cpu.cores'?"));
  EXPECT_TRUE(has(condition_refusal("backend == cuda").hint, "Texts need quotes"));
}

TEST(Condition, kinds_that_do_not_compare_are_refused_when_read) {
  EXPECT_TRUE(has(condition_refusal("false and cpu.cores == 'eight'").what, "a number is compared with a text"));
  EXPECT_TRUE(has(condition_refusal("false and os < 'z'").what, "'<' is for numbers"));
  EXPECT_TRUE(has(condition_refusal("cuda.is_present == 1").what, "true or false is compared with a number"));
  EXPECT_TRUE(has(condition_refusal("cpu.cores").what, "neither true nor false"));
  EXPECT_TRUE(has(condition_refusal("true and 1").what, "column 10"));
  EXPECT_TRUE(has(condition_refusal("not 'a'").what, "neither true nor false"));
  EXPECT_TRUE(has(condition_refusal("1 < 2 < 3").what, "do not chain"));
}

TEST(Condition, a_text_that_a_word_never_is_is_refused) {
  const ConditionRefusal found = condition_refusal("backend == 'gpu'");
  EXPECT_TRUE(has(found.what, "backend is never 'gpu'")) << found.what;
  EXPECT_TRUE(has(found.hint, "cpu, cuda, hip, opencl")) << found.hint;
  EXPECT_TRUE(has(condition_refusal("'fp8' == precision").what, "precision is never 'fp8'"));
}

TEST(Condition, signs_of_other_languages_are_refused_with_ours) {
  EXPECT_EQ(condition_refusal("true && false").hint, "Write 'and'.");
  EXPECT_EQ(condition_refusal("true || false").hint, "Write 'or'.");
  EXPECT_EQ(condition_refusal("!true").hint, "Write 'not'.");
  EXPECT_EQ(condition_refusal("cpu.cores = 8").hint, "Write '=='.");
}

TEST(Condition, what_cannot_be_read_is_refused_with_its_column) {
  EXPECT_TRUE(has(condition_refusal("").what, "column 1 of \"\": it is empty"));
  EXPECT_TRUE(has(condition_refusal("true and").what, "column 9"));
  EXPECT_TRUE(has(condition_refusal("(true").what, "column 1 of \"(true\": this ( is never closed"));
  EXPECT_TRUE(has(condition_refusal("true)").what, "column 5"));
  EXPECT_TRUE(has(condition_refusal("os == 'linux").what, "column 7"));
  EXPECT_TRUE(has(condition_refusal("cpu.cores < 4x").what, "'x' after a number"));
  EXPECT_TRUE(has(condition_refusal("cpu.cores < 1e999").what, "too large"));
  EXPECT_TRUE(has(condition_refusal("cpu.cores < -inf").what, "not expected"));
  EXPECT_TRUE(has(condition_refusal("true true").what, "column 6"));
}

TEST(Condition, depth_and_length_are_bounded) {
  EXPECT_TRUE(has(condition_refusal(std::string(100, '(') + "true" + std::string(100, ')')).what, "nested"));
  std::string nots;
  for (int i = 0; i < 90; ++i) nots += "not ";
  EXPECT_TRUE(has(condition_refusal(nots + "true").what, "nested"));
  EXPECT_TRUE(has(condition_refusal(std::string(401, ' ') + "true").what, "a condition of 405 characters"));
  EXPECT_TRUE(holds(std::string(30, '(') + "true" + std::string(30, ')')));
}

TEST(Condition, messages_carry_no_control_characters) {
  EXPECT_FALSE(has(condition_refusal("true \x1b[2J").what, "\x1b"));
  EXPECT_FALSE(has(condition_refusal("os == '\x1b[2J").what, "\x1b"));
}

TEST(Condition, fact_words_are_sorted_and_each_has_a_meaning) {
  const auto words = fact_words();
  ASSERT_FALSE(words.empty());
  EXPECT_TRUE(std::is_sorted(words.begin(), words.end(), [](const auto& a, const auto& b) { return a.name < b.name; }));
  for (const FactWord& word : words) {
    EXPECT_FALSE(word.meaning.empty()) << word.name;
    EXPECT_NO_THROW(Condition(word.kind == FactKind::truth    ? word.name
                              : word.kind == FactKind::number ? word.name + " > 1"
                                                              : word.name + " == " + word.name));
  }
}

}  // namespace
}  // namespace weir::package
