// A kernel package: a folder with a kernel in one or more forms and, maybe, a bench.yaml. Knows what is in the folder;
// compiles, opens and runs nothing.
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

enum class Backend : std::uint8_t { cpu, cuda, hip, opencl };
inline constexpr Backend kBackends[] = {Backend::cpu, Backend::cuda, Backend::hip, Backend::opencl};
// Of kernels of packages.
inline constexpr Precision kPrecisions[] = {Precision::fp64, Precision::fp32, Precision::fp16, Precision::bf16};

constexpr std::string_view name_of(Backend backend) {
  constexpr std::string_view kNames[] = {"cpu", "cuda", "hip", "opencl"};
  return kNames[static_cast<int>(backend)];
}
using weir::name_of;
// As include/weir/kernel.h has them.
constexpr std::uint32_t bit_of(Backend backend) { return 1U << static_cast<unsigned>(backend); }
// Nothing for another word.
std::optional<Backend> parse_backend(std::string_view word);
std::optional<Precision> parse_precision(std::string_view word);

// What a folder can hold: sources, in the order of the backends that they serve, and what others have built. A device
// source without kernel.cpp beside it is its own host part.
enum class Form : std::uint8_t {
  host_source,    // kernel.cpp
  cuda_source,    // kernel.cu
  hip_source,     // kernel.hip
  opencl_source,  // kernel.cl
  library,        // kernel.so: built by somebody else
  executable,     // an executable file `kernel`, `kernel.py`, ...: talks JSON on stdin and stdout
};
std::string_view name_of(Form form);
// The source that serves a backend, and what its file is called.
constexpr Form source_of(Backend backend) { return static_cast<Form>(backend); }
constexpr std::string_view source_file_of(Backend backend) {
  constexpr std::string_view kFiles[] = {"kernel.cpp", "kernel.cu", "kernel.hip", "kernel.cl"};
  return kFiles[static_cast<int>(backend)];
}

struct Part {
  Form form;
  std::filesystem::path file;
};

// One parameter with the values that it is swept over; each value is one number, or several (grid: [[64, 64, 64]]).
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

// Limits beyond which a result is wrong. Empty: the default of the precision (PrecisionFacts).
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

// bench.yaml, or its defaults. Every key has an effect; one without is refused.
struct Config {
  std::vector<Sweep> problem_size;    // empty: the kernel's own defaults
  std::vector<Precision> precisions;  // empty: all that the kernel has
  std::vector<Backend> backends;      // empty: all that the package has
  Tolerance tolerances;               // of all precisions
  std::map<Precision, Tolerance> precision_tolerances;
  std::vector<SkipCondition> skip_conditions;
  std::optional<int> iterations;  // a flag of the command line wins
  std::optional<int> warmup;
  std::optional<std::uint64_t> seed;
  std::optional<double> time_limit_s;      // of one case, in its process
  std::vector<std::string> dependencies;   // programs and libraries that must be there: nvcc, libfoo.so.1
  std::vector<std::string> compile_flags;  // -O3, -DNAME=VALUE, -march=...; others are refused
  Compiler compiler = Compiler::automatic;
  std::vector<std::string> arguments;  // of an executable

  // The precision's own limits; those of all precisions for what it has none of.
  Tolerance tolerance_of(Precision precision) const;
};

// Something that has to be on the machine: nvcc, libfoo.so.1, OpenMP.
struct Dependency {
  std::string name;
  std::string needed_by;  // bench.yaml, which must be right; or the file that shows it: kernel.cu
};

struct Package {
  std::string name;              // of the folder; two of one name carry their parents' too
  std::filesystem::path folder;  // absolute
  std::vector<Part> parts;       // of each form one at most
  std::vector<Dependency> dependencies;
  Config config;
  bool has_config = false;
  std::string trouble, hint;  // why nothing of it can run: it stays in manifest and report

  const Part* find(Form form) const;
  // What its parts can serve at all: kernel.cpp serves cpu, kernel.cu cuda, ...; libraries and executables anything.
  std::vector<Backend> backends() const;
};

// One measurement to make.
struct Case {
  Backend backend = Backend::cpu;
  Precision precision = Precision::fp32;
  Problem problem;
  std::uint64_t seed = 0;

  // "softmax/cuda/fp16/rows=1024": what results are compared by.
  std::string key(std::string_view package) const;
};

// All combinations of a sweep, in the order of the file, the last parameter fastest.
std::vector<Problem> problems_of(const std::vector<Sweep>& sweeps);

}  // namespace weir::package
