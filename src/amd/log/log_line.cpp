#include "amd/log/log_line.h"

#include "base/plain_text.h"

namespace weir::amd {
namespace {

constexpr std::size_t kLongestHead = 1024;  // the file name may be a whole path

constexpr std::array<signed char, 256> hex_digits() {
  std::array<signed char, 256> values{};
  values.fill(-1);
  for (int i = 0; i < 10; ++i) values[static_cast<std::size_t>('0' + i)] = static_cast<signed char>(i);
  for (int i = 0; i < 6; ++i) {
    values[static_cast<std::size_t>('a' + i)] = static_cast<signed char>(10 + i);
    values[static_cast<std::size_t>('A' + i)] = static_cast<signed char>(10 + i);
  }
  return values;
}
constexpr std::array<signed char, 256> kHexDigits = hex_digits();

int hex_digit(char c) { return kHexDigits[static_cast<unsigned char>(c)]; }

void skip_blanks(std::string_view& text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
}

// Whether `text` ends like the columns before a time: ":480 : ", ":3048: ", ":56  : ".
bool ends_with_place(std::string_view text) {
  if (!text.ends_with(": ")) return false;
  text.remove_suffix(2);
  for (int blanks = 0; blanks < 8 && text.ends_with(' '); ++blanks) text.remove_suffix(1);
  std::size_t digits = 0;
  while (digits < 10 && !text.empty() && is_digit(text.back())) {
    text.remove_suffix(1);
    ++digits;
  }
  return digits > 0 && digits < 10 && !text.empty() && text.back() == ':';
}

std::optional<int> as_pid(std::optional<std::uint64_t> value) {
  if (!value || *value > 0x7fffffff) return std::nullopt;
  return static_cast<int>(*value);
}

}  // namespace

// [pid:459769 tid: 0x7f8edc1c4400] message     ROCm 6.3 and later; 6.3 also without 0x
// [pid:16    tid:0x7f54f7603280] message       ROCm 6
// 1255284: [tid:0x7fcc46391bc0] message        ROCm 5; "4277 : [tid:" too
//  message                                     level 3 and below
void take_process(std::string_view& text, LineHead& head) {
  std::string_view rest = text;
  std::optional<int> pid;
  if (take_word(rest, "[pid:")) {
    pid = as_pid(take_decimal(rest));
    if (!pid) return;
    skip_blanks(rest);
    if (!take_word(rest, "tid:")) return;
  } else if (!rest.empty() && is_digit(rest.front())) {
    pid = as_pid(take_decimal(rest));
    if (!pid) return;
    skip_blanks(rest);
    if (!take_word(rest, ": [tid:")) return;
  } else {
    return;
  }
  skip_blanks(rest);
  const auto tid = take_hex(rest);
  if (!tid || !take_word(rest, "]")) return;
  head.pid = pid;
  head.tid = *tid;
  text = rest;
}

std::optional<std::uint64_t> take_hex(std::string_view& text) {
  const char* at = text.data();
  const char* const end = at + text.size();
  if (end - at >= 2 && at[0] == '0' && (at[1] == 'x' || at[1] == 'X')) at += 2;
  const char* const begin = at;
  std::uint64_t value = 0;
  for (; at < end; ++at) {
    const int digit = hex_digit(*at);
    if (digit >= 0) {
      if (value >> 60 != 0) return std::nullopt;
      value = value << 4 | static_cast<std::uint64_t>(digit);
      continue;
    }
    // 0x7fb,bb5,821,380: only a group of three digits after a comma belongs to the number.
    const bool is_group = *at == ',' && at > begin && end - at > 3 && hex_digit(at[1]) >= 0 && hex_digit(at[2]) >= 0 &&
                          hex_digit(at[3]) >= 0 && (end - at == 4 || hex_digit(at[4]) < 0);
    if (!is_group) break;
  }
  if (at == begin) return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(at - text.data()));
  return value;
}

std::optional<std::uint64_t> take_decimal(std::string_view& text) {
  std::uint64_t value = 0;
  std::size_t digits = 0;
  for (; digits < text.size() && is_digit(text[digits]); ++digits) {
    if (digits == 19) return std::nullopt;
    value = value * 10 + static_cast<std::uint64_t>(text[digits] - '0');
  }
  if (digits == 0) return std::nullopt;
  text.remove_prefix(digits);
  return value;
}

std::optional<std::uint64_t> take_last_decimal(std::string_view& text) {
  std::size_t digits = 0;
  while (digits < 19 && digits < text.size() && is_digit(text[text.size() - digits - 1])) ++digits;
  std::string_view number = text.substr(text.size() - digits);
  const auto value = take_decimal(number);
  if (value) text.remove_suffix(digits);
  return value;
}

