// Documents of nodes that the user names: files of `weir fleet probe`, and folders of them. Reads; judges nothing.
#pragma once

#include <string>
#include <vector>

#include "lab/fleet/node.h"

namespace weir::cli {

// In the order of the paths; of a folder the *.json that are documents of nodes, and nothing else. Rejects a file of
// another kind, and a folder without any.
std::vector<fleet::NodeReport> read_nodes(const std::vector<std::string>& paths);

}  // namespace weir::cli
