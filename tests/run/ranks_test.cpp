#include "run/ranks.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <barrier>
#include <cstring>
#include <thread>

#include "base/error.h"
#include "run/runner.h"

namespace weir {
namespace {

// Ranks as threads of this process: what the runner needs of a communicator, without MPI.
class Hall {
 public:
  explicit Hall(int count) : count_(count), barrier_(count), texts_(static_cast<std::size_t>(count)) {}

  class Seat final : public Communicator {
   public:
    Seat(Hall& hall, int rank, std::string host) : hall_(hall), rank_(rank), host_(std::move(host)) {}
    Ranks ranks() const override { return {rank_, hall_.count_}; }
    Ranks local_ranks() const override { return ranks(); }
    std::string library() const override { return "threads"; }
    std::string host() const override { return host_; }
    RankClockOffset clock_offset() override { return clock; }
    void open_channels(int) override {}
    Request start(int, const Collective&, ElementType, const void*, void*, std::uint64_t) override { fail("not here"); }
    bool test(Request) override { return true; }
    void barrier() override { hall_.barrier_.arrive_and_wait(); }
    void broadcast(std::span<std::byte> bytes, int from) override {
      if (rank_ == from) hall_.bytes_ = bytes;
      barrier();
      if (rank_ != from) std::memcpy(bytes.data(), hall_.bytes_.data(), bytes.size());
      barrier();
    }
    std::vector<std::string> gather(const std::string& text) override {
      hall_.texts_[static_cast<std::size_t>(rank_)] = text;
      barrier();
      std::vector<std::string> all;
      if (rank_ == 0) all = hall_.texts_;
      barrier();
      return all;
    }
    [[noreturn]] void abort(int) noexcept override { std::abort(); }

    RankClockOffset clock;

   private:
    Hall& hall_;
    int rank_;
    std::string host_;
  };

  // Calls `body` on every rank and waits for all.
  template <class Body>
  void run(Body body) {
    std::vector<std::jthread> threads;
    for (int rank = 0; rank < count_; ++rank) threads.emplace_back([=] { body(rank); });
  }

