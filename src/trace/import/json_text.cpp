#include "trace/import/json_text.h"

#include <limits>

#include "base/plain_text.h"

namespace weir {
namespace {

std::string_view without_blanks(std::string_view text) noexcept {
  while (!text.empty() && static_cast<unsigned char>(text.front()) <= ' ') text.remove_prefix(1);
  while (!text.empty() && static_cast<unsigned char>(text.back()) <= ' ') text.remove_suffix(1);
  return text;
}

// magnitude * 10^exponent
struct Decimal {
  bool is_negative = false;
  std::uint64_t magnitude = 0;  // at most 19 digits; further ones only move the exponent
  std::int64_t exponent = 0;
  bool is_cut = false;  // nonzero digits were left out
};

std::optional<Decimal> decimal_of(std::string_view text) noexcept {
  Decimal made;
  std::size_t i = 0;
  if (i < text.size() && (text[i] == '-' || text[i] == '+')) made.is_negative = text[i++] == '-';
  bool has_digit = false;
  int digits = 0;
  const auto take = [&](bool is_fraction) {
    for (; i < text.size() && is_digit(text[i]); ++i) {
      has_digit = true;
      if (digits == 19) {
        made.is_cut = made.is_cut || text[i] != '0';
        made.exponent += is_fraction ? 0 : 1;
        continue;
      }
      made.magnitude = made.magnitude * 10 + static_cast<std::uint64_t>(text[i] - '0');
      if (made.magnitude != 0) ++digits;
      made.exponent -= is_fraction ? 1 : 0;
    }
  };
  take(false);
  if (i < text.size() && text[i] == '.') {
    ++i;
    take(true);
  }
  if (!has_digit) return std::nullopt;
  if (i < text.size() && (text[i] == 'e' || text[i] == 'E')) {
    ++i;
    bool is_down = false;
    if (i < text.size() && (text[i] == '-' || text[i] == '+')) is_down = text[i++] == '-';
    if (i == text.size()) return std::nullopt;
    std::int64_t power = 0;
    for (; i < text.size() && is_digit(text[i]); ++i)
      if (power < 1'000'000) power = power * 10 + (text[i] - '0');
    made.exponent += is_down ? -power : power;
  }
  if (i != text.size()) return std::nullopt;
  return made;
}

// Rounded to the nearest, halves away from zero.
std::optional<std::uint64_t> magnitude_of(Decimal decimal) noexcept {
  std::uint64_t value = decimal.magnitude;
  if (value == 0) return 0;
  for (; decimal.exponent > 0; --decimal.exponent) {
    if (value > std::numeric_limits<std::uint64_t>::max() / 10) return std::nullopt;
    value *= 10;
  }
  std::uint64_t last = 0;
  for (; decimal.exponent < 0 && (value != 0 || last != 0); ++decimal.exponent) {
    last = value % 10;
    value /= 10;
  }
  return last >= 5 ? value + 1 : value;
}

std::optional<std::uint64_t> hexadecimal_of(std::string_view text) noexcept {
  if (text.size() < 3 || text.size() > 18 || text[0] != '0' || (text[1] != 'x' && text[1] != 'X')) return std::nullopt;
  return number_in<std::uint64_t>(text.substr(2), 16);
}

std::optional<std::int64_t> with_sign(std::uint64_t magnitude, bool is_negative) noexcept {
  if (magnitude > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) return std::nullopt;
  const auto value = static_cast<std::int64_t>(magnitude);
  return is_negative ? -value : value;
}

// The magnitude of a whole number: 3, 3.0, 3e2, but not 3.5.
std::optional<std::uint64_t> whole_of(std::string_view text, bool& is_negative) noexcept {
  is_negative = false;
  // Parses up to 20 digits exactly, which decimal_of() would truncate.
  if (const auto plain = number_in<std::uint64_t>(text)) return plain;
  if (const auto address = hexadecimal_of(text)) return address;
  const auto decimal = decimal_of(text);
  if (!decimal || decimal->is_cut) return std::nullopt;
  std::uint64_t value = decimal->magnitude;
  std::int64_t exponent = decimal->exponent;
  for (; exponent < 0 && value != 0; ++exponent) {
    if (value % 10 != 0) return std::nullopt;
    value /= 10;
  }
  is_negative = decimal->is_negative;
  return magnitude_of({false, value, value == 0 ? 0 : exponent, false});
}

// The four digits of \u0041 at `at`.
std::optional<std::uint32_t> code_at(std::string_view raw, std::size_t at) noexcept {
  if (at + 6 > raw.size() || raw[at] != '\\' || raw[at + 1] != 'u') return std::nullopt;
  return number_in<std::uint32_t>(raw.substr(at + 2, 4), 16);
}

void append_utf8(std::string& to, std::uint32_t code) {
  const auto part = [&](std::uint32_t byte) { to += static_cast<char>(static_cast<unsigned char>(byte)); };
  if (code < 0x80) return part(code);
  if (code < 0x800) {
    part(0xC0U | code >> 6);
  } else if (code < 0x10000) {
    part(0xE0U | code >> 12);
    part(0x80U | (code >> 6 & 0x3FU));
  } else {
    part(0xF0U | code >> 18);
    part(0x80U | (code >> 12 & 0x3FU));
    part(0x80U | (code >> 6 & 0x3FU));
  }
  part(0x80U | (code & 0x3FU));
}

}  // namespace

std::optional<std::int64_t> signed_of(std::string_view text) noexcept {
  bool is_negative = false;
  const auto magnitude = whole_of(without_blanks(text), is_negative);
  return magnitude ? with_sign(*magnitude, is_negative) : std::nullopt;
}

std::optional<std::uint64_t> unsigned_of(std::string_view text) noexcept {
  bool is_negative = false;
  const auto magnitude = whole_of(without_blanks(text), is_negative);
  return is_negative && magnitude && *magnitude != 0 ? std::nullopt : magnitude;
}

std::optional<std::int64_t> scaled_of(std::string_view text, int places) noexcept {
  text = without_blanks(text);
  auto decimal = decimal_of(text);
  if (!decimal) return std::nullopt;
  decimal->exponent += places;
  const auto magnitude = magnitude_of(*decimal);
  return magnitude ? with_sign(*magnitude, decimal->is_negative) : std::nullopt;
}

bool is_number(std::string_view text) noexcept {
  text = without_blanks(text);
  return decimal_of(text).has_value() || hexadecimal_of(text).has_value();
}

std::string plain(std::string_view text) {
  std::string made;
  for (const char c : text.substr(0, 64)) {
    if (c >= 'A' && c <= 'Z') made += static_cast<char>(c - 'A' + 'a');
    if ((c >= 'a' && c <= 'z') || is_digit(c)) made += c;
  }
  return made;
}

std::string decoded(std::string_view raw) {
  std::string text;
  text.reserve(raw.size());
  for (std::size_t i = 0; i < raw.size(); ++i) {
    if (raw[i] != '\\' || i + 1 == raw.size()) {
      text += raw[i];
      continue;
    }
    constexpr std::string_view kLetters = "bfnrt\"\\/";
    constexpr std::string_view kMeanings = "\b\f\n\r\t\"\\/";
    if (const std::size_t letter = kLetters.find(raw[i + 1]); letter != std::string_view::npos) {
      text += kMeanings[letter];
      ++i;
      continue;
    }
    auto code = code_at(raw, i);
    if (!code) {
      text += raw[i];
      continue;
    }
    i += 5;
    // \ud83d\ude00: a surrogate pair; a lone half becomes the replacement character.
    if (*code >= 0xD800 && *code < 0xDC00) {
      const auto low = code_at(raw, i + 1);
      if (low && *low >= 0xDC00 && *low < 0xE000) {
        code = 0x10000U + ((*code - 0xD800U) << 10) + (*low - 0xDC00U);
        i += 6;
      }
    }
    append_utf8(text, *code >= 0xD800 && *code < 0xE000 ? 0xFFFDU : *code);
  }
  return text;
}

}  // namespace weir
