// A CUPTI without a GPU: a library with the entry points that libweir_cupti.so uses, which hands out records of
// commands that never ran, as many as fake_cuda_program.cpp says, and tells a subscriber about calls of the fake
// driver. FAKE_CUPTI_REFUSES=N makes every enable fail with error N; with FAKE_CUPTI_TAKEN there is a subscriber
// already.
#include <cupti_activity.h>
#include <cupti_callbacks.h>
#include <cupti_result.h>
#include <cupti_version.h>
#include <dlfcn.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <mutex>
#include <set>

#include "fake_driver.h"

namespace {

constexpr const char* kRuntime[] = {"",
                                    "cudaLaunchKernel_v7000",
                                    "cudaMalloc_v3020",
                                    "cudaMemcpyAsync_v3020",
                                    "cudaDeviceSynchronize_v3020",
                                    "cudaEventRecord_v3020",
                                    "cudaStreamWaitEvent_v3020",
                                    "cudaMemsetAsync_ptsz_v7000",
                                    "cudaGraphLaunch_v10000"};
constexpr const char* kDriver[] = {"", "cuLaunchKernel", "cuMemAlloc_v2", "cuMemcpyAsync", "cuCtxSynchronize"};

struct Fake {
  std::recursive_mutex mutex;  // the library under test flushes in a thread of its own
  CUpti_BuffersCallbackRequestFunc request = nullptr;
  CUpti_BuffersCallbackCompleteFunc complete = nullptr;
  CUpti_TimestampCallbackFunc clock = nullptr;
  std::set<int> kinds;
  std::set<std::uint32_t> runtime, driver;
  std::uint8_t* buffer = nullptr;
  std::size_t size = 0, used = 0;
  std::size_t dropped = 0;
  std::uint32_t correlation = 0;
  bool has_latency = false;
  CUpti_CallbackFunc subscriber = nullptr;
  std::set<std::uint32_t> followed;  // functions of the driver
};

Fake& fake() {
  static Fake& kFake = *new Fake;
  return kFake;
}

std::size_t size_of(CUpti_ActivityKind kind) {
  switch (kind) {
    case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL:
      return sizeof(CUpti_ActivityKernel9);
    case CUPTI_ACTIVITY_KIND_MEMCPY:
      return sizeof(CUpti_ActivityMemcpy5);
    case CUPTI_ACTIVITY_KIND_MEMCPY2:
      return sizeof(CUpti_ActivityMemcpyPtoP4);
    case CUPTI_ACTIVITY_KIND_MEMSET:
      return sizeof(CUpti_ActivityMemset4);
    case CUPTI_ACTIVITY_KIND_SYNCHRONIZATION:
      return sizeof(CUpti_ActivitySynchronization);
    case CUPTI_ACTIVITY_KIND_CUDA_EVENT:
      return sizeof(CUpti_ActivityCudaEvent);
    case CUPTI_ACTIVITY_KIND_CONTEXT:
      return sizeof(CUpti_ActivityContext);
    case CUPTI_ACTIVITY_KIND_DEVICE:
      return sizeof(CUpti_ActivityDevice4);
    default:
      return sizeof(CUpti_ActivityAPI);
  }
}

std::size_t rounded(std::size_t size) { return (size + 7) / 8 * 8; }

void hand_over() {
  Fake& f = fake();
  const std::lock_guard lock(f.mutex);
  if (f.buffer == nullptr) return;
  std::uint8_t* const buffer = f.buffer;
  f.buffer = nullptr;
  f.complete(nullptr, 0, buffer, f.size, f.used);
}

template <class Record>
void emit(Record record, CUpti_ActivityKind kind) {
  Fake& f = fake();
  const std::lock_guard lock(f.mutex);
  record.kind = kind;
  const std::size_t size = rounded(size_of(kind));
  if (f.buffer != nullptr && f.used + size > f.size) hand_over();
  if (f.buffer == nullptr) {
    std::size_t most = 0;
    f.used = f.size = 0;
    if (f.request != nullptr) f.request(&f.buffer, &f.size, &most);
    if (f.buffer == nullptr) {
      ++f.dropped;
      return;
    }
  }
  std::memset(f.buffer + f.used, 0, size);
  std::memcpy(f.buffer + f.used, &record, std::min(size_of(kind), sizeof record));
  f.used += size;
}

// A call of the runtime and the driver's within it; their records come when they return, the inner one first.
void emit_call(std::uint32_t runtime, std::uint32_t driver, std::uint64_t from, std::uint64_t to) {
  Fake& f = fake();
  CUpti_ActivityAPI call{};
  call.correlationId = ++f.correlation;
  call.threadId = static_cast<std::uint32_t>(::getpid());
  call.start = from + 10;
  call.end = to - 10;
  call.cbid = driver;
  if (driver != 0 && (f.driver.contains(driver) || f.kinds.contains(CUPTI_ACTIVITY_KIND_DRIVER)))
    emit(call, CUPTI_ACTIVITY_KIND_DRIVER);
  call.start = from;
  call.end = to;
  call.cbid = runtime;
  if (runtime != 0 && (f.runtime.contains(runtime) || f.kinds.contains(CUPTI_ACTIVITY_KIND_RUNTIME)))
    emit(call, CUPTI_ACTIVITY_KIND_RUNTIME);
}

void on_driver_call(std::uint32_t function, bool is_entry, const void* arguments, CUresult* result,
                    std::uint64_t* correlation) {
  Fake& f = fake();
  if (f.subscriber == nullptr || !f.followed.contains(function)) return;
  CUpti_CallbackData data{};
  data.callbackSite = is_entry ? CUPTI_API_ENTER : CUPTI_API_EXIT;
  data.functionParams = arguments;
  data.functionReturnValue = result;
  data.correlationData = correlation;
  f.subscriber(nullptr, CUPTI_CB_DOMAIN_DRIVER_API, function, &data);
}

CUptiResult refusal() {
  const char* const text = std::getenv("FAKE_CUPTI_REFUSES");
  return text == nullptr ? CUPTI_SUCCESS : static_cast<CUptiResult>(std::atoi(text));
}

}  // namespace

