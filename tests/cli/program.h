// Runs the built binary as a user would, and keeps what it prints.
#pragma once

#include "support/programs.h"

namespace weir::testing {

// Arguments go to the program as they are: no shell in between.
Outcome weir(const std::vector<std::string>& arguments, const std::filesystem::path& folder = ".");

// Checks a document against that file of docs/schema with another implementation of JSON Schema. Skips, with the
// reason, where python3-jsonschema is not installed.
void expect_valid_as(const std::string& file, const std::string& schema);

// Starts it without waiting; what it prints is dropped.
pid_t start_weir(const std::vector<std::string>& arguments, const std::filesystem::path& folder);

}  // namespace weir::testing
