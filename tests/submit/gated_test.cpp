#include "submit/gated.h"

#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <stdexcept>
#include <thread>

#include "submit/order_session.h"
#include "submit/placement.h"
#include "submit/sched/board.h"
#include "submit/submitter.h"

namespace weir {
namespace {

constexpr int kOwn = 0, kOther = 1;
constexpr std::uint32_t kAnyNumber = 1'000'000;

// A board without a daemon: nobody has to beat, and the test decides who comes first.
struct Table {
  explicit Table(const scheduler::GateLimits& limits = {}) : gate(board, kOwn, nullptr, nullptr, limits) {
    board.beat_ns.store(scheduler::kNever);
  }
  void share(std::uint32_t in_flight) { board.seats[kOwn].in_flight.store(in_flight); }
  void yield_to_other(bool is_active) {
    board.seats[kOwn].yields_to.store(1U << kOther);
    if (is_active) {
      board.active.fetch_or(1U << kOther);
    } else {
      board.active.fetch_and(~(1ULL << kOther));
      scheduler::wake_waiting(board);
    }
  }

  scheduler::Board board;
  scheduler::Gate gate;
  std::shared_ptr<GatedWork> work = std::make_shared<GatedWork>(gate);
};

// What one session was given, and what the test says has ended.
struct Given {
  std::atomic<std::uint64_t> commands{0}, batches{0}, ended{0};
  std::atomic<int> finished{0};
  bool knows_ends = true;
  bool fails = false;
};

class GivenSession final : public Session {
 public:
  explicit GivenSession(Given& given) : given_(given) {}
  void begin_iteration() noexcept override {}
  void submit(std::span<const CommandId> commands) noexcept override {
    given_.commands.fetch_add(commands.size());
    given_.batches.fetch_add(1);
  }
  void finish() override {
    given_.ended.store(given_.commands.load());
    given_.finished.fetch_add(1);
    if (given_.fails) throw std::runtime_error("a kernel failed");
  }
  std::vector<StreamProgress> progress() noexcept override {
    if (!given_.knows_ends) return {};
    const std::uint64_t ended = given_.ended.load();
    return {{given_.commands.load(), ended, true}};
  }
  std::vector<IterationSpan> take_spans() override { return {}; }
  Timeline timeline() override { return {}; }
  void reset() override {}
  void read(BufferId, std::span<std::byte>) override {}
  MemoryUse memory() const override { return {}; }

 private:
  Given& given_;
};

class GivenDevice final : public Device {
 public:
  explicit GivenDevice(Given& given) : given_(given) {}
  DeviceInfo info() const override { return {.name = "given"}; }
  std::unique_ptr<Session> prepare(const Step&, const Placement&, const SessionOptions& options) override {
    EXPECT_TRUE(options.follows_progress);
    return std::make_unique<GivenSession>(given_);
  }

 private:
  Given& given_;
};

// A step of 12 commands on a gated device that runs nothing by itself.
struct Gated : ::testing::Test {
  std::unique_ptr<Session> prepare(SubmitMode mode = SubmitMode::eager) {
    device = gated_device(std::make_unique<GivenDevice>(given), table.work);
    return device->prepare(step, placement, {.mode = mode});
  }
  void submit(Session& session) { inline_submitter(step, session)->submit_step(); }
  static void await(const std::function<bool()>& is_so) {
    while (!is_so()) std::this_thread::yield();
  }

