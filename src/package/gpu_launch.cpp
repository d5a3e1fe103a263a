#include "package/gpu_launch.h"

#include <fmt/format.h>

#include <cstring>
#include <exception>
#include <utility>

#include "device/gpu_error.h"

namespace weir::package {
namespace {

constexpr int kRefused = -1;  // what kernels see where no driver was asked

}  // namespace

GpuLaunches::GpuLaunches(const GpuApi& api, GpuModule module, GpuStream stream, Backend backend, Precision precision,
                         std::vector<void*> buffers, std::string where)
    : api_(api), module_(module), gpu_stream_(stream), buffers_(std::move(buffers)), where_(std::move(where)) {
  for (std::uint32_t i = 0; i < kMostArguments; ++i) parameters_[i] = &words_[i];
  stream_ = {.size = sizeof stream_,
             .backend = bit_of(backend),
             .precision = bit_of(precision),
             .native = stream,
             .buffers = buffers_.data(),
             .launch = module == nullptr ? nullptr : launch_entry,
             .harness = this};
}

int GpuLaunches::launch_entry(WeirStream* stream, const WeirLaunch* launch) noexcept {
  auto& self = *static_cast<GpuLaunches*>(stream->harness);
  try {
    return self.launch(*launch);
  } catch (const std::exception& error) {  // out of memory: nothing else throws
    return self.trouble_ = error.what(), kRefused;
  }
}

int GpuLaunches::launch(const WeirLaunch& launch) {
  if (const char* const fault = launch_fault(launch, buffers_.size()); fault != nullptr)
    return refuse(launch.function, fault, kRefused);
  Function* const function = find(launch.function);
  if (function == nullptr) return kRefused;
  if (function->knows_parameters && function->parameter_bytes.size() != launch.argument_count)
    return refuse(
        launch.function,
        fmt::format("takes {} arguments, and {} were given", function->parameter_bytes.size(), launch.argument_count),
        kRefused);
  for (std::uint32_t i = 0; i < launch.argument_count; ++i) {
    const PackedArgument packed = pack(launch.arguments[i], buffers_);
    if (function->knows_parameters && function->parameter_bytes[i] != packed.bytes)
      return refuse(launch.function,
                    fmt::format("takes {} bytes as argument {}, and {} were given", function->parameter_bytes[i], i,
                                packed.bytes),
                    kRefused);
    words_[i] = packed.word;
  }
  int result = 0;
  if (launch.shared_bytes > function->shared_bytes && api_.function_attribute != nullptr) {
    result = api_.function_attribute(function->handle, kGpuMostSharedBytes, static_cast<int>(launch.shared_bytes));
    function->shared_bytes = launch.shared_bytes;
  }
  if (result == 0)
    result = api_.launch(function->handle, at_least_one(launch.grid[0]), at_least_one(launch.grid[1]),
                         at_least_one(launch.grid[2]), at_least_one(launch.block[0]), at_least_one(launch.block[1]),
                         at_least_one(launch.block[2]), launch.shared_bytes, gpu_stream_, parameters_, nullptr);
  if (result != 0)
    return refuse(launch.function,
                  fmt::format("cannot be launched with grid {}x{}x{}, block {}x{}x{} and {} bytes of shared memory: {}",
                              launch.grid[0], launch.grid[1], launch.grid[2], launch.block[0], launch.block[1],
                              launch.block[2], launch.shared_bytes, api_.describe(result)),
                  result);
  ++count_;
  return 0;
}

// The name is compared as well: a kernel may write another one into the same memory.
GpuLaunches::Function* GpuLaunches::find(const char* name) {
  for (Function& each : functions_)
    if (each.pointer == name && each.name == name) return &each;
  for (Function& each : functions_)
    if (each.name == name) {
      each.pointer = name;
      return &each;
    }
  Function found{.pointer = name, .name = name, .handle = nullptr};
  int result = api_.function_get(&found.handle, module_, name);
  if (result == 0 && api_.function_load != nullptr) result = api_.function_load(found.handle);
  if (result != 0) {
    refuse(name, fmt::format("is not in the device source ({}); is it extern \"C\" __global__?", api_.describe(result)),
           result);
    return nullptr;
  }
  if (api_.function_parameter != nullptr) {
    std::size_t offset = 0, bytes = 0;
    for (std::size_t i = 0; i <= kMostArguments && api_.function_parameter(found.handle, i, &offset, &bytes) == 0; ++i)
      found.parameter_bytes.push_back(bytes);
    found.knows_parameters = true;
  }
  return &functions_.emplace_back(std::move(found));
}

int GpuLaunches::refuse(const char* function, const std::string& what, int result) {
  if (trouble_.empty())
    trouble_ = fmt::format("{}: function '{}' {}", where_, function == nullptr ? "" : function, what);
  return result;
}

}  // namespace weir::package
