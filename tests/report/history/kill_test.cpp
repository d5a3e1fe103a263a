// Writers that are killed, and a server that is: what was acknowledged is there, what is there is whole, and nothing is
// there twice.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include <array>
#include <atomic>
#include <cstdlib>
#include <map>
#include <new>

#include "base/error.h"
#include "measure/bootstrap.h"
#include "report/history/made.h"

namespace weir::history {
namespace {

constexpr int kMostWriters = 32, kPointsOfAdd = 3;

// Shared with the writers; what a killed one has written here stays.
struct Board {
  std::atomic<bool> is_over{false};
  std::array<std::atomic<int>, kMostWriters> acknowledged{};  // adds of each writer, in order
  std::atomic<int> unexpected{0};                             // errors that no kill explains
};

Intake intake_of(int writer, int number) {
  Intake intake;
  for (int i = 0; i < kPointsOfAdd; ++i) {
    NewPoint point;
    point.point.key = {{"workload", fmt::format("w{}", writer)}, {"streams", fmt::to_string(i)}};
    point.point.origin = fmt::format("{}/{}/{}", writer, number, i);
    point.point.latency.unit = "ns";
    point.point.latency.samples = {100.0 + number, 101, 102};
    point.machine = machine_from({{"serial", fmt::to_string(number % 5)}}, "made up");
    point.measured = "2026-11-19T10:00:00Z";
    point.digest = digest_of(point.point.origin);
    intake.points.push_back(std::move(point));
  }
  return intake;
}

// What a script around `weir history add` would do: the same again until it succeeds.
[[noreturn]] void write_on(const std::string& where, int writer, Board& board, bool can_fail) {
  auto& acknowledged = board.acknowledged[static_cast<std::size_t>(writer)];
  while (!board.is_over) {
    const int number = acknowledged;
    try {
      Store store(where, DatabaseAccess::write);
      const Added added = store.add(intake_of(writer, number), {fmt::format("{}/{}", writer, number), "", ""});
      if (added.points + added.known != kPointsOfAdd) ++board.unexpected;
      ++acknowledged;
    } catch (const Error&) {
      if (!can_fail) ++board.unexpected;
      ::usleep(20'000);
    }
  }
  ::_exit(0);
}

class Killed : public testing::EngineTest {
 protected:
  pid_t fork_writer(int writer, Board& board) const {
    const pid_t child = ::fork();
    if (child == 0) write_on(where(), writer, board, !is_sqlite());
    return child;
  }

  void expect_all_there(const Board& board, int writers) {
    Store store(where(), DatabaseAccess::read);
    std::map<std::string, int> adds, points;
    std::map<std::int64_t, int> entries;
    for (const Point& point : store.points()) {
      ++points[point.origin];
      ++adds[point.origin.substr(0, point.origin.rfind('/'))];
      ++entries[point.entry];
    }
    for (int writer = 0; writer < writers; ++writer)
      for (int number = 0; number < board.acknowledged[static_cast<std::size_t>(writer)]; ++number)
        EXPECT_TRUE(adds.contains(fmt::format("{}/{}", writer, number))) << "lost: " << writer << "/" << number;
    for (const auto& [origin, count] : points) EXPECT_EQ(count, 1) << "doubled: " << origin;
    for (const auto& [add, count] : adds) EXPECT_EQ(count, kPointsOfAdd) << "in part: " << add;
    EXPECT_EQ(entries.size(), adds.size());
    EXPECT_EQ(store.entries().size(), adds.size()) << "an entry without points, or one that was added twice";
    for (const Entry& entry : store.entries()) EXPECT_EQ(entry.points, static_cast<std::size_t>(kPointsOfAdd));
  }
};
WEIR_IN_EVERY_ENGINE(Killed);

TEST_P(Killed, writers_and_servers_lose_nothing_and_double_nothing) {
  const bool is_long = std::getenv("WEIR_LONG_TESTS") != nullptr;
  const int writers = is_long ? kMostWriters : 8, kills = is_long ? 200 : 10;
  {
    Store store(where(), DatabaseAccess::write);
  }
  void* const shared = ::mmap(nullptr, sizeof(Board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(shared, MAP_FAILED);
  Board& board = *new (shared) Board;
  std::vector<pid_t> children;
  for (int i = 0; i < writers; ++i) children.push_back(fork_writer(i, board));
  SplitMix random(11);
  int of_writers = 0, of_server = 0, of_children = 0;
  for (int i = 0; i < kills; ++i) {
    ::usleep(random.below(is_long ? 150'000 : 60'000));
    const std::uint32_t kind = is_sqlite() ? 0 : random.below(10);
    if (kind < 6) {
      const std::size_t one = random.below(static_cast<std::uint32_t>(writers));
      ::kill(children[one], SIGKILL);
      int status = 0;
      ::waitpid(children[one], &status, 0);
      children[one] = fork_writer(static_cast<int>(one), board);
      ++of_writers;
    } else if (kind < 8) {
      testing::PostgresServer::shared().kill_child(random.below(1'000'000));
      ++of_children;
    } else {
      testing::PostgresServer::shared().kill();
      ASSERT_TRUE(testing::PostgresServer::shared().start());
      ++of_server;
    }
  }
  board.is_over = true;
  for (const pid_t child : children) {
    int status = 0;
    ::waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
  }
  if (!is_sqlite()) {
    ASSERT_TRUE(testing::PostgresServer::shared().start());
  }
  EXPECT_EQ(board.unexpected, 0);
  int acknowledged = 0;
  for (int i = 0; i < writers; ++i) acknowledged += board.acknowledged[static_cast<std::size_t>(i)];
  RecordProperty("acknowledged", acknowledged);
  RecordProperty("kills_of_writers", of_writers);
  RecordProperty("kills_of_server", of_server);
  RecordProperty("kills_of_its_processes", of_children);
  EXPECT_GT(acknowledged, 0);
  expect_all_there(board, writers);
  ::munmap(shared, sizeof(Board));
}

}  // namespace
}  // namespace weir::history
