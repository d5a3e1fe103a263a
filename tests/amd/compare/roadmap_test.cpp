// The queue roadmap over whole captures of described scenes: what is met, what is missed, and that nothing is claimed
// of what a capture does not hold.
#include "amd/compare/roadmap.h"

#include <gtest/gtest.h>

#include <fstream>

#include "support/amd_capture.h"
#include "support/text.h"

namespace weir::amd {
namespace {

namespace fs = std::filesystem;
using testing::CaptureShape;
using testing::Gfx;
using testing::Scene;
using testing::TraceForm;
using CaseFolder = testing::CaptureFolder;

const RoadmapTarget& target(const std::vector<RoadmapTarget>& all, std::string_view side, std::string_view name) {
  for (const RoadmapTarget& each : all)
    if (each.side == side && each.name == name) return each;
  throw std::runtime_error("no such target");
}
CheckState state(const std::vector<RoadmapCheck>& all, std::string_view item) {
  for (const RoadmapCheck& each : all)
    if (each.item == item) return each.state;
  throw std::runtime_error("no such item");
}

Scene scene_with_creations_of(std::int64_t ns, std::uint64_t seed = 7) {
  Scene scene = testing::random_scene(seed, Gfx::gfx9_4_3);
  for (testing::SceneQueue& queue : scene.queues) {
    queue.ioctl_end_ns = queue.ioctl_ns + ns;
    queue.created_ns = std::max(queue.created_ns, queue.ioctl_end_ns + 1000);
  }
  return scene;
}

RoadmapCase load(const Scene& scene, const CaseFolder& folder, CaptureShape shape = {}) {
  shape.form = TraceForm::function_graph;
  testing::write_capture(scene, folder.path(), shape);
  return load_roadmap_case(folder.path());
}

TEST(Roadmap, judges_creation_by_what_the_kernel_trace_shows) {
  const CaseFolder fast, slow;
  const RoadmapCase a = load(scene_with_creations_of(200'000), fast),
                    b = load(scene_with_creations_of(3'000'000, 8), slow);
  const auto targets = judge_targets(a, b);
  const RoadmapTarget &met = target(targets, "a", "queue_creation"), &missed = target(targets, "b", "queue_creation");
  EXPECT_EQ(met.outcome, TargetOutcome::met) << met.because;
  EXPECT_NEAR(met.p99.value_or(0), 200'000, 20'000);
  EXPECT_EQ(missed.outcome, TargetOutcome::missed) << missed.because;
  EXPECT_GT(missed.p99.value_or(0), 1e6);
}

TEST(Roadmap, ticks_off_what_a_whole_capture_holds) {
  const CaseFolder first, second;
  const RoadmapCase a = load(scene_with_creations_of(200'000), first),
                    b = load(scene_with_creations_of(200'000, 8), second);
  const auto checks = tick_checklist(a, b);
  for (const char* item :
       {"kernel trace recorded", "runtime log and kernel trace of one run", "creation of queues followed", "case A ran",
        "case B ran", "hardware queues looked at", "queues of case A known"})
    EXPECT_EQ(state(checks, item), CheckState::done) << item;
  EXPECT_EQ(state(checks, "preemption test designed"), CheckState::cannot_be_seen);
  EXPECT_GT(a.hqd_snapshots, 0U);
}

TEST(Roadmap, claims_nothing_of_what_is_not_there) {
  const CaseFolder first, second;
  CaptureShape shape;
  shape.has_trace = shape.has_debugfs = false;
  const RoadmapCase a = load(scene_with_creations_of(200'000), first, shape),
                    b = load(scene_with_creations_of(200'000, 8), second, shape);
  for (const RoadmapTarget& each : judge_targets(a, b)) {
    if (each.name == "queue_creation" || each.name == "mqd_operations" || each.name == "kernel_queue") {
      EXPECT_EQ(each.outcome, TargetOutcome::cannot_say) << each.name;
      EXPECT_FALSE(each.p99 || each.largest) << each.name;
    }
    EXPECT_NE(each.because, "") << each.name;
  }
  const auto checks = tick_checklist(a, b);
  for (const char* item : {"kernel trace recorded", "creation of queues followed", "MQD operations identified",
                           "hardware queues looked at", "path from ROCm over KFD to the GPU"})
    EXPECT_EQ(state(checks, item), CheckState::cannot_be_seen) << item;
  for (const RoadmapCheck& each : checks) EXPECT_NE(each.because, "") << each.item;
}

TEST(Roadmap, a_backlog_of_a_hundred_is_too_much) {
  const CaseFolder first, second;
  Scene light = scene_with_creations_of(200'000), heavy = scene_with_creations_of(200'000, 8);
  for (auto& launch : light.launches) launch.write_index = launch.read_index + 3;
  for (auto& launch : heavy.launches) launch.write_index = launch.read_index + 200;
  const RoadmapCase a = load(light, first), b = load(heavy, second);
  const auto targets = judge_targets(a, b);
  EXPECT_EQ(target(targets, "a", "backlog").outcome, TargetOutcome::met);
  EXPECT_EQ(target(targets, "b", "backlog").outcome, TargetOutcome::missed);
  EXPECT_EQ(target(targets, "b", "backlog").largest, 200);
}

TEST(Roadmap, knows_the_kernels_of_the_cases) {
  const CaseFolder first, second;
  Scene cnn = scene_with_creations_of(200'000), other = scene_with_creations_of(200'000, 8);
  const char* names[] = {"miopenSp3AsmConv_v30", "mloPoolingG", "MIOpenBatchNormFwdInferSpatialEst"};
  for (std::size_t i = 0; i < cnn.launches.size(); ++i) cnn.launches[i].kernel = names[i % 3];
  for (auto& launch : other.launches) launch.kernel = "Cijk_Ailk_Bljk_SB";
  const RoadmapCase a = load(cnn, first), b = load(other, second);
  const auto targets = judge_targets(a, b);
  EXPECT_EQ(target(targets, "a", "kernel_classes").outcome, TargetOutcome::met)
      << target(targets, "a", "kernel_classes").because;
  EXPECT_EQ(target(targets, "b", "kernel_classes").outcome, TargetOutcome::missed);
  EXPECT_TRUE(has(target(targets, "b", "kernel_classes").because, "not seen: softmax"));
}

TEST(Roadmap, has_no_comparison_where_a_folder_holds_nothing) {
  const CaseFolder first, second;
  CaptureShape empty;
  empty.has_log = empty.has_trace = empty.has_debugfs = false;
  const RoadmapCase a = load(scene_with_creations_of(200'000), first, empty),
                    b = load(scene_with_creations_of(200'000, 8), second);
  EXPECT_FALSE(a.side);
  const Json document = roadmap_document(a, b);
  EXPECT_TRUE(document["comparison"].is_null());
  EXPECT_TRUE(has(document["comparison_reason"].get<std::string>(), "an empty capture"));
}

}  // namespace
}  // namespace weir::amd
