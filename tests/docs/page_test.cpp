// How pages are read: what is a command, what is output, what marks say, and what is refused.
#include "docs/page.h"

#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

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
  for (const char* text : {"```\nx\n```\n", "```text\nweir run x\n```\n", "```text\n  $ weir run x\n```\n",
                           "```json\nmake run\n```\n", "```text\nbuild/release/weir list\n```\n",
                           "```console\nno prompt\n```\n", "```sh\nweir run \\\n```\n", "```sh\nweir list\n"})
    EXPECT_EQ(read_page(text).problems.size(), 1u) << text;
  EXPECT_TRUE(read_page("```text\nweir: no such thing\nmakes run\n```\n").problems.empty());
}

TEST(DocsPage, a_comment_is_refused_wherever_it_stands) {
  for (const char* text :
       {"<!-- setup: touch a -->\n```sh\nls\n```\n", "prose <!-- test: exit 3 --> prose\n", "```sh\nls\n```\n  <!--\n"})
    EXPECT_EQ(read_page(text).problems.size(), 1u) << text;
}

TEST(DocsPage, what_a_line_needs_and_how_it_ends_is_what_it_shows) {
  const Page page = read_page(
      "```sh\nweir run x --device cuda:0\nweir bench --device cpu,hip\nweir profile -- y   # needs an NVIDIA GPU\n"
      "sudo weir amd hqd --live\nweir run z   # exit 2: no such workload\nweir compare a b   # exit 3 if slower\n"
      "weir compare a b --strict   # exit 3 if slower, 4 if unclear\nmake bench\nweir list   # exits at once\n```\n"
      "```console\n$ weir run mow\nweir: there is no workload 'mow'\n$ weir run x --device cuda\nweir: none "
      "here\n```\n");
  EXPECT_TRUE(page.problems.empty());
  const std::vector<std::pair<std::string, std::set<int>>> expected = {
      {"cuda", {0}},   {"hip", {0}}, {"cuda", {0}}, {"root", {0}}, {"", {2}},    {"", {0, 3}},
      {"", {0, 3, 4}}, {"", {0}},    {"", {0}},     {"", {1, 2}},  {"cuda", {0}}};
  ASSERT_EQ(page.commands.size(), expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i) {
    EXPECT_EQ(page.commands[i].need, expected[i].first) << page.commands[i].text;
    EXPECT_EQ(page.commands[i].exit_codes, expected[i].second) << page.commands[i].text;
  }
  EXPECT_EQ(page.commands[7].trial, Trial::build);
}

TEST(DocsPage, a_file_that_a_page_shows_is_a_command) {
  const Page page = read_page("```sh\ncat > a.yaml << 'END'\nname: x   # exit 3\n  make: y\nEND\ncat a.yaml\n```\n");
  ASSERT_EQ(page.commands.size(), 2u);
  EXPECT_EQ(page.commands[0].exit_codes, (std::set<int>{0}));
  Stage stage;
  std::string why;
  EXPECT_EQ(stage.tries(page.commands[0], "", why), Tried::ran) << why;
  EXPECT_EQ(stage.tries(page.commands[1], "", why), Tried::ran) << why;
}

TEST(DocsStage, lines_share_a_folder_and_an_environment_as_in_a_terminal) {
  Stage stage;
  std::string why;
  for (const CommandLine& command : read_page("```sh\nmkdir here\ncd here   # stays\nexport WORD=x\nfalse   # exit "
                                              "1\ntouch $WORD\ntest -e ../here/x\n```\n")
                                        .commands)
    EXPECT_EQ(stage.tries(command, "", why), Tried::ran) << why;
}

TEST(DocsStage, begins_with_what_a_clone_has_and_no_more) {
  Stage stage;
  std::string why;
  for (const char* text :
       {"test -d config -a -d kernels -a -f docs/examples/train.py", "test ! -e train.py -a ! -e run1"}) {
    CommandLine command;
    command.text = text;
    EXPECT_EQ(stage.tries(command, "", why), Tried::ran) << why;
  }
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
  EXPECT_EQ(tried("```sh\nweir run nosuch   # exit 2\n```\n"), Tried::ran);
  EXPECT_EQ(tried("```sh\nweir list   # exit 3\n```\n"), Tried::failed);
  EXPECT_EQ(tried("```console\n$ weir info\n  cpu        7 cores\n```\n"), Tried::ran);
  EXPECT_EQ(tried("```console\n$ weir info\n  gpuu       7 cores\n```\n"), Tried::failed);
  EXPECT_EQ(tried("```console\n$ weir run mow\nweir: there is no workload 'mow'\n```\n"), Tried::ran);
  EXPECT_EQ(tried("```console\n$ weir run mow\nweir: no workload 'mow'\n```\n"), Tried::failed);
  // A typing error is no lack of hardware.
  EXPECT_EQ(tried("```sh\nweir run moe --device cuda --nonsense\n```\n"), Tried::failed);
  EXPECT_EQ(tried("```sh\nweir run nosuch --device cuda\n```\n"), Tried::failed);
  EXPECT_EQ(tried("```sh\nmake run\n```\n"), Tried::checked);
  EXPECT_EQ(tried("```sh\nmake nonsense\n```\n"), Tried::failed);
  EXPECT_EQ(tried("```sh\ncmake --preset nonsense\n```\n"), Tried::failed);
  EXPECT_EQ(tried("```sh\nif then\n```\n"), Tried::failed);
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
