// XLA's profiles, written as XLA does, as nobody does, and a real one.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "importer_testing.h"
#include "protobuf_testing.h"
#include "trace/analyse/model_use.h"
#include "trace/import/xla_scope.h"

namespace weir {
namespace {

// A plane with the names and statistics that its events ask for.
class PlaneWriter {
 public:
  explicit PlaneWriter(std::string name) : name_(std::move(name)) {}

  std::uint64_t stat_id(const std::string& name) { return id_in(stats_, name); }
  Proto stat(const std::string& name, std::uint64_t value) { return Proto().number(1, stat_id(name)).number(3, value); }
  // A text is the name of another statistic.
  Proto reference(const std::string& name, const std::string& text) {
    return Proto().number(1, stat_id(name)).number(7, stat_id(text));
  }
  Proto text(const std::string& name, const std::string& text) {
    return Proto().number(1, stat_id(name)).text(5, text);
  }
  Proto event(const std::string& name, long long offset_ps, long long duration_ps,
              const std::vector<Proto>& stats = {}) {
    Proto made = Proto().number(1, id_in(events_, name)).signed_number(2, offset_ps).signed_number(3, duration_ps);
    for (const Proto& one : stats) made.message(4, one);
    return made;
  }
  void line(std::uint64_t id, const std::string& name, long long start_ns, const std::vector<Proto>& events) {
    Proto line = Proto().number(1, id).text(2, name).signed_number(3, start_ns);
    for (const Proto& one : events) line.message(4, one);
    lines_.push_back(line);
  }
  void own(const Proto& stat) { own_.push_back(stat); }
  // Names come after what uses them.
  Proto plane() const {
    Proto made = Proto().number(1, 0).text(2, name_);
    for (const Proto& line : lines_) made.message(3, line);
    for (const auto& [name, id] : events_)
      made.message(4, Proto().number(1, id).message(2, Proto().number(1, id).text(2, name)));
    for (const auto& [name, id] : stats_)
      made.message(5, Proto().number(1, id).message(2, Proto().number(1, id).text(2, name)));
    for (const Proto& stat : own_) made.message(6, stat);
    return made;
  }

