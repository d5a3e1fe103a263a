// A small package for tests on devices: y = 1.5 x + 0.25, with a parameter `mode` that makes its run() misbehave.
// Its host part is built once per process.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>

#include "base/error.h"
#include "lab/kernels/package/build.h"
#include "lab/kernels/package/host_part.h"
#include "lab/kernels/package/ready_kernel.h"

namespace weir::testing {

// What run() does, as the source below has it.
enum class Mode {
  right,
  unknown_function,
  launches_nothing,
  undeclared_buffer,
  too_many_arguments,
  hides_error,   // as unknown_function, and run() returns 0
  huge_block,    // of a million threads
  not_a_number,  // the function writes NaN
  throws,
  returns_3,  // and error() has words
  renamed,    // two functions by one pointer: the text behind it changes
  writes_input,
  wrong_size,         // i64 where the function takes int
  too_few_arguments,  // in the second run
  leaves_a_hole,      // the last element is not written
  launches_once,      // and does nothing from then on
};

inline constexpr const char* kScaleHost = R"~(
#include <string.h>
#include <weir/kernel.h>

#include <stdexcept>

namespace {
struct State {
  WeirBuffer buffers[3];
  int count, mode, runs;
};
const double g_count[] = {1000}, g_mode[] = {0};
const WeirParameter g_parameters[] = {{"count", 1, g_count}, {"mode", 1, g_mode}};

int setup(const WeirProblem* problem, WeirSetup* setup, void** state) {
  State* s = new State();
  s->count = (int)problem->parameters[0].values[0];
  s->mode = (int)problem->parameters[1].values[0];
  const uint64_t count = (uint64_t)s->count;
  s->buffers[0] = {"x", WEIR_INPUT, WEIR_REAL, count, WEIR_UNIFORM, -1, 1};
  s->buffers[1] = {"y", WEIR_OUTPUT, WEIR_REAL, count, 0, 0, 0};
  s->buffers[2] = {"room", WEIR_SCRATCH, WEIR_I32, 4, 0, 0, 0};
  setup->buffer_count = 3;
  setup->buffers = s->buffers;
  setup->flop = 2.0 * s->count;
  *state = s;
  return 0;
}

int run(void* state, WeirStream* stream) {
  State* s = (State*)state;
  static char name[16];
  ++s->runs;
  if (s->mode == 2 || (s->mode == 15 && s->runs > 1)) return 0;
  if (s->mode == 8) throw std::runtime_error("thrown by run");
  if (s->mode == 9) return 3;
  WeirArgument arguments[80] = {weir_buffer(0), weir_buffer(1), weir_i32(s->mode == 14 ? s->count - 1 : s->count),
                                weir_f32(1.5f), weir_f64(0.25)};
  WeirLaunch launch = {"scale", {(uint32_t)(s->count + 63) / 64, 0, 0}, {64, 0, 0}, 0, 5, arguments};
  if (s->mode == 1 || s->mode == 5) launch.function = "no_such_function";
  if (s->mode == 3) arguments[1].buffer = 7;
  if (s->mode == 4) launch.argument_count = 80;
  if (s->mode == 6) launch.block[0] = 1 << 20;
  if (s->mode == 7) launch.function = "scale_nan";
  if (s->mode == 11) launch.function = "spoil";
  if (s->mode == 12) arguments[2] = weir_i64(s->count);
  if (s->mode == 13 && s->runs > 1) launch.argument_count = 3;
  if (s->mode == 10) {
    strcpy(name, "scale_nan");
    launch.function = name;
    if (int failed = stream->launch(stream, &launch)) return failed;
    strcpy(name, "scale");
  }
  const int failed = stream->launch(stream, &launch);
  return s->mode == 5 ? 0 : failed;
}

int reference(void* state, const double* const* inputs, double* const* outputs) {
  State* s = (State*)state;
  for (int i = 0; i < s->count; ++i) outputs[1][i] = inputs[0][i] * 1.5 + 0.25;
  return 0;
}

void teardown(void* state) { delete (State*)state; }
const char* error() { return "the kernel's own words"; }
}  // namespace

extern "C" const WeirKernel* weir_kernel() {
  static WeirKernel kernel;
  kernel.abi = WEIR_KERNEL_ABI;
  kernel.size = sizeof kernel;
  kernel.summary = "scales";
  kernel.backends = WEIR_CUDA | WEIR_HIP | WEIR_OPENCL;
  kernel.precisions = WEIR_FP64 | WEIR_FP32 | WEIR_FP16 | WEIR_BF16 | WEIR_FP8_E4M3 | WEIR_FP8_E5M2;
  kernel.parameter_count = 2;
  kernel.parameters = g_parameters;
  kernel.setup = setup;
  kernel.run = run;
  kernel.reference = reference;
  kernel.teardown = teardown;
  kernel.error = error;
  return &kernel;
}
)~";

