// One capture from its first change of this machine to the last that is undone. Decides nothing: the plan does.
#pragma once

#include <map>
#include <string>

#include "amd/capture/capture_plan.h"
#include "cli/amd_capture_folder.h"

namespace weir::cli {

struct CaptureEnd {
  amd::CaptureManifest manifest;
  std::map<std::string, std::uint64_t> bytes;  // of each part
  int code = 0;                                // the program's; 130 where we were interrupted before it ran
  std::string problem;                         // the manifest could not be written
};

// The request's folder is the one that is given. Signals go to the program; whatever happens, tracing is as it was
// before when this returns or throws.
CaptureEnd capture_program(amd::CaptureRequest request, CaptureFolder& folder);

}  // namespace weir::cli
