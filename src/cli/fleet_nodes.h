// Nodes that the user names: documents of `weir fleet probe`, folders of them, and histories that hold them. Reads;
// judges nothing.
#pragma once

#include <string>
#include <vector>

#include "lab/fleet/judge/judge.h"
#include "lab/fleet/node.h"

namespace weir::cli {

inline constexpr const char* kNodePaths =
    "documents of `weir fleet probe`, folders of them, or histories (a file, postgresql://...)";

// A file of SQLite, or the address of a PostgreSQL database.
bool is_history(const std::string& path);

// In the order of the paths; of a folder the *.json that are documents of nodes, and nothing else; of a history the
// newest probe of each node since that time (or its beginning; empty: of all times). Rejects a file of another kind,
// and a path without any node.
std::vector<fleet::NodeReport> read_nodes(const std::vector<std::string>& paths, const std::string& since = {});

// Devices that became slower, as the histories among the paths know.
std::vector<fleet::Finding> changes_of(const std::vector<std::string>& paths, const std::string& since,
                                       double threshold);

}  // namespace weir::cli
