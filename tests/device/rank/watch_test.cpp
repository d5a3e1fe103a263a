#include "device/rank/watch.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <future>

namespace weir {
namespace {

pid_t start_sleeper() {
  const pid_t child = ::fork();
  if (child == 0) {
    ::pause();
    ::_exit(0);
  }
  return child;
}

TEST(RankWatch, NamesTheRankThatDied) {
  const pid_t first = start_sleeper(), second = start_sleeper();
  const RankProcess processes[] = {{0, first}, {1, ::getpid()}, {2, second}};
  std::promise<std::pair<RankProcess, int>> reported;
  const RankWatch watch(processes, [&](const RankProcess& dead, int lowest) { reported.set_value({dead, lowest}); });
  ::kill(second, SIGKILL);  // stays a zombie until it is waited for
  const auto [dead, lowest] = reported.get_future().get();
  EXPECT_EQ(dead.rank, 2);
  EXPECT_EQ(dead.pid, second);
  EXPECT_EQ(lowest, 0);
  ::kill(first, SIGKILL);
  ::waitpid(first, nullptr, 0);
  ::waitpid(second, nullptr, 0);
}

TEST(RankWatch, IsSilentAboutTheLivingAndTheNeverSeen) {
  const pid_t gone = start_sleeper();
  ::kill(gone, SIGKILL);
  ::waitpid(gone, nullptr, 0);
  const RankProcess processes[] = {{0, ::getpid()}, {1, gone}};
  std::atomic<int> deaths{0};
  {
    const RankWatch watch(processes, [&](const RankProcess&, int) { ++deaths; });
    std::this_thread::sleep_for(std::chrono::milliseconds(1200));
  }
  EXPECT_EQ(deaths.load(), 0);
}

}  // namespace
}  // namespace weir
