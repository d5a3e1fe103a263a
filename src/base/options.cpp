#include "base/options.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "base/error.h"
#include "base/plain_text.h"

namespace weir {
namespace {

// Letters to insert, leave out, replace, or swap with their neighbour.
std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> before, row(b.size() + 1), next(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    next[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      next[j] = std::min({row[j] + 1, next[j - 1] + 1, row[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1)});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        next[j] = std::min(next[j], before[j - 2] + 1);
    }
    before = std::exchange(row, next);
  }
  return row[b.size()];
}

}  // namespace

std::optional<std::int64_t> parse_integer(std::string_view text) { return parse_as<std::int64_t>(text); }

std::optional<double> parse_number(std::string_view text) {
  const auto value = parse_as<double>(text);
  return value && std::isfinite(*value) ? value : std::nullopt;
}

std::vector<int> parse_counts(std::string_view flag, std::string_view text, int lowest, int highest) {
  constexpr std::string_view kForms = "Give counts like 8, 1,2,4, 1..8 or 1..64:x2.";
  const auto count = [&](std::string_view word) {
    const auto value = parse_integer(trimmed(word));
    if (!value)
      reject(fmt::format("{} {}: '{}' is not a whole number", flag, text, trimmed(word)), std::string(kForms));
    if (*value < lowest || *value > highest)
      reject(fmt::format("{} {}: {} is out of range", flag, text, *value),
             fmt::format("Use {} to {}.", lowest, highest));
    return static_cast<int>(*value);
  };

  std::vector<int> counts;
  for (const std::string& item : parse_names(flag, text)) {
    const std::size_t dots = item.find("..");
    if (dots == std::string::npos) {
      counts.push_back(count(item));
      continue;
    }
    std::string_view last = std::string_view(item).substr(dots + 2);
    std::string_view stride = "+1";
    if (const std::size_t colon = last.find(':'); colon != std::string_view::npos) {
      stride = last.substr(colon + 1);
      last = last.substr(0, colon);
    }
    const int from = count(std::string_view(item).substr(0, dots));
    const int to = count(last);
    if (from > to) reject(fmt::format("{} {}: {} comes after {}", flag, text, from, to), std::string(kForms));
    const bool multiplies = !stride.empty() && stride.front() == 'x';
    const auto by = parse_integer(stride.empty() ? stride : stride.substr(1));
    if (stride.empty() || (stride.front() != 'x' && stride.front() != '+') || !by || *by < (multiplies ? 2 : 1) ||
        *by > 1'000'000 || (multiplies && from == 0))
      reject(fmt::format("{} {}: ':{}' is not a stride", flag, text, stride), "Use :x2 to double or :+4 to add.");
    for (std::int64_t value = from; value <= to; value = multiplies ? value * *by : value + *by)
      counts.push_back(static_cast<int>(value));
  }
  std::sort(counts.begin(), counts.end());
  counts.erase(std::unique(counts.begin(), counts.end()), counts.end());
  return counts;
}

std::pair<std::string, std::string> parse_assignment(std::string_view flag, std::string_view text) {
  const std::size_t equals = text.find('=');
  if (equals == std::string_view::npos || equals == 0 || equals + 1 == text.size())
    reject(fmt::format("{} {}: not an assignment", flag, text), fmt::format("Write it as {} name=value.", flag));
  return {std::string(trimmed(text.substr(0, equals))), std::string(trimmed(text.substr(equals + 1)))};
}

std::vector<std::string> parse_names(std::string_view flag, std::string_view text) {
  std::vector<std::string> names;
  std::string_view rest = text;
  while (true) {
    const std::size_t comma = rest.find(',');
    const std::string_view item = trimmed(rest.substr(0, comma));
    if (item.empty()) reject(fmt::format("{} '{}': an item is empty", flag, text), "Separate items by single commas.");
    names.emplace_back(item);
    if (comma == std::string_view::npos) return names;
    rest.remove_prefix(comma + 1);
  }
}

std::optional<std::string> nearest(std::string_view name, std::span<const std::string> candidates) {
  const std::string* best = nullptr;
  // Two wrong letters of four are another word.
  std::size_t best_distance = (name.size() <= 4 ? 1 : std::max<std::size_t>(2, name.size() / 3)) + 1;
  for (const std::string& candidate : candidates) {
    // Users type prefixes: "hetero" means hetero_kernels, however many letters are missing.
    const bool is_beginning = name.size() >= 3 && candidate.starts_with(name);
    const std::size_t distance = is_beginning ? 0 : edit_distance(name, candidate);
    if (distance < best_distance) {
      best = &candidate;
      best_distance = distance;
    }
  }
  if (best == nullptr) return std::nullopt;
  return *best;
}

std::string suggestion(std::string_view name, std::span<const std::string> candidates) {
  if (const auto meant = nearest(name, candidates)) return fmt::format("Did you mean '{}'?", *meant);
  return fmt::format("There is: {}.", fmt::join(candidates, ", "));
}

}  // namespace weir
