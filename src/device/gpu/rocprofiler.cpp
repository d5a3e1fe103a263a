#include "device/gpu/rocprofiler.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <mutex>
#include <new>
#include <optional>
#include <utility>

#include "base/clock.h"
#include "base/vendor_library.h"
#include "device/clock_map.h"

// In a namespace of its own, because cupti.cpp has the same names.
namespace weir::rocprofiler {
namespace {

// What this file uses of the library's public interface, declared here because no distribution packages its headers.
// Written from the documentation of version 1.0 (ROCm 7.0). The library keeps its layouts within a major version, and
// each record begins with its size. None of this has met an AMD GPU yet, only a library of the tests.
namespace sdk {

constexpr std::uint32_t kMajor = 1;
struct Context {
  std::uint64_t handle;
};
struct Buffer {
  std::uint64_t handle;
};
union UserData {
  std::uint64_t value;
  void* pointer;
};
enum BufferTracing : int { kMemoryCopy = 10, kKernelDispatch = 11 };
enum ExternalRequest : int { kRequestMemoryCopy = 10, kRequestKernelDispatch = 11 };
enum BufferPolicy : int { kDiscard = 1 };
constexpr std::uint32_t kTracingCategory = 1;
constexpr int kBufferBusy = 14;

struct RecordHeader {
  std::uint32_t category, kind;
  void* payload;
};
struct Correlation {
  std::uint64_t internal;
  UserData external;
};
struct DispatchInfo {
  std::uint64_t size, agent, queue, kernel, dispatch;  // and more that is not used
};
struct DispatchRecord {
  std::uint64_t size;
  std::int32_t kind, operation;
  Correlation correlation;
  std::uint64_t thread, started, ended;
  DispatchInfo info;
};
struct CopyRecord {
  std::uint64_t size;
  std::int32_t kind, operation;
  Correlation correlation;
  std::uint64_t thread, started, ended;
};
static_assert(offsetof(DispatchRecord, correlation) == 16 && offsetof(DispatchRecord, started) == 40 &&
              offsetof(DispatchRecord, info) == 56 && offsetof(DispatchInfo, queue) == 16);

struct ClientId {
  std::size_t size;
  const char* name;
  const std::uint32_t handle;
};
static_assert(offsetof(ClientId, name) == 8 && offsetof(ClientId, handle) == 16 && sizeof(ClientId) == 24);
using Initialize = int (*)(void (*finalize)(ClientId), void* data);
struct ConfigureResult {
  std::size_t size;
  Initialize initialize;
  void (*finalize)(void* data);
  void* data;
};
using Configure = ConfigureResult* (*)(std::uint32_t version, const char* text, std::uint32_t priority, ClientId* id);
using Arrived = void (*)(Context, Buffer, RecordHeader** headers, std::size_t count, void* data, std::uint64_t dropped);
using Request = int (*)(std::uint64_t thread, Context, int kind, std::int32_t operation, std::uint64_t internal,
                        UserData* external, void* data);

}  // namespace sdk

constexpr std::size_t kBufferBytes = std::size_t{4} << 20;  // some 20,000 kernels
constexpr std::size_t kWatermark = kBufferBytes / 2;
constexpr std::size_t kMaxRecords = std::size_t{1} << 21;  // not yet taken: 200 MB

struct RocprofilerLibrary : VendorLibrary {
  RocprofilerLibrary() : VendorLibrary(library_places({"", "/opt/rocm/lib/"}, {"librocprofiler-sdk.so.1"})) {}
  int (*version)(std::uint32_t*, std::uint32_t*, std::uint32_t*) = need("rocprofiler_get_version");
  int (*timestamp)(std::uint64_t*) = need("rocprofiler_get_timestamp");
  const char* (*status_string)(int) = need("rocprofiler_get_status_string");
  int (*force_configure)(sdk::Configure) = need("rocprofiler_force_configure");
  int (*create_context)(sdk::Context*) = need("rocprofiler_create_context");
  int (*start_context)(sdk::Context) = need("rocprofiler_start_context");
  int (*stop_context)(sdk::Context) = need("rocprofiler_stop_context");
  int (*create_buffer)(sdk::Context, std::size_t, std::size_t, int, sdk::Arrived, void*,
                       sdk::Buffer*) = need("rocprofiler_create_buffer");
  int (*flush_buffer)(sdk::Buffer) = need("rocprofiler_flush_buffer");
  int (*trace)(sdk::Context, int kind, const std::int32_t*, std::size_t,
               sdk::Buffer) = need("rocprofiler_configure_buffer_tracing_service");
  int (*request_external)(sdk::Context, const int* kinds, std::size_t, sdk::Request,
                          void*) = need("rocprofiler_configure_external_correlation_id_request_service");
};

RocprofilerLibrary* g_library = nullptr;  // written once, by configure_rocprofiler()
std::string g_reason = "rocprofiler-sdk was not asked for (--profiler rocprofiler-sdk)";
GpuActivity g_activity;

// Everything that the library's own threads touch.
struct Sink {
  std::mutex mutex;
  std::vector<GpuActivityRecord> records;  // on the library's clock
  std::uint64_t lost = 0;
  bool is_open = false;  // a session wants records
  bool is_ready = false;
  int setup = 0;  // the first status that was not success
  sdk::Context context{};
  sdk::Buffer buffer{};
  std::optional<ClockFix> first;  // since start()
};

// Never destroyed: the library may hand over records while the process exits.
Sink& sink() {
  static Sink& kSink = *new Sink;
  return kSink;
}

thread_local std::uint64_t t_mark = 0;

std::int64_t time_of(std::uint64_t ns) noexcept {
  return ns == 0 || ns > INT64_MAX ? kNoTime : static_cast<std::int64_t>(ns);
}

template <class Theirs>
GpuActivityRecord read_record(GpuActivityRecord::Kind kind, const Theirs& theirs) noexcept {
  GpuActivityRecord record;
  record.kind = kind;
  record.correlation = static_cast<std::uint32_t>(theirs.correlation.internal);
  record.mark = theirs.correlation.external.value;
  record.started_ns = time_of(theirs.started);
  record.ended_ns = time_of(theirs.ended);
  return record;
}

// False for a record that is shorter than what is read of it.
bool read_into(std::vector<GpuActivityRecord>& records, const sdk::RecordHeader& header) {
  if (header.payload == nullptr) return false;
  const std::uint64_t size = *static_cast<const std::uint64_t*>(header.payload);
  if (header.kind == sdk::kKernelDispatch) {
    if (size < sizeof(sdk::DispatchRecord)) return false;
    const auto& theirs = *static_cast<const sdk::DispatchRecord*>(header.payload);
    GpuActivityRecord record = read_record(GpuActivityRecord::Kind::kernel, theirs);
    if (theirs.info.queue < kCopyQueues) {
      record.channel_type = GpuActivityRecord::Channel::compute;
      record.channel = static_cast<std::uint32_t>(theirs.info.queue);
    }
    records.push_back(record);
  } else {
    if (size < sizeof(sdk::CopyRecord)) return false;
    // The copy engine's queue is not recorded.
    records.push_back(read_record(GpuActivityRecord::Kind::copy, *static_cast<const sdk::CopyRecord*>(header.payload)));
  }
  return true;
}

// Called by the library's thread.
void arrived(sdk::Context, sdk::Buffer, sdk::RecordHeader** headers, std::size_t count, void*, std::uint64_t dropped) {
  std::vector<GpuActivityRecord> records;
  std::uint64_t lost = dropped, unreadable = 0;
  try {
    records.reserve(count);
    for (std::size_t i = 0; i < count; ++i) {
      const sdk::RecordHeader& header = *headers[i];
      if (header.category != sdk::kTracingCategory) continue;
      if (header.kind != sdk::kKernelDispatch && header.kind != sdk::kMemoryCopy) continue;
      if (!read_into(records, header)) ++unreadable;
    }
  } catch (const std::bad_alloc&) {
    lost += count;
    records.clear();
  }
  Sink& to = sink();
  const std::lock_guard lock(to.mutex);
  if (!to.is_open) return;
  const std::size_t kept = std::min(records.size(), kMaxRecords - to.records.size());
  try {
    to.records.insert(to.records.end(), records.begin(), records.begin() + static_cast<std::ptrdiff_t>(kept));
    lost += records.size() - kept;
  } catch (const std::bad_alloc&) {
    lost += records.size();
  }
  to.lost += lost + unreadable;
}

// Called by the thread that submits, for each kernel and copy.
int give_mark(std::uint64_t, sdk::Context, int, std::int32_t, std::uint64_t, sdk::UserData* external, void*) {
  external->value = t_mark;
  return 0;
}

void mark(std::uint64_t mark) { t_mark = mark; }

// Called by the library while it is being configured, which is the only time for all of this.
int initialize(void (*)(sdk::ClientId), void*) {
  Sink& to = sink();
  const auto note = [&](int status) {
    if (to.setup == 0) to.setup = status;
    return status == 0;
  };
  constexpr int kRequests[] = {sdk::kRequestMemoryCopy, sdk::kRequestKernelDispatch};
  to.is_ready = note(g_library->create_context(&to.context)) &&
                note(g_library->create_buffer(to.context, kBufferBytes, kWatermark, sdk::kDiscard, arrived, nullptr,
                                              &to.buffer)) &&
                note(g_library->trace(to.context, sdk::kKernelDispatch, nullptr, 0, to.buffer)) &&
                note(g_library->trace(to.context, sdk::kMemoryCopy, nullptr, 0, to.buffer)) &&
                note(g_library->request_external(to.context, kRequests, std::size(kRequests), give_mark, nullptr));
  return to.is_ready ? 0 : -1;
}

sdk::ConfigureResult* configure(std::uint32_t, const char*, std::uint32_t, sdk::ClientId* id) {
  static sdk::ConfigureResult kResult = {sizeof(sdk::ConfigureResult), initialize, nullptr, nullptr};
  if (id->size < sizeof(sdk::ClientId)) return nullptr;
  id->name = "weir";
  return &kResult;
}

std::optional<ClockFix> take_fix() {
  std::optional<ClockFix> best;
  for (int i = 0; i < 20; ++i) {
    std::uint64_t theirs = 0;
    const std::int64_t before = now_ns();
    if (g_library->timestamp(&theirs) != 0) return std::nullopt;
    const std::int64_t after = now_ns();
    const double error = static_cast<double>(after - before) / 2;
    if (!best || error < best->error_ns)
      best = {static_cast<std::int64_t>(theirs), before + (after - before) / 2, error};
  }
  return best;
}

constexpr int kNoClock = -2;

int flush(bool) {
  const int status = g_library->flush_buffer(sink().buffer);
  return status == sdk::kBufferBusy ? 0 : status;
}

void stop() {
  Sink& to = sink();
  g_library->stop_context(to.context);
  flush(true);  // not under the lock: arrived() takes it
  const std::lock_guard lock(to.mutex);
  to.is_open = false;
  to.records = {};
  to.lost = 0;
}

int start() {
  Sink& to = sink();
  {
    const std::lock_guard lock(to.mutex);
    if (to.is_open) return kActivityBusy;
    to.is_open = true;
    to.records.clear();
    to.lost = 0;
    to.first = take_fix();
  }
  const int status = to.first ? g_library->start_context(to.context) : kNoClock;
  if (status != 0) stop();
  return status;
}

std::uint64_t take(std::vector<GpuActivityRecord>* records) {
  const auto fix = take_fix();
  Sink& from = sink();
  const std::lock_guard lock(from.mutex);
  const ClockMap map(*from.first, fix.value_or(*from.first));
  for (GpuActivityRecord& record : from.records) {
    for (std::int64_t* const time : {&record.started_ns, &record.ended_ns})
      if (*time != kNoTime) *time = map.host_time(*time);
    records->push_back(record);
  }
  from.records.clear();
  return std::exchange(from.lost, 0);
}

std::string describe(int status) {
  if (status == kActivityBusy) return "another session of this process is being traced";
  if (status == kNoClock) return "its clock cannot be read";
  const char* const text = g_library->status_string(status);
  return text == nullptr ? fmt::format("status {}", status) : fmt::format("status {} ({})", status, text);
}

// A runtime that is in the process may have looked for profilers already: HIP's, or the one below it.
bool has_runtime() {
  for (const char* const name :
       {"libamdhip64.so.7", "libamdhip64.so.6", "libamdhip64.so.5", "libamdhip64.so", "libhsa-runtime64.so.1"})
    if (void* const library = ::dlopen(name, RTLD_LAZY | RTLD_NOLOAD); library != nullptr) {
      ::dlclose(library);
      return true;
    }
  return false;
}

std::string configure_once() {
  if (has_runtime()) return "it is too late: the GPU runtime is already in this process, and looks for profilers once";
  g_library = new RocprofilerLibrary;
  if (std::string reason = g_library->shortfall("librocprofiler-sdk.so.1 (ROCm 7.0 or later)"); !reason.empty())
    return reason;
  std::uint32_t major = 0, minor = 0, patch = 0;
  if (const int status = g_library->version(&major, &minor, &patch); status != 0)
    return "rocprofiler-sdk does not report its version: " + describe(status);
  const std::string version = fmt::format("rocprofiler-sdk {}.{}.{}", major, minor, patch);
  if (major != sdk::kMajor)
    return fmt::format("{} has another interface than {}.x, which this program knows", version, sdk::kMajor);
  if (const int status = g_library->force_configure(configure); status != 0)
    return fmt::format("{} cannot be configured, perhaps because another profiler was first: {}", version,
                       describe(status));
  if (sink().setup != 0) return fmt::format("{} does not trace here: {}", version, describe(sink().setup));
  if (!sink().is_ready) return version + " did not call back while it was configured";
  g_activity = {start, stop, flush, nullptr, take, describe, version, mark};
  return "";
}

}  // namespace
}  // namespace weir::rocprofiler

namespace weir {

bool configure_rocprofiler(std::string* reason) {
  using rocprofiler::g_reason;
  static const std::string kReason = g_reason = rocprofiler::configure_once();
  if (reason != nullptr) *reason = kReason;
  return kReason.empty();
}

const GpuActivity* open_rocprofiler(std::string* reason) {
  if (rocprofiler::g_reason.empty()) return &rocprofiler::g_activity;
  if (reason != nullptr) *reason = rocprofiler::g_reason;
  return nullptr;
}

}  // namespace weir
