#include "support/amd_log_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <vector>

namespace weir::testing {
namespace {

class LogWriter {
 public:
  LogWriter(const Scene& scene, const LogTextOptions& options) : scene_(scene), options_(options) {}

  std::string write() {
    for (std::size_t i = 0; i < scene_.streams.size(); ++i) add_creation(i);
    for (const SceneLaunch& launch : scene_.launches) add_launch(launch);
    for (std::size_t i = 0; i < scene_.streams.size(); ++i) add_destruction(i);
    for (const SceneQueue& queue : scene_.queues)
      if (queue.deleted_ns != 0 && queue.swq != 0)
        add(queue.deleted_ns, queue.process, 0, 3, "rocdevice.cpp", 1290,
            fmt::format("Deleting hardware queue 0x{:x} with refCount 0", address(queue)));
    return in_order();
  }

 private:
  struct Line {
    std::int64_t ns;
    int process;
    std::size_t thread;
    int level;
    const char* file;
    int place;
    std::string message;
  };
  const Scene& scene_;
  LogTextOptions options_;
  std::vector<Line> lines_;
  std::set<int> created_;

  bool is_old() const { return options_.rocm < 63; }  // the queue's object in place of its ring
  std::uint64_t address(const SceneQueue& queue) const { return is_old() ? queue.swq : queue.ring_base; }
  int packet_level() const { return options_.rocm == 72 ? 5 : 4; }

  void add(std::int64_t ns, int process, std::size_t thread, int level, const char* file, int place,
           std::string message) {
    if (level > options_.level) return;
    lines_.push_back({ns, process, thread, level, file, place, std::move(message)});
  }
  void add_call(std::int64_t ns, int process, std::size_t thread, const std::string& text) {
    if (!options_.has_calls) return;
    add(ns, process, thread, 3, "hip_stream.cpp", 293,
        options_.has_colours ? fmt::format("\x1b[32m {} \x1b[0m", text) : fmt::format(" {} ", text));
  }
  void add_return(std::int64_t ns, int process, std::size_t thread, const std::string& text) {
    if (options_.has_calls) add(ns, process, thread, 3, "hip_stream.cpp", 308, text);
  }

  void add_creation(std::size_t index) {
    const SceneStream& stream = scene_.streams[index];
    const SceneQueue& queue = scene_.queues[static_cast<std::size_t>(stream.queue)];
    const bool is_first = created_.insert(stream.queue).second;
    const std::int64_t begun = is_first ? queue.asked_ns : stream.created_ns - 1000;
    const auto put = [&](std::int64_t ns, int place, const std::string& text) {
      add(ns, stream.process, index, 3, "rocdevice.cpp", place, text);
    };
    add_call(begun, stream.process, index,
             fmt::format("hipStreamCreateWithPriority ( 0x7fffea224e88, 0, {} )", stream.priority));
    put(begun, 2967,
        fmt::format("{}umber of allocated hardware queues with low priority: 0, with normal priority: 0, with high "
                    "priority: 0, maximum per priority is: 4",
                    is_old() ? 'n' : 'N'));
    if (is_first) {
      put(queue.created_ns, 3048,
          is_old()
              ? fmt::format("created hardware queue 0x{:x} with size {} with priority {}, cooperative: 0", queue.swq,
                            queue.ring_bytes / 64, queue.priority)
              : fmt::format("Created SWq=0x{:x} to map on HWq=0x{:x} with size {} with priority {}, cooperative: 0",
                            queue.swq, queue.ring_base, queue.ring_bytes / 64, queue.priority));
      put(queue.created_ns, 3141, fmt::format("acquireQueue refCount: 0x{:x} (1)", address(queue)));
    } else {
      put(stream.created_ns, 2940, fmt::format("Selected queue refCount: 0x{:x} ({})", address(queue), rank(index)));
    }
    add_return(stream.created_ns, stream.process, index,
               fmt::format("hipStreamCreateWithPriority: Returned hipSuccess : stream:0x{:x}", stream.handle));
  }

