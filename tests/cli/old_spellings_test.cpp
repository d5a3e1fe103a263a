// Old spellings go on working, each with a line of advice: every row of the table (`weir help --old-spellings`).
#include <gtest/gtest.h>

#include <fstream>
#include <regex>

#include "base/json.h"
#include "cli/program.h"
#include "support/text.h"

namespace weir::testing {
namespace {

struct Row {
  std::string command, was, is;
};

std::vector<Row> rows() {
  static const std::regex kRow(R"((\S+(?: \S+)*)\s{2,}(\S+(?: \S+)*)\s{2,}(\S.*))");
  std::vector<Row> all;
  for (const std::string& line : lines_of(weir({"help", "--old-spellings"}).out)) {
    std::smatch match;
    EXPECT_TRUE(std::regex_match(line, match, kRow)) << line;
    if (!match.empty()) all.push_back({match[1], match[2], match[3]});
  }
  return all;
}

std::vector<std::string> words_of(const std::string& text) {
  std::vector<std::string> words;
  std::istringstream stream(text);
  for (std::string word; stream >> word;) words.push_back(word);
  return words;
}

// A command that has the new flag; rows for any command do not say which.
std::string command_of(const Row& row) {
  if (row.command != "(any)") return row.command;
  static const std::pair<const char*, const char*> kHomes[] = {{"--report", "analyze"},   {"--budget", "bench"},
                                                               {"--hang-timeout", "run"}, {"--time-limit", "bench"},
                                                               {"--threshold", "try"},    {"--until", "sweep"}};
  for (const auto& [flag, home] : kHomes)
    if (row.was.starts_with(flag)) return home;
  return "";
}

// "--budget N" with a value in place of N, and what it is now.
std::pair<std::string, std::string> sample(const Row& row) {
  const auto blank = row.was.find(' ');
  if (!row.was.starts_with("-")) return {row.was, "weir " + row.is};
  if (blank == std::string::npos) return {row.was + " 2", row.is};
  const std::string flag = row.was.substr(0, blank), value = row.was.substr(blank + 1);
  const std::string now = row.is.substr(0, row.is.find(' '));
  if (value == "N") return {flag + " 30", now + " 30" + row.is.substr(row.is.find(' ') + 2)};
  if (value == "F") return {flag + " 0.25", now + " 25%"};
  if (value == "PATH") return {flag + " no_such.json", now + " no_such.json"};
  const std::string choice = value.substr(0, value.find('|'));
  return {flag + " " + choice, value == choice ? now : now + " " + choice};
}

// An unknown flag behind the old one ends the program before it does anything, and shows that all the rest is known.
TEST(OldSpellings, every_row_is_understood_and_advised) {
  const std::vector<Row> all = rows();
  EXPECT_GT(all.size(), 30U);
  for (const Row& row : all) {
    const auto [was, is] = sample(row);
    std::vector<std::string> words = words_of(command_of(row));
    for (const std::string& word : words_of(was)) words.push_back(word);
    words.emplace_back("--no-such-flag");
    const Outcome outcome = weir(words);
    EXPECT_EQ(outcome.code, 2);
    EXPECT_TRUE(has(outcome.err, " is now ")) << row.was << ": " << outcome.err;
    EXPECT_TRUE(has(outcome.err, is) || has(outcome.err, "the argument " + row.is)) << row.was << ": " << outcome.err;
    EXPECT_TRUE(has(outcome.err, "unknown flag '--no-such-flag'")) << row.was << ": " << outcome.err;
    EXPECT_EQ(lines_of(outcome.err).size(), 3U) << "one line of advice, and the mistake: " << outcome.err;
  }
}

TEST(OldSpellings, new_ones_and_values_are_left_alone) {
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"run", "--param", "--report=json", "moe", "--no-such-flag"},
        {"try", "--timeout", "30s", "--threshold", "5%", "--no-such-flag", "--", "prog", "--report", "json"},
        {"analyze", "--format", "markdown", "a.json", "--no-such-flag"}}) {
    const Outcome outcome = weir(words);
    EXPECT_FALSE(has(outcome.err, "is now")) << outcome.err;
    EXPECT_TRUE(has(outcome.err, "'--no-such-flag'")) << outcome.err;
  }
}

