// Baselines by file, folder and git ref: each way that there is none has its own words and is bad input (exit 2).
#include <gtest/gtest.h>

#include "base/error.h"
#include "lab/kernels/folder.h"
#include "support/programs.h"
#include "support/text.h"

namespace weir::testing {
namespace {

namespace fs = std::filesystem;

Outcome git(const fs::path& folder, std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(),
                   {"git", "-c", "user.name=Nobody", "-c", "user.email=nobody@example.com", "-C", folder.string()});
  return run_program(arguments);
}

// A repository whose branch `main` has reports/summary.json and whose tag `bare` has none.
class BenchBaseline : public ::testing::Test {
 protected:
  void SetUp() override {
    if (run_program({"git", "--version"}).code != 0) GTEST_SKIP() << "git is not installed";
    ASSERT_EQ(git(folder_.path(), {"init", "-q", "-b", "main"}).code, 0);
    put_file(folder_.path() / "README", "x");
    commit("nothing yet");
    ASSERT_EQ(git(folder_.path(), {"tag", "bare"}).code, 0);
    put_file(reports() / "summary.json", R"({"schema": "weir.bench/2", "cases": [], "mark": "committed"})");
    commit("reports");
    put_file(reports() / "summary.json", R"({"schema": "weir.bench/2", "cases": [], "mark": "newer"})");
  }
  void commit(const char* message) {
    ASSERT_EQ(git(folder_.path(), {"add", "-A"}).code, 0);
    ASSERT_EQ(git(folder_.path(), {"commit", "-q", "-m", message}).code, 0);
  }
  fs::path reports() const { return folder_.path() / "reports"; }
  // What it is rejected with.
  std::string words(const std::string& what, const fs::path& output_dir) {
    try {
      bench::load_baseline(what, output_dir);
    } catch (const Error& error) {
      EXPECT_EQ(error.fault, Fault::input);
      return error.what() + (" | " + error.hint);
    }
    return "accepted";
  }
  bool says(const std::string& text, const std::string& part) {
    const bool found = text.find(part) != std::string::npos;
    if (!found) ADD_FAILURE() << "'" << part << "' is not in: " << text;
    return found;
  }

  Folder folder_;
};

TEST_F(BenchBaseline, a_ref_gives_what_was_committed_there) {
  EXPECT_EQ(bench::load_baseline("main", reports())["mark"], "committed");
  EXPECT_EQ(bench::load_baseline("HEAD~0", reports())["mark"], "committed");
  EXPECT_EQ(bench::load_baseline("refs/heads/main", reports())["mark"], "committed");
  // The folder need not be there now.
  fs::remove_all(reports());
  EXPECT_EQ(bench::load_baseline("main", reports())["mark"], "committed");
}

// As --output-dir is typed: below the current folder, and not there yet.
TEST_F(BenchBaseline, the_folder_may_be_relative_and_yet_to_be_made) {
  fs::remove_all(reports());
  const fs::path before = fs::current_path();
  fs::current_path(folder_.path());
  const std::string found = words("main", "reports"), deeper = words("main", "not/yet");
  fs::current_path(before);
  EXPECT_EQ(found, "accepted");
  says(deeper, "has no not/yet/summary.json");
}

TEST_F(BenchBaseline, a_file_or_folder_comes_before_a_ref) {
  EXPECT_EQ(bench::load_baseline(reports().string(), reports())["mark"], "newer");
  EXPECT_EQ(bench::load_baseline((reports() / "summary.json").string(), reports())["mark"], "newer");
  says(words(folder_.path().string(), reports()), "has no summary.json");
}

TEST_F(BenchBaseline, each_way_to_have_none_has_its_words) {
  says(words("bare", reports()), "has no reports/summary.json");
  says(words("main", folder_.path() / "elsewhere"), "has no elsewhere/summary.json");
  says(words("no-such-branch", reports()), "nor a branch, tag or commit");
  const Folder outside;
  says(words("main", outside.path()), "is not in a git repository");
}

// As actions/checkout leaves it: one commit of another branch, and nothing of main.
TEST_F(BenchBaseline, a_shallow_checkout_says_what_to_type) {
  ASSERT_EQ(git(folder_.path(), {"checkout", "-q", "-b", "topic"}).code, 0);
  commit("a topic");
  const Folder elsewhere;
  const fs::path clone = elsewhere.path() / "clone";
  const std::string origin = "file://" + folder_.path().string();
  ASSERT_EQ(git(folder_.path(), {"clone", "-q", "--depth", "1", "--branch", "topic", origin, clone.string()}).code, 0);
  const std::string refused = words("main", clone / "reports");
  says(refused, "which is a shallow checkout");
  says(refused, "git fetch --depth 1 origin +main:refs/remotes/origin/main");
  ASSERT_EQ(git(clone, {"fetch", "-q", "--depth", "1", "origin", "+main:refs/remotes/origin/main"}).code, 0);
  EXPECT_EQ(bench::load_baseline("main", clone / "reports")["mark"], "committed");
}

TEST_F(BenchBaseline, what_is_no_ref_never_reaches_git) {
  for (const char* bad :
       {"", "--help", "-c core.pager=x", "main:reports/summary.json", "a..b", "main; ls", "a\nb", "$(id)", "\x1b[2J"})
    says(words(bad, reports()), "nor the name of a git ref");
  says(words(std::string(10'000, 'a'), reports()), "nor the name of a git ref");
}

TEST_F(BenchBaseline, what_is_no_json_is_named_by_ref_and_path) {
  put_file(reports() / "summary.json", "{\"schema\": ");
  commit("broken");
  says(words("main", reports()), "main:reports/summary.json");
}

TEST_F(BenchBaseline, without_git_it_says_so) {
  const Folder empty;
  const char* const path = std::getenv("PATH");
  const std::string kept = path == nullptr ? "" : path;
  ::setenv("PATH", empty.path().c_str(), 1);
  const std::string found = words("main", reports());
  ::setenv("PATH", kept.c_str(), 1);
  says(found, "git, which could look for a ref of that name, cannot be started");
}

}  // namespace
}  // namespace weir::testing
