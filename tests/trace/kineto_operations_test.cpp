// What calls of PyTorch's traces belong to: shapes, modules, phases and lines of the program, from Kineto's events.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <map>
#include <set>

#include "trace/analyse/iterations.h"
#include "trace/analyse/model_use.h"
#include "trace/importer_testing.h"

namespace weir {
namespace {

std::string range(const std::string& category, const std::string& name, int thread, int from_us, int to_us,
                  const std::string& arguments = "") {
  return fmt::format(
      R"({{"ph": "X", "cat": "{}", "name": "{}", "pid": 5, "tid": {}, "ts": {}, "dur": {}, "args": {{{}}}}},)",
      category, name, thread, from_us, to_us - from_us, arguments);
}
std::string op(const std::string& name, int thread, int from_us, int to_us, const std::string& arguments = "") {
  return range("cpu_op", name, thread, from_us, to_us, arguments);
}
std::string python(const std::string& name, int thread, int from_us, int to_us) {
  return range("python_function", name, thread, from_us, to_us);
}
std::string numbered(int sequence, int forward_thread) {
  return fmt::format(R"("Sequence number": {}, "Fwd thread id": {})", sequence, forward_thread);
}
// A launch and its kernel, of so many nanoseconds.
std::string work(int correlation, int thread, int at_us, int ns = 1000) {
  return range("cuda_runtime", "cudaLaunchKernel", thread, at_us, at_us + 1,
               fmt::format(R"("correlation": {})", correlation)) +
         fmt::format(R"({{"ph": "X", "cat": "kernel", "name": "k", "pid": 0, "tid": 7, "ts": {}, "dur": {}.{:03},
                        "args": {{"device": 0, "stream": 7, "correlation": {}}}}},)",
                     10'000 + 100 * correlation, ns / 1000, ns % 1000, correlation);
}

Timeline traced(std::string events, bool has_operations = true) {
  events.pop_back();
  ImportOptions options;
  options.has_operations = has_operations;
  return import_memory(R"({"traceEvents": [)" + events + "]}", "test.json", options).timeline;
}

const HostCall& call_of(const Timeline& timeline, std::uint64_t correlation) {
  for (const HostCall& call : timeline.calls)
    if (call.correlation == correlation) return call;
  throw std::runtime_error("no such call");
}
std::string text(const Timeline& timeline, std::uint32_t name) {
  return name == kNoName ? "-" : timeline.names.at(name);
}
// "aten::mm | f32 [2] | Model_0/Linear_0 | forward | train.py(3): main"
std::string described(const Timeline& timeline, std::uint64_t correlation) {
  const HostCall& call = call_of(timeline, correlation);
  const std::string line = text(timeline, call.line);
  if (call.operation == kNoOperation) return "none | " + line;
  const Operation& operation = timeline.operations.at(call.operation);
  std::string path;
  for (std::uint32_t module = operation.module; module != kNoModule; module = timeline.modules.at(module).parent)
    path = text(timeline, timeline.modules.at(module).name) + (path.empty() ? "" : "/") + path;
  return fmt::format("{} | {} | {} | {} | {}", text(timeline, operation.name), text(timeline, operation.shapes),
                     path.empty() ? "-" : path, to_string(operation.phase), line);
}

std::string shapes_of_op(const std::string& arguments, const std::string& name = "aten::mm") {
  const Timeline timeline = traced(op(name, 1, 0, 10, arguments) + work(1, 1, 5));
  return text(timeline, timeline.operations.at(call_of(timeline, 1).operation).shapes);
}

