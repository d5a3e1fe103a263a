// Walks README.md, docs/*.md and kernels/README.md as a reader would: each page in a fresh folder that has what a clone
// has, its command lines in order from top to bottom, and nothing that the page does not show. What differs from a
// reader's machine:
// - Lines that do not say how much to measure measure little (small_weir.sh): pages take seconds, not hours.
// - sudo, srun and sbatch are stand-ins (stage.cpp): a test has no password and no cluster.
// - A line that needs a GPU or root may instead end in the program's refusal that names it: everything before the
//   device is opened was accepted. tests_gpu runs those of CUDA for good.
// - Building and installing is checked, not done: this is a part of a build.
// How a page shows what a line needs: page.h.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "docs/page.h"
#include "docs/pages.h"

namespace weir::testing {
namespace {

class Docs : public ::testing::TestWithParam<std::string> {};

TEST_P(Docs, command_lines_do_what_the_page_says) { try_page(GetParam(), ""); }

INSTANTIATE_TEST_SUITE_P(Pages, Docs, ::testing::ValuesIn(user_pages()), page_test_name);

TEST(DocsInventory, no_page_hides_anything) {
  for (const std::string& page : user_pages())
    for (const std::string& problem : read_page(page_text(page)).problems) ADD_FAILURE() << page << ":" << problem;
}

TEST(DocsInventory, every_command_line_is_tried_in_some_way) {
  int lines = 0, run = 0, on_gpu = 0, build = 0, synopsis = 0;
  for (const std::string& page : user_pages()) {
    for (const CommandLine& command : read_page(page_text(page)).commands) {
      ++lines;
      run += command.trial == Trial::run && command.need.empty();
      on_gpu += command.trial == Trial::run && !command.need.empty();
      build += command.trial == Trial::build;
      synopsis += command.trial == Trial::synopsis;
    }
  }
  EXPECT_EQ(run + on_gpu + build + synopsis, lines);
  EXPECT_GT(run, 50);
  fmt::print(
      "{} command lines: {} run, {} run where a GPU or root is (elsewhere parsed up to the device), {} of a build "
      "(targets checked), {} synopses (flags checked), 0 untested\n",
      lines, run, on_gpu, build, synopsis);
}

}  // namespace
}  // namespace weir::testing
