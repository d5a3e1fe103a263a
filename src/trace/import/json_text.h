// Parses numbers in texts, and escapes in the text of JSON values, quoted or not. Exact: no value goes through floating
// point.
#pragma once

#include <charconv>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace weir {

// The whole text as a number in this base, without blanks or prefixes. Empty for anything else, or where it does not
// fit.
template <class Number>
std::optional<Number> number_in(std::string_view text, int base = 10) noexcept {
  Number value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

// 42, -1, "0x55d8564ba340", 3.0, 1e3. Empty where it is not a whole number or does not fit.
std::optional<std::int64_t> signed_of(std::string_view text) noexcept;
std::optional<std::uint64_t> unsigned_of(std::string_view text) noexcept;

// A decimal number times 10^places, rounded: 1106964728033.929 with 3 places is 1106964728033929.
std::optional<std::int64_t> scaled_of(std::string_view text, int places) noexcept;

// Whether the text has the form of a number, in range or not. NaN and Infinity do not.
bool is_number(std::string_view text) noexcept;

// Letters and digits of the first 64 characters, in lower case: files spell one word in many ways.
std::string plain(std::string_view text);

// The content of a string with its escapes resolved; invalid escapes stay as they are. Invalid UTF-8 is passed through.
std::string decoded(std::string_view raw);

}  // namespace weir
