// Limits of simulated devices against their own settings.
#include <gtest/gtest.h>

#include <string>

#include "device/sim/sim.h"
#include "lab/queues/limits.h"

namespace weir {
namespace {

std::unique_ptr<Device> device_with(const std::string& name,
                                    std::vector<std::pair<std::string, std::string>> settings) {
  DeviceOptions options;
  options.sim = std::move(settings);
  return open_device(name, options);
}

Json limits_of(const std::string& name, std::vector<std::pair<std::string, std::string>> settings) {
  LimitsRequest request;
  request.launches = 200;
  return measure_limits(*device_with(name, std::move(settings)), request, {});
}

// Somebody else's kernels make ours longer; those that are resident stay so.
TEST(ResidentLimit, IsTrueBesideForeignLoad) {
  for (const char* load : {"0.1", "0.4", "0.8"}) {
    for (const char* slice_ns : {"100000", "2000000", "9000000"}) {
      for (const int room : {1, 16, 42, 128}) {
        const auto device = device_with(
            "sim:h200",
            {{"foreign_load", load}, {"foreign_slice_ns", slice_ns}, {"resident_kernels", std::to_string(room)}});
        const ResidentLimit limit = measure_resident_limit(*device, 160);
        EXPECT_EQ(limit.kernels.value, room) << load << " in slices of " << slice_ns << ": " << limit.kernels.reason;
        EXPECT_EQ(limit.most_at_once, room);
      }
    }
  }
}

TEST(ResidentLimit, IsNotTheNumberOfQueuesThatRunOneKernelEach) {
  // A graph that passes through no queue shows the truth; one that shares the queues of streams cannot.
  const Json by_graph = limits_of("sim:mi300x", {{"graph_queues", "none"}, {"resident_kernels", "100"}});
  EXPECT_EQ(by_graph["limits"]["resident_kernels"]["value"], 100);
  EXPECT_EQ(by_graph["limits"]["resident_kernels"]["is_in_graph"], true);
  for (const char* name : {"sim:mi300x", "sim:mi308x"}) {
    const Json hidden = limits_of(name, {});
    EXPECT_TRUE(hidden["limits"]["resident_kernels"]["value"].is_null());
    const std::string reason = hidden["unavailable"]["limits.resident_kernels"].string();
    EXPECT_NE(reason.find("at least 4: each of the 4 queues runs one kernel at a time"), std::string::npos) << reason;
  }
  // Streams that share queues without waiting for each other fill the device.
  EXPECT_EQ(limits_of("sim:mi300x_2026", {})["limits"]["resident_kernels"]["value"], 128);
}

TEST(Limits, OneKernelAtATimeIsNoCountOfQueues) {
  const Json one = limits_of("sim:h200", {{"resident_kernels", "1"}});
  EXPECT_TRUE(one["limits"]["hardware_queues"]["value"].is_null());
  const std::string reason = one["unavailable"]["limits.hardware_queues"].string();
  EXPECT_NE(reason.find("at least 1"), std::string::npos) << reason;
  EXPECT_NE(reason.find("runs only 1 kernel at once"), std::string::npos) << reason;
  EXPECT_EQ(one["limits"]["resident_kernels"]["value"], 1);
}

// Latency and gaps between copies are not part of a rate.
TEST(CopyOverlap, RatesAreThoseOfTheProfile) {
  for (const char* name : {"sim:h200", "sim:a100", "sim:mi300x", "sim:mi300x_2026"}) {
    for (const char* latency_ns : {"1000", "20000"}) {
      const auto device = device_with(name, {{"device.copy_latency_ns", latency_ns}, {"device.stream_gap_ns", "5000"}});
      const sim::SimProfile truth = sim::profile_named(std::string(name).substr(4));
      const CopyOverlap found = measure_copy_overlap(*device, 16 << 20);
      ASSERT_EQ(found.alone.size(), 3u) << found.reason;
      const double rates[] = {truth.rates.to_device_bytes, truth.rates.to_host_bytes, truth.rates.on_device_bytes};
      for (std::size_t i = 0; i < 3; ++i) {
        ASSERT_TRUE(found.alone[i].bytes_per_s);
        EXPECT_NEAR(*found.alone[i].bytes_per_s / rates[i], 1, 0.01)
            << name << " " << name_of(found.alone[i].direction);
      }
    }
  }
}

TEST(CopyOverlap, OneEngineHidesNothing) {
  for (const int engines : {1, 2}) {
    for (const char* gap_ns : {"0", "1500", "8000"}) {
      const auto device = device_with("sim:h200", {{"copy_engines.to_device", std::to_string(engines)},
                                                   {"copy_engines.to_host", std::to_string(engines)},
                                                   {"copy_engines.on_device", std::to_string(engines)},
                                                   {"device.stream_gap_ns", gap_ns}});
      const CopyOverlap found = measure_copy_overlap(*device, 16 << 20);
      ASSERT_EQ(found.together.size(), 7u);
      for (const CopyOverlap::Together& set : found.together) {
        const bool is_pair_of_one = set.directions.size() == 2 && set.directions[0] == set.directions[1];
        ASSERT_TRUE(set.overlap);
        EXPECT_NEAR(*set.overlap, is_pair_of_one && engines == 1 ? 0 : 1, 0.02)
            << name_of(set.directions[0]) << " " << engines << " engines, gap " << gap_ns;
      }
    }
  }
}

TEST(CopyOverlap, ShallowQueuesMeasureFewerCopiesOrSayWhy) {
  for (const char* depth : {"1", "2", "5", "30", "100"}) {
    const auto device = device_with("sim:h200", {{"queue_depth", depth}, {"queues", "1"}});
    const CopyOverlap found = measure_copy_overlap(*device, 16 << 20);
    if (found.alone.empty()) {
      EXPECT_NE(found.reason.find("too shallow"), std::string::npos) << found.reason;
      continue;
    }
    EXPECT_NEAR(*found.alone[2].bytes_per_s / sim::profile_named("h200").rates.on_device_bytes, 1, 0.02) << depth;
  }
}

TEST(Limits, OfShallowQueuesAreMeasuredAllTheSame) {
  for (const char* depth : {"1", "2", "5"}) {
    const Json document = limits_of("sim:h200", {{"queue_depth", depth}});
    EXPECT_EQ(std::to_string(document["limits"]["queue_depth"]["value"].get<int>()), depth);
    EXPECT_EQ(document["limits"]["resident_kernels"]["value"], 128);
    const std::string reason = document["unavailable"]["limits.hardware_queues"].string();
    EXPECT_NE(reason.find("--sim queue_depth=80"), std::string::npos) << reason;
  }
}

}  // namespace
}  // namespace weir
