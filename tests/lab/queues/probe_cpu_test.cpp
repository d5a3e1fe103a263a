// The probe on the cpu device: real threads, real scheduling noise. What it infers must be what the device was told.
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <random>
#include <string>
#include <string_view>

#include "lab/queues/probe.h"

namespace weir {
namespace {

class ProbeCpu : public testing::TestWithParam<int> {};

TEST_P(ProbeCpu, finds_count_policy_and_map) {
  const int queues = GetParam();
  DeviceOptions options;
  options.hardware_queues = queues;
  options.workers = 16;
  const auto device = open_device("cpu", options);
  QueueProbe probe;
  // Where others take the cores, how streams get their queues may not show; the probe says so.
  for (int attempt = 0; attempt < 5 && (attempt == 0 || probe.policy == MappingPolicy::fixed); ++attempt)
    probe = probe_queues(*device, {.streams = 12});
  ASSERT_TRUE(probe.queues) << probe.reason;
  EXPECT_EQ(*probe.queues, std::min(queues, 12)) << probe.reason;
  EXPECT_EQ(probe.policy, queues == 1    ? MappingPolicy::one_queue
                          : queues >= 12 ? MappingPolicy::unshared
                                         : MappingPolicy::round_robin);
  if (queues >= 12) return;
  for (int i = 0; i < 12; ++i) EXPECT_EQ(probe.queue_of_stream[static_cast<std::size_t>(i)], i % queues) << i;
}

INSTANTIATE_TEST_SUITE_P(Queues, ProbeCpu, testing::Values(1, 2, 5, 8, 12));

bool is_exact(const QueueProbe& probe, int queues, int streams) {
  if (!probe.queues || *probe.queues != queues || probe.is_lower_bound) return false;
  if (probe.policy != (queues == 1 ? MappingPolicy::one_queue : MappingPolicy::round_robin)) return false;
  for (int i = 0; i < streams; ++i)
    if (probe.queue_of_stream[static_cast<std::size_t>(i)] != i % queues) return false;
  return true;
}

bool is_unshared(const QueueProbe& probe, int streams) {
  return probe.policy == MappingPolicy::unshared && probe.queues == streams && probe.is_lower_bound;
}

TEST(ProbeCpuLong, IsExactInNinetyNineOfAHundredRuns) {
  const char* const asked = std::getenv("WEIR_LONG_TESTS");
  if (asked == nullptr || std::string_view(asked) != "1")
    GTEST_SKIP() << "200 probes by the clock: set WEIR_LONG_TESTS=1";
  constexpr int kRuns = 200;
  std::mt19937_64 random(2026);
  const auto between = [&](int low, int high) { return std::uniform_int_distribution<int>(low, high)(random); };
  int exact = 0;
  for (int run = 0; run < kRuns; ++run) {
    const int queues = between(1, 12), streams = between(8, 24);
    DeviceOptions options;
    options.hardware_queues = queues;
    options.workers = streams + 2;  // a held stream keeps one
    const auto device = open_device("cpu", options);
    try {
      const QueueProbe probe = probe_queues(*device, {.streams = streams, .seed = static_cast<std::uint64_t>(run + 1)});
      const bool is_right = queues >= streams ? is_unshared(probe, streams) : is_exact(probe, queues, streams);
      exact += is_right;
      if (!is_right)
        std::printf("run %d: %d queues, %d streams: found %s, %d (%s)\n", run, queues, streams,
                    std::string(name_of(probe.policy)).c_str(), probe.queues.value_or(-1), probe.reason.c_str());
    } catch (const std::exception& error) {
      std::printf("run %d: %d queues, %d streams: %s\n", run, queues, streams, error.what());
    }
  }
  std::printf("%d of %d runs exact\n", exact, kRuns);
  RecordProperty("exact", exact);
  EXPECT_GE(exact, kRuns * 99 / 100);
}

}  // namespace
}  // namespace weir
