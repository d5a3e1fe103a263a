// What the types of src/base/text_gate.h cannot see: texts of documents that are taken around the gate, and files of a
// format that are put together by fmt::format, which knows no gate.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <regex>
#include <string>
#include <vector>

#include "repo/tree.h"

namespace weir::repo {
namespace {

namespace fs = std::filesystem;

struct GateRule {
  const char* part;  // of all such code: regular expressions are slow
  std::regex code;
  const char* below;   // part of the tree that it holds for
  const char* except;  // files whose path has this in it
  const char* advice;
};

const std::vector<GateRule>& gate_rules() {
  static const std::vector<GateRule> kRules = {
      {".", std::regex(R"(\.get<std::string>\(\)|\.string\(\)|\.dump\(|\.items\(\))"), "src/report/text", "fields.cpp",
       "take texts of documents by report/text/fields.h, which has the gate"},
      {"\"<", std::regex(R"(fmt::format(_to)?\(\s*"\s*<[a-z/!?])"), "src", "/manual/",
       "use Markup::format or Xml::format"},
      {"\"| ", std::regex(R"(fmt::format(_to)?\(\s*"\| )"), "src", "/manual/", "use Markdown::format"},
      {"},{", std::regex(R"(fmt::format(_to)?\(\s*"\{[^}]*\},\{[^}]*\},\{)"), "src", "/manual/", "use CsvLine"},
      {"\"&", std::regex(R"("&(lt|gt|amp|quot);")"), "src", "text_gate.cpp",
       "escape by for_markup, for_xml or for_markdown"}};
  return kRules;
}

std::vector<std::string> around_the_gate(const fs::path& root) {
  std::vector<std::string> findings;
  for (const GateRule& rule : gate_rules())
    for (const auto& file : files_below(root / rule.below, {".h", ".cpp"})) {
      const std::string name = fs::relative(file, root).string();
      if (name.find(rule.except) != std::string::npos || name.find("/manual/") != std::string::npos) continue;
      std::string code;
      for (const std::string& line : read_lines(file))
        code += std::string(trim(line).starts_with("//") ? "" : line) + "\n";
      if (code.find(rule.part) == std::string::npos) continue;
      for (std::sregex_iterator match(code.begin(), code.end(), rule.code), end; match != end; ++match) {
        const auto line = std::count(code.begin(), code.begin() + match->position(), '\n') + 1;
        findings.push_back(name + ":" + std::to_string(line) + ": " + rule.advice);
      }
    }
  return findings;
}

TEST(TextGateRules, accept_what_goes_through_the_gate) {
  const ScratchTree tree;
  tree.write("src/report/text/fields.cpp", "return for_line(value.string());\n");
  tree.write("src/report/text/a.cpp", "out += Markup::format(\"<b>{}</b>\", name);\n// value.string()\n");
  tree.write("src/run/a.cpp", "path.string();\nfmt::format(\"{}, {}\", a, b);\nfmt::format(\"a < {}\", b);\n");
  EXPECT_TRUE(around_the_gate(tree.root()).empty()) << joined(around_the_gate(tree.root()));
}

TEST(TextGateRules, find_what_goes_around_it) {
  for (const char* planted : {"value.get<std::string>()", "at(a, {\"b\"}).string()", "json.dump()",
                              "for (auto& [name, value] : json.items())", "fmt::format(\"<b>{}</b>\", name)",
                              "fmt::format(\n    \"</{}>\", name)", "fmt::format(\"| {} |\", name)",
                              "fmt::format(\"{},{},{}\\n\", a, b, c)", "out += \"&lt;\";"}) {
    const ScratchTree tree;
    tree.write("src/report/text/a.cpp", std::string("\n") + planted + ";\n");
    const auto findings = around_the_gate(tree.root());
    ASSERT_EQ(findings.size(), 1U) << planted << joined(findings);
    EXPECT_TRUE(findings[0].starts_with("src/report/text/a.cpp:2: ")) << findings[0];
  }
}

TEST(TextGateRules, hold_for_all_sources) {
  const auto findings = around_the_gate(WEIR_SOURCE_DIR);
  EXPECT_TRUE(findings.empty()) << joined(findings);
}

}  // namespace
}  // namespace weir::repo
