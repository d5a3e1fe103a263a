#include "amd/log/log_scan.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#if defined(__aarch64__)
#include <arm_neon.h>
#elif defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace weir::amd {
namespace {

constexpr std::size_t kMaxNames = 2048, kLongestName = 128;
constexpr int kRecentBits = 8;
constexpr std::size_t kStretch = 16 << 10;

std::uint64_t word(const char* at) {
  std::uint64_t value;
  std::memcpy(&value, at, sizeof value);
  if constexpr (std::endian::native == std::endian::big) value = __builtin_bswap64(value);
  return value;
}

// Sets bit i if text[i] == '\n'. Reads all 64 bytes.
inline std::uint64_t newline_mask(const char* text) {
#if defined(__aarch64__)
  const uint8x16_t newline = vdupq_n_u8('\n');
  const uint8x16_t bits = {1, 2, 4, 8, 16, 32, 64, 128, 1, 2, 4, 8, 16, 32, 64, 128};
  const auto at = [&](int offset) {
    return vandq_u8(vceqq_u8(vld1q_u8(reinterpret_cast<const std::uint8_t*>(text) + offset), newline), bits);
  };
  // Adds neighbors until each byte holds the bits of eight.
  const uint8x16_t low = vpaddq_u8(at(0), at(16)), high = vpaddq_u8(at(32), at(48));
  const uint8x16_t sum = vpaddq_u8(low, high);
  return vgetq_lane_u64(vreinterpretq_u64_u8(vpaddq_u8(sum, sum)), 0);
#elif defined(__SSE2__)
  const __m128i newline = _mm_set1_epi8('\n');
  const auto at = [&](int offset) {
    const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(text + offset));
    return static_cast<std::uint64_t>(static_cast<unsigned>(_mm_movemask_epi8(_mm_cmpeq_epi8(bytes, newline))));
  };
  return at(0) | at(16) << 16 | at(32) << 32 | at(48) << 48;
#else
  std::uint64_t mask = 0;
  for (int i = 0; i < 64; ++i) mask |= static_cast<std::uint64_t>(text[i] == '\n') << i;
  return mask;
#endif
}

// Writes the offsets of line ends from `text`, and returns their number. May write one offset more than needed.
std::size_t find_ends(const char* text, std::size_t size, std::uint16_t* ends) {
  std::size_t count = 0;
  const auto take = [&](std::size_t at, std::uint64_t mask) {
    // With its last bit set, a mask is never 0; testing for 0 would cost the branch that this code avoids. Counting
    // bits would go through the vector unit on arm64 and wait for it.
    constexpr std::uint64_t kLast = std::uint64_t{1} << 63;
    ends[count] = static_cast<std::uint16_t>(at + static_cast<std::size_t>(std::countr_zero(mask | kLast)));
    count += mask != 0 ? 1 : 0;
    mask &= mask - 1;
    if (mask == 0) [[likely]]
      return;
    for (; mask != 0; mask &= mask - 1)
      ends[count++] = static_cast<std::uint16_t>(at + static_cast<std::size_t>(std::countr_zero(mask)));
  };
  std::size_t at = 0;
  for (; at + 64 <= size; at += 64) take(at, newline_mask(text + at));
  if (at < size) take(at, newline_mask(text + at) & ((std::uint64_t{1} << (size - at)) - 1));
  return count;
}

// Parses eight decimal digits, of which the first `skipped` count as 0. False if the others are not all digits.
bool eight_digits(const char* at, std::uint32_t skipped, std::uint64_t& value) {
  std::uint64_t digits = word(at) ^ 0x3030303030303030;
  digits &= ~std::uint64_t{0} << (8 * skipped);
  if (((digits + 0x7676767676767676) | digits) & 0x8080808080808080) return false;
  digits = digits * 10 + (digits >> 8);
  value = (((digits & 0x000000FF000000FF) * 0x000F424000000064) +
           (((digits >> 16) & 0x000000FF000000FF) * 0x0000271000000001)) >>
          32;
  return true;
}

// Compares at least eight bytes, word by word; the last two words may overlap.
bool same(const char* a, const char* b, std::size_t size) {
  std::uint64_t differs = word(a + size - 8) ^ word(b + size - 8);
  for (std::size_t i = 0; i + 8 < size; i += 8) differs |= word(a + i) ^ word(b + i);
  return differs == 0;
}

// Possible kinds of a message by its first character; 0: none of interest.
enum Class : std::uint8_t { none, call, other };

constexpr std::array<std::uint8_t, 256> classes() {
  std::array<std::uint8_t, 256> table{};
  table['h'] = table['_'] = call;
  for (const char c : {'S', 'H', 'C', 'G', 'N', 'n', 'c', 'a', 'r', 'D', 'I'})
    table[static_cast<unsigned char>(c)] = other;
  return table;
}
constexpr std::array<std::uint8_t, 256> kClasses = classes();

