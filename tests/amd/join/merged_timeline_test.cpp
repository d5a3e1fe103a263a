// The merged timeline: valid JSON, lanes that overlap nowhere, packets within the calls that wrote them, and nothing of
// the kernel where the clocks are not aligned.
#include "amd/join/merged_timeline.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "base/json.h"
#include "support/amd_capture.h"

namespace weir::amd {
namespace {

using testing::CaptureFolder;
using testing::CaptureShape;
using testing::Gfx;
using testing::Scene;

struct Picture {
  Json json;
  TimelineCounts counts;
};

Picture draw(const Scene& scene, const CaptureFolder& folder, const CaptureShape& shape) {
  write_capture(scene, folder.path(), shape);
  const LoadedCapture capture = load_capture(files_of_capture(folder.path()), nullptr);
  const Join join = join_queues(capture.input);
  const auto path = folder.path() / "timeline.json";
  Picture picture;
  picture.counts = write_merged_timeline(capture, join, path, false, nullptr);
  picture.json = read_json(path);
  return picture;
}

std::int64_t ns_of(const Json& event, const char* key) {
  return static_cast<std::int64_t>(std::llround(event[key].get<double>() * 1000.0));
}

TEST(MergedTimeline, has_every_launch_on_its_queue_and_its_stream_and_an_arrow_from_its_call) {
  const Scene scene = testing::random_scene(3, Gfx::gfx9_4_3);
  CaptureFolder folder;
  const Picture picture = draw(scene, folder, {});
  std::map<std::string, std::size_t> packets_on;  // by name of the lane's group and phase
  std::map<std::int64_t, std::string> groups;
  std::size_t arrows = 0, calls = 0, packets = 0, marks = 0;
  for (const Json& event : picture.json["traceEvents"]) {
    if (event["name"] == "process_name") groups[event["pid"].get<std::int64_t>()] = event["args"]["name"].string();
    arrows += event["ph"] == "s" ? 1 : 0;
    calls += event["ph"] == "X" && event["name"] == "hipLaunchKernel" ? 1 : 0;
    if (event["cat"] == "packet" && event["ph"] == "X") {
      ++packets;
      EXPECT_EQ(ns_of(event, "dur"), 0) << "the log does not say how long it took";
    }
    marks += event["cat"] == "packet" && event["ph"] == "i" ? 1 : 0;
  }
  EXPECT_EQ(packets, scene.launches.size());
  EXPECT_EQ(marks, scene.launches.size());
  EXPECT_EQ(calls, scene.launches.size());
  EXPECT_EQ(arrows, scene.launches.size());
  EXPECT_EQ(picture.counts.arrows, arrows);
  EXPECT_GE(groups.size(), 3 * scene.processes.size());
}

TEST(MergedTimeline, slices_of_a_lane_never_overlap_and_phases_are_those_that_viewers_know) {
  for (std::uint64_t seed = 1; seed <= 3; ++seed) {
    const Scene scene = testing::random_scene(seed, Gfx::gfx9_4_3);
    CaptureFolder folder;
    CaptureShape shape;
    shape.form = seed % 2 == 0 ? testing::TraceForm::function_graph : testing::TraceForm::trace_printk;
    const Picture picture = draw(scene, folder, shape);
    std::map<std::pair<std::int64_t, std::int64_t>, std::vector<std::pair<std::int64_t, std::int64_t>>> lanes;
    for (const Json& event : picture.json["traceEvents"]) {
      const std::string& phase = event["ph"].string();
      EXPECT_TRUE(phase == "X" || phase == "i" || phase == "M" || phase == "s" || phase == "f") << phase;
      if (phase == "X" && ns_of(event, "dur") > 0)
        lanes[{event["pid"].get<std::int64_t>(), event["tid"].get<std::int64_t>()}].emplace_back(
            ns_of(event, "ts"), ns_of(event, "ts") + ns_of(event, "dur"));
    }
    for (auto& [lane, slices] : lanes) {
      std::sort(slices.begin(), slices.end());
      for (std::size_t i = 1; i < slices.size(); ++i) EXPECT_LE(slices[i - 1].second, slices[i].first);
    }
  }
}

TEST(MergedTimeline, kernel_spans_are_on_the_clock_of_the_log_or_not_there_at_all) {
  const Scene scene = testing::random_scene(3, Gfx::gfx9_4_3);
  CaptureFolder aligned, not_aligned;
  CaptureShape shape;
  shape.trace_clock = "local";
  shape.trace_offset_ns = 382'463'000;
  const Picture good = draw(scene, aligned, shape);
  EXPECT_GT(good.counts.kfd_spans, 0u);
  EXPECT_EQ(good.counts.kfd_left_out, 0u);
  const std::int64_t error_ns = good.json["weir"]["error_ns"].get<std::int64_t>();
  std::size_t creates = 0;
  for (const Json& event : good.json["traceEvents"]) {
    if (event["cat"] != "kfd" || !event["name"].get<std::string>().starts_with("create")) continue;
    ++creates;
    EXPECT_TRUE(event["args"].contains("clock error us"));
    const std::int64_t ns = ns_of(event, "ts");
    EXPECT_TRUE(std::any_of(scene.queues.begin(), scene.queues.end(), [&](const testing::SceneQueue& queue) {
      return std::abs(queue.ioctl_ns - ns) <= error_ns + 3000;
    }));
  }
  EXPECT_GT(creates, 0u);
  // Said to be mono, and contradicted: no offset, so nothing of the kernel.
  shape.trace_clock = "mono";
  const Picture bad = draw(scene, not_aligned, shape);
  EXPECT_EQ(bad.counts.kfd_spans, 0u);
  EXPECT_GT(bad.counts.kfd_left_out, 0u);
  EXPECT_TRUE(bad.json["weir"]["offset_ns"].is_null());
}

TEST(MergedTimeline, names_of_any_bytes_stay_valid_json) {
  Scene scene = testing::random_scene(3, Gfx::gfx9_4_3);
  if (scene.launches.empty()) GTEST_SKIP() << "the scene launches nothing";
  scene.launches[0].kernel = "k\"\\\x01\xff<script>\t";
  CaptureFolder folder;
  const Picture picture = draw(scene, folder, {});
  EXPECT_TRUE(picture.json["traceEvents"].is_array());
}

TEST(MergedTimeline, an_existing_file_is_not_replaced_and_a_stop_leaves_nothing) {
  const Scene scene = testing::random_scene(2, Gfx::gfx9_4_3);
  CaptureFolder folder;
  draw(scene, folder, {});
  const LoadedCapture capture = load_capture(files_of_capture(folder.path()), nullptr);
  const Join join = join_queues(capture.input);
  EXPECT_ANY_THROW(write_merged_timeline(capture, join, folder.path() / "timeline.json", false, nullptr));
  const std::atomic<bool> stop{true};
  EXPECT_TRUE(write_merged_timeline(capture, join, folder.path() / "other.json", false, &stop).is_stopped);
  EXPECT_FALSE(std::filesystem::exists(folder.path() / "other.json"));
}

}  // namespace
}  // namespace weir::amd