// CUDA and HIP.
inline constexpr const char* kScaleCuda = R"~(
#include <weir/device.h>
extern "C" __global__ void scale(const weir_real* x, weir_real* y, int n, float factor, double offset) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) weir_store(y, i, weir_load(x, i) * (weir_acc)factor + (weir_acc)offset);
}
extern "C" __global__ void scale_nan(const weir_real*, weir_real* y, int n, float, double) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) weir_store(y, i, (weir_acc)__int_as_float(0x7fc00000));
}
extern "C" __global__ void spoil(weir_real* x, weir_real* y, int n, float factor, double offset) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  weir_store(y, i, weir_load(x, i) * (weir_acc)factor + (weir_acc)offset);
  weir_store(x, i, (weir_acc)0);
}
)~";

inline constexpr const char* kScaleOpencl = R"~(#include "weir/device.h"
#ifdef cl_khr_fp64
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
#endif
__kernel void scale(__global const weir_real* x, __global weir_real* y, int n, float factor, double offset) {
  const int i = get_global_id(0);
  if (i < n) weir_store(y, i, weir_load(x, i) * (weir_acc)factor + (weir_acc)offset);
}
__kernel void scale_nan(__global const weir_real* x, __global weir_real* y, int n, float factor, double offset) {
  const int i = get_global_id(0);
  if (i < n) weir_store(y, i, (weir_acc)nan(0u));
}
__kernel void spoil(__global weir_real* x, __global weir_real* y, int n, float factor, double offset) {
  const int i = get_global_id(0);
  if (i >= n) return;
  weir_store(y, i, weir_load(x, i) * (weir_acc)factor + (weir_acc)offset);
  weir_store(x, i, (weir_acc)0);
}
)~";

// Where tests build; goes with the process.
inline const std::filesystem::path& build_folder() {
  struct Folder {
    Folder() {
      std::string name = (std::filesystem::temp_directory_path() / "weir_package_XXXXXX").string();
      if (mkdtemp(name.data()) == nullptr) fail("there is no folder to build in");
      path = name;
    }
    ~Folder() {
      std::error_code ignored;
      std::filesystem::remove_all(path, ignored);
    }
    std::filesystem::path path;
  };
  static const Folder folder;
  return folder.path;
}

inline package::OpenOptions build_options() {
  package::OpenOptions options;
  options.cache = build_folder() / "cache";
  options.include = build_folder() / "include";
  return options;
}

// A package with one file; more may be added to its folder.
inline package::Package make_package(const std::string& name, package::Form form, const std::string& file,
                                     const std::string& text) {
  package::Package made;
  made.name = name;
  made.folder = build_folder() / name;
  std::filesystem::create_directories(made.folder);
  std::ofstream(made.folder / file) << text;
  made.parts.push_back({form, made.folder / file});
  return made;
}

inline std::shared_ptr<const package::HostPart> scale_host() {
  static const auto part = [] {
    const package::Package made = make_package("scale", package::Form::host_source, "kernel.cpp", kScaleHost);
    return std::make_shared<const package::HostPart>(package::build_host_part(made, made.parts[0], build_options()),
                                                     "scale");
  }();
  return part;
}

inline package::Case scale_case(package::Backend backend, Precision precision, Mode mode = Mode::right,
                                double count = 1000) {
  return {backend, precision, {{"count", {count}}, {"mode", {static_cast<double>(mode)}}}, 1337};
}

// The largest error of the first output, relative to the reference's largest value; NaN where one is not a number.
inline double error_of(const package::Checked& checked) {
  double error = 0, largest = 0;
  const package::CheckedOutput& output = checked.outputs.at(0);
  for (std::size_t i = 0; i < output.actual.size(); ++i) {
    const double difference = std::abs(output.actual[i] - output.expected.at(i));
    if (std::isnan(difference)) return difference;
    error = std::max(error, difference);
    largest = std::max(largest, std::abs(output.expected[i]));
  }
  return error / largest;
}

template <class Call>
std::string message_of(Call&& call) {
  try {
    call();
  } catch (const Error& error) {
    return std::string(error.what()) + "\n" + error.hint;
  }
  return "nothing failed";
}

}  // namespace weir::testing
