// docs/examples/amd is what the generators of these tests write, so that pages and decoders see the same text.
#include "docs/examples.h"

#include <gtest/gtest.h>

#include <map>

#include "cli/program.h"
#include "support/text.h"

namespace weir::testing {
namespace {

namespace fs = std::filesystem;

std::map<std::string, std::string> files_of(const fs::path& folder) {
  std::map<std::string, std::string> files;
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(folder))
    if (entry.is_regular_file()) files[fs::relative(entry.path(), folder).string()] = content(entry.path());
  return files;
}

TEST(DocsExamples, amd_captures_are_as_generated) {
  const Folder made;
  write_amd_examples(made.path());
  const auto expected = files_of(made.path());
  auto found = files_of(fs::path(WEIR_SOURCE_DIR) / "docs/examples/amd");
  found.erase("README.md");
  EXPECT_EQ(expected.size(), found.size());
  for (const auto& [name, text] : expected)
    EXPECT_TRUE(found[name] == text) << name << " differs: put what write_amd_examples() writes into docs/examples/amd";
}

}  // namespace
}  // namespace weir::testing
