// What experiments find out about the queues of simulated devices whose settings are known.
#include "lab/queues/device_rules.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "device/sim/sim.h"

namespace weir {
namespace {

struct Found {
  sim::SimProfile profile;
  DeviceRules rules;
};

Found examine(const std::string& name, const std::vector<std::pair<std::string, std::string>>& settings) {
  Found found{sim::profile_named(name), {}};
  for (const auto& [setting, value] : settings) sim::apply(found.profile, setting, value);
  const auto device = open_sim(found.profile);
  const QueueProbe probe = probe_queues(*device, {});
  EXPECT_EQ(probe.queues, found.profile.queues) << name << ": " << probe.reason;
  found.rules = measure_rules(*device, probe, {});
  return found;
}

TEST(DeviceRules, FindsTheSettingsOfDevices) {
  using Settings = std::vector<std::pair<std::string, std::string>>;
  const std::pair<std::string, Settings> devices[] = {
      {"h200", {}},
      {"h200", {{"device.launch_ns", "960"}, {"engine_queues", "1"}, {"host_in_queue", "1"}}},
      {"h200", {{"queues", "1"}, {"device.launch_ns", "480"}, {"engine_queues", "2"}, {"host_threads", "3"}}},
      {"h200", {{"mapping", "rotating"}, {"queues", "4"}, {"engine_queues", "5"}, {"resident_kernels", "40"}}},
      {"h200", {{"mapping", "least_referenced"}, {"queues", "3"}, {"queue_depth", "100"}, {"device.launch_ns", "640"}}},
      {"a100", {{"mapping", "round_robin"}, {"copy_engines.to_host", "2"}, {"device.event_gap_ns", "960"}}},
      {"mi300x", {}},
      {"mi300x", {{"barrier", "0"}, {"queue_depth", "300"}}},
      {"toy", {}},
      {"toy", {{"barrier", "1"}, {"slots_per_multiprocessor", "8"}}},
  };
  for (const auto& [name, settings] : devices) {
    const auto [profile, rules] = examine(name, settings);
    std::string what = name;
    for (const auto& [setting, value] : settings) what += ' ' + setting + '=' + value;
    SCOPED_TRACE(what);
    EXPECT_EQ(rules.barrier.value, profile.barrier != 0) << rules.barrier.reason;
    if (profile.queue_depth < 4096) {
      EXPECT_EQ(rules.queue_depth.value, profile.queue_depth) << rules.queue_depth.reason;
    } else {
      EXPECT_FALSE(rules.queue_depth.value);
    }
    EXPECT_EQ(rules.slots.value, profile.slots_per_multiprocessor) << rules.slots.reason;
    EXPECT_EQ(rules.copy_queues.value, profile.engine_queues) << rules.copy_queues.reason;
    EXPECT_EQ(rules.host_in_queue.value, profile.engine_queues == 0 || profile.host_in_queue != 0)
        << rules.host_in_queue.reason;
    EXPECT_EQ(rules.host_functions.value, std::min<std::int64_t>(profile.host_threads, 16));
    EXPECT_EQ(rules.copies[1].value, profile.copy_engines.to_host);
    if (profile.barrier != 0) {
      // Then one kernel per queue runs, and neither limit shows.
      EXPECT_FALSE(rules.resident_kernels.value);
      EXPECT_FALSE(rules.packet_ns.value);
      continue;
    }
    if (profile.resident_kernels < kMaxStreams) {
      EXPECT_EQ(rules.resident_kernels.value, profile.resident_kernels) << rules.resident_kernels.reason;
    }
    ASSERT_TRUE(rules.packet_ns.value) << rules.packet_ns.reason;
    EXPECT_NEAR(*rules.packet_ns.value, static_cast<double>(profile.device.launch_ns), 40);
    if (profile.queues > 1) {
      ASSERT_TRUE(rules.event_gap_ns.value) << rules.event_gap_ns.reason;
      EXPECT_NEAR(*rules.event_gap_ns.value, static_cast<double>(profile.device.event_gap_ns), 40);
    }
  }
}

// Fewer kernels than queues run at once: then a kernel waits for room, which is no barrier.
TEST(DeviceRules, TakesAFullDeviceForNoBarrier) {
  sim::SimProfile profile = sim::profile_named("h200");
  sim::apply(profile, "queues", "8");
  sim::apply(profile, "resident_kernels", "4");
  const auto device = open_sim(profile);
  QueueProbe probe = probe_queues(*device, {});
  probe.queues = 8;  // as the device says: the probe sees no more than the 4 kernels that run
  const DeviceRules rules = measure_rules(*device, probe, {.has_copies = false, .has_host_functions = false});
  EXPECT_FALSE(rules.barrier.value.value_or(false));
  EXPECT_FALSE(rules.barrier.reason.empty());
}

TEST(DeviceRules, LeavesOutWhatTheStepDoesNotNeed) {
  const auto device = open_sim(sim::profile_named("toy"));
  const DeviceRules rules =
      measure_rules(*device, probe_queues(*device, {}), {.has_copies = false, .has_host_functions = false});
  EXPECT_FALSE(rules.copy_queues.value);
  EXPECT_EQ(rules.copy_queues.reason, "the step has no copies");
  EXPECT_FALSE(rules.host_in_queue.value);
}

// A held kernel keeps a worker of the cpu device, so that nothing could be concluded.
TEST(DeviceRules, SaysWhyItExaminesNoWorkers) {
  const auto device = open_device("cpu", {});
  QueueProbe probe;
  probe.queues = 2;
  const DeviceRules rules = measure_rules(*device, probe, {});
  EXPECT_FALSE(rules.barrier.value);
  EXPECT_EQ(rules.barrier.reason, "only GPUs are examined");
}

}  // namespace
}  // namespace weir
