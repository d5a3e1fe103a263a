// Calls that put commands in order or wait for them, and host functions: events, synchronisation, captures, words in
// memory. Recordings show them; the gate leaves them alone.
#include "submit/inject/hip_pass.h"

#define WEIR_ON(name, kind, role, call, parameters, ...) \
  WEIR_HIP_AT(name, #name, kind, role, false, plain(stream), call, parameters, __VA_ARGS__)
#define WEIR_ON_BOTH(name, kind, role, call, parameters, ...) \
  WEIR_ON(name, kind, role, call, parameters, __VA_ARGS__)    \
  WEIR_HIP_AT(name##_spt, #name, kind, role, false, per_thread(stream), call, parameters, __VA_ARGS__)

namespace weir::inject {
namespace {

using record::Kind;
using Role = HipFunction::Role;

WEIR_ON_BOTH(hipLaunchHostFunc, host_function, plain, on(at), (hipStream_t stream, hipHostFn_t body, void* data),
             stream, body, data)
WEIR_ON_BOTH(hipStreamAddCallback, host_function, plain, on(at),
             (hipStream_t stream, hipStreamCallback_t callback, void* data, unsigned flags),  //
             stream, callback, data, flags)

WEIR_ON_BOTH(hipEventRecord, event_record, plain, on(at, bits(event)), (hipEvent_t event, hipStream_t stream), event,
             stream)
WEIR_ON(hipEventRecordWithFlags, event_record, plain, on(at, bits(event)),
        (hipEvent_t event, hipStream_t stream, unsigned flags), event, stream, flags)
WEIR_ON_BOTH(hipStreamWaitEvent, stream_wait_event, plain, on(at, bits(event)),
             (hipStream_t stream, hipEvent_t event, unsigned flags), stream, event, flags)
WEIR_HIP(hipEventSynchronize, event_synchronize, about(event), (hipEvent_t event), event)
WEIR_HIP(hipEventCreate, event_create, making(event), (hipEvent_t * event), event)
WEIR_HIP(hipEventCreateWithFlags, event_create, making(event), (hipEvent_t * event, unsigned flags), event, flags)
WEIR_HIP(hipEventDestroy, event_destroy, about(event), (hipEvent_t event), event)

WEIR_ON_BOTH(hipStreamSynchronize, stream_synchronize, plain, on(at), (hipStream_t stream), stream)
WEIR_HIP(hipDeviceSynchronize, context_synchronize, HipCall{}, ())
WEIR_HIP(hipCtxSynchronize, context_synchronize, HipCall{}, ())

// Their addresses are the objects; of several at once there is none.
WEIR_ON(hipStreamWaitValue32, memory_operation, plain, on(at, bits(word)),
        (hipStream_t stream, void* word, uint32_t value, unsigned flags, uint32_t mask),  //
        stream, word, value, flags, mask)
WEIR_ON(hipStreamWaitValue64, memory_operation, plain, on(at, bits(word)),
        (hipStream_t stream, void* word, uint64_t value, unsigned flags, uint64_t mask),  //
        stream, word, value, flags, mask)
WEIR_ON(hipStreamWriteValue32, memory_operation, plain, on(at, bits(word)),
        (hipStream_t stream, void* word, uint32_t value, unsigned flags), stream, word, value, flags)
WEIR_ON(hipStreamWriteValue64, memory_operation, plain, on(at, bits(word)),
        (hipStream_t stream, void* word, uint64_t value, unsigned flags), stream, word, value, flags)
WEIR_ON(hipStreamBatchMemOp, memory_operation, plain, on(at),
        (hipStream_t stream, unsigned count, void* operations, unsigned flags), stream, count, operations, flags)

WEIR_ON_BOTH(hipStreamBeginCapture, other, capture_begins, on(at), (hipStream_t stream, hipStreamCaptureMode mode),
             stream, mode)
WEIR_ON(hipStreamBeginCaptureToGraph, other, capture_begins, on(at),
        (hipStream_t stream, hipGraph_t graph, const hipGraphNode_t* dependencies, const void* edges, size_t count,
         hipStreamCaptureMode mode),
        stream, graph, dependencies, edges, count, mode)
WEIR_ON_BOTH(hipStreamEndCapture, other, capture_ends, on(at), (hipStream_t stream, hipGraph_t* graph), stream, graph)

WEIR_ON(hipStreamDestroy, other, stream_ends, on(at), (hipStream_t stream), stream)
WEIR_HIP_ROLE(hipModuleUnload, names_end, HipCall{}, (hipModule_t module), module)
WEIR_HIP_ROLE(hipDeviceReset, context_ends, HipCall{}, ())

}  // namespace
}  // namespace weir::inject
