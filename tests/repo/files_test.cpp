// Files are opened in one place: base/file.cpp knows about links, pipes, full disks and locks. Finds those who go
// around it.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <map>
#include <regex>
#include <string>
#include <vector>

#include "repo/tree.h"

namespace weir::repo {
namespace {

namespace fs = std::filesystem;

// Each with its reason.
const std::map<std::string, std::string>& allowed() {
  static const std::map<std::string, std::string> kAllowed = {
      {"src/base/file.cpp", "it is the place"},
      {"src/base/console.cpp", "puts /dev/null where standard streams are closed"},
      {"src/base/stop.cpp", "removes folders in a signal handler, where nothing else may be called"},
      {"src/base/process.cpp", "opens /dev/null between fork() and exec(), where nothing may be allocated"},
      {"src/amd/capture/capture_folder.cpp",
       "opens relative to a folder that it holds, which others may move meanwhile"},
      {"src/amd/capture/process_log.cpp", "opens below another process's root, which must not lead to files of ours"},
      {"src/submit/inject/process.cpp", "lives in other people's programs, where nothing may throw"},
      {"src/submit/inject/program_stacks.cpp", "lives in other people's programs, where nothing may throw"},
      {"src/submit/sched/listener.cpp", "its lock stays beside the socket, and must be the user's own"},
      {"src/submit/sched/mps_server.cpp", "locks a folder, which is not read"},
  };
  return kAllowed;
}

std::vector<std::string> file_findings(const fs::path& root) {
  // ::open(, open("...", O_, std::fopen(, std::ifstream file, mkstemp(, creat(, openat(, freopen(, tmpfile(
  static const std::regex opening(R"((^|[^\w:>.])::(open|open64|openat|openat2|creat)\()"
                                  R"(|(^|[^\w:>.])(open|openat|creat)\([^)]*\bO_(RDONLY|WRONLY|RDWR|CREAT)\b)"
                                  R"(|\b(fopen|fopen64|freopen|tmpfile|tmpnam|mkstemp|mkostemp|mkstemps|mktemp)\s*\()"
                                  R"(|\bSYS_open(at2?)?\b)"
                                  R"(|\b(basic_)?[io]?(fstream|filebuf)\b)");
  std::vector<std::string> findings;
  for (const auto& file : files_below(root / "src", {".h", ".cpp", ".cu", ".cuh"})) {
    const std::string name = fs::relative(file, root).string();
    if (allowed().contains(name)) continue;
    const auto lines = read_lines(file);
    const auto has_word = [](const std::string& line) {  // saves most of the time
      static constexpr std::array kWords = {"open", "creat", "tmp", "temp", "stream", "filebuf"};
      return std::any_of(kWords.begin(), kWords.end(), [&](const char* word) { return line.find(word) != line.npos; });
    };
    for (std::size_t i = 0; i < lines.size(); ++i)
      if (has_word(lines[i]) && !trim(lines[i]).starts_with("//") && std::regex_search(lines[i], opening))
        findings.push_back(name + ":" + std::to_string(i + 1) + ": use base/file.h: " + std::string(trim(lines[i])));
  }
  return findings;
}

TEST(Files, are_opened_in_one_place) {
  EXPECT_TRUE(file_findings(WEIR_SOURCE_DIR).empty()) << joined(file_findings(WEIR_SOURCE_DIR));
}

TEST(Files, the_exceptions_are_still_there) {
  for (const auto& [name, reason] : allowed())
    EXPECT_TRUE(fs::exists(fs::path(WEIR_SOURCE_DIR) / name)) << name << " is gone, and needs no exception";
}

TEST(Files, finds_planted_violations) {
  for (const std::string line :
       {"const int file = ::open(path.c_str(), O_RDONLY);", "  file_(open(path, O_RDONLY | O_CLOEXEC)) {}",
        "Descriptor file(::openat(folder, name, O_WRONLY));", "std::FILE* file = std::fopen(name, \"r\");",
        "auto* file = fopen (name, \"r\");", "std::ifstream in(path);", "std::ofstream(path) << text;",
        "#include <fstream>", "std::basic_ofstream<char> out;", "std::filebuf bytes;", "int f = mkstemp(name.data());",
        "f = ::mkostemp(name.data(), O_CLOEXEC);", "f = ::creat(name, 0644);",
        "syscall(SYS_openat, AT_FDCWD, name, 0);", "std::FILE* file = std::tmpfile();"}) {
    const ScratchTree tree;
    tree.write("src/cli/a.cpp", "// Owns a.\n" + line + "\n");
    EXPECT_EQ(file_findings(tree.root()).size(), 1u) << line;
    tree.write("src/cli/a.cpp", "// Owns a.\n");
    tree.write("src/base/file.cpp", line + "\n");
    EXPECT_TRUE(file_findings(tree.root()).empty()) << line;
  }
}

TEST(Files, other_things_may_be_called_open) {
  const ScratchTree tree;
  tree.write("src/cli/a.cpp",
             "// Owns a: once ::open(path) did.\n"
             "report.open(\"{} files\", count);\n"
             "const auto device = type->open(name, {});\n"
             "auto blas = OpenclBlas::open();\n"
             "bool start() { return open(Json::array()); }\n"
             "const Descriptor file = open_regular(path);\n"
             "const Descriptor more = open_kernel_file(path, O_RDONLY | O_NONBLOCK);\n"
             "std::istringstream text(read_kernel_file(path));\n");
  EXPECT_TRUE(file_findings(tree.root()).empty()) << joined(file_findings(tree.root()));
}

}  // namespace
}  // namespace weir::repo
