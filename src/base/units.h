// Numbers with units, for people: durations, sizes, rates, percentages, counted things. Knows no measurement.
#pragma once

#include <concepts>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>

namespace weir {

std::string format_duration(double ns);  // 812 ns, 4.21 us, 13.4 ms, 2.50 s
std::string format_duration(std::integral auto ns) { return format_duration(static_cast<double>(ns)); }
std::string format_bytes(std::uint64_t bytes);  // 512 B, 4.00 KiB, 1.50 GiB
std::string format_quantity(double value);      // 812, 4.21 k, 13.4 M, 2.50 G
std::string format_ratio(double ratio);         // 1.034x

// 1 stream, 4 streams
std::string counted(double amount, std::string_view noun);
std::string counted(std::integral auto amount, std::string_view noun) {
  return counted(static_cast<double>(amount), noun);
}

// "5%" and "0.05" are both 0.05; rejects anything else. `most` is the largest value that the caller accepts: a message
// about 5 without a sign suggests 500% only where that is allowed.
double parse_fraction(std::string_view text, double most = std::numeric_limits<double>::infinity());

}  // namespace weir
