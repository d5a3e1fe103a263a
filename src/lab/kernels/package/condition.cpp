#include "lab/kernels/package/condition.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>

#include "base/error.h"
#include "base/options.h"
#include "base/plain_text.h"
#include "base/yaml.h"
#include "lab/kernels/package/text.h"

namespace weir::package {
namespace {

constexpr std::size_t kLongestCondition = 400;
constexpr int kMaxNesting = 32;
constexpr const char* kUnderstood =
    "Understood are words, numbers, 'texts', true, false, and, or, not, == != < <= > >= and ( ).";

bool is_in_word(char c) { return is_letter(c) || is_digit(c) || c == '.'; }

std::string_view name_of(FactKind kind) {
  constexpr std::string_view kNames[] = {"true or false", "a number", "a text"};
  return kNames[static_cast<int>(kind)];
}

// What conditions of Python benchmarks usually ask, and the words here that say the same. PyTorch for ROCm calls its
// GPUs cuda too.
struct ForeignQuestion {
  std::string_view text;
  std::vector<std::string> words;  // one of them holds
};
const std::vector<ForeignQuestion>& foreign_questions() {
  static const std::vector<ForeignQuestion> kQuestions = {
      {"torch.cuda.is_available()", {"cuda.is_present", "hip.is_present"}},
      {"torch.cuda.is_bf16_supported()", {"device.has_bf16"}},
      {"torch.version.cuda", {"cuda.is_present"}},
      {"torch.version.hip", {"hip.is_present"}},
      {"cupy.is_available()", {"cuda.is_present", "hip.is_present"}},
      {"cupy.cuda.is_available()", {"cuda.is_present", "hip.is_present"}},
      {"numba.cuda.is_available()", {"cuda.is_present"}},
  };
  return kQuestions;
}

// The word here that is closest to another question of such a condition: torch.cuda.device_count().
std::string foreign_word(std::string_view word) {
  constexpr std::pair<std::string_view, std::string_view> kParts[] = {
      {"hip", "hip"}, {"rocm", "hip"}, {"cuda", "cuda"}, {"gpu", "cuda"}, {"opencl", "opencl"}, {"cl", "opencl"}};
  for (std::size_t begin = 0; begin <= word.size();) {
    const std::size_t end = std::min(word.find('.', begin), word.size());
    for (const auto& [part, backend] : kParts)
      if (word.substr(begin, end - begin) == part) return fmt::format("{}.is_present", backend);
    begin = end + 1;
  }
  return {};
}

const std::vector<FactWord>& words() {
  using enum FactKind;
  static const std::vector<FactWord> kWords = {
      {"backend", text, "that the case is for", {"cpu", "cuda", "hip", "opencl", "pytorch", "jax"}},
      {"cpu.arch", text, "the processor's architecture as `uname -m` has it: x86_64, aarch64", {}},
      {"cpu.cores", number, "logical cores that this process may use", {}},
      {"cpu.model", text, "the processor's name", {}},
      {"cuda.is_present", truth, "a CUDA device can be used", {}},
      {"device.has_bf16", truth, "the device of the backend can compute in bf16", {}},
      {"device.has_fp16", truth, "... in fp16", {}},
      {"device.has_fp64", truth, "... in fp64", {}},
      {"device.memory_gib", number, "memory of the device of the backend; on the CPU, that of the machine", {}},
      {"device.model", text, "name of the device of the backend: NVIDIA H200", {}},
      {"device.multiprocessors", number, "multiprocessors or compute units of the device; on the CPU, its cores", {}},
      {"hip.is_present", truth, "a HIP device can be used", {}},
      {"jax.is_present", truth, "python3 has JAX; asked only where a package could use it", {}},
      {"memory_gib", number, "memory of the machine", {}},
      {"opencl.is_present", truth, "an OpenCL device can be used", {}},
      {"os", text, "the operating system: linux", {}},
      {"precision", text, "that the case is for", {"fp64", "fp32", "fp16", "bf16", "fp8_e4m3", "fp8_e5m2"}},
      {"pytorch.is_present", truth, "python3 has PyTorch; asked only where a package could use it", {}},
  };
  return kWords;
}

}  // namespace

std::span<const FactWord> fact_words() { return words(); }

struct Condition::Node {
  enum class Op : std::uint8_t {
    literal,
    word,
    negate,
    both,
    either,
    equal,
    unequal,
    less,
    less_equal,
    more,
    more_equal
  };
  Op op = Op::literal;
  FactKind kind = FactKind::truth;  // of the value
  Fact literal;
  std::string word;
  std::vector<std::string> choices;
  std::size_t at = 0;          // where it begins in the text
  std::vector<Node> operands;  // of and, or: any number in a row

