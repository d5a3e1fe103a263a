// How fast the runtime's log is read: GB/s on the clock and on one core's time, the memory of a process that does
// nothing else, and `grep -c HWq=` on the same file in the same run. The bars are 1 GB/s per core, memory that does not
// depend on the file's size, and no more time than grep. Writes its own files (WEIR_BENCH_LOG_MB: their size, 1024 by
// default) to a temporary folder: one as dense as a real log of level 5 (48 lines and 6.6 kB per launch), one of level
// 4 with AMD_LOG_MASK=0x1009A, in which most lines count.
#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>

#include "amd/log/log_reader.h"
#include "amd/log/log_summary.h"

namespace {

using namespace weir::amd;
namespace fs = std::filesystem;

constexpr int kRuns = 7;
const char* const kGreen = "\x1b[32m";
const char* const kPlain = "\x1b[0m";

class LogWriter {
 public:
  LogWriter(const fs::path& path, bool is_full) : file_(std::fopen(path.c_str(), "wb")), is_full_(is_full) {
    if (file_ == nullptr) {
      fmt::print(stderr, "{}: cannot be written\n", path.string());
      std::exit(1);
    }
  }
  ~LogWriter() { std::fclose(file_); }
  LogWriter(const LogWriter&) = delete;
  LogWriter& operator=(const LogWriter&) = delete;

  std::uint64_t bytes() const { return bytes_; }
  std::uint64_t launches() const { return launches_; }

  void queue(int i) {
    line(3, "rocdevice.cpp", 2967,
         fmt::format("Number of allocated hardware queues with low priority: 0, with normal priority: {}, with high "
                     "priority: 0, maximum per priority is: 4",
                     i));
    time_us_ += 4500;
    line(3, "rocdevice.cpp", 3048,
         fmt::format("Created SWq=0x{:x} to map on HWq=0x{:x} with size 16384 with priority 1, cooperative: 0", swq(i),
                     hwq(i)));
    line(3, "rocdevice.cpp", 3141, fmt::format("acquireQueue refCount: 0x{:x} (1)", hwq(i)));
  }

  void launch() {
    const int queue = static_cast<int>(launches_ % 4);
    if (is_full_) {
      for (int i = 0; i < 15; ++i) {
        const bool sets = i % 3 == 0;
        call(sets ? "hipSetDevice" : "hipGetDevice", sets ? "0" : "0x73e303ffc944", sets ? "" : "0");
      }
      line(3, "hip_error.cpp", 34, fmt::format("{} hipGetLastError (  ) {}", kGreen, kPlain));
      call("__hipPushCallConfiguration", fmt::format("{{7,1,1}}, {{256,1,1}}, 0, stream:0x{:x}", stream(queue)), "");
      call("__hipPopCallConfiguration", "{0,0,0}, {0,0,0}, 0x73e303ffc508, 0x73e303ffc4f8", "");
      line(
          3, "hip_module.cpp", 825,
          fmt::format("{} hipLaunchKernel ( 0x73e528bd75e0, {{7,1,1}}, {{256,1,1}}, 0x73e303ffc530, 0, stream:0x{:x} ) "
                      "{}",
                      kGreen, stream(queue), kPlain));
    }
    line(4, "command.cpp", 357,
         fmt::format("Command (KernelExecution) enqueued: 0x73e2213ee450 to queue: 0x{:x}", stream(queue)));
    for (int i = 0; i < 3; ++i)
      line(3, "rocvirtual.cpp", 790,
           fmt::format("Arg{}:   = ptr:0x7f3660902000 obj:[0x7f3660902000-0x7f3660903000]", i));
    line(3, "rocvirtual.cpp", 883, "Arg3:   = val:0x400 (size:0x4)");
    line(3, "rocvirtual.cpp", 3351,
         fmt::format("ShaderName : void at::native::vectorized_elementwise_kernel<4, at::native::Functor_{}<float>, "
                     "std::array<char*, 3ul> >(int, at::native::Functor_{}<float>, std::array<char*, 3ul>)",
                     launches_ % 37, launches_ % 37));
    if (is_full_) line(5, "rocvirtual.cpp", 3549, "KernargSegmentByteSize = 272 KernargSegmentAlignment = 128");
    packet(
        "Dispatch Header = 0xb02 (type=2, barrier=1, acquire=1, release=1), setup=3, grid=[1792, 1, 1], "
        "workgroup=[256, 1, 1], private_seg_size=0, group_seg_size=0, kernel_obj=0x73e18aa72f80, "
        "kernarg_address=0x73e2a4a01580, completion_signal=0x0, correlation_id=0",
        queue);
    if (is_full_) line(3, "hip_module.cpp", 827, "hipLaunchKernel: Returned hipSuccess : : duration: 40 us");
    if (launches_ % 4 == 3) {
      line(4, "command.cpp", 357,
           fmt::format("Command (InternalMarker) enqueued: 0x20b8d70 to queue: 0x{:x}", stream(queue)));
      packet(
          "BarrierAND Header = 0x1503 (type=3, barrier=1, acquire=2, release=2), dep_signal=[0x0, 0x0, 0x0, 0x0, "
          "0x0], completion_signal=0x7f8ad13ff900",
          queue);
      if (is_full_) line(4, "rocvirtual.cpp", 633, "Host wait on completion_signal=0x7f8ad13ff900");
      line(4, "command.cpp", 169, "Command 0x2095b30 complete");
      line(4, "command.cpp", 163, "Command 0x20b8d70 complete (Wall: 20161701438, CPU: 0, GPU: 0 us)");
    }
    ++launches_;
    time_us_ += 40;
  }

