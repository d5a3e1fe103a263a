// Shares of a full device: from moments made by hand, and what must hold on the cpu device.
#include "lab/queues/fairness_probe.h"

#include <gtest/gtest.h>

#include "measure/statistics.h"

namespace weir {
namespace {

TEST(FairnessProbe, CountsServiceWhileAllStreamsHaveWork) {
  // Stream 0 ends at 300; of stream 1 only what ran until then counts.
  const std::vector<std::vector<Moment>> blocks = {{{100, 200}, {200, 300}}, {{150, 250}, {250, 450}}};
  const Service service = service_of(blocks);
  EXPECT_EQ(service.window_ns, 200);
  EXPECT_EQ(service.ns, (std::vector<double>{200, 150}));
}

TEST(FairnessProbe, AStreamThatStartsAfterTheWindowGotNothing) {
  const std::vector<std::vector<Moment>> blocks = {{{100, 300}}, {{100, 300}}, {{400, 600}}};
  const std::vector<StreamService> shares = shares_of(service_of(blocks).ns);
  EXPECT_DOUBLE_EQ(shares[0].share, 1.5);
  EXPECT_FALSE(shares[1].is_starved);
  EXPECT_DOUBLE_EQ(shares[2].share, 0);
  EXPECT_TRUE(shares[2].is_starved);
}

TEST(FairnessProbe, NothingIsSaidWhereMomentsAreMissing) {
  const std::vector<std::vector<Moment>> missing = {{{100, 300}}, {{0, 0}}};
  EXPECT_TRUE(service_of(missing).ns.empty());
  EXPECT_TRUE(service_of({}).ns.empty());
  EXPECT_TRUE(shares_of({}).empty());
}

TEST(FairnessProbe, CpuGivesAShareToEachStream) {
  const auto device = open_device("cpu", {.hardware_queues = 4, .workers = 4, .sim = {}});
  FairnessRequest request;
  request.streams = 6;
  request.repetitions = 2;
  request.max_commands = 48;
  const FairnessProbe probe = measure_fairness(*device, request);
  ASSERT_TRUE(probe.jain.value.has_value()) << probe.jain.reason;
  EXPECT_GT(*probe.jain.value, 1.0 / 6);
  EXPECT_LE(*probe.jain.value, 1 + 1e-9);
  ASSERT_EQ(probe.streams.size(), 6u);
  double sum = 0;
  for (const StreamService& stream : probe.streams) sum += stream.share;
  EXPECT_NEAR(sum, 6, 1e-6);
  EXPECT_GE(probe.blocks_per_command * 6, 2 * probe.blocks_at_once);
}

TEST(FairnessProbe, MixedPrioritiesAreSpreadOverStreams) {
  const auto device = open_device("cpu", {.hardware_queues = 8, .workers = 4, .sim = {}});
  const DeviceInfo info = device->info();
  FairnessRequest request;
  request.streams = 8;
  request.repetitions = 1;
  request.max_commands = 64;
  request.has_mixed_priorities = true;
  const Json document = measure_fairness_document(*device, request, {});
  EXPECT_EQ(document["fairness"]["by_priority"].size(),
            static_cast<std::size_t>(info.highest_priority - info.lowest_priority + 1));
  EXPECT_EQ(document["fairness"]["streams"][0]["priority"], info.lowest_priority);
  EXPECT_EQ(document["fairness"]["priorities"], "mixed");
}

}  // namespace
}  // namespace weir
