#include "base/secrets.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <initializer_list>
#include <utility>

#include "base/plain_text.h"

namespace weir {
namespace {

constexpr std::string_view kBlanks = " \t\r\n";
constexpr std::size_t kLongestCount = 200;

bool is_name(char c) { return is_letter(c) || is_digit(c) || c == '-' || c == '.'; }
bool is_blank(char c) { return kBlanks.find(c) != std::string_view::npos; }

std::string upper(std::string_view text) {
  std::string result(text);
  for (char& c : result)
    if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
  return result;
}

bool has_any(std::string_view text, std::initializer_list<std::string_view> words) {
  return std::any_of(words.begin(), words.end(),
                     [&](std::string_view word) { return text.find(word) != std::string_view::npos; });
}

// --max-tokens 512, --passes 3, --tokens-per-batch=4k, --key-bits 128: a name that counts or measures.
bool is_countable(std::string_view name) {
  const std::string large = upper(name);
  if (has_any(large, {"PASSW", "PASSPH", "SECRET", "CREDENTIAL", "AUTH", "COOKIE", "SIGNATURE", "API", "ACCESS"}))
    return false;
  if (has_any(large, {"TOKENS", "PASSES", "KEYS"})) return true;
  for (std::size_t begin = 0; begin < large.size();) {
    const std::size_t end = std::min(large.find_first_of("-_.", begin), large.size());
    const std::string_view part = std::string_view(large).substr(begin, end - begin);
    for (const std::string_view measure : {"MAX", "MIN", "NUM", "COUNT", "LEN", "LENGTH", "SIZE", "BITS", "BYTES",
                                           "DIM", "HEADS", "PER", "LIMIT", "BUDGET", "RATE", "RATIO"})
      if (part == measure) return true;
    begin = end + 1;
  }
  return false;
}

// 512, 4k, 1e6, 0.5, and lists and ranges of them: 128,256 and 1:64:2. Short ones: a long one may be a secret.
bool is_count(std::string_view name, std::string_view value) {
  constexpr std::size_t kLongest = 9;
  if (value.empty() || value.size() > kLongestCount || !is_countable(name)) return false;
  for (std::size_t begin = 0; begin <= value.size();) {
    const std::size_t end = std::min(value.find_first_of(",:", begin), value.size());
    std::string_view number = value.substr(begin, end - begin);
    if (!number.empty() && std::string_view("kKmMgG").find(number.back()) != std::string_view::npos)
      number.remove_suffix(1);
    if (number.empty() || number.size() > kLongest || !parse_as<double>(number) || !is_digit(number.back()))
      return false;
    begin = end + 1;
  }
  return true;
}

// aws configure set aws_secret_access_key X: a name that is no flag, with its value as the next word. Only names that
// cannot mean anything else: a plain word of a command line has `key` in it often enough.
bool is_secret_word(std::string_view word) {
  const std::string large = upper(word);
  return std::all_of(word.begin(), word.end(), is_name) &&
         has_any(large, {"SECRET_", "_SECRET", "PASSWORD", "PASSPHRASE", "API_KEY", "ACCESS_KEY", "ACCESS_TOKEN",
                         "AUTH_TOKEN", "CREDENTIAL"});
}

// The beginnings of tokens that services hand out, and how much follows at least.
struct TokenShape {
  std::string_view start;
  std::size_t rest;
};
constexpr std::array<TokenShape, 16> kTokenShapes{{{"ghp_", 30},
                                                   {"gho_", 30},
                                                   {"ghs_", 30},
                                                   {"ghu_", 30},
                                                   {"github_pat_", 20},
                                                   {"glpat-", 20},
                                                   {"hf_", 30},
                                                   {"sk-", 32},
                                                   {"xoxa-", 10},
                                                   {"xoxb-", 10},
                                                   {"xoxp-", 10},
                                                   {"nvapi-", 20},
                                                   {"AKIA", 16},
                                                   {"ASIA", 16},
                                                   {"AIza", 30},
                                                   {"eyJ", 30}}};

bool is_token(std::string_view name) {
  return std::any_of(kTokenShapes.begin(), kTokenShapes.end(), [&](const TokenShape& shape) {
    return name.size() >= shape.start.size() + shape.rest && name.starts_with(shape.start);
  });
}

// Rewrites one text, which is a word of a command line, a value of a variable, or itself a command line.
class Cleaning {
 public:
  explicit Cleaning(std::string_view text) : text_(text), first_blank_(text.find_first_of(kBlanks)) {}

  std::string result() {
    while (at_ < text_.size()) {
      if (text_.substr(at_).starts_with("://"))
        take_address();
      else if (is_name(text_[at_]))
        take_name();
      else
        out_ += text_[at_++];
    }
    return std::move(out_);
  }

 private:
  char peek(std::size_t at) const { return at < text_.size() ? text_[at] : '\0'; }
  std::size_t after_blanks(std::size_t at) const {
    while (at < text_.size() && is_blank(text_[at])) ++at;
    return at;
  }

  // What a shell or JSON would take for one word: MAX_TOKENS=512 ./p, "max_tokens": 512, "n": 1
  std::string_view word_at(std::size_t begin) const {
    std::string_view word = text_.substr(begin, kLongestCount);
    word = word.substr(0, word.find_first_of(" \t\r\n\"'&;|)}]"));
    if (word.ends_with(',')) word.remove_suffix(1);
    return word;
  }

