// The scripts that `weir completion` prints. Each turns a shell's half-typed line into words, asks the program
// (`weir completion --complete -- WORDS`) and gives the shell what it answers; none knows a command or a flag.
#pragma once

#include <span>
#include <string_view>

namespace weir::cli {

struct CompletionScript {
  std::string_view shell, text;
};

std::span<const CompletionScript> completion_scripts();

}  // namespace weir::cli
