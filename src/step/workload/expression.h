// Arithmetic that users write in files: "2 * size / streams". Compiled once, evaluated often. Knows no file format.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace weir {

// + - * / % ( ), comparisons (1 or 0), min(a, b, ...), max(a, b, ...), floor(a), ceil(a), numbers and variables.
// Division is exact: 7 / 2 is 3.5, which is an error only where a whole number is required.
class Expression {
 public:
  // `names[i]` is variable i. Rejects invalid text, and unknown names with a suggestion.
  Expression(std::string_view text, std::span<const std::string> names);

  // `values` has one entry per name. Rejects division by zero and numbers beyond a double's range.
  double value(std::span<const double> values) const;
  // Rejects a value that is not whole (up to rounding), or beyond +-2^53.
  std::int64_t whole(std::span<const double> values) const;
  // Empty if whole() would reject the value.
  std::optional<std::int64_t> try_whole(std::span<const double> values) const noexcept;

  bool uses(std::size_t variable) const;
  const std::string& text() const { return text_; }

 private:
  enum class Op : std::uint8_t {
    number,
    variable,
    negate,
    floor,
    ceil,
    add,
    subtract,
    multiply,
    divide,
    modulo,
    min,
    max,
    equal,
    unequal,
    less,
    less_equal,
    greater,
    greater_equal,
  };
  struct Instruction {
    Op op = Op::number;
    std::uint32_t variable = 0;
    double number = 0;
  };
  friend class ExpressionParser;
  const char* evaluate(std::span<const double> values, double& result) const noexcept;

  std::string text_;
  std::vector<Instruction> program_;  // postfix
};

inline constexpr std::size_t kMaxExpressionLength = 400;

// Reserved words of expressions, which no variable may be named.
bool is_expression_word(std::string_view name);
// A letter or underscore, then letters, digits and underscores; at most 64.
bool is_identifier(std::string_view name);

}  // namespace weir
