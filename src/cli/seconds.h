// Times that users type behind a flag: 30s, 5m, 1h. Knows no flag by name.
#pragma once

#include <string>

namespace weir::cli {

// "300", "300s", "500ms", "5m", "1h": more than nothing and at most a week. Rejects in the name of `flag`.
double seconds_of(const std::string& flag, const std::string& text);

}  // namespace weir::cli
