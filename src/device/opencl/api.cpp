#include "device/opencl/api.h"

#if WEIR_HAVE_OPENCL
#include <fmt/format.h>

#include "base/error.h"
#include "measure/timeline.h"

namespace weir {
namespace {

struct ErrorName {
  cl_int number;
  const char* name;
};
constexpr ErrorName kErrors[] = {
    {-1, "CL_DEVICE_NOT_FOUND"},
    {-2, "CL_DEVICE_NOT_AVAILABLE"},
    {-3, "CL_COMPILER_NOT_AVAILABLE"},
    {-4, "CL_MEM_OBJECT_ALLOCATION_FAILURE"},
    {-5, "CL_OUT_OF_RESOURCES"},
    {-6, "CL_OUT_OF_HOST_MEMORY"},
    {-7, "CL_PROFILING_INFO_NOT_AVAILABLE"},
    {-8, "CL_MEM_COPY_OVERLAP"},
    {-11, "CL_BUILD_PROGRAM_FAILURE"},
    {-12, "CL_MAP_FAILURE"},
    {-14, "CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST"},
    {-30, "CL_INVALID_VALUE"},
    {-31, "CL_INVALID_DEVICE_TYPE"},
    {-32, "CL_INVALID_PLATFORM"},
    {-33, "CL_INVALID_DEVICE"},
    {-34, "CL_INVALID_CONTEXT"},
    {-35, "CL_INVALID_QUEUE_PROPERTIES"},
    {-36, "CL_INVALID_COMMAND_QUEUE"},
    {-37, "CL_INVALID_HOST_PTR"},
    {-38, "CL_INVALID_MEM_OBJECT"},
    {-43, "CL_INVALID_BUILD_OPTIONS"},
    {-44, "CL_INVALID_PROGRAM"},
    {-45, "CL_INVALID_PROGRAM_EXECUTABLE"},
    {-46, "CL_INVALID_KERNEL_NAME"},
    {-48, "CL_INVALID_KERNEL"},
    {-49, "CL_INVALID_ARG_INDEX"},
    {-50, "CL_INVALID_ARG_VALUE"},
    {-51, "CL_INVALID_ARG_SIZE"},
    {-52, "CL_INVALID_KERNEL_ARGS"},
    {-54, "CL_INVALID_WORK_GROUP_SIZE"},
    {-55, "CL_INVALID_WORK_ITEM_SIZE"},
    {-57, "CL_INVALID_EVENT_WAIT_LIST"},
    {-58, "CL_INVALID_EVENT"},
    {-59, "CL_INVALID_OPERATION"},
    {-61, "CL_INVALID_BUFFER_SIZE"},
    {-63, "CL_INVALID_GLOBAL_WORK_SIZE"},
    {-1001, "CL_PLATFORM_NOT_FOUND_KHR"},
    {-1138, "CL_INVALID_COMMAND_BUFFER_KHR"},
    {-1139, "CL_INVALID_SYNC_POINT_WAIT_LIST_KHR"},
    {-1140, "CL_INCOMPATIBLE_COMMAND_QUEUE_KHR"},
};

}  // namespace

const OpenclApi* opencl_api(std::string* reason) {
  static const OpenclApi kApi;
  if (kApi.is_open() && kApi.missing().empty()) return &kApi;
  if (reason != nullptr)
    *reason = kApi.is_open() ? fmt::format("libOpenCL.so.1 lacks {}: Weir needs OpenCL 1.2", kApi.missing())
                             : "no OpenCL loader: " + kApi.error();
  return nullptr;
}

std::string describe_opencl(cl_int result) {
  for (const auto& [number, name] : kErrors)
    if (number == result) return fmt::format("{} ({})", name, result);
  return fmt::format("OpenCL error {}", result);
}

std::string opencl_lost_hint(cl_int result) {
  // Drivers report a kernel fault or a lost device as one of these.
  if (result != CL_OUT_OF_RESOURCES && result != CL_DEVICE_NOT_AVAILABLE && result != CL_INVALID_COMMAND_QUEUE)
    return "";
  return "The device may be lost to this process. Run it again; if it happens again, the system's log (dmesg) says "
         "more.";
}

std::int64_t opencl_time(const OpenclApi& api, cl_event event, cl_profiling_info which) noexcept {
  cl_ulong time = 0;
  if (event == nullptr || api.event_times(event, which, sizeof time, &time, nullptr) != CL_SUCCESS) return kNoTime;
  return static_cast<std::int64_t>(time);
}

void check_opencl(cl_int result, std::string_view action, std::source_location where) {
  if (result == CL_SUCCESS) return;
  throw Error(Fault::run, fmt::format("{} failed: {}", action, describe_opencl(result)), opencl_lost_hint(result),
              where);
}

}  // namespace weir
#endif
