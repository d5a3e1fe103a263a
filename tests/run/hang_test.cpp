// Runs that do not go on: what is said about planted hangs, and when a watch speaks.
#include "run/hang.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <sstream>
#include <thread>

#include "base/clock.h"
#include "base/error.h"
#include "device/rank/network.h"
#include "device/rank/threads.h"
#include "run/hang_watch.h"
#include "run/passes.h"
#include "submit/placement.h"
#include "submit/submitter.h"
#include "support/text.h"

namespace weir {
namespace {

using State = StreamHang::State;
using namespace std::chrono_literals;

void expect_narrow_and_trimmed(const std::string& text) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    EXPECT_LE(line.size(), 80u) << line;
    EXPECT_FALSE(line.ends_with(' ')) << line;
  }
}

constexpr KernelShape kFill{.dims = {4}};

// Two commands on each of two streams; 2 needs 1, and the next iteration's 1 needs 2.
Step two_streams() {
  StepBuilder builder(1);
  const BufferId a = builder.output(ElementType::f32, 4), b = builder.output(ElementType::f32, 4),
                 c = builder.output(ElementType::f32, 4), d = builder.output(ElementType::f32, 4);
  builder.launch("fill", {.stream = 0}, kFill, {{a}});
  builder.launch("fill", {.stream = 1, .role = 1}, kFill, {{b}});
  builder.copy({.stream = 0}, {b}, {c});
  builder.launch("fill", {.stream = 1, .role = 1}, kFill, {{d}});
  return std::move(builder).seal(2);
}

