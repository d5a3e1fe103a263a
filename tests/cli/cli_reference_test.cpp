// docs/cli.md is what the program says of itself, and says something of every command.
#include <gtest/gtest.h>

#include <cctype>
#include <filesystem>
#include <regex>

#include "cli/program.h"
#include "support/text.h"

namespace weir::testing {
namespace {

TEST(CliReference, the_page_is_what_the_program_prints) {
  const Outcome printed = weir({"help", "--markdown"});
  ASSERT_EQ(printed.code, 0) << printed.err;
  const auto wanted = lines_of(printed.out), found = lines_of(content(WEIR_SOURCE_DIR "/docs/cli.md"));
  for (std::size_t i = 0; i < std::max(wanted.size(), found.size()); ++i) {
    const std::string program = i < wanted.size() ? wanted[i] : "(end)", page = i < found.size() ? found[i] : "(end)";
    ASSERT_EQ(program, page) << "docs/cli.md:" << i + 1 << ": run `make docs`";
  }
}

TEST(CliReference, every_command_has_lines_to_type) {
  const auto lines = lines_of(weir({"help", "--markdown"}).out);
  std::string command;
  int commands = 0;
  bool has_example = true;
  for (const std::string& line : lines) {
    if (line.starts_with("##")) {
      EXPECT_TRUE(has_example) << command << " has no example: add one to src/cli/manual/manual.cpp";
      command = line.substr(line.find(' ') + 1);
      has_example = false;
      ++commands;
    }
    has_example = has_example || line.starts_with(command);
    if (line == "```synopsis") has_example = false;  // the usage line
    if (line == "```sh") has_example = true;
  }
  EXPECT_TRUE(has_example) << command;
  EXPECT_GT(commands, 35);
}

// A flag that takes all words that follow takes the command's arguments too: `run --param size=64 moe`.
TEST(CliReference, no_flag_takes_arguments_of_its_command) {
  std::string command;
  bool has_arguments = false;
  int repeatable = 0;
  for (const std::string& line : lines_of(weir({"help", "--markdown"}).out)) {
    if (line.starts_with("##")) {
      command = line;
      has_arguments = false;
    }
    if (!line.starts_with("| `")) continue;
    const std::string heading = line.substr(3, line.find('`', 3) - 3);  // "[workload]", "files...", "--param TEXT"
    has_arguments = has_arguments || heading[0] != '-';
    if (heading[0] != '-' || !has_arguments) continue;
    EXPECT_FALSE(heading.ends_with("...")) << command << ": " << heading;
    repeatable += line.find("repeatable") == std::string::npos ? 0 : 1;
  }
  EXPECT_GT(repeatable, 10);
}

TEST(CliReference, lines_to_type_fit_in_a_terminal) {
  bool is_example = false;
  for (const std::string& line : lines_of(weir({"help", "--markdown"}).out)) {
    if (line.starts_with("```")) is_example = line == "```sh";
    if (is_example) {
      EXPECT_LE(line.size(), 78U) << line;
    }
  }
}

TEST(CliReference, links_lead_somewhere) {
  static const std::regex kLink(R"(\]\(([a-z_0-9]+\.md)?(?:#([a-z0-9-]+))?\))");
  const std::string text = weir({"help", "--markdown"}).out;
  const std::filesystem::path docs = WEIR_SOURCE_DIR "/docs";
  for (std::sregex_iterator link(text.begin(), text.end(), kLink), end; link != end; ++link) {
    const std::string page = (*link)[1].str(), anchor = (*link)[2].str();
    ASSERT_TRUE(std::filesystem::exists(docs / page)) << page;
    if (anchor.empty()) continue;
    bool is_there = false;
    for (std::string line : lines_of(page.empty() ? text : content(docs / page))) {
      if (!line.starts_with('#')) continue;
      // "## How outputs are checked" -> how-outputs-are-checked, as GitHub does it
      line = line.substr(line.find(' ') + 1);
      std::string made;
      for (const char each : line) {
        if (std::isalnum(static_cast<unsigned char>(each)) || each == '-' || each == '_')
          made += static_cast<char>(std::tolower(static_cast<unsigned char>(each)));
        if (each == ' ') made += '-';
      }
      is_there = is_there || made == anchor;
    }
    EXPECT_TRUE(is_there) << page << "#" << anchor;
  }
}

}  // namespace
}  // namespace weir::testing
