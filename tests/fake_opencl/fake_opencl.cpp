// A libOpenCL.so.1 for tests of what goes wrong: one platform cannot list its devices, the other has one device that
// takes everything and computes nothing, until FAKE_OPENCL_LAUNCHES launches are used up. Built once more without
// clFinish. Commands end when they are enqueued.
#define CL_TARGET_OPENCL_VERSION 300
#include <CL/cl.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

namespace {

// Handles only have to differ from null.
template <class T>
T handle(std::size_t number) {
  return reinterpret_cast<T>(number + 1);
}

struct Memory {
  std::vector<char> bytes;
};
char* bytes_of(cl_mem memory) { return reinterpret_cast<Memory*>(memory)->bytes.data(); }

std::atomic<long> launches{0};
bool is_lost() {
  const char* const most = std::getenv("FAKE_OPENCL_LAUNCHES");
  return most != nullptr && launches.load() > std::atol(most);
}

cl_int text(const std::string& value, std::size_t size, void* to, std::size_t* needed) {
  if (needed != nullptr) *needed = value.size() + 1;
  if (to != nullptr) std::memcpy(to, value.c_str(), size < value.size() + 1 ? size : value.size() + 1);
  return CL_SUCCESS;
}
template <class T>
cl_int number(T value, std::size_t size, void* to, std::size_t* needed) {
  if (needed != nullptr) *needed = sizeof value;
  if (to != nullptr && size >= sizeof value) std::memcpy(to, &value, sizeof value);
  return CL_SUCCESS;
}

cl_int ended(cl_event* event) {
  if (event != nullptr) *event = handle<cl_event>(40);
  return is_lost() ? CL_OUT_OF_RESOURCES : CL_SUCCESS;
}
template <class T>
T made(T value, cl_int* result) {
  if (result != nullptr) *result = CL_SUCCESS;
  return value;
}

}  // namespace