TEST(KinetoOperations, shapes_are_types_and_extents) {
  EXPECT_EQ(
      shapes_of_op(R"("Input type": ["c10::BFloat16", "c10::BFloat16"], "Input Dims": [[8, 1024], [1024, 4096]])"),
      "bf16 [8, 1024], bf16 [1024, 4096]");
  EXPECT_EQ(shapes_of_op(R"("Input Dims": [[], [7], [], []], "Input type": ["float", "long int", "Scalar", ""])"),
            "f32 [], i64 [7]")
      << "what is no tensor has no shape, and the keys come in any order";
  EXPECT_EQ(shapes_of_op(R"("Input Dims": [[[2, 3], [4], []], []], "Input type": ["TensorList", "Scalar"])"),
            "3 tensors of 11 elements");
  EXPECT_EQ(shapes_of_op(R"("Input Dims": [[5]], "Input type": ["c10::Float8_e4m3fn"])"), "f8 [5]");
  EXPECT_EQ(shapes_of_op(R"("Input Dims": [[5]], "Input type": ["SomethingNew"])"), "-");
  EXPECT_EQ(shapes_of_op(R"("Input Dims": "none", "Input type": 7)"), "-");
  EXPECT_EQ(shapes_of_op(R"("Input Dims": [[5], {"a": [1]}, [[[1]]]], "Input type": ["int", [2], "Half"])"),
            "i32 [5], 1 tensor of 1 element");
}

TEST(KinetoOperations, values_are_kept_where_the_cost_depends_on_them) {
  const std::string arguments =
      R"("Concrete Inputs": ["", "", "", "[2, 2]", "False", "1"],
         "Input type": ["float", "float", "", "ScalarList", "Scalar", "Scalar"],
         "Input Dims": [[1, 3, 8, 8], [4, 3, 1, 1], [], [], [], []])";
  EXPECT_EQ(shapes_of_op(arguments, "aten::convolution"), "f32 [1, 3, 8, 8], f32 [4, 3, 1, 1]; [2, 2], False, 1");
  EXPECT_EQ(shapes_of_op(arguments, "aten::add"), "f32 [1, 3, 8, 8], f32 [4, 3, 1, 1]");
}

TEST(KinetoOperations, enormous_shapes_are_cut) {
  std::string types = "\"float\"", extents = "[1]";
  for (int i = 0; i < 5000; ++i) {
    types += ", \"float\"";
    extents += ", [123456789, 123456789]";
  }
  const std::string shapes = shapes_of_op("\"Input type\": [" + types + "], \"Input Dims\": [" + extents + "]");
  EXPECT_GT(shapes.size(), 100U);
  EXPECT_LT(shapes.size(), 2000U);
}

TEST(KinetoOperations, modules_nest_and_belong_to_the_forward_pass) {
  const Timeline timeline = traced(
      python("nn.Module: Model_0", 1, 0, 100) + python("nn.Module: Linear_0", 1, 10, 40) +
      python("torch/nn/modules/linear.py(114): forward", 1, 11, 39) + op("aten::linear", 1, 12, 38) +
      op("aten::addmm", 1, 15, 30) + work(1, 1, 20) + python("nn.Module: Linear_1", 1, 50, 60) + work(2, 1, 55) +
      op("aten::add", 1, 70, 80) + work(3, 1, 75) + op("aten::mul", 1, 110, 120) + work(4, 1, 115) + work(5, 1, 130));
  EXPECT_EQ(described(timeline, 1), "aten::addmm | - | Model_0/Linear_0 | forward | -");
  EXPECT_EQ(described(timeline, 2), "- | - | Model_0/Linear_1 | forward | -") << "no operator made this call";
  EXPECT_EQ(described(timeline, 3), "aten::add | - | Model_0 | forward | -");
  EXPECT_EQ(described(timeline, 4), "aten::mul | - | - | unknown | -");
  EXPECT_EQ(described(timeline, 5), "none | -");
  EXPECT_EQ(timeline.modules.size(), 3U);
  const ModelUse found = model_use(timeline, {});
  EXPECT_EQ(found.outside.commands, 1U);
  for (const ShapedUse& use : found.shaped)
    EXPECT_EQ(text(timeline, use.call), use.name == kNoName ? "cudaLaunchKernel" : "-");
}

