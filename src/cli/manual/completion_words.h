// What may follow a half-typed command line. Knows the program's commands and flags; no shell.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "cli/manual/completion_values.h"
#include "cli/manual/reference.h"

namespace weir::cli {

// `words` as typed behind the program's name; the last one, which may be empty, is to be completed. Candidates stand
// for the whole last word and begin as it does.
Values complete(const CommandFacts& root, std::span<const std::string> words);

// What completion scripts read: "candidate<TAB>description" a line, then ":files", ":yaml", ":folders" or ":programs"
// where the shell is to add its own, and ":nospace".
std::string completion_lines(const Values& values);

}  // namespace weir::cli
