// The pages that users read, and the tests of all of them: named by the page, so that they run side by side.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace weir::testing {

// README.md, docs/*.md, kernels/README.md: relative to the source folder, sorted.
std::vector<std::string> user_pages();
std::string page_text(const std::string& page);
// docs/getting_started.md -> docs_getting_started
std::string page_test_name(const ::testing::TestParamInfo<std::string>& info);

// Tries the page's lines in order, in one folder, and prints how many ended how. `here` as for Stage::tries.
void try_page(const std::string& page, const std::string& here);

}  // namespace weir::testing
