#include "lab/kernels/package/gpu_launch.h"

#include <fmt/format.h>

#include <utility>

#include "device/gpu/error.h"

namespace weir::package {

GpuLaunches::GpuLaunches(const GpuApi& api, GpuModule module, GpuStream stream, Backend backend, Precision precision,
                         std::vector<void*> buffers, std::string where)
    : LaunchSite(backend, precision, stream, std::move(buffers), std::move(where), module == nullptr),
      api_(api),
      module_(module),
      stream_(stream) {
  for (std::uint32_t i = 0; i < kMostArguments; ++i) parameters_[i] = &words_[i];
}

int GpuLaunches::launch(const WeirLaunch& launch) {
  std::size_t index = find(launch.function);
  if (index == kUnknown)
    if (const int result = look_up(launch.function, &index); result != 0) return result;
  Function& function = functions_[index];
  if (function.knows_parameters && function.parameter_bytes.size() != launch.argument_count)
    return refuse(launch.function, fmt::format("takes {} arguments, and {} were given", function.parameter_bytes.size(),
                                               launch.argument_count));
  for (std::uint32_t i = 0; i < launch.argument_count; ++i) {
    const PackedArgument packed = pack(launch.arguments[i], buffers());
    if (function.knows_parameters && function.parameter_bytes[i] != packed.bytes)
      return refuse(launch.function, fmt::format("takes {} bytes as argument {}, and {} were given",
                                                 function.parameter_bytes[i], i, packed.bytes));
    words_[i] = packed.word;
  }
  int result = 0;
  if (launch.shared_bytes > function.shared_bytes && api_.function_attribute != nullptr) {
    result = api_.function_attribute(function.handle, kGpuMostSharedBytes, static_cast<int>(launch.shared_bytes));
    function.shared_bytes = launch.shared_bytes;
  }
  const auto grid = [&](int i) { return at_least_one(launch.grid[i]); };
  const auto block = [&](int i) { return at_least_one(launch.block[i]); };
  if (result == 0)
    result = api_.launch(function.handle, grid(0), grid(1), grid(2), block(0), block(1), block(2), launch.shared_bytes,
                         stream_, parameters_, nullptr);
  if (result == 0) return 0;
  // An earlier launch may have cost the device: that is not about this one's sizes.
  const std::string lost = lost_hint(api_, result);
  return refuse(
      launch.function,
      fmt::format("cannot be launched with grid {}x{}x{}, block {}x{}x{} and {} bytes of shared memory: {}{}{}",
                  grid(0), grid(1), grid(2), block(0), block(1), block(2), launch.shared_bytes, api_.describe(result),
                  lost.empty() ? "" : ". ", lost),
      result);
}

int GpuLaunches::look_up(const char* name, std::size_t* index) {
  Function found;
  int result = api_.function_get(&found.handle, module_, name);
  if (result == 0 && api_.function_load != nullptr) result = api_.function_load(found.handle);
  if (result != 0)
    return refuse(
        name, fmt::format("is not in the device source ({}); is it extern \"C\" __global__?", api_.describe(result)),
        result);
  if (api_.function_parameter != nullptr) {
    std::size_t offset = 0, bytes = 0;
    while (found.parameter_bytes.size() <= kMostArguments &&
           api_.function_parameter(found.handle, found.parameter_bytes.size(), &offset, &bytes) == 0)
      found.parameter_bytes.push_back(bytes);
    found.knows_parameters = true;
  }
  functions_.push_back(std::move(found));
  *index = add(name);
  return 0;
}

}  // namespace weir::package
