// Links between pages: what they name exists, with the heading that they name, and the index lists every page. Knows
// Markdown as GitHub renders it; nothing of the network.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <regex>
#include <set>
#include <sstream>

#include "docs/pages.h"

namespace weir::testing {
namespace {

namespace fs = std::filesystem;

// "## weir queues: map & cost" -> weir-queues-map--cost
std::string anchor_of(std::string heading) {
  static const std::regex kLink(R"(\[([^\]]*)\]\([^)]*\))");
  heading = std::regex_replace(heading, kLink, "$1");
  std::string anchor;
  for (const char c : heading) {
    const auto byte = static_cast<unsigned char>(c);
    if (std::isalnum(byte) != 0 || c == '_' || c == '-' || byte >= 0x80) {
      anchor += static_cast<char>(std::tolower(byte));
    } else if (c == ' ') {
      anchor += '-';
    }
  }
  return anchor;
}

struct Outline {
  std::set<std::string> anchors;
  std::vector<std::pair<int, std::string>> links;  // line, target
};

Outline outline_of(const std::string& markdown) {
  static const std::regex kTarget(R"(\]\(([^)\s]+)\))"), kCode("`[^`]*`"), kHeading("^#+ +(.*)$");
  Outline outline;
  std::map<std::string, int> seen;
  std::istringstream lines(markdown);
  bool is_code = false;
  std::string text;
  std::vector<std::size_t> begins;
  for (std::string line; std::getline(lines, line);) {
    begins.push_back(text.size());
    if (line.find_first_not_of(' ') != std::string::npos &&
        line.substr(line.find_first_not_of(' ')).starts_with("```")) {
      is_code = !is_code;
      text += '\n';
      continue;
    }
    std::smatch match;
    if (!is_code && std::regex_match(line, match, kHeading)) {
      const std::string anchor = anchor_of(match[1]);
      const int before = seen[anchor]++;
      outline.anchors.insert(before == 0 ? anchor : fmt::format("{}-{}", anchor, before));
    }
    if (!is_code) text += std::regex_replace(line, kCode, "");
    text += '\n';
  }
  // A link's text may run over a line's end, its target does not.
  for (std::sregex_iterator link(text.begin(), text.end(), kTarget), end; link != end; ++link) {
    const auto at = std::upper_bound(begins.begin(), begins.end(), static_cast<std::size_t>(link->position()));
    outline.links.emplace_back(static_cast<int>(at - begins.begin()), (*link)[1]);
  }
  return outline;
}

bool is_elsewhere(const std::string& target) { return target.find("://") != std::string::npos; }

class Links : public ::testing::TestWithParam<std::string> {};

TEST_P(Links, lead_to_files_and_headings_that_exist) {
  const std::string& page = GetParam();
  const fs::path root = WEIR_SOURCE_DIR;
  for (const auto& [line, target] : outline_of(page_text(page)).links) {
    if (is_elsewhere(target)) continue;
    const std::size_t hash = target.find('#');
    const std::string file = target.substr(0, hash);
    const fs::path named = file.empty() ? fs::path(page) : (fs::path(page).parent_path() / file).lexically_normal();
    if (!fs::exists(root / named)) {
      ADD_FAILURE() << page << ":" << line << ": " << target << ": there is no " << named.string();
      continue;
    }
    if (hash == std::string::npos || named.extension() != ".md") continue;
    const std::string anchor = target.substr(hash + 1);
    const std::set<std::string> anchors = outline_of(page_text(named.string())).anchors;
    EXPECT_TRUE(anchors.contains(anchor))
        << page << ":" << line << ": " << named.string() << " has no heading #" << anchor;
  }
}

INSTANTIATE_TEST_SUITE_P(Pages, Links, ::testing::ValuesIn(user_pages()), page_test_name);

TEST(DocsIndex, lists_every_page_once) {
  std::map<std::string, int> listed;
  for (const auto& [line, target] : outline_of(page_text("docs/README.md")).links)
    if (target.ends_with(".md")) ++listed["docs/" + target];
  for (const std::string& page : user_pages()) {
    if (!page.starts_with("docs/") || page == "docs/README.md") continue;
    EXPECT_GE(listed[page], 1) << page << " is not in docs/README.md: one line in one of its tables";
  }
}

TEST(DocsIndex, anchors_are_those_of_github) {
  EXPECT_EQ(anchor_of("What it *costs*: a b_c"), "what-it-costs-a-b_c");
  EXPECT_EQ(anchor_of("`weir compare` & [more](x.md)"), "weir-compare--more");
  const Outline outline =
      outline_of("# A\n## B\n```text\n# C\n[no](no.md)\n```\n## B\n`[no](no.md)` [yes\nhe](yes.md#b)\n");
  EXPECT_EQ(outline.anchors, (std::set<std::string>{"a", "b", "b-1"}));
  ASSERT_EQ(outline.links.size(), 1u);
  EXPECT_EQ(outline.links[0], std::make_pair(9, std::string("yes.md#b")));
}

}  // namespace
}  // namespace weir::testing