extern "C" {

CUptiResult cuptiGetVersion(std::uint32_t* version) { return *version = 19, CUPTI_SUCCESS; }
CUptiResult cuptiGetResultString(CUptiResult result, const char** text) {
  *text = result == CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED ? "CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED"
                                                                   : "CUPTI_ERROR_OF_THE_FAKE";
  return CUPTI_SUCCESS;
}
CUptiResult cuptiActivityRegisterCallbacks(CUpti_BuffersCallbackRequestFunc request,
                                           CUpti_BuffersCallbackCompleteFunc complete) {
  fake().request = request;
  fake().complete = complete;
  return CUPTI_SUCCESS;
}
CUptiResult cuptiActivityRegisterTimestampCallback(CUpti_TimestampCallbackFunc clock) {
  fake().clock = clock;
  return CUPTI_SUCCESS;
}
CUptiResult cuptiActivityEnable(CUpti_ActivityKind kind) {
  if (refusal() != CUPTI_SUCCESS) return refusal();
  fake().kinds.insert(kind);
  if (kind == CUPTI_ACTIVITY_KIND_DEVICE) {
    CUpti_ActivityDevice4 device{};
    device.id = 0;
    device.name = "Fake GPU";
    emit(device, kind);
  }
  return CUPTI_SUCCESS;
}
CUptiResult cuptiActivityEnableRuntimeApi(CUpti_CallbackId id, std::uint8_t) {
  fake().runtime.insert(id);
  return CUPTI_SUCCESS;
}
CUptiResult cuptiActivityEnableDriverApi(CUpti_CallbackId id, std::uint8_t) {
  fake().driver.insert(id);
  return CUPTI_SUCCESS;
}
CUptiResult cuptiActivityEnableLatencyTimestamps(std::uint8_t is_on) {
  fake().has_latency = is_on != 0;
  return CUPTI_SUCCESS;
}
CUptiResult cuptiActivityFlushAll(std::uint32_t) {
  hand_over();
  return CUPTI_SUCCESS;
}
CUptiResult cuptiActivityGetNumDroppedRecords(CUcontext, std::uint32_t, std::size_t* dropped) {
  const std::lock_guard lock(fake().mutex);
  *dropped = fake().dropped;
  fake().dropped = 0;
  return CUPTI_SUCCESS;
}
CUptiResult cuptiActivityGetNextRecord(std::uint8_t* buffer, std::size_t valid, CUpti_Activity** record) {
  std::uint8_t* const next =
      *record == nullptr ? buffer : reinterpret_cast<std::uint8_t*>(*record) + rounded(size_of((*record)->kind));
  if (next >= buffer + valid) return CUPTI_ERROR_MAX_LIMIT_REACHED;
  *record = reinterpret_cast<CUpti_Activity*>(next);
  return CUPTI_SUCCESS;
}
CUptiResult cuptiGetCallbackName(CUpti_CallbackDomain domain, std::uint32_t id, const char** name) {
  const bool is_runtime = domain == CUPTI_CB_DOMAIN_RUNTIME_API;
  if (id >= (is_runtime ? std::size(kRuntime) : std::size(kDriver))) return CUPTI_ERROR_INVALID_PARAMETER;
  *name = is_runtime ? kRuntime[id] : kDriver[id];
  return CUPTI_SUCCESS;
}
CUptiResult cuptiSubscribe(CUpti_SubscriberHandle* subscriber, CUpti_CallbackFunc callback, void*) {
  if (std::getenv("FAKE_CUPTI_TAKEN") != nullptr) return CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED;
  void* const driver = ::dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
  const auto set_hook =
      driver == nullptr ? nullptr
                        : reinterpret_cast<decltype(&fake_driver_set_hook)>(::dlsym(driver, "fake_driver_set_hook"));
  if (set_hook == nullptr) return CUPTI_ERROR_NOT_INITIALIZED;
  fake().subscriber = callback;
  set_hook(on_driver_call);
  *subscriber = reinterpret_cast<CUpti_SubscriberHandle>(&fake());
  return CUPTI_SUCCESS;
}
CUptiResult cuptiUnsubscribe(CUpti_SubscriberHandle) {
  fake().subscriber = nullptr;
  return CUPTI_SUCCESS;
}
CUptiResult cuptiEnableCallback(std::uint32_t enable, CUpti_SubscriberHandle, CUpti_CallbackDomain domain,
                                CUpti_CallbackId id) {
  if (refusal() != CUPTI_SUCCESS) return refusal();
  if (domain == CUPTI_CB_DOMAIN_DRIVER_API && enable != 0) fake().followed.insert(id);
  return CUPTI_SUCCESS;
}

// Two streams on two channels: kernels on both, a copy and a memset, and the second stream waits for an event of the
// first. `count` kernels on each. Returns the number of commands.
int fake_cupti_run(int count) {
  Fake& f = fake();
  if (f.kinds.empty()) return 0;
  std::uint64_t now = f.clock != nullptr ? f.clock() : 1'000'000;
  int commands = 0;
  CUpti_ActivityContext context{};
  context.contextId = 1;
  emit(context, CUPTI_ACTIVITY_KIND_CONTEXT);
  emit_call(2, 2, now, now + 100);  // an allocation: nobody wants to see it
  for (int i = 0; i < count; ++i) {
    for (std::uint32_t stream = 7; stream <= 8; ++stream) {
      emit_call(1, 1, now, now + 2'000);
      CUpti_ActivityKernel9 kernel{};
      kernel.contextId = 1;
      kernel.streamId = stream;
      kernel.channelID = stream + 10;
      kernel.channelType = CUPTI_CHANNEL_TYPE_COMPUTE;
      kernel.correlationId = f.correlation;
      kernel.start = now + 5'000;
      kernel.end = now + 9'000;
      if (f.has_latency) {
        kernel.queued = now + 500;
        kernel.submitted = now + 1'500;
      }
      kernel.name = "_Z9do_thingsPfi";
      emit(kernel, CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
      ++commands;
    }
    now += 10'000;
  }
  // An event of stream 7 that stream 8 waits for.
  emit_call(5, 0, now, now + 500);
  CUpti_ActivityCudaEvent event{};
  event.contextId = 1;
  event.streamId = 7;
  event.eventId = 3;
  event.correlationId = f.correlation;
  emit(event, CUPTI_ACTIVITY_KIND_CUDA_EVENT);
  emit_call(6, 0, now + 500, now + 1'000);
  CUpti_ActivitySynchronization wait{};
  wait.type = CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_STREAM_WAIT_EVENT;
  wait.contextId = 1;
  wait.streamId = 8;
  wait.cudaEventId = 3;
  wait.correlationId = f.correlation;
  wait.start = now + 500;
  wait.end = now + 1'000;
  emit(wait, CUPTI_ACTIVITY_KIND_SYNCHRONIZATION);
  emit_call(3, 3, now + 1'000, now + 2'000);
  CUpti_ActivityMemcpy5 copy{};
  copy.copyKind = CUPTI_ACTIVITY_MEMCPY_KIND_HTOD;
  copy.bytes = 4096;
  copy.contextId = 1;
  copy.streamId = 8;
  copy.channelID = 2;
  copy.channelType = CUPTI_CHANNEL_TYPE_ASYNC_MEMCPY;
  copy.correlationId = f.correlation;
  copy.start = now + 4'000;
  copy.end = now + 6'000;
  emit(copy, CUPTI_ACTIVITY_KIND_MEMCPY);
  emit_call(7, 0, now + 2'000, now + 3'000);
  CUpti_ActivityMemset4 memset{};
  memset.bytes = 256;
  memset.contextId = 1;
  memset.streamId = 8;
  memset.channelID = 18;
  memset.channelType = CUPTI_CHANNEL_TYPE_COMPUTE;
  memset.correlationId = f.correlation;
  memset.start = now + 6'000;
  memset.end = now + 6'500;
  emit(memset, CUPTI_ACTIVITY_KIND_MEMSET);
  // A graph of three kernels: they have the correlation of its one launch.
  for (int i = 0; i < 3 && std::getenv("FAKE_CUPTI_GRAPH") != nullptr; ++i) {
    if (i == 0) emit_call(8, 0, now + 2'500, now + 3'000);
    CUpti_ActivityKernel9 kernel{};
    kernel.contextId = 1;
    kernel.streamId = 7;
    kernel.channelID = 17;
    kernel.channelType = CUPTI_CHANNEL_TYPE_COMPUTE;
    kernel.correlationId = f.correlation;
    kernel.graphId = 5;
    kernel.graphNodeId = static_cast<std::uint64_t>(i) + 1;
    kernel.start = now + 3'100 + 100 * static_cast<std::uint64_t>(i);
    kernel.end = kernel.start + 50;
    kernel.name = "_Z7in_loopv";
    emit(kernel, CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
    ++commands;
  }
  emit_call(4, 4, now + 3'000, now + 8'000);
  CUpti_ActivitySynchronization all{};
  all.type = CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_CONTEXT_SYNCHRONIZE;
  all.contextId = 1;
  all.streamId = CUPTI_SYNCHRONIZATION_INVALID_VALUE;
  all.cudaEventId = CUPTI_SYNCHRONIZATION_INVALID_VALUE;
  all.correlationId = f.correlation;
  all.start = now + 3'000;
  all.end = now + 8'000;
  emit(all, CUPTI_ACTIVITY_KIND_SYNCHRONIZATION);
  return commands + 2;
}

}  // extern "C"
