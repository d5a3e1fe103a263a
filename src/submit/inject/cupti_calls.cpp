#include "submit/inject/cupti_calls.h"

#include <cxxabi.h>

#include <atomic>
#include <cstdlib>

#include "submit/inject/cuda_hooks.h"
#include "submit/inject/cupti_driver.h"
#include "submit/inject/cupti_library.h"
#include "submit/inject/of_thread.h"

namespace weir::inject {
namespace {

using record::kNone;
using Role = CudaFunction::Role;

Recorder* g_recorder = nullptr;
CallsUser g_user;
std::atomic<bool> g_is_on{false};
std::atomic<std::int32_t> g_captures{0};  // begun and not ended, in any thread

bool g_is_hooked = false;  // then CUPTI is left alone, which may slow a program by being asked for something
decltype(&cuptiGetStreamIdEx) g_stream_id = nullptr;
decltype(&cuptiGetDeviceId) g_device_id = nullptr;
decltype(&cuptiGetContextId) g_context_id = nullptr;
CUresult (*g_is_capturing)(CUstream, CUstreamCaptureStatus*) = nullptr;

// What a thread remembers, until the recorder's generation changes.
constexpr std::uint8_t kFew = 3;
struct Memory {
  struct Name {
    const char* address = nullptr;
    std::uint32_t text = record::kNoText;
    bool is_collective = false;
    std::uint8_t launches = 0;  // up to kFew
  };
  struct Stream {
    CUstream handle = nullptr;
    std::uint32_t context = kNone, place = kNone;
  };
  std::uint32_t generation = UINT32_MAX;
  std::array<Name, 256> names;
  std::array<Stream, 256> streams;
};
thread_local bool t_is_suspect = false;  // the command that this thread is submitting

std::size_t slot_of(const void* address, std::size_t count) noexcept {
  const auto bits = reinterpret_cast<std::uintptr_t>(address);
  return static_cast<std::size_t>((bits >> 3) ^ (bits >> 9) ^ (bits >> 17)) % count;
}

Memory::Name& name_at(Memory& memory, const char* mangled) noexcept {
  Memory::Name& name = memory.names[slot_of(mangled, memory.names.size())];
  if (name.address == mangled) return name;
  int status = -1;
  char* const plain = abi::__cxa_demangle(mangled, nullptr, nullptr, &status);
  const std::string_view text = status == 0 && plain != nullptr ? plain : mangled;
  // ncclDevKernel_AllReduce_Sum_f32_RING_LL(...), ncclKernel_...
  name = {mangled, g_recorder->text(text), text.starts_with("nccl")};
  std::free(plain);
  return name;
}

// Whether this thread has hardly launched this graph before.
bool is_new(Memory& memory, std::uint64_t graph) noexcept {
  const char* const address = reinterpret_cast<const char*>(graph);
  Memory::Name& known = memory.names[slot_of(address, memory.names.size())];
  if (known.address != address) known = {address};
  if (known.launches == kFew) return false;
  ++known.launches;
  return true;
}

struct Stream {
  CUcontext context;
  Recorder::StreamFacts facts;
};

bool is_capturing(CUstream stream) noexcept {
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  // An error means that some other stream is captured, which this one may not disturb: the call will fail by itself.
  return g_is_capturing(stream, &status) != CUDA_SUCCESS || status != CU_STREAM_CAPTURE_STATUS_NONE;
}

// `has_number`: the stream may be asked for its number.
Stream asked(CUstream handle, bool is_default, bool has_number, const CUpti_CallbackData& data) noexcept {
  Stream stream{data.context, {.context = data.contextUid}};
  Recorder::StreamFacts& facts = stream.facts;
  // The default streams are those of the current context; others may be used while another context is.
  const auto own = is_default ? nullptr : static_cast<CUcontext>(context_with(handle));
  if (own != nullptr && own != data.context) {
    std::uint32_t id = kNone;
    if (g_is_hooked)
      id = context_id_by_driver(own);
    else if (g_context_id != nullptr && g_context_id(own, &id) != CUPTI_SUCCESS)
      id = kNone;
    if (id != kNone) stream = {own, {.context = id}};
  }
  if (stream.context == nullptr) return stream;
  if (g_is_hooked) {
    // The default streams are known by their handles.
    if (!is_default && has_number) facts.id = stream_id_by_driver(handle);
    if (const int device = device_of(stream.context); device >= 0) facts.device = static_cast<std::uint32_t>(device);
    return stream;
  }
  if (!has_number || g_stream_id == nullptr ||
      g_stream_id(stream.context, is_default ? nullptr : handle, handle == CU_STREAM_PER_THREAD ? 1 : 0, &facts.id) !=
          CUPTI_SUCCESS)
    facts.id = kNone;
  if (g_device_id == nullptr || g_device_id(stream.context, &facts.device) != CUPTI_SUCCESS) facts.device = kNone;
  return stream;
}

std::uint32_t stream_at(Memory& memory, CUstream handle, std::uint32_t thread,
                        const CUpti_CallbackData& data) noexcept {
  Memory::Stream& known = memory.streams[slot_of(handle, memory.streams.size())];
  if (known.handle == handle && known.context == data.contextUid) return known.place;
  const bool is_of_thread = handle == CU_STREAM_PER_THREAD, is_default = is_of_thread || handle == CU_STREAM_LEGACY;
  const Unrecorded unrecorded;
  // The driver is asked without the recorder's lock: in callbacks it holds locks of its own. Asking a stream for its
  // number while it is captured would end the capture, in relaxed mode too (CUDA 13.0, driver 580). A driver that
  // cannot be asked about captures has none.
  const bool has_number = is_default || g_is_capturing == nullptr || !is_capturing(handle);
  const Stream stream = asked(handle, is_default, has_number, data);
  const std::uint32_t place =
      g_recorder->stream(reinterpret_cast<std::uint64_t>(handle), is_of_thread ? thread : kNone, stream.facts);
  if (has_number) known = {handle, data.contextUid, place};
  // The handle of a thread's default stream is another stream in other threads.
  if (!is_of_thread && place != kNone && g_user.stream_appears != nullptr)
    g_user.stream_appears(place, handle, stream.context);
  return place;
}

bool is_captured(CUstream stream) noexcept {
  if (g_captures.load(std::memory_order_relaxed) == 0 || g_is_capturing == nullptr) return false;
  const Unrecorded unrecorded;
  return is_capturing(stream);
}

void capture_ended() noexcept {
  // One that began before recording did is not counted.
  if (g_captures.load(std::memory_order_relaxed) == 0) return;
  if (g_captures.fetch_sub(1, std::memory_order_relaxed) == 1 && g_user.captures_change != nullptr)
    g_user.captures_change(false);
}

// The effects of a call on what we know, besides its entry.
void follow(const CudaFunction& function, CUstream stream, const CUpti_CallbackData& data, bool is_entry,
            bool has_failed) noexcept {
  switch (function.role) {
    case Role::plain:
    case Role::may_wait:
    case Role::touches:
    case Role::graph_made:
    case Role::graph_changes:
    case Role::graph_ends:
      return;
    case Role::capture_begins:
      if (!is_entry && has_failed) capture_ended();
      if (!is_entry) return;
      if (g_captures.fetch_add(1, std::memory_order_relaxed) == 0 && g_user.captures_change != nullptr)
        g_user.captures_change(true);
      return;
    case Role::capture_ends:
      if (!is_entry) capture_ended();
      return;
    case Role::stream_ends:
      if (!is_entry) return;
      if (g_user.before_stream_ends != nullptr) g_user.before_stream_ends(stream);
      g_recorder->stream_destroyed(reinterpret_cast<std::uint64_t>(stream));
      return;
    case Role::names_end:
      g_recorder->forget();
      return;
    case Role::context_ends:
      if (is_entry && g_user.before_context_ends != nullptr) g_user.before_context_ends();
      if (is_entry) g_recorder->context_destroyed(data.contextUid);
      return;
  }
}

void on_call(const CudaFunction& function, const CUpti_CallbackData& data) {
  if (Unrecorded::is_here() || !g_is_on.load(std::memory_order_relaxed)) return;
  Recorder& recorder = *g_recorder;
  const std::uint32_t thread = recorder.thread();
  if (thread == kNone) return;
  const bool is_entry = data.callbackSite == CUPTI_API_ENTER;
  const CUstream stream =
      function.stream == CudaFunction::Stream::none ? nullptr : stream_of(function, data.functionParams);
  if (is_entry) {
    if (function.role != Role::plain) follow(function, stream, data, true, false);
    Memory* const mine = OfThread<Memory>::get();
    if (mine == nullptr) return;
    Memory& memory = *mine;
    if (const std::uint32_t now = recorder.generation(); memory.generation != now) {
      memory = Memory{};
      memory.generation = now;
    }
    Recorder::Call call;
    bool is_suspect = function.kind == record::Kind::host_function || function.kind == record::Kind::memory_operation;
    call.function = function.id;
    call.kind = function.kind;
    call.context = data.contextUid;
    call.object = object_of(function, data.functionParams, true);
    if (function.kind == record::Kind::graph_launch) is_suspect = is_new(memory, call.object);
    // A destroyed stream has no place any more.
    if (function.stream != CudaFunction::Stream::none && function.role != Role::stream_ends)
      call.stream = stream_at(memory, stream, thread, data);
    if (function.kind == record::Kind::launch && data.symbolName != nullptr) {
      Memory::Name& name = name_at(memory, data.symbolName);
      call.name = name.text;
      call.is_collective = name.is_collective;
      is_suspect = name.is_collective || name.launches < kFew;
      if (name.launches < kFew) ++name.launches;
    }
    t_is_suspect = is_suspect;
    recorder.begin(thread, call, monotonic_ns());
    return;
  }
  const std::int64_t now_ns = monotonic_ns();
  std::uint8_t flags = 0;
  const auto* const result = static_cast<const CUresult*>(data.functionReturnValue);
  if (result != nullptr && *result != CUDA_SUCCESS) flags |= record::flag::kFailed;
  const bool is_ordered = record::is_command(function.kind) || function.kind == record::Kind::event_record ||
                          function.kind == record::Kind::stream_wait_event;
  if (is_ordered && is_captured(stream)) flags |= record::flag::kCaptured;
  record::Thread& mine = recorder.thread_at(thread);
  const std::int64_t since_ns = mine.started_ns;
  const std::uint32_t place = mine.stream;
  if (function.object == CudaFunction::Object::made) mine.object = object_of(function, data.functionParams, false);
  const std::uint64_t number = recorder.end(thread, data.correlationId, flags, now_ns);
  if (function.role != Role::plain) follow(function, stream, data, false, flags != 0);
  if (number != 0 && function.kind == record::Kind::synchronous_copy) recorder.ended(place, number, now_ns);
  if (flags == 0 && since_ns != 0 && function.kind == record::Kind::stream_synchronize && place != kNone)
    recorder.waited(place, data.contextUid, since_ns, now_ns);
  if (flags == 0 && since_ns != 0 && function.kind == record::Kind::context_synchronize)
    recorder.waited(kNone, data.contextUid, since_ns, now_ns);
  if (number != 0 && g_user.submitted != nullptr) g_user.submitted({stream, place, number, now_ns, t_is_suspect});
}

}  // namespace

std::string record_calls(Recorder& recorder, const CallsUser& user, CallsBy by) {
  if (g_recorder == nullptr) {
    g_recorder = &recorder;
    g_user = user;
    g_is_hooked = by == CallsBy::any && has_hooks();
    std::string ignored;
    if (void* const cupti = g_is_hooked ? nullptr : open_cupti(ignored)) {
      const EntryPoints entries(cupti);
      entries.want(g_stream_id, "cuptiGetStreamIdEx");
      entries.want(g_device_id, "cuptiGetDeviceId");
      entries.want(g_context_id, "cuptiGetContextId");
    }
    bind_cuda_driver();  // where something is missing, less is known of streams
    if (void* const driver = ::dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD))
      EntryPoints(driver).want(g_is_capturing, "cuStreamIsCapturing");
    for (const CudaFunction& function : cuda_functions())
      if (function.is_followed) recorder.header().functions[function.id] = recorder.text(function.name);
  }
  recorder.forget();  // what was remembered before a pause
  // Ends of captures were not seen meanwhile.
  if (g_captures.exchange(0) != 0 && g_user.captures_change != nullptr) g_user.captures_change(false);
  g_is_on.store(true);
  const auto wants = [](const CudaFunction& function) {
    const bool is_for_hangs = function.kind == record::Kind::event_create ||
                              function.kind == record::Kind::event_destroy || function.role == Role::may_wait;
    return !is_about_graphs(function) && !is_about_touches(function) && (g_user.is_for_hangs || !is_for_hangs);
  };
  std::string reason = follow_calls(on_call, wants, by);
  if (!reason.empty()) g_is_on.store(false);
  return reason;
}

void stop_recording_calls() noexcept {
  unfollow_calls(on_call);
  g_is_on.store(false);
  if (g_recorder == nullptr) return;
  // Calls under way will not be seen to return.
  for (std::uint32_t place = 0; place < g_recorder->header().threads; ++place)
    std::atomic_ref(g_recorder->thread_at(place).started_ns).store(0, std::memory_order_release);
}

void abandon_calls() noexcept { g_is_on.store(false); }

}  // namespace weir::inject
