// Standard output and standard error are written in one place, src/base/console.cpp: elsewhere a write could throw, end
// the program, or lose its error.
#include <gtest/gtest.h>

#include <filesystem>
#include <regex>
#include <string>
#include <utility>
#include <vector>

#include "repo/tree.h"

namespace weir::repo {
namespace {

namespace fs = std::filesystem;

// Files, or folders, that may do it themselves, and why.
const std::vector<std::pair<std::string, std::string>> kMayWrite = {
    {"src/base/console.cpp", "the one place"},
    {"src/base/stop.cpp", "says so in a signal handler, where nothing else may be called"},
    {"src/submit/inject/", "lives in other people's programs, without libraries of its own"},
    {"src/lab/watch/screen.cpp", "hands the terminal to ncurses, and restores it in a signal handler"},
    {"src/cli/hang.cpp", "must not wait for a thread that is stuck in writing standard output"},
};

// The line without text in quotes and without comments.
std::string code_of(const std::string& line) {
  static const std::regex quoted(R"("([^"\\]|\\.)*"|'([^'\\]|\\.)*')");
  const std::string code = std::regex_replace(line, quoted, "\"\"");
  return code.substr(0, code.find("//"));
}

// std::regex takes a minute for all lines of the tree.
bool may_match(const std::string& line) {
  for (const char* const part : {"print", "std::c", "put", "fwrite", "fflush", "perror", "stdout", "stderr", "STD"})
    if (line.find(part) != std::string::npos) return true;
  return false;
}

std::vector<std::string> stream_findings(const fs::path& root) {
  static const std::regex writes(
      R"(\b(fmt::v?print|std::cout|std::cerr|std::clog|v?f?printf|v?dprintf|f?puts|f?putc|putchar|fwrite|fflush|perror)"
      R"(|stdout|stderr)\b|\bwrite(_all)?\(\s*STD(OUT|ERR)_FILENO)");
  std::vector<std::string> findings;
  for (const auto& file : files_below(root / "src", {".h", ".cpp"})) {
    const std::string name = fs::relative(file, root).string();
    bool may_write = false;
    for (const auto& [place, why] : kMayWrite) may_write = may_write || name.starts_with(place);
    if (may_write) continue;
    const auto lines = read_lines(file);
    static const std::regex raw("R\"([a-z]*)\\(");
    std::string raw_end;  // within a raw string, which may say anything: what ends it
    for (std::size_t i = 0; i < lines.size(); ++i) {
      std::smatch begin;
      if (!raw_end.empty()) {
        if (lines[i].find(raw_end) != std::string::npos) raw_end.clear();
      } else if (lines[i].find("R\"") != std::string::npos && std::regex_search(lines[i], begin, raw)) {
        raw_end = ")" + begin[1].str() + "\"";
        if (begin.suffix().str().find(raw_end) != std::string::npos) raw_end.clear();
      } else if (may_match(lines[i]) && std::regex_search(code_of(lines[i]), writes)) {
        findings.push_back(name + ":" + std::to_string(i + 1) + ": use base/console.h: " + std::string(trim(lines[i])));
      }
    }
  }
  return findings;
}

TEST(Streams, PlantedWritesAreFound) {
  const std::vector<std::string> planted = {
      "fmt::print(\"{}\", 1);",         "std::cout << 1;", "std::cerr << 1;",      "std::printf(\"1\");",
      "std::fprintf(stderr, \"1\");",   "puts(\"1\");",    "std::fflush(stdout);", "::write(STDERR_FILENO, \"1\", 1);",
      "write_all(STDOUT_FILENO, text);"};
  for (const std::string& line : planted) {
    const ScratchTree tree;
    tree.write("src/base/a.cpp", "// Owns a.\nvoid f() { " + line + " }\n");
    EXPECT_EQ(stream_findings(tree.root()).size(), 1U) << line;
  }
  const ScratchTree tree;
  tree.write(
      "src/base/a.cpp",
      "// Prints to stdout.\nconst char* a = \"stderr\";\nstd::snprintf(text, 1, \"\");\nisatty(STDERR_FILENO);\n");
  tree.write("src/submit/inject/a.cpp", "std::fputs(\"a\", stderr);\n");
  EXPECT_TRUE(stream_findings(tree.root()).empty()) << joined(stream_findings(tree.root()));
}

TEST(Streams, SourcesWriteThemInOnePlace) {
  const auto findings = stream_findings(WEIR_SOURCE_DIR);
  EXPECT_TRUE(findings.empty()) << joined(findings);
  for (const auto& [place, why] : kMayWrite)
    EXPECT_TRUE(fs::exists(fs::path(WEIR_SOURCE_DIR) / place)) << place << " is no exception any more";
}

}  // namespace
}  // namespace weir::repo