// Few lines get here, and most unwanted ones already differ in their first letter.
constexpr std::pair<std::string_view, LineKind> kStarts[] = {
    {"SWq=", LineKind::packet},
    {"HWq=", LineKind::packet},
    {"Command (", LineKind::command},
    {"ShaderName :", LineKind::kernel},
    {"Graph shader name :", LineKind::kernel},
    {"Selected queue refCount", LineKind::shared},
    {"acquireQueue refCount", LineKind::shared},
    {"releaseQueue refCount", LineKind::shared},
    {"HSA Async Copy", LineKind::copy},
    {"HSA Copy", LineKind::copy},
    {"HIP Version:", LineKind::version},
    {"Created SWq=", LineKind::created},
    {"created hardware queue", LineKind::created},
    {"Deleting hardware queue", LineKind::deleted},
    {"Callback: Queue", LineKind::error},
    {"Number of allocated hardware queues", LineKind::asked},
    {"number of allocated hardware queues", LineKind::asked},
    {"Initalizing runtime stack", LineKind::runtime},  // as ROCm 7 writes it
    {"Initializing runtime stack", LineKind::runtime},
    {"Initializing HSA stack", LineKind::runtime},
};
bool classify(std::string_view message, LineKind& kind) {
  for (const auto& [start, of] : kStarts)
    if (start.front() == message.front() && message.starts_with(start)) {
      kind = of;
      return true;
    }
  return false;
}

// Calls that mention a stream, change one, or name kernels. The order of other calls does not matter.
bool is_ordered(std::string_view name) {
  for (const std::string_view part : {"Stream", "Launch", "Graph", "Async", "EventRecord"})
    if (name.find(part) != std::string_view::npos) return true;
  return false;
}

}  // namespace

void ScannedBlock::clear() {
  found.clear();
  calls.clear();
  auto kept_found = std::move(found);
  auto kept_calls = std::move(calls);
  *this = {};
  found = std::move(kept_found);
  calls = std::move(kept_calls);
}

LineScanner::LineScanner(bool wants_calls)
    : wants_calls_(wants_calls), ends_(kStretch + 2), recent_(1 << kRecentBits) {}

[[gnu::always_inline]] inline bool LineScanner::read_fast(Layout& layout, const char* line, std::size_t size,
                                                          std::uint64_t& time_us) {
  if (size <= layout.message_at || layout.message_at == 0 || size > kLongestLine) return false;
  // One test checks everything that must be where it was.
  std::uint32_t us, first;
  std::uint16_t bracket;
  std::memcpy(&us, line + layout.us_at, 4);
  std::memcpy(&first, line, 4);
  std::memcpy(&bracket, line + layout.message_at - 2, 2);
  const std::uint32_t level = static_cast<std::uint32_t>(static_cast<unsigned char>(line[1])) - '0';
  const bool fits = ((us ^ layout.us) | ((first ^ layout.first) & layout.first_mask) |
                     static_cast<std::uint32_t>((bracket ^ layout.bracket) & layout.bracket_mask) |
                     static_cast<std::uint32_t>(line[layout.us_at + 4] ^ layout.mark)) == 0;
  if (!fits || level > 9) return false;
  // Most times differ from the previous one only in the last three digits.
  const char* const end = line + layout.digits_at + layout.digits;
  const std::uint64_t high = word(end - 11), highest = word(line + layout.digits_at - 1);
  if ((high ^ layout.last_high) | (highest ^ layout.last_highest)) {
    if (line[layout.digits_at - 1] != ' ') return false;
    std::uint64_t low, upper;
    if (!eight_digits(end - 8, 0, low) || !eight_digits(end - 16, 16 - layout.digits, upper)) return false;
    time_us = upper * 100'000'000 + low;
    layout.last_high = high;
    layout.last_highest = highest;
    layout.base_us = time_us - time_us % 1000;
    return true;
  }
  const auto digit = [&](int at) { return static_cast<std::uint32_t>(static_cast<unsigned char>(end[at])) - '0'; };
  const std::uint32_t a = digit(-3), b = digit(-2), c = digit(-1);
  if (a > 9 || b > 9 || c > 9) return false;
  time_us = layout.base_us + a * 100 + b * 10 + c;
  return true;
}

