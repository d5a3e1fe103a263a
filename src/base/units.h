// Numbers with units, for people: durations, sizes, rates, percentages. Knows no measurement.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace weir {

std::string format_duration(double ns);         // 812 ns, 4.21 us, 13.4 ms, 2.50 s
std::string format_bytes(std::uint64_t bytes);  // 512 B, 4.00 KiB, 1.50 GiB
std::string format_quantity(double value);      // 812, 4.21 k, 13.4 M, 2.50 G
std::string format_ratio(double ratio);         // 1.034x
double parse_fraction(std::string_view text);   // "5%" and "0.05" are both 0.05; rejects anything else

}  // namespace weir
