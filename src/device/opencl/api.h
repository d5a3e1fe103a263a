// OpenCL's loader as a table of functions, opened at run time, and what its results become. Knows no step.
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

namespace weir {

// Entries are the loader's own functions. Those of OpenCL 2 and later are null where the loader is older; a platform
// may be older than the loader, so ask the device's version before calling them.
struct OpenclApi {
  decltype(&clGetPlatformIDs) get_platforms = nullptr;
  decltype(&clGetPlatformInfo) platform_info = nullptr;
  decltype(&clGetDeviceIDs) get_devices = nullptr;
  decltype(&clGetDeviceInfo) device_info = nullptr;
  decltype(&clCreateContext) create_context = nullptr;
  decltype(&clReleaseContext) release_context = nullptr;
  decltype(&clGetExtensionFunctionAddressForPlatform) extension_function = nullptr;

  decltype(&clCreateProgramWithSource) create_program = nullptr;
  decltype(&clBuildProgram) build_program = nullptr;
  decltype(&clGetProgramBuildInfo) build_info = nullptr;
  decltype(&clReleaseProgram) release_program = nullptr;
  decltype(&clCreateKernel) create_kernel = nullptr;
  decltype(&clSetKernelArg) set_argument = nullptr;
  decltype(&clGetKernelWorkGroupInfo) work_group_info = nullptr;
  decltype(&clReleaseKernel) release_kernel = nullptr;

  decltype(&clCreateBuffer) create_buffer = nullptr;
  decltype(&clReleaseMemObject) release_memory = nullptr;
  decltype(&clSVMAlloc) svm_allocate = nullptr;         // optional
  decltype(&clSVMFree) svm_free = nullptr;              // optional
  decltype(&clEnqueueSVMMemcpy) enqueue_svm = nullptr;  // optional
  decltype(&clEnqueueMapBuffer) enqueue_map = nullptr;
  decltype(&clEnqueueUnmapMemObject) enqueue_unmap = nullptr;

  // Optional: of OpenCL 1, and deprecated since.
  cl_command_queue (*create_queue_1)(cl_context, cl_device_id, cl_command_queue_properties, cl_int*) = nullptr;
  decltype(&clCreateCommandQueueWithProperties) create_queue = nullptr;  // optional
  decltype(&clReleaseCommandQueue) release_queue = nullptr;
  decltype(&clEnqueueNDRangeKernel) enqueue_kernel = nullptr;
  decltype(&clEnqueueReadBuffer) enqueue_read = nullptr;
  decltype(&clEnqueueWriteBuffer) enqueue_write = nullptr;
  decltype(&clEnqueueCopyBuffer) enqueue_copy = nullptr;
  decltype(&clEnqueueFillBuffer) enqueue_fill = nullptr;
  decltype(&clEnqueueMarkerWithWaitList) enqueue_marker = nullptr;
  decltype(&clEnqueueBarrierWithWaitList) enqueue_barrier = nullptr;
  decltype(&clFlush) flush = nullptr;
  decltype(&clFinish) finish = nullptr;

  decltype(&clCreateUserEvent) create_user_event = nullptr;
  decltype(&clSetUserEventStatus) set_user_event = nullptr;
  decltype(&clSetEventCallback) set_event_callback = nullptr;
  decltype(&clWaitForEvents) wait_for_events = nullptr;
  decltype(&clGetEventInfo) event_info = nullptr;
  decltype(&clGetEventProfilingInfo) event_times = nullptr;
  decltype(&clRetainEvent) retain_event = nullptr;
  decltype(&clReleaseEvent) release_event = nullptr;
  decltype(&clGetDeviceAndHostTimer) device_timer = nullptr;  // optional
};

// Opens the loader on the first call; null with a reason where there is none. The table lives as long as the program.
const OpenclApi* opencl_api(std::string* reason);

// "CL_OUT_OF_RESOURCES (-5)"
std::string describe_opencl(cl_int result);
// Advice after an error that leaves nothing of the device; empty after others.
std::string opencl_lost_hint(cl_int result);

// Throws unless `result` is success. `action` says what was tried: "creating a queue".
void check_opencl(cl_int result, std::string_view action, std::source_location where = std::source_location::current());

// Gives an object back through an entry of the table; what that returns is ignored, because destructors must not throw.
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
