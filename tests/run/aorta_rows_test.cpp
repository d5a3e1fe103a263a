// The spec's table "What AORTA gets wrong", row by row: each has a test that fails where Weir does the same.
//
//   queue-switch overhead is 0.0         AortaQueueSwitch.* here; planted gaps: QueueSwitch.* in tests/trace
//   workloads crash, none checks output  AortaOutput.* here; all modes:
//   Runner.EveryWorkloadPassesItsCheckHoweverItIsRun extra streams idle AortaStep.EveryRequestedStream... in
//   tests/step/workload; the formula: Workloads.Work*
//                                        and Workloads.Requests* there, Scaling.RowsFollowTheFirstCount in
//                                        tests/measure
//   collectives are mocked               AortaCollectives.* and AortaGradients.* in aorta_ranks_test.cpp
//   data races between streams           AortaStep.NoTwoCommandsRace in tests/step/workload,
//   AortaOutput.AnyPlacement... here tiny kernels through one thread      AortaHostCost.* here experts, cache, tokens,
//   generation aorta_decisions_test.cpp; AortaKvCache.* and AortaGeneration.* in tests/step/workload recomputed and
//   gathered data unused  AortaCheckpoints.* and AortaShards.* in tests/step/workload end_only reports enqueue time
//   AortaEndOnly.* here compare pairs by list position       Compare.PairsByKeyNotByPosition and
//   Compare.TellsSlowerFasterSameAmbiguous
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <random>

#include "run/check.h"
#include "run/load.h"
#include "run/runner.h"
#include "run/tiny_request.h"
#include "submit/placement.h"
#include "submit/submitter.h"

namespace weir {
namespace {

// A session on the cpu device whose answers a test changes on their way out.
struct Disturbance {
  std::function<void(BufferId, std::span<std::byte>)> read;
  std::function<void(std::vector<IterationSpan>&)> spans;
};

class DisturbedSession final : public Session {
 public:
  DisturbedSession(std::unique_ptr<Session> whole, const Disturbance& change)
      : whole_(std::move(whole)), change_(change) {}
  void begin_iteration() noexcept override { whole_->begin_iteration(); }
  void submit(std::span<const CommandId> commands) noexcept override { whole_->submit(commands); }
  void finish() override { whole_->finish(); }
  std::vector<IterationSpan> take_spans() override {
    std::vector<IterationSpan> spans = whole_->take_spans();
    if (change_.spans) change_.spans(spans);
    return spans;
  }
  Timeline timeline() override { return whole_->timeline(); }
  void reset() override { whole_->reset(); }
  MemoryUse memory() const override { return whole_->memory(); }
  void read(BufferId buffer, std::span<std::byte> bytes) override {
    whole_->read(buffer, bytes);
    if (change_.read) change_.read(buffer, bytes);
  }

 private:
  std::unique_ptr<Session> whole_;
  const Disturbance& change_;
};

class DisturbedDevice final : public Device {
 public:
  explicit DisturbedDevice(Disturbance change) : change_(std::move(change)) {}
  DeviceInfo info() const override { return whole_->info(); }
  std::unique_ptr<Session> prepare(const Step& step, const Placement& placement,
                                   const SessionOptions& options) override {
    return std::make_unique<DisturbedSession>(whole_->prepare(step, placement, options), change_);
  }

