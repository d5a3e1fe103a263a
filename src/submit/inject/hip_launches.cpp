// Commands that HIP enqueues without waiting, which the gate holds: launches, copies and memsets in a stream.
#ifndef __HIP_PLATFORM_AMD__
#define __HIP_PLATFORM_AMD__
#endif
#include <hip/hip_ext.h>

#include "submit/inject/hip_pass.h"

#define WEIR_ONE(name, kind, call, parameters, ...) \
  WEIR_HIP_AT(name, #name, kind, plain, true, plain(stream), call, parameters, __VA_ARGS__)
#define WEIR_BOTH(name, kind, call, parameters, ...)  \
  WEIR_ONE(name, kind, call, parameters, __VA_ARGS__) \
  WEIR_HIP_AT(name##_spt, #name, kind, plain, true, per_thread(stream), call, parameters, __VA_ARGS__)

namespace weir::inject {
namespace {

using record::Kind;
using Role = HipFunction::Role;

// hipLaunchConfig_t and HIP_LAUNCH_CONFIG of ROCm 6.3 and later, as far as the stream.
struct LaunchConfig {
  unsigned grid[3], block[3];
  std::size_t shared;
  hipStream_t stream;
};
struct ModuleLaunchConfig {
  unsigned grid[3], block[3], shared;
  hipStream_t stream;
};

template <class Config>
hipStream_t stream_in(const Config* config) noexcept {
  return config == nullptr ? nullptr : config->stream;
}
// One launch on several devices; the first one represents all.
HipCall first_of(const hipLaunchParams* launches) noexcept {
  return launches == nullptr ? on(plain(nullptr)) : launch_at(launches->func, plain(launches->stream));
}

WEIR_BOTH(hipLaunchKernel, launch, launch_at(kernel, at),
          (const void* kernel, dim3 grid, dim3 block, void** parameters, size_t shared, hipStream_t stream),  //
          kernel, grid, block, parameters, shared, stream)
WEIR_ONE(hipExtLaunchKernel, launch, launch_at(kernel, at, stop),
         (const void* kernel, dim3 grid, dim3 block, void** parameters, size_t shared, hipStream_t stream,
          hipEvent_t start, hipEvent_t stop, int flags),
         kernel, grid, block, parameters, shared, stream, start, stop, flags)
WEIR_BOTH(hipLaunchCooperativeKernel, launch, launch_at(kernel, at),
          (const void* kernel, dim3 grid, dim3 block, void** parameters, unsigned shared, hipStream_t stream),  //
          kernel, grid, block, parameters, shared, stream)
WEIR_ONE(hipModuleLaunchKernel, launch, launch_of(kernel, at),
         (hipFunction_t kernel, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x, unsigned block_y,
          unsigned block_z, unsigned shared, hipStream_t stream, void** parameters, void** extra),
         kernel, grid_x, grid_y, grid_z, block_x, block_y, block_z, shared, stream, parameters, extra)
WEIR_ONE(hipModuleLaunchCooperativeKernel, launch, launch_of(kernel, at),
         (hipFunction_t kernel, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x, unsigned block_y,
          unsigned block_z, unsigned shared, hipStream_t stream, void** parameters),
         kernel, grid_x, grid_y, grid_z, block_x, block_y, block_z, shared, stream, parameters)
WEIR_HIP_AS(hipLaunchKernelExC, "hipLaunchKernelExC", launch, plain, true, launch_at(kernel, plain(stream_in(config))),
            (const LaunchConfig* config, const void* kernel, void** parameters), config, kernel, parameters)
WEIR_HIP_AS(hipDrvLaunchKernelEx, "hipDrvLaunchKernelEx", launch, plain, true,
            launch_of(kernel, plain(stream_in(config))),
            (const ModuleLaunchConfig* config, hipFunction_t kernel, void** parameters, void** extra),  //
            config, kernel, parameters, extra)
WEIR_HIP(hipLaunchCooperativeKernelMultiDevice, launch, first_of(launches),
         (hipLaunchParams * launches, int count, unsigned flags), launches, count, flags)
WEIR_HIP(hipExtLaunchMultiKernelMultiDevice, launch, first_of(launches),
         (hipLaunchParams * launches, int count, unsigned flags), launches, count, flags)
WEIR_BOTH(hipGraphLaunch, graph_launch, on(at, bits(graph)), (hipGraphExec_t graph, hipStream_t stream), graph, stream)

WEIR_BOTH(hipMemcpyAsync, copy, on(at, bytes),
          (void* to, const void* from, size_t bytes, hipMemcpyKind kind, hipStream_t stream),  //
          to, from, bytes, kind, stream)
WEIR_ONE(hipMemcpyHtoDAsync, copy, on(at, bytes),
         (hipDeviceptr_t to, const void* from, size_t bytes, hipStream_t stream), to, from, bytes, stream)
WEIR_ONE(hipMemcpyDtoHAsync, copy, on(at, bytes), (void* to, hipDeviceptr_t from, size_t bytes, hipStream_t stream), to,
         from, bytes, stream)
WEIR_ONE(hipMemcpyDtoDAsync, copy, on(at, bytes),
         (hipDeviceptr_t to, hipDeviceptr_t from, size_t bytes, hipStream_t stream), to, from, bytes, stream)
WEIR_ONE(hipMemcpyPeerAsync, copy, on(at, bytes),
         (void* to, int to_device, const void* from, int from_device, size_t bytes, hipStream_t stream),  //
         to, to_device, from, from_device, bytes, stream)
WEIR_BOTH(hipMemcpy2DAsync, copy, on(at, width* height),
          (void* to, size_t to_pitch, const void* from, size_t from_pitch, size_t width, size_t height,
           hipMemcpyKind kind, hipStream_t stream),
          to, to_pitch, from, from_pitch, width, height, kind, stream)
WEIR_BOTH(hipMemcpy3DAsync, copy, on(at), (const hipMemcpy3DParms* parameters, hipStream_t stream), parameters, stream)
WEIR_ONE(hipMemcpyParam2DAsync, copy, on(at), (const hip_Memcpy2D* copy, hipStream_t stream), copy, stream)

WEIR_BOTH(hipMemsetAsync, memset, on(at, bytes), (void* to, int value, size_t bytes, hipStream_t stream),  //
          to, value, bytes, stream)
WEIR_ONE(hipMemsetD8Async, memset, on(at, count),
         (hipDeviceptr_t to, unsigned char value, size_t count, hipStream_t stream), to, value, count, stream)
WEIR_ONE(hipMemsetD16Async, memset, on(at, count * 2),
         (hipDeviceptr_t to, unsigned short value, size_t count, hipStream_t stream), to, value, count, stream)
WEIR_ONE(hipMemsetD32Async, memset, on(at, count * 4), (hipDeviceptr_t to, int value, size_t count, hipStream_t stream),
         to, value, count, stream)
WEIR_BOTH(hipMemset2DAsync, memset, on(at, width* height),
          (void* to, size_t pitch, int value, size_t width, size_t height, hipStream_t stream),  //
          to, pitch, value, width, height, stream)
WEIR_BOTH(hipMemset3DAsync, memset, on(at), (hipPitchedPtr to, int value, hipExtent extent, hipStream_t stream),  //
          to, value, extent, stream)

}  // namespace
}  // namespace weir::inject

// In hip_ext.h without extern "C", so programs ask for its C++ name (ROCm 5.2's library exports only that).
__attribute__((visibility("default"))) hipError_t hipExtModuleLaunchKernel(
    hipFunction_t function, std::uint32_t grid_x, std::uint32_t grid_y, std::uint32_t grid_z, std::uint32_t block_x,
    std::uint32_t block_y, std::uint32_t block_z, size_t shared, hipStream_t stream, void** parameters, void** extra,
    hipEvent_t start, hipEvent_t stop, std::uint32_t flags) {
  using namespace weir::inject;
  static constinit HipFunction called{.name = "hipExtModuleLaunchKernel", .kind = weir::record::Kind::launch};
  static constinit Real<decltype(hipExtModuleLaunchKernel)> real{
      "_Z24hipExtModuleLaunchKernelP18ihipModuleSymbol_tjjjjjjmP12ihipStream_tPPvS4_P11ihipEvent_tS6_j",
      "hipExtModuleLaunchKernel"};
  return pass<true>(called, real, launch_of(function, plain(stream), stop), function, grid_x, grid_y, grid_z, block_x,
                    block_y, block_z, shared, stream, parameters, extra, start, stop, flags);
}
