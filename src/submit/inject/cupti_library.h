// The parts of libweir_cupti.so. CUPTI itself is opened at run time, because the copy that a program brings is the one
// that fits it.
#pragma once

#include <string>

namespace weir::inject {

// Null, with what the loader said, where there is none. WEIR_CUPTI_LIBRARY can name it.
void* open_cupti(std::string& reason);

// Writes a program's commands down, for `weir profile --`, where WEIR_CAPTURE_FOLDER names a folder; once. Throws only
// what running out of memory throws.
void start_capture();

// Holds a program's launches, for `weir sched run`, where WEIR_SCHED_SOCKET names a scheduler; once. The program runs
// unscheduled, which is said on stderr, where anything is missing.
void start_gate() noexcept;

}  // namespace weir::inject
