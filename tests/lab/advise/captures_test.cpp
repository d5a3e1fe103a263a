// Replays of captures that others made: they take as long as the captures did. WEIR_REAL_DATA names the folder.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "lab/advise/advice.h"
#include "lab/advise/step_times.h"
#include "run/analyze.h"
#include "trace/analyse/slice.h"
#include "trace/import/import.h"

namespace weir::advise {
namespace {

class Captures : public testing::TestWithParam<const char*> {};

TEST_P(Captures, are_replayed_within_three_per_cent) {
  const char* const folder = std::getenv("WEIR_REAL_DATA");
  if (folder == nullptr) GTEST_SKIP() << "WEIR_REAL_DATA is not set: it names a folder of captures";
  const std::filesystem::path path = std::filesystem::path(folder) / GetParam();
  if (!std::filesystem::exists(path)) GTEST_SKIP() << path << " is not there";
  Timeline timeline = import_traces({path}, {}).at(0).timeline;
  if (const auto window = window_in(timeline, std::nullopt)) timeline = within(timeline, *window);
  const ReplayModel model = replay_model(timeline, sim::profile_named("h200"));
  const double observed = observed_step_ns(model, timeline);
  EXPECT_NEAR(step_ns(model, replay(model)), observed, 0.03 * observed);
}

INSTANTIATE_TEST_SUITE_P(Kineto, Captures,
                         testing::Values("kineto/mi300_timesformer_shapes.json.gz", "kineto/a100_ddp_4streams.json.gz",
                                         "kineto/h200_gpt_training.json.gz", "kineto/h100_qwen_shapes.json.gz",
                                         "kineto/mi300x_ddp_resnet.json.gz",
                                         "kineto/mi300_vllm_piecewise_graphs.json.gz"));
INSTANTIATE_TEST_SUITE_P(Others, Captures,
                         testing::Values("nsys/mfu_2gpu_after.sqlite", "nsys/mfu_2gpu_before.sqlite",
                                         "rpd/matmul_result.rpd", "cupti/activity_dump.txt"));

}  // namespace
}  // namespace weir::advise
