#include "lab/kernels/package/opencl_launch.h"

#if WEIR_HAVE_OPENCL
#include <fmt/format.h>

namespace weir::package {

OpenclLaunches::OpenclLaunches(const OpenclContext& context, cl_program program, cl_command_queue queue,
                               Precision precision, std::vector<void*> buffers, std::string where)
    : LaunchSite(Backend::opencl, precision, queue, std::move(buffers), std::move(where), program == nullptr),
      api_(context.api()),
      program_(program),
      queue_(queue) {}

// shared_bytes is for CUDA and HIP alone: in OpenCL C, local memory is declared.
int OpenclLaunches::launch(const WeirLaunch& launch) {
  std::size_t index = find(launch.function);
  if (index == kUnknown) {
    cl_int result = CL_SUCCESS;
    OpenclKernelOwner kernel(api_.create_kernel(program_, launch.function, &result), {&api_});
    if (result != CL_SUCCESS)
      return refuse(launch.function,
                    fmt::format("is not in the device source ({}); is it __kernel?", describe_opencl(result)), result);
    functions_.push_back({std::move(kernel), launch.argument_count});
    index = add(launch.function);
  }
  const Function& function = functions_[index];
  if (launch.argument_count != function.argument_count)
    return refuse(launch.function, fmt::format("was given {} arguments first, and {} now", function.argument_count,
                                               launch.argument_count));
  for (std::uint32_t i = 0; i < launch.argument_count; ++i) {
    const PackedArgument packed = pack(launch.arguments[i], buffers());
    if (const cl_int result = api_.set_argument(function.kernel.get(), i, packed.bytes, &packed.word);
        result != CL_SUCCESS)
      return refuse(launch.function,
                    fmt::format("does not take {} bytes as argument {}: {}", packed.bytes, i, describe_opencl(result)),
                    result);
  }
  std::size_t global[3], local[3];
  for (int i = 0; i < 3; ++i) {
    local[i] = at_least_one(launch.block[i]);
    global[i] = local[i] * at_least_one(launch.grid[i]);
  }
  const cl_int result =
      api_.enqueue_kernel(queue_, function.kernel.get(), 3, nullptr, global, local, 0, nullptr, nullptr);
  if (result == CL_SUCCESS) return 0;
  return refuse(launch.function,
                fmt::format("cannot be launched with {} arguments, {}x{}x{} work-groups of {}x{}x{}: {}",
                            launch.argument_count, launch.grid[0], launch.grid[1], launch.grid[2], local[0], local[1],
                            local[2], describe_opencl(result)),
                result);
}

}  // namespace weir::package
#endif