  // https://user:password@host, https://TOKEN@host. The user "git" is no secret.
  void take_address() {
    const std::size_t begin = at_ + 3;
    const std::size_t end = std::min(text_.find_first_of("/?#\"' \t\r\n", begin), text_.size());
    const std::size_t mark = text_.substr(begin, end - begin).rfind('@');
    out_ += "://";
    at_ = begin;
    if (mark == std::string_view::npos || text_.substr(begin, mark) == "git") return;
    out_ += kRedacted;
    at_ = begin + mark;
  }

  // NAME=value, NAME: value, "NAME": "value", --name value
  void take_name() {
    std::size_t end = at_;
    while (end < text_.size() && is_name(text_[end])) ++end;
    const std::string_view name = text_.substr(at_, end - at_);
    const bool is_first = at_ < first_blank_;
    at_ = end;
    if (is_token(name)) {
      out_ += kRedacted;
      return;
    }
    out_ += name;
    if (!is_secret_name(name)) return;
    std::size_t next = end;
    while (peek(next) == '\\' || peek(next) == '"' || peek(next) == '\'') ++next;
    const bool is_near = peek(next) == '=' || peek(next) == ':';
    if (!is_near) next = after_blanks(next);
    const char sign = peek(next);
    if ((sign == '=' || sign == ':') && peek(next + 1) != sign) {
      next = after_blanks(next + 1);
      // All that is left of a word is the value, blanks and all: nothing was quoted that could end it earlier.
      replace(name, next, is_first && sign == '=' ? "" : sign == '=' ? kBlanks : std::string_view("\r\n\"'"));
    } else if (name.starts_with('-') && next > end && is_blank(text_[end]) && !text_.substr(next).starts_with("--")) {
      replace(name, next, kBlanks);
    }
  }

  // Replaces the value at `begin`: a quoted one, or all up to one of the letters `ends`.
  void replace(std::string_view name, std::size_t begin, std::string_view ends) {
    std::size_t quote = begin;
    while (peek(quote) == '\\') ++quote;
    std::size_t end = std::min(ends.empty() ? text_.size() : text_.find_first_of(ends, begin), text_.size());
    std::size_t from = begin;
    if (peek(quote) == '"' || peek(quote) == '\'') {
      from = quote + 1;
      end = std::min(text_.find(peek(quote), from), text_.size());
      while (end > from && text_[end - 1] == '\\') --end;
    }
    if (from >= end || is_count(name, text_.substr(from, end - from)) || is_count(name, word_at(begin))) return;
    out_ += text_.substr(at_, from - at_);
    out_ += kRedacted;
    at_ = end;
  }

  std::string_view text_;
  std::size_t first_blank_, at_ = 0;
  std::string out_;
};

}  // namespace

bool is_secret_name(std::string_view name) {
  // Longer names are no names; the limit bounds the time that removing words takes.
  std::string large = upper(name.substr(0, 1000));
  // --tokenizer, TOKENIZERS_PARALLELISM, --author: not what they contain.
  for (const std::string_view harmless : {"TOKENIZ", "AUTHORS", "AUTHOR_", "AUTHOR-"})
    for (std::size_t at = large.find(harmless); at != std::string::npos; at = large.find(harmless, at))
      large.erase(at, harmless.size());
  // --bypass, MONKEY: as whole words only, since BYPASSWORD is none of them.
  for (const std::string_view harmless : {"BYPASS", "COMPASS", "PASSIVE", "PASSTHROUGH", "MONKEY", "KEYBOARD",
                                          "KEYFRAME", "KEYFRAMES", "KEYPOINT", "KEYPOINTS", "KEYWORD", "KEYWORDS"})
    for (std::size_t at = large.find(harmless); at != std::string::npos; at = large.find(harmless, at)) {
      const std::size_t end = at + harmless.size();
      if ((at > 0 && std::isalnum(static_cast<unsigned char>(large[at - 1])) != 0) ||
          (end < large.size() && std::isalnum(static_cast<unsigned char>(large[end])) != 0))
        at = end;
      else
        large.erase(at, harmless.size());
    }
  if (large.ends_with("AUTHOR")) large.resize(large.size() - 6);
  if (large == "PWD" || large == "OLDPWD") return false;
  return has_any(large, {"KEY", "TOKEN", "JWT", "SECRET", "PASS", "CREDENTIAL", "CREDS", "AUTH", "COOKIE", "PWD",
                         "BEARER", "SIGNATURE", "WEBHOOK", "SESSION_ID", "SESSION-ID", "SESSIONID"});
}

std::string recorded_text(std::string_view text) { return Cleaning(text).result(); }

std::string recorded_value(std::string_view name, std::string_view value) {
  if (is_secret_name(name) && !value.empty() && !is_count(name, value)) return std::string(kRedacted);
  return recorded_text(value);
}

std::vector<std::string> recorded_command(std::vector<std::string> words) {
  bool is_value = false;  // of the flag before it
  std::string name;
  for (std::string& word : words) {
    const bool was_value = std::exchange(is_value, false) && !word.starts_with("--") && !is_count(name, word);
    // A flag alone is followed by its value; one with '=' has it.
    is_value = !was_value && word.find_first_of("=: \t\n") == std::string::npos &&
               ((word.starts_with('-') && is_secret_name(word)) || is_secret_word(word));
    name = word;
    if (was_value)
      word = kRedacted;
    else
      word = recorded_text(word);
  }
  return words;
}

}  // namespace weir
