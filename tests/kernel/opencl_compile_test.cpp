// Every OpenCL body compiles for every type that it has, on the first platform of this machine, and accepts the
// work-groups that launches ask for. Opens the loader itself: the program does so too, and links none.
#include <gtest/gtest.h>

#include "weir_build.h"

#if WEIR_HAVE_OPENCL

#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>
#include <dlfcn.h>

#include <bit>
#include <cstdint>
#include <string>
#include <vector>

#include "kernel/kernel.h"
#include "kernel/opencl_source.h"
#include "kernel/region.h"

namespace weir {
namespace {

struct Loader {
  Loader() : library(dlopen("libOpenCL.so.1", RTLD_NOW | RTLD_LOCAL)) {}
  template <class Function>
  Function* find(const char* name) const {
    return reinterpret_cast<Function*>(dlsym(library, name));
  }
  void* library;
};
// The function of that name, typed as the header declares it.
#define WEIR_CL(function) (loader().find<decltype(function)>(#function))

const Loader& loader() {
  static const Loader kLoader;
  return kLoader;
}

class OpenclCompile : public testing::Test {
 protected:
  void SetUp() override {
    if (loader().library == nullptr) GTEST_SKIP() << "libOpenCL.so.1 was not found";
    cl_uint count = 0;
    if (WEIR_CL(clGetPlatformIDs)(1, &platform_, &count) != CL_SUCCESS || count == 0)
      GTEST_SKIP() << "OpenCL has no platform on this machine";
    if (WEIR_CL(clGetDeviceIDs)(platform_, CL_DEVICE_TYPE_ALL, 1, &device_, &count) != CL_SUCCESS || count == 0)
      GTEST_SKIP() << "the first OpenCL platform has no device";
    cl_int error = CL_SUCCESS;
    context_ = WEIR_CL(clCreateContext)(nullptr, 1, &device_, nullptr, nullptr, &error);
    ASSERT_EQ(error, CL_SUCCESS);
  }
  void TearDown() override {
    if (context_ != nullptr) WEIR_CL(clReleaseContext)(context_);
  }

  // What the compiler says where it refuses; empty where it builds. `entry` is then looked at.
  template <class Look>
  std::string build(const std::string& source, const std::string& options, const std::string& entry, Look&& look) {
    const char* text = source.c_str();
    cl_int error = CL_SUCCESS;
    const cl_program program = WEIR_CL(clCreateProgramWithSource)(context_, 1, &text, nullptr, &error);
    EXPECT_EQ(error, CL_SUCCESS);
    std::string log;
    if (WEIR_CL(clBuildProgram)(program, 1, &device_, options.c_str(), nullptr, nullptr) != CL_SUCCESS) {
      std::vector<char> said(65536, '\0');
      WEIR_CL(clGetProgramBuildInfo)
      (program, device_, CL_PROGRAM_BUILD_LOG, said.size(), said.data(), nullptr);
      log = "does not build: " + std::string(said.data());
    } else {
      const cl_kernel kernel = WEIR_CL(clCreateKernel)(program, entry.c_str(), &error);
      if (error != CL_SUCCESS) {
        log = "has no " + entry;
      } else {
        look(kernel);
        WEIR_CL(clReleaseKernel)(kernel);
      }
    }
    WEIR_CL(clReleaseProgram)(program);
    return log;
  }

