// Collectives of GPUs through host memory, and of one rank with itself, over the fake table: ranks are threads, each
// with a device of its own. Random steps against a serial model, and communicators that fail or never answer.
#include <gtest/gtest.h>

#include <atomic>
#include <stdexcept>
#include <thread>

#include "base/error.h"
#include "device/allocation_count.h"
#include "device/collective_cases.h"
#include "device/fake_gpu.h"
#include "device/gpu/error.h"
#include "device/gpu/gpu.h"
#include "device/lone_rank.h"
#include "device/rank/alone.h"
#include "device/rank/network.h"
#include "device/rank/threads.h"
#include "lab/conformance/checks.h"
#include "lab/conformance/steps.h"
#include "submit/submitter.h"

namespace weir {
namespace {

using collective_cases::Contents;
using collective_cases::kOps;
using collective_cases::kTypes;
using collective_cases::random_collective_step;
using conformance::natural;

class GpuStaging : public ::testing::Test {
 protected:
  void SetUp() override { fake_gpu::reset({}); }
  void TearDown() override { EXPECT_EQ(fake_gpu::leaks(), ""); }
};

std::unique_ptr<Device> staging_gpu(Communicator& communicator) {
  return open_gpu(fake_gpu::api(), {.communicator = &communicator, .stages_collectives = true});
}

template <class Body>
std::string what_of(const Body& body) {
  try {
    body();
  } catch (const Error& error) {
    return error.what();
  }
  return "nothing was thrown";
}

// One after the other, on one stream: what each command leaves is what the next one reads.
Step chain_of_collectives(Ranks ranks, CollectiveOp op, ElementType type, int streams) {
  StepBuilder builder(3, ranks);
  const auto parts = static_cast<std::uint64_t>(ranks.count);
  constexpr std::uint64_t kPart = 37;
  const bool is_split = op == CollectiveOp::reduce_scatter || op == CollectiveOp::all_to_all;
  const bool is_joined = op == CollectiveOp::all_gather || op == CollectiveOp::all_to_all;
  for (int stream = 0; stream < streams; ++stream) {
    // Later ones are larger: a stream's host memory has to do for all of them.
    for (std::uint64_t n = kPart; n < 4 * kPart; n += kPart) {
      const std::uint64_t in = is_split ? n * parts : n, out = is_joined ? n * parts : n;
      const BufferId from =
          type == ElementType::i32 ? builder.integers(in, 50 + ranks.rank) : builder.sharded(type, in);
      builder.collective(op, {.stream = static_cast<StreamId>(stream)}, {from}, {builder.output(type, out)});
    }
  }
  return std::move(builder).seal(streams);
}

// Every rank in a thread of its own; what all of them have at the end.
std::vector<Contents> run_ranks(const std::vector<Step>& steps, const Placement& placement,
                                const conformance::RunChoice& choice, std::uint64_t seed) {
  ThreadWorld world(static_cast<int>(steps.size()), seed);
  std::vector<Contents> found(steps.size());
  {
    std::vector<std::jthread> threads;
    for (std::size_t r = 0; r < steps.size(); ++r)
      threads.emplace_back([&, r] {
        const auto device = staging_gpu(world.rank(static_cast<int>(r)));
        found[r] = conformance::run(*device, steps[r], placement, choice);
      });
  }
  return found;
}

void expect_equal(const std::vector<Contents>& found, const std::vector<Contents>& expected, const std::string& what) {
  ASSERT_EQ(found.size(), expected.size());
  for (std::size_t r = 0; r < found.size(); ++r) {
    ASSERT_EQ(found[r].size(), expected[r].size());
    for (std::size_t buffer = 0; buffer < found[r].size(); ++buffer)
      ASSERT_TRUE(found[r][buffer] == expected[r][buffer])
          << what << ": rank " << r << " of " << found.size() << ", buffer " << buffer;
  }
}

TEST_F(GpuStaging, every_operation_does_what_it_says) {
  for (const int ranks : {2, 3})
    for (const CollectiveOp op : kOps)
      for (const ElementType type : kTypes) {
        fake_gpu::reset({.seed = static_cast<std::uint64_t>(ranks)});
        std::vector<Step> steps;
        for (int r = 0; r < ranks; ++r) steps.push_back(chain_of_collectives({r, ranks}, op, type, 3));
        const auto found = run_ranks(steps, natural(steps[0]), {"inline", false, 3}, 1);
        expect_equal(found, collective_cases::run_serially(steps, 3),
                     std::string(name_of(op)) + " of " + std::string(name_of(type)));
        EXPECT_TRUE(fake_gpu::collective_calls().empty());
      }
}

TEST_F(GpuStaging, equals_serial_execution) {
  for (unsigned seed = 1; seed <= 12; ++seed) {
    const int ranks = 2 + static_cast<int>(seed % 2), streams = 1 + static_cast<int>(seed % 5);
    std::vector<Step> steps;
    for (int r = 0; r < ranks; ++r) steps.push_back(random_collective_step(seed, {r, ranks}, streams));
    const int iterations = 1 + static_cast<int>(seed % 4);
    const std::vector<Contents> expected = collective_cases::run_serially(steps, iterations);
    for (const char* submit : {"inline", "threads:2", "channel:mpsc:2"})
      for (const bool is_pipelined : {false, true}) {
        fake_gpu::reset({.seed = seed});
        const auto found = run_ranks(steps, natural(steps[0]), {submit, is_pipelined, iterations}, seed);
        expect_equal(found, expected, "seed " + std::to_string(seed) + ", " + submit);
      }
  }
}

// Each rank's answer to "what carries your collectives?".
std::vector<std::string> carriers(const fake_gpu::Settings& settings) {
  fake_gpu::reset(settings);
  ThreadWorld world(2);
  std::vector<std::string> found(2);
  std::vector<std::jthread> threads;
  for (int r = 0; r < 2; ++r)
    threads.emplace_back([&, r] {
      const Step step = chain_of_collectives({r, 2}, CollectiveOp::shift, ElementType::f32, 1);
      const Placement placement = natural(step);
      const auto device = open_gpu(fake_gpu::api(), {.communicator = &world.rank(r)});
      found[static_cast<std::size_t>(r)] = device->prepare(step, placement, {})->collectives();
    });
  threads.clear();
  return found;
}

TEST_F(GpuStaging, says_why) {
  const std::string staged = "threads of one process, staged through host memory: ";
  for (const std::string& text : carriers({}))
    EXPECT_EQ(text, staged + "NCCL needs a GPU per rank: 2 ranks on this host, 1 GPU");
  for (const std::string& text : carriers({.device_count = 2}))
    EXPECT_EQ(text, staged + "NCCL needs a GPU per rank: ranks 0 and 1 both use device 0");
  for (const std::string& text : carriers({.has_collectives = false}))
    EXPECT_EQ(text, staged + "there are no fake collectives (rank 0)");
  fake_gpu::reset({});
  AloneCommunicator alone;
  const Step step = chain_of_collectives({0, 1, true}, CollectiveOp::all_reduce, ElementType::f32, 1);
  const Placement placement = natural(step);
  EXPECT_EQ(staging_gpu(alone)->prepare(step, placement, {})->collectives(),
            "none: one rank copies to itself, staged through host memory: it was asked for");
}

TEST_F(GpuStaging, refuses_graphs) {
  AloneCommunicator alone;
  const auto device = staging_gpu(alone);
  const Step step = chain_of_collectives({0, 1, true}, CollectiveOp::all_reduce, ElementType::f32, 2);
  const Placement placement = natural(step);
  EXPECT_EQ(what_of([&] { device->prepare(step, placement, {.mode = SubmitMode::graph}); }),
            "submit graph: collectives are staged through host memory, which a graph cannot be: it was asked for");
}

TEST_F(GpuStaging, refuses_drivers_whose_streams_cannot_wait) {
  fake_gpu::reset({.has_waits = false});
  AloneCommunicator alone;
  const auto device = staging_gpu(alone);
  const Step step = chain_of_collectives({0, 1, true}, CollectiveOp::all_reduce, ElementType::f32, 2);
  const Placement placement = natural(step);
  EXPECT_EQ(
      what_of([&] { device->prepare(step, placement, {}); }),
      "collectives have to be staged through host memory (it was asked for), but streams of fake cannot wait for a "
      "word in memory");
}

// All streams wait for what will not come: they are let go, and what happened is told, however often one asks.
TEST_F(GpuStaging, what_goes_wrong_is_thrown_by_finish) {
  const Step step = chain_of_collectives({0, 2}, CollectiveOp::all_reduce, ElementType::f32, 4);
  const Placement placement = natural(step);
  for (const bool fails_at_start : {true, false})
    for (const bool is_ours : {true, false}) {
      LoneRank communicator({0, 2}, {0, 1});
      const auto throw_it = [is_ours] {
        if (is_ours) fail("the other rank is gone");
        throw std::runtime_error("out of luck");
      };
      int tests = 0;
      communicator.on_start = [&] {
        if (fails_at_start) throw_it();
      };
      communicator.on_test = [&]() -> bool {
        if (++tests == 20) throw_it();
        return false;
      };
      const auto device = staging_gpu(communicator);
      const auto session = device->prepare(step, placement, {.is_pipelined = true});
      const auto submitter = inline_submitter(step, *session);
      for (int i = 0; i < 3; ++i) {
        session->begin_iteration();
        submitter->submit_step();
        if (i == 1) continue;
        EXPECT_EQ(what_of([&] { session->finish(); }),
                  is_ours ? "the other rank is gone" : "fake:0: a collective failed: out of luck");
      }
    }
}

// A rank that fails elsewhere gives its session back while its streams wait for others, who will never come.
TEST_F(GpuStaging, is_left_by_a_rank_that_fails) {
  const Step step = chain_of_collectives({0, 2}, CollectiveOp::all_gather, ElementType::f16, 3);
  const Placement placement = natural(step);
  for (const bool is_started : {false, true}) {
    LoneRank communicator({0, 2}, {0, 1});
    std::atomic<bool> has_started{false};
    communicator.on_start = [&] { has_started.store(true, std::memory_order_release); };  // pairs with the loop below
    communicator.on_test = [] { return false; };
    const auto device = staging_gpu(communicator);
    EXPECT_THROW(
        {
          const auto session = device->prepare(step, placement, {});
          const auto submitter = inline_submitter(step, *session);
          session->begin_iteration();
          submitter->submit_step();
          // The fake runs only while somebody waits for it.
          const GpuApi& api = fake_gpu::api();
          const GpuStreamOwner other = make_stream(api, 0);
          const GpuEventOwner event = make_event(api, kGpuEventNoTiming);
          while (is_started && !has_started.load(std::memory_order_acquire)) {
            api.event_record(event.get(), other.get());
            api.stream_synchronize(other.get());
          }
          throw std::runtime_error("something else");
        },
        std::runtime_error);
  }
}

TEST_F(GpuStaging, a_launch_that_fails_leaves_nobody_waiting) {
  AloneCommunicator alone;
  static int kCopies;
  kCopies = 0;
  GpuApi spoilt = fake_gpu::api();
  spoilt.copy_to_host = [](void* to, GpuPointer from, std::size_t bytes, GpuStream stream) {
    return ++kCopies == 2 ? 7 : fake_gpu::api().copy_to_host(to, from, bytes, stream);
  };
  const auto device = open_gpu(spoilt, {.communicator = &alone, .stages_collectives = true});
  const Step step = chain_of_collectives({0, 1, true}, CollectiveOp::all_gather, ElementType::f32, 1);
  const Placement placement = natural(step);
  const auto session = device->prepare(step, placement, {});
  const auto submitter = inline_submitter(step, *session);
  session->begin_iteration();
  submitter->submit_step();
  EXPECT_EQ(what_of([&] { session->finish(); }),
            "fake:0: submitting a collective 'all_gather' (command 1, stream 0) failed: fake error 7");
  // It was never launched, so that its next turn is its first.
  session->begin_iteration();
  submitter->submit_step();
  session->finish();
}

TEST_F(GpuStaging, has_a_timeline) {
  for (const bool has_activity : {false, true}) {
    fake_gpu::reset({.has_activity = has_activity});
    AloneCommunicator alone;
    NetworkCommunicator network(alone, {.latency_us = 300});
    const auto device = staging_gpu(network);
    const Step step = random_collective_step(4, {0, 1, true}, 3);
    const Placement placement = natural(step);
    const auto session =
        device->prepare(step, placement, {.is_traced = true, .trace_iterations = 2, .follows_progress = true});
    conformance::iterate(*session, *inline_submitter(step, *session), {.iterations = 3});
    const Timeline timeline = session->timeline();
    EXPECT_EQ(conformance::timeline_problem(step, placement, timeline, {.iterations = 2}), "") << timeline.source;
    EXPECT_EQ(timeline.has_exact_gaps, has_activity) << timeline.source;
    if (!has_activity) continue;  // the fake's events know no time of the host's
    int collectives = 0;
    for (const Span& span : timeline.spans) {
      if (step.commands()[span.command].kind != CommandKind::collective) continue;
      ++collectives;
      EXPECT_GE(span.ended_ns - span.started_ns, 300'000) << "from the copy out to the copy in";
    }
    EXPECT_GT(collectives, 0);
  }
}

// The communicator's thread is asleep or looks at words: neither allocates.
TEST_F(GpuStaging, submit_allocates_nothing) {
  AloneCommunicator alone;
  GpuApi quiet = fake_gpu::api();
  const auto device = open_gpu(quiet, {.communicator = &alone, .stages_collectives = true});
  const Step step = chain_of_collectives({0, 1, true}, CollectiveOp::all_gather, ElementType::f32, 3);
  const Placement placement = natural(step);
  const auto session = device->prepare(step, placement, {.is_pipelined = true});
  const auto submitter = inline_submitter(step, *session);
  quiet.event_record = [](auto...) { return 0; };
  quiet.stream_wait = [](auto...) { return 0; };
  quiet.stream_write = quiet.stream_wait_value = [](auto...) { return 0; };
  quiet.copy_to_device = [](auto...) { return 0; };
  quiet.copy_to_host = [](auto...) { return 0; };
  const std::uint64_t before = allocation_count();
  for (int i = 0; i < 300; ++i) {
    session->begin_iteration();
    submitter->submit_step();
  }
  EXPECT_EQ(allocation_count(), before);
  quiet = fake_gpu::api();
}

// One rank with itself takes the vendor's library, where every collective is a copy.
TEST_F(GpuStaging, a_rank_alone_needs_none) {
  for (const bool has_activity : {false, true})
    for (const char* submit : {"inline", "graph"})
      for (const CollectiveOp op : kOps) {
        fake_gpu::reset({.has_activity = has_activity});
        AloneCommunicator alone;
        const auto device = open_gpu(fake_gpu::api(), {.communicator = &alone});
        const Ranks ranks{0, 1, true};
        const Step step = chain_of_collectives(ranks, op, ElementType::bf16, 2);
        const Placement placement = natural(step);
        const Contents found = conformance::run(*device, step, placement, {submit, false, 2});
        std::vector<Step> steps;
        steps.push_back(chain_of_collectives(ranks, op, ElementType::bf16, 2));
        expect_equal({found}, collective_cases::run_serially(steps, 2), std::string(name_of(op)) + ", " + submit);
        EXPECT_FALSE(fake_gpu::collective_calls().empty());
        const auto session = device->prepare(step, placement, {.is_traced = true, .trace_iterations = 1});
        EXPECT_EQ(session->collectives(), "fake NCCL 1");
        conformance::iterate(*session, *inline_submitter(step, *session), {.iterations = 1});
        EXPECT_EQ(conformance::timeline_problem(step, placement, session->timeline(), {.iterations = 1}), "");
      }
}

}  // namespace
}  // namespace weir
