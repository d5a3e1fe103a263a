#include "submit/inject/cupti_activity.h"

#include <cupti_callbacks.h>
#include <cupti_result.h>
#include <cupti_version.h>
#include <cxxabi.h>

#include <atomic>
#include <cstdlib>
#include <ctime>
#include <mutex>
#include <new>
#include <vector>

#include "submit/inject/cupti_library.h"
#include "submit/inject/recorder.h"

namespace weir::inject {
namespace {

using capture::kNone;

// The record layout of CUDA 12.0; later versions only added fields at the end.
using KernelRecord = CUpti_ActivityKernel9;
using CopyRecord = CUpti_ActivityMemcpy5;
using PeerCopyRecord = CUpti_ActivityMemcpyPtoP4;
using MemsetRecord = CUpti_ActivityMemset4;
// The fields that all versions of CUpti_ActivityGraphTrace have.
struct GraphRecord {
  CUpti_ActivityKind kind;
  std::uint32_t correlation;
  std::uint64_t start, end;
  std::uint32_t device, graph, context, stream;
};

#if CUPTI_API_VERSION >= 130000
static_assert(offsetof(GraphRecord, start) == offsetof(CUpti_ActivityGraphTrace2, start) &&
              offsetof(GraphRecord, stream) == offsetof(CUpti_ActivityGraphTrace2, streamId));
static_assert(offsetof(KernelRecord, channelType) == offsetof(CUpti_ActivityKernel10, channelType) &&
              offsetof(KernelRecord, correlationId) == offsetof(CUpti_ActivityKernel10, correlationId) &&
              offsetof(KernelRecord, name) == offsetof(CUpti_ActivityKernel10, name) &&
              offsetof(KernelRecord, graphId) == offsetof(CUpti_ActivityKernel10, graphId) &&
              offsetof(CopyRecord, channelType) == offsetof(CUpti_ActivityMemcpy6, channelType) &&
              offsetof(CUpti_ActivityContext, deviceId) == offsetof(CUpti_ActivityContext3, deviceId) &&
              offsetof(CUpti_ActivityDevice4, name) == offsetof(CUpti_ActivityDevice5, name) &&
              offsetof(CUpti_ActivitySynchronization, cudaEventId) ==
                  offsetof(CUpti_ActivitySynchronization2, cudaEventId) &&
              offsetof(CUpti_ActivityCudaEvent, eventId) == offsetof(CUpti_ActivityCudaEvent2, eventId));
#endif
constexpr std::uint32_t kOldestVersion = 19;  // CUDA 12.0

// Small, so that buffers fill soon: what a killed program loses is in them.
constexpr std::size_t kBufferBytes = std::size_t{256} << 10;
constexpr std::size_t kMaxBuffers = 4096;  // since CUDA 12.3 each thread that calls the driver fills its own

constexpr CUpti_ActivityKind kKinds[] = {CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, CUPTI_ACTIVITY_KIND_MEMCPY,
                                         CUPTI_ACTIVITY_KIND_MEMCPY2, CUPTI_ACTIVITY_KIND_MEMSET};

struct Entries {
  decltype(&cuptiGetVersion) version = nullptr;
  decltype(&cuptiGetResultString) result_string = nullptr;
  decltype(&cuptiActivityRegisterCallbacks) register_buffers = nullptr;
  decltype(&cuptiActivityEnable) enable = nullptr;
  decltype(&cuptiActivityDisable) disable = nullptr;
  decltype(&cuptiActivityFlushAll) flush = nullptr;
  decltype(&cuptiActivityGetNextRecord) next = nullptr;
  // The functions below may be missing.
  decltype(&cuptiActivityGetNumDroppedRecords) dropped = nullptr;
  decltype(&cuptiActivityRegisterTimestampCallback) register_clock = nullptr;
  decltype(&cuptiActivityEnableLatencyTimestamps) enable_latency = nullptr;
};

struct State {
  std::mutex mutex;  // protects what follows, and the user
  Entries cupti;
  ActivityUser user;
  std::vector<std::uint8_t*> unused;
  std::size_t buffers = 0;
  std::atomic<bool> is_on{false};
  std::atomic<std::uint64_t> completed{0};
  std::atomic<int> arriving{0};  // threads that are handing a buffer on
};

// Never destroyed: CUPTI's threads may call back while the process exits.
State& state() {
  static State& kState = *new State;
  return kState;
}

std::uint64_t CUPTIAPI clock() { return static_cast<std::uint64_t>(monotonic_ns()); }

std::string describe(CUptiResult result) {
  const char* text = nullptr;
  if (state().cupti.result_string(result, &text) != CUPTI_SUCCESS || text == nullptr) text = "no name";
  return "CUPTI error " + std::to_string(static_cast<int>(result)) + " (" + text + ")";
}

// The fields that records of kernels, copies and memsets have under the same names.
template <class Theirs>
capture::Place place_of(const Theirs& theirs) noexcept {
  capture::Place place{};
  place.device = theirs.deviceId;
  place.context = theirs.contextId;
  place.stream = theirs.streamId;
  place.channel_type = static_cast<std::uint32_t>(theirs.channelType);
  place.channel = place.channel_type == 0 ? kNone : theirs.channelID;
  place.graph = theirs.graphId;
  place.graph_node = theirs.graphNodeId;
  place.correlation = theirs.correlationId;
  place.queued_ns = place.submitted_ns = capture::kUnknownTime;
  place.started_ns = static_cast<std::int64_t>(theirs.start);
  place.ended_ns = static_cast<std::int64_t>(theirs.end);
  return place;
}

void hand_on(const ActivityUser& user, const CUpti_Activity& activity) {
  switch (activity.kind) {
    case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL: {
      const auto& theirs = reinterpret_cast<const KernelRecord&>(activity);
      DeviceCommand command{.place = place_of(theirs), .name = theirs.name == nullptr ? "" : theirs.name};
      command.place.queued_ns = static_cast<std::int64_t>(theirs.queued);
      command.place.submitted_ns = static_cast<std::int64_t>(theirs.submitted);
      return user.command(command);
    }
    case CUPTI_ACTIVITY_KIND_MEMCPY: {
      const auto& theirs = reinterpret_cast<const CopyRecord&>(activity);
      return user.command(
          {.place = place_of(theirs), .bytes = theirs.bytes, .kind = static_cast<capture::CopyKind>(theirs.copyKind)});
    }
    case CUPTI_ACTIVITY_KIND_MEMCPY2: {
      const auto& theirs = reinterpret_cast<const PeerCopyRecord&>(activity);
      const std::uint32_t peer = theirs.dstDeviceId == theirs.deviceId ? theirs.srcDeviceId : theirs.dstDeviceId;
      return user.command({.place = place_of(theirs),
                           .bytes = theirs.bytes,
                           .kind = static_cast<capture::CopyKind>(theirs.copyKind),
                           .peer_device = peer});
    }
    case CUPTI_ACTIVITY_KIND_MEMSET: {
      const auto& theirs = reinterpret_cast<const MemsetRecord&>(activity);
      return user.command({.place = place_of(theirs), .bytes = theirs.bytes, .kind = capture::CopyKind::memset});
    }
    case CUPTI_ACTIVITY_KIND_GRAPH_TRACE: {
      const auto& theirs = reinterpret_cast<const GraphRecord&>(activity);
      DeviceCommand command{.name = "CUDA graph"};
      command.place.device = theirs.device;
      command.place.context = theirs.context;
      command.place.stream = theirs.stream;
      command.place.channel = kNone;
      command.place.graph = theirs.graph;
      command.place.correlation = theirs.correlation;
      command.place.queued_ns = command.place.submitted_ns = capture::kUnknownTime;
      command.place.started_ns = static_cast<std::int64_t>(theirs.start);
      command.place.ended_ns = static_cast<std::int64_t>(theirs.end);
      return user.command(command);
    }
    case CUPTI_ACTIVITY_KIND_CONTEXT: {
      const auto& theirs = reinterpret_cast<const CUpti_ActivityContext&>(activity);
      return user.context(theirs.contextId, theirs.deviceId);
    }
    case CUPTI_ACTIVITY_KIND_DEVICE: {
      const auto& theirs = reinterpret_cast<const CUpti_ActivityDevice4&>(activity);
      if (theirs.name != nullptr) user.device(theirs.id, theirs.name);
      return;
    }
    default:
      return;
  }
}

void CUPTIAPI buffer_requested(std::uint8_t** buffer, std::size_t* size, std::size_t* max_records) {
  State& s = state();
  *buffer = nullptr;
  *size = 0;
  *max_records = 0;  // as many as fit
  const std::lock_guard lock(s.mutex);
  if (!s.unused.empty()) {
    *buffer = s.unused.back();
    s.unused.pop_back();
  } else if (s.buffers < kMaxBuffers) {
    *buffer = static_cast<std::uint8_t*>(std::aligned_alloc(8, kBufferBytes));
    if (*buffer != nullptr) ++s.buffers;
  }
  if (*buffer != nullptr) *size = kBufferBytes;  // otherwise the library counts dropped records
}

class Arriving {
 public:
  explicit Arriving(std::atomic<int>& count) noexcept : count_(count) { count_.fetch_add(1); }
  ~Arriving() { count_.fetch_sub(1); }
  Arriving(const Arriving&) = delete;
  Arriving& operator=(const Arriving&) = delete;