  Fact value(const Facts& facts, const std::string& text) const;
};

// Recursive descent, one function per level of precedence: or, and, not, comparison, value. As in Python, "not a == b"
// is "not (a == b)".
class ConditionParser {
 public:
  using Node = Condition::Node;
  using Op = Node::Op;

  ConditionParser(std::string_view text, std::span<const FactWord> known) : text_(text), known_(known) {}

  Node run() {
    Node node = either();
    skip_blanks();
    if (at_ != text_.size()) refuse_rest();
    return truth(std::move(node));
  }

 private:
  [[noreturn]] void refuse_at(std::size_t at, const std::string& why, const std::string& hint) const {
    reject(fmt::format("column {} of \"{}\": {}", at + 1, shown(text_), why), hint);
  }
  [[noreturn]] void refuse(const std::string& why) const { refuse_at(at_, why, kUnderstood); }

  // Suggests the word here for operators of other languages.
  [[noreturn]] void refuse_rest() const {
    constexpr std::pair<std::string_view, std::string_view> kOurs[] = {{"&&", "and"}, {"&", "and"}, {"||", "or"},
                                                                       {"|", "or"},   {"!", "not"}, {"=", "=="}};
    const std::string_view rest = text_.substr(at_);
    if (rest.starts_with("(")) refuse("functions cannot be called here");
    for (const auto& [theirs, ours] : kOurs)
      if (rest.starts_with(theirs))
        refuse_at(at_, fmt::format("'{}' is not understood", theirs), fmt::format("Write '{}'.", ours));
    refuse(fmt::format("'{}' is not expected here", shown(rest.substr(0, 12))));
  }

  void skip_blanks() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\t' || text_[at_] == '\n')) ++at_;
  }
  bool accept(std::string_view token) {
    skip_blanks();
    if (!text_.substr(at_).starts_with(token)) return false;
    // "order" does not begin with the operator "or".
    const std::size_t end = at_ + token.size();
    if (is_letter(token[0]) && end < text_.size() && is_in_word(text_[end])) return false;
    at_ = end;
    return true;
  }
  void enter() {
    if (++nesting_ > kMaxNesting) refuse(fmt::format("nested more than {} levels deep", kMaxNesting));
  }

  Node truth(Node node) const {
    if (node.kind != FactKind::truth)
      refuse_at(node.at, fmt::format("{} is neither true nor false", name_of(node.kind)),
                node.kind == FactKind::number ? "Compare it: cpu.cores < 4." : "Compare it: backend == 'cuda'.");
    return node;
  }
  Node row(std::string_view word, Op op, Node (ConditionParser::*operand)()) {
    Node first = (this->*operand)();
    if (!accept(word)) return first;
    Node all{.op = op, .kind = FactKind::truth, .at = first.at};
    all.operands.push_back(truth(std::move(first)));
    do all.operands.push_back(truth((this->*operand)()));
    while (accept(word));
    return all;
  }
  Node either() { return row("or", Op::either, &ConditionParser::both); }
  Node both() { return row("and", Op::both, &ConditionParser::negation); }
  Node negation() {
    skip_blanks();
    const std::size_t begin = at_;
    if (!accept("not")) return comparison();
    enter();
    Node node{.op = Op::negate, .kind = FactKind::truth, .at = begin};
    node.operands.push_back(truth(negation()));
    --nesting_;
    return node;
  }

