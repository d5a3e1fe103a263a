// A CUPTI without a GPU: a library with the entry points that libweir_cupti.so uses, which hands out records of
// commands that never ran, as many as fake_cuda_program.cpp says; tells a subscriber about calls of the fake driver,
// and records what that ran. FAKE_CUPTI_REFUSES=N makes every enable fail with error N; with FAKE_CUPTI_TAKEN there is
// a subscriber already, and with FAKE_CUPTI_SHARED it shares.
#include <cupti.h>
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
#include <vector>

#include "fake_driver.h"

namespace {

// CUpti_ActivityGraphTrace2, which the headers of early versions of CUDA 12 lack.
struct GraphRecord {
  CUpti_ActivityKind kind;
  std::uint32_t correlation;
  std::uint64_t start, end;
  std::uint32_t device, graph, context, stream, end_device, end_context;
};

struct Fake {
  std::recursive_mutex mutex;  // the library under test flushes in a thread of its own
  CUpti_BuffersCallbackRequestFunc request = nullptr;
  CUpti_BuffersCallbackCompleteFunc complete = nullptr;
  CUpti_TimestampCallbackFunc clock = nullptr;
  std::set<int> kinds;
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
    case CUPTI_ACTIVITY_KIND_GRAPH_TRACE:
      return sizeof(GraphRecord);
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

thread_local std::uint32_t t_correlation = 0;  // of the call that this thread is in
thread_local std::uint64_t t_kept = 0;         // correlationData of calls that fake_cupti_run() pretends

CUcontext current_context() {
  static const auto kCurrent = [] {
    void* const driver = ::dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
    return driver == nullptr ? nullptr : reinterpret_cast<CUresult (*)(CUcontext*)>(::dlsym(driver, "cuCtxGetCurrent"));
  }();
  CUcontext context = nullptr;
  if (kCurrent == nullptr || kCurrent(&context) != CUDA_SUCCESS) return reinterpret_cast<CUcontext>(1);
  return context;
}

std::uint32_t id_of(CUcontext context) {
  static const auto kId = [] {
    void* const driver = ::dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
    return driver == nullptr
               ? nullptr
               : reinterpret_cast<CUresult (*)(CUcontext, unsigned long long*)>(::dlsym(driver, "cuCtxGetId"));
  }();
  unsigned long long id = 1;
  if (kId == nullptr || context == nullptr || kId(context, &id) != CUDA_SUCCESS) id = 1;
  return static_cast<std::uint32_t>(id);
}

// What a subscriber is told about a call of the driver.
void report_call(std::uint32_t function, bool is_entry, const void* arguments, CUresult* result,
                 std::uint64_t* correlation) {
  Fake& f = fake();
  if (f.subscriber == nullptr || !f.followed.contains(function)) return;
  CUpti_CallbackData data{};
  data.callbackSite = is_entry ? CUPTI_API_ENTER : CUPTI_API_EXIT;
  data.functionParams = arguments;
  data.functionReturnValue = result;
  data.correlationData = correlation;
  data.correlationId = t_correlation;
  data.symbolName = "_Z9do_thingsPfi";
  data.context = current_context();
  data.contextUid = id_of(data.context);
  f.subscriber(nullptr, CUPTI_CB_DOMAIN_DRIVER_API, function, &data);
}

std::uint32_t next_correlation() {
  const std::lock_guard lock(fake().mutex);
  return ++fake().correlation;
}

// Calls may be nested: a guest's own calls within a program's.
void on_driver_call(std::uint32_t function, bool is_entry, const void* arguments, CUresult* result,
                    std::uint64_t* correlation) {
  static thread_local std::vector<std::uint32_t> t_outer;
  if (is_entry) {
    t_outer.push_back(t_correlation);
    t_correlation = next_correlation();
  }
  report_call(function, is_entry, arguments, result, correlation);
  if (!is_entry) {
    t_correlation = t_outer.back();
    t_outer.pop_back();
  }
}

template <class Arguments>
void pretend_call(std::uint32_t function, const Arguments& arguments) {
  t_correlation = next_correlation();
  CUresult result = CUDA_SUCCESS;
  report_call(function, true, &arguments, &result, &t_kept);
  report_call(function, false, &arguments, &result, &t_kept);
}

// The fake driver's streams are numbered by their addresses.
std::uint32_t stream_number(CUstream stream) {
  return static_cast<std::uint32_t>(reinterpret_cast<std::uintptr_t>(stream) & 0xffffffff);
}

void on_ended(std::uint32_t correlation, CUstream stream, std::int64_t started_ns, std::int64_t ended_ns) {
  if (!fake().kinds.contains(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL)) return;
  CUpti_ActivityKernel9 kernel{};
  kernel.contextId = 1;
  kernel.streamId = stream_number(stream);
  kernel.channelID = 3;
  kernel.channelType = CUPTI_CHANNEL_TYPE_COMPUTE;
  kernel.correlationId = correlation;
  kernel.start = static_cast<std::uint64_t>(started_ns);
  kernel.end = static_cast<std::uint64_t>(ended_ns);
  kernel.name = "_Z9do_thingsPfi";
  emit(kernel, CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
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
CUptiResult cuptiActivityDisable(CUpti_ActivityKind kind) {
  const std::lock_guard lock(fake().mutex);
  fake().kinds.erase(kind);
  return CUPTI_SUCCESS;
}
CUptiResult cuptiGetStreamIdEx(CUcontext, CUstream stream, std::uint8_t, std::uint32_t* id) {
  return *id = stream_number(stream), CUPTI_SUCCESS;
}
CUptiResult cuptiGetContextId(CUcontext context, std::uint32_t* id) { return *id = id_of(context), CUPTI_SUCCESS; }
CUptiResult cuptiGetDeviceId(CUcontext, std::uint32_t* id) { return *id = 0, CUPTI_SUCCESS; }
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
CUptiResult subscribe(CUpti_SubscriberHandle* subscriber, CUpti_CallbackFunc callback) {
  fake().subscriber = callback;
  // Without a driver, calls are only pretended.
  if (void* const driver = ::dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD)) {
    if (const auto set_hook =
            reinterpret_cast<decltype(&fake_driver_set_hook)>(::dlsym(driver, "fake_driver_set_hook")))
      set_hook(on_driver_call);
    if (const auto set_records =
            reinterpret_cast<decltype(&fake_driver_set_records)>(::dlsym(driver, "fake_driver_set_records")))
      set_records([] { return t_correlation; }, on_ended);
  }
  *subscriber = reinterpret_cast<CUpti_SubscriberHandle>(&fake());
  return CUPTI_SUCCESS;
}
CUptiResult cuptiSubscribe(CUpti_SubscriberHandle* subscriber, CUpti_CallbackFunc callback, void*) {
  if (std::getenv("FAKE_CUPTI_TAKEN") != nullptr) return CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED;
  return subscribe(subscriber, callback);
}
// Like CUDA 13.0, whose structure is smaller; with FAKE_CUPTI_SHARED like 13.2, which takes several subscribers.
#if CUPTI_API_VERSION >= 130000
CUptiResult cuptiSubscribe_v2(CUpti_SubscriberHandle* subscriber, CUpti_CallbackFunc callback, void*,
                              CUpti_SubscriberParams* parameters) {
  constexpr std::size_t kOldSize = CUpti_SubscriberParams_STRUCT_SIZE;
  const bool is_new = std::getenv("FAKE_CUPTI_SHARED") != nullptr;
  if (parameters->structSize > kOldSize && !is_new) return CUPTI_ERROR_INVALID_PARAMETER;
  const bool allows_others =
      parameters->structSize > kOldSize && reinterpret_cast<const std::uint8_t*>(parameters)[kOldSize] != 0;
  if (std::getenv("FAKE_CUPTI_TAKEN") == nullptr || allows_others) return subscribe(subscriber, callback);
  std::strncpy(parameters->oldSubscriberName, "CUPTI for somebody", parameters->oldSubscriberSize);
  return CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED;
}
#endif
CUptiResult cuptiUnsubscribe(CUpti_SubscriberHandle) {
  fake().subscriber = nullptr;
  return CUPTI_SUCCESS;
}
CUptiResult cuptiEnableCallback(std::uint32_t enable, CUpti_SubscriberHandle, CUpti_CallbackDomain domain,
                                CUpti_CallbackId id) {
  if (refusal() != CUPTI_SUCCESS) return refusal();
  if (domain != CUPTI_CB_DOMAIN_DRIVER_API) return CUPTI_SUCCESS;
  if (enable != 0) {
    fake().followed.insert(id);
  } else {
    fake().followed.erase(id);
  }
  return CUPTI_SUCCESS;
}

// Two streams on two channels: kernels on both, a copy and a memset, and the second stream waits for an event of the
// first. `count` kernels on each. Returns the number of commands.
int fake_cupti_run(int count) {
  Fake& f = fake();
  if (f.kinds.empty()) return 0;
  const auto clock = [&] { return f.clock != nullptr ? f.clock() : std::uint64_t{1'000'000}; };
  std::uint64_t free_at[9] = {};  // when a stream's last command ends
  int commands = 0;
  const auto stream_at = [](std::uint32_t number) {
    return reinterpret_cast<CUstream>(static_cast<std::uintptr_t>(number));
  };
  // The fields of a record that follow from its call, which has just returned.
  const auto place = [&](auto& record, std::uint32_t stream, std::uint32_t channel, CUpti_ChannelType type,
                         std::uint64_t takes_ns) {
    record.contextId = 1;
    record.streamId = stream;
    record.channelID = channel;
    record.channelType = type;
    record.correlationId = t_correlation;
    record.start = std::max(clock() + 3'000, free_at[stream]);
    record.end = free_at[stream] = record.start + takes_ns;
    ++commands;
  };
  CUpti_ActivityContext context{};
  context.contextId = 1;
  emit(context, CUPTI_ACTIVITY_KIND_CONTEXT);
  const auto kernel = [&](std::uint32_t stream, const char* name) {
    CUpti_ActivityKernel9 record{};
    place(record, stream, stream + 10, CUPTI_CHANNEL_TYPE_COMPUTE, 4'000);
    if (f.has_latency) record.queued = record.submitted = clock();
    record.name = name;
    return record;
  };
  for (int i = 0; i < count; ++i)
    for (std::uint32_t stream = 7; stream <= 8; ++stream) {
      cuLaunchKernel_params launch{};
      launch.hStream = stream_at(stream);
      pretend_call(CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel, launch);
      emit(kernel(stream, "_Z9do_thingsPfi"), CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
    }
  // An event of stream 7 that stream 8 waits for.
  const auto event = reinterpret_cast<CUevent>(std::uintptr_t{3});
  pretend_call(CUPTI_DRIVER_TRACE_CBID_cuEventRecord, cuEventRecord_params{event, stream_at(7)});
  pretend_call(CUPTI_DRIVER_TRACE_CBID_cuStreamWaitEvent, cuStreamWaitEvent_params{stream_at(8), event, 0});
  free_at[8] = std::max(free_at[8], free_at[7]);
  cuMemcpyHtoDAsync_v2_params copied{};
  copied.ByteCount = 4096;
  copied.hStream = stream_at(8);
  pretend_call(CUPTI_DRIVER_TRACE_CBID_cuMemcpyHtoDAsync_v2, copied);
  CUpti_ActivityMemcpy5 copy{};
  copy.copyKind = CUPTI_ACTIVITY_MEMCPY_KIND_HTOD;
  copy.bytes = 4096;
  place(copy, 8, 2, CUPTI_CHANNEL_TYPE_ASYNC_MEMCPY, 2'000);
  emit(copy, CUPTI_ACTIVITY_KIND_MEMCPY);
  cuMemsetD8Async_ptsz_params set{};
  set.N = 256;
  set.hStream = stream_at(8);
  pretend_call(CUPTI_DRIVER_TRACE_CBID_cuMemsetD8Async_ptsz, set);
  CUpti_ActivityMemset4 memset{};
  memset.bytes = 256;
  place(memset, 8, 18, CUPTI_CHANNEL_TYPE_COMPUTE, 500);
  emit(memset, CUPTI_ACTIVITY_KIND_MEMSET);
  // A graph of three kernels: they have the correlation of its one launch.
  if (std::getenv("FAKE_CUPTI_GRAPH") != nullptr) {
    cuGraphLaunch_params launch{};
    launch.hStream = stream_at(7);
    pretend_call(CUPTI_DRIVER_TRACE_CBID_cuGraphLaunch, launch);
    if (f.kinds.contains(CUPTI_ACTIVITY_KIND_GRAPH_TRACE)) {
      const CUpti_ActivityKernel9 whole = kernel(7, "");
      GraphRecord record{};
      record.correlation = t_correlation;
      record.start = whole.start;
      record.end = whole.end;
      record.context = 1;
      record.stream = 7;
      record.graph = 5;
      emit(record, CUPTI_ACTIVITY_KIND_GRAPH_TRACE);
    }
    for (std::uint64_t node = 1; node <= 3 && !f.kinds.contains(CUPTI_ACTIVITY_KIND_GRAPH_TRACE); ++node) {
      CUpti_ActivityKernel9 record = kernel(7, "_Z7in_loopv");
      record.graphId = 5;
      record.graphNodeId = node;
      emit(record, CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
    }
  }
  pretend_call(CUPTI_DRIVER_TRACE_CBID_cuCtxSynchronize, 0);
  return commands;
}

}  // extern "C"
