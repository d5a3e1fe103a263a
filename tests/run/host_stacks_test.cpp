#include "run/host_stacks.h"

#include <gtest/gtest.h>
#include <pthread.h>
#include <signal.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <sstream>
#include <thread>

#include "base/clock.h"
#include "run/function_names.h"
#include "support/text.h"

#if defined(__SANITIZE_THREAD__)
#define WEIR_DEFERS_SIGNALS 1  // until a thread calls something that it intercepts
#else
#define WEIR_DEFERS_SIGNALS 0
#endif

namespace weir {

// Outside of the namespaces below, so that its name can be looked for.
struct Parked {
  std::mutex mutex;
  std::condition_variable changed;
  bool is_over = false;
  std::atomic<int> here{0};
};
[[gnu::noinline]] void park_here(Parked& parked) {
  std::unique_lock lock(parked.mutex);
  ++parked.here;
  parked.changed.wait(lock, [&] { return parked.is_over; });
}

namespace {

using namespace std::chrono_literals;

class HostStacks : public ::testing::Test {
 protected:
  void start(std::function<void()> before = [] {}) {
    const int wanted = static_cast<int>(threads_.size()) + 1;
    threads_.emplace_back([this, before] {
      ::pthread_setname_np(::pthread_self(), "parked");
      before();
      park_here(parked_);
    });
    while (parked_.here < wanted) std::this_thread::sleep_for(1ms);
    std::this_thread::sleep_for(10ms);  // from there into the wait
  }
  void TearDown() override {
    {
      const std::lock_guard lock(parked_.mutex);
      parked_.is_over = true;
    }
    parked_.changed.notify_all();
  }
  Parked parked_;
  std::vector<std::jthread> threads_;  // joined before what they use goes
};

TEST_F(HostStacks, show_where_threads_are) {
  start();
  start();
  for (int i = 0; i < 3; ++i) {
    const std::string text = host_stacks();
    EXPECT_TRUE(has(text, " parked")) << text;
    if (WEIR_DEFERS_SIGNALS) continue;
    EXPECT_TRUE(has(text, "weir::park_here\n")) << text;
    EXPECT_TRUE(has(text, "threads ")) << "two have the same stack: " << text;
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 80u) << line;
  }
}

TEST_F(HostStacks, survive_a_thread_that_does_not_answer) {
  start([] {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, nullptr);
  });
  const std::int64_t begun = now_ns();
  const std::string text = host_stacks(100'000'000);
  EXPECT_LT(now_ns() - begun, 2'000'000'000);
  EXPECT_TRUE(has(text, " parked\n  does not answer")) << text;
  EXPECT_TRUE(has(host_stacks(100'000'000), " parked\n  does not answer")) << "and again";
}

TEST_F(HostStacks, leave_the_signal_as_it_was) {
  host_stacks();
  struct sigaction now{};
  ::sigaction(SIGURG, nullptr, &now);
  EXPECT_EQ(now.sa_handler, SIG_DFL);
}

TEST(FunctionNames, know_functions_of_this_program_and_of_libraries) {
  const FunctionNames names;
  EXPECT_EQ(names.at(reinterpret_cast<const void*>(&park_here)), "weir::park_here");
  EXPECT_EQ(names.at(nullptr), "0x0");
}

}  // namespace
}  // namespace weir
