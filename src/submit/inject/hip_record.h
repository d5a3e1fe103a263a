// Records a HIP program for `weir record`: its calls, and marks behind its commands. The device's own times are
// rocprofv3's, which knows how to get them; never taken here.
#pragma once

namespace weir::inject {

// Once, at the program's first call of HIP; does nothing without WEIR_RECORD_FOLDER. Throws only when memory runs out.
void start_hip_record();

}  // namespace weir::inject
