#include "submit/inject/hip_calls.h"

#include <cxxabi.h>

#include <array>
#include <cstdlib>
#include <mutex>
#include <string_view>

#include "submit/inject/of_thread.h"

namespace weir::inject {
namespace {

using record::Kind;
using record::kNone;
using Role = HipFunction::Role;

Recorder* g_recorder = nullptr;
CallsUser g_user;
std::atomic<bool> g_is_alive{false};  // there is a recorder; pairs with its release in record_hip_calls()
std::atomic<bool> g_is_on{false};
std::atomic<std::int32_t> g_captures{0};  // begun and not ended, in any thread
std::atomic<std::uint32_t> g_correlation{0};

std::mutex g_numbers_mutex;  // protects g_numbers and the header's table of functions
std::uint16_t g_numbers = 0;

// What a thread remembers, until the recorder's generation changes.
struct Memory {
  struct Name {
    const void* kernel = nullptr;
    std::uint32_t text = record::kNoText;
    bool is_collective = false;
  };
  struct Known {
    void* handle = nullptr;
    std::uint32_t context = kNone, place = kNone;
  };
  std::uint32_t generation = UINT32_MAX;
  std::array<Name, 256> names;
  std::array<Known, 256> streams;
};

std::size_t slot_of(const void* address, std::size_t count) noexcept {
  const auto bits = reinterpret_cast<std::uintptr_t>(address);
  return static_cast<std::size_t>((bits >> 3) ^ (bits >> 9) ^ (bits >> 17)) % count;
}

// Functions are numbered as they are first called; later ones than the table holds have no name.
std::uint16_t number_of(HipFunction& function) noexcept {
  std::uint16_t number = function.number.load(std::memory_order_acquire);  // pairs with the store below
  if (number != 0) [[likely]]
    return number;
  const std::lock_guard lock(g_numbers_mutex);
  number = function.number.load(std::memory_order_relaxed);
  if (number != 0 || g_numbers + std::size_t{1} >= record::kFunctions) return number;
  number = ++g_numbers;
  std::atomic_ref(g_recorder->header().functions[number])
      .store(g_recorder->text(function.name), std::memory_order_release);
  function.number.store(number, std::memory_order_release);
  return number;
}

// "_Z9scale_allPfi.kd" -> "scale_all(float*, int)"
const Memory::Name& name_at(Memory& memory, const HipCall& call, void* stream) noexcept {
  Memory::Name& name = memory.names[slot_of(call.kernel, memory.names.size())];
  if (name.kernel == call.kernel) return name;
  name = {call.kernel, record::kNoText, false};
  const char* const mangled = name_of_kernel(call.kernel, call.is_host_function, stream);
  if (mangled == nullptr) return name;
  int status = -1;
  char* plain = nullptr;
  try {
    std::string without(mangled);
    if (without.ends_with(".kd")) without.resize(without.size() - 3);
    plain = abi::__cxa_demangle(without.c_str(), nullptr, nullptr, &status);
    const std::string_view text = status == 0 && plain != nullptr ? plain : std::string_view(without);
    // RCCL's kernels have NCCL's names: ncclDevKernel_Generic(...), ncclKernel_...
    name = {call.kernel, g_recorder->text(text), text.starts_with("nccl")};
  } catch (const std::bad_alloc&) {
  }
  std::free(plain);
  return name;
}

// The place of the stream of a call; its context as well.
void find_stream(Memory& memory, HipBegun& begun) noexcept {
  void* const handle = begun.handle;
  const bool is_of_thread = handle == hipStreamPerThread, is_default = is_of_thread || handle == kHipDefaultStream;
  Memory::Known& known = memory.streams[slot_of(handle, memory.streams.size())];
  // The default streams are others on other devices; other streams stay on theirs.
  if (is_default) {
    begun.context = static_cast<std::uint32_t>(current_device() + 1);
  } else if (known.handle != handle) {
    begun.context = static_cast<std::uint32_t>(device_of_stream(handle) + 1);
  } else {
    begun.context = known.context;
  }
  if (begun.context == 0) begun.context = kNone;  // no stream: the call will fail
  if (begun.context == kNone || (known.handle == handle && known.context == begun.context)) {
    begun.stream = begun.context == kNone ? kNone : known.place;
    return;
  }
  const std::uint32_t device = begun.context - 1;
  begun.stream = g_recorder->stream(reinterpret_cast<std::uint64_t>(handle), is_of_thread ? begun.thread : kNone,
                                    {.context = begun.context, .device = device});
  known = {handle, begun.context, begun.stream};
  // The handle of a thread's default stream is another stream in other threads.
  if (!is_of_thread && begun.stream != kNone && g_user.stream_appears != nullptr)
    g_user.stream_appears(begun.stream, handle, context_on(static_cast<int>(device)));
}

// Captures are counted while nothing is recorded, too: they may last until something is again.
void capture_begins() noexcept {
  if (g_captures.fetch_add(1, std::memory_order_relaxed) == 0 && g_user.captures_change != nullptr)
    g_user.captures_change(true);
}
void capture_ends() noexcept {
  if (g_captures.fetch_sub(1, std::memory_order_relaxed) == 1 && g_user.captures_change != nullptr)
    g_user.captures_change(false);
}
bool may_be_captured(void* stream) noexcept {
  return g_captures.load(std::memory_order_relaxed) > 0 && is_captured(stream);
}

void follow_capture(const HipFunction& function, const HipBegun& begun, hipError_t result) noexcept {
  if (function.role == Role::capture_begins && result != hipSuccess) capture_ends();
  // A capture that has become invalid ends with an error; one of another stream or thread goes on.
  if (function.role == Role::capture_ends && begun.was_captured && result != hipErrorStreamCaptureUnmatched &&
      result != hipErrorStreamCaptureWrongThread)
    capture_ends();
}

Kind kind_of(const HipFunction& function, const HipCall& call) noexcept {
  return call.is_copy_in_order ? Kind::copy : function.kind;
}

// The command records an event by itself when it has ended.
void note_stop_event(const HipCall& call, const HipBegun& begun, std::uint32_t correlation, std::uint16_t number,
                     std::uint8_t flags, std::int64_t now_ns) noexcept {
  record::Entry entry{};
  entry.started_ns = entry.ended_ns = now_ns;
  entry.object = reinterpret_cast<std::uint64_t>(call.stop_event);
  entry.stream = begun.stream;
  entry.context = begun.context;
  entry.correlation = correlation;
  entry.function = number;
  entry.kind = static_cast<std::uint8_t>(Kind::event_record);
  entry.flags = flags;
  g_recorder->append(begun.thread, entry);
}

}  // namespace

HipBegun begin_call(HipFunction& function, const HipCall& call) noexcept {
  HipBegun begun;
  if (!g_is_alive.load(std::memory_order_acquire) || Unrecorded::is_here()) return begun;
  begun.handle = call.stream.handle == nullptr ? kHipDefaultStream : call.stream.handle;
  if (function.role == Role::capture_begins) capture_begins();
  if (function.role == Role::capture_ends) begun.was_captured = may_be_captured(begun.handle);
  if (!g_is_on.load(std::memory_order_acquire)) return begun;
  Recorder& recorder = *g_recorder;
  begun.thread = recorder.thread();
  if (begun.thread == kNone) return begun;
  Memory* const mine = OfThread<Memory>::get();
  if (mine == nullptr) return begun;
  const InsideHip inside;
  Memory& memory = *mine;
  if (const std::uint32_t now = recorder.generation(); memory.generation != now) {
    memory = Memory{};
    memory.generation = now;
  }
  if (call.has_stream)
    find_stream(memory, begun);
  else
    begun.context = static_cast<std::uint32_t>(current_device() + 1);
  if (begun.context == 0) begun.context = kNone;
  Recorder::Call began;
  began.function = number_of(function);
  began.kind = kind_of(function, call);
  began.stream = begun.stream;
  began.context = begun.context;
  began.object = call.object;
  if (call.kernel != nullptr) {
    const Memory::Name& name = name_at(memory, call, begun.handle);
    began.name = name.text;
    began.is_collective = name.is_collective;
  }
  if (function.role == Role::stream_ends && begun.stream != kNone) {
    if (g_user.before_stream_ends != nullptr) g_user.before_stream_ends(begun.handle);
    recorder.stream_destroyed(reinterpret_cast<std::uint64_t>(begun.handle));
  }
  if (function.role == Role::context_ends) {
    if (g_user.before_context_ends != nullptr) g_user.before_context_ends();
    if (begun.context != kNone) recorder.context_destroyed(begun.context);
  }
  begun.is_recorded = true;
  recorder.begin(begun.thread, began, monotonic_ns());
  return begun;
}

void end_call(const HipFunction& function, const HipCall& call, const HipBegun& begun, hipError_t result) noexcept {
  if (begun.handle == nullptr || !g_is_alive.load(std::memory_order_relaxed)) return;
  const std::int64_t now_ns = monotonic_ns();
  const InsideHip inside;
  follow_capture(function, begun, result);
  Recorder& recorder = *g_recorder;
  if (function.role == Role::names_end) recorder.forget();
  if (!begun.is_recorded || !g_is_on.load(std::memory_order_relaxed)) return;
  const Kind kind = kind_of(function, call);
  std::uint8_t flags = result == hipSuccess ? 0 : record::flag::kFailed;
  const bool is_ordered = record::is_command(kind) || kind == Kind::event_record || kind == Kind::stream_wait_event;
  if (is_ordered && result == hipSuccess && may_be_captured(begun.handle)) flags |= record::flag::kCaptured;
  record::Thread& mine = recorder.thread_at(begun.thread);
  const std::int64_t since_ns = mine.started_ns;
  if (since_ns == 0) return;  // recording was switched off during the call
  if (call.made != nullptr && result == hipSuccess) mine.object = reinterpret_cast<std::uint64_t>(*call.made);
  const std::uint32_t correlation = g_correlation.fetch_add(1, std::memory_order_relaxed) + 1;
  const std::uint64_t number = recorder.end(begun.thread, correlation, flags, now_ns);
  if (call.stop_event != nullptr && result == hipSuccess)
    note_stop_event(call, begun, correlation, mine.function, flags, now_ns);
  if (number != 0 && call.has_ended) recorder.ended(begun.stream, number, now_ns);
  if (flags == 0 && kind == Kind::stream_synchronize && begun.stream != kNone)
    recorder.waited(begun.stream, begun.context, since_ns, now_ns);
  if (flags == 0 && kind == Kind::context_synchronize && begun.context != kNone)
    recorder.waited(kNone, begun.context, since_ns, now_ns);
  if (number != 0 && g_user.submitted != nullptr) g_user.submitted({begun.handle, begun.stream, number, now_ns});
}

void record_hip_calls(Recorder& recorder, const CallsUser& user) noexcept {
  if (g_recorder == nullptr) {
    g_recorder = &recorder;
    g_user = user;
    g_is_alive.store(true, std::memory_order_release);
  }
  recorder.forget();  // what was remembered before a pause
  g_is_on.store(true, std::memory_order_release);
}

void stop_recording_hip_calls() noexcept {
  g_is_on.store(false);
  if (g_recorder == nullptr) return;
  // Calls under way will not be seen to return.
  for (std::uint32_t place = 0; place < g_recorder->header().threads; ++place)
    std::atomic_ref(g_recorder->thread_at(place).started_ns).store(0, std::memory_order_release);
}

void abandon_hip_calls() noexcept {
  g_is_on.store(false);
  g_is_alive.store(false);
}

}  // namespace weir::inject