  Node comparison() {
    // Longer tokens first: < is a prefix of <=.
    constexpr std::pair<std::string_view, Op> kTokens[] = {{"==", Op::equal},      {"!=", Op::unequal},
                                                           {"<=", Op::less_equal}, {"<", Op::less},
                                                           {">=", Op::more_equal}, {">", Op::more}};
    const auto token = [&]() -> const std::pair<std::string_view, Op>* {
      for (const auto& each : kTokens)
        if (accept(each.first)) return &each;
      return nullptr;
    };
    Node left = value();
    const auto* const found = token();
    if (found == nullptr) return left;
    Node node{.op = found->second, .kind = FactKind::truth, .at = left.at};
    node.operands.push_back(std::move(left));
    node.operands.push_back(value());
    check(node, found->first);
    if (token() != nullptr) refuse_at(node.at, "comparisons do not chain", "Write 'a < b and b < c'.");
    return node;
  }
  void check(const Node& node, std::string_view token) const {
    const Node &left = node.operands[0], &right = node.operands[1];
    if (left.kind != right.kind)
      refuse_at(node.at, fmt::format("{} is compared with {}", name_of(left.kind), name_of(right.kind)), "");
    if (left.kind != FactKind::number && node.op != Op::equal && node.op != Op::unequal)
      refuse_at(node.at, fmt::format("'{}' is for numbers", token), "Use == or !=.");
    check_choice(left, right);
    check_choice(right, left);
  }
  // backend == 'gpu' would never be true: the condition would have no effect.
  void check_choice(const Node& word, const Node& literal) const {
    if (word.choices.empty() || literal.op != Op::literal) return;
    const std::string& wanted = std::get<std::string>(literal.literal);
    if (std::find(word.choices.begin(), word.choices.end(), wanted) != word.choices.end()) return;
    refuse_at(literal.at, fmt::format("{} is never '{}'", word.word, shown(wanted)),
              fmt::format("It is one of {}.", fmt::join(word.choices, ", ")));
  }

