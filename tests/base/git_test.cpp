// A repository whose configuration names programs to run, by every way that git has: none of them may run.
#include "base/git.h"

#include <gtest/gtest.h>

#include <fstream>

#include "support/programs.h"

namespace weir {
namespace {

namespace fs = std::filesystem;
using testing::Folder;
using testing::Outcome;
using testing::run_program;

class HostileRepository : public ::testing::Test {
 protected:
  void SetUp() override {
    if (git({"--version"}).code != 0) GTEST_SKIP() << "git is not installed";
    ASSERT_EQ(git({"init", "-q", "-b", "main"}).code, 0);
    write("a.txt", "one\n");
    write("b.txt", "one\n");
    ASSERT_EQ(git({"add", "-A"}).code, 0);
    ASSERT_EQ(git({"commit", "-q", "-m", "first"}).code, 0);
    head_ = git({"rev-parse", "HEAD"}).out.substr(0, 40);
    // A submodule that is hostile too.
    fs::create_directories(folder_.path() / "sub");
    ASSERT_EQ(git({"init", "-q"}, "sub").code, 0);
    write("sub/c.txt", "one\n");
    ASSERT_EQ(git({"add", "c.txt"}, "sub").code, 0);
    ASSERT_EQ(git({"commit", "-q", "-m", "sub"}, "sub").code, 0);
    ASSERT_EQ(git({"add", "sub"}).code, 0);
    ASSERT_EQ(git({"commit", "-q", "-m", "second"}).code, 0);
    head_ = git({"rev-parse", "HEAD"}).out.substr(0, 40);

    write("evil", script());
    fs::permissions(folder_.path() / "evil", fs::perms::owner_all);
    for (const char* where : {".", "sub"}) {
      const std::string program = folder_ / "evil";
      for (const auto& [name, value] :
           std::vector<std::pair<std::string, std::string>>{{"core.fsmonitor", program},
                                                            {"core.hooksPath", folder_ / "hooks"},
                                                            {"core.pager", program},
                                                            {"pager.status", "true"},
                                                            {"core.editor", program},
                                                            {"core.sshCommand", program},
                                                            {"core.askPass", program},
                                                            {"core.gitProxy", program},
                                                            {"core.alternateRefsCommand", program},
                                                            {"diff.external", program},
                                                            {"diff.evil.command", program},
                                                            {"diff.evil.textconv", program},
                                                            {"merge.evil.driver", program},
                                                            {"filter.evil.clean", program},
                                                            {"filter.evil.smudge", program},
                                                            {"filter.evil.process", program},
                                                            {"filter.evil.required", "true"},
                                                            {"filter.a.b c.clean", program},
                                                            {"gpg.program", program},
                                                            {"log.showSignature", "true"},
                                                            {"credential.helper", "!" + program},
                                                            {"alias.status", "!" + program},
                                                            {"alias.rev-parse", "!" + program},
                                                            {"alias.config", "!" + program},
                                                            {"remote.origin.url", "ext::" + program},
                                                            {"remote.origin.uploadpack", program},
                                                            {"remote.origin.promisor", "true"},
                                                            {"remote.origin.vcs", "evil"},
                                                            {"extensions.partialClone", "origin"},
                                                            {"protocol.ext.allow", "always"},
                                                            {"protocol.allow", "always"},
                                                            {"submodule.recurse", "true"},
                                                            {"status.submoduleSummary", "true"},
                                                            {"diff.ignoreSubmodules", "none"}})
        ASSERT_EQ(git({"config", name, value}, where).code, 0) << name;
      ASSERT_EQ(git({"config", "core.repositoryFormatVersion", "1"}, where).code, 0);
    }
    for (const char* hook :
         {"post-index-change", "post-checkout", "pre-commit", "reference-transaction", "fsmonitor-watchman"}) {
      fs::create_directories(folder_.path() / "hooks");
      fs::copy_file(folder_ / "evil", folder_.path() / "hooks" / hook);
    }
    write(".gitattributes", "a.txt filter=evil diff=evil merge=evil\nb.txt filter=\"a.b c\"\n");
    write(".git/info/attributes", "* filter=evil diff=evil\n");
    write("sub/.git/info/attributes", "* filter=evil diff=evil\n");
    touch();
  }

  // Makes git look at the contents again.
  void touch() {
    for (const char* file : {"a.txt", "b.txt", "sub/c.txt"}) {
      write(file, "one\n");
      fs::last_write_time(folder_.path() / file, fs::file_time_type::clock::now() + std::chrono::hours(1));
    }
  }
  std::string script() const {
    return "#!/bin/sh\necho \"$0 $*\" >> " + (folder_ / "marker") + "\nexit 1\n";
  }
  bool has_run() const { return fs::exists(folder_.path() / "marker"); }
  Outcome git(std::vector<std::string> words, const std::string& below = ".") {
    words.insert(words.begin(), {"git", "-c", "user.name=n", "-c", "user.email=e@example.org"});
    return run_program(words, folder_.path() / below);
  }
  void write(const std::string& name, const std::string& text) { std::ofstream(folder_.path() / name) << text; }

  Folder folder_;
  std::string head_;
};

TEST_F(HostileRepository, runs_nothing_when_asked_for_its_commit) {
  const auto head = git_head(folder_.path());
  ASSERT_TRUE(head);
  EXPECT_EQ(head->commit, head_);
  EXPECT_EQ(head->branch, "main");
  EXPECT_FALSE(has_run());
}

TEST_F(HostileRepository, runs_nothing_when_asked_for_changes) {
  EXPECT_EQ(has_git_changes(folder_.path()), false);
  write("a.txt", "two\n");
  EXPECT_EQ(has_git_changes(folder_.path()), true);
  EXPECT_FALSE(has_run());
  // A name that cannot be switched off: no answer.
  ASSERT_EQ(git({"config", "filter.x=y.clean", folder_ / "evil"}).code, 0);
  write(".git/info/attributes", "* filter=x=y\n");
  EXPECT_EQ(has_git_changes(folder_.path()), std::nullopt);
  EXPECT_FALSE(has_run());
}

TEST_F(HostileRepository, fetches_nothing_that_is_missing) {
  const std::string blob = git({"rev-parse", "HEAD:a.txt"}).out.substr(0, 40);
  fs::remove(folder_.path() / ".git/objects" / blob.substr(0, 2) / blob.substr(2));
  EXPECT_FALSE(ask_git(folder_.path(), {"cat-file", "blob", "HEAD:a.txt"}).is_success());
  EXPECT_FALSE(has_run());
}

// Without this the others would prove nothing.
TEST_F(HostileRepository, would_run_its_programs_otherwise) {
  git({"status", "--porcelain"});
  EXPECT_TRUE(has_run());
}

TEST(Git, says_nothing_outside_of_a_repository) {
  const Folder folder;
  fs::create_directories(folder.path() / "below/.git");  // damaged, and above it is none that belongs to it
  EXPECT_FALSE(git_head(folder.path() / "none"));
  EXPECT_FALSE(has_git_changes(folder.path() / "none"));
}

}  // namespace
}  // namespace weir
