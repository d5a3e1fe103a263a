// The part of libweir_cupti.so that writes a program's commands down, for `weir profile --`.
#pragma once

namespace weir::inject {

// Where WEIR_CAPTURE_FOLDER names a folder; once. Throws only what running out of memory throws.
void start_capture();

}  // namespace weir::inject