// Most lines end here, so any work that only wanted lines need comes later.
[[gnu::always_inline]] inline void LineScanner::take_record(const Record& record, ScannedBlock& out) {
  ++out.records;
  out.without_pid += record.has_process ? 0 : 1;
  const int level = record.line[1] - '0';
  out.highest_level = std::max(out.highest_level, level);
  if (record.time_us < out.last_us || out.first_us == FoundLine::kNoTimeUs) [[unlikely]]
    turn_back(record, out);
  else if (record.time_us != FoundLine::kNoTimeUs)
    out.last_us = record.time_us;
  if (level <= 2) [[unlikely]] {
    add(record, LineKind::error, record.message_at, out);
    return;
  }
  const char* message = record.line + record.message_at;
  const char* const end = record.line + record.size;
  // Color codes and blanks: "ESC[32m hipSetDevice ( 0 ) ESC[0m". The usual color code is skipped in one step.
  while (message < end && (*message == ' ' || *message == '\x1b')) {
    if (*message == ' ') {
      ++message;
    } else if (std::memcmp(message, "\x1b[32m ", 6) == 0) {
      message += 6;
    } else {
      while (message < end && *message != 'm') ++message;
      if (message < end) ++message;
    }
  }
  if (message >= end) return;
  const auto message_at = static_cast<std::uint32_t>(message - record.line);
  const auto size = static_cast<std::size_t>(end - message);
  const std::uint8_t of = kClasses[static_cast<unsigned char>(*message)];
  LineKind kind{};
  if (of == call) {
    const Call found = take_call(message, size, out);
    if (found != Call::none) add(record, found == Call::begun ? LineKind::call : LineKind::returned, message_at, out);
  } else if (of == other && classify({message, size}, kind)) {
    add(record, kind, message_at, out);
  }
}

// The first time of a block, a time before the last one, or no time.
void LineScanner::turn_back(const Record& record, ScannedBlock& out) {
  if (record.time_us == FoundLine::kNoTimeUs) return;
  if (out.first_us == FoundLine::kNoTimeUs) {
    out.first_us = out.min_us = record.time_us;
  } else if (out.last_us - record.time_us > kRestartUs) {
    add(record, LineKind::restart, record.message_at, out);
  }
  out.max_us = std::max(out.max_us, out.last_us);
  out.min_us = std::min(out.min_us, record.time_us);
  out.last_us = record.time_us;
}

void LineScanner::add(const Record& record, LineKind kind, std::uint32_t message_at, ScannedBlock& out) {
  out.found.push_back({record.time_us, static_cast<std::uint32_t>(record.line - block_),
                       static_cast<std::uint32_t>(record.size), static_cast<std::uint32_t>(out.lines),
                       static_cast<std::uint16_t>(record.process_at),
                       static_cast<std::uint16_t>(record.has_process ? record.message_at - record.process_at - 1 : 0),
                       message_at, kind, static_cast<std::uint8_t>(record.line[1] - '0')});
}

void LineScanner::read_slowly(const char* line, std::size_t size, ScannedBlock& out) {
  const auto unread = [&](Unread reason) {
    const auto at = static_cast<std::size_t>(reason);
    if (out.unread[at]++ == 0) out.first_unread[at] = out.lines;
  };
  // If a file is truncated while its writer continues at the old offset, it begins with NUL bytes.
  const bool is_hole = size > 0 && line[0] == '\0';
  if (is_hole) unread(Unread::hole);
  if (size > kLongestLine) {
    if (!is_hole) unread(Unread::too_long);
    return;
  }
  while (size > 0 && line[0] == '\0') {
    ++line;
    --size;
  }
  auto head = parse_head({line, size});
  if (!head) {
    const std::size_t at = find_glued({line, size});
    if (at != std::string_view::npos) head = parse_head({line + at, size - at});
    if (!head) {
      ++out.other_lines;
      return;
    }
    line += at;
    size -= at;
    ++out.glued;
  }
  if (!head->time_us) {
    take_record({line, size, FoundLine::kNoTimeUs, head->message_at, head->message_at, false}, out);
    return;
  }
  const std::uint32_t process_at = std::min(head->us_at + 4, head->message_at);
  if (head->digits >= 9 && head->digits <= 16 && head->digits_at >= 16 && head->message_at >= head->us_at + 5) {
    layout_ = {};
    layout_.us_at = head->us_at;
    layout_.digits = head->digits;
    layout_.digits_at = head->digits_at;
    layout_.message_at = head->message_at;
    layout_.has_process = head->pid.has_value();
    layout_.mark = line[process_at];
    std::memcpy(&layout_.us, "us: ", 4);
    std::memcpy(&layout_.first, ":\0:\0", 4);
    std::memcpy(&layout_.first_mask, "\xff\0\xff\0", 4);
    std::memcpy(&layout_.bracket, "] ", 2);
    layout_.bracket_mask = layout_.has_process ? 0xffff : 0;
  }
  take_record({line, size, *head->time_us, process_at, head->message_at, head->pid.has_value()}, out);
}