  Node value() {
    skip_blanks();
    if (at_ == text_.size()) refuse(at_ == 0 ? "it is empty" : "it ends too early");
    const std::size_t begin = at_;
    if (accept("(")) {
      enter();
      Node node = either();
      if (!accept(")")) {
        if (at_ == text_.size()) refuse_at(begin, "this ( is never closed", kUnderstood);
        refuse_rest();
      }
      --nesting_;
      return node;
    }
    if (std::optional<Node> question = foreign_question()) return *std::move(question);
    Node node = is_letter(text_[at_]) ? word() : text_[at_] == '\'' || text_[at_] == '"' ? quoted() : number();
    node.at = begin;
    return node;
  }
  Node quoted() {
    const char quote = text_[at_++];
    const std::size_t end = text_.find(quote, at_);
    if (end == std::string_view::npos) refuse_at(at_ - 1, "this text is never closed", kUnderstood);
    Node node{.kind = FactKind::text, .literal = std::string(text_.substr(at_, end - at_))};
    at_ = end + 1;
    return node;
  }
  Node number() {
    double value = 0;
    const auto [end, status] = std::from_chars(text_.data() + at_, text_.data() + text_.size(), value);
    if (status == std::errc::result_out_of_range) refuse("a number that is too large or too small");
    // from_chars also reads "inf" and "-nan"; only those with a sign get here.
    if (status != std::errc() || !std::isfinite(value)) refuse_rest();
    at_ = static_cast<std::size_t>(end - text_.data());
    if (at_ < text_.size() && is_in_word(text_[at_]))
      refuse(fmt::format("'{}' after a number", shown(text_.substr(at_, 12))));
    return {.kind = FactKind::number, .literal = value};
  }
  // torch.cuda.is_available(), torch.version.hip is None
  std::optional<Node> foreign_question() {
    for (const ForeignQuestion& question : foreign_questions()) {
      const std::size_t begin = at_;
      const bool are_known = std::all_of(question.words.begin(), question.words.end(), [&](const std::string& name) {
        return std::any_of(known_.begin(), known_.end(), [&](const FactWord& each) { return each.name == name; });
      });
      if (!are_known || !accept(question.text)) continue;
      Node either{.op = Op::either, .kind = FactKind::truth, .at = begin};
      for (const std::string& name : question.words)
        either.operands.push_back({.op = Op::word, .kind = FactKind::truth, .word = name, .at = begin});
      if (!accept("is")) return either;
      const bool is_negated = !accept("not");
      if (!accept("None")) refuse("None is expected after 'is'");
      if (!is_negated) return either;
      Node none{.op = Op::negate, .kind = FactKind::truth, .at = begin};
      none.operands.push_back(std::move(either));
      return none;
    }
    return std::nullopt;
  }
  Node word() {
    const std::size_t begin = at_;
    while (at_ < text_.size() && is_in_word(text_[at_])) ++at_;
    const std::string_view name = text_.substr(begin, at_ - begin);
    if (name == "true" || name == "True" || name == "false" || name == "False")
      return {.literal = name == "true" || name == "True"};
    const auto found = std::find_if(known_.begin(), known_.end(), [&](const auto& each) { return each.name == name; });
    const bool is_call = accept("(");
    if (found == known_.end()) refuse_word(begin, name, is_call);
    if (is_call)
      refuse_at(begin, "functions cannot be called here", fmt::format("Write '{}' without parentheses.", found->name));
    return {.op = Op::word, .kind = found->kind, .word = found->name, .choices = found->choices};
  }
  [[noreturn]] void refuse_word(std::size_t begin, std::string_view name, bool is_call) const {
    std::vector<std::string> names;
    for (const FactWord& each : known_) names.push_back(each.name);
    const std::string ours = foreign_word(name);
    const bool has_ours = std::find(names.begin(), names.end(), ours) != names.end();
    // A single word is often a text without its quotes: backend == cuda.
    refuse_at(begin,
              is_call ? fmt::format("unknown word '{}', and functions cannot be called here", shown(name))
                      : fmt::format("unknown word '{}'", shown(name)),
              has_ours ? fmt::format("Did you mean '{}'? Texts need quotes: 'cuda'.", ours)
                       : fmt::format("{} Texts need quotes: 'cuda'.", suggestion(name, names)));
  }

  std::string_view text_;
  std::span<const FactWord> known_;
  std::size_t at_ = 0;
  int nesting_ = 0;
};

Condition::Condition(std::string_view text, std::span<const FactWord> known) : text_(text) {
  if (text.size() > kLongestCondition)
    reject(fmt::format("a condition of {} characters", text.size()), fmt::format("{} at most.", kLongestCondition));
  root_ = std::make_shared<const Node>(ConditionParser(text_, known).run());
}

Fact Condition::Node::value(const Facts& facts, const std::string& text) const {
  const auto truth_of = [&](const Node& node) { return std::get<bool>(node.value(facts, text)); };
  switch (op) {
    case Op::literal:
      return literal;
    case Op::word: {
      const auto found = facts.find(word);
      if (found == facts.end()) reject(fmt::format("\"{}\": {} is not known here", shown(text), word));
      if (found->second.index() != static_cast<std::size_t>(kind))
        reject(fmt::format("\"{}\": {} must be {}", shown(text), word, name_of(kind)));
      return found->second;
    }
    case Op::negate:
      return !truth_of(operands[0]);
    case Op::both:
      return std::all_of(operands.begin(), operands.end(), truth_of);
    case Op::either:
      return std::any_of(operands.begin(), operands.end(), truth_of);
    default:
      break;
  }
  const Fact left = operands[0].value(facts, text), right = operands[1].value(facts, text);
  switch (op) {
    case Op::equal:
      return left == right;
    case Op::unequal:
      return left != right;
    case Op::less:
      return left < right;
    case Op::less_equal:
      return left <= right;
    case Op::more:
      return left > right;
    default:
      return left >= right;
  }
}

bool Condition::holds(const Facts& facts) const { return std::get<bool>(root_->value(facts, text_)); }

}  // namespace weir::package