  // How many streams are on this stream's queue once it is.
  int rank(std::size_t index) const {
    int count = 0;
    for (std::size_t i = 0; i <= index; ++i) count += scene_.streams[i].queue == scene_.streams[index].queue ? 1 : 0;
    return count;
  }

  void add_launch(const SceneLaunch& launch) {
    const auto thread = static_cast<std::size_t>(launch.stream);
    const SceneStream& stream = scene_.streams[thread];
    const SceneQueue& queue = scene_.queues[static_cast<std::size_t>(stream.queue)];
    const auto put = [&](std::int64_t ns, int level, const char* file, int place, const std::string& text) {
      add(ns, stream.process, thread, level, file, place, text);
    };
    add_call(launch.called_ns, stream.process, thread,
             fmt::format("hipLaunchKernel ( 0x200d68, {{{},1,1}}, {{{},1,1}}, 0x7fffea224e60, 0, stream:0x{:x} )",
                         launch.grid / launch.workgroup, launch.workgroup, stream.handle));
    put(launch.called_ns, packet_level(), "command.cpp", 357,
        is_old() ? std::string("Command (KernelExecution) enqueued: 0x2095b30")
                 : fmt::format("Command (KernelExecution) enqueued: 0x2095b30 to queue: 0x{:x}", stream.handle));
    if (options_.has_noise)
      put(launch.called_ns, 3, "rocvirtual.cpp", 790,
          "Arg0:   = ptr:0x7f3660902000 obj:[0x7f3660902000-0x7f3660903000]");
    put(launch.called_ns, 3, "rocvirtual.cpp", 3351, "ShaderName : " + launch.kernel);
    const std::string names =
        is_old() ? fmt::format("HWq=0x{:x}", queue.swq)
                 : fmt::format("SWq=0x{:x}, HWq=0x{:x}, id={}", queue.swq, queue.ring_base, queue.hsa_id);
    const std::string indexes = options_.rocm == 50 ? std::string()
                                                    : fmt::format(", correlation_id=0, rptr={}, wptr={}",
                                                                  static_cast<std::uint32_t>(launch.read_index),
                                                                  static_cast<std::uint32_t>(launch.write_index));
    put(launch.written_ns, packet_level(), "rocvirtual.cpp", 1083,
        fmt::format("{}, Dispatch Header = 0xb02 (type=2, barrier=1, acquire=1, release=1), setup=3, grid=[{}, 1, 1], "
                    "workgroup=[{}, 1, 1], private_seg_size=0, group_seg_size=0, kernel_obj=0x7f8ed23d8800, "
                    "kernarg_address=0x7f8acce00000, completion_signal=0x0{}",
                    names, launch.grid, launch.workgroup, indexes));
    if (options_.has_noise)
      put(launch.written_ns, 4, "command.cpp", 163,
          "Command 0x20b8d70 complete (Wall: 20161701438, CPU: 0, GPU: 0 us)");
    add_return(launch.returned_ns, stream.process, thread, "hipLaunchKernel: Returned hipSuccess : : duration: 5 us");
  }

  void add_destruction(std::size_t index) {
    const SceneStream& stream = scene_.streams[index];
    if (stream.destroyed_ns == 0) return;
    const SceneQueue& queue = scene_.queues[static_cast<std::size_t>(stream.queue)];
    int left = 0;
    for (const SceneStream& other : scene_.streams)
      left += other.queue == stream.queue && other.destroyed_ns > stream.destroyed_ns ? 1 : 0;
    add_call(stream.destroyed_ns - 1000, stream.process, index,
             fmt::format("hipStreamDestroy ( stream:0x{:x} )", stream.handle));
    add(stream.destroyed_ns - 1000, stream.process, index, 3, "rocdevice.cpp", 3150,
        fmt::format("releaseQueue refCount:0x{:x} ({})", address(queue), left));
    add_return(stream.destroyed_ns, stream.process, index, "hipStreamDestroy: Returned hipSuccess : ");
  }

