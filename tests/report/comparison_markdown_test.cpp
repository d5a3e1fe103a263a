// A comparison as a comment on a pull request: order, folds, GitHub's limit, and names that would like to be markup.
#include <gtest/gtest.h>

#include "report/text/comparison.h"
#include "support/comparisons.h"
#include "support/text.h"

namespace weir {
namespace {

using testing::comparison_of;
using testing::pair_with;

TEST(ComparisonMarkdown, the_worst_is_on_top) {
  const std::string text =
      comparison_markdown(comparison_of({pair_with("a", Verdict::same, 1), pair_with("b", Verdict::ambiguous, 1.1),
                                         pair_with("c", Verdict::slower, 1.5), testing::failed_pair("d")}));
  EXPECT_LT(text.find("| d | - |"), text.find("| c | latency"));
  EXPECT_LT(text.find("| c | latency"), text.find("| b | latency"));
  EXPECT_LT(text.find("| b | latency"), text.find("| a | latency"));
  EXPECT_TRUE(has(text, "**failed**")) << text;
  EXPECT_FALSE(has(text, "<details>")) << "four rows need no fold";
}

TEST(ComparisonMarkdown, what_is_the_same_is_folded_where_it_is_much) {
  std::vector<PairComparison> pairs(11, pair_with("a", Verdict::same, 1));
  pairs.push_back(pair_with("b", Verdict::slower, 1.5));
  const std::string text = comparison_markdown(comparison_of(pairs));
  const std::size_t fold = text.find("<details><summary>11 the same</summary>\n\n| run");
  ASSERT_NE(fold, std::string::npos) << text;
  EXPECT_LT(text.find("| b | latency"), fold);
  EXPECT_GT(text.find("| a | latency"), fold);
  EXPECT_GT(text.find("\n</details>\n"), text.rfind("| a | latency"));
}

TEST(ComparisonMarkdown, it_fits_into_a_comment_and_says_what_does_not) {
  std::vector<PairComparison> pairs;
  for (int i = 0; i < 5'000; ++i) {
    pairs.push_back(pair_with("run " + std::to_string(i), Verdict::same, 1));
    pairs.back().notes = {"a note about it"};
  }
  pairs.push_back(pair_with("the slow one", Verdict::slower, 1.5));
  Comparison comparison = comparison_of(pairs);
  comparison.tests.push_back(comparison.tests[0]);
  const std::string text = comparison_markdown(comparison);
  EXPECT_LE(text.size(), 65'536U);
  EXPECT_GT(text.size(), 50'000U) << "the room is used";
  EXPECT_TRUE(has(text, "the slow one"));
  EXPECT_TRUE(has(text, "**Cut:** "));
  std::size_t open = 0, closed = 0;
  for (std::size_t at = text.find("<details>"); at != std::string::npos; at = text.find("<details>", at + 1)) ++open;
  for (std::size_t at = text.find("</details>"); at != std::string::npos; at = text.find("</details>", at + 1))
    ++closed;
  EXPECT_EQ(open, closed);
  EXPECT_TRUE(has(comparison_markdown(comparison, 10'000'000), "run 4999"));
  EXPECT_FALSE(has(comparison_markdown(comparison, 10'000'000), "**Cut:**"));
}

TEST(ComparisonMarkdown, names_are_neither_markup_nor_mentions_nor_links) {
  const std::string name =
      "@org/team #12 GH-7 https://evil www.evil.com ![x](y) <b> `a` |_b_| hetero_kernels $a$ &lt;\r\nx";
  const std::string text = comparison_markdown(comparison_of({pair_with(name, Verdict::slower, 1.5)}));
  for (const char* part :
       {"@<!-- -->org/team", "#<!-- -->12", "GH-<!-- -->7", "https:<!-- -->//evil", "www<!-- -->.evil.com",
        "!\\[x\\](y)", "\\<b>", "\\`a\\`", "\\|\\_b\\_\\|", "hetero_kernels", "\\$a\\$", "&amp;lt;  x |"})
    EXPECT_TRUE(has(text, part)) << part << "\n" << text;
}

TEST(ComparisonMarkdown, a_huge_name_does_not_crowd_others_out) {
  std::vector<PairComparison> pairs(3, pair_with(std::string(60'000, 'x'), Verdict::slower, 1.5));
  pairs.push_back(pair_with("short", Verdict::slower, 1.5));
  const std::string text = comparison_markdown(comparison_of(pairs));
  EXPECT_TRUE(has(text, "| short |"));
  EXPECT_FALSE(has(text, "**Cut:**"));
}

TEST(ComparisonText, terminals_are_not_moved_by_names) {
  const std::string text =
      comparison_text(comparison_of({pair_with("\x1b[2Ja\xc2\x9b"
                                               "31m",
                                               Verdict::slower, 1.5)}));
  EXPECT_EQ(text.find('\x1b'), std::string::npos);
  EXPECT_EQ(text.find("\xc2\x9b"), std::string::npos);
}

}  // namespace
}  // namespace weir
