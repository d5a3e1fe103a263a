// The parts of libweir_cupti.so. CUPTI itself is opened at run time, because the copy that a program brings is the one
// that fits it.
#pragma once

#include <string>

namespace weir::inject {

// Null, with the loader's message, if there is none. WEIR_CUPTI_LIBRARY can name it.
void* open_cupti(std::string& reason);

// Records a program's commands, for `weir profile --`, if WEIR_CAPTURE_FOLDER names a folder; call once. Throws only
// when memory runs out.
void start_capture();

// Holds a program's launches, for `weir sched run`, if WEIR_SCHED_SOCKET names a scheduler; call once. If anything is
// missing, the program runs unscheduled, with a message on stderr.
void start_gate() noexcept;

}  // namespace weir::inject
