// Profiles an unmodified program of the user: with Weir's injection library on NVIDIA GPUs, with rocprofv3 on AMD GPUs.
// Starts it, waits for it, imports what was captured. Knows trace formats only by the importers' names.
#pragma once

#include <string>
#include <vector>

#include "cli/command.h"
#include "cli/profile_output.h"

namespace weir::cli {

struct ProgramFlags {
  std::string profiler = "auto";  // cupti or rocprofv3
  std::string limit_mib = "4096";

  void add_to(CommandSyntax syntax);
};

struct ProgramRequest {
  std::vector<std::string> command;
  ProgramFlags flags;
  bool has_latency = false;
  bool is_quiet = false;
  ProfileOutput output;
};

struct ProgramProfile {
  Json document = Json::object();
  int code = 0;  // the program's own, or 128 + signal
  bool has_timeline = false;
  bool is_interrupted = false;  // while its records were read or written; there is then no document
};

// Standard input, output and errors belong to the program; signals sent to this process are forwarded to it.
ProgramProfile profile_program(const ProgramRequest& request);

}  // namespace weir::cli