TEST(KinetoOperations, backward_operators_have_the_modules_of_their_forward_operators) {
  // Numbers of two threads: the backward operators mean those of thread 1, of which they have more.
  const Timeline timeline = traced(
      python("nn.Module: Model_0", 1, 0, 100) + python("nn.Module: Linear_0", 1, 10, 40) +
      op("aten::linear", 1, 12, 38, numbered(5, 0)) + op("aten::t", 1, 13, 14, numbered(5, 0)) +
      op("aten::addmm", 1, 15, 30, numbered(6, 0)) + work(1, 1, 20) + python("nn.Module: ReLU_0", 1, 50, 60) +
      op("aten::relu", 1, 51, 59, numbered(7, 0)) + work(2, 1, 52) +
      op("autograd::engine::evaluate_function: ReluBackward0", 2, 200, 220, numbered(7, 1)) +
      op("ReluBackward0", 2, 202, 218, numbered(7, 1)) + op("aten::threshold_backward", 2, 204, 216) + work(3, 2, 206) +
      op("autograd::engine::evaluate_function: AddmmBackward0", 2, 230, 250, numbered(6, 1)) +
      op("aten::mm", 2, 232, 240) + work(4, 2, 235) +
      // a checkpoint: the forward pass once more, on the thread of the backward pass, with numbers of its own
      op("autograd::engine::evaluate_function: CheckpointFunctionBackward", 2, 260, 300, numbered(5, 1)) +
      python("nn.Module: Linear_0", 2, 262, 270) + op("aten::addmm", 2, 264, 268, numbered(7, 0)) + work(5, 2, 266) +
      op("autograd::engine::evaluate_function: torch::autograd::AccumulateGrad", 2, 310, 320,
         R"("Sequence number": 18446744073709551615, "Fwd thread id": 0)") +
      work(6, 2, 315) + op("torch.distributed.ddp.reducer::copy_bucket_to_grad", 2, 330, 340) + work(7, 2, 335) +
      op("Optimizer.step#SGD.step", 1, 400, 420) + op("aten::_foreach_add_", 1, 405, 410) + work(8, 1, 407));
  EXPECT_EQ(described(timeline, 1), "aten::addmm | - | Model_0/Linear_0 | forward | -");
  EXPECT_EQ(described(timeline, 3), "aten::threshold_backward | - | Model_0/ReLU_0 | backward | -");
  EXPECT_EQ(described(timeline, 4), "aten::mm | - | Model_0/Linear_0 | backward | -");
  EXPECT_EQ(described(timeline, 5), "aten::addmm | - | Model_0/Linear_0 | backward | -");
  EXPECT_EQ(described(timeline, 6),
            "autograd::engine::evaluate_function: torch::autograd::AccumulateGrad | - | - | backward | -");
  EXPECT_EQ(described(timeline, 7), "torch.distributed.ddp.reducer::copy_bucket_to_grad | - | - | backward | -")
      << "this thread does nothing else";
  EXPECT_EQ(described(timeline, 8), "aten::_foreach_add_ | - | - | optimizer | -");
}

TEST(KinetoOperations, a_backward_pass_may_run_on_the_threads_of_the_forward_pass) {
  const Timeline timeline = traced(op("aten::mul", 1, 0, 10, numbered(1, 0)) + work(1, 1, 5) +
                                   op("autograd::engine::evaluate_function: MulBackward0", 1, 20, 30, numbered(1, 1)) +
                                   work(2, 1, 25) + op("aten::item", 1, 40, 50) + work(3, 1, 45));
  EXPECT_EQ(described(timeline, 1), "aten::mul | - | - | forward | -");
  EXPECT_EQ(described(timeline, 2), "autograd::engine::evaluate_function: MulBackward0 | - | - | backward | -");
  EXPECT_EQ(described(timeline, 3), "aten::item | - | - | unknown | -");
}