 private:
  std::atomic<int>& count_;
};

void CUPTIAPI buffer_completed(CUcontext, std::uint32_t, std::uint8_t* buffer, std::size_t, std::size_t valid_bytes) {
  State& s = state();
  const Arriving arriving(s.arriving);
  // The library is asked without holding the lock: it may hold its own lock while it asks for a buffer.
  std::size_t dropped = 0;
  if (s.cupti.dropped == nullptr || s.cupti.dropped(nullptr, 0, &dropped) != CUPTI_SUCCESS) dropped = 0;
  std::vector<const CUpti_Activity*> records;
  try {
    CUpti_Activity* activity = nullptr;
    while (buffer != nullptr && valid_bytes > 0 && s.cupti.next(buffer, valid_bytes, &activity) == CUPTI_SUCCESS)
      records.push_back(activity);
  } catch (const std::bad_alloc&) {
    ++dropped;
  }
  const std::lock_guard lock(s.mutex);
  if (s.is_on.load(std::memory_order_relaxed)) {
    std::size_t used = 0;
    try {
      for (; used < records.size(); ++used) hand_on(s.user, *records[used]);
    } catch (const std::bad_alloc&) {
      s.user.lost(records.size() - used, "the program was out of memory");
    }
    if (dropped > 0) s.user.lost(dropped, "CUPTI dropped them: its buffers were full");
    s.user.buffer_ended();
  }
  s.completed.fetch_add(1, std::memory_order_relaxed);
  if (buffer != nullptr) s.unused.push_back(buffer);  // there is room for all of them
}

// Fills the table. Returns what is missing, or null.
const char* bind(void* library, Entries& to) noexcept {
  EntryPoints cupti(library);
  cupti.need(to.version, "cuptiGetVersion");
  cupti.need(to.result_string, "cuptiGetResultString");
  cupti.need(to.register_buffers, "cuptiActivityRegisterCallbacks");
  cupti.need(to.enable, "cuptiActivityEnable");
  cupti.need(to.disable, "cuptiActivityDisable");
  cupti.need(to.flush, "cuptiActivityFlushAll");
  cupti.need(to.next, "cuptiActivityGetNextRecord");
  cupti.want(to.dropped, "cuptiActivityGetNumDroppedRecords");
  cupti.want(to.register_clock, "cuptiActivityRegisterTimestampCallback");
  cupti.want(to.enable_latency, "cuptiActivityEnableLatencyTimestamps");
  return cupti.missing();
}

}  // namespace

std::string enable_activity(const ActivityUser& user, const ActivityOptions& options) {
  State& s = state();
  std::string reason;
  void* const library = open_cupti(reason);
  if (library == nullptr) return "CUPTI was not found: " + reason + "; WEIR_CUPTI_LIBRARY can name it";
  if (const char* const missing = bind(library, s.cupti); missing != nullptr)
    return std::string("CUPTI lacks ") + missing;
  std::uint32_t version = 0;
  if (const CUptiResult result = s.cupti.version(&version); result != CUPTI_SUCCESS) return describe(result);
  if (version < kOldestVersion) return "CUPTI is older than CUDA 12.0";
  s.user = user;
  s.unused.reserve(kMaxBuffers);
  if (options.has_latency && s.cupti.enable_latency != nullptr)
    if (const CUptiResult result = s.cupti.enable_latency(1); result != CUPTI_SUCCESS)
      user.note("no latency timestamps: " + describe(result));
  // The clock before the buffers, or times would be on two clocks.
  if (s.cupti.register_clock == nullptr || s.cupti.register_clock(clock) != CUPTI_SUCCESS)
    user.note("times are on CUPTI's own clock");
  if (const CUptiResult result = s.cupti.register_buffers(buffer_requested, buffer_completed); result != CUPTI_SUCCESS)
    return "CUPTI takes no buffers: " + describe(result) + "; is another profiler active?";
  s.is_on.store(true);
  for (const CUpti_ActivityKind kind : {CUPTI_ACTIVITY_KIND_DEVICE, CUPTI_ACTIVITY_KIND_CONTEXT}) s.cupti.enable(kind);
  constexpr const char* kNames[] = {"kernels", "copies", "copies between devices", "memsets"};
  for (std::size_t i = 0; i < std::size(kKinds); ++i)
    if (const CUptiResult result = s.cupti.enable(kKinds[i]); result != CUPTI_SUCCESS) {
      const std::string text = std::string("no records of ") + kNames[i] + ": " + describe(result);
      if (i == 0) {
        s.is_on.store(false);
        return text + "; is another profiler active?";
      }
      user.note(text);
    }
  if (options.has_whole_graphs)
    if (const CUptiResult result = s.cupti.enable(CUPTI_ACTIVITY_KIND_GRAPH_TRACE); result != CUPTI_SUCCESS)
      user.note("graphs are recorded by their commands: " + describe(result));
  return {};
}

void set_activity(bool is_on) noexcept {
  State& s = state();
  if (s.cupti.enable == nullptr) return;
  for (const CUpti_ActivityKind kind : kKinds) is_on ? s.cupti.enable(kind) : s.cupti.disable(kind);
}

void flush_activity(bool is_last) noexcept {
  if (state().cupti.flush == nullptr) return;
  state().cupti.flush(is_last ? CUPTI_ACTIVITY_FLAG_FLUSH_FORCED : 0);
  // A thread of CUPTI may have taken a buffer before, and still be handing it on. Not for ever: that thread may be
  // gone.
  for (int tries = 0; is_last && tries < 2000 && state().arriving.load() > 0; ++tries) {
    const timespec rest{0, 1'000'000};
    ::clock_nanosleep(CLOCK_MONOTONIC, 0, &rest, nullptr);
  }
}

std::uint64_t activity_buffers() noexcept { return state().completed.load(std::memory_order_relaxed); }

void abandon_activity() noexcept { state().is_on.store(false); }

std::string demangled(const char* name) {
  int status = -1;
  char* const plain = abi::__cxa_demangle(name, nullptr, nullptr, &status);
  std::string text = status == 0 && plain != nullptr ? plain : name;
  std::free(plain);
  return text;
}

}  // namespace weir::inject
