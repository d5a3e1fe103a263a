#include "run/runner.h"

#include <gtest/gtest.h>

#include <array>

#include "base/error.h"
#include "kernel/chain.h"
#include "kernel/gemm.h"
#include "run/check.h"
#include "run/check_order.h"
#include "run/sweep.h"
#include "submit/placement.h"
#include "submit/submitter.h"

namespace weir {
namespace {

RunRequest tiny_run(const std::string& workload, int streams) {
  RunRequest request;
  request.workload = workload;
  request.streams = streams;
  request.iterations = 6;
  request.warmup = 1;
  request.scale = Scale::tiny;
  return request;
}

// Of 60 ways for each workload TSan, which takes minutes for all, has every seventh: each submit, placement and sync
// with every other in turn.
#ifdef __SANITIZE_THREAD__
constexpr int kEveryWay = 7;
#else
constexpr int kEveryWay = 1;
#endif

TEST(Runner, EveryWorkloadPassesItsCheckHoweverItIsRun) {
  const auto device = open_device("cpu", {});
  int way = 0;
  for (const Workload& workload : workloads()) {
    for (const char* submit : {"inline", "threads:2", "graph", "channel:mpsc:3", "channel:lanes:2x2"}) {
      for (const char* placement : {"natural", "serial", "round_robin", "critical_path"}) {
        for (const SyncMode sync : {SyncMode::per_iteration, SyncMode::end_only, SyncMode::none}) {
          if (way++ % kEveryWay != 0) continue;
          RunRequest request = tiny_run(workload.name, workload.streams.recommended);
          request.submit = parse_submit(submit);
          request.placement = &placement_named(placement);
          request.sync = sync;
          request.traces = false;
          const Result result = run_workload(*device, request, {}, {});
          EXPECT_EQ(result.status, "complete")
              << workload.name << " " << submit << " " << placement << ": " << result.failure;
          EXPECT_EQ(result.check["status"], "passed");
          EXPECT_TRUE(result.throughput);
          EXPECT_EQ(result.latency_ns.has_value(), sync == SyncMode::per_iteration);
        }
      }
    }
  }
}

TEST(Runner, ComputesInEveryPrecisionOfTheDevice) {
  const auto device = open_device("cpu", {});
  for (const Workload& workload : workloads()) {
    for (const Precision precision : device->info().precisions) {
      RunRequest request = tiny_run(workload.name, workload.streams.min);
      request.precision = precision;
      request.traces = false;
      const Result result = run_workload(*device, request, {}, {});
      EXPECT_EQ(result.check["status"], "passed")
          << workload.name << " " << name_of(precision) << ": " << result.failure;
    }
  }
}

TEST(Runner, WarmUpIsNotCountedAndSamplesAreKeptWhole) {
  const auto device = open_device("cpu", {});
  for (const SyncMode sync : {SyncMode::per_iteration, SyncMode::end_only, SyncMode::none}) {
    RunRequest request = tiny_run("tiny_kernel_stress", 4);
    request.sync = sync;
    request.iterations = 7;
    request.warmup = 3;
    request.traces = false;
    const Result result = run_workload(*device, request, {}, {});
    EXPECT_EQ(result.samples.submit_ns->size(), 7u);
    EXPECT_EQ(result.samples.device_ns->size(), 7u);
    EXPECT_EQ(result.samples.interval_ns->size(), 7u);
    // Whatever the mode, throughput is work over a time that holds all of it.
    const double seconds = mean(*result.samples.interval_ns) * 7e-9;
    EXPECT_LE(result.throughput->value, result.work_per_iteration * 7 / seconds * 1.0001);
    // There may be none on a noisy machine; then it says why.
    if (const auto interval = result.throughput->interval) {
      EXPECT_GT(interval->low, 0);
      EXPECT_LE(interval->low, interval->high);
    } else {
      EXPECT_TRUE(result.unavailable.contains("metrics.throughput.interval"));
    }
  }
}

TEST(Runner, TracedMetricsComeWithReasons) {
  const auto device = open_device("cpu", {});
  const Result result = run_workload(*device, tiny_run("hetero_kernels", 4), {}, {});
  ASSERT_EQ(result.status, "complete") << result.failure;
  EXPECT_TRUE(result.metrics["concurrency"].is_object());
  EXPECT_TRUE(result.metrics["convoy"].is_object());
  EXPECT_TRUE(result.metrics["queue_switch"]["controlled"]["ns_per_hop"].is_number());
  // Whatever is null has a reason.
  const Json json = to_json(result);
  for (const auto& [name, value] : json["metrics"].items()) {
    EXPECT_TRUE(!value.is_null() || json["unavailable"].contains("metrics." + name)) << name;
  }
}

TEST(Runner, MeasuresQueueSwitchesAtEveryStreamCount) {
  const auto device = open_device("cpu", {});
  for (const int streams : {1, 2, 65, 128}) {
    const Result result = run_workload(*device, tiny_run("tiny_kernel_stress", streams), {}, {});
    EXPECT_EQ(result.status, "complete") << result.failure;
    const Json& hop = result.metrics["queue_switch"]["controlled"]["ns_per_hop"];
    EXPECT_EQ(hop.is_number(), streams > 1) << streams;
  }
}

TEST(Runner, StopsAfterTheCurrentIterationAndKeepsWhatThereIs) {
  const auto device = open_device("cpu", {});
  std::atomic<bool> stop{true};
  RunControl control;
  control.stop = &stop;
  const Result result = run_workload(*device, tiny_run("tiny_kernel_stress", 2), {}, control);
  EXPECT_EQ(result.status, "interrupted");
  EXPECT_EQ(result.samples.latency_ns->size(), 1u);
  EXPECT_EQ(result.check["status"], "passed");
}

TEST(Runner, RejectsRequestsThatDoNotFit) {
  const auto device = open_device("cpu", {});
  const auto rejected = [&](auto&& change) {
    RunRequest request = tiny_run("hetero_kernels", 4);
    try {
      change(request);
      run_workload(*device, request, {}, {});
    } catch (const Error& error) {
      return error.fault == Fault::input;
    }
    return false;
  };
  EXPECT_TRUE(rejected([](RunRequest& r) { r.workload = "hetero"; }));
  EXPECT_TRUE(rejected([](RunRequest& r) { r.streams = -1; }));
  EXPECT_TRUE(rejected([](RunRequest& r) { r.streams = 129; }));
  EXPECT_TRUE(rejected([](RunRequest& r) { r.precision = Precision::fp64; }));
  EXPECT_TRUE(rejected([](RunRequest& r) { r.precision = Precision::tf32; }));  // not on a cpu
  EXPECT_TRUE(rejected([](RunRequest& r) { r.submit = parse_submit("channel:pigeon"); }));
  EXPECT_TRUE(rejected([](RunRequest& r) { r.submit = parse_submit("pigeon"); }));
  EXPECT_TRUE(rejected([](RunRequest& r) { r.placement = &placement_named("nowhere"); }));
  EXPECT_TRUE(rejected([](RunRequest& r) { r.scale = scale_named("huge"); }));
  EXPECT_TRUE(rejected([](RunRequest& r) { r.params = {{"size", "-4"}}; }));
  EXPECT_TRUE(rejected([](RunRequest& r) { r.iterations = 0; }));
}

// A device that computes on the cpu device but hands out one wrong byte, as broken hardware would.
class BrokenSession final : public Session {
 public:
  BrokenSession(std::unique_ptr<Session> whole, BufferId broken) : whole_(std::move(whole)), broken_(broken) {}
  void begin_iteration() noexcept override { whole_->begin_iteration(); }
  void submit(std::span<const CommandId> commands) noexcept override { whole_->submit(commands); }
  void finish() override { whole_->finish(); }
  std::vector<IterationSpan> take_spans() override { return whole_->take_spans(); }
  Timeline timeline() override { return whole_->timeline(); }
  void reset() override { whole_->reset(); }
  MemoryUse memory() const override { return whole_->memory(); }
  void read(BufferId buffer, std::span<std::byte> bytes) override {
    whole_->read(buffer, bytes);
    if (buffer == broken_) bytes[3] = ~bytes[3];  // sign and exponent of the first float
  }

