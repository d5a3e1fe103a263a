// Replaces single characters in text: the basis of escaping for XML, HTML and Graphviz.
#pragma once

#include <algorithm>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>

namespace weir {

inline std::string replaced(std::string_view text, std::initializer_list<std::pair<char, std::string_view>> pairs) {
  std::string out;
  for (const char c : text) {
    const auto found = std::find_if(pairs.begin(), pairs.end(), [&](const auto& pair) { return pair.first == c; });
    out += found == pairs.end() ? std::string_view(&c, 1) : found->second;
  }
  return out;
}

inline std::string markup_escaped(std::string_view text) {
  return replaced(text, {{'&', "&amp;"}, {'<', "&lt;"}, {'>', "&gt;"}, {'"', "&quot;"}});
}

}  // namespace weir
