// Draws a step for Graphviz: a row per stream, commands in order, an arrow wherever a stream waits for another.
#pragma once

#include <string>

#include "run/step_view.h"

namespace weir {

// Steps of more than `most_nodes` commands are drawn in summary: runs of commands become one node, and the title says
// so.
std::string draw_step(const StepView& view, std::size_t most_nodes = 240);

}  // namespace weir
