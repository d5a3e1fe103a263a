// Writes a program's calls of the CUDA driver into a recorder, from CUPTI's callbacks.
#pragma once

#include <string>

#include "submit/inject/recorder.h"

namespace weir::inject {

// A command that was submitted.
struct Submitted {
  void* stream = nullptr;   // the program's handle
  std::uint32_t place = 0;  // in the recorder's table
  std::uint64_t number = 0; // which of its stream
  std::int64_t now_ns = 0;
};
// Called in the program's threads; each may be null.
struct CallsUser {
  void (*submitted)(const Submitted&) noexcept = nullptr;
  void (*before_context_ends)() noexcept = nullptr;
};

// `recorder` stays in use for ever. Returns why calls cannot be recorded, or empty. Call again after
// stop_recording_calls(), with the same recorder.
std::string record_calls(Recorder& recorder, const CallsUser& user);
void stop_recording_calls() noexcept;
// In a forked child, where nothing may be recorded: the memory belongs to the parent.
void abandon_calls() noexcept;

// The calls of this thread are not the program's while one of these exists.
class Unrecorded {
 public:
  Unrecorded() noexcept;
  ~Unrecorded();
  Unrecorded(const Unrecorded&) = delete;
  Unrecorded& operator=(const Unrecorded&) = delete;

 private:
  bool was_inside_;
};

}  // namespace weir::inject
