#include "submit/inject/cupti_functions.h"

#include <cuda.h>

#include <cstring>

// The header says the newest versions where these names stand.
#undef cuCtxDestroy
#undef cuDevicePrimaryCtxRelease
#undef cuDevicePrimaryCtxReset
#undef cuGraphExecKernelNodeSetParams
#undef cuGraphExecUpdate
#undef cuMemcpyBatchAsync
#undef cuMemcpy3DBatchAsync

namespace weir::inject {
namespace {

using record::Kind;
using Function = CudaFunction;
using From = CudaFunction::Stream;
using Object = CudaFunction::Object;
using Role = CudaFunction::Role;

constexpr Function described(std::uint16_t id, const char* name, Kind kind, bool is_per_thread = false) {
  Function function;
  function.id = id;
  function.is_followed = true;
  function.is_per_thread = is_per_thread;
  function.kind = kind;
  function.name = name;
  return function;
}
constexpr Function on(Function function, From from, std::size_t at = 0) {
  function.stream = from;
  function.stream_at = static_cast<std::uint16_t>(at);
  return function;
}
constexpr Function about(Function function, Object object, std::size_t at) {
  function.object = object;
  function.object_at = static_cast<std::uint16_t>(at);
  return function;
}
constexpr Function with(Function function, Role role) {
  function.role = role;
  return function;
}

// A function without variants, and one that has a variant for programs with a default stream per thread.
#define WEIR_ID(name) CUPTI_DRIVER_TRACE_CBID_##name
#define WEIR_AT(name, field) offsetof(name##_params, field)
#define WEIR_PLAIN(name, kind) described(WEIR_ID(name), #name, Kind::kind)
#define WEIR_ON(name, kind) on(WEIR_PLAIN(name, kind), From::argument, WEIR_AT(name, hStream))
#define WEIR_BOTH_IN(name, kind, field)                             \
  on(WEIR_PLAIN(name, kind), From::argument, WEIR_AT(name, field)), \
      on(described(WEIR_ID(name##_ptsz), #name, Kind::kind, true), From::argument, WEIR_AT(name##_ptsz, field))
#define WEIR_BOTH(name, kind) WEIR_BOTH_IN(name, kind, hStream)
#define WEIR_BOTH_ABOUT(name, kind, object, field)                                                                     \
  about(WEIR_ON(name, kind), Object::object, WEIR_AT(name, field)),                                                    \
      about(                                                                                                           \
          on(described(WEIR_ID(name##_ptsz), #name, Kind::kind, true), From::argument, WEIR_AT(name##_ptsz, hStream)), \
          Object::object, WEIR_AT(name##_ptsz, field))
#define WEIR_MEMORY(name)                                                                              \
  about(on(WEIR_PLAIN(name, memory_operation), From::argument, WEIR_AT(name, stream)), Object::handle, \
        WEIR_AT(name, addr)),                                                                          \
      about(on(described(WEIR_ID(name##_ptsz), #name, Kind::memory_operation, true), From::argument,   \
               WEIR_AT(name##_ptsz, stream)),                                                          \
            Object::handle, WEIR_AT(name##_ptsz, addr))
// The host waits; the default stream.
#define WEIR_WAITS(name, suffix, kind)        \
  on(WEIR_PLAIN(name, kind), From::implicit), \
      on(described(WEIR_ID(name##suffix), #name, Kind::kind, true), From::implicit)
#define WEIR_WAITS_ABOUT(name, kind, object, field)                                                       \
  about(on(WEIR_PLAIN(name, kind), From::implicit), Object::object, WEIR_AT(name, field)),                \
      about(on(described(WEIR_ID(name##_ptds), #name, Kind::kind, true), From::implicit), Object::object, \
            WEIR_AT(name##_ptds, field))
#define WEIR_ROLE(name, role) with(WEIR_PLAIN(name, other), Role::role)

// In a stream, but no command.
#define WEIR_ASYNC(name)                                                                                        \
  with(WEIR_ON(name, other), Role::touches), with(on(described(WEIR_ID(name##_ptsz), #name, Kind::other, true), \
                                                     From::argument, WEIR_AT(name##_ptsz, hStream)),            \
                                                  Role::touches)

#define WEIR_GRAPH(name, role) about(WEIR_ROLE(name, role), Object::handle, WEIR_AT(name, hGraphExec))

constexpr Function kFunctions[] = {
    WEIR_BOTH(cuLaunchKernel, launch), WEIR_BOTH(cuLaunchCooperativeKernel, launch),
    on(WEIR_PLAIN(cuLaunchKernelEx, launch), From::config, WEIR_AT(cuLaunchKernelEx, config)),
    on(described(WEIR_ID(cuLaunchKernelEx_ptsz), "cuLaunchKernelEx", Kind::launch, true), From::config,
       WEIR_AT(cuLaunchKernelEx_ptsz, config)),
    on(WEIR_PLAIN(cuLaunchCooperativeKernelMultiDevice, launch), From::list,
       WEIR_AT(cuLaunchCooperativeKernelMultiDevice, launchParamsList)),
    WEIR_BOTH(cuLaunchHostFunc, host_function), WEIR_BOTH(cuStreamAddCallback, host_function),
    about(WEIR_ON(cuGraphLaunch, graph_launch), Object::handle, WEIR_AT(cuGraphLaunch, hGraph)),
    about(on(described(WEIR_ID(cuGraphLaunch_ptsz), "cuGraphLaunch", Kind::graph_launch, true), From::argument,
             WEIR_AT(cuGraphLaunch_ptsz, hStream)),
          Object::handle, WEIR_AT(cuGraphLaunch_ptsz, hGraphExec)),
    WEIR_BOTH_ABOUT(cuMemcpyAsync, copy, bytes, ByteCount), WEIR_BOTH_ABOUT(cuMemcpyPeerAsync, copy, bytes, ByteCount),
    WEIR_BOTH_ABOUT(cuMemcpyHtoDAsync_v2, copy, bytes, ByteCount),
    WEIR_BOTH_ABOUT(cuMemcpyDtoHAsync_v2, copy, bytes, ByteCount),
    WEIR_BOTH_ABOUT(cuMemcpyDtoDAsync_v2, copy, bytes, ByteCount),
    WEIR_BOTH_ABOUT(cuMemcpyHtoAAsync_v2, copy, bytes, ByteCount),
    WEIR_BOTH_ABOUT(cuMemcpyAtoHAsync_v2, copy, bytes, ByteCount), WEIR_BOTH(cuMemcpy2DAsync_v2, copy),
    WEIR_BOTH(cuMemcpy3DAsync_v2, copy), WEIR_BOTH(cuMemcpy3DPeerAsync, copy),
#if CUDA_VERSION >= 12080
    WEIR_BOTH(cuMemcpyBatchAsync, copy), WEIR_BOTH(cuMemcpy3DBatchAsync, copy),
#endif
#if CUDA_VERSION >= 13000
    WEIR_BOTH(cuMemcpyBatchAsync_v2, copy), WEIR_BOTH(cuMemcpy3DBatchAsync_v2, copy),
#endif
    WEIR_BOTH_ABOUT(cuMemsetD8Async, memset, bytes, N), WEIR_BOTH_ABOUT(cuMemsetD16Async, memset, words16, N),
    WEIR_BOTH_ABOUT(cuMemsetD32Async, memset, words32, N), WEIR_BOTH(cuMemsetD2D8Async, memset),
    WEIR_BOTH(cuMemsetD2D16Async, memset), WEIR_BOTH(cuMemsetD2D32Async, memset),
    WEIR_WAITS_ABOUT(cuMemsetD8_v2, memset, bytes, N), WEIR_WAITS_ABOUT(cuMemsetD16_v2, memset, words16, N),
    WEIR_WAITS_ABOUT(cuMemsetD32_v2, memset, words32, N),
    WEIR_WAITS_ABOUT(cuMemcpy, synchronous_copy, bytes, ByteCount),
    WEIR_WAITS_ABOUT(cuMemcpyPeer, synchronous_copy, bytes, ByteCount),
    WEIR_WAITS_ABOUT(cuMemcpyHtoD_v2, synchronous_copy, bytes, ByteCount),
    WEIR_WAITS_ABOUT(cuMemcpyDtoH_v2, synchronous_copy, bytes, ByteCount),
    WEIR_WAITS_ABOUT(cuMemcpyDtoD_v2, synchronous_copy, bytes, ByteCount),
    WEIR_WAITS_ABOUT(cuMemcpyHtoA_v2, synchronous_copy, bytes, ByteCount),
    WEIR_WAITS_ABOUT(cuMemcpyAtoH_v2, synchronous_copy, bytes, ByteCount),
    WEIR_WAITS(cuMemcpy2D_v2, _ptds, synchronous_copy), WEIR_WAITS(cuMemcpy2DUnaligned_v2, _ptds, synchronous_copy),
    WEIR_WAITS(cuMemcpy3D_v2, _ptds, synchronous_copy), WEIR_MEMORY(cuStreamWaitValue32_v2),
    WEIR_MEMORY(cuStreamWaitValue64_v2), WEIR_MEMORY(cuStreamWriteValue32_v2), WEIR_MEMORY(cuStreamWriteValue64_v2),
    WEIR_BOTH_IN(cuStreamBatchMemOp_v2, memory_operation, stream),
    WEIR_BOTH_ABOUT(cuEventRecord, event_record, handle, hEvent),
    WEIR_BOTH_ABOUT(cuEventRecordWithFlags, event_record, handle, hEvent),
    WEIR_BOTH_ABOUT(cuStreamWaitEvent, stream_wait_event, handle, hEvent),
    WEIR_BOTH(cuStreamSynchronize, stream_synchronize),
    about(WEIR_PLAIN(cuEventSynchronize, event_synchronize), Object::handle, WEIR_AT(cuEventSynchronize, hEvent)),
    WEIR_PLAIN(cuCtxSynchronize, context_synchronize),
#if CUDA_VERSION >= 13000
    WEIR_PLAIN(cuCtxSynchronize_v2, context_synchronize),
#endif
    about(WEIR_PLAIN(cuEventCreate, event_create), Object::made, WEIR_AT(cuEventCreate, phEvent)),
    about(WEIR_PLAIN(cuEventDestroy_v2, event_destroy), Object::handle, WEIR_AT(cuEventDestroy_v2, hEvent)),
    // Some of these wait for the device.
    WEIR_ROLE(cuMemAlloc_v2, may_wait), WEIR_ROLE(cuMemFree_v2, may_wait), WEIR_ROLE(cuMemHostAlloc, may_wait),
    WEIR_ROLE(cuMemFreeHost, may_wait), WEIR_ROLE(cuModuleLoadData, may_wait), WEIR_ROLE(cuModuleLoadDataEx, may_wait),
    WEIR_ROLE(cuLibraryLoadData, may_wait), WEIR_ROLE(cuStreamBeginCapture_v2, capture_begins),
    WEIR_ROLE(cuStreamBeginCapture_v2_ptsz, capture_begins), WEIR_ROLE(cuStreamEndCapture, capture_ends),
    WEIR_ROLE(cuStreamEndCapture_ptsz, capture_ends),
#if CUDA_VERSION >= 12030
    WEIR_ROLE(cuStreamBeginCaptureToGraph, capture_begins), WEIR_ROLE(cuStreamBeginCaptureToGraph_ptsz, capture_begins),
#endif
    with(on(WEIR_PLAIN(cuStreamDestroy_v2, other), From::argument, WEIR_AT(cuStreamDestroy_v2, hStream)),
         Role::stream_ends),
    WEIR_ROLE(cuModuleUnload, names_end), WEIR_ROLE(cuLibraryUnload, names_end), WEIR_ROLE(cuCtxDestroy, context_ends),
    WEIR_ROLE(cuCtxDestroy_v2, context_ends), WEIR_ROLE(cuDevicePrimaryCtxRelease, context_ends),
    WEIR_ROLE(cuDevicePrimaryCtxRelease_v2, context_ends), WEIR_ROLE(cuDevicePrimaryCtxReset, context_ends),
    WEIR_ROLE(cuDevicePrimaryCtxReset_v2, context_ends), WEIR_ROLE(cuGraphInstantiateWithFlags, graph_made),
    WEIR_ROLE(cuGraphInstantiateWithParams, graph_made), WEIR_ROLE(cuGraphInstantiateWithParams_ptsz, graph_made),
    WEIR_GRAPH(cuGraphExecDestroy, graph_ends), WEIR_GRAPH(cuGraphExecUpdate, graph_changes),
    WEIR_GRAPH(cuGraphExecUpdate_v2, graph_changes), WEIR_GRAPH(cuGraphExecNodeSetParams, graph_changes),
    WEIR_GRAPH(cuGraphExecKernelNodeSetParams, graph_changes),
    WEIR_GRAPH(cuGraphExecKernelNodeSetParams_v2, graph_changes),
    WEIR_GRAPH(cuGraphExecMemcpyNodeSetParams, graph_changes),
    WEIR_GRAPH(cuGraphExecMemsetNodeSetParams, graph_changes), WEIR_GRAPH(cuGraphExecHostNodeSetParams, graph_changes),
    WEIR_GRAPH(cuGraphExecChildGraphNodeSetParams, graph_changes),
    WEIR_GRAPH(cuGraphExecEventRecordNodeSetEvent, graph_changes),
    WEIR_GRAPH(cuGraphExecEventWaitNodeSetEvent, graph_changes),
    WEIR_GRAPH(cuGraphExecExternalSemaphoresSignalNodeSetParams, graph_changes),
    WEIR_GRAPH(cuGraphExecExternalSemaphoresWaitNodeSetParams, graph_changes),
    WEIR_GRAPH(cuGraphExecBatchMemOpNodeSetParams, graph_changes), WEIR_GRAPH(cuGraphNodeSetEnabled, graph_changes),
    WEIR_ROLE(cuMemAllocPitch_v2, touches), WEIR_ROLE(cuMemAllocManaged, touches), WEIR_ASYNC(cuMemAllocAsync),
    WEIR_ASYNC(cuMemAllocFromPoolAsync), WEIR_ASYNC(cuMemFreeAsync), WEIR_ROLE(cuMemAllocHost_v2, touches),
    WEIR_ROLE(cuMemHostRegister_v2, touches), WEIR_ROLE(cuMemHostUnregister, touches), WEIR_ROLE(cuMemMap, touches),
    WEIR_ROLE(cuMemUnmap, touches), WEIR_ROLE(cuStreamCreate, touches), WEIR_ROLE(cuStreamCreateWithPriority, touches),
    WEIR_ASYNC(cuStreamQuery), about(WEIR_ROLE(cuEventQuery, touches), Object::handle, WEIR_AT(cuEventQuery, hEvent)),
#if CUDA_VERSION >= 12040
    WEIR_ROLE(cuGreenCtxDestroy, context_ends),  // its streams have a context of their own
#endif
};

constexpr std::array<Function, kMaxCudaFunctions> by_id() {
  std::array<Function, kMaxCudaFunctions> all{};
  for (const Function& function : kFunctions) all[function.id] = function;
  return all;
}
constexpr std::array<Function, kMaxCudaFunctions> kById = by_id();

template <class Field>
Field field(const void* arguments, std::uint16_t at) noexcept {
  Field value{};
  std::memcpy(&value, static_cast<const char*>(arguments) + at, sizeof(value));
  return value;
}

}  // namespace

const std::array<CudaFunction, kMaxCudaFunctions>& cuda_functions() noexcept { return kById; }

CUstream stream_of(const CudaFunction& function, const void* arguments) noexcept {
  CUstream stream = nullptr;
  if (function.stream == From::argument) {
    stream = field<CUstream>(arguments, function.stream_at);
  } else if (function.stream == From::config) {
    const auto* const config = field<const CUlaunchConfig*>(arguments, function.stream_at);
    if (config != nullptr) stream = config->hStream;
  } else if (function.stream == From::list) {
    // One launch on several devices; the first one represents all.
    const auto* const list = field<const CUDA_LAUNCH_PARAMS*>(arguments, function.stream_at);
    if (list != nullptr) stream = list[0].hStream;
  }
  if (stream == nullptr) stream = function.is_per_thread ? CU_STREAM_PER_THREAD : CU_STREAM_LEGACY;
  return stream;
}

std::uint64_t object_of(const CudaFunction& function, const void* arguments, bool is_entry) noexcept {
  switch (function.object) {
    case Object::none:
      return 0;
    case Object::handle:
      return field<std::uint64_t>(arguments, function.object_at);
    case Object::made: {
      const auto* const made = field<const std::uint64_t*>(arguments, function.object_at);
      return is_entry || made == nullptr ? 0 : *made;
    }
    case Object::bytes:
      return field<std::size_t>(arguments, function.object_at);
    case Object::words16:
      return field<std::size_t>(arguments, function.object_at) * 2;
    case Object::words32:
      return field<std::size_t>(arguments, function.object_at) * 4;
  }
  return 0;
}

}  // namespace weir::inject
