// Old spellings of commands and flags, which work for one more release, and the new ones. Rewrites a command line
// before it is parsed. Knows no command's meaning.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cli/manual/reference.h"

namespace weir::cli {

// was              is               for
// run-priority     run              a command; "analyze --compare" is one with this flag
// --iters          --iterations     a flag, whatever its value
// --report json    --json           a flag with one of these values ("a|b"), which stays if the new flag takes one
// --budget N       --budget Ns      a number without a unit
// --threshold F    --threshold P%   a fraction, in percent
// --json PATH      --output PATH    a word that follows; no file that exists, where the command reads files
// --baseline       BASELINE         the first argument
// --test           TEST...          an argument
struct OldSpelling {
  std::string_view command;  // as it is called now, and all commands below it; empty: any
  std::string_view was, is;
};

std::span<const OldSpelling> old_spellings();

struct NewSpelling {
  std::vector<std::string> words;   // to be parsed
  std::vector<std::string> advice;  // "--report json is now --json", each once
};

// `words` are those after the program's name. Words after "--", and values of other flags, are not changed.
NewSpelling in_new_spelling(const CommandFacts& root, std::vector<std::string> words);

}  // namespace weir::cli
