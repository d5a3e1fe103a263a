// One mechanism stops this program (src/base/stop.h). Finds sources that handle signals beside it; those below have a
// reason.
#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <regex>
#include <string>
#include <vector>

#include "repo/tree.h"

namespace weir::repo {
namespace {

namespace fs = std::filesystem;

const std::map<std::string, std::string> kAllowed = {
    {"src/base/stop.cpp", "the mechanism"},
    {"src/base/console.cpp", "a closed pipe and a full disk are write errors"},
    {"src/base/process.cpp", "a child gets defaults back"},
    {"src/base/user_program.cpp", "signals go to a program of the user, which decides"},
    {"src/amd/kfd/resume_guard.cpp", "queues must be resumed also where the program crashes"},
    {"src/lab/watch/screen.cpp", "the terminal must be given back also where the program crashes"},
    {"src/run/host_stacks.cpp", "interrupts threads for their stacks"},
    {"src/submit/inject/program_stacks.cpp", "interrupts threads of other people's programs for their stacks"},
    {"src/cli/bench.cpp", "a limit on file sizes is a write error"},
    {"src/cli/sched_start.cpp", "a daemon outlives its terminal"},
};

std::vector<std::string> signal_findings(const fs::path& root) {
  static const std::regex call(R"((^|[^\w.>:])(::|std::)?(sigaction|signal|sigset|bsd_signal|signalfd)\s*\()");
  std::vector<std::string> findings;
  for (const fs::path& file : files_below(root / "src", {".h", ".cpp"})) {
    const std::string name = fs::relative(file, root).string();
    if (kAllowed.contains(name)) continue;
    const std::vector<std::string> lines = read_lines(file);
    for (std::size_t i = 0; i < lines.size(); ++i) {
      const std::string_view text = trim(lines[i]);
      if (text.find("sig") == std::string_view::npos || text.starts_with("//") || text.starts_with("int signal(") ||
          text.starts_with("void signal("))
        continue;
      if (std::regex_search(lines[i], call))
        findings.push_back(name + ":" + std::to_string(i + 1) +
                           ": use catch_interrupts() (base/stop.h): " + std::string(text));
    }
  }
  return findings;
}

TEST(Signals, planted_handlers_are_found) {
  for (const char* line : {"  std::signal(SIGINT, SIG_DFL);", "  ::signal(SIGTERM, on_term);",
                           "signal(SIGHUP, SIG_IGN);", "  if (sigaction(SIGINT, &action, nullptr) != 0) return;"}) {
    const ScratchTree tree;
    tree.write("src/run/a.cpp", std::string("// Owns a.\n") + line + "\n");
    EXPECT_EQ(signal_findings(tree.root()).size(), 1U) << line;
  }
  const ScratchTree tree;
  tree.write("src/run/a.cpp",
             "// signal(2) explains\n  process_->signal(SIGTERM);\n  void signal(int number) const;\n");
  EXPECT_TRUE(signal_findings(tree.root()).empty()) << joined(signal_findings(tree.root()));
}

TEST(Signals, are_handled_in_one_place) {
  for (const auto& [file, reason] : kAllowed)
    EXPECT_TRUE(fs::exists(fs::path(WEIR_SOURCE_DIR) / file)) << file << ": " << reason;
  const auto findings = signal_findings(WEIR_SOURCE_DIR);
  EXPECT_TRUE(findings.empty()) << joined(findings);
}

}  // namespace
}  // namespace weir::repo
