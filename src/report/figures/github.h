// What GitHub Actions reads of a step: annotations, outputs. Knows GitHub's rules of escaping and its limits; touches
// no file and no environment.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "report/figures/judgement.h"

namespace weir {

// GitHub shows this many annotations of a kind per step, and takes this much text in a comment and in a step's summary.
inline constexpr std::size_t kMostAnnotations = 10;
inline constexpr std::size_t kMostComment = 65'536;
inline constexpr std::size_t kMostSummary = 1'048'576;

// ::error for what failed or is slower, ::warning for what is ambiguous (and one for all lone points), ::notice for
// what is faster; the worst first, and where there are more than GitHub shows the last one says how many.
std::string github_annotations(const Judged& judged);

// verdict=slower, slower=1, ... for $GITHUB_OUTPUT: our own words and numbers only.
std::string github_outputs(const Judged& judged);

// The first whole lines of a Markdown text that fit into `most` bytes, with a remark where that is not all.
std::string github_excerpt(const std::string& markdown, std::size_t most);

// The runner obeys lines that begin with "::" and anything in "##[...]", wherever they are printed: a name from a file
// must not become a command. Text that holds neither is unchanged; in JSON it still means the same.
std::string without_commands(std::string_view text, bool is_json = false);

}  // namespace weir
