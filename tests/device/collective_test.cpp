// Collectives on the cpu device: ranks are threads of this process, each with a device of its own. Random steps against
// a serial model, and orders of readiness that would hang an engine which waits for one collective at a time.
#include <gtest/gtest.h>

#include <array>

#include "base/error.h"
#include "device/collective_cases.h"
#include "device/cpu_testing.h"
#include "device/rank/threads.h"
#include "submit/submitter.h"

namespace weir {
namespace {

using namespace collective_cases;

struct Way {
  const char* submit;
  bool is_pipelined;
};

// One rank's whole run, in a thread of its own.
Contents run_rank(ThreadWorld& world, int rank, const Step& step, const Placement& placement, int queues, Way way,
                  int iterations) {
  const auto device =
      cpu::open_cpu({.hardware_queues = queues, .workers = 1 + rank % 2, .communicator = &world.rank(rank)});
  const SubmitChoice choice = parse_submit(way.submit, placement.stream_count);
  const auto session = device->prepare(
      step, placement,
      {.mode = choice.mode, .is_pipelined = way.is_pipelined, .is_traced = true, .trace_iterations = 2});
  const auto submitter = make_submitter(choice, step, placement, *session);
  for (int i = 0; i < iterations; ++i) {
    session->begin_iteration();
    submitter->submit_step();
    if (!way.is_pipelined) session->finish();
  }
  session->finish();
  EXPECT_EQ(session->take_spans().size(), static_cast<std::size_t>(iterations));
  for (const Span& span : session->timeline().spans) {
    EXPECT_LE(span.submitted_ns, span.started_ns);
    EXPECT_LE(span.started_ns, span.ended_ns);
  }
  Contents contents;
  for (BufferId buffer = 0; buffer < step.buffers().size(); ++buffer) {
    contents.emplace_back(step.buffers()[buffer].size_bytes());
    session->read(buffer, contents.back());
  }
  return contents;
}

TEST(CpuCollectives, equal_serial_execution) {
  Random random(7);
  for (unsigned seed = 1; seed <= 24; ++seed) {
    const int ranks = 2 + static_cast<int>(seed % 2);
    const int stream_count = 1 + static_cast<int>(below(random, 6));
    std::vector<Step> steps;
    for (int r = 0; r < ranks; ++r) steps.push_back(random_collective_step(seed, {r, ranks}, stream_count));
    Placement placement = natural(steps[0]);
    if (seed % 3 == 0) {
      placement.name = "random";
      for (StreamId& stream : placement.stream_of)
        stream = static_cast<StreamId>(below(random, static_cast<std::uint64_t>(stream_count)));
    }
    const int iterations = 1 + static_cast<int>(below(random, 6));
    const std::vector<Contents> expected = run_serially(steps, iterations);
    for (const Way way :
         {Way{"inline", false}, Way{"inline", true}, Way{"threads:2", false}, Way{"threads:3", true},
          Way{"graph", false}, Way{"graph", true}, Way{"channel:mpsc:3", false}, Way{"channel:mpsc:2", true}}) {
      // One thread submits collectives in the same order everywhere; then streams may even share a queue.
      const bool is_ordered = parse_submit(way.submit, stream_count).host_threads() == 1;
      const int queues = is_ordered ? 1 + static_cast<int>(seed % 3) : 8;
      ThreadWorld world(ranks, seed);
      std::vector<Contents> found(static_cast<std::size_t>(ranks));
      {
        std::vector<std::jthread> threads;
        for (int r = 0; r < ranks; ++r)
          threads.emplace_back([&, r] {
            const auto index = static_cast<std::size_t>(r);
            found[index] = run_rank(world, r, steps[index], placement, queues, way, iterations);
          });
      }
      for (std::size_t r = 0; r < found.size(); ++r)
        for (std::size_t buffer = 0; buffer < found[r].size(); ++buffer)
          ASSERT_TRUE(found[r][buffer] == expected[r][buffer])
              << "seed " << seed << ", rank " << r << " of " << ranks << ", buffer " << buffer << ", " << way.submit
              << (way.is_pipelined ? ", pipelined" : "") << ", " << iterations << " iterations";
    }
  }
}

// Each rank reaches the collectives of its streams in an order of its own: what is behind the next one starts only when
// the last one has been started. An engine that waits for a collective before it starts another one hangs.
TEST(CpuCollectives, may_become_ready_in_any_order) {
  constexpr int kStreams = 6, kRanks = 3, kIterations = 10;
  for (const SubmitMode mode : {SubmitMode::eager, SubmitMode::graph}) {
    ThreadWorld world(kRanks);
    std::vector<std::unique_ptr<Device>> devices;
    std::vector<std::unique_ptr<Prepared>> runs;
    std::vector<std::array<std::atomic<std::uint64_t>, kStreams>> iteration(kRanks);
    for (int r = 0; r < kRanks; ++r) {
      Random random(static_cast<unsigned>(r + 1));
      std::vector<int> order(kStreams);
      std::iota(order.begin(), order.end(), 0);
      std::shuffle(order.begin(), order.end(), random);
      std::vector<int> previous(kStreams, -1);  // the stream whose collective comes before this one's, here
      for (std::size_t i = 1; i < order.size(); ++i) previous[static_cast<std::size_t>(order[i])] = order[i - 1];
      ActionStep step({r, kRanks});
      for (int s = 0; s < kStreams; ++s) {
        auto& mine = iteration[static_cast<std::size_t>(r)][static_cast<std::size_t>(s)];
        const int before = previous[static_cast<std::size_t>(s)];
        step.add({.stream = static_cast<StreamId>(s)}, [&world, &mine, r, before](std::uint32_t) {
          const std::uint64_t needed = ++mine;
          while (before >= 0 && world.started(r, before) < needed) std::this_thread::yield();
        });
        const BufferId from = step.builder().constant(ElementType::i32, 4, static_cast<float>(r + s));
        const BufferId to = step.builder().output(ElementType::i32, 4);
        step.builder().collective(CollectiveOp::all_reduce, {.stream = static_cast<StreamId>(s)}, {from}, {to});
      }
      // A worker for every stream, because these kernels wait for each other.
      devices.push_back(
          cpu::open_cpu({.hardware_queues = kStreams, .workers = kStreams, .communicator = &world.rank(r)},
                        {.kernel_of = &ActionStep::kernel_of}));
      runs.push_back(std::make_unique<Prepared>(*devices.back(), step.seal(), SessionOptions{.mode = mode}));
    }
    {
      std::vector<std::jthread> threads;
      for (auto& run : runs)
        threads.emplace_back([&run] {
          for (int i = 0; i < kIterations; ++i) {
            run->iterate();
            run->session->finish();
          }
        });
    }
    for (int s = 0; s < kStreams; ++s) {
      std::array<std::int32_t, 4> sum{};
      // Buffers of a stream: the action's, the collective's input and its output.
      runs[0]->session->read(static_cast<BufferId>(3 * s + 2), std::as_writable_bytes(std::span(sum)));
      EXPECT_EQ(sum[0], 0 + 1 + 2 + kRanks * s);
    }
  }
}

TEST(CpuCollectives, need_a_communicator) {
  const Step step = random_collective_step(1, {0, 2}, 2);
  const Placement placement = natural(step);
  const auto device = cpu::open_cpu({.workers = 1});
  EXPECT_THROW(device->prepare(step, placement, {}), Error);
}

TEST(CpuCollectives, what_goes_wrong_is_thrown_by_finish) {
  ThreadWorld world(2);
  world.break_rank(0);
  const Step step = random_collective_step(5, {0, 2}, 3);
  const auto device = cpu::open_cpu({.workers = 2, .communicator = &world.rank(0)});
  const Placement placement = natural(step);
  const auto session = device->prepare(step, placement, {});
  session->begin_iteration();
  session->submit(all_commands(step));
  try {
    session->finish();
    FAIL() << "nothing was thrown";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("rank 0 is broken"), std::string::npos) << error.what();
  }
}

// The support's own arithmetic, on numbers that one can check by eye.
TEST(ThreadWorld, does_what_the_operations_say) {
  constexpr int kRanks = 3;
  const std::int32_t in[kRanks][3] = {{1, 2, 3}, {10, 20, 30}, {100, 200, 300}};
  const std::vector<const void*> from = {in[0], in[1], in[2]};
  std::int32_t out[kRanks][9] = {};
  const std::vector<void*> to = {out[0], out[1], out[2]};
  const auto apply = [&](CollectiveOp op, std::uint64_t count) {
    apply_collective(op, ElementType::i32, from, to, count);
  };
  apply(CollectiveOp::all_gather, 3);
  EXPECT_EQ(std::vector<std::int32_t>(out[1], out[1] + 9),
            (std::vector<std::int32_t>{1, 2, 3, 10, 20, 30, 100, 200, 300}));
  apply(CollectiveOp::reduce_scatter, 3);
  EXPECT_EQ(out[0][0], 111);
  EXPECT_EQ(out[2][0], 333);
  apply(CollectiveOp::all_reduce, 3);
  EXPECT_EQ(std::vector<std::int32_t>(out[2], out[2] + 3), (std::vector<std::int32_t>{111, 222, 333}));
  apply(CollectiveOp::all_to_all, 3);
  EXPECT_EQ(std::vector<std::int32_t>(out[1], out[1] + 3), (std::vector<std::int32_t>{2, 20, 200}));
  apply(CollectiveOp::shift, 3);
  EXPECT_EQ(out[0][0], 100);
  EXPECT_EQ(out[1][0], 1);
  const float floats[2][1] = {{0.5f}, {0.25f}};
  F16 halves[2] = {from_float<F16>(floats[0][0]), from_float<F16>(floats[1][0])}, sums[2] = {};
  const std::vector<const void*> half_from = {&halves[0], &halves[1]};
  const std::vector<void*> half_to = {&sums[0], &sums[1]};
  apply_collective(CollectiveOp::all_reduce, ElementType::f16, half_from, half_to, 1);
  EXPECT_EQ(to_float(sums[1]), 0.75f);
}

}  // namespace
}  // namespace weir
