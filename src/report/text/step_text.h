// A step in words: single commands, and the whole of it. Knows the catalogue's names; draws nothing.
#pragma once

#include <string>

#include "run/step_view.h"

namespace weir {

// gemm, copy, all_reduce: what a command is called.
std::string command_name(const Command& command);
// "64 x 64 x 64, bf16" or "to device, 4.00 KiB": its size in a few words.
std::string command_size(const Step& step, CommandId id);

// What would run, for `weir run --dry-run`; at most 80 columns.
std::string describe_step(const StepView& view);

}  // namespace weir