TEST(KinetoOperations, lines_are_of_the_program) {
  const Timeline timeline = traced(
      python("runpy.py(196): _run_module_as_main", 1, 0, 1000) + python("train.py(45): main", 1, 1, 900) +
      python("/home/me/model.py(12): forward", 1, 10, 100) + python("torch/nn/functional.py(7): relu", 1, 20, 90) +
      python("<built-in method relu>", 1, 30, 80) + op("aten::relu", 1, 40, 70) + work(1, 1, 50) +
      python("/usr/lib/python3.11/site-packages/torch/cuda/__init__.py(8): synchronize", 1, 200, 300) +
      range("cuda_runtime", "cudaDeviceSynchronize", 1, 210, 290, R"("correlation": 2)") +
      python("/opt/lib/python3/dist-packages/megatron/schedules.py(3): run", 1, 400, 500) + work(3, 1, 450) +
      python("/usr/lib/python3.11/threading.py(1002): run", 2, 0, 100) + work(4, 2, 50));
  EXPECT_EQ(described(timeline, 1), "aten::relu | - | - | unknown | /home/me/model.py(12): forward");
  EXPECT_EQ(described(timeline, 2), "none | train.py(45): main");
  EXPECT_EQ(described(timeline, 3), "none | /opt/lib/python3/dist-packages/megatron/schedules.py(3): run");
  EXPECT_EQ(described(timeline, 4), "none | -");
}

TEST(KinetoOperations, phases_are_what_the_program_calls_them) {
  const Timeline timeline =
      traced(range("user_annotation", "## forward ##", 1, 0, 10) + work(1, 1, 5) +
             range("user_annotation", "backward", 1, 20, 30) + work(2, 1, 25) +
             range("user_annotation", "Optimizer.step#AdamW.step", 1, 40, 50) + work(3, 1, 45) +
             python("apex/optimizers/fused_adam.py(90): step", 1, 60, 70) + work(4, 1, 65) +
             range("user_annotation", "FullyShardedDataParallel.forward", 1, 80, 90) + work(5, 1, 85) +
             range("user_annotation", "forwarding of mail", 1, 100, 110) + work(6, 1, 105));
  EXPECT_EQ(described(timeline, 1), "- | - | - | forward | -");
  EXPECT_EQ(described(timeline, 2), "- | - | - | backward | -");
  EXPECT_EQ(described(timeline, 3), "- | - | - | optimizer | -");
  EXPECT_EQ(described(timeline, 4), "- | - | - | optimizer | -");
  EXPECT_EQ(described(timeline, 5), "- | - | - | forward | -");
  EXPECT_EQ(described(timeline, 6), "none | -");
}

TEST(KinetoOperations, kernels_of_a_graph_belong_to_what_launched_it) {
  const Timeline timeline = traced(
      python("decode.py(9): step", 1, 0, 100) + op("graph_replay", 1, 1, 90) +
      range("cuda_runtime", "cudaGraphLaunch", 1, 10, 20, R"("correlation": 9)") +
      R"({"ph": "X", "cat": "kernel", "name": "a", "pid": 0, "tid": 7, "ts": 30, "dur": 1, "args": {"device": 0, "stream": 7, "correlation": 9, "graph id": 3}},)" +
      R"({"ph": "X", "cat": "kernel", "name": "b", "pid": 0, "tid": 7, "ts": 40, "dur": 2, "args": {"device": 0, "stream": 7, "correlation": 9, "graph id": 3}},)");
  const ModelUse found = model_use(timeline, {});
  ASSERT_EQ(found.shaped.size(), 1U);
  EXPECT_EQ(text(timeline, found.shaped[0].name), "graph_replay");
  EXPECT_EQ(found.shaped[0].work.commands, 2U);
  EXPECT_EQ(found.shaped[0].calls, 1U);
  EXPECT_EQ(text(timeline, call_of(timeline, 9).line), "decode.py(9): step");
}

