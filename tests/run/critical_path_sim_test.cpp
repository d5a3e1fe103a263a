// Critical paths of random steps on the simulated device. The truth comes from the device itself, not from its
// timeline. On the toy nothing but kernels takes any time, so all of the path is compute. On the other, the span grows
// by just the share of kernels that are on the path if all kernels take a little longer.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "device/sim/sim.h"
#include "measure/bootstrap.h"
#include "run/describe_timeline.h"
#include "trace/analyse/critical_path.h"

namespace weir {
namespace {

struct Spin {
  StreamId stream = 0;
  std::int64_t ns = 0;
  std::int64_t blocks = 1;
  std::uint64_t mark = 0;  // commands with common marks wait for each other
};

struct RandomStep {
  int streams = 1;
  std::vector<Spin> spins;
};

RandomStep random_step(SplitMix& random, std::int64_t shortest_ns, std::int64_t longest_ns) {
  RandomStep made;
  made.streams = static_cast<int>(2 + random.below(14));
  const std::uint32_t count = static_cast<std::uint32_t>(made.streams) + random.below(60);
  const std::uint32_t marks = 8 + random.below(200);
  const bool is_depth_first = random.below(2) == 0;
  for (std::uint32_t i = 0; i < count; ++i) {
    const auto streams = static_cast<std::uint32_t>(made.streams);
    made.spins.push_back({static_cast<StreamId>(i < streams ? i : random.below(streams)),
                          shortest_ns + random.below(static_cast<std::uint32_t>(longest_ns - shortest_ns)),
                          1 + random.below(4), random.below(marks)});
  }
  if (is_depth_first)
    std::stable_sort(made.spins.begin(), made.spins.end(),
                     [](const Spin& a, const Spin& b) { return a.stream < b.stream; });
  return made;
}

Timeline run(const RandomStep& random, const std::string& profile, std::int64_t queues, double factor) {
  StepBuilder builder(1);
  const BufferId marks = builder.output(ElementType::f32, 256);
  for (const Spin& spin : random.spins)
    builder.launch("spin", {.stream = spin.stream},
                   {.dims = {std::llround(static_cast<double>(spin.ns) * factor), spin.blocks}, .scalars = {}},
                   {{marks, spin.mark, static_cast<std::uint64_t>(spin.blocks)}});
  const Step step = std::move(builder).seal(random.streams);
  Placement placement{"natural", random.streams, {}};
  for (const Command& command : step.commands()) placement.stream_of.push_back(command.stream);
  sim::SimProfile settings = sim::profile_named(profile);
  settings.queues = queues;
  const auto device = open_sim(settings);
  const SubmitChoice submit = parse_submit("inline");
  TracedPass pass = run_traced_pass(*device, step, placement, submit, TraceSchedule(1), {});
  describe_timeline(pass, device->info(), step, placement, submit, "a test");
  return pass.timeline;
}

double share_of(const CriticalPath& path, PathResource resource) {
  return path.share[static_cast<std::size_t>(resource)];
}

struct Wrong {
  int steps = 0, wrong = 0;
  double worst = 0;
};

Wrong compare_with_truth(const std::string& profile, std::int64_t queues, int steps, std::uint64_t seed) {
  SplitMix random(seed);
  Wrong found;
  for (int i = 0; i < steps; ++i) {
    const RandomStep step =
        profile == "toy" ? random_step(random, 1'000, 50'000) : random_step(random, 50'000, 900'000);
    const auto path = critical_path(run(step, profile, queues, 1));
    double truth = 1;
    if (profile != "toy") {
      constexpr double kLonger = 1.0005;
      const auto longer = critical_path(run(step, profile, queues, kLonger));
      truth = (longer->span_ns / path->span_ns - 1) / (kLonger - 1);
    }
    const double error = std::abs(share_of(*path, PathResource::compute) - truth);
    ++found.steps;
    if (error > 0.05) ++found.wrong;
    found.worst = std::max(found.worst, error);
  }
  return found;
}

TEST(CriticalPathOnSim, RandomStepsAreWithinFivePoints) {
  for (const char* profile : {"toy", "h200"})
    for (const std::int64_t queues : {1, 2, 8}) {
      const int steps = std::getenv("WEIR_LONG_TESTS") != nullptr ? 1200 : 40;
      const Wrong found = compare_with_truth(profile, queues, steps, 26 + static_cast<std::uint64_t>(queues));
      EXPECT_EQ(found.wrong, 0) << profile << ", " << queues << " queues, " << steps << " steps, worst " << found.worst;
      RecordProperty(fmt::format("worst_{}_{}", profile, queues), fmt::format("{:.4f}", found.worst));
    }
}

// config/depth_first.yaml: 32 streams on 8 queues, each issued as a whole before the next.
TEST(CriticalPathOnSim, DepthFirstIsComputeTiedByTheQueues) {
  RandomStep step;
  step.streams = 32;
  for (StreamId stream = 0; stream < 32; ++stream)
    for (std::uint64_t k = 0; k < 4; ++k) step.spins.push_back({stream, 500'000, 1, stream * 4 + k});
  const auto path = critical_path(run(step, "h200", 8, 1));
  EXPECT_GT(share_of(*path, PathResource::compute), 0.97);
  EXPECT_LT(share_of(*path, PathResource::launch), 0.01);
  EXPECT_GE(path->queue_steps, 3u);
  EXPECT_EQ(path->commands, 13u);  // three of each stream on the queue, and all four of the last
}

}  // namespace
}  // namespace weir