TEST(Hang, names_the_command_of_another_stream_that_is_waited_for) {
  const Step step = two_streams();
  const Placement placement = place(step, "natural");
  // Iteration 3: stream 0 has done its first, stream 1 nothing.
  const std::vector<StreamProgress> progress = {{8, 7, true}, {8, 6, true}};
  const HangReport report =
      diagnose(step, placement, progress, {.roles = {"compute", "feed"}, .still_ns = 2'000'000'000});
  ASSERT_EQ(report.streams.size(), 2u);
  EXPECT_EQ(report.streams[0].state, State::waits);
  EXPECT_EQ(report.streams[0].last, (HangPlace{0, 3, 0}));
  EXPECT_EQ(report.streams[0].next, (HangPlace{2, 3, 0}));
  EXPECT_EQ(report.streams[0].waits_for, (std::vector<HangPlace>{{1, 3, 1}}));
  EXPECT_EQ(report.streams[1].state, State::runs);
  EXPECT_EQ(report.streams[1].next, (HangPlace{1, 3, 1}));
  EXPECT_TRUE(report.cycle.empty());
  EXPECT_TRUE(has(report.text, "nothing has ended for 2.00 s")) << report.text;
  EXPECT_TRUE(has(report.text, "waits       command 2 of iteration 3: copy, 16 B (compute)")) << report.text;
  EXPECT_TRUE(has(report.text, "for command 1 of iteration 3 on stream 1: kernel fill (feed)")) << report.text;
  EXPECT_FALSE(has(report.text, "rank"));
  expect_narrow_and_trimmed(report.text);
}

TEST(Hang, names_what_the_iteration_before_owes) {
  const Step step = two_streams();
  const Placement placement = place(step, "natural");
  ASSERT_FALSE(step.carried(1).empty());
  const std::vector<StreamProgress> progress = {{4, 1, true}, {4, 2, true}};
  const HangReport report = diagnose(step, placement, progress, {});
  EXPECT_EQ(report.streams[1].next, (HangPlace{1, 1, 1}));
  EXPECT_EQ(report.streams[1].waits_for, (std::vector<HangPlace>{{2, 0, 0}}));
}

TEST(Hang, tells_what_the_host_owes_from_what_has_ended) {
  const Step step = two_streams();
  const Placement placement = place(step, "natural");
  HangReport report = diagnose(step, placement, std::vector<StreamProgress>{{2, 2, true}, {1, 1, true}}, {});
  EXPECT_EQ(report.streams[0].state, State::idle);
  EXPECT_EQ(report.streams[1].state, State::unsubmitted);
  EXPECT_TRUE(has(report.text, "stream 0: all that was submitted has ended")) << report.text;
  EXPECT_TRUE(has(report.text, "which the host has not submitted")) << report.text;
  // Waiting for something that the host has not submitted yet.
  report = diagnose(step, placement, std::vector<StreamProgress>{{2, 1, true}, {0, 0, true}}, {});
  EXPECT_TRUE(has(report.text, "kernel fill, not submitted")) << report.text;
  report = diagnose(step, placement, std::vector<StreamProgress>{{2, 1, false}, {2, 1, false}}, {});
  EXPECT_TRUE(has(report.text, "at least 1 of 2")) << report.text;
  report = diagnose(step, placement, {}, {});
  EXPECT_TRUE(has(report.text, "does not tell")) << report.text;
}

TEST(Hang, counts_the_collectives_of_a_stream) {
  StepBuilder builder(1, {2, 4});
  const BufferId whole = builder.output(ElementType::f32, 4 << 20), part = builder.sharded(ElementType::f32, 1 << 20);
  builder.collective(CollectiveOp::all_gather, {.stream = 0}, {part}, {whole});
  builder.collective(CollectiveOp::reduce_scatter, {.stream = 0}, {whole}, {part});
  const Step step = std::move(builder).seal(1);
  const Placement placement = place(step, "natural");
  const std::vector<StreamProgress> progress = {{6, 5, true}};
  HangReport report = diagnose(step, placement, progress, {.ranks = {2, 4}});
  EXPECT_EQ(report.streams[0].state, State::collective);
  EXPECT_EQ(report.streams[0].collective, 6u);
  EXPECT_TRUE(has(report.text, "rank 2 of 4")) << report.text;
  EXPECT_TRUE(has(report.text, "reduce_scatter, 16.0 MiB")) << report.text;
  EXPECT_TRUE(has(report.text, "number 6 of this stream's collectives")) << report.text;
  EXPECT_TRUE(has(report.text, "waits for other ranks to join")) << report.text;
  report = diagnose(step, placement, progress, {.ranks = {2, 4}, .collectives = {5}});
  EXPECT_EQ(report.streams[0].state, State::absent);
  EXPECT_TRUE(has(report.text, "this rank has not started it")) << report.text;
  report = diagnose(step, placement, progress, {.ranks = {2, 4}, .collectives = {6}});
  EXPECT_EQ(report.streams[0].state, State::collective);
}

TEST(Hang, many_streams_stay_within_80_columns) {
  StepBuilder builder(1);
  for (StreamId s = 0; s < kMaxStreams; ++s)
    builder.launch("fill", {.stream = s}, kFill, {{builder.output(ElementType::f32, 4)}});
  const Step step = std::move(builder).seal(kMaxStreams);
  std::vector<StreamProgress> progress(kMaxStreams, {1, 1, true});
  const HangReport report = diagnose(step, place(step, "natural"), progress, {});
  expect_narrow_and_trimmed(report.text);
  EXPECT_TRUE(has(report.text, " 127: all that was submitted has ended")) << report.text;
}

// Counts that a test moves by hand.
struct Counts {
  std::atomic<std::uint64_t> submitted{0}, ended{0};
  std::vector<StreamProgress> look() const { return {{submitted.load(), ended.load(), true}}; }
};

TEST(HangWatch, speaks_once_where_something_is_outstanding_and_nothing_happens) {
  Counts counts;
  std::atomic<int> calls{0};
  std::atomic<std::int64_t> still_ns{0};
  HangWatch watch(
      30'000'000, [&] { return counts.look(); },
      [&](std::span<const StreamProgress> progress, std::int64_t still) {
        EXPECT_EQ(progress[0].submitted, 2u);
        still_ns = still;
        ++calls;
      });
  std::this_thread::sleep_for(120ms);
  EXPECT_EQ(calls, 0) << "nothing is submitted";
  counts.submitted = 2;
  counts.ended = 1;
  while (calls == 0) std::this_thread::sleep_for(1ms);
  EXPECT_GE(still_ns, 30'000'000);
  std::this_thread::sleep_for(100ms);
  EXPECT_EQ(calls, 1);
}

TEST(HangWatch, is_silent_while_something_happens) {
  Counts counts;
  counts.submitted = 1'000'000;
  std::atomic<int> calls{0};
  HangWatch watch(600'000'000, [&] { return counts.look(); }, [&](auto, auto) { ++calls; });
  for (int i = 0; i < 70; ++i) {
    std::this_thread::sleep_for(15ms);
    ++counts.ended;
  }
  counts.ended = counts.submitted.load();
  std::this_thread::sleep_for(700ms);  // the host is busy with something else
  EXPECT_EQ(calls, 0);
}

TEST(HangWatch, sees_a_host_that_is_stuck_before_the_device_has_anything) {
  std::atomic<int> calls{0};
  HangWatch watch(20'000'000, [] { return std::vector<StreamProgress>(); }, [&](auto, auto) { ++calls; });
  watch.enter();
  watch.leave();
  std::this_thread::sleep_for(80ms);
  EXPECT_EQ(calls, 0);
  watch.enter();
  while (calls == 0) std::this_thread::sleep_for(1ms);
}

// Each stream holds until the other has set its flag, which it does behind its own hold.
TEST(Hang, two_streams_that_wait_for_each_other_are_a_cycle) {
  constexpr std::int64_t kLimit_ns = 20'000'000'000;
  StepBuilder builder(1);
  BufferId flags[2], moments[2];
  for (BufferId& flag : flags) flag = builder.host(ElementType::i32, 1, Init::constant);
  for (BufferId& moment : moments) moment = builder.host(ElementType::i32, 4, Init::constant);
  const BufferId one = builder.host(ElementType::i32, 1, Init::constant, 1, 1);
  for (StreamId s = 0; s < 2; ++s)
    builder.launch("hold", {.stream = s}, {.type = ElementType::i32, .dims = {kLimit_ns}}, {{flags[s]}, {moments[s]}});
  for (StreamId s = 0; s < 2; ++s) builder.copy({.stream = s}, {one}, {flags[1 - s]});
  const Step step = std::move(builder).seal(2);
  const Placement placement = place(step, "natural");
  for (const char* submit : {"channel:mpsc:2", "inline", "graph"}) {
    const auto device = open_device("cpu", {.workers = 2});
    const SubmitChoice choice = parse_submit(submit, 2);
    const auto session = device->prepare(step, placement, {.mode = choice.mode, .follows_progress = true});
    const auto submitter = make_submitter(choice, step, placement, *session);
    std::string said;
    RunControl control;
    control.hang_timeout_ns = 300'000'000;
    // As the only one that can: a program would end here.
    control.on_hang = [&](const std::string& report) {
      said = report;
      for (const BufferId flag : flags)
        std::atomic_ref(*reinterpret_cast<std::int32_t*>(session->host_memory(flag).data())).store(1);
    };
    {
      SessionWatch watch(control, device->info(), *session, step, placement);
      const SessionWatch::Inside inside(&watch);
      session->begin_iteration();
      submitter->submit_step();
      session->finish();
    }
    EXPECT_TRUE(has(said, "runs        command 0 of iteration 0: kernel hold")) << submit << ": " << said;
    EXPECT_TRUE(has(said, "until its flag is set by command 3 of iteration 0 on stream 1:")) << said;
    EXPECT_TRUE(has(said, "runs        command 1 of iteration 0: kernel hold")) << said;
    EXPECT_TRUE(has(said, "until its flag is set by command 2 of iteration 0 on stream 0:")) << said;
    EXPECT_TRUE(has(said, "cycle: stream 0 waits for stream 1 waits for stream 0")) << said;
    expect_narrow_and_trimmed(said);
  }
}

// Lets a test go on where a program would end: from rescue() on collectives end without anybody else.
class Rescued final : public Communicator {
 public:
  explicit Rescued(Communicator& inner) : inner_(inner) {}
  void rescue() { is_rescued_ = true; }

  Ranks ranks() const override { return inner_.ranks(); }
  Ranks local_ranks() const override { return inner_.local_ranks(); }
  std::string library() const override { return inner_.library(); }
  void open_channels(int count) override { inner_.open_channels(count); }
  Request start(int channel, const Collective& op, ElementType type, const void* from, void* to,
                std::uint64_t count) override {
    return is_rescued_ ? 0 : inner_.start(channel, op, type, from, to, count);
  }
  bool test(Request request) override { return is_rescued_ || inner_.test(request); }
  std::optional<std::uint64_t> started(int channel) const noexcept override { return inner_.started(channel); }
  void barrier() override { inner_.barrier(); }
  void broadcast(std::span<std::byte> bytes, int from) override { inner_.broadcast(bytes, from); }
  std::vector<std::string> gather(const std::string& text) override { return inner_.gather(text); }
  [[noreturn]] void abort(int) noexcept override { std::abort(); }

 private:
  Communicator& inner_;
  std::atomic<bool> is_rescued_{false};
};

TEST(Hang, a_rank_that_never_joins_is_named_by_all_ranks) {
  constexpr int kRanks = 3, kAbsent = 1;
  ThreadWorld world(kRanks);
  std::vector<std::unique_ptr<NetworkCommunicator>> networks;
  std::vector<std::unique_ptr<Rescued>> ranks;
  for (int rank = 0; rank < kRanks; ++rank) {
    networks.push_back(std::make_unique<NetworkCommunicator>(
        world.rank(rank), Network{.latency_us = 10, .absent_rank = kAbsent, .absent_at = 5}));
    ranks.push_back(std::make_unique<Rescued>(*networks.back()));
  }
  std::vector<std::string> said(kRanks);
  std::atomic<int> reports{0};
  std::vector<std::jthread> threads;
  for (int rank = 0; rank < kRanks; ++rank) {
    threads.emplace_back([&, rank] {
      Communicator& communicator = *ranks[static_cast<std::size_t>(rank)];
      StepBuilder builder(1, communicator.ranks());
      const BufferId part = builder.output(ElementType::f32, 4), whole = builder.output(ElementType::f32, 4 * kRanks),
                     result = builder.output(ElementType::f32, 4 * kRanks);
      builder.launch("fill", {.stream = 0}, kFill, {{part}});
      builder.collective(CollectiveOp::all_gather, {.stream = 1}, {part}, {whole});
      builder.copy({.stream = 0}, {whole}, {result});
      const Step step = std::move(builder).seal(2);
      const Placement placement = place(step, "natural");
      const auto device = open_device("cpu", {.workers = 1, .communicator = &communicator});
      const auto session = device->prepare(step, placement, {.follows_progress = true});
      const auto submitter = make_submitter(parse_submit("inline", 2), step, placement, *session);
      RunControl control;
      control.communicator = &communicator;
      control.hang_timeout_ns = 1'000'000'000;
      control.on_hang = [&, rank](const std::string& report) {
        said[static_cast<std::size_t>(rank)] = report;
        if (++reports == kRanks)
          for (const auto& each : ranks) each->rescue();
      };
      RunRequest request;
      request.iterations = 8;
      request.warmup = 1;
      SessionWatch watch(control, device->info(), *session, step, placement);
      run_timed_pass(*device, *session, *submitter, request, control, &watch);
    });
  }
  threads.clear();
  for (int rank = 0; rank < kRanks; ++rank) {
    const std::string& report = said[static_cast<std::size_t>(rank)];
    EXPECT_TRUE(has(report, "rank " + std::to_string(rank) + " of 3: the run does not go on")) << report;
    EXPECT_TRUE(has(report, "command 1 of iteration 5: all_gather, 48 B")) << report;
    EXPECT_TRUE(has(report, "number 6 of this stream's collectives")) << report;
    EXPECT_TRUE(has(report, "for command 1 of iteration 5 on stream 1: all_gather")) << report;
    EXPECT_EQ(has(report, "this rank has not started it"), rank == kAbsent) << report;
    EXPECT_EQ(has(report, "waits for other ranks to join"), rank != kAbsent) << report;
    EXPECT_FALSE(has(report, "cycle")) << report;
  }
}

TEST(Hang, virtual_time_is_not_watched) {
  const Step step = two_streams();
  const Placement placement = place(step, "natural");
  const auto device = open_device("sim:h200", {});
  const auto session = device->prepare(step, placement, {});
  RunControl control;
  control.hang_timeout_ns = 1'000'000;
  control.on_hang = [](const std::string& report) { ADD_FAILURE() << report; };
  SessionWatch watch(control, device->info(), *session, step, placement);
  const SessionWatch::Inside inside(&watch);
  std::this_thread::sleep_for(50ms);
  EXPECT_TRUE(session->progress().empty());
}

}  // namespace
}  // namespace weir