TEST(OldSpellings, give_the_same_results) {
  const Folder folder;
  const std::vector<std::string> run = {"run", "moe", "--device", "sim:h200", "--scale", "tiny", "--iterations", "5"};
  for (const char* name : {"a.json", "b.json"}) {
    std::vector<std::string> words = run;
    words.insert(words.end(), {"-o", name, "-q"});
    ASSERT_EQ(weir(words, folder.path()).code, 0);
  }
  const Outcome now = weir({"compare", "a.json", "b.json", "--json"}, folder.path());
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"compare", "--baseline", "a.json", "--test", "b.json", "--format", "json"},
        {"compare", "--threshold=0.05", "--test=b.json", "--baseline=a.json", "--format=json"}}) {
    const Outcome before = weir(words, folder.path());
    EXPECT_EQ(before.code, now.code) << before.err;
    EXPECT_EQ(before.out, now.out);
    EXPECT_TRUE(has(before.err, "--baseline is now the argument BASELINE of weir compare\n")) << before.err;
  }
  const Outcome priority = weir({"run-priority", "P3", "--device", "sim:h200", "--scale", "tiny", "--iterations", "2",
                                 "--no-trace", "--output-dir", "p3", "--hang-timeout", "60"},
                                folder.path());
  EXPECT_EQ(priority.code, 0) << priority.err;
  EXPECT_TRUE(std::filesystem::exists(folder.path() / "p3"));
  for (const char* name : {"t.json", "u.json"})
    ASSERT_EQ(weir({"profile", "moe", "--device", "sim:h200", "--scale", "tiny", "-o", name, "-q"}, folder.path()).code,
              0);
  const std::pair<std::vector<std::string>, std::vector<std::string>> same[] = {
      {{"analyze", "t.json", "u.json", "--compare"}, {"compare", "t.json", "u.json"}},
      {{"analyze", "t.json", "u.json"}, {"compare", "t.json", "u.json"}},
      {{"amd", "compare", "t.json", "u.json"}, {"compare", "--queues", "t.json", "u.json"}}};
  for (const auto& [was, is] : same) {
    const Outcome old = weir(was, folder.path()), fresh = weir(is, folder.path());
    EXPECT_EQ(old.code, fresh.code) << old.err;
    EXPECT_EQ(old.out, fresh.out);
    EXPECT_TRUE(has(old.err, "weir compare")) << old.err;
    EXPECT_EQ(fresh.err, "");
  }
  EXPECT_EQ(weir({"report", "a.json", "--json", "page.json", "-q"}, folder.path()).code, 0);
  EXPECT_EQ(read_json(folder / "page.json")["schema"], "weir.report/2");
}

// A number may be seconds or milliseconds, a fraction or a percentage: flags that the table does not have say so.
TEST(OldSpellings, bare_numbers_are_refused_with_the_right_spelling) {
  const std::pair<std::vector<std::string>, const char*> lines[] = {
      {{"sched", "start", "--slice", "5"}, "Write --slice 5ms."},
      {{"queues", "convoy", "--device", "cpu", "--large-time", "500"}, "Write --large-time 500ms."},
      {{"compare", "a", "b", "--threshold", "5"}, "Write --threshold 5%."}};
  for (const auto& [words, hint] : lines) {
    const Outcome outcome = weir(words);
    EXPECT_EQ(outcome.code, 2);
    EXPECT_TRUE(has(outcome.err, hint)) << outcome.err;
  }
}

// Types of values, and helps that read alike.
TEST(Flags, say_what_they_take) {
  std::string command;
  for (const std::string& line : lines_of(weir({"help", "--markdown"}).out)) {
    if (line.starts_with("##")) command = line;
    if (!line.starts_with("| `-") && !line.starts_with("| `[")) continue;
    const std::string heading = line.substr(3, line.find('`', 3) - 3);
    EXPECT_TRUE(!has(heading, "TEXT") || heading == "--title TEXT") << command << ": " << heading;
    for (const char* other : {"FILE", " DIR", " TIME"}) EXPECT_FALSE(has(heading, other)) << command << ": " << heading;
    const std::string help = line.substr(line.find(" | ", line.find(" | ") + 3) + 3);
    EXPECT_FALSE(help.ends_with(". |") && !help.ends_with("... |")) << command << ": " << heading << ": " << help;
    const bool is_sentence = help.size() > 2 && std::isupper(help[0]) != 0 && std::islower(help[1]) != 0;
    const bool is_name = help.starts_with("Chrome") || help.starts_with("AMD");
    EXPECT_FALSE(is_sentence && !is_name) << command << ": " << heading << ": " << help;
  }
}

}  // namespace
}  // namespace weir::testing
