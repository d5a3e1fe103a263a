// The least that CUPTI costs, for bench/record/measure.py: a library for CUDA_INJECTION64_PATH that asks CUPTI for
// something and does nothing with it. FLOOR=callbacks: of launches, copies, memsets, events and waits. FLOOR=records:
// the device's records of kernels, copies and memsets.
#include <cupti.h>
#include <dlfcn.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <initializer_list>

namespace {

void CUPTIAPI ignore_call(void*, CUpti_CallbackDomain, CUpti_CallbackId, const void*) {}
void CUPTIAPI give_buffer(std::uint8_t** buffer, std::size_t* size, std::size_t* records) {
  *size = std::size_t{256} << 10;
  *buffer = static_cast<std::uint8_t*>(std::aligned_alloc(8, *size));
  *records = 0;
}
void CUPTIAPI drop_buffer(CUcontext, std::uint32_t, std::uint8_t* buffer, std::size_t, std::size_t) {
  std::free(buffer);
}

}  // namespace

extern "C" int InitializeInjection() {
  void* const cupti = ::dlopen(std::getenv("FLOOR_CUPTI"), RTLD_NOW);
  if (cupti == nullptr) return 0;
  const auto entry = [&]<class Function>(Function*& to, const char* name) {
    to = reinterpret_cast<Function*>(::dlsym(cupti, name));
  };
  decltype(&cuptiSubscribe) subscribe = nullptr;
  decltype(&cuptiEnableCallback) enable = nullptr;
  decltype(&cuptiActivityRegisterCallbacks) buffers = nullptr;
  decltype(&cuptiActivityEnable) record = nullptr;
  entry(subscribe, "cuptiSubscribe");
  entry(enable, "cuptiEnableCallback");
  entry(buffers, "cuptiActivityRegisterCallbacks");
  entry(record, "cuptiActivityEnable");
  if (std::strcmp(std::getenv("FLOOR"), "callbacks") == 0) {
    CUpti_SubscriberHandle subscriber = nullptr;
    if (subscribe(&subscriber, ignore_call, nullptr) != CUPTI_SUCCESS) return 0;
    for (const CUpti_CallbackId id :
         {CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel, CUPTI_DRIVER_TRACE_CBID_cuLaunchKernelEx,
          CUPTI_DRIVER_TRACE_CBID_cuGraphLaunch, CUPTI_DRIVER_TRACE_CBID_cuMemcpyAsync,
          CUPTI_DRIVER_TRACE_CBID_cuMemcpyHtoDAsync_v2, CUPTI_DRIVER_TRACE_CBID_cuMemcpyDtoHAsync_v2,
          CUPTI_DRIVER_TRACE_CBID_cuMemcpyDtoDAsync_v2, CUPTI_DRIVER_TRACE_CBID_cuMemsetD8Async,
          CUPTI_DRIVER_TRACE_CBID_cuMemsetD32Async, CUPTI_DRIVER_TRACE_CBID_cuEventRecord,
          CUPTI_DRIVER_TRACE_CBID_cuEventRecordWithFlags, CUPTI_DRIVER_TRACE_CBID_cuStreamWaitEvent,
          CUPTI_DRIVER_TRACE_CBID_cuStreamSynchronize, CUPTI_DRIVER_TRACE_CBID_cuEventSynchronize,
          CUPTI_DRIVER_TRACE_CBID_cuCtxSynchronize})
      enable(1, subscriber, CUPTI_CB_DOMAIN_DRIVER_API, id);
  } else {
    buffers(give_buffer, drop_buffer);
    for (const CUpti_ActivityKind kind : {CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, CUPTI_ACTIVITY_KIND_MEMCPY,
                                          CUPTI_ACTIVITY_KIND_MEMCPY2, CUPTI_ACTIVITY_KIND_MEMSET})
      record(kind);
  }
  return 1;
}
