// The interface of the fake librocprofiler-sdk, as version 1.0 documents it: contexts, buffers, marks by request.
// Written from the documentation a second time, so that it does not share a mistake with the program's own
// declarations.
#include <algorithm>
#include <condition_variable>
#include <cstring>
#include <thread>
#include <utility>

#include "rocprofiler.h"

namespace weir::fake_rocprofiler {
namespace {

constexpr int kInvalid = 1, kNotFound = 2, kConfigurationLocked = 16, kAbi = 18;

struct Header {
  std::uint32_t category, kind;
  void* payload;
};

// As bytes, because that is what programs get: 184 for a dispatch, 104 for a copy.
struct alignas(8) Record {
  std::uint32_t kind = 0;
  unsigned char bytes[184] = {};
  template <class Value>
  void put(std::size_t at, Value value) {
    std::memcpy(bytes + at, &value, sizeof value);
  }
};

using Arrived = void (*)(std::uint64_t, std::uint64_t, Header**, std::size_t, void*, std::uint64_t);
using Request = int (*)(std::uint64_t, std::uint64_t, int, std::int32_t, std::uint64_t, std::uint64_t*, void*);

struct Api {
  std::mutex mutex;
  std::condition_variable changed;
  bool is_configuring = false, is_configured = false, is_started = false;
  Arrived arrived = nullptr;
  void* arrived_data = nullptr;
  Request request = nullptr;
  void* request_data = nullptr;
  bool has_kind[32] = {}, asks_for_kind[32] = {};
  std::size_t capacity = 0, watermark = 0, used = 0;
  std::vector<Record> records;
  std::uint64_t dropped = 0;
  std::uint64_t asked = 0, delivered = 0;  // flushes
  bool has_thread = false;
};

Api& api() {
  static Api& kApi = *new Api;
  return kApi;
}

constexpr std::uint32_t kCopy = 10, kDispatch = 11;
std::uint32_t kind_of(const Work& work) { return work.kind == FakeHipWork::kernel ? kDispatch : kCopy; }

Record record_of(const Work& work, std::uint64_t number) {
  Record record;
  record.kind = kind_of(work);
  const bool is_kernel = record.kind == kDispatch;
  const std::uint64_t size = setting("short") != 0 ? 48 : is_kernel ? 184 : 104;
  record.put(0, size);
  record.put(8, record.kind);
  record.put(12, std::int32_t{2});
  record.put(16, work.correlation);
  record.put(24, work.external);
  record.put(32, work.thread);
  record.put(40, work.started);
  record.put(48, work.ended);
  if (is_kernel) {
    record.put(56, std::uint64_t{72});
    record.put(64, std::uint64_t{13});
    record.put(72, static_cast<std::uint64_t>(work.queue));
    record.put(80, std::uint64_t{1});
    record.put(88, number);
  } else {
    record.put(56, std::uint64_t{13});
    record.put(64, std::uint64_t{10});
    record.put(72, work.bytes);
  }
  return record;
}

// Hands buffers to the program on a thread of the library's own, in no particular order.
void deliver() {
  Api& a = api();
  std::unique_lock lock(a.mutex);
  for (;;) {
    a.changed.wait(lock, [&] { return a.asked > a.delivered; });
    const std::uint64_t until = a.asked;
    std::vector<Record> records = std::move(a.records);
    a.records.clear();
    a.used = 0;
    const std::uint64_t dropped = std::exchange(a.dropped, 0);
    const Arrived arrived = a.arrived;
    void* const data = a.arrived_data;
    lock.unlock();
    std::reverse(records.begin(), records.end());
    std::vector<Header> headers;
    for (Record& record : records) headers.push_back({1, record.kind, record.bytes});
    std::vector<Header*> places;
    for (Header& header : headers) places.push_back(&header);
    if (arrived != nullptr && (!places.empty() || dropped > 0))
      arrived(1, 1, places.data(), places.size(), data, dropped);
    lock.lock();
    a.delivered = until;
    a.changed.notify_all();
  }
}

}  // namespace

Traced ask_for_mark(const Work& work) {
  Api& a = api();
  std::unique_lock lock(a.mutex);
  const std::uint32_t kind = kind_of(work);
  if (!a.is_started || !a.has_kind[kind]) return {};
  const Request request = a.asks_for_kind[kind] ? a.request : nullptr;
  void* const data = a.request_data;
  lock.unlock();
  Traced traced{true, 0};
  if (setting("marks", 1) == 0) return traced;
  if (request != nullptr && request(work.thread, 1, static_cast<int>(kind), 2, 0, &traced.external, data) != 0)
    traced.external = 0;
  return traced;
}

void hand_on(const Work& work, std::uint64_t number) {
  const std::int64_t drop = setting("drop");
  if (drop != 0 && static_cast<std::int64_t>(number) % drop == 0) return;
  Api& a = api();
  const std::lock_guard lock(a.mutex);
  const std::size_t bytes = kind_of(work) == kDispatch ? 184 : 104;
  if (a.used + bytes > a.capacity) {
    ++a.dropped;
    return;
  }
  a.used += bytes;
  a.records.push_back(record_of(work, number));
  if (a.used < a.watermark || setting("lazy") != 0) return;
  ++a.asked;
  a.changed.notify_all();
}

}  // namespace weir::fake_rocprofiler

