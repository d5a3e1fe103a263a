// Values that users type: lists of counts, assignments, names with typos. Knows no flag by name.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace weir {

// Reads a whole number; nothing if the text is anything else (signs, blanks, suffixes, overflow).
std::optional<std::int64_t> parse_integer(std::string_view text);
std::optional<double> parse_number(std::string_view text);

// "8", "1,2,4", "1..8" (every count), "1..64:x2" (doubling), "0..64:+16", and commas between them.
// Sorted, without repeats. `flag` names the flag in error messages.
std::vector<int> parse_counts(std::string_view flag, std::string_view text, int lowest, int highest);

// "k=v" -> {"k", "v"}; rejects anything else, naming `flag`.
std::pair<std::string, std::string> parse_assignment(std::string_view flag, std::string_view text);

// Splits at commas; blanks around items are dropped, empty items are rejected.
std::vector<std::string> parse_names(std::string_view flag, std::string_view text);

// The candidate that `name` was probably meant to be, if any is close.
std::optional<std::string> nearest(std::string_view name, std::span<const std::string> candidates);

// "Did you mean 'x'?", or the list of valid names.
std::string suggestion(std::string_view name, std::span<const std::string> candidates);

}  // namespace weir
