// One GEMM beside one collective: bus bandwidths as nccl-tests define them, figures that follow from the times, steps
// that are right on cpu and exact on sim, saving and resuming.
#include "lab/overlap/overlap_sweep.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <set>
#include <thread>

#include "base/error.h"
#include "device/rank/alone.h"
#include "device/rank/threads.h"
#include "support/programs.h"

namespace weir {
namespace {

OverlapSweepRequest tiny_sweep() {
  OverlapSweepRequest request;
  request.run.iterations = 4;
  request.run.warmup = 1;
  request.run.precision = Precision::fp32;
  request.gemm_sizes = {32};
  request.collectives = {CollectiveOp::all_reduce};
  request.message_bytes = {4096};
  return request;
}

Json measured(const char* name, const OverlapSweepRequest& request, const OverlapSweepPoint& point) {
  AloneCommunicator alone;
  DeviceOptions options;
  options.communicator = &alone;
  const auto device = open_device(name, options);
  RunControl control;
  control.communicator = &alone;
  return measure_overlap_point(*device, request, point, control);
}

TEST(OverlapSweep, BusFactorsAreThoseOfNcclTests) {
  EXPECT_DOUBLE_EQ(*bus_factor(CollectiveOp::all_reduce, 2), 1);
  EXPECT_DOUBLE_EQ(*bus_factor(CollectiveOp::all_reduce, 8), 1.75);
  for (const CollectiveOp op : {CollectiveOp::all_gather, CollectiveOp::reduce_scatter, CollectiveOp::all_to_all})
    EXPECT_DOUBLE_EQ(*bus_factor(op, 8), 0.875);
  EXPECT_DOUBLE_EQ(*bus_factor(CollectiveOp::shift, 8), 1);
  EXPECT_FALSE(bus_factor(CollectiveOp::all_reduce, 1));
}

TEST(OverlapSweep, EveryCollectiveIsCheckedOnCpu) {
  for (const CollectiveOp op : {CollectiveOp::all_reduce, CollectiveOp::all_gather, CollectiveOp::reduce_scatter,
                                CollectiveOp::all_to_all, CollectiveOp::shift}) {
    const Json entry = measured("cpu", tiny_sweep(), {32, op, 4096, {}});
    EXPECT_EQ(entry["status"], "complete") << entry.dump();
    EXPECT_EQ(entry["check"]["status"], "passed") << entry.dump();
    EXPECT_EQ(entry["compute_ns"]["alone"]["count"], 4);
    EXPECT_EQ(entry["communication_ns"]["beside"]["count"], 4);
    EXPECT_TRUE(entry["bus_bytes_per_s"]["alone"].is_null());
    EXPECT_TRUE(entry["unavailable"].contains("bus_bytes_per_s.alone"));
  }
}

TEST(OverlapSweep, FiguresFollowFromTheTimesOfTheSimulator) {
  const OverlapSweepPoint point{1024, CollectiveOp::all_reduce, 1 << 20, {}};
  const Json entry = measured("sim:h200", tiny_sweep(), point);
  ASSERT_EQ(entry["status"], "complete") << entry.dump();
  const double compute = entry["compute_ns"]["alone"]["p50"].get<double>();
  const double talk = entry["communication_ns"]["alone"]["p50"].get<double>();
  const double both = entry["both_ns"]["p50"].get<double>();
  EXPECT_NEAR(entry["compute_flop_per_s"]["alone"].get<double>(), 2.0 * 1024 * 1024 * 1024 / compute * 1e9, 1);
  EXPECT_NEAR(entry["algorithm_bytes_per_s"]["alone"].get<double>(), (1 << 20) / talk * 1e9, 1);
  EXPECT_NEAR(entry["overlap_efficiency"].get<double>(), (compute + talk - both) / std::min(compute, talk), 1e-9);
  EXPECT_GE(both, std::max(compute, talk));
  EXPECT_LT(both, compute + talk) << "the simulator runs them at once";
  EXPECT_EQ(entry["check"]["status"], "skipped");
}

TEST(OverlapSweep, MessagesAreWholeElementsOnEveryRank) {
  const OverlapSweepPoint point{32, CollectiveOp::all_gather, 4098, {}};
  EXPECT_EQ(measured("sim:h200", tiny_sweep(), point)["rounded_bytes"], 4096);
  EXPECT_THROW(measured("sim:h200", tiny_sweep(), {32, CollectiveOp::all_gather, 2, {}}), Error);
}

TEST(OverlapSweep, PointsAreAllCombinations) {
  OverlapSweepRequest request = tiny_sweep();
  request.gemm_sizes = {32, 64};
  request.message_bytes = {4096, 8192};
  request.variables = parse_variable_axes({"NCCL_MAX_NCHANNELS=4,8"});
  const auto points = points_of(request);
  ASSERT_EQ(points.size(), 8u);
  std::set<std::string> words;
  for (const auto& point : points) words.insert(point.words());
  EXPECT_EQ(words.size(), 8u);
  EXPECT_EQ(points.back().words(), "gemm 64, all_reduce of 8.00 KiB, NCCL_MAX_NCHANNELS=8");
  request.gemm_sizes.assign(600, 1);
  EXPECT_THROW(points_of(request), Error);
}

// Only rank 0 has the entry, and all must end after the same point: what follows are collectives.
TEST(OverlapSweep, AllRanksLeaveAfterTheSamePoint) {
  OverlapSweepRequest request = tiny_sweep();
  request.gemm_sizes = {32, 64, 96};
  const DeviceInfo info = open_device("cpu", {})->info();
  ThreadWorld world(2);
  int begun[2] = {};
  std::string status[2];
  std::atomic<bool> stop = false;
  const auto sweep_on = [&](int rank) {
    DeviceOptions options;
    options.communicator = &world.rank(rank);
    const auto device = open_device("cpu", options);
    RunControl run;
    run.communicator = &world.rank(rank);
    if (rank == 1) {
      run.stop = &stop;
      run.after_iteration = [&](Session&) { stop = begun[1] == 2; };
    }
    OverlapSweepControl control;
    control.is_first_rank = rank == 0;
    control.ranks = 2;
    control.is_stopped = [&] { return run.agree_to_stop(); };
    control.measure = [&](const OverlapSweepPoint& point) {
      ++begun[rank];
      return measure_overlap_point(*device, request, point, run);
    };
    status[rank] = run_overlap_sweep(info, request, {}, control)["status"].get<std::string>();
    world.rank(rank).barrier();
  };
  std::thread other(sweep_on, 1);
  sweep_on(0);
  other.join();
  for (const int rank : {0, 1}) {
    EXPECT_EQ(begun[rank], 2);
    EXPECT_EQ(status[rank], "interrupted");
  }
}

TEST(OverlapSweep, SavesEachPointAndGoesOn) {
  const testing::Folder folder;
  OverlapSweepRequest request = tiny_sweep();
  request.gemm_sizes = {32, 64, 96};
  request.output = folder / "points.json";
  const DeviceInfo info = open_device("sim:h200", {})->info();
  int begun = 0;
  bool is_stopped = false;
  OverlapSweepControl control;
  control.is_stopped = [&] { return is_stopped; };
  control.measure = [&](const OverlapSweepPoint& point) {
    ++begun;
    is_stopped = begun == 2;
    if (begun > 1) {
      EXPECT_EQ(read_json(request.output)["points"].size(), static_cast<std::size_t>(begun - 1)) << "saved";
    }
    return measured("sim:h200", request, point);
  };
  EXPECT_EQ(run_overlap_sweep(info, request, {}, control)["status"], "interrupted");
  EXPECT_EQ(begun, 2);
  is_stopped = false;
  begun = 10;
  request.resumes = true;
  int kept = 0;
  control.on_point = [&](const Json&, bool was_kept) { kept += was_kept ? 1 : 0; };
  control.measure = [&](const OverlapSweepPoint& point) {
    ++begun;
    return measured("sim:h200", request, point);
  };
  const Json document = run_overlap_sweep(info, request, {}, control);
  EXPECT_EQ(document["status"], "complete");
  EXPECT_EQ(document["points"].size(), 3u);
  EXPECT_EQ(begun, 11);
  EXPECT_EQ(kept, 2);
  const auto with = [](Json variables) {
    RunContext context;
    context.environment["variables"] = std::move(variables);
    return context;
  };
  EXPECT_EQ(run_overlap_sweep(info, request, with({{"NCCL_ALGO", "Ring"}}), control)["status"], "complete");
  try {
    run_overlap_sweep(info, request, with({{"SLURM_JOB_ID", "2"}, {"NCCL_ALGO", "Tree"}}), control);
    ADD_FAILURE() << "another environment";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("NCCL_ALGO=Ring, now it is NCCL_ALGO=Tree"), std::string::npos)
        << error.what();
  }
  EXPECT_THROW(run_overlap_sweep(info, request, with(Json::object()), control), Error) << "unset";
  EXPECT_EQ(run_overlap_sweep(info, request, with({{"NCCL_ALGO", "Ring"}, {"SLURM_JOB_ID", "2"}}), control)["status"],
            "complete");
  request.run.iterations = 5;
  EXPECT_THROW(run_overlap_sweep(info, request, {}, control), Error) << "other settings";
}

}  // namespace
}  // namespace weir
