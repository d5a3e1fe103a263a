// Random steps on the cpu device, in every mode, against the same blocks run one after another: equal to the last bit.
#include <gtest/gtest.h>

#include <barrier>
#include <cstring>
#include <random>

#include "device/cpu_testing.h"
#include "kernel/chain.h"

namespace weir {
namespace {

using Random = std::mt19937;

std::uint64_t below(Random& random, std::uint64_t limit) {
  return std::uniform_int_distribution<std::uint64_t>(0, limit - 1)(random);
}

// The catalogue's kernels, but `chain` in blocks of 16 elements: many blocks without much arithmetic.
const Kernel& small_blocks(KernelId id) {
  static const Kernel chain = [] {
    Kernel kernel = weir::kernel(kernel_named("chain"));
    kernel.blocks = [](const KernelShape& shape) { return static_cast<std::uint32_t>((shape.dims[0] + 15) / 16); };
    kernel.run_block = [](const KernelCall& call, std::uint32_t block) {
      const auto* const in = static_cast<const float*>(call.operands[0]);
      auto* const out = static_cast<float*>(call.operands[1]);
      const std::int64_t begin = std::int64_t{16} * block;
      for (std::int64_t i = begin; i < std::min(begin + 16, call.shape.dims[0]); ++i)
        out[i] = in[i] * call.shape.scalars[0] + call.shape.scalars[1];
    };
    return kernel;
  }();
  return id == kernel_named("chain") ? chain : kernel(id);
}

// Ranges overlap between commands at will. Within a command the output is the input itself or apart from it.
Step random_stress_step(Random& random, int stream_count) {
  StepBuilder builder(random());
  constexpr std::uint64_t kElements = 256;
  const auto buffer_count = static_cast<BufferId>(2 + below(random, 4));
  for (BufferId i = 0; i < buffer_count; ++i) {
    if (i % 2 == 0) {
      builder.uniform(ElementType::f32, kElements);
    } else {
      builder.constant(ElementType::f32, kElements, 0.25f);
    }
  }
  const BufferId host = builder.host(ElementType::f32, kElements, Init::uniform);
  const auto count = static_cast<int>(static_cast<std::uint64_t>(stream_count) + below(random, 40));
  for (int i = 0; i < count; ++i) {
    Lane lane;
    lane.stream = static_cast<StreamId>(i < stream_count ? static_cast<std::uint64_t>(i)
                                                         : below(random, static_cast<std::uint64_t>(stream_count)));
    lane.priority = static_cast<std::int8_t>(static_cast<int>(below(random, 5)) - 2);
    if (below(random, 8) == 0) builder.cut();
    const auto from = static_cast<BufferId>(below(random, buffer_count));
    const auto to = static_cast<BufferId>((from + 1 + below(random, buffer_count - 1)) % buffer_count);
    const std::uint64_t size = 1 + below(random, 128);
    const Operand in{from, below(random, kElements - size), size}, out{to, below(random, kElements - size), size};
    const auto elements = static_cast<std::int64_t>(size);
    const float factor = 0.5f + static_cast<float>(below(random, 100)) * 0.01f;
    switch (below(random, 8)) {
      case 0:
        builder.launch("fill", lane, {.dims = {elements}, .scalars = {factor}}, {out});
        break;
      case 1:
        builder.copy(lane, in, out);
        break;
      case 6: {  // to the host, changed there, and back; the copies keep it tied to the device's buffers
        const Operand there{host, below(random, kElements - size), size};
        builder.copy(lane, in, there);
        builder.launch_on_host(
            "chain", lane, {.dims = {elements, chain_ops({ChainOp::mul, ChainOp::add})}, .scalars = {factor, -0.125f}},
            {there, there});
        break;
      }
      case 7:
        builder.copy(lane, {host, below(random, kElements - size), size}, out);
        break;
      case 2:
        builder.launch("copy", lane, {.dims = {elements}}, {in, out});
        break;
      case 3:
        builder.launch("reduce", lane, {.dims = {4, 16, 1}},
                       {{from, below(random, kElements - 64), 64}, {to, below(random, kElements - 4), 4}});
        break;
      default: {
        const bool is_in_place = below(random, 2) == 0;
        builder.launch("chain", lane,
                       {.dims = {elements, chain_ops({ChainOp::mul, ChainOp::add})}, .scalars = {factor, 0.125f}},
                       {in, is_in_place ? in : out});
      }
    }
  }
  return std::move(builder).seal(stream_count);
}

Placement random_placement(Random& random, const Step& step) {
  if (below(random, 3) == 0) return natural(step);
  Placement placement{"random", static_cast<int>(1 + below(random, 8)), {}};
  for (std::size_t i = 0; i < step.commands().size(); ++i)
    placement.stream_of.push_back(
        static_cast<StreamId>(below(random, static_cast<std::uint64_t>(placement.stream_count))));
  return placement;
}

using Contents = std::vector<std::vector<std::byte>>;

Contents run_serially(const Step& step, int iterations) {
  Contents contents;
  for (const Buffer& buffer : step.buffers()) {
    contents.emplace_back(buffer.size_bytes());
    initialise(buffer, contents.back());
  }
  for (int iteration = 0; iteration < iterations; ++iteration) {
    for (CommandId id = 0; id < step.commands().size(); ++id) {
      const Command& command = step.commands()[id];
      KernelCall call{.shape = command.shape, .operands = {}};
      const auto accesses = step.accesses(id);
      for (std::size_t i = 0; i < accesses.size(); ++i)
        call.operands[i] = contents[accesses[i].buffer].data() + accesses[i].offset_bytes;
      if (command.kind == CommandKind::copy) {
        std::memmove(call.operands[1], call.operands[0], accesses[0].size_bytes);
        continue;
      }
      const Kernel& kernel = small_blocks(command.kernel);
      for (std::uint32_t block = 0; block < kernel.blocks(call.shape); ++block) kernel.run_block(call, block);
    }
  }
  return contents;
}

// Submits as the threads submitter does: each thread owns some streams and holds a command back until all that it
// depends on has been submitted.
void submit_from_threads(const Step& step, const Placement& placement, Session& session, bool is_pipelined,
                         int iterations, int thread_count) {
  std::vector<std::atomic<int>> submitted(step.commands().size());  // iterations; pairs with the acquire below
  std::barrier barrier(thread_count);
  const auto work = [&](int thread) {
    for (int iteration = 1; iteration <= iterations; ++iteration) {
      if (thread == 0) {
        if (!is_pipelined) session.finish();
        session.begin_iteration();
      }
      barrier.arrive_and_wait();
      for (CommandId id = 0; id < step.commands().size(); ++id) {
        if (placement.stream_of[id] % thread_count != thread) continue;
        for (const CommandId before : step.predecessors(id))
          while (submitted[before].load(std::memory_order_acquire) < iteration) std::this_thread::yield();
        session.submit({&id, 1});
        submitted[id].store(iteration, std::memory_order_release);
      }
      barrier.arrive_and_wait();
    }
  };
  std::vector<std::jthread> threads;
  for (int thread = 1; thread < thread_count; ++thread) threads.emplace_back(work, thread);
  work(0);
}

void submit_inline(const Step& step, Session& session, bool is_graph, bool is_pipelined, int iterations,
                   Random& random) {
  const auto ids = all_commands(step);
  for (int iteration = 0; iteration < iterations; ++iteration) {
    session.begin_iteration();
    for (std::span<const CommandId> rest(ids); !rest.empty();) {
      const std::size_t batch = is_graph ? rest.size() : 1 + below(random, rest.size());
      session.submit(rest.first(batch));
      rest = rest.subspan(batch);
    }
    if (!is_pipelined) session.finish();
  }
}

// No command starts before what it depends on has ended.
void expect_order(const Step& step, const Timeline& timeline) {
  const std::size_t count = step.commands().size();
  ASSERT_EQ(timeline.spans.size() % count, 0u);  // whole iterations, in order
  for (const Span& span : timeline.spans)
    for (const CommandId before : step.predecessors(span.command))
      EXPECT_LE(timeline.spans[span.iteration * count + before].ended_ns, span.started_ns);
}

struct StressCase {
  int queues;
  int workers;
};

class CpuStress : public ::testing::TestWithParam<StressCase> {};

TEST_P(CpuStress, equals_serial_execution) {
  const auto [queues, workers] = GetParam();
  const auto device = cpu::open_cpu({.hardware_queues = queues, .workers = workers}, {.kernel_of = &small_blocks});
  Random random(static_cast<unsigned>(queues * 100 + workers));
  constexpr int kSteps = 40;
  for (int round = 0; round < kSteps; ++round) {
    const Step step = random_stress_step(random, static_cast<int>(1 + below(random, 6)));
    const Placement placement = random_placement(random, step);
    const int iterations = static_cast<int>(1 + below(random, 20));
    const Contents expected = run_serially(step, iterations);
    for (const int threads : {0, 1, 3}) {  // 0: a graph
      for (const bool is_pipelined : {false, true}) {
        const SessionOptions options{.mode = threads == 0 ? SubmitMode::graph : SubmitMode::eager,
                                     .is_pipelined = is_pipelined,
                                     .is_traced = round % 2 == 0,
                                     .trace_iterations = 5};
        const auto session = device->prepare(step, placement, options);
        if (threads > 1) {
          submit_from_threads(step, placement, *session, is_pipelined, iterations, threads);
        } else {
          submit_inline(step, *session, threads == 0, is_pipelined, iterations, random);
        }
        session->finish();
        EXPECT_EQ(session->take_spans().size(), static_cast<std::size_t>(iterations));
        for (BufferId buffer = 0; buffer < step.buffers().size(); ++buffer) {
          std::vector<std::byte> found(step.buffers()[buffer].size_bytes());
          session->read(buffer, found);
          ASSERT_EQ(std::memcmp(found.data(), expected[buffer].data(), found.size()), 0)
              << "round " << round << ", buffer " << buffer << ", threads " << threads << ", pipelined " << is_pipelined
              << ", iterations " << iterations;
        }
        expect_order(step, session->timeline());
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Machines, CpuStress,
                         ::testing::Values(StressCase{1, 1}, StressCase{1, 2}, StressCase{1, 4}, StressCase{2, 1},
                                           StressCase{2, 2}, StressCase{2, 4}, StressCase{3, 1}, StressCase{3, 2},
                                           StressCase{3, 4}, StressCase{8, 1}, StressCase{8, 2}, StressCase{8, 4}),
                         [](const auto& info) {
                           return "queues" + std::to_string(info.param.queues) + "_workers" +
                                  std::to_string(info.param.workers);
                         });

// Blocks are neither lost nor run twice when slots are reused as fast as they can be.
TEST(CpuStressBlocks, each_runs_once) {
  constexpr std::uint32_t kBlocks = 7;
  constexpr int kStreams = 12, kIterations = 400;
  std::vector<std::atomic<int>> counts(kStreams * kBlocks);
  ActionStep step;
  for (int s = 0; s < kStreams; ++s)
    step.add(
        {.stream = static_cast<StreamId>(s), .priority = static_cast<std::int8_t>(s % 3)},
        [&counts, s](std::uint32_t block) { ++counts[static_cast<std::uint32_t>(s) * kBlocks + block]; }, kBlocks);
  const auto device = action_device(5, 4);
  Prepared run(*device, step.seal(), {.is_pipelined = true});
  for (int i = 0; i < kIterations; ++i) run.iterate();
  run.session->finish();
  for (const auto& count : counts) EXPECT_EQ(count, kIterations);
}

}  // namespace
}  // namespace weir
