// A workload that runs again and again on the devices cpu and sim, and what is said of its queues. Real threads: run
// under ThreadSanitizer too.
#include "lab/watch/device_source.h"

#include <gtest/gtest.h>

#include <map>

#include "base/error.h"

namespace weir::watch {
namespace {

constexpr std::int64_t kMinuteNs = 60'000'000'000;

Load load_of(const std::string& device, const std::string& workload, int queues, int streams) {
  DeviceOptions options;
  options.hardware_queues = queues;
  Load load;
  load.device = open_device(device, options);
  RunRequest request;
  request.workload = workload;
  request.scale = Scale::tiny;
  request.streams = streams;
  load.run = std::make_shared<const BuiltRun>(build_run(load.device->info(), request));
  load.workload = workload;
  load.notes = {"a note"};
  return load;
}

TEST(DeviceSource, samples_of_the_cpu_device_cover_its_queues_and_streams) {
  Feed feed(watch_device(load_of("cpu", "tiny_kernel_stress", 2, 4)), {0, 20'000'000});
  const auto sample = feed.await(3, kMinuteNs);
  feed.rethrow();
  ASSERT_NE(sample, nullptr);
  EXPECT_EQ(sample->source, "device");
  EXPECT_EQ(sample->notes, std::vector<std::string>{"a note"});
  ASSERT_TRUE(sample->window_ns);
  EXPECT_GT(*sample->window_ns, 0);
  EXPECT_FALSE(sample->is_virtual);
  double streams = 0;
  ASSERT_EQ(sample->rows.size(), 2u);
  for (const Row& row : sample->rows) {
    EXPECT_EQ(row.kind, "queue");
    EXPECT_GT(*row.kernels_per_s.value, 0);
    EXPECT_GE(*row.backlog.value, 0);
    EXPECT_GE(*row.most_backlog.value, *row.backlog.value);
    EXPECT_GT(*row.busy.value, 0);
    EXPECT_LE(*row.busy.value, 1);
    streams += *row.streams.value;
  }
  EXPECT_EQ(streams, 4);
}

TEST(DeviceSource, counters_only_grow_across_sessions) {
  // So many samples that sessions, which keep a bounded number of iterations, are made anew.
  Feed feed(watch_device(load_of("sim", "tiny_kernel_stress", 0, 4)), {0, 1'000'000});
  std::map<std::string, double> last;
  for (std::uint64_t number = 1; number <= 20; ++number) {
    const auto sample = feed.await(number, kMinuteNs);
    feed.rethrow();
    ASSERT_NE(sample, nullptr);
    ASSERT_GE(sample->number, number);
    EXPECT_TRUE(sample->is_virtual);
    for (const Row& row : sample->rows) {
      EXPECT_GE(*row.kernels.value, last[row.key]);
      last[row.key] = *row.kernels.value;
    }
  }
  EXPECT_FALSE(last.empty());
}

TEST(DeviceSource, ends_behind_the_iteration_that_it_is_at) {
  for (int i = 0; i < 3; ++i) {
    Feed feed(watch_device(load_of("cpu", "tiny_kernel_stress", 2, 2)), {kMinuteNs, kMinuteNs});
    feed.stop();
    feed.await(UINT64_MAX, kMinuteNs);
    EXPECT_TRUE(feed.has_ended());
  }
}

}  // namespace
}  // namespace weir::watch
