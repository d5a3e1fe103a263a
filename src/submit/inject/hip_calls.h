// The program's calls of HIP, as the functions that this library exports see them: writes them into a recorder. Knows
// no signature; those are in hip_launches.cpp, hip_copies.cpp and hip_order.cpp.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>

#include "submit/inject/calls_user.h"
#include "submit/inject/hip_driver.h"
#include "submit/inject/recorder.h"

namespace weir::inject {

struct HipFunction {
  enum class Role : std::uint8_t {
    plain,
    capture_begins,
    capture_ends,
    stream_ends,   // the stream's handle may belong to another one from now on
    names_end,     // a module is unloaded: the addresses of its functions may be reused
    context_ends,  // the device is reset
  };
  const char* name;
  record::Kind kind = record::Kind::other;
  Role role = Role::plain;
  std::atomic<std::uint16_t> number{0};  // in recordings; 0: none yet
};

// What one call is about.
struct HipCall {
  Stream stream{};
  bool has_stream = false;
  bool is_host_function = false;  // `kernel` is the address of one, no hipFunction_t
  bool has_ended = false;         // what it enqueued has ended when the call returns
  bool is_copy_in_order = false;  // despite its kind: the host does not wait
  const void* kernel = nullptr;
  std::uint64_t object = 0;
  const hipEvent_t* made = nullptr;  // where the call puts the object
  hipEvent_t stop_event = nullptr;   // that the command records when it ends
};

// What begin_call() found out for end_call().
struct HipBegun {
  bool is_recorded = false;
  bool was_captured = false;  // of calls that end a capture
  std::uint32_t thread = record::kNone, stream = record::kNone, context = record::kNone;
  void* handle = nullptr;  // of the stream, never null
};

// Around each call of the program. begin_call() may call HIP; end_call() does so only after a call that succeeded.
HipBegun begin_call(HipFunction& function, const HipCall& call) noexcept;
void end_call(const HipFunction& function, const HipCall& call, const HipBegun& begun, hipError_t result) noexcept;

// From now on the calls above write into the recorder, or no longer do.
void record_hip_calls(Recorder& recorder, const CallsUser& user) noexcept;
void stop_recording_hip_calls() noexcept;
// For good, and without taking a lock: the process ends, or is a forked child.
void abandon_hip_calls() noexcept;

}  // namespace weir::inject
