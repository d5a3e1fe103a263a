// The child's side of `weir channel`: runs the benchmarks that a file names, in its order, and tells each result as a
// line of JSON. Knows no other process.
#pragma once

#include <string>

namespace weir::cli {

// {"begins": ID} before each benchmark, {"ends": ID, "measurement": {...}} after it. Rejects a file that is no request.
int run_channel_child(const std::string& file);

}  // namespace weir::cli
