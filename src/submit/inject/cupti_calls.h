// Writes a program's calls of the CUDA driver into a recorder.
#pragma once

#include <string>

#include "submit/inject/calls_user.h"
#include "submit/inject/cupti_subscription.h"
#include "submit/inject/recorder.h"

namespace weir::inject {

// `recorder` stays in use for ever. Returns why calls cannot be recorded, or empty. Call again after
// stop_recording_calls(), with the same recorder.
std::string record_calls(Recorder& recorder, const CallsUser& user, CallsBy by);
void stop_recording_calls() noexcept;
// In a forked child, where nothing may be recorded: the memory belongs to the parent.
void abandon_calls() noexcept;

}  // namespace weir::inject
