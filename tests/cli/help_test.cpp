// weir help: topics, commands, the manual page; and what the environment topic promises against what sources read.
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <regex>
#include <set>
#include <sstream>

#include "cli/program.h"
#include "support/text.h"

namespace weir::testing {
namespace {

// Names in the list behind "Topics:" of `weir help`.
std::vector<std::string> topic_names() {
  std::vector<std::string> names;
  bool is_list = false;
  for (const std::string& line : lines_of(weir({"help"}).out)) {
    if (is_list && line.empty()) break;
    if (is_list) names.push_back(line.substr(2, line.find(' ', 2) - 2));
    is_list = is_list || line == "Topics:";
  }
  return names;
}

TEST(HelpTopics, are_listed_and_short) {
  const auto names = topic_names();
  for (const char* name : {"exit-codes", "devices", "terms", "statistics", "files", "environment", "configuration",
                           "troubleshooting", "reproducing"})
    EXPECT_NE(std::find(names.begin(), names.end(), name), names.end()) << name;
  for (const std::string& name : names) {
    const Outcome page = weir({"help", name});
    EXPECT_EQ(page.code, 0) << name;
    EXPECT_TRUE(page.out.starts_with(name + ": ")) << page.out;
    const auto lines = lines_of(page.out);
    EXPECT_GT(lines.size(), 8U) << name;
    EXPECT_LT(lines.size(), 40U) << name << ": a topic fits on a screen";
    for (const std::string& line : lines) EXPECT_LE(line.size(), 80U) << line;
  }
}

TEST(HelpTopics, name_only_docs_that_exist) {
  static const std::regex kPage("docs/[a-z_]+\\.md");
  for (const std::string& name : topic_names()) {
    const std::string text = weir({"help", name}).out;
    for (std::sregex_iterator page(text.begin(), text.end(), kPage), end; page != end; ++page)
      EXPECT_TRUE(std::filesystem::exists(WEIR_SOURCE_DIR "/" + page->str())) << name << ": " << page->str();
  }
}

TEST(HelpTopics, environment_names_every_variable_that_is_read) {
  const std::string text = weir({"help", "environment"}).out;
  std::set<std::string> read;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(WEIR_SOURCE_DIR "/src")) {
    if (entry.path().extension() != ".cpp" && entry.path().extension() != ".h") continue;
    std::stringstream source;
    source << std::ifstream(entry.path()).rdbuf();
    const std::string all = source.str();
    for (const std::string form : {"environment_variable(\"", "getenv(\"", "Variable = \""}) {
      for (std::size_t at = all.find(form); at != std::string::npos; at = all.find(form, at + 1)) {
        const std::size_t begin = at + form.size();
        const std::string name = all.substr(begin, all.find('"', begin) - begin);
        if (std::all_of(name.begin(), name.end(), [](char each) { return std::islower(each) == 0; })) read.insert(name);
      }
    }
  }
  ASSERT_GT(read.size(), 8U);
  for (const std::string& name : read) EXPECT_TRUE(has(text, name)) << name << " is read, and not in the topic";
}

TEST(HelpCommand, is_the_same_as_the_flag) {
  for (const std::vector<std::string>& command :
       std::vector<std::vector<std::string>>{{"run"}, {"queues"}, {"queues", "map"}, {"overlap", "tune"}, {"help"}}) {
    std::vector<std::string> by_help = {"help"}, by_flag = command;
    by_help.insert(by_help.end(), command.begin(), command.end());
    by_flag.emplace_back("--help");
    const Outcome page = weir(by_help);
    EXPECT_EQ(page.code, 0) << page.err;
    EXPECT_EQ(page.out, weir(by_flag).out) << command.back();
  }
  EXPECT_TRUE(weir({"help"}).out.starts_with(weir({"--help"}).out)) << "topics come behind it";
}

TEST(HelpCommand, shows_lines_to_type) {
  EXPECT_TRUE(has(weir({"run", "--help"}).out, "Examples:\n")) << weir({"run", "--help"}).out;
}

TEST(HelpCommand, suggests_what_was_meant) {
  const std::pair<std::vector<std::string>, const char*> mistakes[] = {
      {{"help", "exit-code"}, "exit-codes"}, {{"help", "sweeep"}, "sweep"}, {{"help", "queues", "mpa"}, "map"}};
  for (const auto& [words, meant] : mistakes) {
    const Outcome outcome = weir(words);
    EXPECT_EQ(outcome.code, 2);
    EXPECT_TRUE(has(outcome.err, meant)) << outcome.err;
    EXPECT_EQ(outcome.out, "");
  }
  EXPECT_EQ(weir({"help", "info", "more"}).code, 2);
  EXPECT_EQ(weir({"help", "--man", "--markdown"}).code, 2);
  EXPECT_EQ(weir({"help", "run", "--man"}).code, 2);
}

TEST(ManPage, has_every_command_and_no_warnings) {
  const Outcome page = weir({"help", "--man"});
  ASSERT_EQ(page.code, 0) << page.err;
  EXPECT_TRUE(page.out.starts_with(".TH WEIR 1 "));
  for (const char* part :
       {".SH NAME", ".SH SYNOPSIS", ".SS \"weir queues map", ".SH \"EXIT STATUS\"", ".SH \"ENVIRONMENT\""})
    EXPECT_TRUE(has(page.out, part)) << part;
  // A line that begins with a dot is a request: only those that we mean.
  static const std::regex kRequest(R"(\.(TH|SH|SS|PP|TP|IP|EX|EE|br|nh|ad)( .*)?)");
  for (const std::string& line : lines_of(page.out))
    EXPECT_TRUE(std::regex_match(line, kRequest) || line.find_first_of(".'") != 0) << line;
  if (run_program({"groff", "--version"}).code != 0) GTEST_SKIP() << "groff is not installed";
  const Folder folder;
  std::ofstream(folder / "weir.1") << page.out;
  const Outcome set = run_program({"groff", "-ww", "-man", "-Tascii", folder / "weir.1"});
  EXPECT_EQ(set.code, 0);
  EXPECT_EQ(set.err, "");
}

TEST(Version, says_which_build_this_is) {
  const auto lines = lines_of(weir({"--version"}).out);
  ASSERT_EQ(lines.size(), 3U);
  EXPECT_TRUE(std::regex_match(lines[0], std::regex(R"(weir \d+\.\d+\.\d+ \(([0-9a-f]{12}(-dirty)?|unknown)\))")))
      << lines[0];
  EXPECT_TRUE(lines[1].starts_with("with:"));
  EXPECT_TRUE(lines[2].starts_with("without:"));
  for (const char* part : {"cuda", "hip", "opencl", "mpi", "sqlite", "html"})
    EXPECT_TRUE(has(lines[1] + " ", std::string(" ") + part + " ") !=
                has(lines[2] + " ", std::string(" ") + part + " "))
        << part;
}

}  // namespace
}  // namespace weir::testing
