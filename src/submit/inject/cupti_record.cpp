// The part of libweir_cupti.so that records a program for `weir record`: calls by hooks or by CUPTI's callbacks and,
// where exact times are wanted, CUPTI's records of what ran on the device.
#include <string>
#include <unordered_map>

#include "submit/inject/cupti_activity.h"
#include "submit/inject/cupti_calls.h"
#include "submit/inject/cupti_driver.h"
#include "submit/inject/cupti_library.h"
#include "submit/inject/flight_record.h"
#include "submit/inject/nvtx_ranges.h"

namespace weir::inject {
namespace {

using record::kNone;

// Of the device's records, used with the lock of cupti_activity.
struct Seen {
  std::unordered_map<const char*, std::uint32_t> names;      // texts of kernels, by CUPTI's address of the name
  std::unordered_map<std::uint64_t, std::uint32_t> streams;  // places, by context and id
  std::uint32_t generation = 0;                              // of the recorder, when they were noted
};

Seen& seen() {
  static Seen& kSeen = *new Seen;
  return kSeen;
}

bool g_has_activity = false;

std::uint32_t place_of(const capture::Place& place) {
  Seen& s = seen();
  Recorder& recorder = flight_recorder();
  if (const std::uint32_t now = recorder.generation(); now != s.generation) {
    s.streams.clear();
    s.generation = now;
  }
  const auto [at, is_new] = s.streams.try_emplace(std::uint64_t{place.context} << 32 | place.stream, kNone);
  for (std::uint32_t i = 0; is_new && i < recorder.stream_places(); ++i) {
    record::Stream& stream = recorder.stream_at(i);
    if (std::atomic_ref(stream.is_used).load(std::memory_order_acquire) == 0) break;
    if (stream.context == place.context && stream.id == place.stream) at->second = i;
  }
  return at->second;
}

void write_command(const DeviceCommand& command) {
  Recorder& recorder = flight_recorder();
  const std::uint32_t thread = recorder.thread();
  if (thread == kNone) return;
  record::Entry entry{};
  entry.started_ns = command.place.started_ns;
  entry.ended_ns = command.place.ended_ns;
  entry.object = command.bytes;
  entry.stream = place_of(command.place);
  entry.context = command.place.context;
  entry.correlation = static_cast<std::uint32_t>(command.place.correlation);
  entry.function = static_cast<std::uint16_t>(command.place.channel_type);
  entry.kind = static_cast<std::uint8_t>(record::Kind::device);
  entry.number = command.place.channel;
  if (command.name != nullptr) {
    Seen& s = seen();
    auto name = s.names.find(command.name);
    if (name == s.names.end()) name = s.names.emplace(command.name, recorder.text(demangled(command.name))).first;
    entry.name = name->second;
  }
  recorder.append(thread, entry);
}

constexpr ActivityUser kActivityUser{
    .command = write_command,
    .device = [](std::uint32_t, const char*) {},
    .context = [](std::uint32_t, std::uint32_t) {},
    .lost = [](std::uint64_t,
               const char* reason) { note_in_record(std::string("records of the device are missing: ") + reason); },
    .note = note_in_record,
    .buffer_ended = [] {},
};

std::string prepare(bool) {
  if (const char* const missing = bind_cuda_driver(); missing != nullptr)
    return std::string("the CUDA driver lacks ") + missing;
  return {};
}

std::string switch_on(Recorder& recorder, const CallsUser& user, bool is_exact) {
  if (is_exact && g_has_activity) set_activity(true);
  if (is_exact && !g_has_activity) {
    if (std::string reason = enable_activity(kActivityUser, {}); !reason.empty()) return reason;
    g_has_activity = true;
  }
  std::string reason = record_calls(recorder, user, is_exact ? CallsBy::cupti : CallsBy::any);
  if (reason.empty()) record_ranges(&recorder);
  return reason;
}

void switch_off(bool is_exact) {
  if (is_exact) set_activity(false);
  stop_recording_calls();
  record_ranges(nullptr);
}

void abandon(bool is_child) {
  abandon_calls();
  record_ranges(nullptr);
  if (is_child) abandon_activity();
}

RecordedVendor vendor_of_cuda() noexcept {
  return {cuda_driver(), prepare, switch_on, switch_off, flush_activity, activity_buffers, abandon};
}

}  // namespace

void start_record() {
  static const RecordedVendor kVendor = vendor_of_cuda();
  start_flight_record(kVendor);
}

}  // namespace weir::inject
