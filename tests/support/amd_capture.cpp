#include "support/amd_capture.h"

#include <fmt/format.h>
#include <stdlib.h>

#include <algorithm>
#include <fstream>
#include <limits>
#include <stdexcept>
#include <system_error>

#include "support/kfd_text.h"

namespace weir::testing {
namespace {

namespace fs = std::filesystem;

// Lines with their times, put in order at the end: processes write into one file.
class Lines {
 public:
  explicit Lines(bool has_pids) : has_pids_(has_pids) {}

  void add(std::int64_t ns, int pid, int level, const std::string& message) {
    if (!has_pids_ && level > 3) return;
    const std::string who = has_pids_ ? fmt::format("[pid:{} tid: {:#x}]", pid, thread_of(pid)) : std::string();
    lines_.push_back({ns, fmt::format(":{}:{:<25}:{:<4}: {:010} us: {} {}\n", level, "rocdevice.cpp", 3048, ns / 1000,
                                      who, message)});
  }
  std::string text() {
    std::stable_sort(lines_.begin(), lines_.end(), [](const Line& a, const Line& b) { return a.ns < b.ns; });
    std::string out;
    for (const Line& line : lines_) out += line.text;
    return out;
  }

 private:
  struct Line {
    std::int64_t ns;
    std::string text;
  };
  static std::uint64_t thread_of(int pid) { return 0x7f8edc000000 + 0x1000 * static_cast<std::uint64_t>(pid); }

  bool has_pids_;
  std::vector<Line> lines_;
};

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

std::string runtime_log_text(const Scene& scene, bool has_pids) {
  Lines lines(has_pids);
  const auto pid_of = [&](int process) { return scene.processes[static_cast<std::size_t>(process)].namespace_pid; };
  std::vector<int> streams_on(scene.queues.size());
  for (const SceneQueue& queue : scene.queues) {
    if (queue.is_sdma || queue.swq == 0) continue;  // the runtime's own
    const int pid = pid_of(queue.process);
    lines.add(queue.asked_ns, pid, 3,
              "Number of allocated hardware queues with low priority: 0, with normal priority: 0, with high priority: "
              "0, maximum per priority is: 4");
    lines.add(queue.created_ns, pid, 3,
              fmt::format("Created SWq={:#x} to map on HWq={:#x} with size {} with priority {}, cooperative: 0",
                          queue.swq, queue.ring_base, queue.ring_bytes / 64, queue.priority));
    if (queue.deleted_ns != 0)
      // Written before the runtime asks for it; the scene has when KFD's handler began.
      lines.add(queue.deleted_ns - 5000, pid, 3,
                fmt::format("Deleting hardware queue {:#x} with refCount 0", queue.ring_base));
  }
  for (const SceneStream& stream : scene.streams) {
    const auto at = static_cast<std::size_t>(stream.queue);
    const SceneQueue& queue = scene.queues[at];
    const int pid = pid_of(stream.process);
    const bool is_first = streams_on[at]++ == 0;
    lines.add(stream.created_ns, pid, 3,
              fmt::format("\x1b[32m hipStreamCreateWithPriority ( 0x7fffea224e88, 0, {} ) \x1b[0m", stream.priority));
    lines.add(stream.created_ns, pid, 3,
              is_first ? fmt::format("acquireQueue refCount: {:#x} (1)", queue.ring_base)
                       : fmt::format("Selected queue refCount: {:#x} ({})", queue.ring_base, streams_on[at]));
    lines.add(stream.created_ns + 1000, pid, 3,
              fmt::format("hipStreamCreateWithPriority: Returned hipSuccess : stream:{:#x}", stream.handle));
  }
  for (const SceneLaunch& launch : scene.launches) {
    const SceneStream& stream = scene.streams[static_cast<std::size_t>(launch.stream)];
    const SceneQueue& queue = scene.queues[static_cast<std::size_t>(stream.queue)];
    const int pid = pid_of(stream.process);
    lines.add(
        launch.called_ns, pid, 3,
        fmt::format("\x1b[32m hipLaunchKernel ( 0x200d68, {{{},1,1}}, {{{},1,1}}, 0x7fffea224e60, 0, stream:{:#x} ) "
                    "\x1b[0m",
                    launch.grid / launch.workgroup, launch.workgroup, stream.handle));
    lines.add(launch.written_ns, pid, 4,
              fmt::format("Command (KernelExecution) enqueued: 0x2095b30 to queue: {:#x}", stream.handle));
    lines.add(launch.written_ns, pid, 3, "ShaderName : " + launch.kernel);
    lines.add(launch.written_ns, pid, 4,
              fmt::format("SWq={:#x}, HWq={:#x}, id={}, Dispatch Header = 0xb02 (type=2, barrier=1, acquire=1, "
                          "release=1), setup=3, grid=[{}, 1, 1], workgroup=[{}, 1, 1], private_seg_size=0, "
                          "group_seg_size=0, kernel_obj=0x7f8ed23d8800, kernarg_address=0x7f8acce00000, "
                          "completion_signal=0x0, correlation_id=0, rptr={}, wptr={}",
                          queue.swq, queue.ring_base, queue.hsa_id, launch.grid, launch.workgroup, launch.read_index,
                          launch.write_index));
    lines.add(launch.returned_ns, pid, 3, "hipLaunchKernel: Returned hipSuccess : : duration: 5 us");
  }
  return lines.text();
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
    write_text(folder / "log.txt", runtime_log_text(scene, shape.has_pids));
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
