// One capture, from its first change to this machine until the last one is undone. Decides nothing: the plan does.
#pragma once

#include <map>
#include <string>

#include "amd/capture/capture_folder.h"
#include "amd/capture/capture_plan.h"

namespace weir::amd {

struct CaptureEnd {
  CaptureManifest manifest;
  std::map<std::string, std::uint64_t> bytes;  // of each part
  int code = 0;  // the program's; 130 if Weir was interrupted before it ran; 0 for a target, which others started
  std::string problem;  // the first file of the capture that could not be written, and why
};

// Starts the request's command, or watches its target. The request's folder must be `folder`. Signals are forwarded to
// the program; when this returns or throws, tracing is restored to its previous state in all cases.
CaptureEnd capture_program(CaptureRequest request, CaptureFolder& folder);

}  // namespace weir::amd
