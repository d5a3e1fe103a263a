// Pull parser for JSON as it occurs in real traces, over a sliding window: every byte is examined once, and unwanted
// values are skipped 64 bytes at a time. Keeps no nesting: callers know where they are. Knows no format.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <string_view>

#include "trace/import/byte_source.h"

namespace weir {

struct JsonWindow {
  std::size_t bytes = std::size_t{256} << 10;
  std::size_t longest_text = std::size_t{16} << 20;  // the window grows up to this for one text
};

// A member of an object, and the function that reads its value.
template <class Read>
struct JsonKey {
  std::string_view name;
  Read read;
};

// Tolerates unescaped quotes in texts (a quote closes only where the text can end), control characters, invalid UTF-8,
// NaN and the like, and missing or extra commas. Input that it cannot parse makes it broken: it then stays where it is
// until recover(). Views are valid until the next call.
class JsonReader {
 public:
  // The container of a value, which decides what may follow a text.
  enum class In : std::uint8_t { object, array };
  // Whether a point to resume at begins here; sees up to kAhead bytes, of which the first is '{' or '"'.
  using Mark = bool (*)(std::string_view ahead);
  static constexpr std::size_t kAhead = 512;

  explicit JsonReader(ByteSource& source, std::function<void()> progress = {}, const JsonWindow& window = {});

  // The next character that is not white space, without consuming it; 0 at the end.
  char peek() {
    if (at_ < end_ && static_cast<unsigned char>(*at_) > ' ' && problem_ == nullptr) return *at_;
    return peek_far();
  }
  bool take(char c) {
    if (peek() != c) return false;
    ++at_;
    return true;
  }
  // In an object, after its '{' or after a value: reads the next key, undecoded, and consumes its ':'. Returns false at
  // the object's '}', which is consumed, and where the reader is broken.
  bool next_key(std::string_view* key);
  // Consumes this text if it comes next, after white space; commas in it are compared too.
  bool take_text(std::string_view text) {
    peek();
    if (problem_ != nullptr || static_cast<std::size_t>(end_ - at_) < text.size() ||
        std::memcmp(at_, text.data(), text.size()) != 0)
      return false;
    at_ += text.size();
    return true;
  }
  // The same for arrays; where it returns true, the element is still to be read.
  bool next_element();
  // A text without its quotes, undecoded; or a number or word as written, empty where there is none. Objects and arrays
  // make the reader broken.
  std::string_view scalar(In in, bool* is_text = nullptr);
  // The same for a member of an object, except that objects and arrays are skipped and yield an empty text.
  std::string_view value() {
    const char next = peek();
    if (next != '{' && next != '[') return scalar(In::object);
    skip(In::object);
    return {};
  }
  // In an array: enters the next object, skipping anything else. Returns false at the end of the array.
  bool next_object() {
    while (next_element()) {
      if (take('{')) return true;
      skip(In::array);
    }
    return false;
  }
  // Reads the next value times 10^places (0 to 3) if it is an ordinary number: digits, at most `places` of them after a
  // point, within 63 bits. Returns false for anything else, which scalar() then reads.
  bool plain_number(int places, std::int64_t* number);
  void skip(In in);
  // Reads all members of an object whose '{' was consumed: the read() with the matching key takes the value, and
  // members without one are skipped.
  template <class... Reads>
  void members(const JsonKey<Reads>&... keys) {
    std::string_view key;
    while (next_key(&key))
      if (!((key == keys.name && (keys.read(), true)) || ...)) skip(In::object);
  }
  // Skips to the end of the current object or array.
  void skip_rest();

  // An object for which this returns true is never part of another value: where one begins inside a skipped value, that
  // value is missing its end. Null: no such check.
  void set_guard(Mark guard) noexcept { guard_ = guard; }

  bool is_broken() const noexcept { return problem_ != nullptr; }
  const char* problem() const noexcept { return problem_; }
  // Whether it broke because the bytes ended.
  bool is_cut_off() const noexcept { return is_cut_off_; }
  bool is_at_end() { return peek() == 0; }
  // For errors that the caller finds.
  void break_here(const char* problem) noexcept;
  // Advances to the next place where `mark` holds, starting here. Returns false at the end.
  bool recover(Mark mark);

  std::uint64_t position() const noexcept { return base_ + static_cast<std::uint64_t>(at_ - buffer_.get()); }

 private:
  enum class Ends : std::uint8_t { key, in_object, in_array, anywhere };
  struct Passing {
    std::int64_t depth = 1;
    bool is_inside = false;   // in a text
    bool is_escaped = false;  // the next byte
    bool was_close = false;   // the byte before was a closing quote
    bool was_between = true;  // the byte before may precede a text
  };

  // Positions where a text without an end began, and where the search for its end stopped.
  struct Unended {
    std::uint64_t from = 0, to = 0;
  };

  void cut_off() noexcept;
  bool next_key_slowly(std::string_view* key);
  bool fill();
  char peek_far();
  char ahead(std::size_t& offset);
  template <Ends ends>
  static const char* next_after(const char* after);
  bool can_end(Ends ends, std::size_t after);
  template <Ends ends>
  std::string_view text(std::size_t from = 1);
  std::string_view word();
  bool pass_block(Passing& state);
  bool pass_slowly(Passing& state);
  bool is_marked(const char* at, Mark mark) const;

  ByteSource& source_;
  std::function<void()> progress_;
  JsonWindow window_;
  std::size_t capacity_;
  std::unique_ptr<char[]> buffer_;
  const char* at_;
  const char* end_;
  std::uint64_t base_ = 0;  // position of the buffer's first byte
  bool is_over_ = false;    // the source has no more
  bool is_full_ = false;    // the window cannot grow further
  const char* problem_ = nullptr;
  bool is_cut_off_ = false;
  Mark guard_ = nullptr;
  std::array<Unended, 4> unended_;  // by Ends
};

}  // namespace weir
