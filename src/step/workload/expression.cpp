#include "step/workload/expression.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "base/error.h"
#include "base/options.h"

namespace weir {
namespace {

constexpr int kMaxNesting = 32;
constexpr int kMaxStack = 64;
constexpr double kLargestWhole = 0x1p53;  // above it a double cannot hold every whole number

constexpr std::string_view kFunctions[] = {"min", "max", "floor", "ceil"};

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }

// 0.1 * 30 should be 3, so rounding errors are tolerated.
std::optional<std::int64_t> as_whole(double value) {
  const double rounded = std::round(value);
  if (std::fabs(rounded) > kLargestWhole || std::fabs(value - rounded) > 1e-9 * std::max(1.0, std::fabs(value)))
    return std::nullopt;
  return static_cast<std::int64_t>(rounded);
}

// In the order of Expression::Op from `add` on.
constexpr double (*kBinary[])(double, double) = {
    [](double a, double b) { return a + b; },
    [](double a, double b) { return a - b; },
    [](double a, double b) { return a * b; },
    [](double a, double b) { return a / b; },
    // -1 % 4 is 3, so that (i - 1) % streams is a valid stream.
    [](double a, double b) { return a - std::floor(a / b) * b; },
    [](double a, double b) { return std::min(a, b); },
    [](double a, double b) { return std::max(a, b); },
    [](double a, double b) -> double { return a == b; },
    [](double a, double b) -> double { return a != b; },
    [](double a, double b) -> double { return a < b; },
    [](double a, double b) -> double { return a <= b; },
    [](double a, double b) -> double { return a > b; },
    [](double a, double b) -> double { return a >= b; },
};

}  // namespace

bool is_expression_word(std::string_view name) {
  return std::find(std::begin(kFunctions), std::end(kFunctions), name) != std::end(kFunctions);
}

bool is_identifier(std::string_view name) {
  return !name.empty() && name.size() <= 64 && is_letter(name[0]) &&
         std::all_of(name.begin(), name.end(), [](char c) { return is_letter(c) || is_digit(c); });
}

// Recursive descent, one function per level of precedence, writing postfix as it goes.
class ExpressionParser {
 public:
  ExpressionParser(Expression& target, std::span<const std::string> names)
      : target_(target), names_(names), text_(target.text_) {}

  void run() {
    comparison();
    skip_blanks();
    if (at_ != text_.size()) refuse(fmt::format("'{}' is not expected here", text_.substr(at_, 12)));
  }

 private:
  using Op = Expression::Op;

  [[noreturn]] void refuse(const std::string& why) const {
    reject(fmt::format("'{}': {}", text_.substr(0, 60), why),
           "Numbers, names, + - * / % ( ), comparisons, min, max, floor and ceil are understood.");
  }

  // Tracks the stack's maximum depth, so that evaluation can use a fixed one.
  void emit(Op op, int effect, double number = 0, std::uint32_t variable = 0) {
    target_.program_.push_back({op, variable, number});
    height_ += effect;
    if (height_ > kMaxStack) refuse("it is nested too deeply");
  }