using namespace weir::fake_rocprofiler;

struct FakeConfigureResult {
  std::size_t size;
  int (*initialize)(void*, void*);
  void (*finalize)(void*);
  void* data;
};
struct FakeClient {
  std::size_t size;
  const char* name;
  std::uint32_t handle;
};

WEIR_FAKE_EXPORT int rocprofiler_get_version(std::uint32_t* major, std::uint32_t* minor, std::uint32_t* patch) {
  const std::int64_t version = setting("version", 10000);
  if (major != nullptr) *major = static_cast<std::uint32_t>(version / 10000);
  if (minor != nullptr) *minor = static_cast<std::uint32_t>(version / 100 % 100);
  if (patch != nullptr) *patch = static_cast<std::uint32_t>(version % 100);
  return 0;
}

WEIR_FAKE_EXPORT const char* rocprofiler_get_status_string(int status) {
  switch (status) {
    case 0:
      return "Success";
    case kNotFound:
      return "Context ID not found";
    case kConfigurationLocked:
      return "Function call is not valid outside of rocprofiler configuration";
    case kAbi:
      return "Incompatible data structure";
    default:
      return "General error";
  }
}

WEIR_FAKE_EXPORT int rocprofiler_force_configure(FakeConfigureResult* (*configure)(std::uint32_t, const char*,
                                                                                   std::uint32_t, FakeClient*)) {
  Api& a = api();
  {
    const std::lock_guard lock(a.mutex);
    if (a.is_configured || a.is_configuring || setting("locked") != 0) return kConfigurationLocked;
    a.is_configuring = true;
  }
  FakeClient client{sizeof(FakeClient), "", 1};
  const FakeConfigureResult* const result = configure(10000, "1.0.0", 0, &client);
  int status = client.size == sizeof(FakeClient) && std::string_view(client.name) == "weir" ? 0 : kAbi;
  if (result != nullptr && result->size != sizeof(FakeConfigureResult)) status = kAbi;
  if (status == 0 && result != nullptr && result->initialize != nullptr) result->initialize(nullptr, result->data);
  const std::lock_guard lock(a.mutex);
  a.is_configuring = false;
  a.is_configured = true;
  return status;
}

WEIR_FAKE_EXPORT int rocprofiler_create_context(std::uint64_t* context) {
  const std::lock_guard lock(api().mutex);
  if (!api().is_configuring) return kConfigurationLocked;
  *context = 1;
  return 0;
}

WEIR_FAKE_EXPORT int rocprofiler_create_buffer(std::uint64_t context, std::size_t size, std::size_t watermark,
                                               int policy, Arrived arrived, void* data, std::uint64_t* buffer) {
  Api& a = api();
  const std::lock_guard lock(a.mutex);
  if (!a.is_configuring) return kConfigurationLocked;
  if (context != 1) return kNotFound;
  if (policy != 1 || arrived == nullptr) return kInvalid;
  a.capacity = static_cast<std::size_t>(setting("buffer", static_cast<std::int64_t>(size)));
  a.watermark = watermark;
  a.arrived = arrived;
  a.arrived_data = data;
  if (!a.has_thread) std::thread(deliver).detach();
  a.has_thread = true;
  *buffer = 1;
  return 0;
}

WEIR_FAKE_EXPORT int rocprofiler_configure_buffer_tracing_service(std::uint64_t context, int kind, const std::int32_t*,
                                                                  std::size_t, std::uint64_t buffer) {
  Api& a = api();
  const std::lock_guard lock(a.mutex);
  if (!a.is_configuring) return kConfigurationLocked;
  if (context != 1 || buffer != 1 || kind <= 0 || kind >= 32) return kNotFound;
  if (std::exchange(a.has_kind[kind], true)) return 15;
  return 0;
}

WEIR_FAKE_EXPORT int rocprofiler_configure_external_correlation_id_request_service(std::uint64_t context,
                                                                                   const int* kinds, std::size_t count,
                                                                                   Request request, void* data) {
  Api& a = api();
  const std::lock_guard lock(a.mutex);
  if (!a.is_configuring) return kConfigurationLocked;
  if (context != 1) return kNotFound;
  for (std::size_t i = 0; i < count; ++i) a.asks_for_kind[kinds[i]] = true;
  a.request = request;
  a.request_data = data;
  return 0;
}

WEIR_FAKE_EXPORT int rocprofiler_start_context(std::uint64_t context) {
  const std::lock_guard lock(api().mutex);
  if (context != 1) return kNotFound;
  if (setting("start", 1) == 0) return 12;
  api().is_started = true;
  return 0;
}

WEIR_FAKE_EXPORT int rocprofiler_stop_context(std::uint64_t context) {
  const std::lock_guard lock(api().mutex);
  if (context != 1) return kNotFound;
  api().is_started = false;
  return 0;
}

WEIR_FAKE_EXPORT int rocprofiler_flush_buffer(std::uint64_t buffer) {
  Api& a = api();
  std::unique_lock lock(a.mutex);
  if (buffer != 1) return 3;
  const std::uint64_t until = ++a.asked;
  a.changed.notify_all();
  a.changed.wait(lock, [&] { return a.delivered >= until; });
  return 0;
}
