// Being the tracer of a process that must not notice: signals reach it, its end reaches its parent.
#include "amd/kfd/tracer.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <thread>

namespace weir::kfd {
namespace {

int g_pipe = -1;

// A child that writes a byte for its start, and for each SIGUSR1.
pid_t writing_child(int* from) {
  int ends[2] = {};
  EXPECT_EQ(pipe(ends), 0);
  const pid_t child = fork();
  if (child == 0) {
    g_pipe = ends[1];
    const auto tell = [](int) { [[maybe_unused]] const ssize_t written = write(g_pipe, "+", 1); };
    signal(SIGUSR1, tell);
    tell(0);
    for (;;) pause();
  }
  close(ends[1]);
  *from = ends[0];
  return child;
}

class Tracer : public ::testing::Test {
 protected:
  void SetUp() override {
    child_ = writing_child(&from_);
    take_byte();
    if (trace(child_) != 0) {
      end();
      GTEST_SKIP() << "processes may not be traced here";
    }
  }
  void TearDown() override { end(); }
  void end() {
    if (child_ <= 0) return;
    kill(child_, SIGKILL);
    waitpid(child_, nullptr, 0);
    child_ = -1;
    close(from_);
  }
  // On a busy machine it may take a while until the child has stopped.
  int stop_soon() const {
    int result = -EAGAIN;
    for (int tries = 0; result == -EAGAIN && tries < 100; ++tries) result = stop_tracing(child_);
    return result;
  }
  void take_byte() {
    char byte = 0;
    EXPECT_EQ(read(from_, &byte, 1), 1);
  }
  bool has_byte() const {
    pollfd asked{from_, POLLIN, 0};
    return poll(&asked, 1, 1) > 0;
  }
  int from_ = -1;
  pid_t child_ = -1;
};

TEST_F(Tracer, is_one_at_a_time) { EXPECT_EQ(trace(child_), -EPERM); }

TEST_F(Tracer, passes_on_signals_while_it_attends_and_as_it_leaves) {
  kill(child_, SIGUSR1);
  while (!has_byte()) EXPECT_TRUE(attend_traced(child_));
  take_byte();
  kill(child_, SIGUSR1);
  std::this_thread::sleep_for(std::chrono::milliseconds(5));  // stopped by it, most likely
  EXPECT_EQ(stop_soon(), 0);
  take_byte();
}

// The main thread has ended and another one has not, so it never stops.
TEST(TracerOfHalfAProcess, does_not_wait_for_it) {
  int ends[2] = {};
  ASSERT_EQ(pipe(ends), 0);
  const pid_t child = fork();
  if (child == 0) {
    std::thread([] {
      for (;;) pause();
    }).detach();
    char byte = 0;
    [[maybe_unused]] const ssize_t got = read(ends[0], &byte, 1);
    syscall(SYS_exit, 0);
  }
  const bool is_traced = trace(child) == 0;
  EXPECT_EQ(write(ends[1], "+", 1), 1);
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  if (is_traced) {
    EXPECT_TRUE(attend_traced(child));
    EXPECT_EQ(stop_tracing(child), -EAGAIN);
  }
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  close(ends[0]);
  close(ends[1]);
}

TEST_F(Tracer, sees_the_end_of_the_process) {
  kill(child_, SIGKILL);
  while (attend_traced(child_)) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  EXPECT_LT(stop_tracing(child_), 0);
  child_ = -1;  // reaped: parent and tracer are one here
}

TEST_F(Tracer, reaps_one_that_has_ended_unseen) {
  kill(child_, SIGKILL);
  siginfo_t ended{};
  EXPECT_EQ(waitid(P_PID, static_cast<id_t>(child_), &ended, WEXITED | WNOWAIT), 0);
  EXPECT_LT(stop_tracing(child_), 0);
  EXPECT_EQ(waitpid(child_, nullptr, WNOHANG), -1);
  EXPECT_EQ(errno, ECHILD);
  child_ = -1;
}

TEST(TracerOfNobody, is_refused) {
  EXPECT_EQ(trace(1 << 30), -ESRCH);
  EXPECT_FALSE(attend_traced(1 << 30));
}

}  // namespace
}  // namespace weir::kfd
