// Copies and memsets that recordings show and the gate does not hold: those that the host waits for, and those to and
// from symbols and arrays. Sizes are recorded where the arguments say them.
#include "submit/inject/hip_pass.h"

#define WEIR_DEFAULT(name, kind, call, parameters, ...) \
  WEIR_HIP_AT(name, #name, kind, plain, false, plain(nullptr), call, parameters, __VA_ARGS__)
#define WEIR_DEFAULT_BOTH(name, kind, call, parameters, ...) \
  WEIR_DEFAULT(name, kind, call, parameters, __VA_ARGS__)    \
  WEIR_HIP_AT(name##_spt, #name, kind, plain, false, per_thread(nullptr), call, parameters, __VA_ARGS__)
#define WEIR_ON(name, kind, call, parameters, ...) \
  WEIR_HIP_AT(name, #name, kind, plain, false, plain(stream), call, parameters, __VA_ARGS__)
#define WEIR_ON_BOTH(name, kind, call, parameters, ...) \
  WEIR_ON(name, kind, call, parameters, __VA_ARGS__)    \
  WEIR_HIP_AT(name##_spt, #name, kind, plain, false, per_thread(stream), call, parameters, __VA_ARGS__)

namespace weir::inject {
namespace {

using record::Kind;
using Role = HipFunction::Role;

WEIR_DEFAULT_BOTH(hipMemcpy, synchronous_copy, copied(at, bytes, kind),
                  (void* to, const void* from, size_t bytes, hipMemcpyKind kind), to, from, bytes, kind)
WEIR_ON(hipMemcpyWithStream, synchronous_copy, copied(at, bytes, kind),
        (void* to, const void* from, size_t bytes, hipMemcpyKind kind, hipStream_t stream),  //
        to, from, bytes, kind, stream)
WEIR_DEFAULT(hipMemcpyHtoD, synchronous_copy, copied(at, bytes, hipMemcpyHostToDevice),
             (hipDeviceptr_t to, const void* from, size_t bytes), to, from, bytes)
WEIR_DEFAULT(hipMemcpyDtoH, synchronous_copy, copied(at, bytes, hipMemcpyDeviceToHost),
             (void* to, hipDeviceptr_t from, size_t bytes), to, from, bytes)
WEIR_DEFAULT(hipMemcpyDtoD, copy, on(at, bytes), (hipDeviceptr_t to, hipDeviceptr_t from, size_t bytes), to, from,
             bytes)
WEIR_DEFAULT(hipMemcpyPeer, copy, on(at, bytes),
             (void* to, int to_device, const void* from, int from_device, size_t bytes),  //
             to, to_device, from, from_device, bytes)
WEIR_DEFAULT_BOTH(hipMemcpy2D, synchronous_copy, copied(at, width* height, kind),
                  (void* to, size_t to_pitch, const void* from, size_t from_pitch, size_t width, size_t height,
                   hipMemcpyKind kind),
                  to, to_pitch, from, from_pitch, width, height, kind)
WEIR_DEFAULT_BOTH(hipMemcpy3D, synchronous_copy, copied(at, 0, hipMemcpyDefault), (const hipMemcpy3DParms* parameters),
                  parameters)
WEIR_DEFAULT(hipMemcpyParam2D, synchronous_copy, copied(at, 0, hipMemcpyDefault), (const hip_Memcpy2D* copy), copy)
WEIR_DEFAULT(hipDrvMemcpy3D, synchronous_copy, copied(at, 0, hipMemcpyDefault), (const HIP_MEMCPY3D* copy), copy)
WEIR_ON(hipDrvMemcpy3DAsync, copy, on(at), (const HIP_MEMCPY3D* copy, hipStream_t stream), copy, stream)

WEIR_DEFAULT_BOTH(hipMemcpyToSymbol, synchronous_copy, copied(at, bytes, kind),
                  (const void* symbol, const void* from, size_t bytes, size_t offset, hipMemcpyKind kind),  //
                  symbol, from, bytes, offset, kind)
WEIR_DEFAULT_BOTH(hipMemcpyFromSymbol, synchronous_copy, copied(at, bytes, kind),
                  (void* to, const void* symbol, size_t bytes, size_t offset, hipMemcpyKind kind),  //
                  to, symbol, bytes, offset, kind)
WEIR_ON_BOTH(hipMemcpyToSymbolAsync, copy, on(at, bytes),
             (const void* symbol, const void* from, size_t bytes, size_t offset, hipMemcpyKind kind,
              hipStream_t stream),
             symbol, from, bytes, offset, kind, stream)
WEIR_ON_BOTH(hipMemcpyFromSymbolAsync, copy, on(at, bytes),
             (void* to, const void* symbol, size_t bytes, size_t offset, hipMemcpyKind kind, hipStream_t stream),  //
             to, symbol, bytes, offset, kind, stream)
WEIR_DEFAULT_BOTH(hipMemcpy2DToArray, synchronous_copy, copied(at, width* height, kind),
                  (hipArray * to, size_t x, size_t y, const void* from, size_t pitch, size_t width, size_t height,
                   hipMemcpyKind kind),
                  to, x, y, from, pitch, width, height, kind)
WEIR_DEFAULT_BOTH(hipMemcpy2DFromArray, synchronous_copy, copied(at, width* height, kind),
                  (void* to, size_t pitch, hipArray_const_t from, size_t x, size_t y, size_t width, size_t height,
                   hipMemcpyKind kind),
                  to, pitch, from, x, y, width, height, kind)
WEIR_ON_BOTH(hipMemcpy2DToArrayAsync, copy, on(at, width* height),
             (hipArray * to, size_t x, size_t y, const void* from, size_t pitch, size_t width, size_t height,
              hipMemcpyKind kind, hipStream_t stream),
             to, x, y, from, pitch, width, height, kind, stream)
WEIR_ON_BOTH(hipMemcpy2DFromArrayAsync, copy, on(at, width* height),
             (void* to, size_t pitch, hipArray_const_t from, size_t x, size_t y, size_t width, size_t height,
              hipMemcpyKind kind, hipStream_t stream),
             to, pitch, from, x, y, width, height, kind, stream)
WEIR_DEFAULT(hipMemcpyToArray, synchronous_copy, copied(at, bytes, kind),
             (hipArray * to, size_t x, size_t y, const void* from, size_t bytes, hipMemcpyKind kind),  //
             to, x, y, from, bytes, kind)
WEIR_DEFAULT_BOTH(hipMemcpyFromArray, synchronous_copy, copied(at, bytes, kind),
                  (void* to, hipArray_const_t from, size_t x, size_t y, size_t bytes, hipMemcpyKind kind),  //
                  to, from, x, y, bytes, kind)
WEIR_DEFAULT(hipMemcpyHtoA, synchronous_copy, copied(at, bytes, hipMemcpyHostToDevice),
             (hipArray * to, size_t offset, const void* from, size_t bytes), to, offset, from, bytes)
WEIR_DEFAULT(hipMemcpyAtoH, synchronous_copy, copied(at, bytes, hipMemcpyDeviceToHost),
             (void* to, hipArray* from, size_t offset, size_t bytes), to, from, offset, bytes)

// HIP may return before these have ended.
WEIR_DEFAULT_BOTH(hipMemset, memset, on(at, bytes), (void* to, int value, size_t bytes), to, value, bytes)
WEIR_DEFAULT(hipMemsetD8, memset, on(at, count), (hipDeviceptr_t to, unsigned char value, size_t count), to, value,
             count)
WEIR_DEFAULT(hipMemsetD16, memset, on(at, count * 2), (hipDeviceptr_t to, unsigned short value, size_t count), to,
             value, count)
WEIR_DEFAULT(hipMemsetD32, memset, on(at, count * 4), (hipDeviceptr_t to, int value, size_t count), to, value, count)
WEIR_DEFAULT_BOTH(hipMemset2D, memset, on(at, width* height),
                  (void* to, size_t pitch, int value, size_t width, size_t height), to, pitch, value, width, height)
WEIR_DEFAULT_BOTH(hipMemset3D, memset, on(at), (hipPitchedPtr to, int value, hipExtent extent), to, value, extent)

}  // namespace
}  // namespace weir::inject
