// A program of the user's, profiled as it is: under our injection library on NVIDIA GPUs, under rocprofv3 on AMD's.
// Starts it, waits for it, imports what was captured. Knows no trace format but by the importers' names.
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
  bool is_interrupted = false;  // while its records were read or written: then there is no document
};

// Standard input, output and errors are the program's; signals that are sent to us go on to it.
ProgramProfile profile_program(const ProgramRequest& request);

}  // namespace weir::cli
