// Includes go one way: reads the table "| folder | may include |" in docs/architecture.md and checks every include in
// src/ against it, and the table against circles. The table is the rule; this file only knows how to read it.
#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <ostream>
#include <regex>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

#include "repo/tree.h"

namespace weir::repo {
namespace {

namespace fs = std::filesystem;

struct Rule {
  std::string row;                                     // as written, for messages
  bool everything = false;                             // also folders that the table does not name
  std::map<std::string, std::set<std::string>> files;  // folder -> files that may be included; none named: all
};

using Rules = std::map<std::string, Rule>;

bool is_below(const std::string& path, const std::string& folder) {
  return path == folder || path.starts_with(folder + "/");
}

// The row of a folder is that of the longest folder in the table that it is or lies in; empty where there is none.
std::string row_of(const Rules& rules, const std::string& path) {
  std::string longest;
  for (const auto& [folder, rule] : rules)
    if (is_below(path, folder) && folder.size() > longest.size()) longest = folder;
  return longest;
}

// `run`, `lab/queues`, `device (device.h only)`, `trace/*`, `(standard library)`
void read_item(const std::string& item, const std::vector<std::string>& folders, Rules& rules) {
  static const std::regex shape(R"(^([a-z_/]*)(\*?)\s*(?:\((.*)\))?$)");
  static const std::regex only(R"(^(.+) only$)");
  std::smatch match;
  if (item.empty()) return;
  if (!std::regex_match(item, match, shape)) throw std::runtime_error("cannot read '" + item + "' in the table");
  std::string target = match[1];
  const std::string remark = match[3];
  std::set<std::string> files;
  if (std::smatch parts; std::regex_match(remark, parts, only)) {
    for (const auto& file : split(std::string(parts[1]), ',')) files.insert(file);
  }
  if (target.empty()) return;
  std::vector<std::string> targets{target};
  if (match[2].length() > 0) {
    target.pop_back();
    targets.clear();
    for (const auto& [folder, rule] : rules)
      if (is_below(folder, target)) targets.push_back(folder);
    if (targets.empty()) throw std::runtime_error("the table allows an unknown folder '" + target + "'");
  }
  for (const auto& folder : folders)
    for (const auto& each : targets) rules[folder].files[each] = files;
}

// | submit | device (device.h only), channel, step, measure, base |
// | device/cpu, device/sim | device, base; **never** each other |
// | report | run, trace/*, base |
// | cli | everything |
Rules read_rules(const fs::path& document) {
  Rules rules;
  bool is_table = false;
  for (std::string line : read_lines(document)) {
    line = std::regex_replace(line, std::regex(R"(\*\*|`)"), "");
    if (std::regex_match(line, std::regex(R"(^\|\s*folder\s*\|\s*may include\s*\|\s*$)"))) {
      is_table = true;
      continue;
    }
    if (!is_table) continue;
    if (line.empty() || line[0] != '|') break;
    if (line.find_first_not_of("|-: ") == std::string::npos) continue;
    const auto cells = split(line, '|');
    if (cells.size() != 4) throw std::runtime_error("cannot read the row " + line);
    const auto folders = split(cells[1], ',');
    for (const auto& folder : folders) rules[folder].row = line;
    for (const auto& clause : split(cells[2], ';')) {
      // "never ..." repeats for people what the list already leaves out.
      if (clause.starts_with("never ")) continue;
      for (const auto& item : split(clause, ',')) {
        if (item == "everything") {
          for (const auto& folder : folders) rules[folder].everything = true;
        } else {
          read_item(item, folders, rules);
        }
      }
    }
  }
  if (rules.empty()) throw std::runtime_error(document.string() + " has no table '| folder | may include |'");
  for (const auto& [folder, rule] : rules) {
    for (const auto& [target, files] : rule.files) {
      if (!rules.contains(target)) throw std::runtime_error("the table allows an unknown folder '" + target + "'");
    }
  }
  return rules;
}

// Folders that the table lets include each other, by way of others too.
std::vector<std::string> circles(const Rules& rules) {
  std::map<std::string, std::set<std::string>> reached;
  for (const auto& [folder, rule] : rules)
    for (const auto& [target, files] : rule.files) reached[folder].insert(target);
  for (bool is_growing = true; is_growing;) {
    is_growing = false;
    for (auto& [folder, targets] : reached)
      for (const auto& target : std::set<std::string>(targets))
        for (const auto& next : reached[target]) is_growing = targets.insert(next).second || is_growing;
  }
  std::vector<std::string> findings;
  for (const auto& [folder, targets] : reached)
    if (targets.contains(folder))
      findings.push_back("docs/architecture.md lets " + folder + " include itself in a circle");
  return findings;
}

std::vector<std::string> broken_includes(const fs::path& root) {
  const Rules rules = read_rules(root / "docs/architecture.md");
  // #include "step/step.h", # include <step/step.h>; group 1 is empty for a header outside any folder
  static const std::regex include(R"re(^\s*#\s*include\s*["<](?:([^">]*)/)?([^"/>]+)[">].*$)re");
  std::vector<std::string> findings = circles(rules);
  for (const auto& file : files_below(root / "src", {".h", ".cpp", ".cu", ".cuh"})) {
    const std::string row = row_of(rules, fs::relative(file.parent_path(), root / "src").string());
    if (row.empty()) {
      findings.push_back(fs::relative(file, root).string() + ": docs/architecture.md does not say what it may include");
      continue;
    }
    const Rule& own = rules.at(row);
    const auto lines = read_lines(file);
    for (std::size_t i = 0; i < lines.size(); ++i) {
      std::smatch match;
      if (!std::regex_match(lines[i], match, include)) continue;
      const std::string path = match[1];
      const std::string target = row_of(rules, path);
      const bool is_ours = !target.empty() || path.starts_with(".") || fs::is_directory(root / "src" / path);
      if (path.empty() || !is_ours || target == row || own.everything) continue;
      const auto allowed = own.files.find(target);
      if (allowed != own.files.end() && (allowed->second.empty() || allowed->second.contains(match[2]))) continue;
      findings.push_back(fs::relative(file, root).string() + ":" + std::to_string(i + 1) + ": " +
                         std::string(trim(lines[i])) + " breaks the rule " + own.row);
    }
  }
  return findings;
}

constexpr std::string_view kTable = R"(# Architecture

| folder | may include |
| --- | --- |
| base | (standard library) |
| kernel, channel | base |
| measure | kernel (cost.h only), base |
| step | kernel, base |
| step/workload | step, kernel, base; **never** device |
| device | step, kernel, measure, base |
| device/cpu, device/sim | device, step, base; **never** each other |
| submit | device (device.h only), channel, step, measure, base |
| run | submit, device/*, step/*, measure, base |
| report | measure, run, base |
| cli | everything |

After the table.
)";

struct Case {
  std::string file;
  std::string text;
  bool is_allowed;

  friend void PrintTo(const Case& planted, std::ostream* out) { *out << planted.file << ": " << planted.text; }
};

class Layers : public testing::TestWithParam<Case> {};

TEST_P(Layers, table_decides) {
  const ScratchTree tree;
  tree.write("docs/architecture.md", kTable);
  tree.write(GetParam().file, GetParam().text);
  const auto findings = broken_includes(tree.root());
  ASSERT_EQ(findings.size(), GetParam().is_allowed ? 0U : 1U) << joined(findings);
  if (!GetParam().is_allowed) {
    EXPECT_TRUE(findings[0].starts_with(GetParam().file + ":2: ")) << findings[0];
    EXPECT_NE(findings[0].find("breaks the rule |"), std::string::npos) << findings[0];
  }
}

INSTANTIATE_TEST_SUITE_P(planted, Layers,
                         testing::Values(Case{"src/base/a.h", "//\n#include <vector>\n", true},
                                         Case{"src/base/a.h", "//\n#include \"base/error.h\"\n", true},
                                         Case{"src/base/a.h", "//\n#include \"weir_build.h\"\n", true},
                                         Case{"src/base/a.h", "//\n#include <nlohmann/json.hpp>\n", true},
                                         Case{"src/base/a.h", "//\n#include \"step/step.h\"\n", false},
                                         Case{"src/base/a.h", "//\n#  include <step/step.h>\n", false},
                                         Case{"src/base/a.h", "//\n#include \"../step/step.h\"\n", false},
                                         Case{"src/base/a.h", "//\n#include \"step/workload/moe.h\"\n", false},
                                         Case{"src/base/deep/a.h", "//\n#include \"step/step.h\"\n", false},
                                         Case{"src/base/deep/a.h", "//\n#include \"base/error.h\"\n", true},
                                         Case{"src/measure/a.cpp", "//\n#include \"kernel/cost.h\"\n", true},
                                         Case{"src/measure/a.cpp", "//\n#include \"kernel/kernel.h\"\n", false},
                                         Case{"src/channel/a.cpp", "//\n#include \"kernel/cost.h\"\n", false},
                                         Case{"src/submit/a.cpp", "//\n#include \"device/device.h\"\n", true},
                                         Case{"src/submit/a.cpp", "//\n#include \"device/plan.h\"\n", false},
                                         Case{"src/submit/a.cpp", "//\n#include \"device/cpu/bell.h\"\n", false},
                                         Case{"src/device/a.cu", "//\n#include \"submit/placement.h\"\n", false},
                                         Case{"src/device/a.cpp", "//\n#include \"device/cpu/bell.h\"\n", false},
                                         Case{"src/device/cpu/a.cpp", "//\n#include \"device/plan.h\"\n", true},
                                         Case{"src/device/cpu/a.cpp", "//\n#include \"device/sim/a.h\"\n", false},
                                         Case{"src/step/workload/a.cpp", "//\n#include \"step/step.h\"\n", true},
                                         Case{"src/step/a.cpp", "//\n#include \"step/workload/a.h\"\n", false},
                                         Case{"src/step/workload/a.cpp", "//\n#include \"device/device.h\"\n", false},
                                         Case{"src/run/a.cpp", "//\n#include \"device/cpu/bell.h\"\n", true},
                                         Case{"src/run/a.cpp", "//\n#include \"report/console.h\"\n", false},
                                         Case{"src/report/a.cpp", "//\n#include \"run/result.h\"\n", true},
                                         Case{"src/report/a.cpp", "//\n#include \"device/device.h\"\n", false},
                                         Case{"src/cli/a.cpp", "//\n#include \"report/console.h\"\n", true}),
                         // base_0, base_1 ...: without a name of ours, GoogleTest prints the bytes of the case.
                         [](const testing::TestParamInfo<Case>& info) {
                           return fs::path(info.param.file).parent_path().filename().string() + "_" +
                                  std::to_string(info.index);
                         });

TEST(Layers, reports_a_folder_outside_the_table) {
  const ScratchTree tree;
  tree.write("docs/architecture.md", kTable);
  tree.write("src/util/a.h", "//\n");
  EXPECT_EQ(broken_includes(tree.root()).size(), 1U);
}

TEST(Layers, reports_circles_in_the_table) {
  const ScratchTree tree;
  tree.write("docs/architecture.md",
             "| folder | may include |\n| --- | --- |\n| base | step |\n| step | kernel |\n| kernel | base |\n");
  EXPECT_EQ(broken_includes(tree.root()).size(), 3U) << joined(broken_includes(tree.root()));
}

TEST(Layers, refuses_a_missing_or_unreadable_table) {
  const ScratchTree tree;
  EXPECT_THROW(broken_includes(tree.root()), std::runtime_error);
  tree.write("docs/architecture.md", "no table\n");
  EXPECT_THROW(broken_includes(tree.root()), std::runtime_error);
  tree.write("docs/architecture.md", "| folder | may include |\n| --- | --- |\n| base | the world |\n");
  EXPECT_THROW(broken_includes(tree.root()), std::runtime_error);
  tree.write("docs/architecture.md", "| folder | may include |\n| --- | --- |\n| base | nonsense |\n");
  EXPECT_THROW(broken_includes(tree.root()), std::runtime_error);
}

TEST(Layers, includes_go_one_way) {
  const auto findings = broken_includes(WEIR_SOURCE_DIR);
  EXPECT_TRUE(findings.empty()) << joined(findings);
}

}  // namespace
}  // namespace weir::repo
