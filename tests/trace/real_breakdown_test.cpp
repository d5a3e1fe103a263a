// The analyses on real captures, against values that others computed. WEIR_REAL_DATA names the folder.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <string_view>

#include "trace/analyse/breakdown.h"
#include "trace/analyse/concurrency.h"
#include "trace/analyse/exposed_causes.h"
#include "trace/analyse/overlap_times.h"
#include "trace/analyse/queue_map.h"
#include "trace/analyse/slice.h"
#include "trace/import/import.h"
#include "trace/import/list.h"

namespace weir {
namespace {

// What the first device of a capture did.
class RealData : public testing::Test {
 protected:
  void load(std::string_view format, const char* file) {
    const char* const folder = std::getenv("WEIR_REAL_DATA");
    if (folder == nullptr) GTEST_SKIP() << "WEIR_REAL_DATA is not set: it names a folder of captures";
    const std::filesystem::path path = std::filesystem::path(folder) / file;
    if (!std::filesystem::exists(path)) GTEST_SKIP() << path << " is not there";
    if (std::none_of(importers().begin(), importers().end(), [&](const Importer& each) { return each.name == format; }))
      GTEST_SKIP() << "this build cannot read " << format;
    whole_ = import_traces({path}, {}).at(0).timeline;
    ASSERT_FALSE(whole_.spans.empty());
    part_ = slice(whole_, 0);
  }

  Timeline whole_, part_;
};

struct Known {
  const char* file;
  std::size_t commands, streams;
  double span_us, busy_us, compute_us, communication_us, hidden_us, overlapped_percent;
};

class RealBreakdown : public RealData, public testing::WithParamInterface<Known> {};

TEST_P(RealBreakdown, EqualsWhatOthersComputed) {
  const Known& known = GetParam();
  load("kineto", known.file);
  if (IsSkipped() || HasFatalFailure()) return;
  const Breakdown found = breakdown(part_, iteration_ranges(whole_, whole_.devices.at(0).process));
  ASSERT_TRUE(found.times) << found.reason;
  EXPECT_EQ(found.commands, known.commands);
  EXPECT_EQ(found.streams, known.streams);
  EXPECT_NEAR(found.times->span_ns / 1e3, known.span_us, 0.1);
  EXPECT_NEAR(found.times->busy_ns / 1e3, known.busy_us, 0.1);
  EXPECT_NEAR(found.times->compute_ns / 1e3, known.compute_us, 0.1);
  EXPECT_NEAR(found.times->communication_ns / 1e3, known.communication_us, 0.1);
  EXPECT_NEAR(found.times->communication_beside_compute_ns / 1e3, known.hidden_us, 0.1);
  EXPECT_NEAR(100 * found.times->overlapped_ns / found.times->busy_ns, known.overlapped_percent, 0.05);
  EXPECT_NEAR(concurrency_profile(part_).all->overlapped_ns(), found.times->overlapped_ns, 1e-3);
  // Every command was submitted within some step of the profiler.
  EXPECT_GE(found.iteration_count, 3u);
  EXPECT_EQ(found.outside_iterations, 0u);
  const std::vector<TraceRange> iterations = iteration_ranges(whole_, whole_.devices.at(0).process);
  const ExposedCauses causes = exposed_causes(part_, {}, iterations);
  EXPECT_EQ(causes.exposed_ns, found.times->exposed_communication_ns);
  EXPECT_EQ(overlap_times(part_, iterations).iterations.size(),
            std::count_if(found.iterations.begin(), found.iterations.end(),
                          [](const IterationTimes& each) { return each.times.has_value(); }));
}

INSTANTIATE_TEST_SUITE_P(Kineto, RealBreakdown,
                         testing::Values(Known{"kineto/a100_ddp_4streams.json.gz", 9450, 4, 464594.0, 388587.0,
                                               281336.0, 163535.0, 75614.0, 26.8},
                                         Known{"kineto/mi300x_ddp_resnet.json.gz", 3653, 2, 86567.7, 84002.1, 25739.4,
                                               71516.5, 15891.3, 19.3},
                                         Known{"kineto/mi300x_4ranks_fused_140MB.json.gz", 4095, 2, 140042.1, 91189.3,
                                               47634.4, 64471.4, 23403.6, 26.7}));

TEST_F(RealData, StreamsOnFewQueues) {
  load("rocprof_json", "rocprof/mi350x_fsdp_567streams_5queues.json.gz");
  if (IsSkipped() || HasFatalFailure()) return;
  const Breakdown found = breakdown(part_);
  EXPECT_EQ(found.commands, 43'915u);
  EXPECT_EQ(found.streams, 567u);
  EXPECT_EQ(found.queues, 5u);
  // An independent count from the file: copies and memsets that ROCm makes with kernels are no compute.
  EXPECT_NEAR(found.times->communication_ns / 1e6, 4158.76, 0.01);
  EXPECT_NEAR(found.times->compute_ns / 1e6, 258.66, 0.01);
  EXPECT_NEAR(found.times->communication_beside_compute_ns / 1e6, 196.05, 0.01);
  const ExposedCauses causes = exposed_causes(part_);
  EXPECT_EQ(causes.exposed_ns, found.times->exposed_communication_ns);
  EXPECT_FALSE(causes.are_dependencies_known);
  const QueueMap map = queue_map(part_);
  EXPECT_EQ(map.streams.size(), 567u);
  EXPECT_EQ(map.queues.size(), 5u);
  std::size_t commands = 0;
  for (const QueueStreams& queue : map.queues) commands += queue.commands;
  EXPECT_EQ(commands, 43'915u);
}

}  // namespace
}  // namespace weir
