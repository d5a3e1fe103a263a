// A document is its name in src/base/schemas.h, and what the name promises: finds documents without a file in
// docs/schema, files there without a document, and sources that spell a name instead of using the list.
#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <regex>
#include <string>
#include <vector>

#include "repo/tree.h"

namespace weir::repo {
namespace {

namespace fs = std::filesystem;

std::string text_of(const fs::path& file) { return joined(read_lines(file)); }

// document(result, 2) document(sweep, 1): versions by name
std::map<std::string, std::string> listed_documents(const fs::path& root) {
  static const std::regex entry(R"(\bdocument\(([a-z_]+), ([0-9]+)\))");
  const std::string text = text_of(root / "src/base/schemas.h");
  std::map<std::string, std::string> names;
  for (std::sregex_iterator match(text.begin(), text.end(), entry), end; match != end; ++match)
    names[(*match)[1]] = (*match)[2];
  return names;
}

std::vector<std::string> unlike_documents(const fs::path& root) {
  const std::map<std::string, std::string> names = listed_documents(root);
  std::vector<std::string> findings;
  for (const auto& [name, version] : names) {
    const std::string file = "docs/schema/weir." + name + "." + version + ".json";
    const std::string schema = "weir." + name + "/" + version;
    if (!fs::exists(root / file))
      findings.push_back(file + " is missing: src/base/schemas.h lists " + name);
    else if (text_of(root / file).find("\"const\": \"" + schema + "\"") == std::string::npos)
      findings.push_back(file + " does not describe " + schema);
  }
  static const std::regex described(R"(^weir\.([a-z_]+)\.([0-9]+)\.json$)");
  for (const auto& file : files_below(root / "docs/schema", {".json"})) {
    const std::string file_name = file.filename();
    std::smatch match;
    if (!std::regex_match(file_name, match, described)) continue;
    if (const auto listed = names.find(match[1]); listed == names.end() || listed->second != match[2])
      findings.push_back("docs/schema/" + file_name + ": src/base/schemas.h does not list " + std::string(match[1]));
  }

  static const std::regex literal(R"re("weir\.([a-z_]+)/[0-9]+")re");
  std::map<std::string, std::string> spelled;
  for (const auto& file : files_below(root / "src", {".h", ".cpp"}))
    for (const std::string& line : read_lines(file)) {
      const std::string code = line.substr(0, line.find("//"));
      std::smatch match;
      // Text that quotes a document is no use of its name: R"(... ("schema": "weir.result/1") ...)"
      if (code.find("\"schema\": ") != std::string::npos || !std::regex_search(code, match, literal)) continue;
      const std::string where = fs::relative(file, root).string();
      const auto [first, is_first] = spelled.emplace(match[1], where);
      if (names.contains(match[1]))
        findings.push_back(where + " spells " + std::string(match[0]) + ": use schemas::" + std::string(match[1]));
      else if (!is_first)
        findings.push_back(where + " spells " + std::string(match[0]) + ", as " + first->second + " does");
    }
  return findings;
}

TEST(Documents, finds_what_is_planted) {
  const ScratchTree tree;
  tree.write("src/base/schemas.h", "#define WEIR_DOCUMENTS(document) document(result, 2) \\\n  document(sweep, 1)\n");
  tree.write("docs/schema/weir.result.2.json", R"({"schema": {"const": "weir.result/2"}})");
  tree.write("docs/schema/weir.sweep.1.json", R"({"schema": {"const": "weir.sweep/1"}})");
  tree.write("docs/schema/bench.yaml.json", "{}");
  tree.write("src/run/sweep.cpp", "json[\"schema\"] = schemas::sweep;  // \"weir.sweep/1\"\nf(\"weir.line/1\");\n");
  EXPECT_TRUE(unlike_documents(tree.root()).empty()) << joined(unlike_documents(tree.root()));

  tree.write("docs/schema/weir.sweep.1.json", R"({"schema": {"const": "weir.result/1"}})");
  tree.write("docs/schema/weir.forgotten.1.json", "{}");
  tree.write("src/run/load.cpp", "if (schema == \"weir.result/1\") return;\nf(\"weir.line/1\");\n");
  tree.write("src/base/schemas.h", "document(result, 2) document(sweep, 1) document(planted, 1)\n");
  const std::vector<std::string> expected = {
      "docs/schema/weir.planted.1.json is missing: src/base/schemas.h lists planted",
      "docs/schema/weir.sweep.1.json does not describe weir.sweep/1",
      "docs/schema/weir.forgotten.1.json: src/base/schemas.h does not list forgotten",
      "src/run/load.cpp spells \"weir.result/1\": use schemas::result",
      "src/run/sweep.cpp spells \"weir.line/1\", as src/run/load.cpp does"};
  EXPECT_EQ(unlike_documents(tree.root()), expected) << joined(unlike_documents(tree.root()));
}

TEST(Documents, are_listed_described_and_spelled_once) {
  EXPECT_GT(listed_documents(WEIR_SOURCE_DIR).size(), 20u);
  const auto findings = unlike_documents(WEIR_SOURCE_DIR);
  EXPECT_TRUE(findings.empty()) << joined(findings);
}

}  // namespace
}  // namespace weir::repo
