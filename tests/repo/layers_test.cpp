// Includes go one way: reads the table "| folder | may include |" in docs/architecture.md and checks every include in
// src/ against it. The table is the rule; this file only knows how to read it.
#include <gtest/gtest.h>

#include <algorithm>
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

// `run`, `device (device.h only)`, `base (measure also kernel for cost)`, `run (result types)`, `(standard library)`
void read_item(const std::string& item, const std::vector<std::string>& folders, Rules& rules) {
  static const std::regex shape(R"(^([a-z_]*)\s*(?:\((.*)\))?$)");
  static const std::regex only(R"(^(.+) only$)");
  static const std::regex also(R"(^([a-z_]+) also ([a-z_]+)\b.*$)");
  std::smatch match;
  if (item.empty()) return;
  if (!std::regex_match(item, match, shape)) throw std::runtime_error("cannot read '" + item + "' in the table");
  const std::string target = match[1];
  const std::string remark = match[2];
  std::set<std::string> files;
  if (std::smatch parts; std::regex_match(remark, parts, only)) {
    for (const auto& file : split(std::string(parts[1]), ',')) files.insert(file);
  } else if (std::regex_match(remark, parts, also)) {
    rules[parts[1]].files[parts[2]] = {};
  }
  if (target.empty()) return;
  for (const auto& folder : folders) rules[folder].files[target] = files;
}

// | stream | device (device.h only), channel, step, measure, base |
// | workload | step, kernel, base; **never** device, stream or queue |
// | kernel, channel, measure | base (measure also kernel for cost) |
// | run | everything above |
// | cli | everything |
Rules read_rules(const fs::path& document) {
  Rules rules;
  bool is_table = false;
  std::vector<std::string> above;
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
        } else if (item == "everything above") {
          for (const auto& folder : folders) {
            for (const auto& other : above) rules[folder].files[other] = {};
          }
        } else {
          read_item(item, folders, rules);
        }
      }
    }
    above.insert(above.end(), folders.begin(), folders.end());
  }
  if (rules.empty()) throw std::runtime_error(document.string() + " has no table '| folder | may include |'");
  for (const auto& [folder, rule] : rules) {
    for (const auto& [target, files] : rule.files) {
      if (!rules.contains(target)) throw std::runtime_error("the table allows an unknown folder '" + target + "'");
    }
  }
  return rules;
}

std::vector<std::string> broken_includes(const fs::path& root) {
  const Rules rules = read_rules(root / "docs/architecture.md");
  // #include "step/step.h", # include <step/step.h>; group 1 is empty for a header outside any folder
  static const std::regex include(R"re(^\s*#\s*include\s*["<](?:([^">]*)/)?([^"/>]+)[">].*$)re");
  std::vector<std::string> findings;
  for (const auto& folder : folders_in(root / "src")) {
    const auto own = rules.find(folder.filename());
    if (own == rules.end()) {
      findings.push_back("src/" + folder.filename().string() +
                         ": docs/architecture.md does not say what it may include");
      continue;
    }
    for (const auto& file : files_below(folder, {".h", ".cpp", ".cu", ".cuh"})) {
      const auto lines = read_lines(file);
      for (std::size_t i = 0; i < lines.size(); ++i) {
        std::smatch match;
        if (!std::regex_match(lines[i], match, include)) continue;
        const std::string target = match[1];
        const bool is_ours = rules.contains(target) || target.starts_with(".");
        if (!is_ours || target == own->first || own->second.everything) continue;
        const auto allowed = own->second.files.find(target);
        if (allowed != own->second.files.end() && (allowed->second.empty() || allowed->second.contains(match[2]))) {
          continue;
        }
        findings.push_back(fs::relative(file, root).string() + ":" + std::to_string(i + 1) + ": " +
                           std::string(trim(lines[i])) + " breaks the rule " + own->second.row);
      }
    }
  }
  return findings;
}

constexpr std::string_view kTable = R"(# Architecture

| folder | may include |
| --- | --- |
| base | (standard library) |
| kernel, channel, measure | base (measure also kernel for cost) |
| step | kernel, base |
| device | step, kernel, measure, base |
| stream | device (device.h only), channel, step, measure, base |
| workload | step, kernel, base; **never** device, stream or queue |
| run | everything above |
| report | measure, run (result types), base |
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
                                         Case{"src/measure/a.cpp", "//\n#include \"kernel/cost.h\"\n", true},
                                         Case{"src/channel/a.cpp", "//\n#include \"kernel/cost.h\"\n", false},
                                         Case{"src/stream/a.cpp", "//\n#include \"device/device.h\"\n", true},
                                         Case{"src/stream/a.cpp", "//\n#include \"device/gpu_api.h\"\n", false},
                                         Case{"src/device/a.cu", "//\n#include \"stream/placement.h\"\n", false},
                                         Case{"src/workload/a.cpp", "//\n#include \"step/step.h\"\n", true},
                                         Case{"src/workload/a.cpp", "//\n#include \"device/device.h\"\n", false},
                                         Case{"src/run/a.cpp", "//\n#include \"device/gpu_api.h\"\n", true},
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
