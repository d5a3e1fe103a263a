#include "trace/import/json_reader.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

#include "trace/import/json_blocks.h"

namespace weir {
namespace {

using json_blocks::kBlock;

bool is_blank(char c) noexcept { return static_cast<unsigned char>(c) <= ' '; }
bool is_between(char c) noexcept {
  return is_blank(c) || c == ',' || c == ':' || (c | 0x20) == '{' || (c | 0x20) == '}';
}
constexpr auto kEndsWord = [] {
  std::array<bool, 256> ends{};
  for (unsigned c = 0; c <= ' '; ++c) ends[c] = true;
  for (const char c : {',', ':', '{', '}', '[', ']', '"'}) ends[static_cast<unsigned char>(c)] = true;
  return ends;
}();
// Characters that can begin a value or a key.
bool is_begin(char c) noexcept {
  return c == '"' || c == '{' || c == '[' || c == '-' || (c >= '0' && c <= '9') || std::strchr("tfnNI", c) != nullptr;
}

}  // namespace

JsonReader::JsonReader(ByteSource& source, std::function<void()> progress, const JsonWindow& window)
    : source_(source),
      progress_(std::move(progress)),
      window_(window),
      capacity_(std::max(window.bytes, 2 * kAhead)),
      buffer_(std::make_unique_for_overwrite<char[]>(capacity_ + kBlock)),
      at_(buffer_.get()),
      end_(at_) {}

// Keeps everything from at_ on. Returns false where there was nothing more to read.
bool JsonReader::fill() {
  if (is_over_) return false;
  const auto kept = static_cast<std::size_t>(end_ - at_);
  const auto taken = static_cast<std::size_t>(at_ - buffer_.get());
  // Repeatedly moving nearly all of a full window for a few more bytes would be quadratic.
  if (capacity_ >= window_.longest_text && kept > capacity_ - capacity_ / 8) {
    is_full_ = true;
    return false;
  }
  if (kept == capacity_) {
    capacity_ = std::min(capacity_ * 2, window_.longest_text);
    auto larger = std::make_unique_for_overwrite<char[]>(capacity_ + kBlock);
    std::memcpy(larger.get(), at_, kept);
    buffer_ = std::move(larger);
  } else if (taken > 0) {
    std::memmove(buffer_.get(), at_, kept);
  }
  base_ += taken;
  at_ = buffer_.get();
  char* const begin = buffer_.get() + kept;
  char* to = begin;
  char* const limit = buffer_.get() + capacity_;
  // Fills the window completely however little the source returns per read, so that results do not depend on read
  // sizes.
  while (to < limit) {
    const std::size_t got = source_.read(to, static_cast<std::size_t>(limit - to));
    if (got == 0) {
      is_over_ = true;
      break;
    }
    to += got;
  }
  end_ = to;
  std::memset(to, 0, kBlock);  // blocks may be read past the end
  if (progress_) progress_();
  return to > begin;
}

void JsonReader::break_here(const char* problem) noexcept {
  if (problem_ == nullptr) problem_ = problem;
}

void JsonReader::cut_off() noexcept {
  if (problem_ == nullptr) is_cut_off_ = true;
  break_here("the file ends in the middle");
}

char JsonReader::peek_far() {
  if (problem_ != nullptr) return 0;
  // "key": 1 has one blank, which is found faster by a direct check.
  if (end_ - at_ > 1 && !is_blank(at_[1])) return is_blank(*at_) ? *++at_ : *at_;
  while (true) {
    while (at_ < end_) {
      const unsigned run = json_blocks::blank_run(at_);
      at_ = std::min(at_ + run, end_);
      if (run < 16 && at_ < end_) return *at_;
    }
    if (!fill()) return 0;
  }
}

// Returns the first character from `offset` after at_ that is not white space, and updates `offset`; 0 at the end.
char JsonReader::ahead(std::size_t& offset) {
  while (true) {
    const char* from = at_ + offset;
    while (from < end_) {
      const unsigned run = json_blocks::blank_run(from);
      from += run;
      if (run == 16) continue;
      if (from >= end_) break;
      offset = static_cast<std::size_t>(from - at_);
      return *from;
    }
    offset = static_cast<std::size_t>(end_ - at_);
    if (!fill()) return 0;
  }
}

// Where to continue if the closing quote is followed by what most files have there; null where a closer look is needed.
// Commas are skipped, since nothing uses them. May look at bytes past the end, which are zeros.
template <JsonReader::Ends ends>
const char* JsonReader::next_after(const char* after) {
  switch (ends) {
    case Ends::key:
      return *after == ':' ? after + 1 : nullptr;
    case Ends::in_array:
      return *after == ',' || *after == ']' ? after : nullptr;
    case Ends::in_object: {
      if (*after == '}') return after;
      if (*after != ',') return nullptr;
      const char* key = after + 1;
      for (int i = 0; i < 2 && is_blank(*key); ++i) key += is_blank(key[1]) ? json_blocks::blank_run(key) : 1U;
      return *key == '"' ? key : nullptr;
    }
    case Ends::anywhere:
      break;
  }
  return nullptr;
}

// Whether a quote before `after` can be the closing one.
bool JsonReader::can_end(Ends ends, std::size_t after) {
  const char next = ahead(after);
  if (next == 0) return true;
  switch (ends) {
    case Ends::key:
      return next == ':';
    case Ends::in_array:
      return next == ',' || next == ']';
    case Ends::in_object: {
      if (next == '}') return true;
      if (next != ',') return false;
      // "name": "f("x", 1)", "pid": what follows a comma in an object is a key
      const char key = ahead(++after);
      return key == '"' || key == '}' || key == ',' || key == 0;
    }
    case Ends::anywhere:
      break;
  }
  if (next == '}' || next == ']' || next == ':') return true;
  if (next != ',') return false;
  const char begin = ahead(++after);
  return begin == 0 || begin == '}' || begin == ']' || begin == ',' || is_begin(begin);
}

// Reads a text from the opening quote at at_, or from inside a text where `from` is 0. Consumes it, including the ':'
// after keys.
template <JsonReader::Ends ends>
std::string_view JsonReader::text(std::size_t from) {
  const std::size_t begin = from;
  // An earlier text established that none of these quotes ends one, so a text that begins among them continues after
  // them; otherwise repeated damage would be searched to its end each time.
  Unended& unended = unended_[static_cast<std::size_t>(ends)];
  const std::uint64_t began = position();
  if (began >= unended.from && began + from < unended.to) from = static_cast<std::size_t>(unended.to - began);
  std::size_t searched = from;
  while (true) {
    const char* stop = at_ + from;
    while (true) {
      if (stop >= end_) {
        from = static_cast<std::size_t>(stop - at_);
        if (!fill()) {
          unended = {began, position() + from};
          if (is_full_) break_here("text of more than 16 MiB");
          cut_off();
          return {};
        }
        stop = at_ + from;
        continue;
      }
      const unsigned run = json_blocks::text_run(stop);
      stop = std::min(stop + run, end_);
      if (run == 16 || stop == end_) continue;
      if (*stop == '"') break;
      stop += 2;
    }
    const auto quote = static_cast<std::size_t>(stop - at_);
    if (const char* const next = next_after<ends>(stop + 1); next != nullptr) {
      const std::string_view found(at_ + begin, quote - begin);
      at_ = next;
      return found;
    }
    if (can_end(ends, quote + 1)) {
      const std::string_view found(at_ + begin, quote - begin);
      std::size_t after = quote + 1;
      if (ends == Ends::key) {
        if (ahead(after) == 0) {
          cut_off();
          return {};
        }
        ++after;
        // The ':' was already in the window when ahead() found it, so nothing moved.
      }
      at_ += after;
      return found;
    }
    // This quote is content. If a line also ended before it, or an event begins there, the closing quote is probably
    // missing.
    const char* const inside = at_ + quote;
    if (std::memchr(at_ + searched, '\n', quote - searched) != nullptr ||
        (quote > 0 && inside[-1] == '{' && guard_ != nullptr && is_marked(inside - 1, guard_))) {
      unended = {began, began + searched};
      break_here("text without its closing quote");
      return {};
    }
    searched = quote;
    from = quote + 1;
  }
}

// 1.5, true, NaN, -nan(ind): up to the end of the value.
std::string_view JsonReader::word() {
  std::size_t length = 0;
  while (true) {
    const char* stop = at_ + length;
    while (stop < end_ && !kEndsWord[static_cast<unsigned char>(*stop)]) ++stop;
    length = static_cast<std::size_t>(stop - at_);
    if (stop < end_ || !fill()) break;
  }
  if (is_full_) break_here("value of more than 16 MiB");
  const std::string_view found(at_, length);
  at_ += length;
  if (at_ < end_ && *at_ == ',') ++at_;
  return found;
}

bool JsonReader::next_key(std::string_view* key) {
  // A short key after few blanks, with its colon: everything read here is in the window.
  if (problem_ == nullptr && end_ - at_ >= static_cast<std::ptrdiff_t>(kBlock)) {
    const char* const quote = at_ + (is_blank(*at_) ? json_blocks::blank_run(at_) : 0U);
    if (*quote == '"') {
      const unsigned run = json_blocks::text_run(quote + 1);
      const char* const end = quote + 1 + run;
      if (run < 16 && *end == '"' && end[1] == ':') {
        *key = {quote + 1, run};
        at_ = end + 2;
        return true;
      }
    }
  }
  return next_key_slowly(key);
}

[[gnu::noinline]] bool JsonReader::next_key_slowly(std::string_view* key) {
  while (take(',')) {
  }
  const char next = peek();
  if (next == '"') {
    *key = text<Ends::key>();
    return problem_ == nullptr;
  }
  if (next == '}') {
    ++at_;
    return false;
  }
  if (next == 0) cut_off();
  break_here("something else than a key in an object");
  return false;
}

bool JsonReader::next_element() {
  while (take(',')) {
  }
  const char next = peek();
  if (next == ']') {
    ++at_;
    return false;
  }
  if (next == 0 || next == '}' || next == ':') {
    if (next == 0) cut_off();
    break_here("array without its end");
    return false;
  }
  return problem_ == nullptr;
}

std::string_view JsonReader::scalar(In in, bool* is_text) {
  const char next = peek();
  if (is_text != nullptr) *is_text = next == '"';
  if (next == '"') return in == In::object ? text<Ends::in_object>() : text<Ends::in_array>();
  if (next == 0 || next == '{' || next == '[' || next == ':') {
    if (next == 0) cut_off();
    break_here("something else than a plain value");
    return {};
  }
  return word();
}

bool JsonReader::plain_number(int places, std::int64_t* number) {
  if (problem_ != nullptr || end_ - at_ < static_cast<std::ptrdiff_t>(kBlock)) return false;
  const char* at = at_ + (is_blank(*at_) ? 1 : 0);
  const auto digit = [&] { return static_cast<unsigned>(static_cast<unsigned char>(*at)) - '0'; };
  std::uint64_t made = 0;
  const char* const begin = at;
  // 19 digits in all fit 64 bits.
  for (const char* const limit = at + (19 - places); at < limit && digit() <= 9; ++at) made = made * 10 + digit();
  if (at == begin) return false;
  if (*at == '.') {
    const char* const fraction = ++at;
    for (; places > 0 && digit() <= 9; ++at, --places) made = made * 10 + digit();
    if (at == fraction) return false;
  }
  for (; places > 0; --places) made *= 10;
  if (!kEndsWord[static_cast<unsigned char>(*at)] || made > INT64_MAX) return false;
  *number = static_cast<std::int64_t>(made);
  at_ = at + (*at == ',' ? 1 : 0);
  return true;
}

void JsonReader::skip(In in) {
  const char next = peek();
  if (next == '{' || next == '[') {
    ++at_;
    skip_rest();
  } else {
    scalar(in);
  }
}

bool JsonReader::is_marked(const char* at, Mark mark) const {
  return mark({at, std::min(kAhead, static_cast<std::size_t>(end_ - at))});
}

void JsonReader::skip_rest() {
  if (problem_ != nullptr) return;
  Passing state;
  while (true) {
    if (end_ - at_ < static_cast<std::ptrdiff_t>(kAhead + kBlock)) fill();
    if (at_ == end_) return cut_off();
    if (!pass_block(state)) return;
  }
}

// Returns false where the value ended or the reader broke.
bool JsonReader::pass_block(Passing& state) {
  const json_blocks::Masks masks = json_blocks::masks_of(at_);
  bool is_escaped = state.is_escaped;
  const std::uint64_t quote = masks.quote & ~json_blocks::escaped_of(masks.backslash, is_escaped);
  const std::uint64_t inside = json_blocks::prefix_xor(quote) ^ (state.is_inside ? ~std::uint64_t{0} : 0);
  const std::uint64_t closing = quote & ~inside;
  // Quotes form pairs where each has a suitable neighbour. Where one has not, quotes are content and must be examined
  // one by one.
  const std::uint64_t odd = ((closing << 1 | (state.was_close ? 1U : 0U)) & ~masks.between) |
                            (quote & inside & ~(masks.between << 1 | (state.was_between ? 1U : 0U)));
  if (odd != 0) return pass_slowly(state);

  const std::uint64_t open = masks.open & ~inside;
  const std::uint64_t close = masks.close & ~inside;
  std::uint64_t before_end = ~std::uint64_t{0};
  bool has_end = false;
  if (std::popcount(close) >= state.depth) {
    for (std::uint64_t left = close; left != 0; left &= left - 1) {
      const std::uint64_t before = (left & (0 - left)) - 1;
      if (state.depth + std::popcount(open & before) - std::popcount(close & before) != 1) continue;
      before_end = before;
      has_end = true;
      break;
    }
  }
  if (guard_ != nullptr) {
    for (std::uint64_t left = masks.brace & ~inside & before_end; left != 0; left &= left - 1) {
      const char* const brace = at_ + std::countr_zero(left);
      if (!is_marked(brace, guard_)) continue;
      at_ = brace;
      break_here("value without its end");
      return false;
    }
  }
  if (has_end) {
    at_ += std::popcount(before_end) + 1;
    return false;
  }
  state.depth += std::popcount(open) - std::popcount(close);
  state.is_inside = inside >> 63 != 0;
  state.is_escaped = is_escaped;
  state.was_close = closing >> 63 != 0;
  state.was_between = masks.between >> 63 != 0;
  at_ += std::min<std::ptrdiff_t>(kBlock, end_ - at_);
  return true;
}

// The same byte by byte, until the end of the block is reached and no text is open.
bool JsonReader::pass_slowly(Passing& state) {
  const std::uint64_t behind = position() + kBlock;
  char before = state.was_close ? '"' : state.was_between ? ' ' : 'x';
  // The block before may have ended with a quote that looked like a closing one.
  if (state.is_inside || (state.was_close && !is_between(*at_))) {
    text<Ends::anywhere>(state.is_escaped ? 1 : 0);
    before = '"';
  }
  while (problem_ == nullptr && position() < behind) {
    if (at_ == end_ && !fill()) {
      cut_off();
      break;
    }
    const char c = *at_;
    if (c == '"') {
      // "a" b", where the text seemed to end after the a
      if (!is_between(before) && can_end(Ends::anywhere, 1))
        ++at_;
      else
        text<Ends::anywhere>();
      before = '"';
      continue;
    }
    if (c == '{' && guard_ != nullptr && is_marked(at_, guard_)) {
      break_here("value without its end");
      break;
    }
    ++at_;
    if (c == '{' || c == '[') ++state.depth;
    if ((c == '}' || c == ']') && --state.depth == 0) return false;
    before = c;
  }
  state.is_inside = state.is_escaped = false;
  state.was_close = before == '"';
  state.was_between = is_between(before);
  return problem_ == nullptr;
}

bool JsonReader::recover(Mark mark) {
  problem_ = nullptr;
  is_full_ = is_cut_off_ = false;
  while (true) {
    if (end_ - at_ < static_cast<std::ptrdiff_t>(kAhead)) fill();
    if (at_ == end_) return false;
    // Bytes closer than kAhead to the end of the window are examined with the next window.
    const char* const stop = is_over_ ? end_ : end_ - kAhead + 1;
    for (; at_ < stop; ++at_)
      if ((*at_ == '{' || *at_ == '"') && is_marked(at_, mark)) return true;
  }
}

}  // namespace weir
