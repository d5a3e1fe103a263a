// The commands by name, for list.cpp and for the files that define them.
#pragma once

#include "cli/command.h"

namespace weir::cli {

CliCommand list_workloads();
CliCommand info();
CliCommand run();
CliCommand sweep();
CliCommand run_priority();
CliCommand compare();

}  // namespace weir::cli
