#include "submit/inject/cuda_race_streams.h"

#include <atomic>
#include <map>
#include <string>
#include <tuple>
#include <unordered_map>

#include "submit/inject/cuda_race_driver.h"
#include "submit/inject/of_thread.h"
#include "submit/inject/recorder.h"

namespace weir::inject {
namespace {

// Default streams have one handle in all contexts, and that of a thread one in all threads.
using StreamKey = std::tuple<CUstream, CUcontext, const RaceThread*>;

// What was asked when the stream was made: later it may be captured.
struct MadeStream {
  unsigned flags = 0;
  std::string name;  // empty: not known
};
struct RaceStreams {
  std::map<StreamKey, RaceStream> known;
  std::unordered_map<CUstream, MadeStream> made;
  std::uint32_t count = 0;
};
// Protected by the run's mutex.
RaceStreams& race_streams() noexcept {
  static RaceStreams& kStreams = *new RaceStreams;
  return kStreams;
}
std::atomic<std::uint32_t> g_streams_epoch{1};
std::atomic<int> g_race_captures{0};

bool is_default_stream(CUstream handle) noexcept {
  return handle == CU_STREAM_LEGACY || handle == CU_STREAM_PER_THREAD;
}

// What the driver knows of a stream.
struct StreamFacts {
  CUcontext context = nullptr;
  int device = -1;
  unsigned flags = CU_STREAM_NON_BLOCKING;
  std::string name;
};

std::string number_name(CUstream handle) {
  unsigned long long id = 0;
  const RaceDriver& driver = race_driver();
  if (driver.stream_id == nullptr || driver.stream_id(handle, &id) != CUDA_SUCCESS) return "";
  return "stream " + std::to_string(id);
}

StreamFacts ask_about(CUstream handle, CUcontext context, const RaceThread& thread, const MadeStream* made) {
  StreamFacts facts;
  facts.context = is_default_stream(handle) ? context : static_cast<CUcontext>(context_with(handle));
  if (facts.context == nullptr) facts.context = context;
  facts.device = device_of(facts.context);
  if (handle == CU_STREAM_LEGACY) facts.name = "legacy default stream";
  if (handle == CU_STREAM_PER_THREAD) {
    facts.name = "default stream of thread " + std::to_string(thread.number);
    facts.flags = CU_STREAM_DEFAULT;
  }
  if (is_default_stream(handle)) return facts;
  if (made != nullptr) facts.flags = made->flags;
  if (made != nullptr) facts.name = made->name;
  if (!facts.name.empty()) return facts;
  // Asking a stream for its number while it is captured would end the capture (CUDA 13.0, driver 580).
  if (race_capture_of(handle, facts.context) != RaceCapture::none) return facts;
  const Visiting visit(cuda_driver(), facts.context);
  const RaceDriver& driver = race_driver();
  unsigned asked = 0;
  if (!visit) return facts;
  if (made == nullptr && driver.stream_flags(handle, &asked) == CUDA_SUCCESS) facts.flags = asked;
  facts.name = number_name(handle);
  return facts;
}

}  // namespace

RaceThread* race_thread() noexcept {
  RaceThread* const mine = OfThread<RaceThread>::get();
  if (const std::uint32_t now = g_streams_epoch.load(std::memory_order_acquire);
      mine != nullptr && mine->epoch != now) {
    mine->streams = {};
    mine->epoch = now;
  }
  return mine;
}

std::uint32_t number_race_thread(RaceRun& run, RaceThread& thread) {
  if (thread.number != 0) return thread.number;
  thread.number = ++run.threads;
  for (race_format::Entry& entry : thread.kept) {
    entry.thread = thread.number;
    run.log.add(entry, {});
  }
  thread.kept = {};
  return thread.number;
}

RaceStream find_race_stream(RaceThread& thread, CUstream handle, CUcontext context) {
  const bool is_of_thread = handle == CU_STREAM_PER_THREAD;
  const auto bits = reinterpret_cast<std::uintptr_t>(handle);
  RaceStream& cached = thread.streams[((bits >> 4) ^ (bits >> 10)) % thread.streams.size()];
  if (cached.handle == handle && (!is_default_stream(handle) || cached.context == context)) return cached;
  RaceRun& run = race_run();
  RaceStreams& streams = race_streams();
  const StreamKey key{handle, is_default_stream(handle) ? context : nullptr, is_of_thread ? &thread : nullptr};
  MadeStream made_stream;
  bool was_made = false;
  {
    const std::lock_guard lock(run.mutex);
    if (is_of_thread) number_race_thread(run, thread);
    if (const auto known = streams.known.find(key); known != streams.known.end()) return cached = known->second;
    const auto made = streams.made.find(handle);
    was_made = made != streams.made.end();
    if (was_made) made_stream = made->second;
  }
  StreamFacts facts = ask_about(handle, context, thread, was_made ? &made_stream : nullptr);
  const std::lock_guard lock(run.mutex);
  const auto [at, is_new] = streams.known.try_emplace(key);
  if (!is_new) return cached = at->second;
  RaceStream& made = at->second;
  made = {handle, facts.context, streams.count++, static_cast<std::uint16_t>(facts.device < 0 ? 0 : facts.device)};
  if (facts.name.empty()) facts.name = "stream number " + std::to_string(made.number + 1);
  race_format::Entry entry{};
  entry.kind = static_cast<std::uint8_t>(race_format::Kind::stream);
  if (handle == CU_STREAM_LEGACY) entry.flags = race_format::kLegacy;
  if (handle != CU_STREAM_LEGACY && (facts.flags & CU_STREAM_NON_BLOCKING) == 0) entry.flags = race_format::kBlocking;
  entry.device = made.device;
  entry.thread = thread.number == 0 ? 1 : thread.number;
  entry.stream = made.number;
  entry.name = run.log.text(facts.name);
  entry.object = bits;
  entry.time_ns = monotonic_ns();
  run.log.add(entry, {});
  return cached = made;
}

void race_stream_made(CUstream handle, unsigned flags) {
  CUcontext context = nullptr;
  if (race_driver().current(&context) != CUDA_SUCCESS) context = nullptr;
  MadeStream made{flags, ""};
  if (const Visiting visit(cuda_driver(), context); visit) made.name = number_name(handle);
  const std::lock_guard lock(race_run().mutex);
  race_streams().made[handle] = std::move(made);
}

void race_stream_ends(CUstream handle) {
  {
    const std::lock_guard lock(race_run().mutex);
    race_streams().made.erase(handle);
    race_streams().known.erase(StreamKey{handle, nullptr, nullptr});
  }
  g_streams_epoch.fetch_add(1, std::memory_order_acq_rel);
}

void forget_race_streams() {
  {
    const std::lock_guard lock(race_run().mutex);
    race_streams().made.clear();
    race_streams().known.clear();
  }
  g_streams_epoch.fetch_add(1, std::memory_order_acq_rel);
}

void race_capture_changes(int by) noexcept {
  // One that began before anybody looked is not counted.
  if (g_race_captures.fetch_add(by, std::memory_order_relaxed) + by < 0) g_race_captures.store(0);
}

RaceCapture race_capture_of(CUstream handle, CUcontext context) noexcept {
  if (g_race_captures.load(std::memory_order_relaxed) == 0) return RaceCapture::none;
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  const Visiting visit(cuda_driver(), context);
  // An error: some other stream is captured, which this one may not disturb.
  if (!visit || race_driver().is_capturing(handle, &status) != CUDA_SUCCESS) return RaceCapture::forbidden;
  return status == CU_STREAM_CAPTURE_STATUS_NONE ? RaceCapture::none : RaceCapture::captured;
}

}  // namespace weir::inject
