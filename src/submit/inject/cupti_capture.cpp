// Writes CUPTI's records of a program's commands to $WEIR_CAPTURE_FOLDER/PID.weircap. Never makes such a program fail:
// if CUPTI refuses, the file contains the reason. Knows the capture format and CUPTI; nothing else of Weir.
#include <cupti_activity.h>
#include <cupti_callbacks.h>
#include <cupti_result.h>
#include <cupti_version.h>
#include <cxxabi.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <functional>
#include <memory>
#include <mutex>
#include <new>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/secrets.h"
#include "submit/inject/cupti_library.h"
#include "trace/export/capture_writer.h"

namespace weir::inject {
namespace {

using capture::kNone;

// The record layout of CUDA 12.0; later versions only added fields at the end.
using KernelRecord = CUpti_ActivityKernel9;
using CopyRecord = CUpti_ActivityMemcpy5;
using PeerCopyRecord = CUpti_ActivityMemcpyPtoP4;
using MemsetRecord = CUpti_ActivityMemset4;
#if CUPTI_API_VERSION >= 130000
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
constexpr std::uint32_t kOldestVersion = 19;      // CUDA 12.0
constexpr std::uint32_t kVersionOfEventIds = 26;  // CUDA 12.8: waits name the record of their event

constexpr std::size_t kBufferBytes = std::size_t{4} << 20;
constexpr std::size_t kMaxBuffers = 256;  // since CUDA 12.3 each thread that calls the driver fills its own
constexpr timespec kFlushPeriod{1, 0};    // a killed program loses no more than this
constexpr std::uint32_t kMaxFunctions = 4096;
constexpr std::size_t kMaxThreads = 4096;  // whose calls are held back

struct Entries {
  decltype(&cuptiGetVersion) version = nullptr;
  decltype(&cuptiGetResultString) result_string = nullptr;
  decltype(&cuptiActivityRegisterCallbacks) register_buffers = nullptr;
  decltype(&cuptiActivityEnable) enable = nullptr;
  decltype(&cuptiActivityFlushAll) flush = nullptr;
  decltype(&cuptiActivityGetNextRecord) next = nullptr;
  decltype(&cuptiGetCallbackName) callback_name = nullptr;
  // The functions below may be missing.
  decltype(&cuptiActivityGetNumDroppedRecords) dropped = nullptr;
  decltype(&cuptiActivityRegisterTimestampCallback) register_clock = nullptr;
  decltype(&cuptiActivityEnableLatencyTimestamps) enable_latency = nullptr;
  decltype(&cuptiSetThreadIdType) thread_id_type = nullptr;
  CUptiResult (*enable_runtime)(CUpti_CallbackId, std::uint8_t) = nullptr;  // since CUDA 12.4
  CUptiResult (*enable_driver)(CUpti_CallbackId, std::uint8_t) = nullptr;
};

// Allows looking up a name without making a string of it: there is one in every kernel's record.
struct TextHash {
  using is_transparent = void;
  std::size_t operator()(std::string_view text) const noexcept { return std::hash<std::string_view>{}(text); }
};

struct State {
  std::mutex mutex;
  Entries cupti;
  std::uint32_t version = 0;
  pid_t process = 0;
  bool is_on = false;      // records are being written
  std::mutex flush_mutex;  // locked before `mutex` if both are held
  bool is_ending = false;  // protected by flush_mutex
  std::unique_ptr<CaptureWriter> writer;
  std::vector<std::uint8_t*> unused;
  std::size_t buffers = 0;
  std::unordered_map<std::string, std::uint32_t, TextHash, std::equal_to<>> kernel_names;  // by mangled name
  std::unordered_map<std::uint64_t, std::uint32_t> call_names;  // by domain and function: only those of interest
  // Calls of the driver, by thread, that may turn out to be part of a call of the runtime: both have the same
  // correlation, and the outer call's record is the next of its thread. Buffers may belong to threads, so the next
  // record of a thread can be many buffers away.
  std::unordered_map<std::uint32_t, std::vector<capture::CallRecord>> held;
};

// Never destroyed: CUPTI's threads may call back while the process exits.
State& state() {
  static State& kState = *new State;
  return kState;
}

std::int64_t clock_ns(clockid_t clock) noexcept {
  timespec time{};
  ::clock_gettime(clock, &time);
  return static_cast<std::int64_t>(time.tv_sec) * 1'000'000'000 + time.tv_nsec;
}
std::uint64_t CUPTIAPI monotonic() { return static_cast<std::uint64_t>(clock_ns(CLOCK_MONOTONIC)); }

std::string describe(CUptiResult result) {
  const char* text = nullptr;
  if (state().cupti.result_string(result, &text) != CUPTI_SUCCESS || text == nullptr) text = "no name";
  return "CUPTI error " + std::to_string(static_cast<int>(result)) + " (" + text + ")";
}

// Launches, copies, waits and records of events; other calls of the driver are ignored.
bool is_wanted(std::string_view name) noexcept {
  const auto has = [&](std::string_view part) { return name.find(part) != std::string_view::npos; };
  if (has("Node") || has("Attribute")) return false;
  return has("Launch") || has("Memcpy") || has("Memset") || has("Synchronize") || has("EventRecord") ||
         has("StreamWaitEvent");
}

// Removes version and variant: cudaLaunchKernel_v7000, cuMemcpyHtoDAsync_v2, cudaMemcpyAsync_ptsz_v7000
std::string_view plain(std::string_view name) noexcept {
  const std::size_t version = name.rfind("_v");
  if (version != std::string_view::npos && version + 2 < name.size() &&
      name.find_first_not_of("0123456789", version + 2) == std::string_view::npos)
    name = name.substr(0, version);
  for (const std::string_view variant : {"_ptsz", "_ptds"})
    if (name.ends_with(variant)) name.remove_suffix(variant.size());
  return name;
}

std::uint32_t kernel_name(State& s, const char* mangled) {
  if (mangled == nullptr) return kNone;
  if (const auto found = s.kernel_names.find(std::string_view(mangled)); found != s.kernel_names.end())
    return found->second;
  int status = -1;
  char* const plain_text = abi::__cxa_demangle(mangled, nullptr, nullptr, &status);
  const std::uint32_t name = s.writer->name(status == 0 && plain_text != nullptr ? plain_text : mangled);
  std::free(plain_text);
  s.kernel_names.emplace(mangled, name);
  return name;
}

constexpr std::uint64_t function_key(bool is_runtime, CUpti_CallbackId function) {
  return std::uint64_t{is_runtime} << 32 | function;
}

void tell(State& s, const std::string& text) {
  const std::lock_guard lock(s.mutex);
  s.writer->message(text);
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

void write_held(State& s, std::vector<capture::CallRecord>& held) noexcept {
  for (const capture::CallRecord& record : held) s.writer->add(record);
  held.clear();
}
void write_held(State& s) noexcept {
  for (auto& [thread, held] : s.held) write_held(s, held);
  s.held.clear();
}

void write_call(State& s, const CUpti_Activity& activity) {
  const auto& theirs = reinterpret_cast<const CUpti_ActivityAPI&>(activity);
  const bool is_runtime = activity.kind == CUPTI_ACTIVITY_KIND_RUNTIME;
  const auto name = s.call_names.find(function_key(is_runtime, theirs.cbid));
  if (name == s.call_names.end()) return;
  const capture::CallRecord record{name->second, theirs.threadId, theirs.correlationId,
                                   static_cast<std::int64_t>(theirs.start), static_cast<std::int64_t>(theirs.end)};
  if (!is_runtime && s.held.size() >= kMaxThreads && !s.held.contains(record.thread)) write_held(s);
  std::vector<capture::CallRecord>& held = s.held[record.thread];
  if (!held.empty() && held.front().correlation != record.correlation) write_held(s, held);
  if (!is_runtime) return held.push_back(record);
  held.clear();
  s.writer->add(record);
}

void write_sync(State& s, const CUpti_Activity& activity) {
  const auto& theirs = reinterpret_cast<const CUpti_ActivitySynchronization&>(activity);
  capture::SyncRecord record{};
  record.type = static_cast<std::uint32_t>(theirs.type);
  record.context = theirs.contextId;
  record.stream = theirs.streamId == CUPTI_SYNCHRONIZATION_INVALID_VALUE ? kNone : theirs.streamId;
  record.event = theirs.cudaEventId == CUPTI_SYNCHRONIZATION_INVALID_VALUE ? kNone : theirs.cudaEventId;
  record.correlation = theirs.correlationId;
  record.started_ns = static_cast<std::int64_t>(theirs.start);
  record.ended_ns = static_cast<std::int64_t>(theirs.end);
#if CUPTI_API_VERSION >= 26
  if (s.version >= kVersionOfEventIds)
    record.event_sync = reinterpret_cast<const CUpti_ActivitySynchronization2&>(activity).cudaEventSyncId;
#endif
  s.writer->add(record);
}

void write_event(State& s, const CUpti_Activity& activity) {
  const auto& theirs = reinterpret_cast<const CUpti_ActivityCudaEvent&>(activity);
  capture::EventRecord record{theirs.contextId, theirs.streamId, theirs.eventId, kNone, 0, theirs.correlationId};
#if CUPTI_API_VERSION >= 26
  if (s.version >= kVersionOfEventIds) {
    const auto& newer = reinterpret_cast<const CUpti_ActivityCudaEvent2&>(activity);
    record.device = newer.deviceId;
    record.event_sync = newer.cudaEventSyncId;
  }
#endif
  s.writer->add(record);
}

void write_record(State& s, const CUpti_Activity& activity) {
  switch (activity.kind) {
    case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL: {
      const auto& theirs = reinterpret_cast<const KernelRecord&>(activity);
      capture::KernelRecord record{place_of(theirs), kernel_name(s, theirs.name), 0};
      record.place.queued_ns = static_cast<std::int64_t>(theirs.queued);
      record.place.submitted_ns = static_cast<std::int64_t>(theirs.submitted);
      return s.writer->add(record);
    }
    case CUPTI_ACTIVITY_KIND_MEMCPY: {
      const auto& theirs = reinterpret_cast<const CopyRecord&>(activity);
      return s.writer->add(capture::CopyRecord{place_of(theirs), theirs.bytes, theirs.copyKind, kNone});
    }
    case CUPTI_ACTIVITY_KIND_MEMCPY2: {
      const auto& theirs = reinterpret_cast<const PeerCopyRecord&>(activity);
      const std::uint32_t peer = theirs.dstDeviceId == theirs.deviceId ? theirs.srcDeviceId : theirs.dstDeviceId;
      return s.writer->add(capture::CopyRecord{place_of(theirs), theirs.bytes, theirs.copyKind, peer});
    }
    case CUPTI_ACTIVITY_KIND_MEMSET: {
      const auto& theirs = reinterpret_cast<const MemsetRecord&>(activity);
      constexpr auto kKind = static_cast<std::uint32_t>(capture::CopyKind::memset);
      return s.writer->add(capture::CopyRecord{place_of(theirs), theirs.bytes, kKind, kNone});
    }
    case CUPTI_ACTIVITY_KIND_RUNTIME:
    case CUPTI_ACTIVITY_KIND_DRIVER:
      return write_call(s, activity);
    case CUPTI_ACTIVITY_KIND_SYNCHRONIZATION:
      return write_sync(s, activity);
    case CUPTI_ACTIVITY_KIND_CUDA_EVENT:
      return write_event(s, activity);
    case CUPTI_ACTIVITY_KIND_CONTEXT: {
      const auto& theirs = reinterpret_cast<const CUpti_ActivityContext&>(activity);
      return s.writer->add(capture::ContextRecord{theirs.contextId, theirs.deviceId});
    }
    case CUPTI_ACTIVITY_KIND_DEVICE: {
      const auto& theirs = reinterpret_cast<const CUpti_ActivityDevice4&>(activity);
      if (theirs.name != nullptr) s.writer->device(theirs.id, theirs.name);
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

void CUPTIAPI buffer_completed(CUcontext, std::uint32_t, std::uint8_t* buffer, std::size_t, std::size_t valid_bytes) {
  State& s = state();
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
  if (s.is_on) {
    std::size_t written = 0;
    try {
      for (; written < records.size(); ++written) write_record(s, *records[written]);
    } catch (const std::bad_alloc&) {
      s.writer->lost(records.size() - written, "the program was out of memory");
    }
    if (dropped > 0) s.writer->lost(dropped, "CUPTI dropped them: its buffers were full");
    s.writer->flush();
  }
  if (buffer != nullptr) s.unused.push_back(buffer);  // there is room for all of them
}

// CUPTI's own period only returns full buffers (CUDA 13.0), which takes for ever in a quiet program; an explicit flush
// returns all buffers whose commands have ended.
void* flush_now_and_then(void*) {
  State& s = state();
  for (;;) {
    ::clock_nanosleep(CLOCK_MONOTONIC, 0, &kFlushPeriod, nullptr);
    const std::lock_guard lock(s.flush_mutex);
    if (s.is_ending) return nullptr;
    s.cupti.flush(0);
  }
}

void start_flushing() {
  // Signals are for the program's own threads.
  sigset_t all, before;
  sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  pthread_t thread{};
  if (::pthread_create(&thread, nullptr, flush_now_and_then, nullptr) == 0) ::pthread_detach(thread);
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

void finish() {
  State& s = state();
  if (s.process != ::getpid()) return;  // the exit of a forked child is not the program's
  {
    const std::lock_guard lock(s.flush_mutex);
    s.is_ending = true;
  }
  if (s.cupti.flush != nullptr) s.cupti.flush(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);
  const std::lock_guard lock(s.mutex);
  if (!s.writer) return;
  write_held(s);
  s.is_on = false;
  s.writer->finish(clock_ns(CLOCK_MONOTONIC));
  if (const int error = s.writer->error(); error != 0)
    std::fprintf(stderr, "weir: %llu records could not be written: %s\n",
                 static_cast<unsigned long long>(s.writer->lost_records()), std::strerror(error));
}

void before_fork() { state().mutex.lock(); }
void after_fork() { state().mutex.unlock(); }
// The file belongs to the parent. A child that uses CUDA has executed another program, which gets its own file.
void in_child() {
  State& s = state();
  s.is_on = false;
  if (s.writer) s.writer->abandon();
  s.mutex.unlock();
}

// Fills the table. Returns what is missing, or null.
const char* bind(void* library, Entries& to) noexcept {
  EntryPoints cupti(library);
  cupti.need(to.version, "cuptiGetVersion");
  cupti.need(to.result_string, "cuptiGetResultString");
  cupti.need(to.register_buffers, "cuptiActivityRegisterCallbacks");
  cupti.need(to.enable, "cuptiActivityEnable");
  cupti.need(to.flush, "cuptiActivityFlushAll");
  cupti.need(to.next, "cuptiActivityGetNextRecord");
  cupti.need(to.callback_name, "cuptiGetCallbackName");
  cupti.want(to.dropped, "cuptiActivityGetNumDroppedRecords");
  cupti.want(to.register_clock, "cuptiActivityRegisterTimestampCallback");
  cupti.want(to.enable_latency, "cuptiActivityEnableLatencyTimestamps");
  cupti.want(to.thread_id_type, "cuptiSetThreadIdType");
  cupti.want(to.enable_runtime, "cuptiActivityEnableRuntimeApi");
  cupti.want(to.enable_driver, "cuptiActivityEnableDriverApi");
  return cupti.missing();
}

// Enables only the functions of interest if CUPTI allows a choice: a record of each call would cost the program time.
void enable_calls(State& s, bool is_runtime) {
  const auto enable = is_runtime ? s.cupti.enable_runtime : s.cupti.enable_driver;
  const auto kind = is_runtime ? CUPTI_ACTIVITY_KIND_RUNTIME : CUPTI_ACTIVITY_KIND_DRIVER;
  const auto domain = is_runtime ? CUPTI_CB_DOMAIN_RUNTIME_API : CUPTI_CB_DOMAIN_DRIVER_API;
  std::size_t enabled = 0;
  for (std::uint32_t id = 1; id < kMaxFunctions; ++id) {
    const char* name = nullptr;
    if (s.cupti.callback_name(domain, id, &name) != CUPTI_SUCCESS) break;  // after the last one
    if (name == nullptr || !is_wanted(name)) continue;
    if (enable != nullptr && enable(id, 1) == CUPTI_SUCCESS) ++enabled;
    const std::lock_guard lock(s.mutex);  // not around the code above: CUPTI may ask for a buffer
    s.call_names.emplace(function_key(is_runtime, id), s.writer->name(plain(name)));
  }
  if (enabled > 0) return;
  if (const CUptiResult result = s.cupti.enable(kind); result != CUPTI_SUCCESS)
    tell(s, std::string("no records of ") + (is_runtime ? "runtime" : "driver") + " calls: " + describe(result));
}

// Returns why nothing can be captured, or empty.
std::string start(State& s) {
  std::string reason;
  void* const library = open_cupti(reason);
  if (library == nullptr) return "CUPTI was not found: " + reason + "; WEIR_CUPTI_LIBRARY can name it";
  if (const char* const missing = bind(library, s.cupti); missing != nullptr)
    return std::string("CUPTI lacks ") + missing;
  if (const CUptiResult result = s.cupti.version(&s.version); result != CUPTI_SUCCESS) return describe(result);
  if (s.version < kOldestVersion) return "CUPTI is older than CUDA 12.0";
  if (std::getenv("WEIR_CAPTURE_LATENCY") != nullptr && s.cupti.enable_latency != nullptr)
    if (const CUptiResult result = s.cupti.enable_latency(1); result != CUPTI_SUCCESS)
      tell(s, "no latency timestamps: " + describe(result));
  // The clock before the buffers, or times would be on two clocks.
  if (s.cupti.register_clock == nullptr || s.cupti.register_clock(monotonic) != CUPTI_SUCCESS)
    tell(s, "times are on CUPTI's own clock");
  if (const CUptiResult result = s.cupti.register_buffers(buffer_requested, buffer_completed); result != CUPTI_SUCCESS)
    return "CUPTI takes no buffers: " + describe(result) + "; is another profiler active?";
  {
    const std::lock_guard lock(s.mutex);
    s.is_on = true;
  }
  if (s.cupti.thread_id_type != nullptr) s.cupti.thread_id_type(CUPTI_ACTIVITY_THREAD_ID_TYPE_SYSTEM);
  for (const CUpti_ActivityKind kind : {CUPTI_ACTIVITY_KIND_DEVICE, CUPTI_ACTIVITY_KIND_CONTEXT}) s.cupti.enable(kind);
  struct Kind {
    CUpti_ActivityKind kind;
    const char* name;
  };
  constexpr Kind kKinds[] = {
      {CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, "kernels"},      {CUPTI_ACTIVITY_KIND_MEMCPY, "copies"},
      {CUPTI_ACTIVITY_KIND_MEMCPY2, "copies between devices"}, {CUPTI_ACTIVITY_KIND_MEMSET, "memsets"},
      {CUPTI_ACTIVITY_KIND_SYNCHRONIZATION, "waits"},          {CUPTI_ACTIVITY_KIND_CUDA_EVENT, "events"}};
  for (const Kind& kind : kKinds)
    if (const CUptiResult result = s.cupti.enable(kind.kind); result != CUPTI_SUCCESS) {
      const std::string text = std::string("no records of ") + kind.name + ": " + describe(result);
      if (kind.kind == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL) return text + "; is another profiler active?";
      tell(s, text);
    }
  enable_calls(s, true);
  enable_calls(s, false);
  return {};
}

std::vector<std::string> own_words() {
  std::vector<std::string> words;
  std::FILE* const file = std::fopen("/proc/self/cmdline", "re");
  if (file == nullptr) return words;
  std::string word;
  for (int letter = std::fgetc(file); letter != EOF; letter = std::fgetc(file)) {
    if (letter != 0) {
      word += static_cast<char>(letter);
      continue;
    }
    words.push_back(word);
    word.clear();
  }
  std::fclose(file);
  return recorded_command(std::move(words));
}

// A process that executes another program keeps its pid, so the name may be taken.
int create_file(const std::string& folder) {
  for (int i = 0; i < 100; ++i) {
    const std::string name =
        folder + "/" + std::to_string(::getpid()) + (i == 0 ? "" : "." + std::to_string(i)) + ".weircap";
    const int descriptor = ::open(name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (descriptor >= 0 || errno != EEXIST) return descriptor;
  }
  return -1;
}

}  // namespace

void start_capture() {
  State& s = state();
  const char* const folder = std::getenv("WEIR_CAPTURE_FOLDER");
  if (folder == nullptr || s.writer) return;
  std::uint64_t limit = UINT64_MAX;
  if (const char* const text = std::getenv("WEIR_CAPTURE_LIMIT");
      text != nullptr && std::strtoull(text, nullptr, 10) > 0)
    limit = std::strtoull(text, nullptr, 10);
  // A write beyond this limit would kill the program with SIGXFSZ.
  if (rlimit files{}; ::getrlimit(RLIMIT_FSIZE, &files) == 0 && files.rlim_cur != RLIM_INFINITY)
    limit = std::min(limit, static_cast<std::uint64_t>(files.rlim_cur));
  const int descriptor = create_file(folder);
  if (descriptor < 0) {
    std::fprintf(stderr, "weir: cannot write a capture into %s: %s\n", folder, std::strerror(errno));
    return;
  }
  s.process = ::getpid();
  s.unused.reserve(kMaxBuffers);
  s.writer = std::make_unique<CaptureWriter>(descriptor, limit);
  const capture::ProcessFacts facts{static_cast<std::uint64_t>(s.process), static_cast<std::uint64_t>(::getppid()),
                                    clock_ns(CLOCK_MONOTONIC), clock_ns(CLOCK_REALTIME)};
  s.writer->process(facts, "CLOCK_MONOTONIC", own_words());
  if (const std::string reason = start(s); !reason.empty()) {
    tell(s, "nothing is captured: " + reason);
    const std::lock_guard lock(s.mutex);
    s.is_on = false;
  }
  {
    // Written now, so that a killed program leaves at least this.
    const std::lock_guard lock(s.mutex);
    s.writer->flush();
  }
  ::pthread_atfork(before_fork, after_fork, in_child);
  std::atexit(finish);
  if (s.is_on) start_flushing();
}

}  // namespace weir::inject
