// Operators against the peaks of their device: by hand, and the table of peaks itself.
#include "trace/analyse/efficiency.h"

#include <gtest/gtest.h>

#include <set>

#include "trace/import/import.h"

namespace weir {
namespace {

// Launches of operators on one thread and their kernels, one after the other.
struct Made {
  Timeline timeline;
  std::int64_t now_ns = 0;

  Made() {
    timeline.has_operations = true;
    timeline.processes = {{0, "job"}};
    timeline.devices = {{.process = 0, .id = 0, .label = "GPU 0", .model = "NVIDIA H200", .multiprocessors = 132}};
    timeline.streams = {{0, 7, "stream 7"}};
  }
  std::uint32_t name(const std::string& text) {
    timeline.names.push_back(text);
    return static_cast<std::uint32_t>(timeline.names.size() - 1);
  }
  std::uint32_t operation(const std::string& text, const std::string& shapes) {
    timeline.operations.push_back({.name = name(text), .shapes = shapes.empty() ? kNoName : name(shapes)});
    return static_cast<std::uint32_t>(timeline.operations.size() - 1);
  }
  void launch(std::uint32_t operation, bool is_first, std::int64_t lasts_ns, const std::string& kernel = "gemm") {
    HostCall call;
    call.thread = 1;
    call.kind = CallKind::launch;
    call.started_ns = now_ns;
    call.ended_ns = now_ns + 1;
    call.operation = operation;
    call.is_first_of_operation = is_first;
    timeline.calls.push_back(call);
    if (lasts_ns >= 0) {
      Span span;
      span.name = name(kernel);
      span.call = static_cast<std::uint32_t>(timeline.calls.size() - 1);
      span.started_ns = now_ns;
      span.ended_ns = now_ns + lasts_ns;
      timeline.spans.push_back(span);
    }
    now_ns += std::max<std::int64_t>(lasts_ns, 2);
  }
  Efficiency found(const DevicePeaks* measured = nullptr) const {
    return efficiency(timeline, timeline.names, timeline.devices[0], measured);
  }
};

TEST(Efficiency, is_the_roofline_of_each_operator_and_shape) {
  Made made;
  const std::uint32_t mm = made.operation("aten::mm", "bf16 [4096, 4096], bf16 [4096, 4096]");
  const std::uint32_t add = made.operation("aten::add", "bf16 [8, 1048576], bf16 [8, 1048576], 1");
  // Two calls of two kernels each, as with split-k; a call to the driver without work in between.
  for (int i = 0; i < 2; ++i) {
    made.launch(mm, true, -1);
    made.launch(mm, false, 150'000);
    made.launch(mm, false, 50'000, "splitKreduce");
  }
  made.launch(add, true, 20'000, "elementwise");
  const Efficiency found = made.found();
  ASSERT_TRUE(found.reason.empty()) << found.reason;
  ASSERT_TRUE(found.peaks);
  EXPECT_EQ(found.peaks->model, "H200 SXM");
  ASSERT_EQ(found.all.size(), 2u);
  const OperatorEfficiency& product = found.all[0];
  EXPECT_EQ(made.timeline.names[product.name], "aten::mm");
  EXPECT_EQ(product.calls, 2u);
  EXPECT_EQ(product.commands, 4u);
  EXPECT_EQ(product.total_ns, 400'000);
  const double flop = 2.0 * 4096 * 4096 * 4096;
  EXPECT_DOUBLE_EQ(*product.flop_per_s, 2 * flop / 400e-6);
  EXPECT_EQ(product.bound, Bound::compute);
  EXPECT_NEAR(*product.share, 2 * flop / 989.5e12 / 400e-6, 1e-9);
  EXPECT_NEAR(*product.saved_ns, 400'000 - 2 * flop / 989.5e12 * 1e9, 1e-3);
  const OperatorEfficiency& sum = found.all[1];
  EXPECT_EQ(sum.bound, Bound::memory);
  EXPECT_NEAR(*sum.bytes_per_s, 3 * 2 * 8388608.0 / 20e-6, 1);
  EXPECT_NEAR(*sum.share, 3 * 2 * 8388608.0 / 4800e9 / 20e-6, 1e-9);
  EXPECT_DOUBLE_EQ(found.judged_ns, 420'000);
  EXPECT_NEAR(found.saved_ns, *product.saved_ns + *sum.saved_ns, 1e-6);
  EXPECT_TRUE(found.unknown.empty());
}

TEST(Efficiency, modules_and_phases_share_a_row) {
  Made made;
  const std::uint32_t forward = made.operation("aten::mm", "f32 [8, 8], f32 [8, 8]");
  Operation other = made.timeline.operations[forward];
  other.phase = Phase::backward;
  made.timeline.operations.push_back(other);
  made.launch(forward, true, 1000);
  made.launch(forward + 1, true, 3000);
  const Efficiency found = made.found();
  ASSERT_EQ(found.all.size(), 1u);
  EXPECT_EQ(found.all[0].calls, 2u);
  EXPECT_EQ(found.all[0].total_ns, 4000);
}

TEST(Efficiency, says_what_it_does_not_know) {
  Made made;
  made.launch(made.operation("aten::mm", ""), true, 5000);
  made.launch(made.operation("my::fused", "f32 [4]"), true, 7000);
  made.launch(made.operation("aten::_scaled_mm", "f8 [16, 16], f8 [16, 16]"), true, 1000);
  made.launch(made.operation("record_param_comms", ""), true, 9000);
  made.timeline.spans.back().kind = SpanKind::collective;
  made.timeline.devices[0] = {.process = 0, .id = 0, .label = "GPU 0", .model = "NVIDIA A100-SXM4-40GB"};
  const Efficiency found = made.found();
  EXPECT_EQ(found.judged_ns, 0);
  ASSERT_EQ(found.unknown.size(), 3u) << "collectives have a table of their own";
  EXPECT_EQ(found.unknown[0].reason, "the cost of this operator is not known");
  EXPECT_EQ(found.unknown[0].total_ns, 7000);
  EXPECT_NE(found.unknown[1].reason.find("record_shapes"), std::string::npos);
  for (const OperatorEfficiency& one : found.all) EXPECT_FALSE(one.share) << one.reason;

  Made elsewhere;
  elsewhere.launch(elsewhere.operation("aten::mm", "f32 [64, 64], f32 [64, 64]"), true, 5000);
  elsewhere.timeline.devices[0].model = "Banana GPU";
  const Efficiency unknown = elsewhere.found();
  EXPECT_FALSE(unknown.peaks);
  EXPECT_EQ(unknown.peaks_reason, "the peaks of 'Banana GPU' are not in the table");
  ASSERT_EQ(unknown.all.size(), 1u);
  EXPECT_DOUBLE_EQ(*unknown.all[0].flop_per_s, 2.0 * 64 * 64 * 64 / 5e-6) << "rates need no peak";
  EXPECT_FALSE(unknown.all[0].share);
  EXPECT_EQ(unknown.unknown.at(0).reason, unknown.peaks_reason);

  Made unmarked;  // other sources may not say where the calls of an operator begin
  unmarked.launch(unmarked.operation("aten::mm", "f32 [64, 64], f32 [64, 64]"), false, 5000);
  const Efficiency uncounted = unmarked.found();
  EXPECT_EQ(uncounted.all.at(0).calls, 0u);
  EXPECT_FALSE(uncounted.all[0].flop_per_s);
  EXPECT_EQ(uncounted.unknown.at(0).reason, "the trace does not say how often it was called");

  Made unread;
  unread.timeline.has_operations = false;
  EXPECT_NE(unread.found().reason.find("--operators"), std::string::npos);
  EXPECT_FALSE(Made().found().reason.empty());
}

TEST(Efficiency, kernels_say_that_32_bits_are_multiplied_as_19) {
  Made made;
  const std::uint32_t mm = made.operation("aten::mm", "f32 [512, 512], f32 [512, 512]");
  made.launch(mm, true, 10'000, "sm80_xmma_gemm_f32f32_tf32f32_f32_nn_n_tilesize128x128x32");
  EXPECT_EQ(made.found().all.at(0).type, NumberType::tf32);
  Made plain;
  plain.launch(plain.operation("aten::mm", "f32 [512, 512], f32 [512, 512]"), true, 10'000, "ampere_sgemm_128x64_nn");
  const Efficiency found = plain.found();
  EXPECT_EQ(found.all.at(0).type, NumberType::f32);
  EXPECT_NEAR(*found.all[0].share, 2.0 * 512 * 512 * 512 / 67e12 / 10e-6, 1e-9);
}

TEST(Efficiency, measured_peaks_come_first) {
  Made made;
  made.launch(made.operation("aten::mm", "bf16 [4096, 4096], bf16 [4096, 4096]"), true, 400'000);
  DevicePeaks measured;
  measured.source = "measured";
  measured.matrix_flop_per_s[static_cast<std::size_t>(NumberType::bf16)] = 700e12;
  const Efficiency found = made.found(&measured);
  EXPECT_NEAR(*found.all.at(0).share, 2.0 * 4096 * 4096 * 4096 / 700e12 / 400e-6, 1e-9);
  EXPECT_EQ(found.peaks->bytes_per_s, 4800e9) << "not measured, so the table's";
  EXPECT_EQ(found.peaks->source.find("measured; "), 0u);
}

// The importer marks the first call to the driver of each call of an operator, also of operators within operators.
TEST(Efficiency, calls_of_operators_are_counted_from_traces) {
  const auto event = [](const char* category, const char* name, int from, int lasts, const char* more = "") {
    return std::string(R"({"ph":"X","pid":5,"tid":1,"cat":")") + category + R"(","name":")" + name + R"(","ts":)" +
           std::to_string(from) + R"(,"dur":)" + std::to_string(lasts) + more + "},\n";
  };
  std::string events;
  int correlation = 0;
  const auto launch = [&](int at) {
    const std::string id = std::to_string(++correlation);
    events += event("cuda_runtime", "cudaLaunchKernel", at, 1, (R"(,"args":{"correlation":)" + id + "}").c_str());
    events += R"({"ph":"X","cat":"kernel","name":"k","pid":0,"tid":7,"ts":)" + std::to_string(1000 + 10 * correlation) +
              R"(,"dur":5,"args":{"device":0,"stream":7,"correlation":)" + id + "}},\n";
  };
  for (int i = 0; i < 3; ++i) {  // a call of mm launches two kernels; linear launches one before and one after it
    const int from = 100 * i;
    events += event("cpu_op", "aten::linear", from, 90) + event("cpu_op", "aten::mm", from + 20, 30);
    launch(from + 5);
    launch(from + 25);
    launch(from + 30);
    launch(from + 60);
  }
  events.resize(events.size() - 2);
  ImportOptions options;
  options.has_operations = true;
  const Timeline timeline = import_memory(R"({"traceEvents": [)" + events + "]}", "test.json", options).timeline;
  const Efficiency found = efficiency(timeline, timeline.names, timeline.devices.at(0));
  ASSERT_EQ(found.all.size(), 2u);
  for (const OperatorEfficiency& one : found.all) {
    EXPECT_EQ(one.calls, 3u) << timeline.names[one.name];
    EXPECT_EQ(one.commands, 6u) << timeline.names[one.name];
  }
}

TEST(DevicePeaks, devices_are_found_by_their_names) {
  const auto model_of = [](const std::string& name, std::uint32_t multiprocessors = 0) {
    const PeaksFound found = device_peaks({.label = name, .multiprocessors = multiprocessors});
    EXPECT_NE(found.peaks.has_value(), !found.reason.empty());
    return found.peaks ? found.peaks->model : "";
  };
  EXPECT_EQ(model_of("NVIDIA H100 80GB HBM3"), "H100 SXM");
  EXPECT_EQ(model_of("NVIDIA H100 PCIe"), "H100 PCIe");
  EXPECT_EQ(model_of("NVIDIA H100 NVL"), "H100 NVL");
  EXPECT_EQ(model_of("NVIDIA H200"), "H200 SXM");
  EXPECT_EQ(model_of("NVIDIA H200 NVL"), "H200 NVL");
  EXPECT_EQ(model_of("NVIDIA B200"), "B200");
  EXPECT_EQ(model_of("GPU 3: NVIDIA A100-SXM4-40GB"), "A100 40GB");
  EXPECT_EQ(model_of("NVIDIA A100-SXM4-80GB"), "A100 80GB SXM");
  EXPECT_EQ(model_of("NVIDIA A100 80GB PCIe"), "A100 80GB PCIe");
  EXPECT_EQ(model_of("NVIDIA A10"), "A10");
  EXPECT_EQ(model_of("NVIDIA L4"), "L4");
  EXPECT_EQ(model_of("NVIDIA L40S"), "L40S");
  EXPECT_EQ(model_of("Tesla V100-SXM2-16GB"), "V100 SXM2");
  EXPECT_EQ(model_of("Tesla V100-PCIE-32GB"), "V100 PCIe");
  EXPECT_EQ(model_of("Tesla T4"), "T4");
  EXPECT_EQ(model_of("NVIDIA GeForce RTX 4090"), "RTX 4090");
  EXPECT_EQ(model_of("NVIDIA GeForce RTX 3090"), "RTX 3090");
  EXPECT_EQ(model_of("AMD Instinct MI250X"), "MI250X, one die");
  EXPECT_EQ(model_of("AMD Instinct MI300X VF", 304), "MI300X");
  EXPECT_EQ(model_of("AMD Instinct MI325X"), "MI325X");
  EXPECT_EQ(model_of("AMD Instinct MI355X"), "MI355X");
  for (const char* other : {"", "GPU 0", "NVIDIA A10G", "NVIDIA L40", "NVIDIA H20", "NVIDIA GH200 480GB",
                            "NVIDIA H100 80GB HBM3 MIG 1g.10gb", "NVIDIA GeForce RTX 4090 Laptop GPU",
                            "NVIDIA GeForce RTX 3090 Ti", "AMD Instinct MI300A"})
    EXPECT_EQ(model_of(other), "") << other;
  EXPECT_EQ(model_of("AMD Instinct MI300X", 38), "") << "a partition";
}

TEST(DevicePeaks, each_has_a_source_and_figures_that_fit_together) {
  std::set<std::string> models;
  for (const DevicePeaks& peaks : known_peaks()) {
    EXPECT_TRUE(models.insert(peaks.model).second) << peaks.model;
    EXPECT_NE(peaks.source.find("https://"), std::string::npos) << peaks.model;
    ASSERT_TRUE(peaks.bytes_per_s && peaks.vector_f32_flop_per_s) << peaks.model;
    const auto of = [&](NumberType type) { return peaks.flop_per_s(type, true); };
    ASSERT_TRUE(of(NumberType::f16)) << peaks.model;
    EXPECT_GT(*of(NumberType::f16), *peaks.vector_f32_flop_per_s) << peaks.model;
    if (of(NumberType::bf16)) {
      EXPECT_EQ(of(NumberType::bf16), of(NumberType::f16)) << peaks.model;
    }
    // Half as many bits, twice as fast: figures with sparsity among dense ones would not fit. Rounding apart.
    if (of(NumberType::tf32)) {
      EXPECT_NEAR(*of(NumberType::f16) / *of(NumberType::tf32), 2, 0.03) << peaks.model;
    }
    if (of(NumberType::f8)) {
      EXPECT_NEAR(*of(NumberType::f8) / *of(NumberType::f16), 2, 0.03) << peaks.model;
    }
    EXPECT_FALSE(peaks.flop_per_s(NumberType::c64, true)) << peaks.model;
  }
  EXPECT_GE(models.size(), 20u);
}

}  // namespace
}  // namespace weir
