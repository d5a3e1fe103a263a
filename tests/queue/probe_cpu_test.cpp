// The probe on the cpu device: real threads, real scheduling noise. What it infers must be what the device was told.
#include <gtest/gtest.h>

#include "queue/probe.h"

namespace weir {
namespace {

class ProbeCpu : public testing::TestWithParam<int> {};

TEST_P(ProbeCpu, finds_count_policy_and_map) {
  const int queues = GetParam();
  DeviceOptions options;
  options.hardware_queues = queues;
  options.workers = 16;
  const auto device = open_device("cpu", options);
  const QueueProbe probe = probe_queues(*device, {.streams = 12});
  ASSERT_TRUE(probe.queues) << probe.reason;
  EXPECT_EQ(*probe.queues, std::min(queues, 12)) << probe.reason;
  EXPECT_EQ(probe.policy, queues == 1    ? MappingPolicy::one_queue
                          : queues >= 12 ? MappingPolicy::unshared
                                         : MappingPolicy::round_robin);
  if (queues >= 12) return;
  for (int i = 0; i < 12; ++i) EXPECT_EQ(probe.queue_of_stream[static_cast<std::size_t>(i)], i % queues) << i;
}

INSTANTIATE_TEST_SUITE_P(Queues, ProbeCpu, testing::Values(1, 2, 5, 8, 12));

}  // namespace
}  // namespace weir
