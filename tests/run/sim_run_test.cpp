// Whole runs on the simulated device: every workload, every way to submit and to wait, and the same result each time.
#include <gtest/gtest.h>

#include "base/error.h"
#include "run/runner.h"
#include "run/sweep.h"
#include "step/workload/workload.h"

namespace weir {
namespace {

Json run_on(const std::string& device_name, const RunRequest& request, const DeviceOptions& options = {}) {
  const auto device = open_device(device_name, options);
  return to_json(run_workload(*device, request, {}, {}));
}

RunRequest request_for(const std::string& workload) {
  RunRequest request;
  request.workload = workload;
  request.iterations = 3;
  request.warmup = 1;
  request.seed = 1;
  return request;
}

TEST(SimRun, every_workload_runs_at_every_scale_and_on_every_profile) {
  EXPECT_EQ(workloads().size(), 18u);
  for (const Workload& workload : workloads()) {
    for (const char* device : {"sim:h200", "sim:a100", "sim:mi300x", "sim:mi300x_2026", "sim:mi308x", "sim:toy"}) {
      for (const Scale scale : {Scale::tiny, Scale::full}) {
        RunRequest request = request_for(workload.name);
        request.scale = scale;
        const Json result = run_on(device, request);
        EXPECT_EQ(result["status"], "complete") << workload.name << ' ' << device << ' ' << result.dump();
        EXPECT_EQ(result["check"]["status"], "skipped");
        EXPECT_EQ(result["check"]["reason"], "simulated: computes nothing");
        EXPECT_GT(result["metrics"]["latency_ns"]["p50"].get<double>(), 0);
        // Some workloads' data decide how much work there is.
        const Json& throughput = result["metrics"]["throughput"];
        EXPECT_EQ(throughput.is_null(), result["unavailable"].contains("metrics.throughput"));
        EXPECT_TRUE(throughput.is_null() || throughput["value"].get<double>() > 0);
      }
    }
  }
}

TEST(SimRun, every_way_to_submit_to_wait_and_to_place_works) {
  for (const char* workload : {"hetero_kernels", "moe", "async_dataload"}) {
    for (const char* submit : {"inline", "threads:2", "graph"}) {
      for (const SyncMode sync : {SyncMode::per_iteration, SyncMode::end_only, SyncMode::none}) {
        for (const char* placement : {"natural", "serial", "round_robin", "critical_path"}) {
          RunRequest request = request_for(workload);
          request.scale = Scale::tiny;
          request.submit = parse_submit(submit);
          request.sync = sync;
          request.placement = &placement_named(placement);
          const Json result = run_on("sim:h200", request);
          EXPECT_EQ(result["status"], "complete") << result.dump();
          EXPECT_GT(result["metrics"]["throughput"]["value"].get<double>(), 0);
        }
      }
    }
  }
}

TEST(SimRun, a_channel_of_real_threads_has_no_place_in_virtual_time) {
  RunRequest request = request_for("hetero_kernels");
  request.submit = parse_submit("channel:mpsc:2");
  try {
    run_on("sim:h200", request);
    FAIL() << "it ran";
  } catch (const Error& error) {
    EXPECT_EQ(error.fault, Fault::input);
    EXPECT_NE(std::string(error.what()).find("virtual time"), std::string::npos) << error.what();
    EXPECT_NE(error.hint.find("inline or threads"), std::string::npos) << error.hint;
  }
}

TEST(SimRun, two_runs_of_one_seed_are_equal) {
  for (const char* submit : {"inline", "threads:4", "graph"}) {
    RunRequest request = request_for("hetero_kernels");
    request.submit = parse_submit(submit);
    request.iterations = 10;
    DeviceOptions options;
    options.sim = {{"jitter", "0.1"}, {"seed", "5"}};
    Json first = run_on("sim:h200", request, options);
    Json second = run_on("sim:h200", request, options);
    first.erase("created");
    second.erase("created");
    EXPECT_EQ(first.dump(), second.dump()) << submit;
    options.sim[1].second = "6";
    Json other = run_on("sim:h200", request, options);
    EXPECT_NE(first["samples"], other["samples"]);
  }
}

TEST(SimRun, nothing_of_this_machine_is_in_the_numbers) {
  const Json result = run_on("sim:h200", request_for("tiny_kernel_stress"));
  EXPECT_TRUE(result["metrics"]["floor_ns_per_command"].is_null());
  EXPECT_TRUE(result["unavailable"].contains("metrics.floor_ns_per_command"));
  EXPECT_TRUE(result["metrics"]["telemetry"]["clock_mhz_after"].is_null());
  EXPECT_TRUE(result["metrics"]["energy"].is_null());
  EXPECT_NEAR(result["metrics"]["host_ns_per_command"].get<double>(), 4000, 1);
}

TEST(SimRun, the_switch_cost_is_what_the_profile_says) {
  RunRequest request = request_for("tiny_kernel_stress");
  request.streams = 8;
  const auto per_hop = [&](const char* queues) {
    DeviceOptions options;
    options.sim = {{"queues", queues}};
    const Json result = run_on("sim:h200", request, options);
    return result["metrics"]["queue_switch"]["controlled"]["ns_per_hop"].get<double>();
  };
  EXPECT_NEAR(per_hop("1"), 300, 20);
  // All 8 queues have commands: three doublings.
  EXPECT_NEAR(per_hop("8"), 3 * 750, 20);
}

}  // namespace
}  // namespace weir
