// The hip device from its table down: ROCm's libraries are opened by name as on any machine, and are fakes that run.
#include "device/gpu/hip.h"

#include <gtest/gtest.h>

#include <cstring>

#include "base/error.h"
#include "device/gpu_cases.h"
#include "device/hip/hip_testing.h"
#include "device/region_cases.h"
#include "kernel/gemm.h"
#include "run/runner.h"
#include "support/message_of.h"

namespace weir {
namespace {

using namespace gpu_cases;

class Hip : public testing::HipTest {
 protected:
  std::unique_ptr<Device> open(const char* settings = "", const DeviceOptions& options = {}) {
    configure(settings);
    return open_device("hip:0", options);
  }
};

TEST_F(Hip, says_what_it_is) {
  const DeviceInfo info = open()->info();
  EXPECT_EQ(info.name, "hip:0");
  EXPECT_EQ(info.model, "AMD Instinct MI300X (fake)");
  EXPECT_TRUE(has(info.driver, "HIP 6.4.43483")) << info.driver;
  EXPECT_TRUE(has(info.driver, "amdgpu 6.12.12")) << info.driver;
  EXPECT_EQ(info.multiprocessors.value, 104);
  EXPECT_EQ(info.memory_bytes.value, std::uint64_t{1} << 30);
  EXPECT_EQ(info.lowest_priority, -1);
  EXPECT_EQ(info.highest_priority, 1);
  EXPECT_EQ(info.queue_variable, "GPU_MAX_HW_QUEUES");
  for (const Capability* capability : {&info.graphs, &info.host_functions, &info.compute_units})
    EXPECT_TRUE(*capability) << capability->reason;
}

TEST_F(Hip, asks_the_board_by_its_place_on_the_bus) {
  const Telemetry telemetry = open()->telemetry();
  EXPECT_EQ(telemetry.temperature_c, 41);
  EXPECT_EQ(telemetry.power_w, 142);
  EXPECT_EQ(telemetry.clock_mhz, 1300);
  EXPECT_EQ(telemetry.max_clock_mhz, 2100);
  EXPECT_EQ(telemetry.utilisation, 0.37);
  ASSERT_TRUE(telemetry.energy_j);
  EXPECT_NEAR(*telemetry.energy_j, 1525.9, 0.1);
}

TEST_F(Hip, asks_what_the_board_is_and_what_it_has_counted) {
  const DeviceBoard board = open()->board();
  EXPECT_EQ(board.serial, "FAKE0003");
  EXPECT_EQ(board.uuid, "fa4e000000000003");
  EXPECT_EQ(board.facts.at("vbios"), "113-FAKE-001");
  EXPECT_EQ(board.facts.at("power_limit"), "750 W");
  EXPECT_EQ(board.facts.at("performance_level"), "auto");
  EXPECT_EQ(board.power_limit_w, 750);
  EXPECT_EQ(board.memory_clock_mhz, 900);
  EXPECT_EQ(board.pcie_replays, 3);
  EXPECT_EQ(board.ecc_corrected, 2);
  EXPECT_EQ(board.ecc_uncorrected, 1);
  EXPECT_EQ(board.retired_pages, 5);
  EXPECT_EQ(board.nvlink_links, std::nullopt);
}

TEST_F(Hip, any_way_to_submit_gives_the_same_buffers) {
  const auto device = open();
  for (std::uint64_t seed = 1; seed <= 6; ++seed) expect_same_buffers(*device, seed);
}

TEST_F(Hip, host_functions_run_in_their_turn) { expect_round_trips(*open()); }

TEST_F(Hip, initial_contents) { expect_initial_contents(*open()); }

TEST_F(Hip, timeline_follows_edges) {
  const auto device = open();
  for (const std::uint64_t seed : {1u, 3u, 5u}) expect_sane_timeline(*device, seed);
}

TEST_F(Hip, reports_stream_progress) { expect_progress(*open()); }

TEST_F(Hip, spans_outlive_the_ring_of_events) {
  const auto device = open();
  expect_spans_of_many_iterations(*device, "inline", 300);
  expect_spans_of_many_iterations(*device, "graph", 300);
}

TEST_F(Hip, products_by_rocblas) {
  const auto device = open();
  StepBuilder builder(1);
  for (int s = 0; s < 4; ++s) {
    const bool is_batch = s == 3;
    const std::uint64_t batch = is_batch ? 3 : 1;
    const BufferId a = builder.uniform(ElementType::f32, batch * 30), b = builder.uniform(ElementType::f32, batch * 42);
    const BufferId c = builder.uniform(ElementType::f32, batch * 35);
    const KernelShape shape{.dims = {5, 7, 6, gemm_flags((s & 1) != 0, (s & 2) != 0, is_batch ? 3 : 1)},
                            .scalars = {1, 0}};
    builder.launch("gemm", {.stream = static_cast<StreamId>(s)}, shape, {{a}, {b}, {c}});
  }
  const Step step = std::move(builder).seal(4);
  for (const char* submit : {"inline", "threads:2", "graph"}) {
    const Contents got = run(*device, step, natural(step), {submit, false, 2});
    const Contents wanted = reference(step, 1);
    ASSERT_EQ(got.size(), wanted.size());
    for (std::size_t i = 0; i < got.size(); ++i) {
      ASSERT_EQ(got[i].size(), wanted[i].size());
      for (std::size_t at = 0; at < got[i].size(); at += sizeof(float)) {
        float left = 0, right = 0;
        std::memcpy(&left, &got[i][at], sizeof left);
        std::memcpy(&right, &wanted[i][at], sizeof right);
        ASSERT_NEAR(left, right, 1e-5) << submit << ", buffer " << i;
      }
    }
  }
}

// One kernel on each stream, with these priorities.
Step one_each(const std::vector<int>& priorities) {
  StepBuilder builder(1);
  const BufferId data = builder.output(ElementType::f32, 64 * priorities.size());
  for (std::size_t i = 0; i < priorities.size(); ++i)
    builder.launch("fill", {.stream = static_cast<StreamId>(i), .priority = static_cast<std::int8_t>(priorities[i])},
                   {.dims = {64, 0}, .scalars = {1}}, {{data, 64 * i, 64}});
  return std::move(builder).seal(static_cast<int>(priorities.size()));
}

TEST_F(Hip, urgent_streams_get_queues_of_another_pool) {
  const auto device = open();
  const Step step = one_each({0, 2, -1, 1, 0});
  const Placement placement = natural(step);
  device->prepare(step, placement, {});
  const std::vector<std::string> streams = log("stream ");
  ASSERT_EQ(streams.size(), 6u);  // and the session's own
  const char* const expected[] = {"priority 0, queue normal:", "priority -1, queue high:", "priority 1, queue low:",
                                  "priority -1, queue high:", "priority 0, queue normal:"};
  for (std::size_t i = 0; i < 5; ++i) EXPECT_TRUE(has(streams[i], expected[i])) << streams[i];
}

TEST_F(Hip, a_stream_gets_the_queue_that_fewest_use) {
  const auto device = open();
  const Step step = one_each(std::vector<int>(6, 0));
  const Placement placement = natural(step);
  device->prepare(step, placement, {});
  const std::vector<std::string> streams = log("stream ");
  ASSERT_GE(streams.size(), 6u);
  std::vector<std::string> queues;
  for (const std::string& stream : streams) queues.push_back(stream.substr(stream.rfind(' ') + 1));
  const auto count = std::min<std::size_t>(4, static_cast<std::size_t>(device->info().hardware_queues.value.value()));
  for (std::size_t i = 0; i < count; ++i)
    for (std::size_t j = 0; j < i; ++j) EXPECT_NE(queues[i], queues[j]);
  if (count == 4) {
    EXPECT_EQ(queues[4], queues[0]);
    EXPECT_EQ(queues[5], queues[1]);
  }
}

TEST_F(Hip, streams_are_confined_to_neighbouring_compute_units) {
  const auto device = open("", {.compute_units = 40});
  const DeviceInfo info = device->info();
  EXPECT_EQ(info.stream_compute_units, 40);
  EXPECT_FALSE(info.priorities) << "a masked stream has none";
  EXPECT_EQ(to_json(info)["compute_units"], 40);
  const Step step = one_each({0, 0, 0});
  const Placement placement = natural(step);
  {
    const auto session = device->prepare(step, placement, {});
    iterate(*session, *inline_submitter(step, *session), {});
    EXPECT_TRUE(read_all(*session, step) == reference(step, 1));
  }
  const std::vector<std::string> streams = log("stream ");
  ASSERT_GE(streams.size(), 3u);
  EXPECT_TRUE(has(streams[0], "mask ffffffff 000000ff 00000000 00000000, queue mask:")) << streams[0];
  EXPECT_TRUE(has(streams[1], "mask 00000000 ffffff00 0000ffff 00000000, queue mask:")) << streams[1];
  EXPECT_TRUE(has(streams[2], "mask 0000ffff 00000000 ffff0000 000000ff, queue mask:")) << streams[2];
}

TEST_F(Hip, more_compute_units_than_there_are_is_a_mistake) {
  EXPECT_TRUE(has(message_of([&] { open("cu=32", {.compute_units = 33}); }), "compute_units 33: hip:0 has 32"));
}

TEST_F(Hip, a_step_is_one_graph_launch) {
  const auto device = open();
  const Step step = random_step(5, 3);
  EXPECT_TRUE(run(*device, step, natural(step), {"graph", false, 4}) == reference(step, 4));
  EXPECT_EQ(log("graph launch").size(), 4u);
  EXPECT_EQ(log("graph upload").size(), 1u);
}

TEST_F(Hip, says_what_does_not_fit) {
  const auto device = open("memory=65536");
  StepBuilder builder(1);
  const BufferId data = builder.output(ElementType::f32, 100'000);
  builder.launch("fill", {}, {.dims = {100'000, 0}, .scalars = {1}}, {{data}});
  const Step step = std::move(builder).seal(1);
  const Placement placement = natural(step);
  EXPECT_TRUE(has(message_of([&] { device->prepare(step, placement, {}); }), "hip:0: out of memory"));
}

TEST_F(Hip, two_devices_have_streams_of_their_own) {
  const auto first = open("devices=2");
  const auto second = open_device("hip:1", {});
  const Step step = random_step(2, 2);
  for (int i = 0; i < 3; ++i)
    for (Device* const device : {first.get(), second.get()})
      EXPECT_TRUE(run(*device, step, natural(step), {"inline", false, 2}) == reference(step, 2));
  int on[2] = {};
  for (const std::string& stream : log("stream "))
    for (const int device : {0, 1}) on[device] += has(stream, "on device " + std::to_string(device) + ":") ? 1 : 0;
  EXPECT_GT(on[0], 0);
  EXPECT_EQ(on[0], on[1]);
  EXPECT_TRUE(has(message_of([] { open_device("hip:2", {}); }), "device hip:2: this machine has hip:0 to hip:1"));
}

TEST_F(Hip, a_lost_gpu_is_named_and_stays_lost) {
  for (const char* submit : {"inline", "threads:2", "graph"}) {
    const auto device = open("lost_after=200");
    const Step step = random_step(7, 3);
    const std::string message = message_of([&] { run(*device, step, natural(step), {submit, false, 1'000}); });
    EXPECT_TRUE(has(message, "HIP error 719 (hipErrorLaunchFailure): unspecified launch failure")) << message;
    EXPECT_TRUE(has(message, "The GPU is lost to this process")) << message;
    const std::string again = message_of([&] { run(*device, step, natural(step), {submit, false, 1}); });
    EXPECT_TRUE(has(again, "719")) << submit << ": " << again;
  }
}

RunRequest tiny_request() {
  RunRequest request;
  request.workload = "tiny_kernel_stress";
  request.scale = Scale::tiny;
  request.warmup = 1;
  request.traces = false;
  return request;
}

TEST_F(Hip, what_was_measured_before_the_gpu_was_lost_is_kept) {
  RunRequest request = tiny_request();
  request.iterations = 4;
  const Result whole = run_workload(*open(), request, {}, {});
  ASSERT_EQ(whole.status, "complete") << whole.failure;
  request.iterations = 10'000;
  for (const char* submit : {"inline", "graph"}) {
    request.submit = parse_submit(submit);
    const auto device = open(("lost_after=" + std::to_string(20 * whole.commands_per_iteration)).c_str());
    const Result result = run_workload(*device, request, {}, {});
    EXPECT_EQ(result.status, "failed");
    EXPECT_TRUE(has(result.failure, "hipErrorLaunchFailure")) << result.failure;
    EXPECT_TRUE(has(result.hint, "The GPU is lost")) << result.hint;
    EXPECT_TRUE(has(result.check["reason"].get<std::string>(), "failed before"));
    ASSERT_TRUE(result.samples.latency_ns && result.samples.submit_ns);
    // The fill of buffers and the warm-up took some of the twenty.
    EXPECT_GE(result.samples.latency_ns->size(), 10u) << submit;
    EXPECT_LE(result.samples.latency_ns->size(), 20u) << submit;
    EXPECT_EQ(result.samples.latency_ns->size(), result.samples.submit_ns->size());
    EXPECT_TRUE(result.latency_ns && result.throughput && result.host_ns_per_command) << submit;
  }
}

TEST_F(Hip, pipelined_iterations_are_kept_as_far_as_the_device_told_of_them) {
  RunRequest request = tiny_request();
  request.iterations = 20'000;
  request.sync = SyncMode::end_only;
  const Result whole = [&] {
    RunRequest few = request;
    few.iterations = 4;
    return run_workload(*open(), few, {}, {});
  }();
  ASSERT_EQ(whole.status, "complete") << whole.failure;
  const auto device = open(("lost_after=" + std::to_string(2'000 * whole.commands_per_iteration)).c_str());
  const Result result = run_workload(*device, request, {}, {});
  EXPECT_EQ(result.status, "failed");
  ASSERT_TRUE(result.samples.device_ns);
  EXPECT_GE(result.samples.device_ns->size(), 1'000u);
  EXPECT_LE(result.samples.device_ns->size(), 2'000u);
  EXPECT_EQ(result.samples.device_ns->size(), result.samples.submit_ns->size());
}

TEST_F(Hip, lost_before_the_first_sample_there_are_none) {
  RunRequest request = tiny_request();
  request.iterations = 10;
  const auto device = open("lost_after=1");
  const Result result = run_workload(*device, request, {}, {});
  EXPECT_EQ(result.status, "failed");
  EXPECT_FALSE(result.samples.latency_ns);
}

TEST_F(Hip, regions_are_compiled_once) {
  region_cases::expect_a_cache([&] { return open(); });
}

}  // namespace
}  // namespace weir
