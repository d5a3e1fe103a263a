// Whole runs whose commands a policy lets go: every workload computes what it should, and results say how they were
// run.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "run/runner.h"
#include "run/sweep.h"
#include "step/workload/yaml.h"
#include "submit/sched/policy.h"

namespace weir {
namespace {

RunRequest tiny_scheduled(const std::string& workload, const std::string& submit) {
  RunRequest request;
  request.workload = workload;
  request.iterations = 3;
  request.warmup = 1;
  request.scale = Scale::tiny;
  request.submit = parse_submit(submit);
  return request;
}

TEST(ScheduledRun, every_workload_passes_its_check_under_every_policy) {
  const auto device = open_device("cpu", {});
  for (const Workload& workload : workloads()) {
    for (const scheduler::Policy& policy : scheduler::policies()) {
      for (const SyncMode sync : {SyncMode::per_iteration, SyncMode::end_only}) {
        RunRequest request = tiny_scheduled(workload.name, fmt::format("scheduled:{}", policy.name));
        request.sync = sync;
        request.traces = false;
        const Result result = run_workload(*device, request, {}, {});
        EXPECT_EQ(result.status, "complete") << workload.name << " " << policy.name << ": " << result.failure;
        EXPECT_EQ(result.check["status"], "passed") << workload.name << " " << policy.name;
        EXPECT_EQ(result.submit, fmt::format("scheduled:{}:2", policy.name));
        EXPECT_TRUE(result.floor_ns_per_command);
      }
    }
  }
}

TEST(ScheduledRun, every_placement_and_every_bound_works) {
  const auto device = open_device("cpu", {});
  for (const char* workload : {"hetero_kernels", "moe", "async_dataload", "continuous_batch"}) {
    for (const char* placement : {"natural", "serial", "round_robin", "critical_path"}) {
      for (const int in_flight : {1, 3, 1000}) {
        RunRequest request = tiny_scheduled(workload, fmt::format("scheduled:priority:{}", in_flight));
        request.placement = &placement_named(placement);
        request.traces = false;
        const Result result = run_workload(*device, request, {}, {});
        EXPECT_EQ(result.check["status"], "passed") << workload << " " << placement << " " << in_flight;
      }
    }
  }
}

TEST(ScheduledRun, virtual_time_gives_the_same_result_every_time) {
  for (const Workload& workload : workloads()) {
    Json both[2];
    for (Json& result : both) {
      const auto device = open_device("sim:h200", {});
      result = to_json(run_workload(*device, tiny_scheduled(workload.name, "scheduled:weighted_fair:4"), {}, {}));
      EXPECT_EQ(result["status"], "complete") << workload.name << result.dump();
    }
    EXPECT_EQ(both[0]["samples"], both[1]["samples"]) << workload.name;
    EXPECT_EQ(both[0]["metrics"], both[1]["metrics"]) << workload.name;
  }
}

// What the whole is for. Latencies count from the step's begin, so holding back does not look quick.
TEST(ScheduledRun, small_urgent_kernels_do_not_wait_behind_large_ones) {
  const auto small = std::make_shared<const Workload>(load_workload(WEIR_SOURCE_DIR "/config/urgent_small.yaml"));
  const auto p99 = [&](const char* submit) {
    const auto device = open_device("sim:h200", {});
    RunRequest request = tiny_scheduled(small->name, submit);
    request.loaded = small;
    request.scale = Scale::full;
    request.params = {{"urgent", "1"}};
    const Json result = to_json(run_workload(*device, request, {}, {}));
    EXPECT_EQ(result["status"], "complete") << result.dump();
    return result["metrics"]["convoy"]["mixed_ns"]["p99"].get<double>();
  };
  EXPECT_LT(p99("scheduled:priority:2"), 0.5 * p99("scheduled:fifo:2"));
}

TEST(ScheduledRun, a_device_that_does_not_tell_is_refused_before_anything_runs) {
  DeviceInfo info = open_device("cpu", {})->info();
  const RunRequest request = tiny_scheduled("hetero_kernels", "scheduled:priority");
  check_request(info, request, {});
  info.command_ends = lacking("it is mute");
  try {
    check_request(info, request, {});
    ADD_FAILURE() << "not refused";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("it is mute"), std::string::npos) << error.what();
  }
}

TEST(ScheduledRun, floors_and_sweeps_name_the_way) {
  const auto device = open_device("null", {});
  SweepRequest request;
  request.run = tiny_scheduled("tiny_kernel_stress", "inline");
  request.streams = {4};
  request.submits = {parse_submit("inline"), parse_submit("scheduled:fifo"), parse_submit("scheduled:fifo:2"),
                     parse_submit("scheduled:fifo:8")};
  request.output = ::testing::TempDir() + "scheduled_sweep.json";
  request.overwrites = true;
  const Json sweep = run_sweep(*device, request, {}, {});
  std::vector<std::string> ways;
  for (const Json& floor : sweep["floor"]) ways.push_back(floor["submit"].get<std::string>());
  EXPECT_EQ(ways, (std::vector<std::string>{"inline", "scheduled:fifo:2", "scheduled:fifo:8"}));
}

}  // namespace
}  // namespace weir
