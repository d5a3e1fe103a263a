// weir.1, from the program's own commands: `weir help --man`. Macros of man(7) that groff and mandoc both know.
#pragma once

#include <string>
#include <string_view>

#include "cli/manual/reference.h"

namespace weir::cli {

std::string man_page(const CommandFacts& root, std::string_view version);

}  // namespace weir::cli