  // The bound is kept however long a busy machine keeps the test from its core.
  Table table{scheduler::GateLimits{.stuck_ns = 3'600'000'000'000}};
  Given given;
  Step step = random_step(1, 2, 12);
  Placement placement = place(step, "natural");
  std::unique_ptr<Device> device;
};

TEST_F(Gated, alone_everything_goes_at_once_and_uncounted) {
  const auto session = prepare();
  submit(*session);
  EXPECT_EQ(given.batches, 1U);
  EXPECT_EQ(given.commands, 12U);
  EXPECT_EQ(table.gate.launches(), 0U);
  EXPECT_EQ(table.board.active, 0U);
}

TEST_F(Gated, shared_every_command_passes_the_gate) {
  table.share(kAnyNumber);
  const auto session = prepare();
  submit(*session);
  EXPECT_EQ(given.batches, 1U) << "those that may go at the same time go at once";
  EXPECT_EQ(given.commands, 12U);
  EXPECT_EQ(table.gate.launches(), 12U);
  EXPECT_EQ(table.gate.pending(), 12U);
  session->finish();
  EXPECT_EQ(table.gate.pending(), 0U);
}

TEST_F(Gated, waits_while_one_that_comes_first_is_active) {
  table.share(kAnyNumber);
  table.yield_to_other(true);
  const auto session = prepare();
  std::thread thread([&] { submit(*session); });
  await([&] { return table.board.seats[kOwn].held.load() == 1; });
  EXPECT_EQ(given.commands, 0U);
  table.yield_to_other(false);
  thread.join();
  EXPECT_EQ(given.commands, 12U);
  session->finish();
}

TEST_F(Gated, no_more_commands_are_on_the_device_than_may) {
  table.share(2);
  const auto session = prepare();
  std::thread thread([&] { submit(*session); });
  for (std::uint64_t ended = 1; ended <= 12; ++ended) {
    await([&] { return given.commands.load() == std::min<std::uint64_t>(12, ended + 1); });
    table.work->look();  // nothing has ended since: nothing may follow
    EXPECT_EQ(given.commands, std::min<std::uint64_t>(12, ended + 1));
    given.ended.store(ended);
    table.work->look();
  }
  thread.join();
  EXPECT_EQ(table.gate.pending(), 0U);
  session->finish();  // what has left already does not leave again
  EXPECT_EQ(table.gate.pending(), 0U);
}

TEST_F(Gated, what_was_submitted_alone_is_not_taken_for_counted) {
  const auto session = prepare();
  submit(*session);
  table.share(kAnyNumber);
  submit(*session);
  given.ended.store(12);
  table.work->look();
  EXPECT_EQ(table.gate.pending(), 12U);
  given.ended.store(20);
  table.work->look();
  EXPECT_EQ(table.gate.pending(), 4U);
  session->finish();
  EXPECT_EQ(table.gate.pending(), 0U);
}

TEST_F(Gated, a_graph_is_one_command) {
  table.share(1);
  const auto session = prepare(SubmitMode::graph);
  submit(*session);
  EXPECT_EQ(given.batches, 1U);
  EXPECT_EQ(table.gate.pending(), 1U);
  given.ended.store(11);
  table.work->look();
  EXPECT_EQ(table.gate.pending(), 1U);
  given.ended.store(12);
  table.work->look();
  EXPECT_EQ(table.gate.pending(), 0U);
}

TEST_F(Gated, without_progress_an_iteration_is_one_command_and_the_next_waits_for_it) {
  given.knows_ends = false;
  table.share(1);
  const auto session = prepare();
  for (int i = 0; i < 3; ++i) {
    session->begin_iteration();
    EXPECT_EQ(given.finished, i + 1);
    submit(*session);
    table.work->look();
    EXPECT_EQ(table.gate.pending(), 1U);
  }
  EXPECT_EQ(given.batches, 3U);
  session->finish();
  EXPECT_EQ(table.gate.pending(), 0U);
}

TEST_F(Gated, what_failed_in_an_iteration_that_was_waited_for_is_thrown_by_finish) {
  given.knows_ends = false;
  table.share(1);
  const auto session = prepare();
  session->begin_iteration();
  submit(*session);
  given.fails = true;
  session->begin_iteration();
  given.fails = false;
  EXPECT_THROW(session->finish(), std::runtime_error);
  EXPECT_EQ(table.gate.pending(), 0U);
  EXPECT_NO_THROW(session->finish());
}

TEST_F(Gated, a_session_that_is_gone_leaves_nothing_pending) {
  table.share(kAnyNumber);
  {
    const auto session = prepare();
    submit(*session);
  }
  EXPECT_EQ(table.gate.pending(), 0U);
  table.work->look();
}

// What five iterations leave in the step's buffers.
std::vector<std::vector<std::byte>> outputs_of(Device& device, const char* way, const Step& step,
                                               const Placement& placement) {
  const SubmitChoice choice = parse_submit(way, placement.stream_count);
  const auto session = device.prepare(
      step, placement, {.mode = choice.mode, .host_threads = choice.host_threads(), .is_pipelined = true});
  const auto submitter = make_submitter(choice, step, placement, *session);
  for (int i = 0; i < 5; ++i) {
    session->begin_iteration();
    submitter->submit_step();
  }
  session->finish();
  std::vector<std::vector<std::byte>> outputs;
  for (BufferId id = 0; id < step.buffers().size(); ++id) {
    outputs.emplace_back(step.buffers()[id].size_bytes());
    session->read(id, outputs.back());
  }
  return outputs;
}

// All submitters, two in flight, and somebody who attends as a connection does.
TEST(GatedCpu, computes_the_same_however_it_is_submitted) {
  const Step step = random_step(3, 4);
  const Placement placement = place(step, "natural");
  const auto plain = open_device("cpu", {});
  const auto expected = outputs_of(*plain, "inline", step, placement);
  for (const std::string way : {"inline", "threads:3", "channel:mpsc:2", "graph"}) {
    Table table;
    table.share(2);
    std::atomic<bool> is_over{false};
    std::thread attendant([&] {
      while (!is_over.load()) {
        table.work->look();
        std::this_thread::yield();
      }
    });
    const auto device = gated_device(open_device("cpu", {}), table.work);
    EXPECT_EQ(outputs_of(*device, way.c_str(), step, placement), expected) << way;
    EXPECT_EQ(table.gate.launches(), way == "graph" ? 5U : 5U * 120U) << way;
    EXPECT_EQ(table.gate.pending(), 0U) << way;
    is_over.store(true);
    attendant.join();
  }
}

}  // namespace
}  // namespace weir
