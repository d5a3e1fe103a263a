// Wording that readers stumbled over stays out of what users see: text in quotes in src/, the page, and the documents.
#include <gtest/gtest.h>

#include <array>
#include <filesystem>
#include <string>
#include <vector>

#include "repo/tree.h"

namespace weir::repo {
namespace {

namespace fs = std::filesystem;

constexpr std::array kWords = {
    "can be had",    "cannot be had",  "could not be had",        "what there is not",        "cry wolf",
    "are told with", "may come again", "as many as pay",          "nothing that can be seen", "behind --",
    "behind `--`",   "how to tell it", "last what they are told", "is no trace that"};

std::vector<std::string> word_findings(const fs::path& root) {
  std::vector<std::string> findings;
  const auto look = [&](const char* folder, const std::vector<std::string>& endings, bool is_source) {
    for (const fs::path& file : files_below(root / folder, endings)) {
      const std::string name = fs::relative(file, root).string();
      if (name.starts_with("docs/adr/")) continue;
      const std::vector<std::string> lines = read_lines(file);
      for (std::size_t i = 0; i < lines.size(); ++i)
        for (const std::string word : kWords) {
          const std::size_t at = lines[i].find(word);
          if (at == std::string::npos || (is_source && lines[i].find('"') > at)) continue;
          findings.push_back(name + ":" + std::to_string(i + 1) + ": " + word);
        }
    }
  };
  if (fs::exists(root / "src")) look("src", {".h", ".cpp"}, true);
  if (fs::exists(root / "web/src")) look("web/src", {".ts"}, true);
  if (fs::exists(root / "docs")) look("docs", {".md"}, false);
  return findings;
}

TEST(Words, planted_ones_are_found) {
  const ScratchTree tree;
  tree.write("src/run/a.cpp", "// cannot be had\nfail(\"memory cannot be had\");\n");
  tree.write("docs/a.md", "It may come again.\n");
  EXPECT_EQ(word_findings(tree.root()).size(), 2U) << joined(word_findings(tree.root()));
}

TEST(Words, that_readers_stumbled_over_are_gone) {
  EXPECT_TRUE(word_findings(WEIR_SOURCE_DIR).empty()) << joined(word_findings(WEIR_SOURCE_DIR));
}

}  // namespace
}  // namespace weir::repo