 private:
  std::unique_ptr<Session> whole_;
  BufferId broken_;
};

class BrokenDevice final : public Device {
 public:
  explicit BrokenDevice(BufferId broken) : broken_(broken) {}
  DeviceInfo info() const override { return whole_->info(); }
  std::unique_ptr<Session> prepare(const Step& step, const Placement& placement,
                                   const SessionOptions& options) override {
    return std::make_unique<BrokenSession>(whole_->prepare(step, placement, options), broken_);
  }

 private:
  std::unique_ptr<Device> whole_ = open_device("cpu", {});
  BufferId broken_;
};

TEST(Runner, WrongOutputFailsTheRunAndNamesTheBuffer) {
  // large_gemm_only on 2 streams has buffers A B C A B C; 5 is the second product.
  BrokenDevice device(5);
  for (const char* size : {"96", "420"}) {  // compared with the reference; verified by Freivalds
    RunRequest request = tiny_run("large_gemm_only", 2);
    request.params = {{"size", size}};
    const Result result = run_workload(device, request, {}, {});
    EXPECT_EQ(result.status, "failed");
    EXPECT_NE(result.failure.find("buffer 5"), std::string::npos) << result.failure;
    EXPECT_EQ(result.check["status"], "failed");
  }
}

TEST(Check, AllowsWhatRoundingLeavesWhereTermsCancelOrVanish) {
  const auto check = [](const char* workload, std::vector<std::pair<std::string, std::string>> params) {
    RunRequest request = tiny_run(workload, 6);
    request.params = std::move(params);
    request.iterations = 1;
    request.traces = false;
    const auto device = open_device("cpu", {});
    return run_workload(*device, request, {}, {}).check.dump();
  };
  // Attention of two positions: softmax has all of its weight in one of them. Gradients through 256 layers: subnormal.
  const std::string cancelled = check("fsdp_tp", {{"sequence", "2"}, {"blocks", "6"}});
  EXPECT_NE(cancelled.find("passed"), std::string::npos) << cancelled;
  const std::string vanished = check("zero_offload", {{"layers", "256"}});
  EXPECT_NE(vanished.find("passed"), std::string::npos) << vanished;
}

TEST(Check, ResetsStepsThatReadTheirOwnResults) {
  StepBuilder builder(3);
  const BufferId x = builder.uniform(ElementType::f32, 64);
  builder.launch("chain", {}, {.dims = {64, chain_ops({ChainOp::mul, ChainOp::add})}, .scalars = {0.5f, 1.0f}},
                 {{x}, {x}});
  const Step step = std::move(builder).seal(1);
  const auto device = open_device("cpu", {});
  const Placement placement = place(step, "natural");
  const auto session = device->prepare(step, placement, {});
  const auto submitter = inline_submitter(step, *session);
  for (int i = 0; i < 3; ++i) {
    session->begin_iteration();
    submitter->submit_step();
  }
  session->finish();
  EXPECT_EQ(check_outputs(step, *session).status, CheckReport::Status::failed) << "three iterations are not one";
  session->reset();
  session->begin_iteration();
  submitter->submit_step();
  session->finish();
  EXPECT_EQ(check_outputs(step, *session).status, CheckReport::Status::passed);
}

// Three large products one after the other into one buffer, as gradients in a slot; each is copied away, in pieces,
// before the next overwrites it. `alphas` are their factors; without `copies_all` a part of the second is lost.
Step products_in_a_slot(std::array<float, 3> alphas, bool copies_all = true) {
  constexpr std::int64_t kSize = 512;
  constexpr std::uint64_t kCount = kSize * kSize, kPiece = kCount / 4;
  StepBuilder builder(5);
  const BufferId a = builder.uniform(ElementType::f32, kCount), b = builder.uniform(ElementType::f32, kCount);
  const BufferId slot = builder.output(ElementType::f32, kCount);
  for (std::size_t i = 0; i < alphas.size(); ++i) {
    builder.launch("gemm", {}, {.dims = {kSize, kSize, kSize, gemm_flags(false, i == 1)}, .scalars = {alphas[i], 0}},
                   {{a}, {b}, {slot}});
    const BufferId kept = builder.output(ElementType::f32, kCount);
    builder.copy({}, {slot, 0, kPiece}, {kept, kCount - kPiece, kPiece});
    builder.copy({}, {slot, kPiece, kCount - kPiece - (copies_all ? 0 : 1)},
                 {kept, 0, kCount - kPiece - (copies_all ? 0 : 1)});
  }
  return std::move(builder).seal(1);
}

TEST(Check, FindsWhereAnOverwrittenResultWasCopiedTo) {
  const Step step = products_in_a_slot({1, 1, 1});
  const std::vector<bool> is_chained = chained_buffers(step);
  const std::vector<KeptCopy> copies = kept_copies(step, is_chained, 3, 2);
  ASSERT_EQ(copies.size(), 2u);
  EXPECT_EQ(copies[0].at_bytes, 0u);
  EXPECT_EQ(copies[0].offset_bytes, 3 * copies[0].size_bytes) << "the first piece went to the end of the copy";
  EXPECT_EQ(copies[1].at_bytes, copies[0].size_bytes);
  EXPECT_EQ(copies[1].offset_bytes, 0u);
  EXPECT_EQ(copies[0].buffer, copies[1].buffer);
  EXPECT_TRUE(kept_copies(products_in_a_slot({1, 1, 1}, false), is_chained, 3, 2).empty());
}

TEST(Check, VerifiesLargeProductsThatWereOverwritten) {
  for (const bool copies_all : {true, false}) {
    const Step step = products_in_a_slot({1, 1, 1}, copies_all);
    const auto device = open_device("cpu", {});
    const auto session = device->prepare(step, place(step, "natural"), {});
    const auto submitter = inline_submitter(step, *session);
    session->begin_iteration();
    submitter->submit_step();
    session->finish();
    EXPECT_EQ(check_outputs(step, *session).status, CheckReport::Status::passed);
    // The device did not do what this step says: the second product's result is in its copies only.
    const CheckReport wrong = check_outputs(products_in_a_slot({1, 1.01f, 1}, copies_all), *session);
    EXPECT_EQ(wrong.status, CheckReport::Status::failed);
    EXPECT_NE(wrong.reason.find(copies_all ? "command 3 (gemm)" : "command 4 (copy)"), std::string::npos)
        << wrong.reason;
  }
}

TEST(Sweep, ResumesWithoutRepeatingAnything) {
  const auto device = open_device("cpu", {});
  SweepRequest request;
  request.run = tiny_run("tiny_kernel_stress", 0);
  request.run.traces = false;
  request.streams = {1, 2};
  request.submits = {parse_submit("inline"), parse_submit("graph")};
  request.output = std::filesystem::temp_directory_path() / ("weir_sweep_" + std::to_string(::getpid()) + ".json");
  std::filesystem::remove(request.output);
  const Json first = run_sweep(*device, request, {}, {});
  EXPECT_EQ(first["results"].size(), 4u);
  EXPECT_EQ(first["status"], "complete");
  EXPECT_EQ(first["floor"].size(), 4u);
  EXPECT_THROW(run_sweep(*device, request, {}, {}), Error) << "must not overwrite";

  request.resumes = true;
  request.streams = {1, 2, 4};
  int kept = 0;
  SweepControl control;
  control.on_point = [&](const Json&, bool was_kept) { kept += was_kept; };
  const Json second = run_sweep(*device, request, {}, control);
  EXPECT_EQ(kept, 4);
  EXPECT_EQ(second["results"].size(), 6u);
  EXPECT_EQ(second["results"][0]["samples"], first["results"][0]["samples"]);

  // Asking for less must not throw points away.
  request.streams = {2};
  request.submits = {parse_submit("inline")};
  EXPECT_EQ(run_sweep(*device, request, {}, {})["results"].size(), 6u);

  request.run.iterations = 9;
  EXPECT_THROW(run_sweep(*device, request, {}, {}), Error) << "other settings make points that cannot be compared";
  std::filesystem::remove(request.output);
}

}  // namespace
}  // namespace weir
