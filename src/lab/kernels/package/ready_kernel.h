// A kernel that is set up for one case and ready to run: what the method measures, whatever form the package has. Knows
// no statistics.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "device/device.h"
#include "lab/kernels/package/package.h"

namespace weir::package {

// The work of one run as declared by setup(); nothing where it did not.
struct Work {
  std::optional<double> flop, bytes, items;
  std::string item_name;
};

// The time of some runs, back to back.
struct BatchTime {
  double device_ns = 0;  // on the backend's clock, all runs together: events on GPUs, the host's clock on the CPU
  double host_ns = 0;    // time of the calls: if it is the larger part, the launch is what is measured
  std::optional<double> wall_ns;  // of an executable, as seen from outside
};

// One output of a checked run and its expected values, as doubles.
struct CheckedOutput {
  std::string name;
  std::vector<double> actual, expected;
  bool is_whole = false;  // integers: must be equal
};
// Errors that a kernel found itself, where its outputs are not shown with a reference.
struct ReportedErrors {
  std::optional<double> rmse, max_error, relative_error;
};
struct Checked {
  std::vector<CheckedOutput> outputs;
  std::string reason;  // why there is no reference to compare with
  std::optional<ReportedErrors> reported;
  std::vector<std::string> faults;  // that make the result wrong regardless of the numbers: wrote to its input "a"
};

struct KernelMemory {
  std::optional<std::uint64_t> allocated_bytes;  // buffers of the case
  std::optional<std::uint64_t> peak_bytes;       // of device or process, above the level before setup
  std::string reason;
};

// Made, used and destroyed by one thread. Functions fail (weir::Error) with the kernel's own message if it has one.
class ReadyKernel {
 public:
  virtual ~ReadyKernel() = default;

  virtual const Work& work() const = 0;
  // "called" (cpu), "nvrtc", "nvcc", "hiprtc", "hipcc", "opencl", "library", "executable", "python": what launched the
  // code, so that they are not confused; and where it ran, as seen by the harness.
  virtual std::string how() const = 0;
  virtual std::string device_name() const = 0;  // cuda:0
  virtual std::string device_model() const = 0;
  // How `device_ns` is measured, for people: "CUDA events", "CLOCK_MONOTONIC"; and the smallest difference it shows.
  virtual std::string clock() const = 0;
  virtual double resolution_ns() const = 0;

  // Runs `count` times with nothing in between, and waits. This is the hot path: on the CPU one indirect call per run.
  virtual BatchTime run(std::uint64_t count) = 0;
  // Runs once with no inputs in the caches; only the run is timed.
  virtual BatchTime run_cold() = 0;
  // Why there are no cold runs; empty if there are.
  virtual std::string cold_reason() const = 0;

  // Poisons outputs and scratch, runs once, reads outputs and computes the reference.
  virtual Checked check() = 0;
  virtual KernelMemory memory() = 0;
  // Of the device, including energy counters. Not free: some 5 ms with NVML on an H200.
  virtual Telemetry telemetry() = 0;
  // Only the energy counter, which is quicker to read; nothing if there is none.
  virtual std::optional<double> energy_j() { return telemetry().energy_j; }
  // Launches of one run that the harness saw; nothing if the package launches by itself.
  virtual std::optional<std::uint64_t> launches_per_run() const = 0;
};

// Turns a package into ready kernels. Opened once per process, then used case by case.
class OpenPackage {
 public:
  virtual ~OpenPackage() = default;
  // The package's description: bits as in include/weir/kernel.h, and parameters with their defaults.
  virtual std::uint32_t backends() const = 0;
  virtual std::uint32_t precisions() const = 0;
  virtual const std::string& summary() const = 0;
  virtual Problem defaults() const = 0;
  // `problem` may name some of the parameters; the others have their defaults. Rejects unknown parameters.
  virtual std::unique_ptr<ReadyKernel> prepare(const Case& wanted) = 0;
};

struct OpenOptions {
  std::filesystem::path cache;    // private folder for built libraries
  std::filesystem::path include;  // folder that contains weir/kernel.h; written from the embedded text
  int device = 0;                 // number within a backend: cuda:0
  int threads = 1;                // on the CPU
  std::string compiler = "c++";   // for host parts: a name or a path, one word
  double compile_limit_s = 120;
  double reply_limit_s = 600;  // for one answer of an executable
  std::function<bool()> is_stopped;
};

// Builds what has to be built (compiler output is part of the error), opens it, checks the ABI. Fails or rejects with a
// message that names package and file.
std::unique_ptr<OpenPackage> open_package(const Package& package, Backend backend, const OpenOptions& options);

}  // namespace weir::package
