// How pages are read: what is a command, what is output, what marks say, and what is refused.
#include "docs/page.h"

#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "docs/samples.h"
#include "docs/stage.h"

namespace weir::testing {
namespace {

TEST(DocsPage, takes_lines_of_sh_and_prompts_of_console) {
  const Page page = read_page(
      "text `weir run x`\n```sh\n# why\nweir run a \\\n  --streams 2   # so\n\nweir list\n```\n"
      "```console\n$ weir info\nDevices\n$ weir list\n```\n```text\nDevices\n```\n");
  EXPECT_TRUE(page.problems.empty());
  ASSERT_EQ(page.commands.size(), 4u);
  EXPECT_EQ(page.commands[0].text, "weir run a --streams 2   # so");
  EXPECT_EQ(page.commands[0].line, 4);
  EXPECT_EQ(page.commands[2].text, "weir info");
  EXPECT_EQ(page.commands[2].output, (std::vector<std::string>{"Devices"}));
  EXPECT_TRUE(page.commands[3].output.empty());
}

TEST(DocsPage, complains_about_what_nothing_would_test) {
  for (const char* text :
       {"```\nx\n```\n", "```text\nweir run x\n```\n", "```text\n  $ weir run x\n```\n", "```json\nmake run\n```\n",
        "```text\nbuild/release/weir list\n```\n", "```console\nno prompt\n```\n", "```sh\nweir run \\\n```\n",
        "```sh\nweir list\n", "<!-- test: needs nonsense -->\n```sh\nls\n```\n",
        "<!-- test: needs cuda -->\nprose\n```sh\nls\n```\n", "<!-- test: build -->\n```text\nx\n```\n",
        "<!-- test: exit 3 in \"absent\" -->\n```sh\nls\n```\n", "<!-- test: exit 3 -->\n"})
    EXPECT_EQ(read_page(text).problems.size(), 1u) << text;
  EXPECT_TRUE(read_page("```text\nweir: no such thing\nmakes run\n```\n").problems.empty());
}

TEST(DocsPage, marks_are_for_the_block_below_or_for_some_of_its_lines) {
  const Page page = read_page(
      "<!-- setup: touch a\ntouch b -->\n<!-- test: needs cuda in \"train\" -->\n<!-- test: exit 0 or 3 -->\n"
      "```sh\nweir run x\nweir profile -- train\nmake bench\n```\n```sh\nls\n```\n");
  EXPECT_TRUE(page.problems.empty());
  ASSERT_EQ(page.commands.size(), 6u);
  EXPECT_TRUE(page.commands[0].is_setup && page.commands[1].is_setup);
  EXPECT_EQ(page.commands[1].text, "touch b");
  EXPECT_EQ(page.commands[2].need, "");
  EXPECT_EQ(page.commands[2].exit_codes, (std::set<int>{0, 3}));
  EXPECT_EQ(page.commands[3].need, "cuda");
  EXPECT_EQ(page.commands[4].trial, Trial::build);
  EXPECT_EQ(page.commands[5].exit_codes, (std::set<int>{0}));
}

TEST(DocsPage, files_that_it_shows_are_there_before_the_first_line) {
  const Page page = read_page("```sh\ncat a.yaml\n```\n<!-- file: a.yaml -->\n```yaml\nname: x\n  make: y\n```\n");
  ASSERT_EQ(page.commands.size(), 2u);
  EXPECT_TRUE(page.commands[0].is_setup);
  Stage stage;
  std::string why;
  EXPECT_EQ(stage.tries(page.commands[0], "", why), Tried::ran) << why;
  EXPECT_EQ(stage.tries(page.commands[1], "", why), Tried::ran) << why;
}

TEST(DocsStage, fails_lines_that_do_not_do_what_they_say) {
  Stage stage;
  const auto tried = [&](const std::string& block) {
    Tried last = Tried::ran;
    std::string why;
    for (const CommandLine& command : read_page(block).commands) last = stage.tries(command, "", why);
    return last;
  };
  EXPECT_EQ(tried("```sh\nweir list\n```\n"), Tried::ran);
  EXPECT_EQ(tried("```sh\nweir lisst\n```\n"), Tried::failed);
  EXPECT_EQ(tried("```sh\nweir list --nonsense | cat\n```\n"), Tried::failed);
  EXPECT_EQ(tried("```sh\nbuild/release/weir run nosuch\n```\n"), Tried::failed);
  EXPECT_EQ(tried("<!-- test: exit 2 -->\n```sh\nweir run nosuch\n```\n"), Tried::ran);
  EXPECT_EQ(tried("<!-- test: exit 3 -->\n```sh\nweir list\n```\n"), Tried::failed);
  EXPECT_EQ(tried("```console\n$ weir info\n  cpu        7 cores\n```\n"), Tried::ran);
  EXPECT_EQ(tried("```console\n$ weir info\n  gpuu       7 cores\n```\n"), Tried::failed);
  EXPECT_EQ(tried("<!-- test: exit 2 -->\n```console\n$ weir run mow\nweir: there is no workload 'mow'\n```\n"),
            Tried::ran);
  EXPECT_EQ(tried("<!-- test: exit 2 -->\n```console\n$ weir run mow\nweir: no workload 'mow'\n```\n"), Tried::failed);
  // A typing error is no lack of hardware.
  EXPECT_EQ(tried("<!-- test: needs cuda -->\n```sh\nweir run moe --device cuda --nonsense\n```\n"), Tried::failed);
  EXPECT_EQ(tried("<!-- test: needs cuda -->\n```sh\nweir run nosuch --device cuda\n```\n"), Tried::failed);
  EXPECT_EQ(tried("```sh\nmake run\n```\n"), Tried::checked);
  EXPECT_EQ(tried("```sh\nmake nonsense\n```\n"), Tried::failed);
  EXPECT_EQ(tried("```sh\ncmake --preset nonsense\n```\n"), Tried::failed);
  EXPECT_EQ(tried("<!-- test: build -->\n```sh\nweir list\n```\n"), Tried::failed);
  EXPECT_EQ(tried("<!-- test: syntax, because it is a test -->\n```sh\nif then\n```\n"), Tried::failed);
  EXPECT_EQ(tried("```synopsis\nweir queues map [--streams 40] [-o FILE]\n```\n"), Tried::checked);
  EXPECT_EQ(tried("```synopsis\nweir queues map [--strems 40]\n```\n"), Tried::failed);
  EXPECT_EQ(tried("```synopsis\nweir nonsense [--streams 40]\n```\n"), Tried::failed);
}

TEST(DocsStage, kernel_packages_have_small_problems) {
  const Folder folder;
  std::filesystem::create_directories(folder.path() / "from/sum");
  std::ofstream(folder / "from/sum/bench.yaml") << "# 1048576\nproblem_size:\n  count: [4096, 1048576]\n  rows: 8192\n";
  write_small_packages(folder.path() / "from", folder.path() / "to");
  std::ostringstream text;
  text << std::ifstream(folder / "to/sum/bench.yaml").rdbuf();
  EXPECT_EQ(text.str(), "# 1048576\nproblem_size:\n  count: [4096, 16384]\n  rows: 128\n");
}

TEST(DocsStage, tells_of_a_background_line_that_ended_badly) {
  Stage stage;
  std::string why;
  CommandLine command;
  command.text = "false &";
  EXPECT_EQ(stage.tries(command, "", why), Tried::ran);
  EXPECT_FALSE(stage.ends(why));
  command.text = "sleep 50 &   # goes on";
  EXPECT_EQ(stage.tries(command, "", why), Tried::ran);
  EXPECT_TRUE(stage.ends(why));
}

}  // namespace
}  // namespace weir::testing
