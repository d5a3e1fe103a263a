// The part of the house style that a machine can see: opening comments, file length, include guards, open ends.
#include <gtest/gtest.h>

#include <filesystem>
#include <regex>
#include <string>
#include <vector>

#include "repo/tree.h"

namespace weir::repo {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMaxLines = 600;

std::vector<std::string> style_findings(const fs::path& root) {
  static const std::regex open_end(R"(\b(TODO|FIXME|XXX)\b)");
  std::vector<std::string> findings;
  for (const auto& file : files_below(root / "src", {".h", ".cpp", ".cu", ".cuh", ".cl"})) {
    const std::string name = fs::relative(file, root).string();
    const bool is_header = file.extension() == ".h" || file.extension() == ".cuh";
    const bool has_header = !is_header && fs::exists(fs::path(file).replace_extension(".h"));
    const auto lines = read_lines(file);
    if (!has_header && (lines.empty() || !lines[0].starts_with("// "))) {
      findings.push_back(name + ":1: open with a comment: what the file owns, and what it refuses to know");
    }
    if (lines.size() > kMaxLines) {
      findings.push_back(name + ": " + std::to_string(lines.size()) + " lines; past " + std::to_string(kMaxLines) +
                         " a file has two jobs");
    }
    bool is_guarded = !is_header;
    for (std::size_t i = 0; i < lines.size(); ++i) {
      if (trim(lines[i]) == "#pragma once") is_guarded = true;
      if (std::regex_search(lines[i], open_end)) {
        findings.push_back(name + ":" + std::to_string(i + 1) +
                           ": finish it or open an issue: " + std::string(trim(lines[i])));
      }
    }
    if (!is_guarded) findings.push_back(name + ": a header needs #pragma once");
  }
  return findings;
}

TEST(Style, accepts_what_follows_it) {
  const ScratchTree tree;
  tree.write("src/base/a.h", "// Owns a.\n#pragma once\n");
  tree.write("src/base/a.cpp", "#include \"base/a.h\"\n");
  tree.write("src/base/b.cpp", "// Owns b.\n");
  EXPECT_TRUE(style_findings(tree.root()).empty()) << joined(style_findings(tree.root()));
}

TEST(Style, finds_planted_violations) {
  const std::vector<std::pair<std::string, std::string>> planted = {
      {"src/base/a.h", "#pragma once\n"},
      {"src/base/a.h", "// Owns a.\n"},
      {"src/base/a.cpp", "#include <vector>\n"},
      {"src/base/a.cpp", ""},
      {"src/base/a.cpp", "// Owns a.\n  // TODO: more\n"},
      {"src/base/a.cu", "// Owns a.\nint x;  // FIXME\n"},
      {"src/base/a.cpp", "// Owns a.\n" + std::string(kMaxLines, '\n')},
  };
  for (const auto& [file, text] : planted) {
    const ScratchTree tree;
    tree.write(file, text);
    const auto findings = style_findings(tree.root());
    ASSERT_EQ(findings.size(), 1U) << file << ": " << text << joined(findings);
    EXPECT_TRUE(findings[0].starts_with(file)) << findings[0];
  }
}

TEST(Style, sources_follow_it) {
  ASSERT_FALSE(files_below(fs::path(WEIR_SOURCE_DIR) / "src", {".h", ".cpp"}).empty());
  const auto findings = style_findings(WEIR_SOURCE_DIR);
  EXPECT_TRUE(findings.empty()) << joined(findings);
}

}  // namespace
}  // namespace weir::repo
