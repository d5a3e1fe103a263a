#include "device/gpu/cupti.h"

#include "weir_build.h"

#if WEIR_HAVE_CUPTI
#include <cupti_activity.h>
#include <cupti_result.h>
#include <cupti_version.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <memory>
#include <mutex>
#include <new>
#include <utility>

#include "base/clock.h"
#include "base/vendor_library.h"

static_assert(CUPTI_API_VERSION >= 19, "CUPTI's headers are older than CUDA 12.0");

namespace weir {
namespace {

// Records are read in the layout of CUDA 12.0; later versions only append fields. An older library writes less.
using KernelRecord = CUpti_ActivityKernel9;
using CopyRecord = CUpti_ActivityMemcpy5;
using MemsetRecord = CUpti_ActivityMemset4;
constexpr std::uint32_t kOldestCupti = 19;
#if CUPTI_API_VERSION >= 130000
static_assert(offsetof(KernelRecord, channelType) == offsetof(CUpti_ActivityKernel10, channelType) &&
              offsetof(KernelRecord, correlationId) == offsetof(CUpti_ActivityKernel10, correlationId) &&
              offsetof(CopyRecord, channelType) == offsetof(CUpti_ActivityMemcpy6, channelType));
#endif

constexpr CUpti_ActivityKind kKinds[] = {CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, CUPTI_ACTIVITY_KIND_MEMCPY,
                                         CUPTI_ACTIVITY_KIND_MEMSET};

constexpr std::size_t kBufferBytes = std::size_t{2} << 20;  // some 9,000 kernels
constexpr std::size_t kReadyBuffers = 4;                    // allocated before the first command, not during submission
constexpr std::size_t kMaxBuffers = 64;
constexpr std::size_t kMaxRecords = std::size_t{1} << 21;  // not yet taken: 160 MB

struct CuptiLibrary : VendorLibrary {
  CuptiLibrary()
      : VendorLibrary(library_places({"", "/usr/local/cuda/extras/CUPTI/lib64/", "/usr/local/cuda/lib64/"},
                                     {"libcupti.so.13", "libcupti.so.12", "libcupti.so"})) {}
  decltype(&cuptiGetVersion) version = need("cuptiGetVersion");
  decltype(&cuptiGetResultString) result_string = need("cuptiGetResultString");
  decltype(&cuptiGetContextId) context_id = need("cuptiGetContextId");
  decltype(&cuptiGetStreamIdEx) stream_id = need("cuptiGetStreamIdEx");
  decltype(&cuptiActivityRegisterTimestampCallback) register_clock = need("cuptiActivityRegisterTimestampCallback");
  decltype(&cuptiActivityRegisterCallbacks) register_buffers = need("cuptiActivityRegisterCallbacks");
  decltype(&cuptiActivityEnable) enable = need("cuptiActivityEnable");
  decltype(&cuptiActivityDisable) disable = need("cuptiActivityDisable");
  decltype(&cuptiActivityFlushAll) flush = need("cuptiActivityFlushAll");
  decltype(&cuptiActivityGetNextRecord) next = need("cuptiActivityGetNextRecord");
  decltype(&cuptiActivityGetNumDroppedRecords) dropped = need("cuptiActivityGetNumDroppedRecords");
  decltype(&cuptiActivityEnableLatencyTimestamps) enable_latency = want("cuptiActivityEnableLatencyTimestamps");
};

const CuptiLibrary* g_cupti = nullptr;  // written once, by fill_cupti()

// All state that the library's own threads touch.
struct Sink {
  struct alignas(8) Buffer {
    std::byte bytes[kBufferBytes];
  };
  std::mutex mutex;
  std::vector<std::unique_ptr<Buffer>> buffers;
  std::vector<std::uint8_t*> unused;
  std::vector<GpuActivityRecord> records;
  std::uint64_t lost = 0;
  bool is_open = false;   // a session wants records
  bool is_ready = false;  // clock and buffers are registered
};

// Never destroyed: the library may return buffers while the process exits.
Sink& sink() {
  static Sink& kSink = *new Sink;
  return kSink;
}

bool add_buffer(Sink& to) noexcept {
  if (to.buffers.size() == kMaxBuffers) return false;
  try {
    to.unused.reserve(kMaxBuffers);
    to.buffers.reserve(kMaxBuffers);
    to.buffers.push_back(std::make_unique<Sink::Buffer>());  // zeroed, so that no page faults later
    to.unused.push_back(reinterpret_cast<std::uint8_t*>(to.buffers.back()->bytes));
    return true;
  } catch (const std::bad_alloc&) {
    return false;
  }
}

std::int64_t time_of(std::uint64_t ns) noexcept { return ns == 0 ? kNoTime : static_cast<std::int64_t>(ns); }

GpuActivityRecord::Channel channel_of(CUpti_ChannelType type) noexcept {
  switch (static_cast<int>(type)) {
    case CUPTI_CHANNEL_TYPE_INVALID:
      return GpuActivityRecord::Channel::unknown;
    case CUPTI_CHANNEL_TYPE_COMPUTE:
      return GpuActivityRecord::Channel::compute;
    case CUPTI_CHANNEL_TYPE_ASYNC_MEMCPY:
      return GpuActivityRecord::Channel::copy;
    default:
      return GpuActivityRecord::Channel::other;
  }
}

// Stream ids are unique only within a context.
constexpr std::uint64_t stream_of(std::uint32_t context, std::uint32_t stream) {
  return std::uint64_t{context} << 32 | stream;
}

// The fields that all three kinds share by name.
template <class Theirs>
GpuActivityRecord read_record(GpuActivityRecord::Kind kind, const CUpti_Activity& activity) noexcept {
  const Theirs& theirs = reinterpret_cast<const Theirs&>(activity);
  GpuActivityRecord record;
  record.kind = kind;
  record.channel_type = channel_of(theirs.channelType);
  record.correlation = theirs.correlationId;
  record.channel = theirs.channelID;
  record.stream = stream_of(theirs.contextId, theirs.streamId);
  record.graph_node = theirs.graphNodeId;
  record.started_ns = time_of(theirs.start);
  record.ended_ns = time_of(theirs.end);
  return record;
}

void read_into(std::vector<GpuActivityRecord>& records, const CUpti_Activity& activity) {
  GpuActivityRecord record;
  switch (activity.kind) {
    case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL: {
      const auto& kernel = reinterpret_cast<const KernelRecord&>(activity);
      record = read_record<KernelRecord>(GpuActivityRecord::Kind::kernel, activity);
      record.queued_ns = time_of(kernel.queued);
      record.submitted_ns = time_of(kernel.submitted);
      break;
    }
    case CUPTI_ACTIVITY_KIND_MEMCPY:
      record = read_record<CopyRecord>(GpuActivityRecord::Kind::copy, activity);
      break;
    case CUPTI_ACTIVITY_KIND_MEMSET:
      record = read_record<MemsetRecord>(GpuActivityRecord::Kind::memset, activity);
      break;
    default:
      return;
  }
  records.push_back(record);
}

std::size_t take_dropped() noexcept {
  std::size_t dropped = 0;
  return g_cupti->dropped(nullptr, 0, &dropped) == CUPTI_SUCCESS ? dropped : 0;
}

// Called by a thread whose kernel launch finds no room, or by the library's thread.
void CUPTIAPI buffer_requested(std::uint8_t** buffer, std::size_t* size, std::size_t* max_records) {
  Sink& from = sink();
  const std::lock_guard lock(from.mutex);
  *buffer = nullptr;
  *size = 0;
  *max_records = 0;                                      // as many as fit
  if (from.unused.empty() && !add_buffer(from)) return;  // the library counts what it drops
  *buffer = from.unused.back();
  *size = kBufferBytes;
  from.unused.pop_back();
}

void CUPTIAPI buffer_completed(CUcontext, std::uint32_t, std::uint8_t* buffer, std::size_t, std::size_t valid_bytes) {
  // The library is called only without the lock: it may hold one of its own while it requests a buffer.
  std::size_t lost = take_dropped();
  std::vector<GpuActivityRecord> records;
  try {
    CUpti_Activity* activity = nullptr;
    while (valid_bytes > 0 && g_cupti->next(buffer, valid_bytes, &activity) == CUPTI_SUCCESS)
      read_into(records, *activity);
  } catch (const std::bad_alloc&) {
    ++lost;
  }
  Sink& to = sink();
  const std::lock_guard lock(to.mutex);
  if (buffer != nullptr) to.unused.push_back(buffer);  // `unused` has capacity for all buffers
  if (!to.is_open) return;
  const std::size_t kept = std::min(records.size(), kMaxRecords - to.records.size());
  try {
    to.records.insert(to.records.end(), records.begin(), records.begin() + static_cast<std::ptrdiff_t>(kept));
    lost += records.size() - kept;
  } catch (const std::bad_alloc&) {
    lost += records.size();
  }
  to.lost += lost;
}

std::uint64_t CUPTIAPI clock_of_host() { return static_cast<std::uint64_t>(now_ns()); }

// Registers clock and buffers once, before anything is enabled; in this order, or times would be on two clocks.
int make_ready() {
  Sink& to = sink();
  if (to.is_ready) return 0;
  {
    const std::lock_guard lock(to.mutex);
    while (to.unused.size() < kReadyBuffers)
      if (!add_buffer(to)) return CUPTI_ERROR_OUT_OF_MEMORY;
  }
  if (const int result = g_cupti->register_clock(clock_of_host); result != 0) return result;
  if (const int result = g_cupti->register_buffers(buffer_requested, buffer_completed); result != 0) return result;
  to.is_ready = true;
  return 0;
}

void stop() {
  for (const CUpti_ActivityKind kind : kKinds) g_cupti->disable(kind);
  // Returns the buffers. Not under the lock: the callbacks take it.
  g_cupti->flush(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);
  Sink& to = sink();
  const std::lock_guard lock(to.mutex);
  to.is_open = false;
  to.records = {};
  to.lost = 0;
}

// Synchronisation records are not requested: every stream's wait for an event would add one, and the host's own clock
// shows when it saw the end of an iteration. Latency timestamps (queued, submitted) must be enabled before the driver
// starts: enable_cupti_latency().
int start() {
  Sink& to = sink();
  {
    const std::lock_guard lock(to.mutex);
    if (to.is_open) return kActivityBusy;
    to.is_open = true;
    to.records.clear();
    to.lost = 0;
  }
  int result = make_ready();
  for (const CUpti_ActivityKind kind : kKinds)
    if (result == 0) result = g_cupti->enable(kind);
  if (result != 0) stop();
  return result;
}

int flush(bool is_forced) { return g_cupti->flush(is_forced ? CUPTI_ACTIVITY_FLAG_FLUSH_FORCED : 0); }

int stream_id(GpuContext context, GpuStream stream, std::uint64_t* id) {
  std::uint32_t context_number = 0, stream_number = 0;
  int result = g_cupti->context_id(reinterpret_cast<CUcontext>(context), &context_number);
  if (result == 0) result = g_cupti->stream_id(nullptr, reinterpret_cast<CUstream>(stream), 0, &stream_number);
  *id = stream_of(context_number, stream_number);
  return result;
}

std::uint64_t take(std::vector<GpuActivityRecord>* records) {
  const std::size_t dropped = take_dropped();  // since the last buffer was returned
  Sink& from = sink();
  const std::lock_guard lock(from.mutex);
  records->insert(records->end(), from.records.begin(), from.records.end());
  from.records.clear();
  return std::exchange(from.lost, 0) + dropped;
}

std::string describe_cupti(int result) {
  if (result == kActivityBusy) return "another session of this process is being traced";
  const char* text = nullptr;
  if (g_cupti->result_string(static_cast<CUptiResult>(result), &text) != CUPTI_SUCCESS || text == nullptr)
    return fmt::format("CUPTI error {}", result);
  return fmt::format("CUPTI error {} ({})", result, text);
}

// 19 to 28 are CUDA 12.x; since then 130001 is CUDA 13.0
std::string cupti_version(std::uint32_t version) {
  if (version >= 10'000) return fmt::format("CUPTI {}.{}", version / 10'000, version / 100 % 100);
  return fmt::format("CUPTI of CUDA {}, interface {}", version >= 19 ? 12 : 11, version);
}

std::string fill_cupti(GpuActivity& activity) {
  g_cupti = new CuptiLibrary;
  if (std::string reason = g_cupti->shortfall("CUPTI"); !reason.empty()) return reason;
  std::uint32_t version = 0;
  if (const int result = g_cupti->version(&version); result != 0)
    return "CUPTI does not tell its version: " + describe_cupti(result);
  if (version < kOldestCupti)
    return fmt::format("{} is older than the records that this program reads (CUDA 12.0)", cupti_version(version));
  activity = {start, stop, flush, stream_id, take, describe_cupti, cupti_version(version)};
  return "";
}

}  // namespace

const GpuActivity* open_cupti(std::string* reason) {
  static const Opened<GpuActivity> kOpened(fill_cupti);
  return kOpened.get(reason);
}

bool enable_cupti_latency(std::string* reason) {
  const GpuActivity* const table = open_cupti(reason);
  if (table == nullptr) return false;
  if (g_cupti->enable_latency == nullptr) return *reason = table->version + " has no latency timestamps", false;
  const int result = g_cupti->enable_latency(1);
  if (result != 0) *reason = table->describe(result);
  return result == 0;
}

}  // namespace weir

#else

namespace weir {

const GpuActivity* open_cupti(std::string* reason) {
  if (reason != nullptr) *reason = "CUPTI was left out of this build: " WEIR_CUPTI_REASON;
  return nullptr;
}

bool enable_cupti_latency(std::string* reason) { return open_cupti(reason) != nullptr; }

}  // namespace weir

#endif
