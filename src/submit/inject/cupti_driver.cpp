#include "submit/inject/cupti_driver.h"

#include <cuda.h>
#include <dlfcn.h>

#include "submit/inject/cupti_library.h"

namespace weir::inject {
namespace {

// The driver's own functions, found in the library that the program has loaded.
struct Driver {
  CUresult (*event_create)(CUevent*, unsigned) = nullptr;
  CUresult (*event_record)(CUevent, CUstream) = nullptr;
  CUresult (*event_query)(CUevent) = nullptr;
  CUresult (*event_destroy)(CUevent) = nullptr;
  CUresult (*stream_is_capturing)(CUstream, CUstreamCaptureStatus*) = nullptr;
  CUresult (*stream_context)(CUstream, CUcontext*) = nullptr;
  CUresult (*exchange_capture_mode)(CUstreamCaptureMode*) = nullptr;
  CUresult (*current)(CUcontext*) = nullptr;
  CUresult (*push)(CUcontext) = nullptr;
  CUresult (*pop)(CUcontext*) = nullptr;
  CUresult (*device)(CUdevice*) = nullptr;
};
Driver g_driver;

bool begin(Context wanted, GateDriver::Visit* visit) noexcept {
  // Querying an event would invalidate a capture that this thread, or in global mode any other, has begun.
  CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
  if (g_driver.exchange_capture_mode(&mode) != CUDA_SUCCESS) return false;
  visit->mode = static_cast<int>(mode);
  visit->has_mode = true;
  CUcontext context = nullptr;
  if (g_driver.current(&context) != CUDA_SUCCESS) context = nullptr;
  if (context == static_cast<CUcontext>(wanted)) return true;
  if (g_driver.push(static_cast<CUcontext>(wanted)) != CUDA_SUCCESS) {
    g_driver.exchange_capture_mode(&mode);
    return false;
  }
  visit->has_context = true;
  return true;
}

void end(const GateDriver::Visit& visit) noexcept {
  CUcontext context = nullptr;
  if (visit.has_context) g_driver.pop(&context);
  auto mode = static_cast<CUstreamCaptureMode>(visit.mode);
  if (visit.has_mode) g_driver.exchange_capture_mode(&mode);
}

// Null while the stream is captured.
Context context_of(void* stream) noexcept {
  // For the legacy stream this is an error while a stream that it would wait for is captured: the launch will then fail
  // by itself.
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  if (g_driver.stream_is_capturing(static_cast<CUstream>(stream), &status) != CUDA_SUCCESS) return nullptr;
  if (status != CU_STREAM_CAPTURE_STATUS_NONE) return nullptr;
  CUcontext context = nullptr;
  return g_driver.stream_context(static_cast<CUstream>(stream), &context) == CUDA_SUCCESS ? context : nullptr;
}

Event make() noexcept {
  CUevent event = nullptr;
  return g_driver.event_create(&event, CU_EVENT_DISABLE_TIMING) == CUDA_SUCCESS ? event : nullptr;
}
bool record(Event event, void* stream) noexcept {
  return g_driver.event_record(static_cast<CUevent>(event), static_cast<CUstream>(stream)) == CUDA_SUCCESS;
}
GateDriver::State query(Event event) noexcept {
  const CUresult result = g_driver.event_query(static_cast<CUevent>(event));
  if (result == CUDA_ERROR_NOT_READY) return GateDriver::State::running;
  return result == CUDA_SUCCESS ? GateDriver::State::ended : GateDriver::State::lost;
}
void drop(Event event) noexcept { g_driver.event_destroy(static_cast<CUevent>(event)); }

constexpr GateDriver kDriver{context_of, begin, end, make, record, query, drop};

}  // namespace

const char* bind_cuda_driver() noexcept {
  if (g_driver.event_create != nullptr) return nullptr;  // and in use
  // It is loaded, because it called this library.
  void* const library = ::dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD);
  if (library == nullptr) return "libcuda.so.1";
  Driver found;
  EntryPoints driver(library);
  driver.need(found.event_create, "cuEventCreate");
  driver.need(found.event_record, "cuEventRecord");
  driver.need(found.event_query, "cuEventQuery");
  driver.need(found.event_destroy, "cuEventDestroy_v2");
  driver.need(found.stream_is_capturing, "cuStreamIsCapturing");
  driver.need(found.stream_context, "cuStreamGetCtx");
  driver.need(found.exchange_capture_mode, "cuThreadExchangeStreamCaptureMode");
  driver.need(found.current, "cuCtxGetCurrent");
  driver.need(found.push, "cuCtxPushCurrent_v2");
  driver.need(found.pop, "cuCtxPopCurrent_v2");
  driver.need(found.device, "cuCtxGetDevice");
  if (driver.missing() == nullptr) g_driver = found;
  return driver.missing();
}

const GateDriver& cuda_driver() noexcept { return kDriver; }

Context context_with(void* stream) noexcept {
  if (g_driver.stream_context == nullptr) return nullptr;  // an old driver
  CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
  if (g_driver.exchange_capture_mode(&mode) != CUDA_SUCCESS) return nullptr;
  CUcontext context = nullptr;
  if (g_driver.stream_context(static_cast<CUstream>(stream), &context) != CUDA_SUCCESS) context = nullptr;
  g_driver.exchange_capture_mode(&mode);
  return context;
}

int device_of(Context context) noexcept {
  GateDriver::Visit visit;
  if (!begin(context, &visit)) return -1;
  CUdevice device = -1;
  if (g_driver.device(&device) != CUDA_SUCCESS) device = -1;
  end(visit);
  return device;
}

}  // namespace weir::inject
