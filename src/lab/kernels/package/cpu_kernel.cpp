// Kernels on the CPU: run() is called in the thread that measures, with nothing between two calls.
#include <fmt/format.h>
#include <sched.h>

#include <algorithm>
#include <cstring>
#include <limits>

#include "base/clock.h"
#include "base/error.h"
#include "base/file.h"
#include "device/cpu/host.h"
#include "lab/kernels/package/backends.h"
#include "lab/kernels/package/host_memory.h"

namespace weir::package {
namespace {

// The smallest observed step of the clock. Reading it takes longer than a step on most machines; then this is the
// smallest difference between two readings.
double clock_resolution_ns() {
  static const double resolution = [] {
    std::int64_t least = std::numeric_limits<std::int64_t>::max();
    for (int i = 0; i < 1000; ++i) {
      const std::int64_t start = now_ns();
      std::int64_t next = start;
      while (next == start) next = now_ns();
      least = std::min(least, next - start);
    }
    return static_cast<double>(least);
  }();
  return resolution;
}

// This thread's core may be faster than the first one, which host_telemetry() reads.
void put_own_clock(Telemetry& telemetry) {
  const int core = ::sched_getcpu();
  if (core <= 0) return;
  const std::string path = fmt::format("/sys/devices/system/cpu/cpu{}/cpufreq/scaling_cur_freq", core);
  const double khz = std::strtod(read_kernel_file(path).c_str(), nullptr);
  if (khz > 0) telemetry.clock_mhz = std::max(telemetry.clock_mhz.value_or(0), khz / 1000);
}

// After each buffer: writing past its end changes these bytes.
constexpr std::uint64_t kGuardBytes = 256;
constexpr std::byte kGuard{0xa5};

class CpuKernel final : public ReadyKernel {
 public:
  CpuKernel(std::shared_ptr<const HostPart> part, const Case& wanted, int threads, std::string how)
      : part_(std::move(part)), case_(*part_, wanted, threads), how_(std::move(how)), emptier_(last_cache_bytes()) {
    for (std::size_t i = 0; i < case_.buffer_count(); ++i) {
      buffers_.push_back(allocate_host(case_.bytes(i) + kGuardBytes,
                                       fmt::format("{}: buffer '{}'", part_->name(), case_.buffer(i).name)));
      std::memset(buffers_.back().get() + case_.bytes(i), static_cast<int>(kGuard), kGuardBytes);
      pointers_.push_back(buffers_.back().get());
      extents_.emplace_back(buffers_.back().get(), case_.bytes(i));
    }
    // Filled by the thread that runs the kernel, so that pages are on its NUMA node. Other memory that fill() needs is
    // the harness's.
    peak_.pause();
    for (std::size_t i = 0; i < buffers_.size(); ++i) case_.write_initial(i, buffers_[i].get());
    peak_.resume();
    stream_.size = sizeof stream_;
    stream_.backend = WEIR_CPU;
    stream_.precision = bit_of(wanted.precision);
    stream_.buffers = pointers_.data();
  }

  const Work& work() const override { return case_.work(); }
  std::string how() const override { return how_; }
  std::string device_name() const override { return "cpu"; }
  std::string device_model() const override { return cpu::host_model({}); }
  std::string clock() const override { return "CLOCK_MONOTONIC"; }
  double resolution_ns() const override { return clock_resolution_ns(); }

  BatchTime run(std::uint64_t count) override {
    const auto function = part_->table().run;
    void* const state = case_.state();
    int results = 0;  // or-ed, to avoid a branch per run
    std::int64_t start = 0, end = 0;
    try {
      start = now_ns();
      for (std::uint64_t i = 0; i < count; ++i) results |= function(state, &stream_);
      end = now_ns();
    } catch (...) {
      part_->fail_with_exception("run");
    }
    if (results != 0) part_->fail_with("run", results);
    const auto elapsed_ns = static_cast<double>(end - start);
    return {elapsed_ns, elapsed_ns, std::nullopt};
  }

  BatchTime run_cold() override {
    if (!cold_reason().empty()) fail(fmt::format("{}: no cold runs: {}", part_->name(), cold_reason()));
    if (!is_emptier_used_) peak_.pause();
    emptier_.empty(extents_);
    if (!is_emptier_used_) peak_.resume(emptier_.bytes());
    is_emptier_used_ = true;
    return run(1);
  }
  std::string cold_reason() const override { return emptier_.reason(); }

  Checked check() override {
    for (std::size_t i = 0; i < buffers_.size(); ++i)
      if (case_.buffer(i).role != WEIR_INPUT) case_.write_initial(i, buffers_[i].get());
    run(1);
    peak_.pause();
    const std::uint64_t kept_before = case_.kept_bytes();
    Checked checked;
    {
      std::vector<std::vector<std::byte>> after(buffers_.size());
      for (std::size_t i = 0; i < buffers_.size(); ++i)
        if (case_.buffer(i).role != WEIR_SCRATCH)
          after[i].assign(buffers_[i].get(), buffers_[i].get() + case_.bytes(i));
      checked = case_.compare(after);
    }
    for (std::size_t i = 0; i < buffers_.size(); ++i) {
      const std::byte* const guard = buffers_[i].get() + case_.bytes(i);
      if (!std::all_of(guard, guard + kGuardBytes, [](std::byte byte) { return byte == kGuard; }))
        checked.faults.push_back(fmt::format("wrote past the end of '{}'", case_.buffer(i).name));
    }
    // The caller still holds the numbers, and the case its reference: neither counts as the kernel's memory.
    std::uint64_t kept = case_.kept_bytes() - kept_before;
    for (const CheckedOutput& output : checked.outputs)
      kept += (output.actual.size() + output.expected.size()) * sizeof(double);
    peak_.resume(kept);
    return checked;
  }

  KernelMemory memory() override { return {case_.total_bytes(), peak_.bytes(), peak_.reason()}; }

  Telemetry telemetry() override {
    Telemetry telemetry = cpu::host_telemetry({});
    put_own_clock(telemetry);
    return telemetry;
  }
  std::optional<std::uint64_t> launches_per_run() const override { return std::nullopt; }

 private:
  PeakMemory peak_;  // first, so that it starts before setup() allocates anything
  std::shared_ptr<const HostPart> part_;
  HostCase case_;
  std::string how_;
  std::vector<HostMemory> buffers_;
  std::vector<void*> pointers_;
  std::vector<std::pair<std::byte*, std::uint64_t>> extents_;
  WeirStream stream_{};
  CacheEmptier emptier_;
  bool is_emptier_used_ = false;
};

class CpuPackage final : public HostPackage {
 public:
  CpuPackage(std::shared_ptr<const HostPart> host_part, const OpenOptions& options, std::string how)
      : HostPackage(std::move(host_part)), threads_(options.threads), how_(std::move(how)) {}

  std::unique_ptr<ReadyKernel> prepare(const Case& wanted) override {
    return std::make_unique<CpuKernel>(part(), wanted, threads_, how_);
  }

 private:
  int threads_;
  std::string how_;
};

}  // namespace

std::unique_ptr<OpenPackage> open_cpu(std::shared_ptr<const HostPart> part, const OpenOptions& options,
                                      std::string how) {
  return std::make_unique<CpuPackage>(std::move(part), options, std::move(how));
}

}  // namespace weir::package