 private:
  static std::uint64_t id_in(std::map<std::string, std::uint64_t>& ids, const std::string& name) {
    return ids.try_emplace(name, ids.size() + 1).first->second;
  }
  std::string name_;
  std::map<std::string, std::uint64_t> events_, stats_;
  std::vector<Proto> lines_, own_;
};

std::string space_of(const std::vector<const PlaneWriter*>& planes) {
  Proto space;
  for (const PlaneWriter* plane : planes) space.message(1, plane->plane());
  return space.text(4, "host").bytes();
}

Timeline import_xplane(const std::string& bytes, bool has_operations = true) {
  ImportOptions options;
  options.has_operations = has_operations;
  return import_memory(bytes, "t.xplane.pb", options).timeline;
}

PlaneWriter gpu_plane() {
  PlaneWriter gpu("/device:GPU:1");
  gpu.own(gpu.text("device_vendor", "Nvidia"));
  gpu.own(gpu.text("device_type_string", "NVIDIA H100"));
  gpu.own(gpu.stat("core_count", 132));
  const auto of = [&](std::uint64_t correlation, const char* op, const char* path) {
    return std::vector<Proto>{
        gpu.stat("correlation_id", correlation),
        gpu.reference("hlo_op", op),
        gpu.text("hlo_module", "jit_step"),
        gpu.reference("tf_op", "XlaModule:"),
        gpu.reference("name", path),
        gpu.reference("kernel_details",
                      "regs:32 static_shared:0 dynamic_shared:16384 grid:6,2,1 block:32,4,1 occ_pct:50")};
  };
  gpu.line(20, "Stream #20(Compute,MemcpyH2D)", 5000,
           {gpu.event("gemm", 1'000'999, 2'000'000, of(7, "custom-call.1", "jit(step)/jvp(MLP)/Dense_0/dot_general")),
            gpu.event("fusion_1", 4'000'000, 1'000'000, of(8, "fusion.1", "jit(step)/transpose(jvp(MLP))/Dense_0/mul")),
            gpu.event("fusion_2", 6'000'000, 1'000'000, of(9, "fusion.2", "jit(step)/Optimizer/add")),
            gpu.event("fusion_3", 7'000'000, 1'000'000, of(9, "fusion.3", "jit(step)/Optimizer/mul"))});
  gpu.line(21, "Stream #21(MemcpyH2D)", 5000,
           {gpu.event("MemcpyH2D", 0, 500'000,
                      {gpu.stat("correlation_id", 5),
                       gpu.text("memcpy_details", "kind_src:pinned kind_dst:device size:4096 dest:0 async:1")}),
            gpu.event("Memset", 600'000, 1'000, {gpu.text("memset_details", "kind:device num_bytes:64 async:1")}),
            gpu.event("MemAlloc", 700'000, 1'000, {gpu.text("memalloc_details", "kind:device num_bytes:64")})});
  for (const char* derived : {"XLA Modules", "XLA Ops", "Steps", "Framework Name Scope", "CUPTI overhead"})
    gpu.line(99, derived, 5000, {gpu.event("the same again", 1'000'000, 7'000'000)});
  return gpu;
}

PlaneWriter host_plane() {
  PlaneWriter host("/host:CPU");
  const auto call = [&](const char* name, long long at_ps, std::uint64_t correlation) {
    return host.event(name, at_ps, 100'000, {host.stat("correlation_id", correlation)});
  };
  host.line(77, "python", 4000,
            {host.event("train", 0, 9'000'000, {host.stat("step_num", 12)}), call("cuMemcpyHtoDAsync_v2", 1'000, 5),
             call("cuLaunchKernel", 200'000, 7), call("cuLaunchKernel", 400'000, 8), call("cuGraphLaunch", 600'000, 9),
             host.event("PjitFunction(step)", 0, 1'000'000)});
  return host;
}

TEST(XPlane, streams_are_the_work_and_calls_belong_to_it) {
  const PlaneWriter gpu = gpu_plane(), host = host_plane();
  // Planes come in either order.
  for (const auto& planes : {std::vector{&gpu, &host}, std::vector{&host, &gpu}}) {
    const Timeline timeline = import_xplane(space_of(planes));
    ASSERT_EQ(timeline.spans.size(), 6U) << "what other lines repeat does not count";
    EXPECT_EQ(timeline.spans[0].kind, SpanKind::copy);
    EXPECT_EQ(timeline.spans[0].bytes, 4096U);
    EXPECT_EQ(timeline.spans[1].kind, SpanKind::memset);
    EXPECT_EQ(timeline.spans[1].bytes, 64U);
    const Span& gemm = timeline.spans[2];
    EXPECT_EQ(timeline.names.at(gemm.name), "gemm");
    EXPECT_EQ(gemm.started_ns, 6000) << "5000 ns and 1000999 ps";
    EXPECT_EQ(gemm.ended_ns, 8000);
    EXPECT_EQ(gemm.submitted_ns, 4200);
    EXPECT_EQ(gemm.blocks, 12U);
    EXPECT_EQ(gemm.threads, 128);
    EXPECT_EQ(timeline.streams.at(gemm.stream).id, 20U);
    ASSERT_EQ(timeline.devices.size(), 1U);
    EXPECT_EQ(timeline.devices[0].id, 1);
    EXPECT_EQ(timeline.devices[0].label, "GPU 1: NVIDIA H100");
    EXPECT_EQ(timeline.devices[0].model, "NVIDIA H100");
    EXPECT_EQ(timeline.devices[0].multiprocessors, 132U);
    ASSERT_EQ(timeline.calls.size(), 4U);
    EXPECT_EQ(timeline.calls[0].kind, CallKind::copy);
    EXPECT_EQ(timeline.calls[1].kind, CallKind::launch);
    ASSERT_EQ(timeline.ranges.size(), 1U);
    EXPECT_EQ(timeline.names.at(timeline.ranges[0].name), "step 12");
    EXPECT_TRUE(timeline.has_exact_gaps) << "CUPTI's";
    EXPECT_TRUE(timeline.dropped.empty());
  }
}

std::string module_path(const Timeline& timeline, std::uint32_t module) {
  std::string path;
  for (; module != kNoModule; module = timeline.modules.at(module).parent)
    path = "/" + timeline.names.at(timeline.modules.at(module).name) + path;
  return path;
}

TEST(XPlane, kernels_belong_to_operations_modules_and_phases) {
  const PlaneWriter gpu = gpu_plane(), host = host_plane();
  const Timeline timeline = import_xplane(space_of({&gpu, &host}));
  const auto operation_of = [&](std::string_view kernel) {
    for (const Span& span : timeline.spans)
      if (timeline.names.at(span.name) == kernel) return timeline.operations.at(timeline.calls.at(span.call).operation);
    return Operation();
  };
  const Operation gemm = operation_of("gemm"), backward = operation_of("fusion_1"), graph = operation_of("fusion_2");
  EXPECT_EQ(timeline.names.at(gemm.name), "custom-call.1");
  EXPECT_EQ(module_path(timeline, gemm.module), "/jit_step/MLP/Dense_0");
  EXPECT_EQ(gemm.phase, Phase::forward);
  EXPECT_EQ(backward.module, gemm.module);
  EXPECT_EQ(backward.phase, Phase::backward);
  EXPECT_EQ(graph.name, kNoName) << "a graph launched kernels of two operations";
  EXPECT_EQ(module_path(timeline, graph.module), "/jit_step");
  EXPECT_TRUE(import_xplane(space_of({&gpu, &host}), false).operations.empty());
}

TEST(XPlane, scopes_are_read_as_jax_writes_them) {
  const auto modules = [](std::string_view path) { return xla_scope(path).modules; };
  using Names = std::vector<std::string>;
  EXPECT_EQ(modules("jit(f)/jit(main)/jvp(MLP)/Dense_0/dot_general"), (Names{"MLP", "Dense_0"}));
  EXPECT_EQ(modules("jit(f)/vmap(transpose(jvp(a/b)))/mul"), (Names{"a/b"}));
  EXPECT_EQ(modules("MLP/Dense_0/MatMul:MatMul"), (Names{"MLP", "Dense_0"}));
  EXPECT_EQ(modules("jit(f)/while/body/add"), (Names{"while", "body"}));
  EXPECT_EQ(modules("add"), Names{});
  EXPECT_EQ(modules(""), Names{});
  EXPECT_EQ(xla_scope("jit(f)/jvp(g)/add").phase, Phase::forward);
  EXPECT_EQ(xla_scope("jit(f)/transpose(jvp(g))/add").phase, Phase::backward);
  EXPECT_EQ(xla_scope("jit(f)/g/add").phase, Phase::unknown);
  for (const char* odd : {"(((", ")))", "a)", "(a)/b", "jvp(/x", "///", "f()/g", "a(b(c/d"}) xla_scope(odd);
  EXPECT_LE(modules(std::string(100'000, '(') + "/a").size(), 64U);
}

TEST(XPlane, planes_that_are_not_of_gpus_are_named) {
  PlaneWriter tpu("/device:TPU:0");
  tpu.line(1, "XLA Ops", 0, {tpu.event("fusion", 0, 1000)});
  const std::string text = rejection_of("xplane", space_of({&tpu}));
  EXPECT_NE(text.find("/device:TPU:0"), std::string::npos) << text;
  PlaneWriter idle("/device:GPU:0");
  idle.line(1, "XLA Ops", 0, {idle.event("fusion", 0, 1000)});
  EXPECT_NE(rejection_of("xplane", space_of({&idle})).find("no streams with commands"), std::string::npos);
}

TEST(XPlane, odd_events_are_counted_by_reason) {
  PlaneWriter gpu("/device:GPU:0");
  gpu.line(1, "Stream #1(Compute)", 100,
           {gpu.event("good", 0, 1000), gpu.event("negative", 0, -5), gpu.event("before the line", -1500, 1000),
            gpu.event("late", INT64_MAX, 10), Proto().number(1, 1).number(5, 3),
            Proto().number(1, 4711).number(2, 5000).number(3, 1000), Proto().raw("\x0a\x7f")});
  gpu.line(2, "Stream #2(Compute)", INT64_MAX, {gpu.event("beyond", 5000, 1000)});
  gpu.line(3, "Stream #", INT64_MIN, {gpu.event("below", -5000, 1000)});
  const Timeline timeline = import_xplane(space_of({&gpu}));
  ASSERT_EQ(timeline.spans.size(), 3U);
  EXPECT_EQ(timeline.spans[0].started_ns, 98) << "rounded down";
  EXPECT_EQ(timeline.names.at(timeline.spans[2].name), "kernel 4711");
  EXPECT_EQ(dropped(timeline, "negative duration"), 1U);
  EXPECT_EQ(dropped(timeline, "sum of several"), 1U);
  EXPECT_EQ(dropped(timeline, "damaged event"), 1U);
  EXPECT_EQ(dropped(timeline, "out of range"), 3U);
}

TEST(XPlane, statistics_of_a_name_are_those_of_its_events) {
  Proto plane = Proto().text(2, "/device:GPU:0");
  plane.message(3, Proto().number(1, 3).text(2, "Stream #3").message(4, Proto().number(1, 1).number(3, 1000)));
  const Proto details = Proto().number(1, 2).text(5, "grid:8 block:64");
  plane.message(4, Proto().number(1, 1).message(2, Proto().text(2, "k").message(5, details)));
  plane.message(5, Proto().number(1, 2).message(2, Proto().text(2, "kernel_details")));
  const Timeline timeline = import_xplane(Proto().message(1, plane).bytes());
  ASSERT_EQ(timeline.spans.size(), 1U);
  EXPECT_EQ(timeline.spans[0].blocks, 8U);
  EXPECT_EQ(timeline.spans[0].threads, 64);
}

TEST(XPlane, a_profile_that_is_cut_off_gives_its_whole_planes) {
  const PlaneWriter gpu = gpu_plane(), host = host_plane();
  const std::string whole = space_of({&gpu, &host});
  for (std::size_t size = 0; size < whole.size(); size += 5) {
    try {
      EXPECT_LE(import_as("xplane", std::string_view(whole).substr(0, size)).spans.size(), 6U);
    } catch (const Error& error) {
      EXPECT_EQ(error.fault, Fault::input);
    }
  }
  const Timeline cut = import_xplane(whole.substr(0, whole.size() - 20));
  EXPECT_EQ(cut.spans.size(), 6U);
  EXPECT_EQ(dropped(cut, "cut off"), 1U);
}

TEST(XPlane, time_of_day_is_added) {
  const PlaneWriter gpu = gpu_plane();
  PlaneWriter environment("Task Environment");
  environment.own(environment.stat("profile_start_time", 1'700'000'000'000'000'000));
  const Timeline timeline = import_xplane(space_of({&gpu, &environment}));
  EXPECT_EQ(timeline.spans.at(0).started_ns, 1'700'000'000'000'005'000);
  EXPECT_TRUE(has_note(timeline, "profile_start_time was added"));
}

// Counted independently of this reader, with a protobuf reader of another language.
TEST(XPlane, a_real_profile_of_jax) {
  const auto path = real_file("xla/mi300_jax_conv.xplane.pb");
  if (!path) GTEST_SKIP() << "WEIR_REAL_DATA does not name the folder of real captures";
  ImportOptions options;
  options.has_operations = true;
  const ImportedTrace trace = std::move(import_traces({*path}, options).front());
  EXPECT_EQ(trace.files.at(0).format, "xplane");
  const Timeline& timeline = trace.timeline;
  EXPECT_EQ(timeline.devices.size(), 8U);
  EXPECT_EQ(timeline.devices.at(0).multiprocessors, 304U);
  EXPECT_TRUE(timeline.dropped.empty());
  std::set<std::string> names;
  for (const TraceModule& module : timeline.modules) names.insert(timeline.names.at(module.name));
  EXPECT_TRUE(names.contains("jit_forward_3d_conv"));
  EXPECT_EQ(timeline.spans.size(), 235U);
  EXPECT_EQ(timeline.calls.size(), 234U);
  EXPECT_EQ(count(timeline, SpanKind::copy), 35U) << "__amd_rocclr_copyBuffer";
  std::uint64_t sum = 0, first_gpu = 0;
  for (const Span& span : timeline.spans) {
    EXPECT_NE(span.call, kNoCall);
    sum += static_cast<std::uint64_t>(span.ended_ns - span.started_ns);
    first_gpu += timeline.devices.at(timeline.streams.at(span.stream).device).id == 0 ? 1 : 0;
  }
  EXPECT_EQ(sum, 28'137'077U);
  EXPECT_EQ(first_gpu, 60U);
  EXPECT_EQ(timeline.streams.size(), 11U);
  // 198 commands have an hlo_op.
  const ModelUse found = model_use(timeline, {});
  std::uint64_t attributed = 0, attributed_ns = 0;
  for (const ShapedUse& use : found.shaped) {
    if (use.name == kNoName) continue;  // of a program, and of none of its operations
    attributed += use.work.commands;
    attributed_ns += use.work.total_ns;
  }
  EXPECT_EQ(attributed, 198U);
  EXPECT_EQ(attributed_ns, 27'550'676U);
  std::size_t with_grid = 0;
  for (const Span& span : timeline.spans) with_grid += span.blocks > 0 && span.threads > 0 ? 1 : 0;
  EXPECT_EQ(with_grid, timeline.spans.size());
}

}  // namespace
}  // namespace weir
