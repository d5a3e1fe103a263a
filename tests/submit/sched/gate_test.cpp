#include "submit/sched/gate.h"

#include <gtest/gtest.h>

#include <atomic>
#include <latch>
#include <memory>
#include <thread>
#include <vector>

#include "base/clock.h"

namespace weir::testing {
namespace {

using namespace weir::scheduler;

constexpr std::int64_t kHour_ns = 3'600'000'000'000;
// Sleeps at once, and for so long that a wake-up which is lost shows as a test that does not end.
constexpr GateLimits kSleeper{.spin_ns = 0, .sleep_ns = kHour_ns, .stuck_ns = kHour_ns};

// A board without a daemon: everybody is bound to so many commands, and nobody has to beat.
std::unique_ptr<Board> make_board(std::uint32_t in_flight = 2) {
  auto board = std::make_unique<Board>();
  board->bytes = sizeof(Board);
  board->beat_ns = kNever;
  for (Seat& seat : board->seats) seat.in_flight = in_flight;
  return board;
}

void yield(Board& board, int seat, std::uint64_t to) {
  board.seats[seat].yields_to = to;
  wake_waiting(board);
}

void until(const auto& condition) {
  while (!condition()) std::this_thread::yield();
}

TEST(Gate, is_skipped_while_alone) {
  const auto board = make_board(0);
  const Gate gate(*board, 3);
  EXPECT_FALSE(gate.is_shared());
  board->seats[3].in_flight = 1;
  EXPECT_TRUE(gate.is_shared());
}

TEST(Gate, marks_its_client_active_until_it_settles) {
  const auto board = make_board();
  Gate gate(*board, 5);
  gate.set_linger(1000);
  EXPECT_EQ(gate.settle(now_ns()), kNever);
  gate.enter();
  EXPECT_EQ(board->active.load(), 1U << 5);
  EXPECT_GT(board->seats[5].arrived_ns.load(), 0);
  EXPECT_EQ(gate.settle(now_ns() + kHour_ns), kNever) << "a command is pending";
  EXPECT_EQ(board->active.load(), 1U << 5);
  gate.leave();
  const std::int64_t due = gate.settle(0);
  EXPECT_NE(due, kNever);
  EXPECT_EQ(gate.settle(due - 1), due);
  EXPECT_EQ(board->active.load(), 1U << 5);
  EXPECT_EQ(gate.settle(due), kNever);
  EXPECT_EQ(board->active.load(), 0U);
  EXPECT_EQ(gate.launches(), 1U);
  EXPECT_EQ(gate.held(), 0U);
}

TEST(Gate, rings_once_per_request_where_the_daemon_follows_arrivals) {
  const auto board = make_board();
  int rings = 0;
  Gate gate(*board, 0, [](void* count) { ++*static_cast<int*>(count); }, &rings);
  gate.enter();
  EXPECT_EQ(rings, 0);
  gate.leave();
  gate.settle(kHour_ns + now_ns());
  board->follows_arrivals = 1;
  gate.enter();
  gate.enter();
  EXPECT_EQ(rings, 1);
  gate.leave(2);
  gate.enter();
  EXPECT_EQ(rings, 1) << "it lingered";
}

TEST(Gate, waits_for_who_comes_first) {
  const auto board = make_board();
  Gate urgent(*board, 0), patient(*board, 1, nullptr, nullptr, kSleeper);
  yield(*board, 1, 1);
  urgent.set_linger(0);
  urgent.enter();
  std::atomic<bool> is_through{false};
  std::thread thread([&] {
    patient.enter();
    is_through = true;
  });
  until([&] { return board->waiting.load() != 0; });
  EXPECT_FALSE(is_through);
  EXPECT_EQ(board->active.load(), 3U) << "one that waits is active: those behind it wait for it";
  EXPECT_EQ(patient.pending(), 1U);
  EXPECT_EQ(patient.on_device(), 0U);
  urgent.leave();
  urgent.settle(now_ns());
  thread.join();
  EXPECT_TRUE(is_through);
  EXPECT_EQ(patient.held(), 1U);
  EXPECT_GT(patient.held_ns(), 0U);
}

TEST(Gate, goes_on_when_its_mask_changes) {
  const auto board = make_board();
  Gate first(*board, 0), second(*board, 1, nullptr, nullptr, kSleeper);
  yield(*board, 1, 1);
  first.enter();
  std::thread thread([&] { second.enter(); });
  until([&] { return board->waiting.load() != 0; });
  yield(*board, 1, 0);
  thread.join();
  EXPECT_EQ(second.on_device(), 1U);
}

TEST(Gate, keeps_to_the_bound_and_wakes_by_its_own_commands) {
  const auto board = make_board(2);
  Gate gate(*board, 0, nullptr, nullptr, kSleeper);
  gate.enter();
  gate.enter();
  std::thread third([&] { gate.enter(); });
  until([&] { return gate.pending() == 3; });
  EXPECT_EQ(gate.on_device(), 2U);
  gate.leave();
  third.join();
  EXPECT_EQ(gate.on_device(), 2U);
  EXPECT_EQ(gate.held(), 0U) << "nobody else kept it waiting";
}

TEST(Gate, lets_as_many_pass_at_once_as_there_is_room_for) {
  const auto board = make_board(3);
  Gate gate(*board, 0);
  EXPECT_EQ(gate.enter(2), 2U);
  EXPECT_EQ(gate.try_enter(5), 1U);
  EXPECT_EQ(gate.pending(), 3U);
  EXPECT_EQ(gate.on_device(), 3U);
  EXPECT_EQ(gate.try_enter(5), 0U);
  EXPECT_EQ(gate.pending(), 3U);
  gate.leave(3);
  EXPECT_EQ(gate.enter(0), 1U) << "one at least";
  EXPECT_EQ(gate.launches(), 4U);
}

// Commands that end at once raise a loose bound, however busy the machine is at times.
TEST(Gate, bound_grows_with_short_commands_only_while_it_is_loose) {
  const auto board = make_board(2);
  Gate gate(*board, 0);
  const auto run_some = [&] {
    for (int i = 0; i < 1000; ++i) {
      gate.enter();
      gate.leave();
    }
  };
  run_some();
  EXPECT_EQ(gate.bound(), 2U);
  board->seats[0].is_loose = 1;
  until([&] {
    run_some();
    return gate.bound() > 100;
  });
  EXPECT_LE(gate.bound(), kNoBound);
  const std::uint32_t admitted = gate.enter(50);
  EXPECT_GT(admitted, 2U);
  board->seats[0].is_loose = 0;
  EXPECT_EQ(gate.bound(), 2U);
  EXPECT_EQ(gate.try_enter(), 0U) << "somebody came back: what is there has to end first";
  gate.leave(admitted);
  EXPECT_EQ(gate.enter(50), 2U);
  board->seats[0].in_flight = 0;
  board->seats[0].is_loose = 1;
  EXPECT_EQ(gate.bound(), 0U) << "alone";
}

TEST(Gate, loose_bound_stays_small_where_commands_are_long) {
  const auto board = make_board(2);
  // Whatever ends has taken long in comparison with this.
  Gate gate(*board, 0, nullptr, nullptr, {.depth_ns = 4});
  board->seats[0].is_loose = 1;
  for (int i = 0; i < 1000; ++i) {
    gate.enter();
    gate.leave();
    ASSERT_LE(gate.bound(), 2U);
  }
}

TEST(Gate, loose_bound_still_yields_to_who_comes_first) {
  const auto board = make_board(2);
  Gate urgent(*board, 0), patient(*board, 1);
  yield(*board, 1, 1);
  board->seats[1].is_loose = 1;
  EXPECT_NE(patient.try_enter(), 0U);
  urgent.enter();
  EXPECT_EQ(patient.try_enter(), 0U);
}

TEST(Gate, try_enter_counts_nothing_but_tells_that_it_wants_to) {
  const auto board = make_board(1);
  int wakes = 0;
  Gate urgent(*board, 0), other(*board, 1);
  other.set_wake([](void* count) { ++*static_cast<int*>(count); }, &wakes);
  yield(*board, 1, 1);
  EXPECT_TRUE(urgent.try_enter());
  EXPECT_FALSE(urgent.try_enter()) << "the bound is 1";
  EXPECT_EQ(urgent.pending(), 1U);
  EXPECT_FALSE(other.try_enter());
  EXPECT_EQ(other.pending(), 0U);
  EXPECT_EQ(board->active.load(), 3U);
  EXPECT_EQ(wakes, 1) << "somebody has to settle it";
  urgent.leave();
  urgent.settle(now_ns() + kHour_ns);
  EXPECT_TRUE(other.try_enter());
  EXPECT_EQ(other.launches(), 1U);
}

TEST(Gate, opens_for_good_for_those_who_wait) {
  const auto board = make_board(1);
  Gate urgent(*board, 0), waits(*board, 1, nullptr, nullptr, kSleeper), full(*board, 2, nullptr, nullptr, kSleeper);
  yield(*board, 1, 1);
  urgent.enter();
  full.enter();
  std::thread first([&] { waits.enter(); });
  std::thread second([&] { full.enter(); });
  until([&] { return waits.pending() == 1 && full.pending() == 2; });
  waits.open_for_good();
  full.open_for_good();
  first.join();
  second.join();
  EXPECT_EQ(board->active.load(), 1U) << "nobody waits for one that has no seat";
  EXPECT_FALSE(waits.is_shared());
  waits.enter();
  EXPECT_EQ(board->active.load(), 1U);
}

TEST(Gate, of_a_forked_child_leaves_the_board_alone) {
  const auto board = make_board(1);
  Gate gate(*board, 0);
  gate.enter();
  gate.open_in_child();
  EXPECT_EQ(board->active.load(), 1U);
  gate.enter();  // beyond the bound
  EXPECT_TRUE(gate.is_open_for_good());
}

TEST(Gate, does_not_wait_for_a_daemon_that_is_silent_and_obeys_one_that_comes_back) {
  const auto board = make_board(1);
  Gate urgent(*board, 0), patient(*board, 1);
  yield(*board, 1, 1);
  urgent.enter();
  board->beat_ns = now_ns() - kSilentNs - 1;
  patient.enter();
  patient.enter();
  EXPECT_TRUE(patient.try_enter());
  patient.leave(3);
  board->beat_ns = kNever;
  EXPECT_FALSE(patient.try_enter());
  board->beat_ns = now_ns();  // and then no more
  patient.enter();
  EXPECT_EQ(patient.on_device(), 1U);
}

TEST(Gate, does_not_wait_for_a_daemon_that_ended) {
  const auto board = make_board(1);
  Gate urgent(*board, 0), patient(*board, 1, nullptr, nullptr, kSleeper);
  yield(*board, 1, 1);
  urgent.enter();
  std::thread thread([&] { patient.enter(); });
  until([&] { return board->waiting.load() != 0; });
  board->is_closed = 1;
  wake_all_clients(*board);
  thread.join();
}

// A program may launch what its last command on the device waits for.
TEST(Gate, does_not_hold_a_command_forever_behind_one_that_does_not_end) {
  const auto board = make_board(1);
  Gate gate(*board, 0, nullptr, nullptr, {.spin_ns = 1000, .sleep_ns = 1'000'000, .stuck_ns = 5'000'000});
  gate.enter();
  gate.enter();
  EXPECT_EQ(gate.on_device(), 2U);
}

// Its own commands may be off the device while others hold it, so that time says nothing about them.
TEST(Gate, counts_as_stuck_only_while_its_own_commands_hold_it) {
  constexpr std::int64_t kStuckNs = 50'000'000;
  const auto board = make_board(1);
  Gate gate(*board, 0, nullptr, nullptr, {.spin_ns = 1000, .sleep_ns = 1'000'000, .stuck_ns = kStuckNs});
  gate.enter();
  board->active.fetch_or(2);
  yield(*board, 0, 2);
  std::int64_t passed_ns = 0;
  std::thread waiting([&] {
    gate.enter();
    passed_ns = now_ns();
  });
  std::this_thread::sleep_for(std::chrono::nanoseconds(kStuckNs * 3 / 2));
  const std::int64_t freed_ns = now_ns();
  yield(*board, 0, 0);
  waiting.join();
  EXPECT_GE(passed_ns - freed_ns, kStuckNs);
}

TEST(Gate, is_not_disturbed_by_one_that_was_killed_asleep) {
  const auto board = make_board(1);
  board->waiting = 1;
  Gate gate(*board, 0);
  gate.set_linger(0);
  gate.enter();
  gate.leave();
  gate.settle(now_ns());
  EXPECT_EQ(board->waiting.load(), 0U);
  EXPECT_EQ(board->active.load(), 0U);
}

// Four threads of one client: never more commands on the device than the bound, and every one comes through.
TEST(GateStress, bound_holds_among_threads) {
  constexpr int kThreads = 4, kCommands = 10'000, kBound = 2;
  const auto board = make_board(kBound);
  Gate gate(*board, 0, nullptr, nullptr, kSleeper);
  std::latch begin(kThreads);
  std::atomic<int> on_device{0}, too_many{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&] {
      begin.arrive_and_wait();
      for (int n = 0; n < kCommands; ++n) {
        gate.enter();
        if (on_device.fetch_add(1) >= kBound) ++too_many;
        if (n % 2 == 0) std::this_thread::yield();
        on_device.fetch_sub(1);
        gate.leave();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(too_many.load(), 0);
  EXPECT_EQ(gate.launches(), std::uint64_t{kThreads} * kCommands);
  EXPECT_EQ(gate.pending(), 0U);
}

// settle() clears the bit just when a command comes: one of the two sets it again.
TEST(GateStress, a_client_with_commands_is_active) {
  const auto board = make_board(1);
  Gate gate(*board, 0);
  gate.set_linger(0);
  std::atomic<bool> is_over{false};
  std::latch begin(2);
  std::thread attendant([&] {
    begin.arrive_and_wait();
    while (!is_over) gate.settle(now_ns());
  });
  begin.arrive_and_wait();
  int lost = 0;
  for (int round = 0; round < 100'000 && lost == 0; ++round) {
    gate.enter();
    // It may be clear for an instant, until settle() has looked at the count.
    std::int64_t end_ns = 0;
    for (int looks = 0; (board->active.load() & 1) == 0; ++looks) {
      if (looks < 10'000) continue;
      if (end_ns == 0) end_ns = now_ns() + 200'000'000'000;  // the other thread may have lost its core just then
      std::this_thread::yield();
      if (now_ns() > end_ns) {
        ++lost;
        break;
      }
    }
    gate.leave();
    // Idle for a while that differs, so that settle() meets the next command anywhere.
    for (const std::int64_t until_ns = now_ns() + round % 256; now_ns() < until_ns;) {
    }
  }
  is_over = true;
  attendant.join();
  EXPECT_EQ(lost, 0);
}

// An urgent client that comes and goes, and two behind it in a row, each with a thread of its own that settles: nobody
// may sleep for ever, and at the end no bit is left.
TEST(GateStress, no_wake_up_is_lost_between_clients) {
  constexpr int kClients = 3, kRounds = 10'000;
  const auto board = make_board(1);
  std::vector<std::unique_ptr<Gate>> gates;
  for (int seat = 0; seat < kClients; ++seat) {
    gates.push_back(std::make_unique<Gate>(*board, seat, nullptr, nullptr, kSleeper));
    gates.back()->set_linger(0);
    yield(*board, seat, (std::uint64_t{1} << seat) - 1);
  }
  std::latch begin(kClients);
  std::atomic<int> running{kClients};
  std::vector<std::thread> threads;
  for (auto& gate : gates) {
    threads.emplace_back([&] {
      begin.arrive_and_wait();
      for (int round = 0; round < kRounds; ++round) {
        gate->enter();
        gate->leave();
        // By turns within the instant in which the next one goes to sleep, and long after.
        if (round % 4 != 0) gate->settle(now_ns());
        if (round % 64 == 0) std::this_thread::yield();
      }
      while (gate->settle(now_ns()) != kNever) {
      }
      --running;
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(board->active.load(), 0U);
  for (auto& gate : gates) EXPECT_EQ(gate->launches(), std::uint64_t{kRounds});
}

// Masks turn round and round as a policy with turns does it: what falls away first, then what is new.
TEST(GateStress, no_wake_up_is_lost_when_masks_change) {
  const auto board = make_board(1);
  Gate a(*board, 0, nullptr, nullptr, kSleeper), b(*board, 1, nullptr, nullptr, kSleeper);
  std::atomic<int> running{2};
  std::latch begin(3);
  const auto work = [&](Gate& gate) {
    begin.arrive_and_wait();
    for (int round = 0; round < 10'000; ++round) {
      gate.enter();
      gate.leave();
    }
    gate.open_for_good();
    --running;
  };
  std::thread first(work, std::ref(a)), second(work, std::ref(b));
  begin.arrive_and_wait();
  for (int turn = 0; running > 0; ++turn) {
    yield(*board, turn % 2, 0);
    yield(*board, (turn + 1) % 2, std::uint64_t{1} << (turn % 2));
  }
  first.join();
  second.join();
  EXPECT_EQ(a.launches() + b.launches(), 20'000U);
}

}  // namespace
}  // namespace weir::testing
