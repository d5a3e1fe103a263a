// Whole captures of described scenes: the join must find again who is who, in every form of trace, and claim nothing
// that was not so.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <set>

#include "amd/join/join_load.h"
#include "amd/join/merged_timeline.h"
#include "base/error.h"
#include "base/json.h"
#include "support/amd_capture.h"

namespace weir::amd {
namespace {

namespace fs = std::filesystem;
using testing::CaptureShape;
using Folder = testing::CaptureFolder;
using testing::Gfx;
using testing::Scene;
using testing::SceneQueue;
using testing::TraceForm;

struct Joined {
  LoadedCapture capture;
  Join join;
};

Joined join_folder(const fs::path& folder) {
  Joined joined{load_capture(files_of_capture(folder), nullptr), {}};
  joined.join = join_queues(joined.capture.input);
  return joined;
}

const SceneQueue* find_ring(const Scene& scene, std::uint64_t ring) {
  for (const SceneQueue& queue : scene.queues)
    if (queue.ring_base == ring) return &queue;
  return nullptr;
}

bool holds(const std::optional<DurationRange>& range, std::int64_t truth_ns, std::int64_t slack_ns) {
  return !range || (range->least_ns - slack_ns <= truth_ns && truth_ns <= plus(range->most_ns, slack_ns));
}

// Everything that a row says must be so. The handler that a trace shows lies within the ioctl, by a microsecond or two.
void check_row(const Scene& scene, const JoinedQueue& row, std::int64_t offset_ns) {
  if (!row.ring()) {
    // Of an SDMA queue that is not mapped some kernels show no ring.
    for (const Sighting& sighting : row.sightings) EXPECT_EQ(sighting.queue->kind, kfd::QueueKind::sdma);
    EXPECT_EQ(row.runtime, nullptr);
    return;
  }
  const SceneQueue* const truth = find_ring(scene, *row.ring());
  ASSERT_NE(truth, nullptr) << std::hex << *row.ring();
  const int host_pid = scene.processes[static_cast<std::size_t>(truth->process)].host_pid;
  if (row.host_pid) {
    EXPECT_EQ(*row.host_pid, host_pid);
  }
  if (row.kfd_id()) {
    EXPECT_EQ(*row.kfd_id(), truth->id);
  }
  if (row.gpu_id()) {
    EXPECT_EQ(*row.gpu_id(), scene.gpus[static_cast<std::size_t>(truth->gpu)].gpu_id);
  }
  EXPECT_EQ(row.runtime != nullptr, truth->swq != 0 && !truth->is_sdma);
  if (row.create != nullptr) {
    EXPECT_NEAR(static_cast<double>(row.create->started_ns + offset_ns - truth->ioctl_ns), 0, 3000);
  }
  EXPECT_TRUE(holds(row.hops.asked_to_entered, truth->ioctl_ns - truth->asked_ns, 3000));
  EXPECT_TRUE(holds(row.hops.entered_to_left, truth->ioctl_end_ns - truth->ioctl_ns, 5000));
  EXPECT_TRUE(holds(row.hops.left_to_created, truth->created_ns - truth->ioctl_end_ns, 3000));
  for (const Sighting& sighting : row.sightings) {
    if (sighting.queue->doorbell && !truth->is_sdma) {
      EXPECT_EQ(*sighting.queue->doorbell, truth->doorbell);
    }
    if (sighting.queue->backlog_packets && !truth->is_sdma) {
      EXPECT_EQ(*sighting.queue->backlog_packets, truth->written_packets - truth->read_packets);
    }
  }
}

void check_scene(const Scene& scene, const Joined& joined, std::int64_t offset_ns) {
  if (joined.join.clock.is_known()) {
    EXPECT_LE(joined.join.clock.range.low_ns, offset_ns);
    EXPECT_GE(joined.join.clock.range.high_ns, offset_ns);
  }
  std::set<std::uint64_t> rings;
  for (const JoinedQueue& row : joined.join.queues) {
    check_row(scene, row, offset_ns);
    if (row.ring()) {
      EXPECT_TRUE(rings.insert(*row.ring()).second) << "one queue, two rows";
    }
  }
}

class JoinScenes : public ::testing::TestWithParam<TraceForm> {};

TEST_P(JoinScenes, every_row_says_what_was_so_and_every_queue_that_lived_in_a_snapshot_is_found) {
  int aligned = 0, traced = 0, matched = 0;
  for (std::uint64_t seed = 1; seed <= 8; ++seed) {
    SCOPED_TRACE(seed);
    const Scene scene = testing::random_scene(seed, static_cast<Gfx>(seed % 5));
    Folder folder;
    CaptureShape shape;
    shape.form = GetParam();
    shape.trace_clock = seed % 2 == 0 ? "mono" : "local";
    shape.trace_offset_ns = seed % 2 == 0 ? 0 : 382'463'000 * (seed % 4 == 1 ? 1 : -1);
    const CaptureManifest manifest = write_capture(scene, folder.path(), shape);
    const Joined joined = join_folder(folder.path());
    check_scene(scene, joined, shape.trace_offset_ns);
    aligned += joined.join.clock.is_known() ? 1 : 0;
    if (shape.trace_clock == "mono") {
      EXPECT_TRUE(joined.join.clock.is_known()) << joined.join.clock.warning;
    }
    for (const SceneQueue& queue : scene.queues) {
      const auto seen = static_cast<std::size_t>(
          std::count_if(manifest.snapshots.begin(), manifest.snapshots.end(), [&](const CaptureSnapshot& snapshot) {
            return queue.ioctl_end_ns <= snapshot.taken_ns &&
                   (queue.deleted_ns == 0 || snapshot.taken_ns < queue.deleted_ns);
          }));
      if (queue.is_sdma || seen == 0) continue;
      const auto row = std::find_if(joined.join.queues.begin(), joined.join.queues.end(),
                                    [&](const JoinedQueue& each) { return each.ring() == queue.ring_base; });
      ASSERT_NE(row, joined.join.queues.end());
      EXPECT_EQ(row->sightings.size(), seen);
      EXPECT_EQ(row->role, queue.swq != 0 ? QueueRole::runtime : QueueRole::internal);
      matched += row->runtime != nullptr ? 1 : 0;
      traced += row->create != nullptr ? 1 : 0;
    }
  }
  EXPECT_GT(matched, 20);
  EXPECT_GT(aligned, 5);
  if (GetParam() != TraceForm::events) {
    EXPECT_GT(traced, 20);
  }
}

std::string form_name(const ::testing::TestParamInfo<TraceForm>& info) {
  constexpr const char* kNames[] = {"function", "function_graph", "events", "kprobes", "trace_printk"};
  return kNames[static_cast<std::size_t>(info.param)];
}

INSTANTIATE_TEST_SUITE_P(Forms, JoinScenes,
                         ::testing::Values(TraceForm::function, TraceForm::function_graph, TraceForm::events,
                                           TraceForm::kprobes, TraceForm::trace_printk),
                         form_name);

TEST(JoinCapture, streams_are_on_the_queues_that_they_were_on) {
  for (std::uint64_t seed = 1; seed <= 6; ++seed) {
    SCOPED_TRACE(seed);
    const Scene scene = testing::random_scene(seed, Gfx::gfx9_4_3);
    Folder folder;
    write_capture(scene, folder.path());
    const Joined joined = join_folder(folder.path());
    std::size_t streams = 0;
    for (const JoinedQueue& row : joined.join.queues) streams += row.streams.size();
    EXPECT_EQ(streams, scene.streams.size());
    for (const testing::SceneStream& stream : scene.streams) {
      const std::uint64_t ring = scene.queues[static_cast<std::size_t>(stream.queue)].ring_base;
      const auto row = std::find_if(joined.join.queues.begin(), joined.join.queues.end(),
                                    [&](const JoinedQueue& each) { return each.ring() == ring; });
      ASSERT_NE(row, joined.join.queues.end());
      EXPECT_TRUE(std::any_of(row->streams.begin(), row->streams.end(),
                              [&](const JoinedStream& each) { return each.handle == stream.handle; }));
    }
  }
}

TEST(JoinCapture, without_a_list_of_processes_rings_tell_them_and_without_snapshots_nobody_does) {
  const Scene scene = testing::random_scene(3, Gfx::gfx9_4_3);
  Folder with_rings, without;
  CaptureShape shape;
  shape.has_processes = false;
  write_capture(scene, with_rings.path(), shape);
  const Joined joined = join_folder(with_rings.path());
  for (const JoinedProcess& process : joined.join.processes) EXPECT_EQ(process.basis, ProcessBasis::rings);
  check_scene(scene, joined, 0);
  shape.has_debugfs = shape.has_sysfs = false;
  shape.form = TraceForm::function;
  write_capture(scene, without.path(), shape);
  const Joined blind = join_folder(without.path());
  for (const JoinedProcess& process : blind.join.processes) {
    EXPECT_FALSE(process.host_pid);
    EXPECT_FALSE(process.reason.empty());
  }
  for (const JoinedQueue& row : blind.join.queues)
    if (row.runtime != nullptr) {
      EXPECT_EQ(row.create, nullptr);
    }
}

TEST(JoinCapture, a_clock_that_is_said_to_be_mono_and_is_not_is_found_out) {
  const Scene scene = testing::random_scene(2, Gfx::gfx9_4_3);
  Folder folder;
  CaptureShape shape;
  shape.trace_offset_ns = 382'463'000;
  write_capture(scene, folder.path(), shape);
  const Joined joined = join_folder(folder.path());
  EXPECT_FALSE(joined.join.clock.is_known());
  EXPECT_FALSE(joined.join.clock.warning.empty());
}

TEST(JoinCapture, a_log_without_pids_is_joined_where_only_one_process_can_be_it) {
  Scene scene = testing::random_scene(5, Gfx::gfx11);
  while (scene.processes.size() != 1) {
    static std::uint64_t seed = 5;
    scene = testing::random_scene(++seed, Gfx::gfx11);
  }
  Folder folder;
  CaptureShape shape;
  shape.has_pids = false;
  write_capture(scene, folder.path(), shape);
  const Joined joined = join_folder(folder.path());
  ASSERT_EQ(joined.join.processes.size(), 1u);
  EXPECT_EQ(joined.join.processes[0].basis, ProcessBasis::only_process);
  check_scene(scene, joined, 0);
}

TEST(JoinCapture, broken_parts_are_named_and_the_rest_is_joined) {
  const Scene scene = testing::random_scene(4, Gfx::gfx9_4_3);
  Folder folder;
  write_capture(scene, folder.path());
  std::ofstream(folder.path() / "ftrace.txt", std::ios::binary | std::ios::trunc) << std::string(64, '\0');
  std::ofstream(folder.path() / "snapshots/during-01/hqds", std::ios::binary | std::ios::trunc) << "nonsense\n";
  const Joined joined = join_folder(folder.path());
  EXPECT_TRUE(joined.capture.input.has_log);
  EXPECT_FALSE(joined.capture.input.has_trace);
  bool is_named = false;
  for (const JoinPart& part : joined.capture.about.parts)
    is_named =
        is_named || (part.name == "ftrace" && !part.is_read && part.reason.find("ftrace.txt") != std::string::npos);
  EXPECT_TRUE(is_named);
  check_scene(scene, joined, 0);
}

TEST(JoinCapture, a_trace_whose_cpu_begins_late_has_lost_events) {
  const Scene scene = testing::random_scene(4, Gfx::gfx9_4_3);
  Folder folder;
  write_capture(scene, folder.path());
  EXPECT_FALSE(join_folder(folder.path()).capture.input.has_lost_events);
  std::ofstream(folder.path() / "ftrace.txt", std::ios::app) << "##### CPU 2 buffer started ####\n";
  EXPECT_TRUE(join_folder(folder.path()).capture.input.has_lost_events);
}

TEST(JoinCapture, a_capture_of_nothing_says_what_is_missing_and_how_to_capture) {
  Folder folder;
  CaptureShape shape;
  shape.has_log = shape.has_trace = shape.has_debugfs = shape.has_sysfs = false;
  write_capture(testing::random_scene(1, Gfx::gfx9), folder.path(), shape);
  try {
    load_capture(files_of_capture(folder.path()), nullptr);
    FAIL() << "nothing was read, and nothing was said";
  } catch (const Error& error) {
    EXPECT_EQ(error.fault, Fault::input);
    const std::string what = error.what();
    EXPECT_NE(what.find("log: no log was written"), std::string::npos) << what;
    EXPECT_NE(what.find("ftrace: permission denied"), std::string::npos) << what;
    EXPECT_NE(error.hint.find("weir amd capture"), std::string::npos) << error.hint;
  }
}

TEST(JoinCapture, a_folder_without_a_manifest_is_told_from_a_capture) {
  Folder folder;
  try {
    files_of_capture(folder.path());
    FAIL();
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("manifest.json"), std::string::npos);
    EXPECT_NE(error.hint.find("--log FILE"), std::string::npos);
  }
  EXPECT_THROW(files_of_capture(folder.path() / "nowhere"), Error);
}

// The real log and the real debugfs files are of different runs.
TEST(JoinReal, a_log_and_snapshots_of_different_runs_match_nothing_and_say_so) {
  const char* const data = std::getenv("WEIR_REAL_DATA");
  if (data == nullptr) GTEST_SKIP() << "WEIR_REAL_DATA does not name the folder of real captures";
  Folder folder;
  const fs::path real = fs::path(data) / "amd";
  fs::copy_file(real / "mi308x_16streams_hqds.txt", folder.path() / "hqds.txt");
  fs::copy_file(real / "mi308x_16streams_mqds.txt", folder.path() / "mqds.txt");
  CaptureFiles files;
  files.logs = {real / "mi308x_16streams_level3.log"};
  files.snapshots = {{"during", folder.path(), INT64_MIN}};
  const LoadedCapture capture = load_capture(files, nullptr);
  const Join join = join_queues(capture.input);
  std::size_t of_log = 0, of_kfd = 0, streams = 0;
  for (const JoinedQueue& queue : join.queues) {
    EXPECT_TRUE(queue.runtime == nullptr || queue.sightings.empty());
    EXPECT_TRUE(queue.evidence.empty());
    of_log += queue.runtime != nullptr ? 1 : 0;
    of_kfd += queue.runtime == nullptr ? 1 : 0;
    streams += queue.streams.size();
    if (queue.runtime != nullptr) {
      EXPECT_EQ(queue.runtime->streams_most, 4);
    }
  }
  EXPECT_EQ(of_log, 4u);
  EXPECT_EQ(of_kfd, 5u);
  EXPECT_EQ(streams, 16u);
  const auto verdicts = join_verdicts(capture.input, join);
  EXPECT_TRUE(std::any_of(verdicts.begin(), verdicts.end(),
                          [](const std::string& each) { return each.find("Nothing matches") != each.npos; }));
}

}  // namespace
}  // namespace weir::amd
