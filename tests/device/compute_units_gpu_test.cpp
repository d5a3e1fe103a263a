// Streams on parts of a real GPU: that a part is all that their blocks run on, and that two parts do not wait for each
// other. Skipped where there is none, or its driver cannot divide it.
#include <gtest/gtest.h>

#include <algorithm>

#include "device/gpu/cuda.h"
#include "device/gpu/gpu.h"
#include "device/gpu_cases.h"
#include "kernel/moment.h"
#include "support/cuda_test.h"

namespace weir {
namespace {

using namespace gpu_cases;

constexpr std::int64_t kBlockNs = 300'000;

class CudaParts : public CudaTest {
 protected:
  void SetUp() override {
    CudaTest::SetUp();
    if (IsSkipped()) return;
    const DeviceInfo info = device().info();
    if (!info.compute_units) GTEST_SKIP() << info.compute_units.reason;
    all_ = info.multiprocessors.value.value();
    if (all_ < 24) GTEST_SKIP() << "a device of " << all_ << " multiprocessors is too small to be divided";
  }
  static std::unique_ptr<Device> open(int units, int rest_stream = -1) {
    return open_gpu(*cuda_api(nullptr), {.compute_units = units, .rest_stream = rest_stream});
  }
  int all_ = 0;
};

// Blocks that say when they ran, on each stream.
struct Stamps {
  explicit Stamps(const std::vector<std::int64_t>& blocks) : buffers(blocks.size()) {
    StepBuilder builder(1);
    for (std::size_t s = 0; s < blocks.size(); ++s) {
      buffers[s] =
          builder.host(ElementType::i32, static_cast<std::uint64_t>(kMomentElements * blocks[s]), Init::constant, 1, 0);
      builder.launch("stamp", {.stream = static_cast<StreamId>(s)},
                     {.type = ElementType::i32, .dims = {kBlockNs, blocks[s]}, .scalars = {}}, {{buffers[s]}});
    }
    step = std::move(builder).seal(static_cast<int>(blocks.size()));
    placement = natural(step);
  }
  std::vector<Moment> moments(Session& session, std::size_t stream) const {
    auto* const at = reinterpret_cast<std::int32_t*>(session.host_memory(buffers[stream]).data());
    std::vector<Moment> moments(step.buffers()[buffers[stream]].count / kMomentElements);
    for (std::size_t block = 0; block < moments.size(); ++block)
      moments[block] = read_moment(at + block * kMomentElements);
    return moments;
  }
  std::vector<BufferId> buffers;
  Step step;
  Placement placement;
};

// How many ran at once at most.
int most_at_once(const std::vector<Moment>& moments) {
  std::vector<std::pair<std::int64_t, int>> changes;
  for (const Moment& each : moments) {
    changes.emplace_back(each.started_ns, 1);
    changes.emplace_back(each.ended_ns, -1);
  }
  std::sort(changes.begin(), changes.end());  // ends before starts of the same moment
  int now = 0, most = 0;
  for (const auto& [when, change] : changes) most = std::max(most, now += change);
  return most;
}

TEST_F(CudaParts, blocks_stay_within_their_part) {
  for (const int wanted : {8, 16, all_ / 2}) {
    const auto part = open(wanted);
    const int units = part->info().stream_compute_units;
    ASSERT_GE(units, wanted);
    ASSERT_LT(units, all_);
    const Stamps probe({1});
    const auto trial = part->prepare(probe.step, probe.placement, {});
    const int fit = static_cast<int>(trial->footprint(0).value().blocks_per_multiprocessor);
    // More than the device can hold at once: without a bound it would be full.
    const Stamps stamps({2 * static_cast<std::int64_t>(all_) * fit});
    const auto session = part->prepare(stamps.step, stamps.placement, {});
    EXPECT_EQ(session->compute_units(0), units);
    iterate(*session, *inline_submitter(stamps.step, *session), {.iterations = 2});
    const int most = most_at_once(stamps.moments(*session, 0));
    EXPECT_LE(most, units * fit) << wanted;
    EXPECT_GT(most, units * fit / 2) << "it has the part that it was given";
    const auto free = device().prepare(stamps.step, stamps.placement, {});
    iterate(*free, *inline_submitter(stamps.step, *free), {.iterations = 2});
    EXPECT_GT(most_at_once(stamps.moments(*free, 0)), units * fit) << "the bound is the part's, not the kernel's";
  }
}

TEST_F(CudaParts, an_intruder_on_its_own_part_does_not_wait_for_the_rest) {
  const auto divided = open(8, 0);
  const Stamps probe({1});
  const auto trial = divided->prepare(probe.step, probe.placement, {});
  const auto fit = static_cast<std::int64_t>(trial->footprint(0).value().blocks_per_multiprocessor);
  const Stamps stamps({8 * all_ * fit, 1});  // eight waves and more of the victim, one block of the intruder
  const auto session = divided->prepare(stamps.step, stamps.placement, {});
  const int own = session->compute_units(1), rest = session->compute_units(0);
  EXPECT_EQ(own + rest, all_);
  iterate(*session, *inline_submitter(stamps.step, *session), {.iterations = 2});
  const std::vector<Moment> victim = stamps.moments(*session, 0), intruder = stamps.moments(*session, 1);
  EXPECT_LE(most_at_once(victim), rest * fit);
  std::int64_t ended_ns = 0;
  for (const Moment& each : victim) ended_ns = std::max(ended_ns, each.ended_ns);
  EXPECT_LT(intruder[0].ended_ns, ended_ns - 4 * kBlockNs) << "it waited for the victim";
}

TEST_F(CudaParts, results_and_graphs_are_right_on_a_part) {
  const auto part = open(8, 0);
  for (std::uint64_t seed = 1; seed <= 3; ++seed) expect_same_buffers(*part, seed);
}

TEST_F(CudaParts, more_than_the_device_has_is_rejected) { EXPECT_ANY_THROW(open(all_ + 1)); }

TEST_F(CudaParts, all_of_it_is_a_part) { EXPECT_EQ(open(all_)->info().stream_compute_units, all_); }

}  // namespace
}  // namespace weir
