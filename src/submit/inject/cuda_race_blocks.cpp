// Which calls of the CUDA driver allocate and release memory, and which of these wait for the device. Asks nobody.
#include <cuda.h>

#include "submit/inject/cuda_race_accesses.h"

namespace weir::inject {
namespace {

std::uint64_t address_of(const void* pointer) noexcept { return reinterpret_cast<std::uint64_t>(pointer); }
std::uint64_t address_of(CUdeviceptr address) noexcept { return address; }

}  // namespace

// The variants for a default stream per thread have the same parameters.
#define WEIR_CALL(name)                       \
  case CUPTI_DRIVER_TRACE_CBID_##name:        \
  case CUPTI_DRIVER_TRACE_CBID_##name##_ptsz: \
    return
#define WEIR_AS(name) (*static_cast<const name##_params*>(arguments))

RaceBlock block_of(const CudaFunction& function, const void* arguments) noexcept {
  const auto made = [](const auto* address, std::uint64_t bytes, bool is_host) {
    RaceBlock one;
    if (address != nullptr) one = {true, false, false, {address_of(*address), bytes, is_host}};
    return one;
  };
  const auto gone = [](std::uint64_t address, bool waits) {
    return RaceBlock{address != 0, true, waits, {address, 0, false}};
  };
  switch (function.id) {
    case CUPTI_DRIVER_TRACE_CBID_cuMemAlloc_v2:
      return made(WEIR_AS(cuMemAlloc_v2).dptr, WEIR_AS(cuMemAlloc_v2).bytesize, false);
    case CUPTI_DRIVER_TRACE_CBID_cuMemAllocPitch_v2: {
      const auto& all = WEIR_AS(cuMemAllocPitch_v2);
      return made(all.dptr, all.pPitch == nullptr ? 0 : *all.pPitch * all.Height, false);
    }
    case CUPTI_DRIVER_TRACE_CBID_cuMemAllocManaged:
      return made(WEIR_AS(cuMemAllocManaged).dptr, WEIR_AS(cuMemAllocManaged).bytesize, false);
      WEIR_CALL(cuMemAllocAsync) made(WEIR_AS(cuMemAllocAsync).dptr, WEIR_AS(cuMemAllocAsync).bytesize, false);
      WEIR_CALL(cuMemAllocFromPoolAsync)
      made(WEIR_AS(cuMemAllocFromPoolAsync).dptr, WEIR_AS(cuMemAllocFromPoolAsync).bytesize, false);
    case CUPTI_DRIVER_TRACE_CBID_cuMemHostAlloc:
      return made(WEIR_AS(cuMemHostAlloc).pp, WEIR_AS(cuMemHostAlloc).bytesize, true);
    case CUPTI_DRIVER_TRACE_CBID_cuMemAllocHost_v2:
      return made(WEIR_AS(cuMemAllocHost_v2).pp, WEIR_AS(cuMemAllocHost_v2).bytesize, true);
    case CUPTI_DRIVER_TRACE_CBID_cuMemHostRegister_v2:
      return made(&WEIR_AS(cuMemHostRegister_v2).p, WEIR_AS(cuMemHostRegister_v2).bytesize, true);
    case CUPTI_DRIVER_TRACE_CBID_cuMemMap:
      return made(&WEIR_AS(cuMemMap).ptr, WEIR_AS(cuMemMap).size, false);
    case CUPTI_DRIVER_TRACE_CBID_cuMemFree_v2:
      return gone(WEIR_AS(cuMemFree_v2).dptr, true);
    case CUPTI_DRIVER_TRACE_CBID_cuMemFreeHost:
      return gone(address_of(WEIR_AS(cuMemFreeHost).p), true);
      WEIR_CALL(cuMemFreeAsync) gone(WEIR_AS(cuMemFreeAsync).dptr, false);
    case CUPTI_DRIVER_TRACE_CBID_cuMemHostUnregister:
      return gone(address_of(WEIR_AS(cuMemHostUnregister).p), false);
    case CUPTI_DRIVER_TRACE_CBID_cuMemUnmap:
      return gone(WEIR_AS(cuMemUnmap).ptr, false);
    default:
      return {};
  }
}

}  // namespace weir::inject