 private:
  std::unique_ptr<Device> whole_ = open_device("cpu", {});
  Disturbance change_;
};

// One bit of one element that was written: the highest of a float's exponent, the lowest of an integer.
void flip_a_bit(ElementType type, std::span<std::byte> bytes) {
  if (type == ElementType::i32) {
    bytes[0] ^= std::byte{1};
    return;
  }
  with_float_type(type, [&]<class T>(T*) {
    for (std::size_t at = 0; at < bytes.size(); at += sizeof(T)) {
      T value;
      std::memcpy(&value, bytes.data() + at, sizeof(T));
      if (!std::isfinite(to_float(value))) continue;  // poison: nobody wrote here
      bytes[at + sizeof(T) - 1] ^= std::byte{0x40};
      return;
    }
    std::ranges::fill(bytes.first(sizeof(T)), std::byte{0});  // an expert without tokens: now somebody did
  });
}

std::vector<std::string> names() {
  std::vector<std::string> all;
  for (const Workload& workload : workloads()) all.push_back(workload.name);
  return all;
}

class AortaOutput : public ::testing::TestWithParam<std::string> {
 protected:
  const Workload& workload() const { return workload_named(GetParam()); }
  BuiltRun built(const Device& device, int streams) const {
    return build_run(device.info(), tiny(GetParam(), streams), {});
  }
};
INSTANTIATE_TEST_SUITE_P(Workloads, AortaOutput, ::testing::ValuesIn(names()),
                         [](const ::testing::TestParamInfo<std::string>& info) { return info.param; });

// Row: 3 of 14 workloads crash at once, and none checks its output.
TEST_P(AortaOutput, IsRightHoweverItIsSubmitted) {
  const auto device = open_device("cpu", {});
  for (const int streams : {workload().streams.min, workload().streams.recommended}) {
    const std::size_t written = [&] {
      const BuiltRun run = built(*device, streams);
      const auto buffers = run.step.buffers();
      return static_cast<std::size_t>(
          std::count_if(buffers.begin(), buffers.end(), [](const Buffer& buffer) { return buffer.is_written; }));
    }();
    for (const char* submit : {"inline", "threads:2", "graph"}) {
      RunRequest request = tiny(GetParam(), streams);
      request.submit = parse_submit(submit);
      const Result result = run_workload(*device, request, {}, {});
      EXPECT_EQ(result.status, "complete") << submit << ": " << result.failure;
      EXPECT_EQ(result.check["status"], "passed") << submit;
      EXPECT_EQ(result.check["buffers"], written) << "all that the step writes";
      EXPECT_GT(result.work_per_iteration, 0);
    }
  }
}

// Where roles share streams, and where more work is made so that all streams have some.
TEST_P(AortaOutput, IsRightOnFewAndOnManyStreams) {
  const auto device = open_device("cpu", {});
  for (const int streams : {1, 2, 3, 5, 127, 128}) {
    if (streams < workload().streams.min) continue;
    RunRequest request = tiny(GetParam(), streams);
    request.traces = false;
    const Result result = run_workload(*device, request, {}, {});
    EXPECT_EQ(result.status, "complete") << streams << ": " << result.failure;
    EXPECT_EQ(result.check["status"], "passed") << streams;
    EXPECT_EQ(result.streams, streams);
  }
}

TEST_P(AortaOutput, OneWrongBitOfTheLastCommandFailsTheRun) {
  for (const char* submit : {"inline", "graph"}) {
    RunRequest request = tiny(GetParam(), workload().streams.min);
    request.submit = parse_submit(submit);
    const BuiltRun run = build_run(open_device("cpu", {})->info(), request, {});
    const auto accesses = run.step.accesses(static_cast<CommandId>(run.step.commands().size() - 1));
    const auto written = std::ranges::find_if(accesses, [](const Access& access) { return access.writes; });
    ASSERT_NE(written, accesses.end());
    DisturbedDevice device({.read = [&](BufferId buffer, std::span<std::byte> bytes) {
      if (buffer == written->buffer)
        flip_a_bit(run.step.buffers()[buffer].type, bytes.subspan(written->offset_bytes, written->size_bytes));
    }});
    const Result result = run_workload(device, request, {}, {});
    EXPECT_EQ(result.status, "failed") << submit;
    EXPECT_EQ(result.check["status"], "failed") << submit;
    EXPECT_NE(result.failure.find(GetParam() + ": the output is wrong"), std::string::npos) << result.failure;

    // Only a check can tell: without one nothing is claimed.
    request.checks_output = false;
    const Result unchecked = run_workload(device, request, {}, {});
    EXPECT_EQ(unchecked.status, "complete");
    EXPECT_EQ(unchecked.check["status"], "skipped");
    EXPECT_EQ(unchecked.check["reason"], "--no-check");
    EXPECT_TRUE(unchecked.check["worst_relative_error"].is_null());
  }
}

TEST_P(AortaOutput, AWrongBitAnywhereIsFound) {
  const auto device = open_device("cpu", {});
  const BuiltRun run = built(*device, workload().streams.min);
  const auto buffers = run.step.buffers();
  std::vector<BufferId> written;
  for (BufferId b = 0; b < buffers.size(); ++b)
    if (buffers[b].is_written) written.push_back(b);
  BufferId broken = 0;
  const Disturbance change{.read =
                               [&](BufferId buffer, std::span<std::byte> bytes) {
                                 if (buffer == broken) flip_a_bit(buffers[buffer].type, bytes);
                               },
                           .spans = {}};
  DisturbedSession session(device->prepare(run.step, run.placement, {}), change);
  const auto submitter = inline_submitter(run.step, session);
  session.begin_iteration();
  submitter->submit_step();
  session.finish();
  // A dozen of them, from the first to the last.
  const std::size_t stride = std::max<std::size_t>(1, written.size() / 12);
  for (std::size_t i = 0; i < written.size(); i += stride) {
    broken = written[i];
    const CheckReport report = check_outputs(run.step, session);
    EXPECT_EQ(report.status, CheckReport::Status::failed) << "buffer " << broken;
  }
  broken = static_cast<BufferId>(buffers.size());
  EXPECT_EQ(check_outputs(run.step, session).status, CheckReport::Status::passed);
}

// Row: data races between streams. Whatever stream a command is on, and whoever submits it, its data is the same.
TEST_P(AortaOutput, AnyPlacementGivesTheSameBits) {
  DeviceOptions options;
  options.workers = 4;  // that they may overtake each other, even on a small machine
  const auto device = open_device("cpu", options);
  const BuiltRun run = built(*device, workload().streams.recommended);
  const auto buffers = run.step.buffers();
  const auto result_of = [&](const Placement& placement, const char* submit) {
    SessionOptions pipelined;
    pipelined.is_pipelined = true;
    const auto session = device->prepare(run.step, placement, pipelined);
    const auto submitter = make_submitter(parse_submit(submit, placement.stream_count), run.step, placement, *session);
    for (int i = 0; i < 3; ++i) {
      session->begin_iteration();
      submitter->submit_step();
    }
    session->finish();
    std::vector<std::vector<std::byte>> bytes;
    for (BufferId b = 0; b < buffers.size(); ++b) {
      bytes.emplace_back(buffers[b].size_bytes());
      session->read(b, bytes.back());
    }
    return bytes;
  };
  const auto serial = result_of(place(run.step, "serial"), "inline");
  const auto expect_same = [&](const Placement& placement, const char* submit) {
    const auto bytes = result_of(placement, submit);
    for (BufferId b = 0; b < buffers.size(); ++b)
      ASSERT_EQ(bytes[b], serial[b]) << placement.name << ", " << submit << ", buffer " << b;
  };
  expect_same(place(run.step, "round_robin"), "inline");
  expect_same(place(run.step, "round_robin"), "threads:2");
  std::mt19937 random(7);
  for (int i = 0; i < 3; ++i) {
    Placement placement{"random", 1 + static_cast<int>(random() % 16), {}};
    for (std::size_t id = 0; id < run.step.commands().size(); ++id)
      placement.stream_of.push_back(static_cast<StreamId>(random() % static_cast<unsigned>(placement.stream_count)));
    expect_same(placement, i % 2 == 0 ? "inline" : "threads:2");
  }
}

// Whether a metric that is null, or something that it is part of, has a reason.
bool has_reason(const Result& result, std::string path) {
  for (;;) {
    if (const auto found = result.unavailable.find(path); found != result.unavailable.end())
      return !found->second.empty();
    const std::size_t dot = path.rfind('.');
    if (dot == std::string::npos) return false;
    path.resize(dot);
  }
}

// Row: queue-switch overhead is 0.0 in every result.
TEST(AortaQueueSwitch, IsMeasuredOrNullWithAReason) {
  const auto device = open_device("cpu", {});
  for (const int streams : {1, 4}) {
    RunRequest request = tiny("tiny_kernel_stress", streams);
    request.traces = true;
    const Result result = run_workload(*device, request, {}, {});
    ASSERT_EQ(result.status, "complete") << result.failure;
    const Json& found = result.metrics["queue_switch"];
    const Json& controlled = found["controlled"];
    if (streams == 1) {
      EXPECT_TRUE(controlled["ns_per_hop"].is_null()) << "there is nothing to switch to";
    } else {
      ASSERT_TRUE(controlled["ns_per_hop"].is_number());
      EXPECT_NE(controlled["ns_per_hop"].get<double>(), 0.0);
      EXPECT_GT(controlled["hops"].get<int>(), 0);
      EXPECT_GT(controlled["repetitions"].get<int>(), 0);
      EXPECT_EQ(controlled["streams"], streams);
    }
    for (const char* part : {"controlled", "timeline"})
      for (const auto& [name, value] : found[part].items()) {
        if (!value.is_null()) continue;
        const std::string path = std::string("metrics.queue_switch.") + part + "." + name;
        EXPECT_TRUE(has_reason(result, path)) << path;
      }
    // An overhead is a difference of two gaps, so it needs both.
    const Json& timeline = found["timeline"];
    for (const char* where : {"same_queue", "other_queue"}) {
      const bool has_gaps = timeline["same_stream_ns"].is_object() && timeline[where + std::string("_ns")].is_object();
      EXPECT_EQ(timeline[where + std::string("_overhead_ns")].is_number(), has_gaps) << where;
    }
  }
}

TEST(AortaQueueSwitch, IsNullWithAReasonWhereNothingWasTraced) {
  for (const char* name : {"cpu", "null"}) {
    const auto device = open_device(name, {});
    RunRequest request = tiny("tiny_kernel_stress", 4);
    request.traces = std::string_view(name) == "null";
    const Result result = run_workload(*device, request, {}, {});
    EXPECT_TRUE(result.metrics["queue_switch"].is_null()) << name;
    EXPECT_TRUE(has_reason(result, "metrics.queue_switch")) << name;
  }
}

// Row: tiny kernels go through one thread, and nobody knows what the host costs.
TEST(AortaHostCost, IsAMetricOfItsOwnInEverySubmitMode) {
  const auto device = open_device("cpu", {});
  for (const char* submit : {"inline", "threads:2", "graph"}) {
    RunRequest request = tiny("tiny_kernel_stress", 4);
    request.submit = parse_submit(submit);
    const Result result = run_workload(*device, request, {}, {});
    EXPECT_EQ(result.submit, submit);
    ASSERT_TRUE(result.host_ns_per_command && result.floor_ns_per_command) << submit;
    EXPECT_GT(*result.host_ns_per_command, 0) << submit;
    EXPECT_GT(*result.floor_ns_per_command, 0) << submit;
    // By the host's clock around submit alone.
    const double commands = static_cast<double>(result.commands_per_iteration);
    EXPECT_DOUBLE_EQ(*result.host_ns_per_command, median(*result.samples.submit_ns) / commands) << submit;
  }
}

// Row: `end_only` reports enqueue time as latency. Here the device says 7 ms, 8 ms, ..., whatever submitting took.
TEST(AortaEndOnly, TimeIsTheDevicesAndIsNotCalledLatency) {
  DisturbedDevice device({.read = {}, .spans = [](std::vector<IterationSpan>& spans) {
                            for (std::size_t i = 0; i < spans.size(); ++i) {
                              spans[i].started_ns = static_cast<std::int64_t>(i) * 50'000'000;
                              spans[i].ended_ns =
                                  spans[i].started_ns + 7'000'000 + static_cast<std::int64_t>(i) * 1'000'000;
                            }
                          }});
  RunRequest request = tiny("tiny_kernel_stress", 2);
  request.iterations = 3;
  request.sync = SyncMode::end_only;
  const Result result = run_workload(device, request, {}, {});
  ASSERT_EQ(result.status, "complete") << result.failure;
  EXPECT_EQ(result.samples.device_ns, (std::vector<double>{7e6, 8e6, 9e6}));
  EXPECT_DOUBLE_EQ(result.device_ns->p50, 8e6);
  EXPECT_FALSE(result.latency_ns || result.samples.latency_ns);
  EXPECT_NE(result.unavailable.at("metrics.latency_ns").find("device_ns"), std::string::npos);
  // What is judged is the device's time, under a note that says so.
  const ResultPoint point = parse_results(to_json(result), "r.json").points.at(0);
  EXPECT_EQ(point.latency.samples, (std::vector<double>{7e6, 8e6, 9e6}));
  ASSERT_EQ(point.notes.size(), 1u);
  EXPECT_NE(point.notes[0].find("device_ns"), std::string::npos);

  // Without a device clock there is no latency, rather than a wrong one.
  DisturbedDevice clockless({.read = {}, .spans = [](std::vector<IterationSpan>& spans) { spans.clear(); }});
  const Result unknown = run_workload(clockless, request, {}, {});
  ASSERT_EQ(unknown.status, "complete") << unknown.failure;
  EXPECT_FALSE(unknown.latency_ns);
  EXPECT_TRUE(has_reason(unknown, "metrics.latency_ns"));
}

}  // namespace
}  // namespace weir
