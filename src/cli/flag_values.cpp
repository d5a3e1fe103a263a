#include "cli/flag_values.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/options.h"
#include "base/plain_text.h"
#include "base/units.h"

namespace weir::cli {
namespace {

template <class Number>
Number within(std::optional<Number> value, std::string_view flag, const std::string& text, Number lowest,
              Number highest, std::string_view wrong, const std::optional<std::string>& hint) {
  if (!value || !(*value >= lowest && *value <= highest))
    reject(fmt::format("{} {}: {}", flag, text, wrong), hint.value_or(fmt::format("Use {} to {}.", lowest, highest)));
  return *value;
}

std::string range_text(std::int64_t min_ns, std::int64_t max_ns) {
  return fmt::format("Use {} to {}.", format_duration(static_cast<double>(min_ns)),
                     format_duration(static_cast<double>(max_ns)));
}

// 30 may be seconds or milliseconds: nobody should have to guess.
void reject_bare(const std::string& flag, const std::string& text, const char* unit) {
  if (parse_number(text))
    reject(fmt::format("{} {}: the unit is missing", flag, text), fmt::format("Write {} {}{}.", flag, text, unit));
}

// "10us", "1.5ms", "2s", "500ns"
std::int64_t time_of(const std::string& flag, const std::string& whole, std::string_view word) {
  if (const auto ns = time_in(word, {"ns", "us", "ms", "s"}); ns && *ns >= 0 && *ns <= 1e15) return std::llround(*ns);
  reject(fmt::format("{} {}: '{}' is not a time", flag, without_controls(whole, ' '), without_controls(word, ' ')),
         "Give times like 10us, 1.5ms or 2s, lists like 10us,1ms, or ranges like 10us..10ms.");
}

}  // namespace

std::string in_terms_of_flags(const Error& error) {
  std::string flag = error.setting.empty() ? "" : "--" + error.setting;
  std::ranges::replace(flag, '_', '-');
  return flag + std::string(error.what()).substr(error.setting.size());
}

std::int64_t whole_number(std::string_view flag, const std::string& text, std::int64_t lowest, std::int64_t highest,
                          std::string_view wrong, const std::optional<std::string>& hint) {
  return within(parse_integer(text), flag, text, lowest, highest, wrong, hint);
}

double real_number(std::string_view flag, const std::string& text, double lowest, double highest,
                   std::string_view wrong, const std::optional<std::string>& hint) {
  return within(parse_number(text), flag, text, lowest, highest, wrong, hint);
}

std::int64_t number_within(std::string_view flag, const std::string& text, std::int64_t lowest, std::int64_t highest) {
  return whole_number(flag, text, lowest, highest, fmt::format("not a number from {} to {}", lowest, highest), "");
}

int one_count(const std::string& flag, const std::string& text, int lowest, int highest, const std::string& hint) {
  // Before the range: in `run --streams 1,2`, that 1 is too small is not what is wrong.
  if (text.find(',') != std::string::npos || text.find("..") != std::string::npos)
    reject(fmt::format("{} {}: one count is needed here", flag, text),
           hint.empty() ? fmt::format("For example {} {}.", flag, highest < 8 ? highest : 8) : hint);
  return parse_counts(flag, text, lowest, highest)[0];
}

const std::vector<std::string>& patterns_of(std::string_view flag, const std::vector<std::string>& patterns) {
  for (const std::string& pattern : patterns)
    if (pattern.empty()) reject(fmt::format("{}: the pattern is empty", flag), "Write a part of the kernel's name.");
  return patterns;
}

std::uint64_t seed_of(const std::string& text) {
  return static_cast<std::uint64_t>(whole_number("--seed", text, 0, INT64_MAX, "not a whole number", "Use 0 or more."));
}

double share_of(std::string_view flag, const std::string& text, double most) {
  if (const auto bare = parse_number(text))
    reject(fmt::format("{} {}: the percent sign is missing", flag, text),
           *bare < 1 ? fmt::format("Write {} {:g}%.", flag, *bare * 100) : fmt::format("Write {} {}%.", flag, text));
  double share = 0;
  try {
    share = parse_fraction(text, most);
  } catch (const Error& error) {
    reject(fmt::format("{} {}: {}", flag, text, error.what()), error.hint);
  }
  if (share <= 0 || share > most)
    reject(fmt::format("{} {}: out of range", flag, text),
           fmt::format("Choose more than 0% and at most {}%.", 100 * most));
  return share;
}

std::uint64_t size_of(const std::string& flag, const std::string& text, std::uint64_t lowest, std::uint64_t highest) {
  reject_bare(flag, text, "M");
  constexpr std::string_view kUnits = "KMGT";
  const std::size_t unit = text.empty() ? std::string_view::npos : kUnits.find(text.back());
  const auto number = unit == std::string_view::npos ? std::nullopt : parse_number(text.substr(0, text.size() - 1));
  if (!number) reject(fmt::format("{} {}: not a size", flag, text), "For example 512M or 4G.");
  const double bytes = std::ldexp(*number, 10 * (static_cast<int>(unit) + 1));
  if (!(bytes >= static_cast<double>(lowest) && bytes <= static_cast<double>(highest)))
    reject(fmt::format("{} {}: out of range", flag, text),
           fmt::format("Use {} to {}.", format_bytes(lowest), format_bytes(highest)));
  return static_cast<std::uint64_t>(bytes);
}

std::optional<double> time_in(std::string_view text, std::initializer_list<std::string_view> units) {
  // Longer suffixes first: "ms" ends in "s".
  constexpr std::pair<std::string_view, double> kUnits[] = {{"ns", 1},  {"us", 1e3}, {"ms", 1e6},
                                                            {"s", 1e9}, {"m", 60e9}, {"h", 3600e9}};
  for (const auto& [unit, ns] : kUnits) {
    if (!text.ends_with(unit) || std::find(units.begin(), units.end(), unit) == units.end()) continue;
    const auto number = parse_number(text.substr(0, text.size() - unit.size()));
    return number ? std::optional(*number * ns) : std::nullopt;
  }
  return std::nullopt;
}

double seconds_of(const std::string& flag, const std::string& text) {
  reject_bare(flag, text, "s");
  const auto ns = time_in(text, {"us", "ms", "s", "m", "h"});
  if (!ns || *ns <= 0 || *ns > 7 * 86400e9)
    reject(fmt::format("{} {}: not a time", flag, text), "For example 30s, 5m or 1h.");
  return *ns / 1e9;
}

std::int64_t duration_of(const std::string& flag, const std::string& text, std::int64_t min_ns, std::int64_t max_ns) {
  reject_bare(flag, text, "ms");
  const auto ns = time_in(text, {"us", "ms", "s", "m", "h"});
  if (!ns) reject(fmt::format("{} {}: not a time", flag, text), "For example 500us, 2ms or 1.5s.");
  if (!(*ns >= static_cast<double>(min_ns) && *ns <= static_cast<double>(max_ns)))
    reject(fmt::format("{} {}: out of range", flag, text), range_text(min_ns, max_ns));
  return static_cast<std::int64_t>(*ns);
}

std::vector<std::int64_t> parse_times(const std::string& flag, const std::string& text, std::int64_t lowest_ns,
                                      std::int64_t highest_ns) {
  const auto checked = [&](std::string_view word) {
    const std::int64_t ns = time_of(flag, text, word);
    if (ns < lowest_ns || ns > highest_ns)
      reject(fmt::format("{} {}: {} is out of range", flag, text, word), range_text(lowest_ns, highest_ns));
    return ns;
  };
  std::vector<std::int64_t> times;
  for (const std::string& item : parse_names(flag, text)) {
    const std::size_t dots = item.find("..");
    if (dots == std::string::npos) {
      times.push_back(checked(item));
      continue;
    }
    std::string_view last = std::string_view(item).substr(dots + 2);
    double factor = 10;
    if (const std::size_t colon = last.find(":x"); colon != std::string_view::npos) {
      factor = parse_number(last.substr(colon + 2)).value_or(0);
      if (factor < 1.1 || factor > 1e6)
        reject(fmt::format("{} {}: '{}' is not a step", flag, text, last.substr(colon)), "Use :x2 to double.");
      last = last.substr(0, colon);
    }
    const std::int64_t from = checked(std::string_view(item).substr(0, dots)), to = checked(last);
    if (from > to || from == 0)
      reject(fmt::format("{} {}: {} is not a range", flag, text, item), "The shorter time comes first.");
    for (double at = static_cast<double>(from); at <= static_cast<double>(to) * 1.0001; at *= factor)
      times.push_back(std::llround(at));
  }
  std::sort(times.begin(), times.end());
  times.erase(std::unique(times.begin(), times.end()), times.end());
  return times;
}

}  // namespace weir::cli
