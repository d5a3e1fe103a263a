// A condition in bench.yaml: "not cuda.is_present or cpu.cores < 4". Words, numbers, strings, and, or, not,
// comparisons, parentheses; nothing is called and nothing is run. Knows no device.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace weir::package {

using Fact = std::variant<bool, double, std::string>;
using Facts = std::map<std::string, Fact, std::less<>>;
enum class FactKind : std::uint8_t { truth, number, text };  // in the order of Fact's alternatives

// A word that conditions may use, and its meaning.
struct FactWord {
  std::string name;
  FactKind kind = FactKind::truth;
  std::string meaning;
  std::vector<std::string> choices;  // allowed values of a text; empty: any
};
// All words, sorted. `weir bench` gives each a value if it has one.
std::span<const FactWord> fact_words();

class Condition {
 public:
  // Rejects syntax errors and comparisons of a number with a text (with the column), and words that are not in `known`
  // (with a suggestion).
  explicit Condition(std::string_view text, std::span<const FactWord> known = fact_words());

  // Stops when the answer is clear: "cuda.is_present and device.memory_gib < 8" does not need a device. Rejects a fact
  // that is needed but missing or of the wrong kind.
  bool holds(const Facts& facts) const;
  const std::string& text() const { return text_; }

 private:
  friend class ConditionParser;
  struct Node;
  std::string text_;
  std::shared_ptr<const Node> root_;  // shared: conditions are copied with their packages and never change
};

}  // namespace weir::package
