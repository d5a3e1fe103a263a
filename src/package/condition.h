// A condition that users write in bench.yaml: "not cuda.is_present or cpu.cores < 4". Words, numbers, strings, and, or,
// not, comparisons, parentheses; nothing is called and nothing is run. Knows no device.
#pragma once

#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <variant>

namespace weir::package {

using Fact = std::variant<bool, double, std::string>;
using Facts = std::map<std::string, Fact, std::less<>>;

class Condition {
 public:
  // Rejects what cannot be read (with the column), and a word that is not in `known` (with a suggestion).
  Condition(std::string_view text, std::span<const std::string> known);

  // Rejects a comparison of a number with a word, and a fact that is missing.
  bool holds(const Facts& facts) const;
  const std::string& text() const { return text_; }

 private:
  struct Node;
  std::string text_;
  std::shared_ptr<const Node> root_;  // shared: conditions are copied with their packages, and never change
};

// The words that conditions may use, with what each means; sorted.
struct FactWord {
  std::string name, meaning;
};
std::span<const FactWord> fact_words();

}  // namespace weir::package
