// The launch gate over a device of the test's own, whose commands end when the test says so.
#include "submit/inject/launch_gate.h"

#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <thread>
#include <vector>

namespace weir::inject {
namespace {

using scheduler::Board;
using scheduler::Gate;

// Streams in order; events as drivers have them. One at a time, because the table has no room for a context pointer.
struct FakeDevice {
  struct Line {
    std::uint64_t launched = 0, ended = 0;
    bool is_captured = false;
  };
  struct Recorded {
    Line* line = nullptr;
    std::uint64_t position = 0;
    Context made_in = nullptr;
  };

  std::mutex mutex;
  std::map<const void*, Line> lines;
  std::map<Event, Recorded> events;
  std::set<const void*> ignored_streams;
  std::uintptr_t names = 0x1000;
  std::size_t max_events = 0;
  std::atomic<int> records = 0, queries = 0, wrong = 0;
  bool makes_events = true, records_events = true, answers = true, lets_in = true;
  std::function<void()> when_recording;

  void launch(const void* stream) {
    const std::lock_guard lock(mutex);
    ++lines[stream].launched;
  }
  void end(const void* stream, std::uint64_t commands = 1) {
    const std::lock_guard lock(mutex);
    Line& line = lines[stream];
    line.ended = std::min(line.ended + commands, line.launched);
  }
  std::uint64_t on_device() {
    const std::lock_guard lock(mutex);
    std::uint64_t count = 0;
    for (const auto& [stream, line] : lines) count += line.launched - line.ended;
    return count;
  }
};

FakeDevice* g_device = nullptr;
thread_local Context t_context = nullptr;
int g_context = 0, g_other_context = 0;
char g_streams[64];
void* stream_named(int i) { return &g_streams[i]; }

Context context_of(void* stream) {
  const std::lock_guard lock(g_device->mutex);
  if (g_device->ignored_streams.contains(stream) || g_device->lines[stream].is_captured) return nullptr;
  return stream >= stream_named(32) ? static_cast<Context>(&g_other_context) : &g_context;
}
bool begin(Context context, GateDriver::Visit* visit) {
  const std::lock_guard lock(g_device->mutex);
  if (!g_device->lets_in) return false;
  visit->previous = t_context;
  t_context = context;
  return true;
}
void end(const GateDriver::Visit& visit) { t_context = visit.previous; }
Event make() {
  const std::lock_guard lock(g_device->mutex);
  if (!g_device->makes_events) return nullptr;
  const auto event = reinterpret_cast<Event>(++g_device->names);
  g_device->events[event] = {nullptr, 0, t_context};
  g_device->max_events = std::max(g_device->max_events, g_device->events.size());
  return event;
}
bool record(Event event, void* stream) {
  if (g_device->when_recording) g_device->when_recording();
  const std::lock_guard lock(g_device->mutex);
  ++g_device->records;
  if (!g_device->records_events) return false;
  const auto found = g_device->events.find(event);
  if (found == g_device->events.end() || found->second.made_in != t_context) return ++g_device->wrong, false;
  FakeDevice::Line& line = g_device->lines[stream];
  if (line.is_captured) ++g_device->wrong;
  found->second = {&line, line.launched, t_context};
  return true;
}
GateDriver::State query(Event event) {
  const std::lock_guard lock(g_device->mutex);
  ++g_device->queries;
  const auto found = g_device->events.find(event);
  if (found == g_device->events.end() || found->second.made_in != t_context || found->second.line == nullptr) {
    ++g_device->wrong;
    return GateDriver::State::lost;
  }
  if (!g_device->answers) return GateDriver::State::lost;
  return found->second.line->ended >= found->second.position ? GateDriver::State::ended : GateDriver::State::running;
}
void drop(Event event) {
  const std::lock_guard lock(g_device->mutex);
  if (g_device->events.erase(event) == 0) ++g_device->wrong;
}
constexpr GateDriver kDriver{context_of, begin, end, make, record, query, drop};

class LaunchGateTest : public ::testing::Test {
 protected:
  void SetUp() override {
    g_device = &device_;
    board_->beat_ns.store(scheduler::kNever);
    share(2);
    // A bound that is given up after a while would hide what waits for ever.
    gate_ = std::make_unique<Gate>(*board_, 0, nullptr, nullptr, scheduler::GateLimits{.stuck_ns = scheduler::kNever});
    launches_ = std::make_unique<LaunchGate>(*gate_, kDriver);
  }
  void TearDown() override { EXPECT_EQ(device_.wrong, 0) << "a driver would have been misused"; }