 private:
  int count_;
  std::barrier<> barrier_;
  std::vector<std::string> texts_;
  std::span<std::byte> bytes_;
};

RunRequest tiny_request() {
  RunRequest request;
  request.workload = "tiny_kernel_stress";
  request.streams = 2;
  request.iterations = 6;
  request.warmup = 1;
  request.scale = Scale::tiny;
  return request;
}

TEST(RunnerRanks, TheResultIsThatOfAllRanks) {
  for (const SyncMode sync : {SyncMode::per_iteration, SyncMode::end_only, SyncMode::none}) {
    Hall hall(3);
    std::vector<Result> results(3);
    hall.run([&](int rank) {
      Hall::Seat seat(hall, rank, "here");
      DeviceOptions options;
      options.workers = 1;
      const auto device = open_device("cpu", options);
      RunControl control;
      control.communicator = &seat;
      RunRequest request = tiny_request();
      request.sync = sync;
      results[static_cast<std::size_t>(rank)] = run_workload(*device, request, {}, control);
    });
    const Result& whole = results[0];
    ASSERT_EQ(whole.status, "complete") << whole.failure;
    EXPECT_EQ(whole.ranks["count"], 3);
    EXPECT_DOUBLE_EQ(whole.work_per_iteration, 3 * results[1].work_per_iteration);
    EXPECT_EQ(whole.ranks["per_rank"].size(), 3u);
    EXPECT_TRUE(results[1].ranks.is_null());
    EXPECT_TRUE(whole.unavailable.contains("ranks.skew"));
    double sum = 0;
    for (const Json& rank : whole.ranks["per_rank"]) sum += rank["throughput"].get<double>();
    // Each rank alone was at least as fast as the slowest of each iteration.
    EXPECT_LE(whole.throughput->value, sum * 1.0001);
    if (sync != SyncMode::per_iteration) continue;
    for (std::size_t i = 0; i < 6; ++i)
      EXPECT_GE((*whole.samples.latency_ns)[i], (*results[2].samples.latency_ns)[i])
          << "the last rank ends an iteration";
  }
}

TEST(RunnerRanks, StopTogetherWhenOneIsAskedTo) {
  Hall hall(2);
  std::vector<Result> results(2);
  hall.run([&](int rank) {
    Hall::Seat seat(hall, rank, "here");
    DeviceOptions options;
    options.workers = 1;
    const auto device = open_device("cpu", options);
    const std::atomic<bool> stop{rank == 1};
    RunControl control;
    control.stop = &stop;
    control.communicator = &seat;
    results[static_cast<std::size_t>(rank)] = run_workload(*device, tiny_request(), {}, control);
  });
  for (const Result& result : results) {
    EXPECT_EQ(result.status, "interrupted");
    EXPECT_EQ(result.samples.submit_ns->size(), 1u);
  }
}

// A step with two collectives, and what a rank that is `late_ns` behind saw of it on a clock that is `ahead_ns` fast.
Step step_with_collectives() {
  StepBuilder builder(1, {0, 3});
  const BufferId in = builder.uniform(ElementType::f32, 12);
  const BufferId out = builder.output(ElementType::f32, 12);
  const BufferId last = builder.output(ElementType::f32, 12);
  builder.collective(CollectiveOp::all_reduce, {}, {in}, {out});
  builder.collective(CollectiveOp::shift, {}, {out}, {last});
  return std::move(builder).seal(1);
}

Timeline seen_by(std::int64_t late_ns, std::int64_t ahead_ns) {
  Timeline timeline;
  timeline.source = "made up";
  for (std::uint32_t iteration = 1; iteration <= 20; ++iteration)
    for (std::uint32_t command = 0; command < 2; ++command) {
      Span span;
      span.command = command;
      span.iteration = iteration;
      span.started_ns = 1'000'000 * (iteration * 2 + command) + late_ns + ahead_ns;
      span.ended_ns = 1'000'000 * (iteration * 2 + command) + 500'000 + ahead_ns;
      timeline.spans.push_back(span);
    }
  return timeline;
}

TEST(RankReports, FindThePlantedStragglerAcrossClocks) {
  Hall hall(3);
  Result whole;
  hall.run([&](int rank) {
    Hall::Seat seat(hall, rank, rank == 2 ? "there" : "here");
    // Rank 2's clock is far ahead and it knows; rank 1 shares rank 0's clock, whatever it believes to have measured.
    if (rank == 1) seat.clock = {77'000'000, 10};
    if (rank == 2) seat.clock = {-5'000'000'000, 2'000};
    DeviceInfo info;
    info.name = info.backend = "cpu";
    RankReports reports(seat, info);
    Result result;
    result.device = to_json(info);
    result.check = {{"status", "passed"},
                    {"reason", nullptr},
                    {"buffers", 2},
                    {"outputs", 5},
                    {"worst_relative_error", rank * 0.1},
                    {"worst_share_of_tolerance", 0.5}};
    result.work_per_iteration = 10;
    TimedPass pass;
    pass.latency_ns = {100.0 + rank, 100.0 - rank};
    pass.interval_ns = pass.latency_ns;
    reports.gather_timed(result, pass);
    if (rank == 0) {
      EXPECT_EQ(pass.latency_ns, std::vector<double>({102, 100}));
    }
    const Step step = step_with_collectives();
    reports.gather_traced(result, step, seen_by(rank == 1 ? 90'000 : 0, rank == 2 ? 5'000'000'000 : 0));
    if (rank == 0) whole = result;
  });
  EXPECT_DOUBLE_EQ(whole.check["worst_relative_error"].get<double>(), 0.2);
  EXPECT_EQ(whole.check["buffers"], 6);
  EXPECT_EQ(whole.check["outputs"], 15);
  const Json& skew = whole.ranks["skew"];
  EXPECT_EQ(skew["instances"], 40);
  EXPECT_DOUBLE_EQ(skew["skew_ns"]["p50"].get<double>(), 90'000);
  EXPECT_DOUBLE_EQ(skew["clock_error_ns"].get<double>(), 2'000);
  ASSERT_EQ(whole.ranks["stragglers"].size(), 1u) << whole.ranks["stragglers"];
  EXPECT_EQ(whole.ranks["stragglers"][0]["rank"], 1);
  EXPECT_EQ(whole.ranks["hosts"], Json::array({"here", "there"}));
  EXPECT_GT(whole.ranks["per_rank"][2]["collective_share"].get<double>(), 0.4);
}

TEST(RankReports, AnOutputThatIsWrongAnywhereFailsTheRunAndNamesTheRank) {
  Hall hall(3);
  Result whole;
  hall.run([&](int rank) {
    Hall::Seat seat(hall, rank, "here");
    DeviceInfo info;
    info.name = info.backend = "cpu";
    RankReports reports(seat, info);
    Result result;
    result.workload = "x";
    result.device = to_json(info);
    result.check = {{"status", rank == 2 ? "failed" : "passed"},
                    {"reason", rank == 2 ? Json("buffer 5 is wrong") : Json(nullptr)},
                    {"buffers", 2},
                    {"outputs", 5},
                    {"worst_relative_error", nullptr},
                    {"worst_share_of_tolerance", nullptr}};
    TimedPass pass;
    pass.latency_ns = pass.interval_ns = {100};
    reports.gather_timed(result, pass);
    if (rank == 0) whole = result;
  });
  EXPECT_EQ(whole.status, "failed");
  EXPECT_EQ(whole.check["status"], "failed");
  EXPECT_NE(whole.failure.find("rank 2 (here): buffer 5"), std::string::npos) << whole.failure;
}

TEST(RankReports, RefuseDevicesOfDifferentKinds) {
  Hall hall(2);
  int rejected = 0;
  hall.run([&](int rank) {
    Hall::Seat seat(hall, rank, "here");
    DeviceInfo info;
    info.name = info.backend = rank == 0 ? "cpu" : "null";
    try {
      const RankReports reports(seat, info);
    } catch (const Error& error) {
      rejected += error.fault == Fault::input ? 1 : 0;
    }
  });
  EXPECT_EQ(rejected, 1) << "rank 0 says it for all";
}

}  // namespace
}  // namespace weir
