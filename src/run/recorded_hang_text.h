// The report about recorded processes that do not go on. Knows their findings; decides nothing.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "run/recorded_hang_process.h"

namespace weir {

// For users, 80 columns apart from stacks: the culprit, then each process.
std::string recorded_hang_text(const std::string& culprit, const std::vector<ProcessHang>& processes,
                               std::int64_t now_ns);

}  // namespace weir