  void skip_blanks() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\t' || text_[at_] == '\n')) ++at_;
  }
  bool accept(std::string_view token) {
    skip_blanks();
    if (!text_.substr(at_).starts_with(token)) return false;
    at_ += token.size();
    return true;
  }
  void expect(std::string_view token) {
    if (accept(token)) return;
    if (at_ == text_.size()) refuse(fmt::format("it ends where '{}' is needed", token));
    refuse(fmt::format("'{}' is needed before '{}'", token, text_.substr(at_, 12)));
  }

  void comparison() {
    sum();
    // Longer tokens first, because < is a prefix of <=.
    constexpr std::pair<std::string_view, Op> kTokens[] = {{"==", Op::equal},         {"!=", Op::unequal},
                                                           {"<=", Op::less_equal},    {"<", Op::less},
                                                           {">=", Op::greater_equal}, {">", Op::greater}};
    for (const auto& [token, op] : kTokens) {
      if (!accept(token)) continue;
      sum();
      emit(op, -1);
      return;
    }
  }
  void sum() {
    product();
    while (true) {
      const bool is_plus = accept("+");
      if (!is_plus && !accept("-")) return;
      product();
      emit(is_plus ? Op::add : Op::subtract, -1);
    }
  }
  void product() {
    factor();
    while (true) {
      const Op op = accept("*") ? Op::multiply : accept("/") ? Op::divide : accept("%") ? Op::modulo : Op::number;
      if (op == Op::number) return;
      factor();
      emit(op, -1);
    }
  }
  void factor() {
    if (++nesting_ > kMaxNesting) refuse("it is nested too deeply");
    skip_blanks();
    if (at_ == text_.size()) refuse(at_ == 0 ? "it is empty" : "it ends too early");
    if (accept("-")) {
      factor();
      emit(Op::negate, 0);
    } else if (accept("(")) {
      comparison();
      expect(")");
    } else if (is_letter(text_[at_])) {
      word();
    } else {
      literal();
    }
    --nesting_;
  }
  void literal() {
    double number = 0;
    const auto [end, status] = std::from_chars(text_.data() + at_, text_.data() + text_.size(), number);
    if (status == std::errc::result_out_of_range) refuse("a number is too large");
    if (status != std::errc()) refuse(fmt::format("'{}' is not expected here", text_.substr(at_, 12)));
    at_ = static_cast<std::size_t>(end - text_.data());
    if (at_ < text_.size() && is_letter(text_[at_]))
      refuse(fmt::format("'{}' after a number: write * between them", text_.substr(at_, 12)));
    emit(Op::number, 1, number);
  }
  void word() {
    const std::size_t begin = at_;
    while (at_ < text_.size() && (is_letter(text_[at_]) || is_digit(text_[at_]))) ++at_;
    const std::string_view name = text_.substr(begin, at_ - begin);
    if (accept("(")) return call(name);
    const auto found = std::find(names_.begin(), names_.end(), name);
    if (found == names_.end()) {
      std::vector<std::string> known;
      for (const std::string& each : names_)
        if (!each.empty()) known.push_back(each);
      reject(fmt::format("'{}': there is no '{}' here", text_.substr(0, 60), name.substr(0, 40)),
             known.empty() ? "Only numbers are known here." : suggestion(name, known));
    }
    emit(Op::variable, 1, 0, static_cast<std::uint32_t>(found - names_.begin()));
  }
  void call(std::string_view name) {
    if (!is_expression_word(name)) refuse(fmt::format("there is no function '{}'", name));
    comparison();
    if (name == "floor" || name == "ceil") {
      emit(name == "floor" ? Op::floor : Op::ceil, 0);
    } else {
      expect(",");
      do {
        comparison();
        emit(name == "min" ? Op::min : Op::max, -1);
      } while (accept(","));
    }
    expect(")");
  }

  Expression& target_;
  std::span<const std::string> names_;
  std::string_view text_;
  std::size_t at_ = 0;
  int height_ = 0;
  int nesting_ = 0;
};

Expression::Expression(std::string_view text, std::span<const std::string> names) {
  if (text.size() > kMaxExpressionLength)
    reject(fmt::format("an expression of {} characters", text.size()),
           fmt::format("{} at most.", kMaxExpressionLength));
  text_ = text;
  ExpressionParser(*this, names).run();
}

const char* Expression::evaluate(std::span<const double> values, double& result) const noexcept {
  double stack[kMaxStack + 1];
  std::size_t top = 0;
  for (const Instruction& instruction : program_) {
    if (instruction.op == Op::number || instruction.op == Op::variable) {
      stack[top++] = instruction.op == Op::number ? instruction.number : values[instruction.variable];
      continue;
    }
    double& last = stack[top - 1];
    if (instruction.op == Op::negate || instruction.op == Op::floor || instruction.op == Op::ceil) {
      last = instruction.op == Op::negate ? -last : instruction.op == Op::floor ? std::floor(last) : std::ceil(last);
      continue;
    }
    const double right = stack[--top];
    double& left = stack[top - 1];
    if (instruction.op == Op::divide && right == 0) return "it divides by 0";
    if (instruction.op == Op::modulo && !(right > 0)) return "the right side of % must be above 0";
    left = kBinary[static_cast<std::size_t>(instruction.op) - static_cast<std::size_t>(Op::add)](left, right);
    if (!std::isfinite(left)) return "the result is too large";
  }
  result = stack[0];
  return nullptr;
}

double Expression::value(std::span<const double> values) const {
  double result = 0;
  if (const char* const why = evaluate(values, result)) reject(fmt::format("'{}': {}", text_, why));
  return result;
}

std::int64_t Expression::whole(std::span<const double> values) const {
  const double result = value(values);
  if (const auto rounded = as_whole(result)) return *rounded;
  if (std::fabs(result) > kLargestWhole) reject(fmt::format("'{}' is {:.6g}, which is too large", text_, result));
  reject(fmt::format("'{}' is {:.10g}, and a whole number is needed", text_, result));
}

std::optional<std::int64_t> Expression::try_whole(std::span<const double> values) const noexcept {
  double result = 0;
  if (evaluate(values, result) != nullptr) return std::nullopt;
  return as_whole(result);
}

bool Expression::uses(std::size_t variable) const {
  return std::any_of(program_.begin(), program_.end(), [variable](const Instruction& instruction) {
    return instruction.op == Op::variable && instruction.variable == variable;
  });
}

}  // namespace weir
