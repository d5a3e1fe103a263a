// The flight recorder in a program: $WEIR_RECORD_FOLDER/PID.weirrec, which `weir record` reads. Never makes such a
// program fail: if something is missing, the file says so. Knows no vendor.
#pragma once

#include <cstdint>
#include <string>

#include "submit/inject/calls_user.h"
#include "submit/inject/launch_gate.h"
#include "submit/inject/recorder.h"

namespace weir::inject {

// What a vendor's part does. Texts are reasons why something is not possible, or empty.
struct RecordedVendor {
  const GateDriver& driver;
  // Once, before everything else.
  std::string (*prepare)(bool is_exact) = nullptr;
  // Calls go to the recorder from then on; again after switch_off().
  std::string (*switch_on)(Recorder& recorder, const CallsUser& user, bool is_exact) = nullptr;
  void (*switch_off)(bool is_exact) = nullptr;
  // Hands over the device's records, if there are any.
  void (*flush)(bool is_last) = nullptr;
  std::uint64_t (*handed_over)() = nullptr;  // how often it happened, by this or by itself
  // The program is ending, or this is a forked child: nothing may be recorded from now on.
  void (*abandon)(bool is_child) = nullptr;
};

// Starts recording if WEIR_RECORD_FOLDER names a folder; once. Throws only when memory runs out.
void start_flight_record(const RecordedVendor& vendor);
// Of the running recording; not before start_flight_record() has called prepare().
Recorder& flight_recorder() noexcept;
// For the reader of the file: something that does not work.
void note_in_record(const std::string& text);

}  // namespace weir::inject
