// What signals do to a process that catches them: forks that stand for it, so that no test depends on time.
#include "base/stop.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <functional>

#include "base/private_folder.h"
#include "base/process.h"
#include "support/programs.h"

namespace weir {
namespace {

namespace fs = std::filesystem;
using testing::Folder;
using testing::wait_for;

// A copy of this process that runs `body` and nothing else.
pid_t forked(const std::function<void()>& body) {
  const pid_t child = ::fork();
  if (child != 0) return child;
  ::signal(SIGHUP, SIG_DFL);  // as the tests' starter may have been under nohup
  body();
  ::_exit(0);
}

TEST(Stop, the_first_of_each_signal_only_asks) {
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGUSR1})
    EXPECT_EQ(wait_for(forked([&] {
                const std::atomic<bool>& is_asked = catch_interrupts();
                if (is_asked || first_interrupt() != 0) ::_exit(1);
                ::raise(signal);
                ::_exit(is_asked ? first_interrupt() : 2);
              })),
              signal);
}

TEST(Stop, an_ignored_hangup_stays_ignored) {
  EXPECT_EQ(wait_for(forked([] {
              ::signal(SIGHUP, SIG_IGN);
              const std::atomic<bool>& is_asked = catch_interrupts();
              ::raise(SIGHUP);
              if (is_asked) ::_exit(1);
              // Children have it ignored, too.
              ProcessOptions options;
              options.command = {"sh", "-c", "kill -HUP $$; exit 7"};
              Process child(std::move(options));
              ::_exit(child.finish(60).code());
            })),
            7);
}

TEST(Stop, the_second_ends_a_process_that_does_not_end_by_itself) {
  for (const int signal : {SIGINT, SIGTERM, SIGHUP})
    EXPECT_EQ(wait_for(forked([&] {
                catch_interrupts();
                ::raise(signal);
                ::raise(SIGTERM);
                for (;;) ::pause();
              })),
              128 + signal);
}

// It may still save: what sends a signal twice (timeout, a shell whose terminal was closed) must not lose anything.
TEST(Stop, the_second_leaves_time_to_save) {
  EXPECT_EQ(wait_for(forked([] {
              catch_interrupts();
              ::raise(SIGHUP);
              ::raise(SIGHUP);
              ::_exit(5);
            })),
            5);
}

TEST(Stop, sigusr1_may_repeat) {
  EXPECT_EQ(wait_for(forked([] {
              catch_interrupts();
              for (int i = 0; i < 5; ++i) ::raise(SIGUSR1);
              ::_exit(first_interrupt() == SIGUSR1 ? 5 : 1);
            })),
            5);
}

TEST(Stop, later_ones_are_only_counted_on_request) {
  EXPECT_EQ(wait_for(forked([] {
              const std::atomic<int>& count = count_interrupts();
              for (int i = 0; i < 3; ++i) ::raise(SIGINT);
              ::_exit(count);
            })),
            3);
}

// Between fork() and exec() handlers are still the parent's, but what they know is not for the child.
TEST(Stop, a_fork_ends_by_itself_alone) {
  EXPECT_EQ(wait_for(forked([] {
              const std::atomic<bool>& is_asked = catch_interrupts();
              ProcessOptions options;
              options.command = {"sleep", "1000"};
              const Process other(std::move(options));
              ::raise(SIGINT);
              const pid_t child = ::fork();
              if (child == 0) {
                ::raise(SIGTERM);
                ::_exit(1);
              }
              if (wait_for(child) != 128 + SIGTERM || !is_asked) ::_exit(2);
              const auto facts = facts_of(other.id());
              ::_exit(facts && !facts->is_ended() ? 5 : 3);
            })),
            5);
}

TEST(Stop, an_end_that_is_stuck_ends) {
  EXPECT_EQ(wait_for(forked([] {
              catch_interrupts();
              call_when_cut([]() noexcept {
                for (;;) ::pause();
              });
              ::raise(SIGHUP);
              ::raise(SIGHUP);
              for (;;) ::pause();
            })),
            128 + SIGHUP);
}

