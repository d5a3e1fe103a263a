// OpenCL's loader as a table of functions, opened at run time, and the handling of its results. Knows no step.
#pragma once

#include "weir_build.h"

#if WEIR_HAVE_OPENCL
#ifndef CL_TARGET_OPENCL_VERSION
#define CL_TARGET_OPENCL_VERSION 300
#endif
#include <CL/cl.h>

#include <source_location>
#include <string>
#include <string_view>

#include "base/handle.h"
#include "base/vendor_library.h"

namespace weir {

// Entries are the loader's own functions. The optional ones are of OpenCL 2 and later, and null if the loader is older;
// a platform may be older than the loader, so check the device's version before calling them.
struct OpenclApi : VendorLibrary {
  OpenclApi() : VendorLibrary({"libOpenCL.so.1", "libOpenCL.so"}) {}

  decltype(&clGetPlatformIDs) get_platforms = need("clGetPlatformIDs");
  decltype(&clGetPlatformInfo) platform_info = need("clGetPlatformInfo");
  decltype(&clGetDeviceIDs) get_devices = need("clGetDeviceIDs");
  decltype(&clGetDeviceInfo) device_info = need("clGetDeviceInfo");
  decltype(&clCreateContext) create_context = need("clCreateContext");
  decltype(&clReleaseContext) release_context = need("clReleaseContext");
  decltype(&clGetExtensionFunctionAddressForPlatform) extension_function =
      need("clGetExtensionFunctionAddressForPlatform");

  decltype(&clCreateProgramWithSource) create_program = need("clCreateProgramWithSource");
  decltype(&clBuildProgram) build_program = need("clBuildProgram");
  decltype(&clGetProgramBuildInfo) build_info = need("clGetProgramBuildInfo");
  decltype(&clReleaseProgram) release_program = need("clReleaseProgram");
  decltype(&clGetProgramInfo) program_info = want("clGetProgramInfo");
  decltype(&clCreateProgramWithBinary) create_program_binary = want("clCreateProgramWithBinary");
  decltype(&clCreateKernel) create_kernel = need("clCreateKernel");
  decltype(&clSetKernelArg) set_argument = need("clSetKernelArg");
  decltype(&clGetKernelWorkGroupInfo) work_group_info = need("clGetKernelWorkGroupInfo");
  decltype(&clReleaseKernel) release_kernel = need("clReleaseKernel");

  decltype(&clCreateBuffer) create_buffer = need("clCreateBuffer");
  decltype(&clReleaseMemObject) release_memory = need("clReleaseMemObject");
  decltype(&clSVMAlloc) svm_allocate = want("clSVMAlloc");
  decltype(&clSVMFree) svm_free = want("clSVMFree");
  decltype(&clEnqueueSVMMemcpy) enqueue_svm = want("clEnqueueSVMMemcpy");
  decltype(&clEnqueueMapBuffer) enqueue_map = need("clEnqueueMapBuffer");
  decltype(&clEnqueueUnmapMemObject) enqueue_unmap = need("clEnqueueUnmapMemObject");

  // From OpenCL 1, deprecated since.
  cl_command_queue (*create_queue_1)(cl_context, cl_device_id, cl_command_queue_properties,
                                     cl_int*) = want("clCreateCommandQueue");
  decltype(&clCreateCommandQueueWithProperties) create_queue = want("clCreateCommandQueueWithProperties");
  decltype(&clReleaseCommandQueue) release_queue = need("clReleaseCommandQueue");
  decltype(&clEnqueueNDRangeKernel) enqueue_kernel = need("clEnqueueNDRangeKernel");
  decltype(&clEnqueueReadBuffer) enqueue_read = need("clEnqueueReadBuffer");
  decltype(&clEnqueueWriteBuffer) enqueue_write = need("clEnqueueWriteBuffer");
  decltype(&clEnqueueCopyBuffer) enqueue_copy = need("clEnqueueCopyBuffer");
  decltype(&clEnqueueFillBuffer) enqueue_fill = need("clEnqueueFillBuffer");
  decltype(&clEnqueueMarkerWithWaitList) enqueue_marker = need("clEnqueueMarkerWithWaitList");
  decltype(&clEnqueueBarrierWithWaitList) enqueue_barrier = need("clEnqueueBarrierWithWaitList");
  decltype(&clFlush) flush = need("clFlush");
  decltype(&clFinish) finish = need("clFinish");

  decltype(&clCreateUserEvent) create_user_event = need("clCreateUserEvent");
  decltype(&clSetUserEventStatus) set_user_event = need("clSetUserEventStatus");
  decltype(&clSetEventCallback) set_event_callback = need("clSetEventCallback");
  decltype(&clWaitForEvents) wait_for_events = need("clWaitForEvents");
  decltype(&clGetEventInfo) event_info = need("clGetEventInfo");
  decltype(&clGetEventProfilingInfo) event_times = need("clGetEventProfilingInfo");
  decltype(&clRetainEvent) retain_event = need("clRetainEvent");
  decltype(&clReleaseEvent) release_event = need("clReleaseEvent");
  decltype(&clGetDeviceAndHostTimer) device_timer = want("clGetDeviceAndHostTimer");
};

// Opens the loader on the first call; null with a reason if there is none. The table lives as long as the program.
const OpenclApi* opencl_api(std::string* reason);

// "CL_OUT_OF_RESOURCES (-5)"
std::string describe_opencl(cl_int result);
// Advice after an error that makes the device unusable; empty after others.
std::string opencl_lost_hint(cl_int result);

// A profiling time of an event, which may be null; kNoTime if the driver reports none.
std::int64_t opencl_time(const OpenclApi& api, cl_event event, cl_profiling_info which) noexcept;

// Throws unless `result` is success. `action` names the attempt: "creating a queue".
void check_opencl(cl_int result, std::string_view action, std::source_location where = std::source_location::current());

// Releases an object through an entry of the table; the result is ignored, because destructors must not throw.
template <class T, auto Entry>
struct OpenclClose {
  const OpenclApi* api = nullptr;
  void operator()(T value) const noexcept { (api->*Entry)(value); }
};
using OpenclContextOwner = Handle<cl_context, OpenclClose<cl_context, &OpenclApi::release_context>>;
using OpenclProgramOwner = Handle<cl_program, OpenclClose<cl_program, &OpenclApi::release_program>>;
using OpenclKernelOwner = Handle<cl_kernel, OpenclClose<cl_kernel, &OpenclApi::release_kernel>>;
using OpenclQueueOwner = Handle<cl_command_queue, OpenclClose<cl_command_queue, &OpenclApi::release_queue>>;
using OpenclMemoryOwner = Handle<cl_mem, OpenclClose<cl_mem, &OpenclApi::release_memory>>;
using OpenclEventOwner = Handle<cl_event, OpenclClose<cl_event, &OpenclApi::release_event>>;

}  // namespace weir
#endif