  // With seat 1, which comes first where `yields` says so.
  void share(std::uint32_t in_flight) { board_->seats[0].in_flight.store(in_flight); }
  void yield_to_others() { board_->seats[0].yields_to.store(2); }
  void others_are_active(bool are) {
    board_->active.store(are ? board_->active.load() | 2 : board_->active.load() & ~std::uint64_t{2});
    scheduler::wake_waiting(*board_);
  }
  // A launch as the vendor's library sees it; whether it was counted.
  bool launch(Stream stream, bool succeeds = true) {
    const Context context = launches_->before(stream);
    if (succeeds) device_.launch(stream.handle);
    if (context != nullptr) launches_->after(stream, context, succeeds);
    return context != nullptr;
  }
  bool launch(int stream) { return launch(Stream{stream_named(stream), false}); }

  FakeDevice device_;
  std::unique_ptr<Board> board_ = std::make_unique<Board>();
  std::unique_ptr<Gate> gate_;
  std::unique_ptr<LaunchGate> launches_;
};

TEST_F(LaunchGateTest, alone_nothing_is_counted_and_the_driver_is_not_asked) {
  share(0);
  for (int i = 0; i < 10; ++i) EXPECT_FALSE(launch(1));
  EXPECT_EQ(device_.records + device_.queries, 0);
  EXPECT_EQ(gate_->pending(), 0u);
}

TEST_F(LaunchGateTest, a_command_counts_until_its_mark_is_reached) {
  EXPECT_TRUE(launch(1));
  EXPECT_TRUE(launch(1));
  launches_->look();
  EXPECT_EQ(gate_->on_device(), 2u);
  device_.end(stream_named(1));
  launches_->look();
  EXPECT_EQ(gate_->on_device(), 1u);
  device_.end(stream_named(1));
  launches_->look();
  EXPECT_EQ(gate_->on_device(), 0u);
}

TEST_F(LaunchGateTest, streams_are_followed_apart) {
  share(8);
  launch(1);
  launch(2);
  launch(33);  // of another context
  device_.end(stream_named(2));
  device_.end(stream_named(33));
  launches_->look();
  EXPECT_EQ(gate_->on_device(), 1u);
  EXPECT_EQ(device_.records, 3);
}

TEST_F(LaunchGateTest, a_launch_that_failed_does_not_count) {
  EXPECT_TRUE(launch(Stream{stream_named(1), false}, false));
  EXPECT_EQ(gate_->pending(), 0u);
  EXPECT_EQ(device_.records, 0);
}

TEST_F(LaunchGateTest, captured_streams_are_neither_held_nor_marked) {
  yield_to_others();
  others_are_active(true);
  device_.lines[stream_named(1)].is_captured = true;
  EXPECT_FALSE(launch(1));  // would wait for ever if it were held
  EXPECT_EQ(device_.records, 0);
}

TEST_F(LaunchGateTest, what_was_launched_alone_is_covered_by_the_first_mark) {
  share(0);
  for (int i = 0; i < 5; ++i) launch(1);
  share(2);
  launch(1);
  device_.end(stream_named(1), 5);
  launches_->look();
  EXPECT_EQ(gate_->on_device(), 1u) << "the sixth has not ended";
  device_.end(stream_named(1));
  launches_->look();
  EXPECT_EQ(gate_->on_device(), 0u);
}

TEST_F(LaunchGateTest, many_commands_of_a_stream_share_its_last_mark) {
  share(1000);
  for (int i = 0; i < 500; ++i) EXPECT_TRUE(launch(1));
  EXPECT_EQ(gate_->on_device(), 500u);
  EXPECT_LE(device_.max_events, 16u);
  device_.end(stream_named(1), 499);
  launches_->look();
  EXPECT_GT(gate_->on_device(), 0u) << "the last mark is behind the last command";
  device_.end(stream_named(1));
  launches_->look();
  EXPECT_EQ(gate_->on_device(), 0u);
  for (int i = 0; i < 500; ++i) launch(1), device_.end(stream_named(1)), launches_->look();
  EXPECT_LE(device_.max_events, 16u) << "events are used again";
}

TEST_F(LaunchGateTest, more_streams_than_are_followed_run_uncounted) {
  share(100'000);
  std::vector<char> many(1000);
  for (char& stream : many) launch(Stream{&stream, false});
  EXPECT_LT(gate_->on_device(), 1000u);
  EXPECT_GT(gate_->on_device(), 0u);
  for (char& stream : many) device_.end(&stream);
  launches_->look();
  EXPECT_EQ(gate_->on_device(), 0u);
}

TEST_F(LaunchGateTest, the_same_handle_in_two_threads_is_two_streams) {
  share(8);
  const Stream own{stream_named(2), true};
  const Context context = launches_->before(own);
  device_.launch(own.handle);
  launches_->after(own, context, true);
  std::thread([&] {
    const Context other = launches_->before(own);
    device_.launch(own.handle);
    launches_->after(own, other, true);
  }).join();
  EXPECT_EQ(gate_->on_device(), 2u);
  const int before = device_.queries;
  launches_->look();
  EXPECT_EQ(device_.queries - before, 2) << "one for each thread's stream";
}

TEST_F(LaunchGateTest, what_cannot_be_marked_is_not_counted) {
  device_.makes_events = false;
  for (int i = 0; i < 5; ++i) launch(1);
  EXPECT_EQ(gate_->pending(), 0u);
  device_.makes_events = true;
  device_.records_events = false;
  for (int i = 0; i < 5; ++i) launch(1);
  EXPECT_EQ(gate_->pending(), 0u);
  EXPECT_TRUE(device_.events.empty());
  device_.lets_in = false;
  for (int i = 0; i < 5; ++i) launch(1);
  EXPECT_EQ(gate_->pending(), 0u);
}

TEST_F(LaunchGateTest, a_driver_that_answers_no_more_counts_as_idle) {
  share(4);
  launch(1);
  launch(1);
  launch(2);
  device_.answers = false;
  launches_->look();
  EXPECT_EQ(gate_->pending(), 0u);
  for (int i = 0; i < 20; ++i) launch(1);  // would wait for ever otherwise
  device_.answers = true;
  launches_->look();
  device_.lets_in = false;
  launch(1);
  launches_->look();
  EXPECT_EQ(gate_->pending(), 0u);
}

TEST_F(LaunchGateTest, a_context_that_goes_takes_its_events_along) {
  share(4);
  launch(1);
  launch(1);
  launch(33);
  device_.end(stream_named(33));
  launches_->look();  // leaves a spare one
  launches_->forget();
  EXPECT_TRUE(device_.events.empty());
  EXPECT_EQ(gate_->pending(), 0u);
  device_.lines.clear();
  EXPECT_TRUE(launch(1));
  launches_->look();
  EXPECT_EQ(gate_->on_device(), 1u);
}

TEST_F(LaunchGateTest, a_launch_that_must_wait_sees_the_end_itself) {
  launch(1);
  launch(1);
  device_.end(stream_named(1));
  launch(1);  // nobody else looks
  EXPECT_EQ(device_.on_device(), 2u);
}

TEST_F(LaunchGateTest, the_bound_holds_a_launch) {
  launch(1);
  launch(1);
  std::atomic<bool> is_through{false};
  std::thread third([&] {
    launch(1);
    is_through.store(true);
  });
  while (device_.queries == 0) std::this_thread::yield();
  EXPECT_FALSE(is_through.load());
  device_.end(stream_named(1));
  // On a busy machine it may sleep by now; then it is the attending thread that looks.
  while (!is_through.load()) {
    launches_->look();
    std::this_thread::yield();
  }
  third.join();
  EXPECT_EQ(device_.on_device(), 2u);
}

TEST_F(LaunchGateTest, others_that_come_first_hold_a_launch) {
  yield_to_others();
  others_are_active(true);
  std::atomic<bool> is_through{false};
  std::thread held([&] {
    launch(1);
    is_through.store(true);
  });
  while (gate_->pending() == 0) std::this_thread::yield();
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_FALSE(is_through.load());
  others_are_active(false);
  held.join();
  EXPECT_EQ(gate_->held(), 1u);
}

TEST_F(LaunchGateTest, nothing_is_held_when_the_process_ends) {
  yield_to_others();
  others_are_active(true);
  std::thread held([&] { launch(1); });
  while (gate_->pending() == 0) std::this_thread::yield();
  launches_->turn_off();
  held.join();
  const int asked = device_.records + device_.queries;
  launches_->look();
  EXPECT_FALSE(launch(1));
  EXPECT_EQ(device_.records + device_.queries, asked);
}

TEST_F(LaunchGateTest, the_end_of_the_process_does_not_wait_for_a_driver_that_hangs) {
  std::atomic<bool> hangs{true}, is_inside{false};
  device_.when_recording = [&] {
    is_inside.store(true);
    while (hangs.load()) std::this_thread::yield();
  };
  std::thread stuck([&] { launch(1); });
  while (!is_inside.load()) std::this_thread::yield();
  launches_->turn_off();  // comes back
  hangs.store(false);
  stuck.join();
}

TEST_F(LaunchGateTest, a_child_holds_nothing) {
  yield_to_others();
  others_are_active(true);
  launches_->abandon();
  EXPECT_FALSE(launch(1));
}

TEST_F(LaunchGateTest, calls_of_our_own_are_not_held) {
  int inner = 0;
  device_.when_recording = [&] {
    // As if recording an event launched something.
    if (launches_->before(Stream{stream_named(5), false}) == nullptr) ++inner;
  };
  launch(1);
  EXPECT_EQ(inner, 1);
  EXPECT_EQ(gate_->pending(), 1u);
}

// Threads that launch, one that lets commands end and attends, and one that may take the context away.
class LaunchGateStressTest : public LaunchGateTest {
 protected:
  static constexpr int kThreads = 4, kLaunches = 300;
  // The most commands that were on the device at once.
  std::uint64_t run(bool forgets) {
    std::atomic<bool> is_over{false};
    std::uint64_t most = 0;
    std::thread gpu([&] {
      while (!is_over.load()) {
        most = std::max(most, device_.on_device());
        for (int i = 0; i < kThreads; ++i) device_.end(stream_named(i));
        launches_->look();
        std::this_thread::yield();
      }
    });
    std::vector<std::thread> threads;
    for (int i = 0; i < kThreads; ++i)
      threads.emplace_back([&, i] {
        for (int n = 0; n < kLaunches; ++n) {
          EXPECT_TRUE(launch(i));
          if (forgets && i == 0 && n % 10 == 9) launches_->forget();
        }
      });
    for (std::thread& thread : threads) thread.join();
    while (gate_->on_device() > 0) std::this_thread::yield();
    is_over.store(true);
    gpu.join();
    EXPECT_EQ(gate_->launches(), std::uint64_t{kThreads * kLaunches});
    EXPECT_EQ(gate_->pending(), 0u);
    return most;
  }
};

TEST_F(LaunchGateStressTest, many_threads_keep_the_bound_and_lose_no_command) {
  share(3);
  const std::uint64_t most = run(false);
  EXPECT_GE(most, 1u);
  EXPECT_LE(most, 3u);
}

TEST_F(LaunchGateStressTest, contexts_that_go_meanwhile_lose_no_command) {
  share(3);
  run(true);
}

}  // namespace
}  // namespace weir::inject
