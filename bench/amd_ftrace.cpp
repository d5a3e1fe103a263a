// How fast kernel traces are read: a trace of functions of the driver, most of them not of KFD, from memory.
#include <fmt/format.h>

#include "amd/ftrace/summary.h"
#include "base/clock.h"

int main() {
  std::string block;
  for (int i = 0; i < 1000; ++i) {
    const int us = 100 + i * 900;
    const auto line = [&](int at, const char* body) {
      block += fmt::format("         python3-{:<7} [{:03}] ..... 175037.{:06}: {}\n", 157801 + i % 4, i % 8, at, body);
    };
    line(us, "kfd_ioctl <-__x64_sys_ioctl");
    line(us + 1, "kfd_ioctl_create_queue <-kfd_ioctl");
    line(us + 2, "create_queue_cpsch <-pqm_create_queue");
    line(us + 3, "init_mqd <-create_queue_cpsch");
    for (int j = 0; j < 40; ++j) line(us + 10 + j, "amdgpu_vm_bo_update <-amdgpu_vm_handle_moved");
  }
  std::string text;
  while (text.size() < (std::size_t{256} << 20)) text += block;
  weir::ftrace::KfdSummary summary;
  const auto source = weir::bytes_of(text);
  const std::int64_t began = weir::now_ns();
  const weir::ftrace::FtraceCounters counters = weir::ftrace::read_ftrace(*source, summary);
  const double seconds = static_cast<double>(weir::now_ns() - began) / 1e9;
  fmt::print("ftrace: {} lines, {:.0f} MB in {:.2f} s: {:.0f} MB/s, {:.1f} M lines/s; {} creates\n", counters.lines,
             static_cast<double>(text.size()) / 1e6, seconds, static_cast<double>(text.size()) / 1e6 / seconds,
             static_cast<double>(counters.lines) / 1e6 / seconds, summary.creates());
}
