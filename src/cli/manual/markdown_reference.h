// docs/cli.md, from the program's own commands: `weir help --markdown`.
#pragma once

#include <string>

#include "cli/manual/reference.h"

namespace weir::cli {

std::string markdown_reference(const CommandFacts& root);

}  // namespace weir::cli
