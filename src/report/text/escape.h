// Text with single characters replaced: what escaping for XML, HTML and Graphviz is made of.
#pragma once

#include <algorithm>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>

namespace weir {

using Replacements = std::initializer_list<std::pair<char, std::string_view>>;

inline constexpr Replacements kMarkup = {{'&', "&amp;"}, {'<', "&lt;"}, {'>', "&gt;"}, {'"', "&quot;"}};

inline std::string replaced(std::string_view text, Replacements replacements) {
  std::string out;
  for (const char c : text) {
    const auto found = std::find_if(replacements.begin(), replacements.end(),
                                    [&](const auto& replacement) { return replacement.first == c; });
    out += found == replacements.end() ? std::string_view(&c, 1) : found->second;
  }
  return out;
}

}  // namespace weir