  cl_platform_id platform_ = nullptr;
  cl_device_id device_ = nullptr;
  cl_context context_ = nullptr;
};

std::string source_of(std::string_view kernel) {
  return std::string(opencl_source("prelude")) + std::string(opencl_source(kernel));
}
std::string options_for(ElementType type) {
  constexpr std::string_view kNames[] = {"F32", "F16", "BF16", "I32"};
  return "-cl-std=CL1.2 -DWEIR_TICKS_PER_SECOND=1000000000ul -DWEIR_" +
         std::string(kNames[static_cast<std::size_t>(type)]);
}
// The element types that a kernel is launched with; those of the device code of other GPUs.
std::vector<ElementType> types_of(const Kernel& kernel) {
  for (const std::string_view name : {"increase", "accept", "advance", "admit", "route", "stamp", "hold", "toil"})
    if (kernel.name == name) return {ElementType::i32};
  if (kernel.name == "spin" || kernel.name == "clip") return {ElementType::f32};
  std::vector<ElementType> types = {ElementType::f32, ElementType::f16, ElementType::bf16};
  for (const std::string_view name : {"gather", "scatter", "copy", "fill", "transpose"})
    if (kernel.name == name) types.push_back(ElementType::i32);
  return types;
}

TEST_F(OpenclCompile, every_body_builds_for_every_type) {
  for (const Kernel& each : kernels()) {
    if (each.is_host_only || is_region(each)) continue;
    for (const ElementType type : types_of(each)) {
      const std::string trace = std::string(each.name) + ' ' + std::string(name_of(type));
      cl_uint arguments = 0;
      cl_ulong local_bytes = 0;
      size_t max_threads = 0;
      const std::string said =
          build(source_of(each.name), options_for(type), "weir_" + std::string(each.name), [&](cl_kernel kernel) {
            WEIR_CL(clGetKernelInfo)(kernel, CL_KERNEL_NUM_ARGS, sizeof arguments, &arguments, nullptr);
            const auto ask = WEIR_CL(clGetKernelWorkGroupInfo);
            ask(kernel, device_, CL_KERNEL_LOCAL_MEM_SIZE, sizeof local_bytes, &local_bytes, nullptr);
            ask(kernel, device_, CL_KERNEL_WORK_GROUP_SIZE, sizeof max_threads, &max_threads, nullptr);
          });
      EXPECT_EQ(said, "") << trace;
      EXPECT_EQ(arguments, 7u) << trace;
      EXPECT_LE(local_bytes, 48u * 1024) << trace;  // what every GPU has
      EXPECT_GE(max_threads, 32u) << trace;
    }
  }
}

TEST_F(OpenclCompile, a_body_that_is_wrong_does_not_build) {
  const auto nothing = [](cl_kernel) {};
  EXPECT_NE(build(source_of("copy") + "\nfloat f(", options_for(ElementType::f32), "weir_copy", nothing), "");
  EXPECT_NE(build(source_of("copy"), "-cl-std=CL1.2", "weir_copy", nothing), "") << "without a type";
  EXPECT_NE(build(source_of("copy"), options_for(ElementType::f32), "weir_fill", nothing), "");
}

// Row kernels are launched with as few as 32 work-items and as many as 1024: a device with fewer clamps them.
TEST_F(OpenclCompile, row_kernels_run_in_small_and_large_work_groups) {
  constexpr std::size_t kColumns = 1000;
  struct Arguments {
    cl_ulong offsets[kMaxOperands];
    cl_long dims[kMaxDims];
    cl_float scalars[kMaxScalars];
  };
  cl_int error = CL_SUCCESS;
  const cl_command_queue queue = WEIR_CL(clCreateCommandQueue)(context_, device_, 0, &error);
  ASSERT_EQ(error, CL_SUCCESS);
  for (const std::string_view name : {"softmax", "reduce", "arg_max"}) {
    const std::string said =
        build(source_of(name), options_for(ElementType::f32), "weir_" + std::string(name), [&](cl_kernel kernel) {
          size_t most = 0;
          WEIR_CL(clGetKernelWorkGroupInfo)
          (kernel, device_, CL_KERNEL_WORK_GROUP_SIZE, sizeof most, &most, nullptr);
          for (const size_t threads : {32u, 256u, 1024u}) {
            if (threads > most) continue;
            std::vector<float> in(kColumns, 0.5f), out(kColumns, -1.0f);
            in[700] = 0.75f;
            const auto buffer = [&](std::vector<float>& from) {
              return WEIR_CL(clCreateBuffer)(context_, CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR,
                                             from.size() * sizeof(float), from.data(), &error);
            };
            const cl_mem operands[] = {buffer(in), buffer(out)};
            const Arguments arguments{{}, {1, kColumns, name == "reduce" ? 1 : 0, 0}, {}};
            for (cl_uint i = 0; i < kMaxOperands; ++i)
              WEIR_CL(clSetKernelArg)(kernel, i, sizeof(cl_mem), i < 2 ? &operands[i] : nullptr);
            WEIR_CL(clSetKernelArg)(kernel, kMaxOperands, sizeof arguments, &arguments);
            ASSERT_EQ(
                WEIR_CL(clEnqueueNDRangeKernel)(queue, kernel, 1, nullptr, &threads, &threads, 0, nullptr, nullptr),
                CL_SUCCESS);
            ASSERT_EQ(WEIR_CL(clEnqueueReadBuffer)(queue, operands[1], CL_TRUE, 0, kColumns * sizeof(float), out.data(),
                                                   0, nullptr, nullptr),
                      CL_SUCCESS);
            for (const cl_mem operand : operands) WEIR_CL(clReleaseMemObject)(operand);
            SCOPED_TRACE(std::string(name) + ' ' + std::to_string(threads));
            if (name == "reduce") {
              EXPECT_EQ(out[0], 500.25f);
            } else if (name == "arg_max") {
              EXPECT_EQ(std::bit_cast<std::int32_t>(out[0]), 700);
            } else {
              EXPECT_NEAR(out[700], 1.28402542 / 1000.28402542, 1e-8);  // exp(0.25) against 999 ones
            }
          }
        });
    EXPECT_EQ(said, "");
  }
  WEIR_CL(clReleaseCommandQueue)(queue);
}

}  // namespace
}  // namespace weir

#endif
