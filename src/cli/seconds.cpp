#include "cli/seconds.h"

#include <fmt/format.h>

#include <string_view>

#include "base/error.h"
#include "base/options.h"

namespace weir::cli {

double seconds_of(const std::string& flag, const std::string& text) {
  // The longer endings first: "ms" ends in "s".
  constexpr std::pair<std::string_view, double> kUnits[] = {{"ms", 1e-3}, {"s", 1}, {"m", 60}, {"h", 3600}};
  std::string_view number = text;
  double unit = 1;
  for (const auto& [ending, seconds] : kUnits) {
    if (!number.ends_with(ending)) continue;
    number.remove_suffix(ending.size());
    unit = seconds;
    break;
  }
  const auto value = parse_number(number);
  if (!value || *value <= 0 || *value * unit > 7 * 86400)
    reject(fmt::format("{} {}: not a time", flag, text), "For example 30s, 5m or 1h.");
  return *value * unit;
}

}  // namespace weir::cli