  std::string process_text(const Line& line) const {
    const int pid = scene_.processes[static_cast<std::size_t>(line.process)].namespace_pid;
    const std::uint64_t tid = 0x7f8edc000000 + 0x1000 * (static_cast<std::uint64_t>(line.thread) + 1);
    switch (options_.rocm) {
      case 50:
        return fmt::format("{:<5}: [tid:0x{:x}]", pid, tid);
      case 60:
        return options_.level < 4 ? "" : fmt::format("[pid:{:<5} tid:0x{:x}]", pid, tid);
      case 63:
        return options_.level < 4 ? "" : fmt::format("[pid:{} tid: {:x}]", pid, tid);
      default:
        return options_.level < 4 ? "" : fmt::format("[pid:{} tid: 0x{:x}]", pid, tid);
    }
  }

  std::string in_order() {
    std::stable_sort(lines_.begin(), lines_.end(), [](const Line& a, const Line& b) { return a.ns < b.ns; });
    std::string text;
    const char* const end = options_.has_carriage_returns ? "\r\n" : "\n";
    if (options_.has_noise)
      text += fmt::format("/opt/amdgpu/share/libdrm/amdgpu.ids: No such file or directory{}", end);
    std::size_t number = 0;
    for (const Line& line : lines_) {
      ++number;
      if (options_.is_glued && number % 7 == 0) text += "3 seconds left...";
      if (options_.has_long_messages && number % 11 == 0)
        text +=
            fmt::format(":3:devprogram.cpp           :2684: {:010} us: {} comgr says:{}  first: 1{}\tHWq=0x1, second{}",
                        line.ns / 1000, process_text(line), end, end, end);
      text += fmt::format(":{}:{:<25}:{:<4}: {:010}{} us: {} {}{}", line.level, options_.has_places ? line.file : "",
                          options_.has_places ? line.place : 0, line.ns / 1000, options_.rocm == 63 ? "d" : "",
                          process_text(line), line.message, end);
    }
    return text;
  }
};

}  // namespace

std::string amd_log_text(const Scene& scene, const LogTextOptions& options) {
  return LogWriter(scene, options).write();
}

Scene sequential_scene(int streams, int queues, int rounds) {
  Scene scene;
  scene.gpus.emplace_back();
  scene.processes.emplace_back();
  std::int64_t now = 6'306'213'494'000;
  for (int i = 0; i < streams; ++i) {
    if (i < queues) {
      SceneQueue queue;
      queue.hsa_id = static_cast<std::uint32_t>(i + 1);
      queue.swq = 0x7f8edc1a8000 + static_cast<std::uint64_t>(i) * 0x4000;
      queue.ring_base = 0x7f8acd200000 + static_cast<std::uint64_t>(i) * 0x200000;
      queue.asked_ns = now += 100'000;
      queue.created_ns = now += i == 0 ? 9'177'000 : 4'500'000 + i * 10'000;
      scene.queues.push_back(queue);
    }
    SceneStream stream;
    stream.queue = i % queues;
    stream.handle = 0x1952000 + static_cast<std::uint64_t>(i) * 0x100;
    stream.created_ns = now += 50'000;
    scene.streams.push_back(stream);
  }
  for (int round = 0; round < rounds; ++round) {
    for (int i = 0; i < streams; ++i) {
      SceneLaunch launch;
      launch.stream = i;
      launch.called_ns = now += 10'000;
      launch.written_ns = now += 5'000;
      launch.returned_ns = now += 5'000;
      launch.write_index = static_cast<std::uint64_t>(round * (streams / queues) + i / queues);
      launch.read_index = launch.write_index / 2;
      scene.launches.push_back(launch);
    }
  }
  return scene;
}

}  // namespace weir::testing
