// Values that users type after a flag: numbers, fractions, times. Each rejects bad values, naming `flag`. Knows no flag
// by name.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace weir::cli {

// What the error says, with the flag in place of the setting's name: "hw_queues 0: ..." is "--hw-queues 0: ...".
std::string in_terms_of_flags(const Error& error);

// A number within the bounds; else rejects with "FLAG TEXT: WRONG". The default hint is "Use LOWEST to HIGHEST."
std::int64_t whole_number(std::string_view flag, const std::string& text, std::int64_t lowest, std::int64_t highest,
                          std::string_view wrong, const std::optional<std::string>& hint = {});
double real_number(std::string_view flag, const std::string& text, double lowest, double highest,
                   std::string_view wrong, const std::optional<std::string>& hint = {});
// "--top 0: not a number from 1 to 1000"
std::int64_t number_within(std::string_view flag, const std::string& text, std::int64_t lowest, std::int64_t highest);
// A single whole number, where other commands take a list.
int one_count(const std::string& flag, const std::string& text, int lowest, int highest, const std::string& hint = {});
// Patterns for names, none of them empty: an empty one is in every name.
const std::vector<std::string>& patterns_of(std::string_view flag, const std::vector<std::string>& patterns);
// The value of --seed.
std::uint64_t seed_of(const std::string& text);

// "5%": greater than 0. Above 100% a run twice as slow would pass, and at 0 nothing would ever be the same.
double share_of(std::string_view flag, const std::string& text, double most = 1);

// "512M" in bytes, within the bounds; K, M, G and T are powers of 1024.
std::uint64_t size_of(const std::string& flag, const std::string& text, std::uint64_t lowest, std::uint64_t highest);

// "1.5ms" in nanoseconds, in one of these units; empty where it is not a time.
std::optional<double> time_in(std::string_view text, std::initializer_list<std::string_view> units);
// "300s", "500ms", "5m", "1h": greater than 0 and at most a week.
double seconds_of(const std::string& flag, const std::string& text);
// "500us", "2ms", "1.5s", in nanoseconds, within the bounds.
std::int64_t duration_of(const std::string& flag, const std::string& text, std::int64_t min_ns, std::int64_t max_ns);

// "10us", "1.5ms", "2s", and lists of them: "10us,1ms", "10us..10ms" (every decade), "10us..1ms:x2". Sorted, without
// repeats; rejects values below `lowest_ns` or above `highest_ns`.
std::vector<std::int64_t> parse_times(const std::string& flag, const std::string& text, std::int64_t lowest_ns,
                                      std::int64_t highest_ns);

}  // namespace weir::cli
