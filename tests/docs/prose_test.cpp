// Commands that prose names, as `weir queues cost --verify`: the program has them, and they have those flags. They are
// often cut short, so they are not run.
#include <gtest/gtest.h>

#include <algorithm>
#include <regex>
#include <sstream>

#include "docs/pages.h"
#include "docs/stage.h"

namespace weir::testing {
namespace {

struct Mention {
  int line = 0;
  std::string text;
};

// `weir run W \n--ranks 2` may run over a line's end.
std::vector<Mention> mentions_in(const std::string& markdown) {
  static const std::regex kSpan("`(weir\\s[^`]+)`"), kSpace("\\s+"), kRest(R"(( -- | \.\.\.|&&|;|\|(?![a-z-])).*)");
  std::istringstream lines(markdown);
  std::string prose;
  bool is_code = false;
  for (std::string line; std::getline(lines, line);) {
    const std::size_t begin = line.find_first_not_of(' ');
    if (begin != std::string::npos && line.substr(begin).starts_with("```")) {
      is_code = !is_code;
      line.clear();
    }
    prose += (is_code ? "" : line) + "\n";
  }
  std::vector<Mention> mentions;
  for (std::sregex_iterator span(prose.begin(), prose.end(), kSpan), end; span != end; ++span) {
    const std::string text = std::regex_replace((*span)[1].str(), kSpace, " ");
    const auto line = 1 + std::count(prose.begin(), prose.begin() + span->position(), '\n');
    mentions.push_back({static_cast<int>(line), std::regex_replace(text, kRest, "")});
  }
  return mentions;
}

TEST(DocsProse, names_commands_and_flags_that_exist) {
  int count = 0;
  for (const std::string& page : user_pages()) {
    for (const Mention& mention : mentions_in(page_text(page))) {
      // `weir COMMAND --help`, `weir --version`
      static const std::regex kCommand("weir [a-z].*");
      if (!std::regex_match(mention.text, kCommand)) continue;
      ++count;
      std::string why;
      EXPECT_TRUE(has_flags(mention.text, why)) << page << ":" << mention.line << "\n" << why;
    }
  }
  EXPECT_GT(count, 100);
}

TEST(DocsProse, mentions_end_where_another_program_begins) {
  const std::vector<Mention> mentions =
      mentions_in("a `weir run x\n--dot -` b\n```sh\n`weir no`\n```\n`weir sched run -- ./x --y` `weir a && b --c`\n");
  ASSERT_EQ(mentions.size(), 3u);
  EXPECT_EQ(mentions[0].text, "weir run x --dot -");
  EXPECT_EQ(mentions[1].text, "weir sched run");
  EXPECT_EQ(mentions[1].line, 6);
  EXPECT_EQ(mentions[2].text, "weir a ");
}

}  // namespace
}  // namespace weir::testing
