// Runs the built binary as a user would, and keeps what it prints.
#pragma once

#include "support/programs.h"

namespace weir::testing {

// Arguments go to the program as they are: no shell in between.
Outcome weir(const std::vector<std::string>& arguments, const std::filesystem::path& folder = ".");
// Starts it without waiting; what it prints is dropped.
pid_t start_weir(const std::vector<std::string>& arguments, const std::filesystem::path& folder);

}  // namespace weir::testing
