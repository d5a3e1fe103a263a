// What commands that capture share: where the kernel's files are, for tests, and names that have the time in them.
#pragma once

#include <string>

#include "amd/capture/capture_plan.h"
#include "cli/command.h"

namespace weir::cli {

void add_capture_roots(CommandSyntax syntax, amd::CaptureRoots& roots);
// "20260131-120000", UTC
std::string time_for_names();

}  // namespace weir::cli
