// A kernel package: a folder with a kernel in one or more forms and optionally a bench.yaml. Knows what is in the
// folder; compiles, opens and runs nothing.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kernel/precision.h"
#include "lab/kernels/package/condition.h"

namespace weir::package {

// pytorch and jax are backends of Python packages: the framework chooses the device.
enum class Backend : std::uint8_t { cpu, cuda, hip, opencl, pytorch, jax };
inline constexpr Backend kBackends[] = {Backend::cpu,    Backend::cuda,    Backend::hip,
                                        Backend::opencl, Backend::pytorch, Backend::jax};
constexpr bool is_framework(Backend backend) { return backend == Backend::pytorch || backend == Backend::jax; }
// The precisions of package kernels.
inline constexpr Precision kPrecisions[] = {Precision::fp64, Precision::fp32,     Precision::fp16,
                                            Precision::bf16, Precision::fp8_e4m3, Precision::fp8_e5m2};

constexpr std::string_view name_of(Backend backend) {
  constexpr std::string_view kNames[] = {"cpu", "cuda", "hip", "opencl", "pytorch", "jax"};
  return kNames[static_cast<int>(backend)];
}
using weir::name_of;
// As defined in include/weir/kernel.h.
constexpr std::uint32_t bit_of(Backend backend) { return 1U << static_cast<unsigned>(backend); }
inline constexpr std::uint32_t kBackendBits = 0xf, kPrecisionBits = 0x6f;  // that a table may name
// Nothing for unknown words. Names of other programs are understood: rocm is hip, torch is pytorch, and fp8 alone is
// fp8_e4m3.
std::optional<Backend> parse_backend(std::string_view word);
std::optional<Precision> parse_precision(std::string_view word);

// What a folder can contain: sources, in the order of the backends that they serve, and binaries. A device source
// without kernel.cpp beside it is its own host part.
enum class Form : std::uint8_t {
  host_source,    // kernel.cpp
  cuda_source,    // kernel.cu
  hip_source,     // kernel.hip
  opencl_source,  // kernel.cl
  library,        // kernel.so: built elsewhere
  executable,     // an executable file `kernel`, `kernel.py`, ...: exchanges JSON on stdin and stdout
  python,         // a Python module with a function run_benchmark(), or the one that bench.yaml names
};
std::string_view name_of(Form form);
// The source that serves a backend, and its file name.
constexpr Form source_of(Backend backend) { return is_framework(backend) ? Form::python : static_cast<Form>(backend); }
constexpr std::string_view source_file_of(Backend backend) {
  constexpr std::string_view kFiles[] = {"kernel.cpp", "kernel.cu",       "kernel.hip",
                                         "kernel.cl",  "a Python module", "a Python module"};
  return kFiles[static_cast<int>(backend)];
}

struct Part {
  Form form;
  std::filesystem::path file;
};

// One parameter with the values of its sweep; each value is one number, or several (grid: [[64, 64, 64]]).
struct Sweep {
  std::string name;
  std::vector<std::vector<double>> values;
};
// One value per parameter.
struct Setting {
  std::string name;
  std::vector<double> values;
  bool operator==(const Setting&) const = default;
};
using Problem = std::vector<Setting>;
// "rows=1024,grid=64x64x64"; empty for none.
std::string text_of(const Problem& problem);

// Limits beyond which a result is wrong. Empty: the precision's default (PrecisionFacts).
struct Tolerance {
  std::optional<double> rmse;
  std::optional<double> relative_error;
};

struct SkipCondition {
  std::optional<Backend> backend;  // nothing: any
  std::string reason;
  std::optional<Condition> check;  // nothing: always
};

enum class Compiler : std::uint8_t { automatic, runtime, ahead };  // NVRTC or hipRTC; nvcc or hipcc

// bench.yaml, or its defaults. Every key has an effect; keys without one are refused.
struct Config {
  std::vector<Sweep> problem_size;    // empty: the kernel's own defaults
  std::vector<Precision> precisions;  // empty: all that the kernel has
  std::vector<Backend> backends;      // empty: all that the package has
  Tolerance tolerances;               // for all precisions
  std::map<Precision, Tolerance> precision_tolerances;
  std::vector<SkipCondition> skip_conditions;
  std::optional<int> iterations;  // a command-line flag wins
  std::optional<int> warmup;
  std::optional<std::uint64_t> seed;
  std::optional<double> time_limit_s;      // of one case, in its process
  std::vector<std::string> dependencies;   // programs and libraries that must be installed: nvcc, libfoo.so.1
  std::vector<std::string> compile_flags;  // -O3, -DNAME=VALUE, -march=...; others are refused
  Compiler compiler = Compiler::automatic;
  std::vector<std::string> arguments;  // of an executable
  std::string function_name;           // of a Python module; empty: run_benchmark

  // The precision's own limits; where it has none, the common ones.
  Tolerance tolerance_of(Precision precision) const;
};

// Something that must be installed on the machine: nvcc, libfoo.so.1, OpenMP.
struct Dependency {
  std::string name;
  std::string needed_by;  // bench.yaml, which is authoritative, or the file that shows it: kernel.cu
};

struct Package {
  std::string name;              // of the folder; packages of the same name also carry their parents' names
  std::filesystem::path folder;  // absolute
  std::vector<Part> parts;       // at most one of each form
  std::vector<Dependency> dependencies;
  Config config;
  bool has_config = false;
  // Of a Python module, by what it imports: where it runs if nobody says; and whether it can use a GPU.
  Backend usual_backend = Backend::cpu;
  bool can_use_gpu = false;
  std::string trouble, hint;  // why it cannot run at all: it stays in manifest and report

  const Part* find(Form form) const;
  // The file name of its Python module; empty where it is of another form.
  std::string module_name() const;
  // Backends that its parts can serve: kernel.cpp serves cpu, kernel.cu cuda, ...; libraries and executables may serve
  // any, Python modules what bench.yaml lists or what they import can use.
  std::vector<Backend> backends() const;
};

// One measurement to make.
struct Case {
  Backend backend = Backend::cpu;
  Precision precision = Precision::fp32;
  Problem problem;
  std::uint64_t seed = 0;

  // "softmax/cuda/fp16/rows=1024": the key by which results are compared.
  std::string key(std::string_view package) const;
};

// All combinations of a sweep, in the order of the file; the last parameter varies fastest.
std::vector<Problem> problems_of(const std::vector<Sweep>& sweeps);

}  // namespace weir::package
