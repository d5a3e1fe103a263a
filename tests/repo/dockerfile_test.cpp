// What hadolint would say of the Dockerfile, for the rules that matter here: no container engine is needed to know it.
#include <gtest/gtest.h>

#include <filesystem>
#include <regex>
#include <set>
#include <string>
#include <vector>

#include "repo/tree.h"

namespace weir::repo {
namespace {

struct Instruction {
  std::string name, rest;
};

std::vector<Instruction> instructions_of(const std::vector<std::string>& lines) {
  std::vector<Instruction> found;
  std::string pending;
  for (const std::string& line : lines) {
    if (pending.empty() && (line.empty() || line[0] == '#')) continue;
    const bool goes_on = line.ends_with("\\");
    pending += goes_on ? line.substr(0, line.size() - 1) : line;
    if (goes_on) continue;
    const std::size_t space = pending.find(' ');
    found.push_back({pending.substr(0, space), space == std::string::npos ? "" : pending.substr(space + 1)});
    pending.clear();
  }
  return found;
}

bool has(const std::string& text, const char* pattern) { return std::regex_search(text, std::regex(pattern)); }

std::vector<std::string> complaints(const std::vector<std::string>& lines) {
  std::vector<std::string> found;
  std::set<std::string> stages;
  std::string user = "root";
  for (const auto& [name, rest] : instructions_of(lines)) {
    if (name == "FROM") {
      std::smatch match;
      std::regex_match(rest, match, std::regex(R"((\S+)(?: AS (\S+))?)"));
      const std::string base = match[1];
      const bool is_stage = base.find("${VARIANT}") != std::string::npos || stages.contains(base);
      if (!is_stage && !has(base, R"(:[0-9][^:]*$)")) found.push_back("DL3006, DL3007: a version of " + base);
      if (match[2].matched && !stages.insert(match[2]).second) found.push_back("DL3024: two stages " + match[2].str());
      user = "root";
    }
    if (name == "USER") user = rest;
    if (name == "ADD") found.push_back("DL3020: COPY instead of ADD");
    if (name == "WORKDIR" && rest[0] != '/') found.push_back("DL3000: an absolute WORKDIR");
    if ((name == "ENTRYPOINT" || name == "CMD") && rest[0] != '[') found.push_back("DL3025: JSON for " + name);
    if (name != "RUN") continue;
    if (has(rest, R"(\b(sudo|cd|apt) )")) found.push_back("DL3003, DL3004, DL3027: sudo, cd or apt in " + rest);
    if (has(rest, R"( \| )")) found.push_back("DL4006: a pipe in " + rest);
    if (has(rest, "apt-get install") && !has(rest, "apt-get install -y --no-install-recommends"))
      found.push_back("DL3014, DL3015: -y --no-install-recommends in " + rest);
    if (has(rest, "apt-get|setup\\.sh") && !has(rest, "rm -rf [^&]*/var/lib/apt/lists"))
      found.push_back("DL3009: package lists stay after " + rest);
    if (has(rest, "apt-get install") && !has(rest, "apt-get update")) found.push_back("DL3009: no update in " + rest);
  }
  if (user == "root") found.push_back("DL3002: the program runs as root");
  return found;
}

TEST(Dockerfile, finds_planted_violations) {
  for (const char* line :
       {"FROM debian", "FROM debian:latest", "ADD a b", "WORKDIR here", "CMD weir info", "RUN sudo true", "RUN a | b",
        "RUN apt-get update && apt-get install -y g++ && rm -rf /var/lib/apt/lists/*",
        "RUN apt-get update && apt-get install -y --no-install-recommends g++", "USER root"})
    EXPECT_EQ(complaints({"FROM debian:12", "USER weir", line, line == std::string_view("USER root") ? "" : "USER weir"})
                  .size(),
              1u)
        << line;
  EXPECT_TRUE(complaints({"FROM debian:12 AS a", "FROM a", "RUN true \\", "  && false", "USER weir"}).empty());
}

TEST(Dockerfile, follows_the_rules) {
  const auto lines = read_lines(std::filesystem::path(WEIR_SOURCE_DIR) / "Dockerfile");
  ASSERT_GT(instructions_of(lines).size(), 10u);
  EXPECT_TRUE(complaints(lines).empty()) << joined(complaints(lines));
}

}  // namespace
}  // namespace weir::repo
