// What calibration finds out about a device whose parameters are known, and how close its predictions come to that
// device with other queue counts.
#include "lab/queues/queue_cost.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "base/error.h"
#include "base/units.h"
#include "report/text/documents.h"
#include "step/workload/yaml.h"

namespace weir {
namespace {

using Overrides = std::vector<std::pair<std::string, std::string>>;

struct KnownDevice {
  std::string name;
  Overrides overrides;
};

std::unique_ptr<Device> open(const KnownDevice& known, int queues = 0) {
  DeviceOptions options;
  options.sim = known.overrides;
  if (queues != 0) std::erase_if(options.sim, [](const auto& setting) { return setting.first == "queues"; });
  options.hardware_queues = queues;
  return open_device(known.name, options);
}

RunRequest request_for(const std::string& workload, Scale scale) {
  RunRequest request;
  request.workload = workload;
  request.scale = scale;
  request.iterations = 5;
  request.warmup = 1;
  request.traces = false;
  return request;
}

RunRequest depth_first(int streams, Scale scale) {
  RunRequest request = request_for("", scale);
  request.loaded = std::make_shared<const Workload>(load_workload(WEIR_SOURCE_DIR "/config/depth_first.yaml"));
  request.workload = request.loaded->name;
  request.streams = streams;
  return request;
}

double truth(const KnownDevice& known, const RunRequest& request, int queues) {
  const auto device = open(known, queues);
  const Json result = to_json(run_workload(*device, request, {}, {}));
  return result["metrics"]["latency_ns"]["p50"].get<double>();
}

QueueCost price(const KnownDevice& known, const RunRequest& request, const std::vector<int>& queues) {
  const auto device = open(known);
  CostRequest asked;
  asked.run = request;
  asked.probe = probe_queues(*device, {});
  asked.queues = queues;
  return price_queues(*device, asked, {}, {});
}

void expect_close(const KnownDevice& known, const RunRequest& request, double tolerance, double on_one_queue,
                  const std::vector<int>& queues = {1, 2, 3, 8, 32}) {
  const QueueCost cost = price(known, request, queues);
  for (const QueueCost::Prediction& prediction : cost.predictions) {
    const double measured = truth(known, request, prediction.queues);
    ASSERT_TRUE(prediction.step_ns) << known.name << ' ' << request.workload;
    EXPECT_NEAR(*prediction.step_ns / measured, 1, prediction.queues == 1 ? on_one_queue : tolerance)
        << known.name << ' ' << request.workload << ' ' << name_of(*request.scale) << " on " << prediction.queues
        << " queues, calibrated with " << cost.queues_now << ": " << format_duration(*prediction.step_ns) << " for "
        << format_duration(measured);
  }
}

const std::vector<std::string> kWorkloads = {"hetero_kernels", "moe", "fsdp_tp", "graph_subgraphs",
                                             "speculative_decode"};

// A host so fast that the queues are what a step waits for: with 1 queue these take 1.5 to 4 times as long as with 32.
KnownDevice quick_host(KnownDevice known) {
  known.overrides.insert(
      known.overrides.end(),
      {{"host.launch_ns", "300"}, {"host.record_ns", "100"}, {"host.wait_ns", "100"}, {"engine_queues", "1"}});
  return known;
}

TEST(QueueCost, PredictsAnH200AsItIs) {
  for (const std::string& workload : kWorkloads)
    for (const Scale scale : {Scale::tiny, Scale::small})
      expect_close({"sim:h200", {}}, request_for(workload, scale), 0.01, 0.01);
}

TEST(QueueCost, PredictsDevicesWhoseQueuesMatter) {
  const KnownDevice devices[] = {
      quick_host({"sim:h200", {}}),
      quick_host({"sim:h200", {{"mapping", "round_robin"}}}),
      quick_host({"sim:h200", {{"mapping", "rotating"}}}),
      quick_host({"sim:h200", {{"queues", "4"}}}),
      quick_host({"sim:a100", {}}),
      quick_host({"sim:mi300x", {{"barrier", "0"}}}),
      {"sim:toy",
       {{"resident_kernels", "128"},
        {"slots_per_multiprocessor", "32"},
        {"queue_depth", "1022"},
        {"engine_queues", "1"}}},
  };
  for (const KnownDevice& known : devices)
    for (const std::string& workload : kWorkloads) expect_close(known, request_for(workload, Scale::small), 0.1, 0.15);
}

// Devices with rules that calibration has to find out: barriers, few resident kernels, shallow queues, slow front ends,
// copies and host functions in queues of their own or not, kernels that slow each other down.
TEST(QueueCost, PredictsDevicesWhoseRulesItHasToLearn) {
  const KnownDevice devices[] = {
      {"sim:mi300x", {}},
      {"sim:mi300x", {{"host.launch_ns", "800"}, {"host.record_ns", "100"}, {"host.wait_ns", "100"}}},
      {"sim:toy", {}},
      quick_host({"sim:h200", {{"host_in_queue", "1"}, {"device.launch_ns", "900"}}}),
      {"sim:h200", {{"host.launch_ns", "900"}, {"engine_queues", "3"}, {"resident_kernels", "12"}}},
      {"sim:a100",
       {{"host.launch_ns", "500"}, {"mapping", "round_robin"}, {"queue_depth", "24"}, {"device.launch_ns", "700"}}},
      quick_host({"sim:h200", {{"contention", "1.5"}}}),
  };
  std::vector<std::string> workloads = {"graph_subgraphs", "async_dataload", "torch_compile"};
  if (std::getenv("WEIR_LONG_TESTS") != nullptr)
    workloads = {
        "hetero_kernels",     "tiny_kernel_stress", "large_gemm_only",       "fsdp_tp",         "moe",
        "speculative_decode", "continuous_batch",   "disaggregated_serving", "activation_ckpt", "grad_accum",
        "rag_pipeline",       "graph_subgraphs",    "async_dataload",        "zero_offload",    "torch_compile"};
  for (const KnownDevice& known : devices)
    for (const std::string& workload : workloads)
      expect_close(known, request_for(workload, Scale::small), 0.08, 0.08, {1, 2, 4, 8, 16, 32});
}

// Spins last what they are told, so that nothing explains a step that takes three times as long.
TEST(QueueCost, RefusesWhereTheFitIsBad) {
  const KnownDevice known{"sim:h200", {}};
  const auto device = open(known);
  CostRequest asked;
  asked.run = depth_first(32, Scale::small);
  asked.probe = probe_queues(*device, {});
  asked.queues = {1, 8, 32};
  const double step_ns = truth(known, asked.run, 8);
  asked.measured = MeasuredStep{3 * step_ns, 0.1 * step_ns, {3 * step_ns}, nullptr};
  const QueueCost cost = price_queues(*device, asked, {}, {});
  const Json& json = cost.document["cost"];
  ASSERT_EQ(cost.predictions.size(), 3u);
  for (std::size_t i = 0; i < cost.predictions.size(); ++i) {
    EXPECT_FALSE(cost.predictions[i].step_ns);
    EXPECT_TRUE(json["predictions"][i]["step_ns"].is_null());
    EXPECT_TRUE(json["predictions"][i]["change"].is_null());
  }
  EXPECT_FALSE(cost.advised);
  EXPECT_TRUE(json["head_of_line"]["step_ns"].is_null());
  EXPECT_TRUE(json["head_of_line"]["unlimited_step_ns"].is_null());
  const std::string reason = cost.document["unavailable"]["cost.predictions.step_ns"].string();
  EXPECT_NE(reason.find("it is not like this device"), std::string::npos) << reason;
  for (const char* key :
       {"cost.predictions.change", "cost.head_of_line.step_ns", "cost.head_of_line.unlimited_step_ns"})
    EXPECT_EQ(cost.document["unavailable"][key], reason) << key;
  EXPECT_EQ(json["advice"]["sentence"], "no advice: " + reason);
  const std::string text = describe_queue_cost(cost.document);
  EXPECT_NE(text.find("not known"), std::string::npos);
  EXPECT_EQ(text.find("of the step;"), std::string::npos) << text;
}

// Queues that take hardly a command: experiments that need more of them say so.
TEST(QueueCost, PricesOrRefusesWithShallowQueues) {
  for (const char* depth : {"1", "2", "3", "5"}) {
    SCOPED_TRACE(depth);
    try {
      const QueueCost cost =
          price({"sim:h200", {{"queue_depth", depth}}}, request_for("hetero_kernels", Scale::tiny), {1, 8});
      ASSERT_EQ(cost.predictions.size(), 2u);
      for (const QueueCost::Prediction& prediction : cost.predictions) {
        if (prediction.step_ns)
          EXPECT_GT(*prediction.step_ns, 0);
        else
          EXPECT_TRUE(cost.document["unavailable"].contains("cost.predictions.step_ns"));
      }
    } catch (const Error& refusal) {
      EXPECT_STRNE(refusal.what(), "");
    }
  }
}

TEST(QueueCost, PredictsDepthFirstIssueClosely) {
  const KnownDevice devices[] = {
      {"sim:h200", {}},
      {"sim:a100", {{"queues", "4"}}},
      quick_host({"sim:h200", {{"mapping", "round_robin"}}}),
      {"sim:mi300x", {{"barrier", "0"}}},
      {"sim:toy",
       {{"resident_kernels", "128"},
        {"slots_per_multiprocessor", "32"},
        {"queue_depth", "1022"},
        {"engine_queues", "1"}}},
  };
  for (const KnownDevice& known : devices)
    for (const Scale scale : {Scale::small, Scale::full}) expect_close(known, depth_first(32, scale), 0.01, 0.01);
}

TEST(QueueCost, WarnsWhereQueuesWaitForTheEndOfEachCommand) {
  const auto warns = [](const QueueCost& cost) {
    return std::any_of(cost.document["warnings"].begin(), cost.document["warnings"].end(),
                       [](const Json& warning) { return warning["kind"] == "barrier"; });
  };
  for (const char* mapping : {"least_referenced", "load_based"}) {
    const QueueCost cost = price({"sim:mi300x", {{"mapping", mapping}}}, depth_first(8, Scale::small), {1, 4});
    EXPECT_EQ(warns(cost), cost.profile.barrier == 0) << mapping;
  }
  EXPECT_FALSE(warns(price({"sim:mi300x_2026", {}}, depth_first(8, Scale::small), {1, 4})));
  EXPECT_FALSE(warns(price({"sim:h200", {}}, depth_first(8, Scale::small), {1, 4})));
}

TEST(QueueCost, FindsTheParametersThatItMeasures) {
  const KnownDevice known{"sim:h200", {{"host.launch_ns", "5200"}, {"device.stream_gap_ns", "2100"}}};
  const QueueCost cost = price(known, request_for("moe", Scale::small), {8});
  EXPECT_EQ(cost.profile.queues, 8);
  EXPECT_EQ(cost.profile.mapping, sim::Mapping::load_based);
  EXPECT_NEAR(static_cast<double>(cost.profile.host.launch_ns), 5200, 52);
  EXPECT_NEAR(static_cast<double>(cost.profile.device.stream_gap_ns), 2100, 42);
  EXPECT_EQ(cost.profile.multiprocessors, 132);
  EXPECT_FALSE(cost.profile.durations.empty());
  const Json& calibration = cost.document["cost"]["calibration"];
  EXPECT_NEAR(calibration["residual"].get<double>(), 0, 0.01);
}

// 4 spins of 0.5 ms on each of 32 streams. On 8 queues 4 streams share one, and each adds all of its kernels but the
// last: 4 x 3 x 0.5 + 0.5 = 6.5 ms. On 32 queues it is 4 x 0.5 = 2 ms; both and what the host needs to submit.
TEST(QueueCost, ExplainsDepthFirstIssue) {
  const QueueCost cost = price({"sim:h200", {}}, depth_first(32, Scale::full), {1, 2, 4, 8, 16, 32});
  const Json& json = cost.document["cost"];
  ASSERT_EQ(cost.predictions.size(), 6u);
  const double now = cost.predictions[3].step_ns.value(), best = cost.predictions[5].step_ns.value();
  EXPECT_NEAR(now, 6.7e6, 0.67e6);
  EXPECT_NEAR(best, 2.6e6, 0.26e6);
  const std::string expected = fmt::format(
      "With 8 hardware queues a step takes {}, with 32 hardware queues it would take {}. The difference, {}, is "
      "head-of-line blocking: ready commands waited only because an unrelated command sat in front of them in the same "
      "hardware queue.",
      format_duration(now), format_duration(best), format_duration(now - best));
  EXPECT_EQ(json["explanation"], expected);
  EXPECT_EQ(cost.advised, 32);
  EXPECT_EQ(json["advice"]["sentence"], fmt::format("use --hw-queues 32: predicted {:+.0f} %", 100 * (best / now - 1)));
  // Three quarters of the streams wait: the first one on each queue does not.
  EXPECT_EQ(json["head_of_line"]["simulated"]["commands"], 24);
  EXPECT_EQ(json["head_of_line"]["simulated"]["of_commands"], 128);
  EXPECT_NEAR(json["head_of_line"]["simulated"]["waited_ns"].get<double>(), 8 * (1.5e6 + 3e6 + 4.5e6), 0.1 * 72e6);
  EXPECT_NEAR(json["head_of_line"]["step_ns"].get<double>(), now - best, 0.05 * now);
}

TEST(QueueCost, LeavesAloneWhatHasQueuesEnough) {
  const QueueCost cost = price({"sim:h200", {}}, depth_first(8, Scale::small), {1, 2, 4, 8, 16, 32});
  const Json& json = cost.document["cost"];
  EXPECT_FALSE(cost.advised);
  EXPECT_TRUE(json["advice"]["queues"].is_null());
  EXPECT_TRUE(cost.document["unavailable"].contains("cost.advice.queues"));
  EXPECT_NE(json["advice"]["sentence"].get<std::string>().find("leave it at 8 hardware queues"), std::string::npos);
  EXPECT_NE(json["explanation"].get<std::string>().find("hardly any ready command waits"), std::string::npos);
  EXPECT_EQ(json["head_of_line"]["simulated"]["commands"], 0);
}

TEST(QueueCost, ExplainsFewerQueuesAndTheSameOnes) {
  const auto explanation = [](const std::vector<int>& queues) {
    return price({"sim:h200", {}}, depth_first(32, Scale::full), queues).document["cost"]["explanation"];
  };
  const std::string fewer = explanation({1, 2}).string();
  EXPECT_NE(fewer.find("The difference, 18.0 ms, would be head-of-line blocking"), std::string::npos) << fewer;
  EXPECT_TRUE(explanation({8}).is_null());
  // 32 streams share 8 queues or 9: at most four on one.
  const std::string same = explanation({8, 9}).string();
  EXPECT_EQ(same.find("hardly any"), std::string::npos) << same;
}

TEST(QueueCost, AProfileReadsBackAsWhatPredicted) {
  const KnownDevice known{"sim:h200", {{"queues", "4"}}};
  const RunRequest request = request_for("graph_subgraphs", Scale::small);
  const QueueCost cost = price(known, request, {4, 16});
  const sim::SimProfile again = sim::load_profile(to_yaml(cost.profile), "saved.yaml");
  EXPECT_EQ(to_yaml(again), to_yaml(cost.profile));
  const auto device = open_device("sim:h200", {});
  const BuiltRun built = build_run(device->info(), request);
  const StepRun run{built, request.iterations, request.warmup};
  // Predictions carry what the fit left unexplained, which is less than a percent here.
  EXPECT_NEAR(simulate(again, run, false).step_ns, *cost.predictions[0].step_ns, 0.01 * *cost.predictions[0].step_ns);
}

}  // namespace
}  // namespace weir