 private:
  std::FILE* file_;
  bool is_full_;
  std::uint64_t bytes_ = 0, launches_ = 0, time_us_ = 38'362'352'065, packets_[4] = {};

  static std::uint64_t hwq(int i) { return 0x7f9567e00000 + static_cast<std::uint64_t>(i) * 0x200000; }
  static std::uint64_t swq(int i) { return 0x7f96fb1d4000 + static_cast<std::uint64_t>(i) * 0x4000; }
  static std::uint64_t stream(int i) { return 0x73e2ec01cb20 + static_cast<std::uint64_t>(i) * 0x1000; }

  void line(int level, const char* file, int place, const std::string& message) {
    const std::string text = fmt::format(":{}:{:<25}:{:<4}: {:010} us: [pid:158036 tid: 0x73e303fff6c0] {}\n", level,
                                         file, place, ++time_us_, message);
    bytes_ += std::fwrite(text.data(), 1, text.size(), file_);
  }
  void call(const char* name, const std::string& arguments, const char* result) {
    line(3, "hip_device_runtime.cpp", 693, fmt::format("{} {} ( {} ) {}", kGreen, name, arguments, kPlain));
    line(3, "hip_device_runtime.cpp", 705, fmt::format("{}: Returned hipSuccess : {}", name, result));
  }
  void packet(const char* text, int queue) {
    line(4, "rocvirtual.cpp", 1083,
         fmt::format("SWq=0x{:x}, HWq=0x{:x}, id={}, {}, rptr={}, wptr={}", swq(queue), hwq(queue), queue + 1, text,
                     packets_[queue], packets_[queue]));
    ++packets_[queue];
  }
};

struct Timing {
  double wall_s = 1e9, core_s = 1e9;
  long peak_kb = 0;
};

// In a process of its own, so that its memory is its own too.
template <typename Work>
Timing timed(const Work& work) {
  Timing timing;
  const auto begin = std::chrono::steady_clock::now();
  const pid_t child = ::fork();
  if (child == 0) {
    work();
    ::_exit(0);
  }
  int status = 0;
  rusage usage{};
  ::wait4(child, &status, 0, &usage);
  timing.wall_s = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  if (status != 0) {
    fmt::print(stderr, "a run failed\n");
    std::exit(1);
  }
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
  };
  timing.core_s = seconds(usage.ru_utime) + seconds(usage.ru_stime);
  timing.peak_kb = usage.ru_maxrss;
  return timing;
}

void keep_best(Timing& best, const Timing& run) {
  best.wall_s = std::min(best.wall_s, run.wall_s);
  best.core_s = std::min(best.core_s, run.core_s);
  best.peak_kb = std::max(best.peak_kb, run.peak_kb);
}

void measure(const fs::path& folder, const char* name, bool is_full, std::uint64_t size) {
  const fs::path path = folder / "amd.log";
  std::uint64_t launches = 0, bytes = 0;
  {
    LogWriter writer(path, is_full);
    for (int i = 0; i < 4; ++i) writer.queue(i);
    while (writer.bytes() < size) writer.launch();
    launches = writer.launches();
    bytes = writer.bytes();
  }
  const auto read = [&](unsigned threads) {
    LogSummary summary;
    LogOptions options;
    options.threads = threads;
    read_log(path, summary, options);
    // The work is checked where it is timed.
    if (summary.processes().size() != 1 || summary.processes()[0].dispatches != launches) ::_exit(1);
  };
  // Through a pipe: grep stops at the first line that it finds where its output is /dev/null.
  const std::string command = "LC_ALL=C grep -c HWq= '" + path.string() + "' | cat > " + (folder / "count").string();
  Timing all, one, grep;
  for (int run = 0; run < kRuns; ++run) {
    keep_best(all, timed([&] { read(0); }));
    keep_best(grep, timed([&] {
                if (std::system(command.c_str()) != 0) ::_exit(1);
              }));
    keep_best(one, timed([&] { read(1); }));
  }
  const auto print = [&](const char* what, const Timing& timing, bool has_memory) {
    fmt::print("{:<22} {:>6} {:<12} {:>7.3f} {:>6.2f} {:>9.2f} {:>9} {:>7.2f}\n", name, bytes >> 20, what,
               timing.wall_s, static_cast<double>(bytes) / timing.wall_s * 1e-9,
               static_cast<double>(bytes) / timing.core_s * 1e-9,
               has_memory ? fmt::format("{:.1f}", static_cast<double>(timing.peak_kb) / 1024) : "-",
               timing.wall_s / grep.wall_s);
  };
  print("weir", all, true);
  print("weir, 1 core", one, true);
  print("grep -c HWq=", grep, false);
  fs::remove(path);
}

}  // namespace

int main() {
  const char* const asked = std::getenv("WEIR_BENCH_LOG_MB");
  const std::uint64_t size = std::max<std::uint64_t>(8, asked == nullptr ? 1024 : std::strtoull(asked, nullptr, 10))
                             << 20;
  std::string folder = (fs::temp_directory_path() / "weir-bench-XXXXXX").string();
  if (::mkdtemp(folder.data()) == nullptr) return 1;
  fmt::print("AMD log: best of {} runs\n{:<22} {:>6} {:<12} {:>7} {:>6} {:>9} {:>9} {:>7}\n", kRuns, "file", "MiB",
             "reader", "s", "GB/s", "GB/s/core", "peak MiB", "/ grep");
  measure(folder, "level 5", true, size / 8);
  measure(folder, "level 5", true, size);
  measure(folder, "level 4, mask 0x1009A", false, size);
  fs::remove_all(folder);
  return 0;
}