// Threads may be stuck anywhere, holding anything: the handler itself cleans up.
TEST(Stop, the_end_leaves_no_files_and_no_processes) {
  const Folder folder;
  // Orphans come here, so that their end can be awaited.
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);
  const pid_t process = forked([&] {
    catch_interrupts();
    ::setenv("TMPDIR", folder.path().c_str(), 1);
    const PrivateFolder gone, kept_folder;
    const_cast<PrivateFolder&>(kept_folder).keep();
    fs::create_directories(gone.path() / "a/b/c");
    for (int i = 0; i < 300; ++i) std::ofstream(gone.path() / "a" / (std::to_string(i) + std::string(50, 'x'))) << i;
    fs::create_symlink(kept_folder.path(), gone.path() / "a/b/link");
    std::ofstream(kept_folder.path() / "kept") << "kept";
    std::ofstream(folder / "half.tmp") << "half";
    std::ofstream(folder / "saved") << "saved";
    const RemovedWhenCut half(folder / "half.tmp");
    {
      const RemovedWhenCut finished(folder / "saved");
    }
    ProcessOptions options;
    options.command = {"sh", "-c", "trap '' TERM; sleep 1000 & echo $! > \"$0\"; wait", folder / "grandchild"};
    const Process child(std::move(options));
    while (!fs::exists(folder / "grandchild") || fs::file_size(folder / "grandchild") == 0) ::usleep(1000);
    for (int i = 0; i < 3; ++i) ::raise(SIGTERM);
  });
  EXPECT_EQ(wait_for(process), 128 + SIGTERM);
  pid_t grandchild = 0;
  std::ifstream(folder / "grandchild") >> grandchild;
  ASSERT_GT(grandchild, 0);
  int status = 0;
  bool has_died = false;
  for (pid_t ended; (ended = ::waitpid(-1, &status, 0)) > 0;)
    has_died |= ended == grandchild && WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
  EXPECT_TRUE(has_died);
  ::prctl(PR_SET_CHILD_SUBREAPER, 0);
  EXPECT_TRUE(fs::exists(folder / "saved"));
  EXPECT_FALSE(fs::exists(folder / "half.tmp"));
  std::vector<fs::path> folders;
  for (const auto& entry : fs::directory_iterator(folder.path()))
    if (entry.is_directory()) folders.push_back(entry.path());
  ASSERT_EQ(folders.size(), 1U) << "the one that is kept";
  EXPECT_TRUE(fs::exists(folders[0] / "kept")) << "links are not followed";
}

TEST(Stop, a_run_that_hangs_can_end_in_the_same_way) {
  const Folder folder;
  EXPECT_EQ(wait_for(forked([&] {
              catch_interrupts();
              std::ofstream(folder / "half.tmp") << "half";
              const RemovedWhenCut half(folder / "half.tmp");
              end_at_once(7);
            })),
            7);
  EXPECT_FALSE(fs::exists(folder / "half.tmp"));
}

void write_mark() noexcept { [[maybe_unused]] const auto written = ::write(STDOUT_FILENO, "x", 1); }

TEST(Stop, callbacks_come_with_each_signal_and_before_the_end) {
  const Folder folder;
  const std::string file = folder / "marks";
  EXPECT_EQ(wait_for(forked([&] {
              if (std::freopen(file.c_str(), "w", stdout) == nullptr) ::_exit(1);
              catch_interrupts();
              on_interrupt(write_mark);
              for (int i = 0; i < 3; ++i) call_when_cut(write_mark);  // counts once
              for (int i = 0; i < 3; ++i) ::raise(SIGINT);
            })),
            130);
  EXPECT_EQ(fs::file_size(file), 4U);
}

}  // namespace
}  // namespace weir
