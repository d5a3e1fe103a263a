// A workload, device, command ... is one file, and its name in its folder's list.h or list.cpp: finds files that nobody
// listed.
#include <gtest/gtest.h>

#include <filesystem>
#include <regex>
#include <string>
#include <vector>

#include "repo/tree.h"

namespace weir::repo {
namespace {

namespace fs = std::filesystem;

// A source with a header of its own is support for the others; everything else offers the function named like the file.
std::vector<std::string> unlisted_files(const fs::path& root) {
  std::vector<std::string> findings;
  for (const auto& list : files_below(root / "src", {".cpp"})) {
    if (list.filename() != "list.cpp") continue;
    const fs::path folder = list.parent_path();
    std::string text;
    for (const fs::path& names : {list, folder / "list.h"})
      if (fs::exists(names))
        for (const auto& line : read_lines(names)) text += line.substr(0, line.find("//")) + "\n";
    for (const auto& file : files_below(folder, {".cpp"})) {
      // A device has a folder of its own, named like it; so has what else lies below.
      if (file.parent_path() != folder && file.stem() != file.parent_path().filename()) continue;
      const std::string stem = file.stem();
      const bool is_main = folder.filename() == "cli" && stem == "main";
      if (stem == "list" || is_main || fs::exists(fs::path(file).replace_extension(".h"))) continue;
      if (!std::regex_search(text, std::regex("\\b" + stem + "\\b"))) {
        findings.push_back(fs::relative(file, root).string() + ": " + fs::relative(list, root).string() +
                           " does not name " + stem);
      }
    }
  }
  return findings;
}

TEST(Listed, finds_a_planted_file) {
  const ScratchTree tree;
  tree.write("src/workload/list.cpp", "// forgotten() is only mentioned\nadd(large_gemm_only());\n");
  tree.write("src/workload/large_gemm_only.cpp", "//\n");
  tree.write("src/workload/shapes.cpp", "//\n");
  tree.write("src/workload/shapes.h", "//\n");
  EXPECT_TRUE(unlisted_files(tree.root()).empty());

  tree.write("src/workload/forgotten.cpp", "//\n");
  tree.write("src/workload/gemm_only.cpp", "//\n");
  const auto findings = unlisted_files(tree.root());
  ASSERT_EQ(findings.size(), 2U) << joined(findings);
  EXPECT_EQ(findings[0], "src/workload/forgotten.cpp: src/workload/list.cpp does not name forgotten");
  EXPECT_EQ(findings[1], "src/workload/gemm_only.cpp: src/workload/list.cpp does not name gemm_only");
}

TEST(Listed, main_is_no_command) {
  const ScratchTree tree;
  tree.write("src/cli/list.cpp", "");
  tree.write("src/cli/main.cpp", "//\n");
  EXPECT_TRUE(unlisted_files(tree.root()).empty());
  tree.write("src/device/list.cpp", "");
  tree.write("src/device/main.cpp", "//\n");
  EXPECT_EQ(unlisted_files(tree.root()).size(), 1U);
}

TEST(Listed, every_file_is_listed) {
  const auto findings = unlisted_files(WEIR_SOURCE_DIR);
  EXPECT_TRUE(findings.empty()) << joined(findings);
}

}  // namespace
}  // namespace weir::repo
