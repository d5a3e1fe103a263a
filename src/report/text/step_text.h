// A step in words, as single commands and as a whole, and as a drawing for Graphviz. Knows the catalogue's names.
#pragma once

#include <string>

#include "run/step_view.h"

namespace weir {

// The name of a command: gemm, copy, all_reduce.
std::string command_name(const Command& command);
// "64 x 64 x 64, bf16" or "to device, 4.00 KiB": its size in a few words.
std::string command_size(const Step& step, CommandId id);

// What would run, for `weir run --dry-run`; at most 80 columns.
std::string describe_step(const StepView& view);

// For Graphviz: a row per stream, commands in order, an arrow wherever a stream waits for another. Steps of more than
// `max_nodes` commands are summarised: runs of commands become one node, and the title says so.
std::string draw_step(const StepView& view, std::size_t max_nodes = 240);

}  // namespace weir