// :3:rocdevice.cpp            :2967: 6306214537 us:  Number of allocated hardware queues ...
// :4:command.cpp              :357 : 20161701357 us: [pid:459769 tid: 0x7f8edc1c4400] Command ...
// :3:                         :0   : 418551158102 us: [pid:..        a mask without the place
// :3:rocvirtual.cpp           :807 : 7270505882d us: [pid:21983 ..   ROCm 6.3: a stray d
// :0:/long_path/device.cpp:321 : 12074 us: [pid:123 ...              a path in place of the file
// :1:hip_fatbin.cpp:117: message                                     no time: the runtime's own short form
std::optional<LineHead> parse_head(std::string_view line) {
  if (line.size() < 8 || line[0] != ':' || !is_digit(line[1]) || line[2] != ':') return std::nullopt;
  LineHead head;
  head.level = line[1] - '0';
  const std::string_view start = line.substr(0, kLongestHead);
  for (std::size_t at = start.find("us:", 3); at != std::string_view::npos; at = start.find("us:", at + 3)) {
    std::size_t end = at;
    if (end < 2 || start[end - 1] != ' ') continue;
    --end;
    if (start[end - 1] == 'd') --end;
    std::size_t digits = 0;
    while (digits < end && digits < 20 && is_digit(start[end - digits - 1])) ++digits;
    if (digits == 0 || digits > 18 || !ends_with_place(start.substr(2, end - digits - 2))) continue;
    std::string_view number = start.substr(end - digits, digits);
    head.digits_at = static_cast<std::uint32_t>(end - digits);
    head.digits = static_cast<std::uint32_t>(digits);
    head.us_at = static_cast<std::uint32_t>(at);
    head.time_us = take_decimal(number);
    std::string_view rest = line.substr(at + 3);
    if (!rest.empty() && rest.front() == ' ') rest.remove_prefix(1);
    take_process(rest, head);
    if (!rest.empty() && rest.front() == ' ') rest.remove_prefix(1);
    head.message_at = static_cast<std::uint32_t>(line.size() - rest.size());
    return head;
  }
  // The short form is accepted only for errors: it is too easily confused with the program's own text.
  if (head.level > 2) return std::nullopt;
  const std::size_t colon = start.find(':', 3);
  if (colon == std::string_view::npos || colon == 3) return std::nullopt;
  std::string_view rest = line.substr(colon + 1);
  if (!take_decimal(rest) || !take_word(rest, ": ")) return std::nullopt;
  head.message_at = static_cast<std::uint32_t>(line.size() - rest.size());
  return head;
}

// 3 seconds left...:3:hip_memory.cpp           :772 : 6306339033 us:  hipMalloc: Returned hipSuccess : ...
std::size_t find_glued(std::string_view line) {
  for (std::size_t us = line.find(" us:"); us != std::string_view::npos; us = line.find(" us:", us + 4)) {
    const std::size_t end = us > 0 && line[us - 1] == 'd' ? us - 1 : us;
    std::size_t digits = 0;
    while (digits < end && digits < 20 && is_digit(line[end - digits - 1])) ++digits;
    if (digits == 0 || !ends_with_place(line.substr(0, end - digits))) continue;
    // Search backwards from the colon before the line number: the level is at the last position that can hold one.
    const std::size_t lowest = end < kLongestHead ? 0 : end - kLongestHead;
    for (std::size_t at = end - digits; at-- > lowest;) {
      if (line[at] != ':' || !is_digit(line[at + 1]) || line[at + 2] != ':') continue;
      const auto head = parse_head(line.substr(at));
      if (head && head->time_us && at + head->us_at == us + 1) return at;
    }
  }
  return std::string_view::npos;
}

// ESC[32m hipSetDevice ( 0 ) ESC[0m
std::string_view trimmed(std::string_view message) {
  while (!message.empty()) {
    if (message.front() == ' ') {
      message.remove_prefix(1);
    } else if (message.size() > 2 && message[0] == '\x1b' && message[1] == '[') {
      std::size_t at = 2;
      while (at < message.size() && (is_digit(message[at]) || message[at] == ';')) ++at;
      if (at == message.size()) break;
      message.remove_prefix(at + 1);
    } else {
      break;
    }
  }
  while (!message.empty()) {
    const char last = message.back();
    if (last == ' ' || last == '\r') {
      message.remove_suffix(1);
      continue;
    }
    if (last != 'm') break;
    std::size_t at = message.size() - 1;
    while (at > 0 && (is_digit(message[at - 1]) || message[at - 1] == ';')) --at;
    if (at < 2 || message[at - 1] != '[' || message[at - 2] != '\x1b') break;
    message = message.substr(0, at - 2);
  }
  return message;
}

namespace {

std::optional<std::string_view> after(std::string_view text, std::string_view key) {
  const std::size_t at = text.find(key);
  if (at == std::string_view::npos) return std::nullopt;
  return text.substr(at + key.size());
}

}  // namespace

std::optional<std::uint64_t> hex_after(std::string_view text, std::string_view key) {
  auto rest = after(text, key);
  return rest ? take_hex(*rest) : std::nullopt;
}

std::optional<std::uint64_t> decimal_after(std::string_view text, std::string_view key) {
  auto rest = after(text, key);
  return rest ? take_decimal(*rest) : std::nullopt;
}

std::optional<std::array<std::uint32_t, 3>> take_triple(std::string_view& text) {
  std::string_view rest = text;
  if (!take_word(rest, "[")) return std::nullopt;
  std::array<std::uint32_t, 3> values{};
  for (std::size_t i = 0; i < 3; ++i) {
    skip_blanks(rest);
    const auto value = take_decimal(rest);
    if (!value || *value > UINT32_MAX) return std::nullopt;
    values[i] = static_cast<std::uint32_t>(*value);
    if (!take_word(rest, i < 2 ? "," : "]")) return std::nullopt;
  }
  text = rest;
  return values;
}

}  // namespace weir::amd