extern "C" {

cl_int clGetPlatformIDs(cl_uint room, cl_platform_id* platforms, cl_uint* count) {
  if (count != nullptr) *count = 2;
  for (cl_uint i = 0; platforms != nullptr && i < room && i < 2; ++i) platforms[i] = handle<cl_platform_id>(i);
  return CL_SUCCESS;
}
cl_int clGetPlatformInfo(cl_platform_id platform, cl_platform_info which, size_t size, void* to, size_t* needed) {
  if (which == CL_PLATFORM_VERSION) return text("OpenCL 1.2 fake", size, to, needed);
  return text(platform == handle<cl_platform_id>(0) ? "Broken" : "Fake", size, to, needed);
}
cl_int clGetDeviceIDs(cl_platform_id platform, cl_device_type, cl_uint, cl_device_id* devices, cl_uint* count) {
  if (platform == handle<cl_platform_id>(0)) return CL_OUT_OF_HOST_MEMORY;
  if (count != nullptr) *count = 1;
  if (devices != nullptr) *devices = handle<cl_device_id>(10);
  return CL_SUCCESS;
}
cl_int clGetDeviceInfo(cl_device_id, cl_device_info which, size_t size, void* to, size_t* needed) {
  switch (which) {
    case CL_DEVICE_NAME:
      return text("Fake GPU", size, to, needed);
    case CL_DEVICE_VERSION:
      return text("OpenCL 1.2 fake", size, to, needed);
    case CL_DRIVER_VERSION:
      return text("1.0", size, to, needed);
    case CL_DEVICE_EXTENSIONS:
      return text("", size, to, needed);
    case CL_DEVICE_TYPE:
      return number<cl_device_type>(CL_DEVICE_TYPE_GPU, size, to, needed);
    case CL_DEVICE_MAX_COMPUTE_UNITS:
      return number<cl_uint>(4, size, to, needed);
    case CL_DEVICE_GLOBAL_MEM_SIZE:
    case CL_DEVICE_MAX_MEM_ALLOC_SIZE:
      return number<cl_ulong>(1 << 30, size, to, needed);
    default:
      return CL_INVALID_VALUE;
  }
}
cl_context clCreateContext(const cl_context_properties*, cl_uint, const cl_device_id*,
                           void(CL_CALLBACK*)(const char*, const void*, size_t, void*), void*, cl_int* result) {
  return made(handle<cl_context>(20), result);
}
cl_int clReleaseContext(cl_context) { return CL_SUCCESS; }
void* clGetExtensionFunctionAddressForPlatform(cl_platform_id, const char*) { return nullptr; }

cl_program clCreateProgramWithSource(cl_context, cl_uint, const char**, const size_t*, cl_int* result) {
  return made(handle<cl_program>(30), result);
}
cl_int clBuildProgram(cl_program, cl_uint, const cl_device_id*, const char*, void(CL_CALLBACK*)(cl_program, void*),
                      void*) {
  return CL_SUCCESS;
}
cl_int clGetProgramBuildInfo(cl_program, cl_device_id, cl_program_build_info, size_t size, void* to, size_t* needed) {
  return text("", size, to, needed);
}
cl_int clReleaseProgram(cl_program) { return CL_SUCCESS; }
cl_kernel clCreateKernel(cl_program, const char*, cl_int* result) { return made(handle<cl_kernel>(31), result); }
cl_int clSetKernelArg(cl_kernel, cl_uint, size_t, const void*) { return CL_SUCCESS; }
cl_int clGetKernelWorkGroupInfo(cl_kernel, cl_device_id, cl_kernel_work_group_info, size_t size, void* to,
                                size_t* needed) {
  return number<size_t>(256, size, to, needed);
}
cl_int clReleaseKernel(cl_kernel) { return CL_SUCCESS; }

cl_mem clCreateBuffer(cl_context, cl_mem_flags, size_t size, void*, cl_int* result) {
  return made(reinterpret_cast<cl_mem>(new Memory{std::vector<char>(size)}), result);
}
cl_int clReleaseMemObject(cl_mem memory) {
  delete reinterpret_cast<Memory*>(memory);
  return CL_SUCCESS;
}
void* clEnqueueMapBuffer(cl_command_queue, cl_mem memory, cl_bool, cl_map_flags, size_t offset, size_t, cl_uint,
                         const cl_event*, cl_event*, cl_int* result) {
  return made<void*>(bytes_of(memory) + offset, result);
}
cl_int clEnqueueUnmapMemObject(cl_command_queue, cl_mem, void*, cl_uint, const cl_event*, cl_event* event) {
  return ended(event);
}

cl_command_queue clCreateCommandQueue(cl_context, cl_device_id, cl_command_queue_properties, cl_int* result) {
  return made(handle<cl_command_queue>(32), result);
}
cl_int clReleaseCommandQueue(cl_command_queue) { return CL_SUCCESS; }
cl_int clEnqueueNDRangeKernel(cl_command_queue, cl_kernel, cl_uint, const size_t*, const size_t*, const size_t*,
                              cl_uint, const cl_event*, cl_event* event) {
  launches.fetch_add(1);
  if (is_lost()) return CL_OUT_OF_RESOURCES;
  return ended(event);
}
cl_int clEnqueueReadBuffer(cl_command_queue, cl_mem memory, cl_bool, size_t offset, size_t size, void* to, cl_uint,
                           const cl_event*, cl_event* event) {
  std::memcpy(to, bytes_of(memory) + offset, size);
  return ended(event);
}
cl_int clEnqueueWriteBuffer(cl_command_queue, cl_mem memory, cl_bool, size_t offset, size_t size, const void* from,
                            cl_uint, const cl_event*, cl_event* event) {
  std::memcpy(bytes_of(memory) + offset, from, size);
  return ended(event);
}
cl_int clEnqueueCopyBuffer(cl_command_queue, cl_mem from, cl_mem to, size_t from_offset, size_t to_offset, size_t size,
                           cl_uint, const cl_event*, cl_event* event) {
  std::memmove(bytes_of(to) + to_offset, bytes_of(from) + from_offset, size);
  return ended(event);
}
cl_int clEnqueueFillBuffer(cl_command_queue, cl_mem memory, const void* pattern, size_t pattern_size, size_t offset,
                           size_t size, cl_uint, const cl_event*, cl_event* event) {
  for (size_t i = 0; i < size; i += pattern_size) std::memcpy(bytes_of(memory) + offset + i, pattern, pattern_size);
  return ended(event);
}
cl_int clEnqueueMarkerWithWaitList(cl_command_queue, cl_uint, const cl_event*, cl_event* event) { return ended(event); }
cl_int clEnqueueBarrierWithWaitList(cl_command_queue, cl_uint, const cl_event*, cl_event* event) {
  return ended(event);
}
cl_int clFlush(cl_command_queue) { return is_lost() ? CL_OUT_OF_RESOURCES : CL_SUCCESS; }
#ifndef FAKE_LACKS_A_SYMBOL
cl_int clFinish(cl_command_queue) { return is_lost() ? CL_OUT_OF_RESOURCES : CL_SUCCESS; }
#endif

cl_event clCreateUserEvent(cl_context, cl_int* result) { return made(handle<cl_event>(41), result); }
cl_int clSetUserEventStatus(cl_event, cl_int) { return CL_SUCCESS; }
cl_int clSetEventCallback(cl_event event, cl_int status, void(CL_CALLBACK* callback)(cl_event, cl_int, void*),
                          void* data) {
  callback(event, status, data);
  return CL_SUCCESS;
}
cl_int clWaitForEvents(cl_uint, const cl_event*) { return is_lost() ? CL_OUT_OF_RESOURCES : CL_SUCCESS; }
cl_int clGetEventInfo(cl_event, cl_event_info, size_t size, void* to, size_t* needed) {
  return number<cl_int>(is_lost() ? CL_OUT_OF_RESOURCES : CL_COMPLETE, size, to, needed);
}
cl_int clGetEventProfilingInfo(cl_event, cl_profiling_info, size_t, void*, size_t*) {
  return CL_PROFILING_INFO_NOT_AVAILABLE;
}
cl_int clRetainEvent(cl_event) { return CL_SUCCESS; }
cl_int clReleaseEvent(cl_event) { return CL_SUCCESS; }

}  // extern "C"
