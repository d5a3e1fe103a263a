#include "support/amd_capture.h"

#include <fmt/format.h>
#include <stdlib.h>

#include <algorithm>
#include <fstream>
#include <limits>
#include <stdexcept>
#include <system_error>

#include "support/amd_log_text.h"
#include "support/kfd_text.h"

namespace weir::testing {
namespace {

namespace fs = std::filesystem;

void write_text(const fs::path& path, const std::string& text) { std::ofstream(path, std::ios::binary) << text; }

void shift(std::int64_t& ns, std::int64_t by) {
  if (ns != 0) ns += by;
}

// The same scene by another clock.
Scene shifted(Scene scene, std::int64_t by) {
  for (SceneQueue& queue : scene.queues)
    for (std::int64_t* ns :
         {&queue.asked_ns, &queue.ioctl_ns, &queue.ioctl_end_ns, &queue.created_ns, &queue.deleted_ns})
      shift(*ns, by);
  for (SceneStream& stream : scene.streams)
    for (std::int64_t* ns : {&stream.created_ns, &stream.destroyed_ns}) shift(*ns, by);
  for (SceneLaunch& launch : scene.launches)
    for (std::int64_t* ns : {&launch.called_ns, &launch.written_ns, &launch.returned_ns}) shift(*ns, by);
  for (ScenePreemption& preemption : scene.preemptions)
    for (std::int64_t* ns : {&preemption.unmap_ns, &preemption.fence_ns, &preemption.mapped_ns}) shift(*ns, by);
  return scene;
}

}  // namespace

CaptureFolder::CaptureFolder() {
  // A capture is hundreds of small files, which take seconds on a busy disk.
  const fs::path root = fs::is_directory("/dev/shm") ? fs::path("/dev/shm") : fs::temp_directory_path();
  std::string name = (root / "weir_capture_XXXXXX").string();
  if (::mkdtemp(name.data()) == nullptr) throw std::runtime_error("mkdtemp failed");
  path_ = name;
}

CaptureFolder::~CaptureFolder() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

std::vector<amd::CaptureSnapshot> snapshots_of(const Scene& scene, int during) {
  std::int64_t first = std::numeric_limits<std::int64_t>::max(), ready = 0, last = 0;
  for (const SceneQueue& queue : scene.queues) {
    first = std::min(first, queue.asked_ns);
    ready = std::max(ready, queue.created_ns);
    last = std::max({last, queue.created_ns, queue.deleted_ns});
  }
  for (const SceneLaunch& launch : scene.launches) last = std::max(last, launch.returned_ns);
  std::vector<amd::CaptureSnapshot> snapshots = {{"before", "snapshots/before", first - 1'000'000}};
  for (int i = 1; i <= during; ++i) {
    const std::string when = fmt::format("during-{:02}", i);
    snapshots.push_back({when, "snapshots/" + when, first + (last - first) * i / (during + 1)});
  }
  snapshots.push_back({"after", "snapshots/after", last + 5'000'000});
  return snapshots;
}

Scene scene_at(const Scene& scene, std::int64_t ns) {
  Scene now = scene;
  std::erase_if(now.queues, [&](const SceneQueue& queue) {
    return queue.ioctl_end_ns > ns || (queue.deleted_ns != 0 && queue.deleted_ns <= ns);
  });
  return now;
}

amd::CaptureManifest write_capture(const Scene& scene, const fs::path& folder, const CaptureShape& shape) {
  amd::CaptureManifest manifest;
  manifest.command = {"./program"};
  manifest.started_at = "2026-11-16T00:00:00Z";
  manifest.weir = "test";
  manifest.exit_code = 0;
  manifest.kernel_release = "6.12.0";
  amd::CapturePart log{"log", {}, "no log was written", "Is it a HIP program?"};
  amd::CapturePart trace{"ftrace", {}, "permission denied", "Run it as root."};
  amd::CapturePart hqds{"hqds", {}, "permission denied", "Run it as root."};
  if (shape.has_log) {
    log = {"log", {"log.txt"}, "", ""};
    LogTextOptions options;
    options.level = shape.has_pids ? 4 : 3;
    write_text(folder / "log.txt", amd_log_text(scene, options));
  }
  if (shape.has_trace) {
    trace = {"ftrace", {"ftrace.txt"}, "", ""};
    manifest.trace_clock = shape.trace_clock;
    write_text(folder / "ftrace.txt", ftrace_text(shifted(scene, -shape.trace_offset_ns), shape.form, shape.style));
  }
  if (shape.has_debugfs || shape.has_sysfs) {
    manifest.snapshots = snapshots_of(scene, shape.during);
    hqds = {"hqds", {}, "", ""};
    for (const amd::CaptureSnapshot& snapshot : manifest.snapshots) {
      fs::create_directories(folder / snapshot.folder);
      const Scene now = scene_at(scene, snapshot.taken_ns);
      if (shape.has_debugfs) {
        write_text(folder / snapshot.folder / "hqds", hqds_text(now));
        write_text(folder / snapshot.folder / "mqds", mqds_text(now));
        hqds.files.push_back(snapshot.folder + "/hqds");
      }
      if (shape.has_sysfs) write_sysfs(now, folder / snapshot.folder / "sysfs");
    }
  }
  manifest.parts = {log, trace, hqds};
  manifest.started_ns = manifest.snapshots.empty() ? 0 : manifest.snapshots.front().taken_ns;
  manifest.ended_ns = manifest.snapshots.empty() ? 0 : manifest.snapshots.back().taken_ns;
  if (shape.has_processes)
    for (const SceneProcess& process : scene.processes)
      manifest.processes.push_back({process.host_pid == process.namespace_pid
                                        ? std::vector<int>{process.host_pid}
                                        : std::vector<int>{process.host_pid, process.namespace_pid},
                                    process.comm});
  write_text(folder / amd::kManifestFile, to_text(amd::to_json(manifest)));
  return manifest;
}

}  // namespace weir::testing