void LineScanner::scan(std::string_view text, ScannedBlock& out) {
  out.clear();
  block_ = text.data();
  const char* line = text.data();
  Layout layout = layout_;  // a local copy stays in registers because nothing else can change it
  // Line ends are collected for a whole stretch first: they are unpredictable, so no branch may depend on them.
  for (std::size_t begin = 0; begin < text.size(); begin += kStretch) {
    const std::size_t ends = find_ends(text.data() + begin, std::min(kStretch, text.size() - begin), ends_.data());
    for (std::size_t i = 0; i < ends; ++i) {
      const char* const stop = text.data() + begin + ends_[i];
      const auto size = static_cast<std::size_t>(stop - line);
      std::uint64_t time_us;
      if (read_fast(layout, line, size, time_us)) [[likely]] {
        take_record({line, size, time_us, layout.us_at + 4, layout.message_at, layout.has_process}, out);
      } else {
        read_slowly(line, size, out);
        layout = layout_;
      }
      ++out.lines;
      line = stop + 1;
    }
  }
  out.max_us = std::max(out.max_us, out.last_us);
  layout_ = layout;
  finish(out);
}

// hipMalloc ( 0x7fffea224e88, 4096 )
// hipMalloc: Returned hipSuccess : 0x7f3660900000: duration: 34 us
// __hipPushCallConfiguration ( {32,1,1}, {32,1,1}, 0, stream:0x1952020 )
LineScanner::Call LineScanner::take_call(const char* message, std::size_t size, ScannedBlock& out) {
  if (std::memcmp(message, "hip", 3) != 0 && std::memcmp(message, "__hip", 5) != 0) return Call::none;
  // Most call names were seen before, and eight of their letters distinguish them.
  Recent& recent = recent_[(word(message + 3) * 0x9E3779B97F4A7C15) >> (64 - kRecentBits)];
  Name* name = recent.name;
  std::size_t length = recent.length;
  if (name == nullptr || length >= size || (message[length] != ' ' && message[length] != ':') ||
      !same(message, recent.text.data(), length)) {
    name = find_name(message, size, out);
    if (name == nullptr) return Call::none;
    length = name->text.size();
    if (length >= 8 && length <= recent.text.size()) {
      recent.name = name;
      recent.length = length;
      std::memcpy(recent.text.data(), message, length);
    }
  }
  const char* const rest = message + length;
  const std::size_t left = size - length;
  const bool is_return = left > 11 && std::memcmp(rest, ": Returned ", 11) == 0;
  if (!is_return && (left < 2 || rest[0] != ' ' || rest[1] != '(')) return Call::none;
  if (name->begun == 0 && name->returned == 0) used_.push_back(name);
  if (is_return) {
    ++name->returned;
    if (left < 21 || std::memcmp(rest + 11, "hipSuccess", 10) != 0) {
      const std::string_view status{rest + 11, left - 11};
      if (!status.starts_with("hipErrorNotReady") && name->failed++ == 0)
        name->first_status = status.substr(0, std::min<std::size_t>(status.find(' '), 64));
    }
  } else {
    ++name->begun;
  }
  if (!wants_calls_ && !name->is_ordered) return Call::none;
  return is_return ? Call::returned : Call::begun;
}

LineScanner::Name* LineScanner::find_name(const char* message, std::size_t size, ScannedBlock& out) {
  // A name ends at a blank or a colon. Some text begins like a call without being one.
  const std::size_t most = std::min(size, kLongestName);
  std::size_t length = 0;
  while (length < most && message[length] != ' ' && message[length] != ':') ++length;
  if (length == most) return nullptr;
  const std::string_view text{message, length}, rest{message + length, size - length};
  if (!rest.starts_with(": Returned ") && !rest.starts_with(" (")) return nullptr;
  const auto found = by_text_.find(text);
  if (found != by_text_.end()) return found->second;
  if (names_.size() == kMaxNames) {
    const auto at = static_cast<std::size_t>(Unread::too_many_names);
    if (out.unread[at]++ == 0) out.first_unread[at] = out.lines;
    return nullptr;
  }
  Name& name = names_.emplace_back();
  name.text = text;
  name.is_ordered = is_ordered(text);
  by_text_.emplace(name.text, &name);
  return &name;
}

void LineScanner::finish(ScannedBlock& out) {
  for (Name* const name : used_) {
    out.calls.push_back({&name->text, name->begun, name->returned, name->failed, std::move(name->first_status)});
    name->begun = name->returned = name->failed = 0;
    name->first_status.clear();
  }
  used_.clear();
}

}  // namespace weir::amd
