// Programs on the simulated device, whose best number of queues is found by running them with every number: the advice
// from one trace with the usual number has to name it, or to say that it should be left.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <map>
#include <random>

#include "device/sim/profile.h"
#include "device/sim/sim.h"
#include "lab/advise/advice.h"
#include "run/describe_timeline.h"
#include "submit/placement.h"

namespace weir::advise {
namespace {

constexpr int kSteps = 6;
constexpr std::int64_t kUsual = 8;

// Chains of kernels on streams, launched one chain after the other or a kernel of each in turn; some kernels wait for
// another stream.
Step random_program(std::uint64_t seed) {
  std::mt19937_64 random(seed);
  const auto among = [&](std::int64_t from, std::int64_t to) {
    return from + static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(to - from + 1));
  };
  const auto streams = static_cast<int>(among(2, 24));
  const auto length = static_cast<int>(among(2, 10));
  const bool in_turns = among(0, 2) == 0;
  const std::int64_t blocks = std::array{1, 2, 4, 16, 66, 132}[static_cast<std::size_t>(among(0, 5))];
  const std::int64_t longest_ns = among(10, 120) * 1000;
  const std::int64_t crossings = among(0, 25);  // per cent
  StepBuilder builder(seed);
  std::vector<BufferId> last(static_cast<std::size_t>(streams));
  for (BufferId& buffer : last) buffer = builder.output(ElementType::f32, 132);
  std::vector<std::pair<int, int>> order;  // stream, place in its chain
  for (int stream = 0; stream < streams; ++stream)
    for (int place = 0; place < length; ++place) order.emplace_back(stream, place);
  if (in_turns) std::stable_sort(order.begin(), order.end(), [](auto a, auto b) { return a.second < b.second; });
  for (const auto& [stream, place] : order) {
    // Whoever writes what another stream wrote waits for it.
    const bool crosses = among(1, 100) <= crossings;
    const BufferId buffer = last[static_cast<std::size_t>(crosses ? among(0, streams - 1) : stream)];
    builder.launch("spin", {.stream = static_cast<StreamId>(stream)},
                   {.dims = {among(longest_ns / 4, longest_ns), blocks}}, {{buffer, 0}});
  }
  return std::move(builder).seal(streams);
}

struct Observed {
  Timeline timeline;
  double step_ns = 0;  // from one step's end to the next
};

// With one block at a time on each multiprocessor, so that grids say how much of the device kernels fill.
Observed observed(const Step& step, std::int64_t queues) {
  sim::SimProfile profile = sim::profile_named("h200");
  profile.queues = queues;
  profile.slots_per_multiprocessor = 1;
  const auto device = open_sim(profile);
  const Placement placement = placement_named("natural").place(step);
  TracedPass pass = run_traced_pass(*device, step, placement, {}, TraceSchedule(kSteps), {});
  describe_timeline(pass, device->info(), step, placement, {}, "a test");
  std::map<std::uint32_t, std::int64_t> ends;
  for (const Span& span : pass.timeline.spans) {
    std::int64_t& end = ends.emplace(span.iteration, span.ended_ns).first->second;
    end = std::max(end, span.ended_ns);
  }
  const auto spanned = static_cast<double>(ends.rbegin()->second - ends.begin()->second);
  return {std::move(pass.timeline), spanned / static_cast<double>(ends.size() - 1)};
}

TEST(AdviceSim, is_right_about_the_queues_of_40_programs) {
  std::size_t left = 0;
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    const Step step = random_program(seed);
    const Advice advice = advise(observed(step, kUsual).timeline, {});
    ASSERT_EQ(advice.reason, "") << seed;
    std::map<std::int64_t, double> measured;
    for (const std::int64_t queues : {1, 2, 4, 8, 16, 32}) measured[queues] = observed(step, queues).step_ns;
    const auto best = std::min_element(measured.begin(), measured.end(),
                                       [](const auto& a, const auto& b) { return a.second < b.second; });
    std::int64_t advised = kUsual;
    for (const std::size_t index : advice.advised)
      if (advice.predictions[index].what.kind == "queues") advised = advice.predictions[index].what.value;
    std::string predictions;
    for (const Prediction& one : advice.predictions)
      if (one.what.kind == "queues")
        predictions +=
            fmt::format(" {}: {:.0f}, measured {:.0f};", one.what.value, one.step_ns, measured[one.what.value]);
    EXPECT_LE(measured[advised], 1.02 * best->second)
        << "program " << seed << ": " << advised << " queues advised, " << best->first << " are best;" << predictions;
    if (best->second > 0.98 * measured[kUsual]) {
      ++left;
      EXPECT_EQ(advised, kUsual) << "program " << seed << predictions;
    }
  }
  EXPECT_GE(left, 5u);  // both answers are asked for
  EXPECT_LE(left, 35u);
}

}  // namespace
}  // namespace weir::advise
