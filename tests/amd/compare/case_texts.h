// Runtime logs of two programs, written line by line as ROCm 7 does, and timelines of the same: what a comparison is
// asked about. Knows no reader.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <string>

#include "measure/timeline.h"

namespace weir::testing {

// Lines of one process at level 4; without a pid as level 3 writes them, which has no packets.
class LogText {
 public:
  explicit LogText(int pid, std::uint64_t begin_us = 20'159'561'000, bool has_pid = true)
      : pid_(pid), now_us_(begin_us), has_pid_(has_pid) {}

  LogText& wait(std::uint64_t us) {
    now_us_ += us;
    return *this;
  }
  LogText& queue(std::uint64_t swq, std::uint64_t hwq, int priority = 1) {
    line(3, "rocdevice.cpp", 2967,
         "Number of allocated hardware queues with low priority: 0, with normal priority: 0, with high priority: 0, "
         "maximum per priority is: 4");
    wait(4500);
    line(3, "rocdevice.cpp", 3048,
         fmt::format("Created SWq={:#x} to map on HWq={:#x} with size 16384 with priority {}, cooperative: 0", swq, hwq,
                     priority));
    wait(20);
    line(3, "rocdevice.cpp", 3141, fmt::format("acquireQueue refCount: {:#x} (1)", hwq));
    return wait(10);
  }
  LogText& launch(std::uint64_t swq, std::uint64_t hwq, const std::string& kernel, std::uint64_t backlog = 0) {
    line(3, "rocvirtual.cpp", 3351, "ShaderName : " + kernel);
    if (!has_pid_) return *this;
    line(4, "rocvirtual.cpp", 1083,
         fmt::format("SWq={:#x}, HWq={:#x}, id=1, Dispatch Header = 0xb02 (type=2, barrier=1, acquire=1, release=1), "
                     "setup=3, grid=[1024, 1, 1], workgroup=[32, 1, 1], private_seg_size=0, group_seg_size=0, "
                     "kernel_obj=0x7f8ed23d8800, kernarg_address=0x7f8acce00000, completion_signal=0x0, "
                     "correlation_id=0, rptr={}, wptr={}",
                     swq, hwq, packets_, packets_ + backlog));
    ++packets_;
    return *this;
  }
  LogText& barrier(std::uint64_t swq, std::uint64_t hwq) {
    line(
        4, "rocvirtual.cpp", 1267,
        fmt::format("SWq={:#x}, HWq={:#x}, id=1, BarrierAND Header = 0x1503 (type=3, barrier=1, acquire=2, release=2), "
                    "dep_signal=[0x0, 0x0, 0x0, 0x0, 0x0], completion_signal=0x7f8ad13ff900, rptr={}, wptr={}",
                    swq, hwq, packets_, packets_));
    ++packets_;
    return *this;
  }
  LogText& copy(std::uint64_t bytes) {
    line(4, "rocblit.cpp", 700,
         fmt::format("HSA Async Copy on copy_engine=0x1, dst=0x7f0000000000, src=0x7f1000000000, size={}, forceSDMA=0, "
                     "wait_event=0x0, completion_signal=0x7f8ad13ff880",
                     bytes));
    return *this;
  }
  const std::string& text() const { return text_; }

 private:
  void line(int level, const char* file, int number, const std::string& message) {
    text_ += fmt::format(":{}:{:<25}:{:<4}: {:010} us: {} {}\n", level, file, number, now_us_,
                         has_pid_ ? fmt::format("[pid:{} tid: 0x7f8edc1c4400]", pid_) : "", message);
  }
  int pid_;
  std::uint64_t now_us_;
  bool has_pid_;
  std::uint64_t packets_ = 0;
  std::string text_;
};

// `count` kernels of `length_ns` each, one after the other on one queue, `pause_ns` after every `burst` of them.
inline Timeline kernels(int count, std::int64_t length_ns, std::int64_t pause_ns = 0, int burst = 10,
                        std::int32_t queue = 3) {
  Timeline timeline;
  timeline.source = "a test";
  timeline.names = {"gemm", "copy"};
  timeline.processes = {{0, "test", 0}};
  timeline.devices = {{0, 0, "GPU 0"}};
  timeline.streams = {{0, 7, "stream 7"}};
  if (queue != kNoQueue) timeline.queues = {{queue, 0, fmt::format("queue {}", queue)}};
  std::int64_t now = 1'000'000;
  for (int i = 0; i < count; ++i) {
    Span span;
    span.command = static_cast<std::uint32_t>(i);
    span.name = 0;
    span.queue = queue;
    span.submitted_ns = span.accepted_ns = now - 500;
    span.started_ns = now;
    // Not all the same, so that intervals have a width.
    span.ended_ns = now + length_ns + i % 7 * length_ns / 50;
    now = span.ended_ns + 100;
    if ((i + 1) % burst == 0) now += pause_ns;
    timeline.spans.push_back(span);
  }
  return timeline;
}

}  // namespace weir::testing
