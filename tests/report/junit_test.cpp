// JUnit files: well-formed whatever names hold, and each finding as CI systems understand it.
#include <gtest/gtest.h>

#include <stdexcept>

#include "base/plain_text.h"
#include "report/figures/judgement.h"
#include "support/comparisons.h"
#include "support/text.h"

namespace weir {
namespace {

using testing::comparison_of;
using testing::pair_with;

// Throws what is not well-formed XML of the kind that we write: tags closed in order, attributes quoted, known entities
// only, no character that XML 1.0 does not have.
void check_xml(const std::string& text) {
  std::vector<std::string> open;
  const auto check_text = [](const std::string& part) {
    for (std::size_t i = 0; i < part.size();) {
      const std::size_t length = character_bytes(part, i);
      if (length == 0) throw std::runtime_error("no UTF-8");
      const auto byte = static_cast<unsigned char>(part[i]);
      if (length == 1 && byte < 0x20 && byte != '\n' && byte != '\t') throw std::runtime_error("a control character");
      if (part.compare(i, 3, "\xef\xbf\xbf") == 0) throw std::runtime_error("U+FFFF");
      if (part[i] == '<' || part[i] == '>') throw std::runtime_error("a bracket");
      if (part[i] == '&') {
        const std::string entity = part.substr(i, part.find(';', i) + 1 - i);
        if (entity != "&amp;" && entity != "&lt;" && entity != "&gt;" && entity != "&quot;" && entity != "&#10;" &&
            entity != "&#9;")
          throw std::runtime_error("an entity: " + entity);
      }
      i += length;
    }
  };
  const std::string begin = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n";
  if (!text.starts_with(begin)) throw std::runtime_error("no declaration");
  for (std::size_t i = begin.size(); i < text.size();) {
    const std::size_t tag = text.find('<', i);
    check_text(text.substr(i, tag == std::string::npos ? tag : tag - i));
    if (tag == std::string::npos) break;
    const std::size_t end = text.find('>', tag);
    if (end == std::string::npos) throw std::runtime_error("a tag without an end");
    std::string inside = text.substr(tag + 1, end - tag - 1);
    i = end + 1;
    if (inside[0] == '/') {
      if (open.empty() || open.back() != inside.substr(1)) throw std::runtime_error("closes " + inside);
      open.pop_back();
      continue;
    }
    const bool is_empty = inside.ends_with('/');
    if (is_empty) inside.pop_back();
    std::size_t at = inside.find(' ');
    if (!is_empty) open.push_back(inside.substr(0, at));
    while (at != std::string::npos && at + 1 < inside.size()) {
      const std::size_t quote = inside.find("=\"", at), close = inside.find('"', quote + 2);
      if (quote == std::string::npos || close == std::string::npos) throw std::runtime_error("an attribute: " + inside);
      check_text(inside.substr(quote + 2, close - quote - 2));
      at = close + 1 < inside.size() ? close + 1 : std::string::npos;
    }
  }
  if (!open.empty()) throw std::runtime_error("open: " + open.back());
}

Comparison one_of_each() {
  Comparison comparison = comparison_of({pair_with("a", Verdict::same, 1), pair_with("b", Verdict::slower, 1.2),
                                         pair_with("c", Verdict::ambiguous, 1.1), pair_with("d", Verdict::faster, 0.5),
                                         testing::failed_pair("e")});
  comparison.tests[0].test_only = {{"f", "b.json", "nothing near"}};
  return comparison;
}

TEST(JUnit, the_checker_finds_what_is_wrong) {
  const std::string begin = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n";
  EXPECT_NO_THROW(check_xml(begin + "<a b=\"c\" d=\"&amp;\"><e/>x</a>\n"));
  for (const char* bad : {"<a>", "<a></b>", "<a b=c></a>", "<a>&x;</a>", "<a>\x01</a>", "<a>\xff</a>", "<a b=\"c></a>"})
    EXPECT_ANY_THROW(check_xml(begin + bad)) << bad;
}

TEST(JUnit, each_finding_is_what_ci_systems_call_it) {
  const std::string text = junit_xml(judge(one_of_each(), "weir compare", false));
  EXPECT_NO_THROW(check_xml(text)) << text;
  EXPECT_EQ(count(text, "tests=\"6\" failures=\"1\" errors=\"1\" skipped=\"2\""), 2U) << text;
  EXPECT_EQ(count(text, "<testcase "), 6U);
  EXPECT_EQ(count(text, "<failure type=\"slower\" message=\"latency 1.00 ms -&gt; 1.20 ms, 1.200x"), 1U) << text;
  EXPECT_EQ(count(text, "<error type=\"failed\" message=\"test: the run failed: out of memory\""), 1U) << text;
  EXPECT_EQ(count(text, "<skipped message=\"lone: only in the test: nothing near\"/>"), 1U) << text;
}

TEST(JUnit, strict_makes_ambiguous_a_failure) {
  const std::string text = junit_xml(judge(one_of_each(), "weir compare", true));
  EXPECT_EQ(count(text, "tests=\"6\" failures=\"2\" errors=\"1\" skipped=\"1\""), 2U) << text;
  EXPECT_EQ(count(text, "<failure type=\"ambiguous\""), 1U) << text;
}

TEST(JUnit, names_stay_text) {
  const std::string hostile = "]]></testcase>\"<!--&\n\x1b[31m\x02\xff\xef\xbf\xbf\xc2\x9b";
  Comparison comparison = comparison_of({pair_with(hostile, Verdict::slower, 2), testing::failed_pair(hostile)});
  comparison.tests[0].pairs[1].failure = hostile;
  comparison.tests[0].name = hostile;
  const std::string text = junit_xml(judge(comparison, "weir compare", false));
  EXPECT_NO_THROW(check_xml(text)) << text;
  EXPECT_EQ(count(text, "]]&gt;&lt;/testcase&gt;&quot;&lt;!--&amp;&#10;?[31m????\""), 2U) << text;
}

}  // namespace
}  // namespace weir