TEST(KinetoOperations, old_profilers_mark_steps_as_operators) {
  const std::string events = op("ProfilerStep#3", 1, 0, 100) + work(1, 1, 50);
  for (const bool has_operations : {false, true})
    EXPECT_EQ(iteration_ranges(traced(events, has_operations), 0).size(), 1U) << has_operations;
}

TEST(KinetoOperations, python_is_read_only_where_somebody_asks) {
  const std::string events = python("nn.Module: Model_0", 1, 0, 100) + python("train.py(45): main", 1, 1, 90) +
                             op("aten::mm", 1, 12, 38, R"("Input Dims": [[1]], "Input type": ["float"])") +
                             work(1, 1, 20);
  const Timeline without = traced(events, false);
  EXPECT_TRUE(without.modules.empty());
  EXPECT_TRUE(without.operations.empty());
  EXPECT_EQ(without.calls.at(0).line, kNoName);
}

// Every list of a capture adds up to all of its commands, and most of them are in the lists.
TEST(KinetoOperations, real_captures_add_up) {
  const std::map<std::string, std::set<std::string>> captures = {
      {"a100_ddp_4streams", {"phases", "shapes"}},
      {"h100_qwen_shapes", {"modules", "shapes", "lines"}},
      {"h200_gpt_training", {"phases"}},
      {"mi300_timesformer_shapes", {"modules", "shapes", "lines"}},
      {"mi300_vllm_piecewise_graphs", {"modules", "shapes", "lines"}},
      {"mi300x_ddp_resnet", {"phases", "modules", "shapes", "lines"}}};
  for (const auto& [name, has] : captures) {
    const auto path = real_file(("kineto/" + name + ".json.gz").c_str());
    if (!path) GTEST_SKIP() << "WEIR_REAL_DATA is not set: no real captures to read";
    ImportOptions options;
    options.has_operations = true;
    const Timeline timeline = std::move(import_traces({*path}, options).front()).timeline;
    const std::vector<TraceRange> steps = iteration_ranges(timeline, 0);
    const ModelUse found = model_use(timeline, steps);
    ASSERT_GT(found.work.total_ns, 0U) << name << ": " << found.reason;
    std::uint64_t modules = found.without_module.total_ns, phases = 0, shaped = 0, in_steps = 0;
    for (const ModuleUse& module : found.modules) modules += module.own.total_ns;
    for (const WorkSum& phase : found.phases) phases += phase.total_ns;
    for (const ShapedUse& use : found.shaped) shaped += use.work.total_ns;
    for (const StepUse& step : found.steps) in_steps += step.work.total_ns;
    EXPECT_EQ(modules, found.work.total_ns) << name;
    EXPECT_EQ(phases, found.work.total_ns) << name;
    EXPECT_EQ(shaped + found.outside.total_ns + found.without_call.total_ns, found.work.total_ns) << name;
    if (!steps.empty()) {
      EXPECT_EQ(in_steps + found.outside_steps.total_ns, found.work.total_ns) << name;
    }
    const std::uint64_t attributable = found.work.total_ns - found.without_call.total_ns;
    EXPECT_EQ(has.contains("modules"), found.without_module.total_ns - found.without_call.total_ns < attributable)
        << name;
    if (has.contains("phases")) {
      EXPECT_LT(found.phases[0].total_ns - found.without_call.total_ns, attributable / 5) << name;
      for (const Phase phase : {Phase::forward, Phase::backward, Phase::optimizer})
        EXPECT_GT(found.phases[static_cast<std::size_t>(phase)].total_ns, 0U) << name;
    }
    std::size_t with_shapes = 0, with_lines = 0;
    for (const ShapedUse& use : found.shaped) with_shapes += use.shapes != kNoName ? 1 : 0;
    for (const HostCall& call : timeline.calls) with_lines += call.line != kNoName ? 1 : 0;
    EXPECT_EQ(has.contains("shapes"), with_shapes > found.shaped.size() / 2) << name;
    EXPECT_EQ(has.contains("lines"), with_lines > 0) << name;
  }
}

}  // namespace
}  // namespace weir
